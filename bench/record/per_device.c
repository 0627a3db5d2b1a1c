/* Each device's figures over the repeats, and what the devices come to together: the slowest member, communication,
 * imbalance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"

static json_t *member_at(const json_t *repeat, size_t position)
{
    return json_array_get(json_object_get(repeat, "members"), position);
}

/* The median over repeats of one figure of one member; NAN if no repeat has it. */
static double median_at(const json_t *ok, size_t position, const char *path)
{
    char at[128];
    double *values;
    snprintf(at, sizeof at, "members.%zu.%s", position, path);
    size_t n = el_json_numbers_at(ok, at, &values);
    double median = el_stats_median(values, n);
    free(values);
    return median;
}

static void set_medians(json_t *value, const json_t *ok, size_t position, const char *path);

/* Of the objects in an array: ops, which all repeats list in the same order. */
static void set_medians_of_each(json_t *array, const json_t *ok, size_t position, const char *path)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        char at[96];
        if (snprintf(at, sizeof at, "%s.%zu", path, i) >= (int)sizeof at) return;
        if (json_is_object(json_array_get(array, i))) set_medians(json_array_get(array, i), ok, position, at);
    }
}

/* Replaces every number under `value` by its median over repeats; integers stay whole. `path` is that of `value`. */
static void set_medians(json_t *value, const json_t *ok, size_t position, const char *path)
{
    void *next;
    const char *key;
    json_t *child;
    json_object_foreach_safe(value, next, key, child)
    {
        char at[96];
        snprintf(at, sizeof at, "%s%s%s", path, *path == '\0' ? "" : ".", key);
        if (json_is_object(child)) {
            set_medians(child, ok, position, at);
        } else if (json_is_array(child)) {
            set_medians_of_each(child, ok, position, at);
        } else if (json_is_integer(child)) {
            el_json_put(value, key, json_integer((json_int_t)llround(median_at(ok, position, at))));
        } else if (json_is_real(child) || json_is_null(child)) {
            el_json_put_real(value, key, median_at(ok, position, at));
        }
    }
}

/* The finished repeat with the median throughput, of two in the middle the slower; its place among `ok`. */
static size_t median_repeat(const json_t *ok, double global_batch)
{
    size_t n = json_array_size(ok), found = 0;
    for (size_t i = 0; i < n; i++) {
        double rate = el_repeat_samples_per_s(json_array_get(ok, i), global_batch);
        size_t slower = 0;
        for (size_t k = 0; k < n; k++) {
            double other = el_repeat_samples_per_s(json_array_get(ok, k), global_batch);
            slower += other < rate || (other == rate && k < i);
        }
        if (slower == (n - 1) / 2) found = i;
    }
    return found;
}

/* The memory timeline is one launch's, the median one's, and so is the step that is drawn: `repeat` says which. */
static void take_drawn(json_t *device, const json_t *repeat, size_t position)
{
    json_t *memory = json_object_get(device, "memory");
    json_t *timeline = json_deep_copy(el_json_at(member_at(repeat, position), "memory.timeline"));
    json_t *lane = json_deep_copy(json_object_get(member_at(repeat, position), "lane"));
    json_object_set(timeline, "repeat", json_object_get(repeat, "repeat"));
    json_object_set(lane, "repeat", json_object_get(repeat, "repeat"));
    if (json_is_object(timeline)) json_object_set(memory, "timeline", timeline);
    json_decref(timeline);
    el_json_put(device, "lane", lane ? lane : json_null());
}

/* Of the part of the step in which the device worked, which is 100 % at most. */
static json_t *busy_interval(const json_t *ok, size_t position)
{
    char at[64];
    double *values;
    snprintf(at, sizeof at, "members.%zu.utilization.busy_pct", position);
    size_t n = el_json_numbers_at(ok, at, &values);
    struct el_interval interval = el_stats_interval(values, n);
    free(values);
    return el_json_interval(interval.low, fmin(interval.high, 100));
}

/* A copy of the first repeat's member whose times and bytes are medians. Who it was (rank, pid, host) and its memory
 * stay the first repeat's, but for the timeline. */
static json_t *device_over_repeats(const json_t *ok, size_t position, size_t median)
{
    static const char *const kept[] = {"device",    "host",   "rank",  "pid",    "uuid",           "model",
                                       "simulated", "memory", "cores", "layout", "activation_sets"};
    const json_t *first = member_at(json_array_get(ok, 0), position);
    json_t *device = json_deep_copy(first);
    set_medians(device, ok, position, "");
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        json_t *value = json_object_get(first, kept[i]);
        if (value != NULL) el_json_put(device, kept[i], json_deep_copy(value));
    }
    take_drawn(device, json_array_get(ok, median), position);
    /* The first repeat's reason for null is none where another repeat had the figure. */
    json_t *utilization = json_object_get(device, "utilization");
    if (utilization) el_json_put(utilization, "busy_ci95", busy_interval(ok, position));
    if (json_is_number(json_object_get(utilization, "system_pct")))
        el_json_put(utilization, "system_reason", json_null());
    return device;
}

json_t *el_trial_per_device(const json_t *ok, double global_batch)
{
    json_t *devices = json_array();
    size_t median = median_repeat(ok, global_batch);
    size_t n = json_array_size(json_object_get(json_array_get(ok, 0), "members"));
    for (size_t i = 0; i < n; i++) json_array_append_new(devices, device_over_repeats(ok, i, median));
    return devices;
}

/* All phases but comm: a collective's span holds the wait for the peers, so its length says who was early. */
static double worked_ms(const json_t *device)
{
    double sum = 0;
    EL_EACH_KEY(key, value, json_object_get(device, "busy_ms")) {
        if (!json_is_number(value)) return NAN;
        if (strcmp(key, el_phase_name(EL_PHASE_COMM)) != 0) sum += json_number_value(value);
    }
    return sum;
}

int el_trial_slowest(const json_t *per_device)
{
    int slowest = -1;
    double most = -1;
    EL_EACH(device, per_device) {
        double worked = worked_ms(device);
        if (!(worked > most)) continue;
        most = worked;
        slowest = (int)device_at.i;
    }
    return slowest;
}

/* Bytes are those of all devices together, times those of the slowest member. */
json_t *el_trial_comm(const json_t *per_device, int slowest, const json_t *breakdown)
{
    static const char *const times[] = {"total_ms", "overlapped_ms",   "exposed_ms",
                                        "wait_ms",  "wait_exposed_ms", "transfer_ms"};
    const json_t *from = slowest < 0 ? NULL : el_json_at(json_array_get(per_device, (size_t)slowest), "comm");
    json_t *comm = json_object();
    double bytes = json_array_size(per_device) == 0 ? NAN : 0;
    EL_EACH(device, per_device) bytes += el_json_number(device, "comm.bytes");
    el_json_put(comm, "bytes", el_json_rounded(bytes));
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        el_json_put_real(comm, times[i], el_json_number(from, times[i]));
    double total = el_json_number(from, "total_ms"), overlapped = el_json_number(from, "overlapped_ms");
    el_json_put_all(comm, EL_KEY("overlap_pct", total > 0 ? 100 * overlapped / total : NAN),
                    EL_KEY("exposed_step_ms", el_json_number(breakdown, "exposed_step_ms")),
                    EL_KEY("contention_ms", el_json_number(breakdown, "contention_ms")));
    return comm;
}

static double busy_time(const json_t *device)
{
    return el_json_number(device, "utilization.busy_pct") / 100 * el_json_number(device, "step_ms");
}

static double peak(const json_t *device)
{
    return el_json_number(device, "memory.peak_bytes");
}

static double sent(const json_t *device)
{
    return el_json_number(device, "sent_bytes");
}

json_t *el_trial_imbalance(const json_t *ok)
{
    if (json_array_size(el_json_at(ok, "0.members")) < 2) return json_null();
    return el_json_of(EL_KEY("memory", el_launches_imbalance(ok, peak)),
                      EL_KEY("busy", el_launches_imbalance(ok, busy_time)),
                      EL_KEY("bytes", el_launches_imbalance(ok, sent)));
}
