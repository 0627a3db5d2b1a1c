/* Events of a job into falls and costs. */
#include "bench/recover/recover.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "runtime/base/files.h"

enum { LINE_BYTES = 128, EVENTS_BYTES_MAX = 1 << 30 };

enum el_status el_recovery_events(const char *path, json_t **events_p)
{
    FILE *file;
    char line[LINE_BYTES], event[16];
    double first = NAN, at, unix_s;
    EL_TRY(el_file_stream("", path, EVENTS_BYTES_MAX, &file));
    json_t *events = json_array();
    for (int64_t n = 1, step; fgets(line, sizeof line, file); n++) {
        if (n == 1 && !strcmp(line, "event,step,unix_s,monotonic_s\n")) continue;
        if (sscanf(line, "%15[a-z],%" SCNd64 ",%lf,%lf", event, &step, &unix_s, &at) != 4) {
            fclose(file);
            json_decref(events);
            return el_fail(EL_ERR_INVALID, "%s:%" PRId64 ": not event,step,unix_s,monotonic_s", el_path_tail(path), n);
        }
        if (isnan(first)) first = at;
        json_array_append_new(
            events, el_json_of(EL_KEY("event", (const char *)event), EL_KEY("step", step), EL_KEY("s", at - first)));
    }
    fclose(file);
    *events_p = events;
    return EL_OK;
}

/* From place `i` on, with at least `least` steps. */
static const json_t *next(const json_t *events, size_t *i, const char *name, int64_t least)
{
    for (; *i < json_array_size(events); ++*i) {
        const json_t *event = json_array_get(events, *i);
        if (el_json_is(event, "event", name) && el_json_whole(event, "step") >= least) return event;
    }
    return NULL;
}

static double between(const json_t *from, const json_t *to)
{
    return el_json_number(to, "s") - el_json_number(from, "s");
}

json_t *el_recovery_falls(const json_t *events)
{
    json_t *falls = json_array();
    EL_EACH(fall, events) {
        const bool killed = el_json_is(fall, "event", "kill");
        if (!killed && !el_json_is(fall, "event", "stop")) continue;
        size_t at = fall_at.i;
        const int64_t step = el_json_whole(fall, "step");
        const json_t *end = next(events, &at, "end", 0), *start = next(events, &at, "start", 0),
                     *first = next(events, &at, "step", 0), *caught = next(events, &at, "step", step);
        json_array_append_new(
            falls,
            el_json_of(EL_KEY("kind", killed ? "kill" : "stop"), EL_KEY("step", step),
                       EL_KEY("s", el_json_number(fall, "s")),
                       EL_KEY("resumed", first ? json_integer(el_json_whole(first, "step")) : json_null()),
                       EL_KEY("lost_steps", first ? json_integer(step - el_json_whole(first, "step")) : json_null()),
                       EL_KEY("detect_s", between(fall, end)), EL_KEY("restart_s", between(end, start)),
                       EL_KEY("load_s", between(start, first)), EL_KEY("catch_up_s", between(first, caught))));
    }
    return falls;
}

/* After its checkpoint. */
static const json_t *begin_of(const json_t *events, int64_t step)
{
    size_t at = 0;
    const json_t *event = next(events, &at, "step", step);
    return event && el_json_whole(event, "step") == step ? event : NULL;
}

void el_recovery_costs(const json_t *events, int64_t every, json_t *costs)
{
    const int64_t half = every - every / 2;
    if (every < 2) return;
    for (int64_t step = every;; step += every) {
        const json_t *before = begin_of(events, step - 1), *middle = begin_of(events, step - 1 + half),
                     *end = begin_of(events, step - 1 + every);
        if (!before || !middle || !end) return;
        const double usual_s = between(middle, end) / (double)(every - half);
        json_array_append_new(
            costs, json_real(100 * (between(before, middle) - (double)half * usual_s) / between(before, end)));
    }
}

double el_recovery_goodput(const json_t *events, double step_s)
{
    const json_t *first = NULL, *last = NULL, *end = NULL;
    EL_EACH(event, events) {
        if (el_json_is(event, "event", "step") && !first) first = event;
        if (el_json_is(event, "event", "step")) last = event;
        if (el_json_is(event, "event", "end")) end = event;
    }
    if (!first || !end || between(last, end) < 0) return NAN;
    return (el_json_number(last, "step") + 1 - el_json_number(first, "step")) * step_s / between(first, end);
}
