/* Relates clocks over any bootstrap: by the kernel's identity, else by exchange. */
#include "runtime/comm/clock_relation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/share.h"

enum { ROUNDS = 40, READINGS = 64 };

/* Without a boot's name two ranks cannot know that they share a clock: each gets its own identity. */
static void describe_clock(const struct el_bootstrap *bootstrap, char identity[EL_BOOT_NAME_BYTES])
{
    memset(identity, 0, EL_BOOT_NAME_BYTES);
    if (!el_share_boot("time", identity))
        snprintf(identity, EL_BOOT_NAME_BYTES, "rank %d", el_bootstrap_rank(bootstrap));
}

static int64_t resolution_ns(void)
{
    int64_t least = INT64_MAX, last = el_clock_ns();
    for (int i = 0; i < READINGS; i++) {
        int64_t now = el_clock_ns();
        if (now > last && now - last < least) least = now - last;
        last = now;
    }
    return least == INT64_MAX ? 1 : least;
}

/* Rank 0's clock before and after the answers [size] (rank 0 only). */
static enum el_status exchange_round(struct el_bootstrap *bootstrap, int64_t *before_p, int64_t *after_p,
                                     int64_t *answers)
{
    char mine[32], **texts = NULL;
    *before_p = el_clock_ns();
    EL_TRY(el_bootstrap_broadcast(bootstrap, before_p, sizeof *before_p));
    snprintf(mine, sizeof mine, "%" PRId64, el_clock_ns());
    EL_TRY(el_bootstrap_gather(bootstrap, mine, &texts));
    *after_p = el_clock_ns();
    for (int r = 0; texts && r < el_bootstrap_size(bootstrap); r++) {
        answers[r] = strtoll(texts[r], NULL, 10);
        free(texts[r]);
    }
    free(texts);
    return EL_OK;
}

/* [size][2]: the range of offsets consistent with all rounds. */
static enum el_status find_bounds(struct el_bootstrap *bootstrap, int64_t (*bounds)[2], int64_t *answers)
{
    int size = el_bootstrap_size(bootstrap);
    for (int r = 0; r < size; r++) bounds[r][0] = INT64_MIN, bounds[r][1] = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t before, after;
        EL_TRY(exchange_round(bootstrap, &before, &after, answers));
        for (int r = 0; r < size && el_bootstrap_rank(bootstrap) == 0; r++) {
            if (answers[r] - after > bounds[r][0]) bounds[r][0] = answers[r] - after;
            if (answers[r] - before < bounds[r][1]) bounds[r][1] = answers[r] - before;
        }
    }
    return el_bootstrap_broadcast(bootstrap, bounds, (size_t)size * sizeof *bounds);
}

enum el_status el_clock_exchange(struct el_bootstrap *bootstrap, struct el_clock_anchor *anchor_p)
{
    int size = el_bootstrap_size(bootstrap), rank = el_bootstrap_rank(bootstrap);
    int64_t(*bounds)[2] = calloc((size_t)size, sizeof *bounds), *answers = calloc((size_t)size, sizeof *answers);
    enum el_status status =
        el_bootstrap_agree(bootstrap, bounds && answers ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "clocks: no memory"));
    if (status == EL_OK) status = find_bounds(bootstrap, bounds, answers);
    if (status == EL_OK) {
        int64_t low = bounds[rank][0], high = bounds[rank][1];
        *anchor_p = (struct el_clock_anchor){.at_ns = el_clock_ns()};
        if (rank != 0) {
            anchor_p->offset_ns = low + (high - low) / 2;
            anchor_p->error_ns = (high - low + 1) / 2;
        }
        for (int r = 1; r < size; r++) {
            int64_t error_ns = (bounds[r][1] - bounds[r][0] + 1) / 2;
            if (error_ns > anchor_p->worst_ns) anchor_p->worst_ns = error_ns;
        }
    }
    free(bounds);
    free(answers);
    return status;
}

enum el_status el_clock_relate(struct el_bootstrap *bootstrap, struct el_clock_anchor *anchor_p)
{
    char mine[EL_BOOT_NAME_BYTES], first[EL_BOOT_NAME_BYTES];
    describe_clock(bootstrap, mine);
    memcpy(first, mine, sizeof first);
    EL_TRY(el_bootstrap_broadcast(bootstrap, first, sizeof first));
    bool same = memcmp(first, mine, sizeof first) == 0;
    enum el_status answer = same ? EL_OK : el_fail(EL_ERR_ABSENT, "another clock");
    if (el_bootstrap_agree(bootstrap, answer) != EL_OK) return el_clock_exchange(bootstrap, anchor_p);
    *anchor_p = (struct el_clock_anchor){.shared = true, .at_ns = el_clock_ns(), .error_ns = resolution_ns()};
    anchor_p->worst_ns = anchor_p->error_ns;
    return EL_OK;
}

static int64_t offset_at(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t own_ns)
{
    if (end->at_ns <= begin->at_ns) return begin->offset_ns;
    double share = (double)(own_ns - begin->at_ns) / (double)(end->at_ns - begin->at_ns);
    return begin->offset_ns + (int64_t)(share * (double)(end->offset_ns - begin->offset_ns));
}

int64_t el_clock_common(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t own_ns)
{
    return own_ns - offset_at(begin, end, own_ns);
}

/* The offset drifts by less than 1e-4 of the elapsed time, so the first one is accurate enough to look it up. */
int64_t el_clock_own(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t common_ns)
{
    return common_ns + offset_at(begin, end, common_ns + begin->offset_ns);
}
