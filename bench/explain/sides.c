/* Reads a side of `explain A B`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/explain/explain.h"
#include "bench/record/record.h"
#include "bench/report/report.h"

/* "dp:128", or the id if that is ambiguous. */
static void name_trial(const json_t *trials, size_t at, char *name, size_t bytes)
{
    const json_t *trial = json_array_get(trials, at);
    char mode[64], other_mode[64];
    el_table_mode(trial, mode, sizeof mode);
    snprintf(name, bytes, "%s:%.0f", mode, el_json_number(trial, "global_batch"));
    EL_EACH(other, trials) {
        el_table_mode(other, other_mode, sizeof other_mode);
        if (other_at.i != at && !strcmp(mode, other_mode) &&
            el_json_number(other, "global_batch") == el_json_number(trial, "global_batch"))
            snprintf(name, bytes, "%s", el_json_text(trial, "id", "?"));
    }
}

static bool is_chosen(const json_t *trials, size_t at, const char *choice)
{
    char mode[64], name[96];
    const json_t *trial = json_array_get(trials, at);
    el_table_mode(trial, mode, sizeof mode);
    name_trial(trials, at, name, sizeof name);
    return !*choice || !strcmp(choice, name) || !strcmp(choice, mode) || el_json_is(trial, "id", choice);
}

static enum el_status choose(const char *path, const char *choice, struct el_side *side)
{
    const json_t *trials = json_object_get(side->run, "trials");
    char names[400] = "", name[96];
    int n = 0;
    bool any = false;
    for (size_t i = 0; i < json_array_size(trials); i++) any = any || is_chosen(trials, i, choice);
    EL_EACH(trial, trials) {
        if (any && !is_chosen(trials, trial_at.i, choice)) continue;
        name_trial(trials, trial_at.i, name, sizeof name);
        el_text_append(names, sizeof names, "%s%s", *names ? ", " : "", name);
        side->trial = trial;
        n++;
    }
    if (n == 0) return el_fail(EL_ERR_INVALID, "%s has no trials", path);
    if (!any) return el_fail(EL_ERR_INVALID, "%s has no trial '%.60s': it has %s", path, choice, names);
    if (n > 1)
        return el_fail(EL_ERR_INVALID, "%s has %d trials%s%.60s: name one of them, as %s:%s (%s)", path, n,
                       *choice ? " called " : "", choice, path, name, names);
    if (!el_report_is_ok(side->trial))
        return el_fail(EL_ERR_INVALID, "%s: %s did not finish: %s", path, names,
                       el_json_text(side->trial, "reason", "no reason was given"));
    return EL_OK;
}

/* Splits "DIR:MODE:BATCH": the longest existing prefix is the path. */
static enum el_status find_record(const char *word, char path[EL_PATH_BYTES], const char **choice_p,
                                  char record[EL_PATH_BYTES])
{
    struct stat info;
    size_t length = strlen(word);
    if (length >= EL_PATH_BYTES - sizeof "/results.json")
        return el_fail(EL_ERR_INVALID, "the folder's name is too long");
    snprintf(path, EL_PATH_BYTES, "%s", word);
    while (stat(path, &info) != 0) {
        char *colon = strrchr(path, ':');
        if (!colon)
            return el_fail(EL_ERR_IO,
                           "%s: there is no such folder, and no such record; 'evenload run --out DIR' makes one", word);
        *colon = 0;
    }
    snprintf(record, EL_PATH_BYTES, "%.*s/comm.json", (int)(EL_PATH_BYTES - sizeof "/comm.json"), path);
    if (S_ISDIR(info.st_mode) && access(record, F_OK) == 0)
        return el_fail(EL_ERR_INVALID, "%s has a record of comm: 'evenload comm --from A,B' compares two", path);
    length = strlen(path);
    *choice_p = word[length] ? word + length + 1 : "";
    snprintf(record, EL_PATH_BYTES, "%.*s%s", (int)(EL_PATH_BYTES - sizeof "/results.json"), path,
             S_ISDIR(info.st_mode) ? "/results.json" : "");
    return EL_OK;
}

/* ---- its step, launch by launch ---- */

static double or_zero(double value, bool zero)
{
    return isnan(value) && zero ? 0 : value;
}

/* `alone`: no other devices. */
static struct el_parts parts_of(const json_t *member, bool alone)
{
    double idle = el_json_number(member, "idle_ms"), other = el_json_number(member, "other_ms"),
           exposed = or_zero(el_json_number(member, el_at_device_comm_exposed_ms), alone),
           loading = el_json_number(member, "loading.exposed_ms"), compute = el_json_number(member, "compute_ms"),
           bubble = fmin(or_zero(el_json_number(member, "bubble_ms"), true), idle);
    if (isnan(loading)) loading = el_json_number(member, "busy_ms.data") + el_json_number(member, "busy_ms.h2d");
    double data = isnan(other) ? loading : fmin(loading, other);
    if (isnan(compute)) compute = el_json_number(member, "step_ms") - idle - exposed - data; /* an older record */
    struct el_parts parts = {
        {[EL_PART_COMPUTE] = compute,
         [EL_PART_CONTENTION] = or_zero(
             el_json_number(member, "control.on.compute_ms") - el_json_number(member, "control.off.compute_ms"), alone),
         [EL_PART_EXPOSED] = exposed,
         [EL_PART_SKEW] = or_zero(el_json_number(member, "comm.wait_exposed_ms"), alone || exposed == 0),
         [EL_PART_BUBBLE] = bubble,
         [EL_PART_DATA] = data,
         [EL_PART_IDLE] = idle - bubble}};
    return parts;
}

static json_t *load_launch(const struct el_side *side, double number)
{
    const char *slash = strrchr(side->record, '/');
    char path[2 * EL_PATH_BYTES];
    snprintf(path, sizeof path, "%.*srepeats/%s-%.0f.json", slash ? (int)(slash + 1 - side->record) : 0, side->record,
             el_json_text(side->trial, "id", "?"), number);
    json_t *launch = NULL;
    return el_read_json(path, &launch) == EL_OK ? launch : NULL;
}

static void read_parts(struct el_side *side)
{
    int64_t slowest = el_json_whole(side->trial, "slowest_member");
    bool alone = el_json_number(side->trial, "devices") == 1, known = slowest >= 0;
    size_t at = slowest < 0 ? SIZE_MAX : (size_t)slowest;
    side->mean = parts_of(json_array_get(json_object_get(side->trial, "per_device"), at), alone);
    for (size_t i = 0; i < side->n && known; i++) {
        json_t *launch = load_launch(side, side->repeat[i]);
        const json_t *member = json_array_get(json_object_get(launch, "members"), at);
        known = member != NULL;
        side->launches[i] = parts_of(member, alone);
        json_decref(launch);
    }
    side->knows_launches = known;
    for (int p = 0; p < EL_PARTS && side->knows_launches; p++) {
        double sum = 0;
        for (size_t i = 0; i < side->n; i++) sum += side->launches[i].ms[p];
        side->mean.ms[p] = sum / (double)side->n;
    }
}

/* The one that waits least: the others wait for it. */
static const json_t *last_rank(const json_t *ranks)
{
    const json_t *last = json_array_get(ranks, 0);
    EL_EACH(rank, ranks)
        if (el_json_number(rank, "parts_ms.wait") < el_json_number(last, "parts_ms.wait")) last = rank;
    return last;
}

/* Its devices are called by rank; two commands have no model to be compared by. */
static void name_ranks(const char *last, json_t *trial)
{
    char name[32];
    EL_EACH(device, json_object_get(trial, "per_device")) {
        if (isnan(el_json_number(device, "rank"))) continue;
        snprintf(name, sizeof name, "rank %.0f", el_json_number(device, "rank"));
        el_json_put_text(device, "device", name);
        if (!strcmp(name, last)) el_json_put(trial, "slowest_member", json_integer((json_int_t)device_at.i));
    }
    json_object_del(trial, "model");
    json_object_del(trial, "procs");
}

/* A watched training is one launch. */
static void read_watched(struct el_side *side)
{
    static const char *const names[EL_PARTS] = {
        [EL_PART_COMPUTE] = "compute", [EL_PART_SKEW] = "wait",         [EL_PART_DATA] = "data",
        [EL_PART_FORWARD] = "forward", [EL_PART_BACKWARD] = "backward", [EL_PART_OPTIMIZER] = "optimizer",
        [EL_PART_PAUSE] = "pause",
    };
    const json_t *training = el_json_at(side->run, "watch.training");
    const json_t *rank = last_rank(el_json_at(training, "late.ranks")), *parts = json_object_get(rank, "parts_ms");
    struct el_parts of;
    name_ranks(el_json_text(rank, "rank", ""), json_array_get(json_object_get(side->run, "trials"), 0));
    for (int p = 0; p < EL_PARTS; p++) of.ms[p] = names[p] ? el_json_number(parts, names[p]) : NAN;
    of.ms[EL_PART_EXPOSED] = of.ms[EL_PART_SKEW] + el_json_number(parts, "transfer");
    if (!parts) of.ms[EL_PART_DATA] = el_json_highest(json_object_get(training, "ranks"), "data_ms");
    side->n = 1;
    side->step_ms[0] = el_json_number(training, "step_ms.mean");
    side->repeat[0] = 0;
    side->mean = side->launches[0] = of;
    side->knows_launches = true;
}

static enum el_status read_launches(struct el_side *side)
{
    if (json_is_object(el_json_at(side->run, "watch.training"))) {
        read_watched(side);
        return EL_OK;
    }
    EL_EACH(repeat, json_object_get(side->trial, "repeats")) {
        double ms = el_repeat_step_ms(repeat, EL_STEP_MEAN);
        if (!el_report_is_ok(repeat) || !(ms > 0) || side->n == EL_REPEATS_MAX) continue;
        struct el_parts *parts = &side->launches[side->n];
        for (int p = 0; p < EL_PARTS; p++) parts->ms[p] = NAN;
        side->step_ms[side->n] = ms;
        side->repeat[side->n++] = el_json_number(repeat, "repeat");
    }
    if (side->n == 0)
        return el_fail(EL_ERR_INVALID, "%s: the trial has no steps%s", side->record,
                       el_json_is(side->trial, "mode", "watch") ? " of PyTorch" : "");
    read_parts(side);
    return EL_OK;
}

enum el_status el_side_open(const char *word, struct el_side *side)
{
    char path[EL_PATH_BYTES];
    const char *choice = "";
    *side = (struct el_side){.run = NULL};
    EL_TRY(find_record(word, path, &choice, side->record));
    EL_TRY(el_record_read(side->record, &side->run));
    enum el_status status = choose(path, choice, side);
    if (status == EL_OK) status = read_launches(side);
    if (status != EL_OK) el_side_close(side);
    return status;
}

void el_side_close(struct el_side *side)
{
    json_decref(side->run);
    side->run = NULL;
}

/* ---- what is not alike ---- */

enum { VALUE_BYTES = 48 };

static void show(const json_t *value, char text[VALUE_BYTES])
{
    char *dumped = json_is_string(value) ? strdup(json_string_value(value))
                                         : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    snprintf(text, VALUE_BYTES, "%s", dumped && *dumped ? dumped : json_is_string(value) ? "none" : "?");
    free(dumped);
}

static bool is_whole_zero(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) == 0;
}

/* False if one record lacks the field. */
static bool unlike(const json_t *a, const json_t *b)
{
    if (!a || !b || json_is_null(a) || json_is_null(b)) return false;
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) != json_number_value(b);
    return !json_equal(a, b);
}

/* Other models' sizes are 0 or missing. */
static void append_sizes(const json_t *a, const json_t *b, char *text, size_t bytes)
{
    EL_EACH_KEY(key, value, json_object_get(a, "model_sizes")) {
        const json_t *other = json_object_get(json_object_get(b, "model_sizes"), key);
        char one[VALUE_BYTES], two[VALUE_BYTES];
        if (!unlike(value, other) || is_whole_zero(value) || is_whole_zero(other)) continue;
        show(value, one);
        show(other, two);
        el_text_append(text, bytes, "%s%s %s and %s", *text ? ", " : "", key, one, two);
    }
}

enum el_status el_sides_check(const struct el_side *a, const struct el_side *b)
{
    static const char *const same[][2] = {
        {"model", "model"}, {"config.data", "data"}, {"global_batch", "global batch"}};
    char text[512] = "";
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const json_t *x = el_json_at(a->trial, same[i][0]), *y = el_json_at(b->trial, same[i][0]);
        char one[VALUE_BYTES], two[VALUE_BYTES];
        if (!unlike(x, y)) continue;
        show(x, one);
        show(y, two);
        el_text_append(text, sizeof text, "%s%s %s and %s", *text ? ", " : "", same[i][1], one, two);
    }
    if (el_json_is(a->trial, "mode", "watch") != el_json_is(b->trial, "mode", "watch"))
        el_text_append(text, sizeof text, "%s%s was watched from outside", *text ? ", " : "",
                       el_json_is(a->trial, "mode", "watch") ? a->record : b->record);
    append_sizes(json_object_get(a->trial, "config"), json_object_get(b->trial, "config"), text, sizeof text);
    if (!*text) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "explain: these two records are not of the same work, so their steps cannot be compared: %s", text);
}

static void add(json_t *list, const char *field, const json_t *a, const json_t *b)
{
    char one[VALUE_BYTES], two[VALUE_BYTES];
    if (!unlike(a, b)) return;
    show(a, one);
    show(b, two);
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o}", "field", field, "a", el_json_string(one), "b", el_json_string(two)));
}

static void add_fields(json_t *list, const json_t *a, const json_t *b, const char *const *fields)
{
    for (; *fields; fields++) add(list, *fields, json_object_get(a, *fields), json_object_get(b, *fields));
}

json_t *el_sides_differences(const struct el_side *a, const struct el_side *b)
{
    static const char *const of_trial[] = {"mode", "devices",      "procs",     "dtype", "optimizer",
                                           "seed", "communicator", "simulated", NULL};
    static const char *const of_machine[] = {"hostname", "cpu_model",      "cores_online", "affinity",   "governor",
                                             "commit",   "compiler_flags", "cpu_library",  "gpu_driver", NULL};
    /* how long was measured, and what was reported already */
    static const char *const left_out[] = {"model_sizes", "data",        "steps",          "warmup",       "min_time_s",
                                           "timeout_s",   "batch_given", "comm_timeout_s", "control_pairs"};
    json_t *list = json_array();
    add_fields(list, a->trial, b->trial, of_trial);
    EL_EACH_KEY(key, value, json_object_get(a->trial, "config")) {
        bool out = false;
        for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) out = out || !strcmp(key, left_out[i]);
        if (!out) add(list, key, value, json_object_get(json_object_get(b->trial, "config"), key));
    }
    add_fields(list, json_object_get(a->run, "environment"), json_object_get(b->run, "environment"), of_machine);
    return list;
}
