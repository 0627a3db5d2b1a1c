/* The shm communicator between processes made by fork, over a bootstrap of pipes that exists only here: no MPI. */
#include "tests/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "runtime/comm/shared/presence.h"
#include "tests/conformance/comm_scenes.h"
#include "tests/unit/star_bootstrap.h"

static int play(struct star *star, void *context)
{
    const el_scene *scene = context;
    return scene_play("shm", &star->base, *scene);
}

/* Returns how many ranks failed. */
static int run_ranks(int size, el_scene scene)
{
    return star_ranks(size, play, &scene);
}

static void test_operations(void **state)
{
    for (int i = 0; i < count_product_sizes(); i++) assert_int_equal(run_ranks(product_sizes[i], scene_everything), 0);
}

static enum el_status full_mailbox(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(check_full_mailbox(comm));
    return el_bootstrap_barrier(bootstrap);
}

/* What it had sent arrives; what it had not is not waited for. */
static enum el_status sender_dies(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(el_comm_open_mailboxes(comm, NULL, 100));
    if (bootstrap->rank == 1) {
        EL_TRY(mail_send(comm, 0, 0, 7, 50));
        raise(SIGKILL);
    }
    EL_TRY(mail_take(comm, 1, 0, 7, 50));
    if (mail_take(comm, 1, 0, 8, 50) != EL_ERR_PEER || !strstr(el_error_message(), "is gone"))
        return el_fail(EL_ERR_INTERNAL, "not named: %s", el_error_message());
    return EL_OK;
}

/* Memory outlives its communicator, and is the ranks' own: what one leaves there the next finds. */
static enum el_status memory_outlives(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    struct el_comm *part;
    struct el_buffer *buffer;
    float value = 3;
    EL_TRY(el_comm_split(comm, 0, 0, &part));
    EL_TRY(el_comm_alloc(part, EL_TAG_BUCKET, 1 << 22, "bucket", &buffer));
    el_comm_close(part);
    EL_TRY(el_device_write(el_view_of(buffer, 4000), &value, sizeof value));
    value = 0;
    EL_TRY(el_device_read(el_view_of(buffer, 4000), &value, sizeof value));
    el_device_free(buffer);
    if (value != 3) return el_fail(EL_ERR_INTERNAL, "what was written is gone");
    return el_bootstrap_barrier(bootstrap);
}

/* No room on one rank: it says why, the others who it was, and all go on. */
static enum el_status no_room_on_one(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    struct el_device *small;
    struct el_buffer *buffer;
    struct el_comm *tight;
    struct el_device_spec spec = {.backend = "cpu", .memory_limit_bytes = bootstrap->rank == 1 ? 20000 : 0};
    EL_TRY(el_device_open(&spec, &small));
    EL_TRY(el_comm_open_ranks("shm", bootstrap, small, &tight));
    enum el_status status = el_comm_alloc(tight, EL_TAG_BUCKET, 40000, "bucket", &buffer);
    if (status != (bootstrap->rank == 1 ? EL_ERR_OOM : EL_ERR_PEER))
        return el_fail(EL_ERR_INTERNAL, "status %d: %s", status, el_error_message());
    if (!strstr(el_error_message(), bootstrap->rank == 1 ? "out of memory" : "rank 1: cpu:0 is out of memory"))
        return el_fail(EL_ERR_INTERNAL, "not named: %s", el_error_message());
    EL_TRY(check_operations(tight, 200, EL_F32, 0));
    el_comm_close(tight);
    el_device_close(small);
    return check_operations(comm, 1000, EL_F32, 0);
}

static enum el_status one_is_late(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(el_comm_set_timeout(comm, bootstrap->rank == 1 ? 0 : 0.5));
    if (bootstrap->rank == 1) {
        EL_TRY(el_bootstrap_barrier(bootstrap));
        return check_operations(comm, 1000, EL_F32, 0) == EL_ERR_PEER ? EL_OK : EL_ERR_INTERNAL;
    }
    EL_TRY(scene_expect_peer_error(comm));
    if (!strstr(el_error_message(), "the all_reduce number 1 of rank") ||
        (!strstr(el_error_message(), "rank 1 did not arrive within 0.5 s") &&
         !strstr(el_error_message(), "another member failed")))
        return el_fail(EL_ERR_INTERNAL, "not named: %s", el_error_message());
    return el_bootstrap_barrier(bootstrap);
}

static enum el_status last_rank_dies(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    if (bootstrap->rank == bootstrap->size - 1) raise(SIGKILL);
    return scene_expect_peer_error(comm);
}

static enum el_status choose(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)comm;
    const char *kind = el_comm_choose(bootstrap, NULL);
    return strcmp(kind, "shm") == 0 ? EL_OK : el_fail(EL_ERR_INTERNAL, "chose %s", kind);
}

static void test_scenes(void **state)
{
    static const struct scene_row rows[] = {
        {"ranks send and receive", scene_mail, 2, RANKS_MAX, 0},
        {"a mailbox is full", full_mailbox, 2, 2, 0},
        {"a sender dies", sender_dies, 2, 2, 1},
        {"groups split", scene_splits, 1, RANKS_MAX, 0},
        {"random sequences over random groups", scene_sequences, RANKS_MAX, RANKS_MAX, 0},
        {"memory outlives its communicator", memory_outlives, 1, RANKS_MAX, 0},
        {"no room on one rank", no_room_on_one, 3, 3, 0},
        {"a late rank fails all", one_is_late, 2, 3, 0},
        {"a dead rank fails the others", last_rank_dies, 2, RANKS_MAX, 1},
        {"an abort fails all", scene_last_rank_aborts, 2, RANKS_MAX, 0},
        {"different operations are noticed", scene_ranks_differ, 2, 3, 0},
        {"one host shares memory", choose, 3, 3, 0},
    };
    assert_int_equal(scene_play_rows(rows, sizeof rows / sizeof *rows, run_ranks), 0);
}

/* ---- ranks that are held ---- */

/* As by strace: rank 1 for a moment, which does not count as stopped, while one who has waited too long says it. */
static int be_traced(struct star *star, void *context)
{
    struct el_presence *presence;
    char text[64], *texts[2];
    int state;
    (void)context;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    snprintf(text, sizeof text, "%d", (int)getpid());
    if (el_presence_open(&star->base, &presence) != EL_OK) return 1;
    bool right = star->base.ops->gather(&star->base, text, texts) == EL_OK;
    if (right && star->base.rank == 0) {
        pid_t other = atoi(texts[1]);
        if (ptrace(PTRACE_SEIZE, other, NULL, NULL) == 0) {
            ptrace(PTRACE_INTERRUPT, other, NULL, NULL);
            waitpid(other, &state, __WALL);
            right = !el_presence_is_stopped(presence, 1) && el_presence_find_stopped(presence, text, sizeof text);
            ptrace(PTRACE_DETACH, other, NULL, NULL);
        }
        free(texts[0]);
        free(texts[1]);
    }
    el_bootstrap_barrier(&star->base);
    el_presence_close(presence);
    return right ? 0 : 1;
}

static void test_a_traced_rank_is_not_stopped(void **state)
{
    assert_int_equal(star_ranks(2, be_traced, NULL), 0);
}

int main(void)
{
    product_announce();
    return RUN(NULL, NULL, test_a_traced_rank_is_not_stopped, test_operations, test_scenes);
}
