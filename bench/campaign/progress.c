/* Progress lines and the estimate. */
#include "bench/campaign/progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "runtime/base/clock.h"

#define SAY_EVERY_NS  ((int64_t)10 * 1000000000)
#define DRAW_EVERY_NS ((int64_t)1000000000)

void el_progress_init(struct el_progress *progress, int n_launches, bool quiet)
{
    *progress = (struct el_progress){
        .n = n_launches, .quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1, .begin_ns = el_clock_ns()};
}

void el_progress_phase(struct el_progress *progress, const char *what)
{
    progress->begin_ns = el_clock_ns();
    if (progress->quiet || !progress->terminal) return;
    fprintf(stderr, "\r\033[K%s", what);
    fflush(stderr);
}

/* "about 1 min 20 s left", from the mean launch. */
static void estimate(const struct el_progress *progress, char *text, size_t bytes)
{
    text[0] = 0;
    if (progress->measured < 2) return;
    double mean_s = (double)(el_clock_ns() - progress->begin_ns) * 1e-9 / progress->measured;
    int left = (int)(mean_s * (progress->n - progress->done) + 0.5);
    if (left >= 60)
        snprintf(text, bytes, ", about %d min %d s left", left / 60, left % 60);
    else
        snprintf(text, bytes, ", about %d s left", left);
}

void el_progress_begin(struct el_progress *progress, const struct el_trial *trial, int repeat)
{
    char buckets[32] = "";
    if (trial->train.bucket_cap_bytes != EL_BUCKET_CAP_BYTES && el_mode_option_of(trial->train.mode, "bucket-mb"))
        snprintf(buckets, sizeof buckets, ", buckets of %g MiB", (double)trial->train.bucket_cap_bytes / (1 << 20));
    progress->now[0] = 0;
    el_text_append(progress->now, sizeof progress->now, "%s%s%s%s%s on %d, batch %lld%s, repeat %d", trial->train.mode,
                   trial->train.bucket_view ? " view" : "", trial->train.shares.n ? " shares" : "",
                   *trial->chosen ? " " : "", trial->chosen, trial->n_devices, (long long)trial->train.global_batch,
                   buckets, repeat + 1);
    el_progress_tick(progress, 0);
}

void el_progress_tick(void *context, double elapsed_s)
{
    struct el_progress *progress = context;
    char left[64];
    int64_t now_ns = el_clock_ns();
    bool soon = elapsed_s > 0 && now_ns - progress->said_ns < DRAW_EVERY_NS;
    if (progress->quiet || !progress->terminal || !progress->now[0] || soon) return;
    progress->said_ns = now_ns;
    estimate(progress, left, sizeof left);
    fprintf(stderr, "\r\033[K[%d/%d] %s%s", progress->done + 1, progress->n, progress->now, left);
    fflush(stderr);
}

static void say_end(struct el_progress *progress, const json_t *document)
{
    const char *status = el_json_text(document, "status", "failed");
    const char *reason = el_json_text(document, "reason", NULL);
    bool ok = !strcmp(status, "ok");
    int64_t now_ns = el_clock_ns();
    char left[64];
    if (ok && (progress->terminal || (now_ns - progress->said_ns < SAY_EVERY_NS && progress->done < progress->n)))
        return;
    progress->said_ns = now_ns;
    estimate(progress, left, sizeof left);
    el_text_line(stderr, "[%d/%d] %s: %s%s%s%s", progress->done, progress->n, progress->now, status, reason ? ": " : "",
                 reason ? reason : "", progress->done < progress->n ? left : "");
}

void el_progress_end(struct el_progress *progress, const json_t *document)
{
    if (progress->terminal && !progress->quiet) fprintf(stderr, "\r\033[K");
    if (!document) return;
    progress->done++;
    progress->measured++;
    if (!progress->quiet) say_end(progress, document);
}

void el_progress_say(struct el_progress *progress, const char *format, ...)
{
    char *text = NULL;
    va_list list;
    if (progress->quiet) return;
    if (progress->terminal) fprintf(stderr, "\r\033[K");
    va_start(list, format);
    if (vasprintf(&text, format, list) >= 0) el_text_line(stderr, "%s", text);
    va_end(list);
    free(text);
}
