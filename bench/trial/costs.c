/* Records as costs: those of `evenload comm` are of messages; see costs.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/foreign/foreign.h"
#include "bench/options/options.h"
#include "bench/stats/stats.h"
#include "bench/trial/costs.h"
#include "runtime/comm/rounds.h"

/* Records of plain training as costs of ops: how long each kernel, copy and host call took, with how many bytes. */

enum { RUN_SCHEMA = 2 }; /* bench/record/record.h */

static bool phase_of(const char *name, enum el_phase *phase_p)
{
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        if (strcmp(name, el_phase_name((enum el_phase)p)) != 0) continue;
        *phase_p = (enum el_phase)p;
        return true;
    }
    return false;
}

static struct el_cost_op *costs_ops_row_of(struct el_costs *costs, const char *label, enum el_phase phase, bool beside)
{
    struct el_cost_op *op = costs->ops;
    for (; op < costs->ops + costs->n_ops; op++)
        if (op->phase == phase && op->beside == beside && !strcmp(op->label, label)) return op;
    if (costs->n_ops == EL_COST_OPS_MAX || strlen(label) >= sizeof op->label) return NULL;
    snprintf(op->label, sizeof op->label, "%s", label);
    op->phase = phase;
    op->beside = beside;
    costs->n_ops++;
    return op;
}

/* Ops of one name (a layer's weight and bias) are one point, of their mean size. Times are means: those of all ops add
 * up to the mean step, which medians do not. Of one size the first record stands. */
static void add_op(struct el_costs *costs, const json_t *op, bool beside)
{
    double count = el_json_number(op, "count"), ms = el_json_number(op, "ms"), bytes = el_json_number(op, "bytes");
    enum el_phase phase;
    if (!(count > 0 && ms >= 0 && bytes >= 0) || !phase_of(el_json_text(op, "phase", ""), &phase)) return;
    struct el_cost_op *row = costs_ops_row_of(costs, el_json_text(op, "op", ""), phase, beside);
    for (int i = 0; row && i < row->n; i++)
        if (row->points[i].bytes == bytes / count) return;
    if (row)
        row->n = el_costs_add_point(row->points, row->n, EL_COST_OP_POINTS_MAX,
                                    (struct el_cost_point){bytes / count, ms * 1e6 / count});
}

static enum el_status check(const char *dir, const json_t *trial, const struct el_train_config *train)
{
    char optimizer[EL_CHOICE_BYTES], precision[EL_CHOICE_BYTES];
    struct el_graph *graph;
    el_option_choice("optimizer", (int)train->optimizer, optimizer);
    el_option_choice("precision", (int)train->model.precision, precision);
    const char *wanted = train->dtype == EL_F64 ? "f64" : precision;
    const char *measured = el_json_text(trial, "config.precision", el_json_text(trial, "dtype", "f32"));
    if (!strcmp(measured, "tf32")) measured = "f32"; /* a card's way to compute it */
    if (strcmp(measured, wanted))
        return el_fail(EL_ERR_INVALID, "--costs %s: was measured with --precision %.20s, not %s", dir, measured,
                       wanted);
    EL_TRY(el_model_build(&train->model, &graph));
    double bytes = (double)el_graph_param_count(graph) * (double)el_dtype_bytes(el_config_stored(train));
    el_graph_destroy(graph);
    const char *frozen = el_json_text(trial, "config.freeze", "");
    if (strcmp(frozen, train->model.freeze))
        return el_fail(EL_ERR_INVALID,
                       "--costs %s: was measured with '%.60s' frozen, not '%.60s': --freeze must be the same", dir,
                       frozen, train->model.freeze);
    if (el_json_is(trial, "model", train->model.name) && el_json_is(trial, "dtype", el_dtype_name(train->dtype)) &&
        el_json_is(trial, "optimizer", optimizer) && el_json_number(trial, "param_bytes") == bytes)
        return EL_OK;
    return el_fail(
        EL_ERR_INVALID,
        "--costs %s: was measured with %s, %s, %s and %.0f bytes of parameters, not with %s, %s, %s and %.0f", dir,
        el_json_text(trial, "model", "?"), el_json_text(trial, "dtype", "?"), el_json_text(trial, "optimizer", "?"),
        el_json_number(trial, "param_bytes"), train->model.name, el_dtype_name(train->dtype), optimizer, bytes);
}

/* Whether it is one of plain training that was finished, on a device that works. */
static bool is_plain(const json_t *trial)
{
    return el_json_is(trial, "mode", el_mode_plain()->name) && el_json_is(trial, "status", "ok") &&
           !json_is_true(json_object_get(trial, "simulated"));
}

/* How many devices worked beside it. All records that say so are of as many: between are no times. */
static enum el_status note_beside(const char *dir, const json_t *trial, struct el_costs *costs, bool *beside_p)
{
    double n = el_json_number(trial, "config.beside"); /* not in older records */
    *beside_p = n >= 1 && n < EL_MEMBERS_MAX;
    if (!*beside_p) return EL_OK;
    if (costs->n_beside && costs->n_beside != (int)n)
        return el_fail(EL_ERR_INVALID, "--costs %s: was measured with --beside %.0f, another record with --beside %d",
                       dir, n, costs->n_beside);
    costs->n_beside = (int)n;
    return EL_OK;
}

/* The mean over records; in older ones there is none. */
static void add_pace(const json_t *trial, struct el_costs *costs)
{
    const json_t *ratios = json_object_get(trial, "beside_step_ratio");
    size_t n = json_array_size(ratios) < EL_COST_DEVICES_MAX - 1 ? json_array_size(ratios) : EL_COST_DEVICES_MAX - 1;
    if (n > 0) costs->n_paced++;
    for (size_t k = 0; k < n; k++) {
        double ratio = json_number_value(json_array_get(ratios, k)), *mean = &costs->pace_ratio[k + 1];
        if (ratio > 0) *mean += (ratio - *mean) / costs->n_paced;
    }
}

/* The ops of one document of a launch, or of the trial: `members` of the one, `per_device` of the other. */
static void add_ops(const json_t *document, const char *path, bool beside, struct el_costs *costs)
{
    if (beside) add_pace(document, costs);
    EL_EACH(op, el_json_at(document, path)) add_op(costs, op, beside);
}

/* The documents of its finished launches. To be released. */
static json_t *launches_of(const char *dir, const json_t *trial)
{
    json_t *launches = json_array();
    EL_EACH(row, json_object_get(trial, "repeats")) {
        char path[2 * EL_PATH_BYTES];
        int64_t number = el_json_whole(row, "repeat");
        if (number < 0 || !el_json_is(row, "status", "ok")) continue;
        snprintf(path, sizeof path, "%s/repeats/%.40s-%lld.json", dir, el_json_text(trial, "id", "?"),
                 (long long)number);
        json_t *launch;
        if (el_read_json(path, &launch) != EL_OK) continue;
        if (json_array_size(el_json_at(launch, "members.0.ops")) > 0) json_array_append(launches, launch);
        json_decref(launch);
    }
    return launches;
}

static uint64_t cost_draw(int draw, const char *what, uint64_t number);

/* Of each draw another launch; where none was kept, what the record comes to. */
static void draw_launches(const char *dir, const json_t *trial, bool beside, struct el_cost_set *set)
{
    json_t *launches = set->n_draws > 0 ? launches_of(dir, trial) : NULL;
    size_t n = json_array_size(launches);
    for (int d = 1; d <= set->n_draws; d++) {
        uint64_t number = cost_draw(d, dir, (uint64_t)json_array_size(set->records));
        add_ops(n ? json_array_get(launches, number % n) : trial, n ? "members.0.ops" : "per_device.0.ops", beside,
                &set->costs[d]);
    }
    if (set->n_draws > 0 && (set->n_launches == 0 || (int)n < set->n_launches)) set->n_launches = n > 1 ? (int)n : 1;
    json_decref(launches);
}

static void note_run(const char *dir, const json_t *trial, struct el_cost_set *set)
{
    const char *verdict = el_json_text(trial, "verdict", NULL);
    bool valid = !verdict || !strcmp(verdict, "valid");
    size_t n = json_array_size(json_object_get(trial, "repeats"));
    json_array_append_new(set->records,
                          json_pack("{s:o, s:s, s:o, s:o, s:n, s:n, s:o, s:I}", "dir", el_json_string(dir), "kind",
                                    "run", "verdict", el_json_string(valid ? NULL : verdict), "reason",
                                    el_json_string(valid ? NULL : el_json_text(trial, "warnings.0", NULL)), "ranks",
                                    "others_pct", "beside", el_json_count(el_json_whole(trial, "config.beside")),
                                    "launches", (json_int_t)n));
}

static enum el_status add_trials(const char *dir, const json_t *run, const struct el_train_config *train,
                                 struct el_cost_set *set)
{
    int before = set->costs[0].n_ops, n = 0;
    bool beside = false;
    EL_EACH(trial, json_object_get(run, "trials")) {
        if (!is_plain(trial)) continue;
        if (train) EL_TRY(check(dir, trial, train));
        for (int d = 0; d <= set->n_draws; d++) EL_TRY(note_beside(dir, trial, &set->costs[d], &beside));
        n++;
        add_ops(trial, "per_device.0.ops", beside, &set->costs[0]);
        draw_launches(dir, trial, beside, set);
        note_run(dir, trial, set);
    }
    if (n > 0 && set->costs[0].n_ops > 0) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--costs %s: %s", dir,
                   n == 0 ? "has no finished trial of 'run --mode single'"
                   : before == set->costs[0].n_ops
                       ? "has no bytes of ops: it is of an older version, or was not recorded"
                       : "has no figures");
}

/* Those of one run; EL_ERR_ABSENT, without a message, where the folder has none. */
static enum el_status costs_add_run(const char *dir, const struct el_train_config *train, struct el_cost_set *set)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run = NULL;
    snprintf(path, sizeof path, "%s/results.json", dir);
    if (access(path, F_OK) != 0) return EL_ERR_ABSENT; /* no message: it may be a record of `evenload comm` */
    enum el_status status = EL_OK;
    if (el_read_json(path, &run) != EL_OK || el_json_whole(run, "schema") != RUN_SCHEMA)
        status = el_fail(EL_ERR_INVALID, "--costs %s: its results.json is no record that can be read", dir);
    if (status == EL_OK) status = add_trials(dir, run, train, set);
    json_decref(run);
    return status;
}

enum { CALLS_MAX = 256 };

/* nccl-tests' name of an operation into the verb that it measures; EL_COMM_VERB_COUNT: none. */
static enum el_comm_verb verb_of(const char *operation)
{
    int verb = 0;
    if (!strcmp(operation, "alltoall")) return EL_COMM_ALL_TO_ALL;
    if (!strcmp(operation, "sendrecv")) return EL_COMM_SEND;
    while (verb < EL_COMM_VERB_COUNT && strcmp(operation, el_comm_verb_row((enum el_comm_verb)verb)->name)) verb++;
    return (enum el_comm_verb)verb;
}

static enum el_comm_algorithm algorithm_of(const char *name)
{
    int algorithm = EL_COMM_ALGORITHM_COUNT - 1;
    while (algorithm > EL_COMM_AUTO && strcmp(name, el_comm_algorithm_name((enum el_comm_algorithm)algorithm)))
        algorithm--;
    return (enum el_comm_algorithm)algorithm;
}

static struct el_cost_row *row_of(struct el_costs *costs, const char *verb, const char *algorithm, int ranks)
{
    struct el_cost_row *row = costs->rows;
    for (; row < costs->rows + costs->n; row++)
        if (!strcmp(row->verb, verb) && !strcmp(row->algorithm, algorithm) && row->ranks == ranks) return row;
    if (costs->n == EL_COST_ROWS_MAX) return NULL;
    snprintf(row->verb, sizeof row->verb, "%s", verb);
    snprintf(row->algorithm, sizeof row->algorithm, "%s", algorithm);
    row->ranks = ranks;
    costs->n++;
    return row;
}

/* Several calls may have one largest message (chains of equal segments): the last stands. */
static void add_point(struct el_cost_row *row, double bytes, double ns)
{
    row->n = el_costs_add_point(row->points, row->n, EL_COST_POINTS_MAX, (struct el_cost_point){bytes, ns});
}

/* ---- launches that are drawn ---- */

/* A number that belongs to a draw, a record and a place in it. */
static uint64_t cost_draw(int draw, const char *what, uint64_t number)
{
    uint64_t words[] = {(uint64_t)draw, number};
    return el_hash(el_hash(EL_HASH_BEGIN, words, sizeof words), what, strlen(what)) >> 16;
}

/* The slowest rank's time of each call; returns how many there are, at most `room`. */
static size_t calls_of(const json_t *place, double *us, size_t room)
{
    const json_t *ranks = json_object_get(place, "samples_us");
    size_t n = json_array_size(json_array_get(ranks, 0));
    if (n > room) n = room;
    for (size_t i = 0; i < n; i++) {
        us[i] = 0;
        EL_EACH(samples, ranks) us[i] = fmax(us[i], json_number_value(json_array_get(samples, i)));
    }
    return n;
}

/* The median of calls drawn with replacement over that of all calls: how far another measurement's may be off. */
static double drawn_ratio(const json_t *place, int draw, const char *what, double bytes)
{
    double all[CALLS_MAX], drawn[CALLS_MAX];
    size_t n = draw > 0 ? calls_of(place, all, CALLS_MAX) : 0;
    for (size_t i = 0; i < n; i++) drawn[i] = all[cost_draw(draw, what, (uint64_t)bytes + i) % n];
    double middle = el_stats_median(all, n), ratio = el_stats_median(drawn, n) / middle;
    return n > 1 && middle > 0 && ratio > 0 ? ratio : 1;
}

/* ---- a record of the wire ---- */

/* What is being read: into one of the set's costs. */
struct reader {
    struct el_costs *costs;
    const char *dir;
    int draw, ranks;
};

/* In a step each buffer was touched long ago: what was measured so, if it was. */
static double step_us(const struct reader *reader, const json_t *point, const char *warm)
{
    char path[64];
    double cold = el_json_number(point, "cold.time_us");
    const json_t *place = cold > 0 ? json_object_get(point, "cold") : *warm ? json_object_get(point, warm) : point;
    snprintf(path, sizeof path, "%s%stime_us", warm, *warm ? "." : "");
    double us = cold > 0 ? cold : el_json_number(point, path);
    return us * drawn_ratio(place, reader->draw, reader->dir, el_json_number(point, "bytes"));
}

static void add(const struct reader *reader, enum el_comm_verb verb, const json_t *point)
{
    const struct el_comm_verb_row *words = el_comm_verb_row(verb);
    double count = el_json_number(point, "count"), bytes = el_json_number(point, "bytes");
    double us = step_us(reader, point, "in_place");
    double parts = words->all_data || words->all_result ? reader->ranks : 1;
    if (!(us > 0) || !(count >= 1 && count <= 1e15) || !(bytes >= count * parts && bytes <= 16 * count * parts)) return;
    struct el_comm_shape shape = {.verb = verb,
                                  .algorithm = algorithm_of(el_json_text(point, "algorithm", "auto")),
                                  .size = reader->ranks,
                                  .count = (size_t)count,
                                  .element_bytes = (size_t)(bytes / count / parts)};
    struct el_op_messages messages = el_comm_messages(&shape);
    struct el_cost_row *row = row_of(reader->costs, messages.verb, messages.algorithm, reader->ranks);
    if (row && messages.rounds > 0) add_point(row, (double)messages.largest_bytes, us * 1e3 / messages.rounds);
}

static void add_curves(const struct reader *reader, const json_t *document)
{
    EL_EACH(curve, json_object_get(document, "curves")) {
        enum el_comm_verb verb = verb_of(el_json_text(curve, "operation", ""));
        bool others = el_json_is(document, "datatype", "all") && !el_json_is(curve, "datatype", "float");
        if (el_json_is(document, "redop", "all") && json_is_true(json_object_get(curve, "reduces")))
            others |= !el_json_is(curve, "redop", "sum");
        if (verb == EL_COMM_VERB_COUNT || others) continue;
        EL_EACH(point, json_object_get(curve, "points")) add(reader, verb, point);
    }
}

/* How fast a rank's memory is copied while all others' is. */
static void add_copies(const struct reader *reader, const json_t *document)
{
    EL_EACH(point, json_object_get(document, "copy")) {
        double bytes = el_json_number(point, "bytes"), us = step_us(reader, point, "");
        if (bytes > 0 && us > 0) add_point(&reader->costs->copy, bytes, us * 1e3);
    }
}

/* Rows without points are of no use to anybody; through the others' a line is laid. */
static void finish(struct el_costs *costs)
{
    int n = 0;
    for (int i = 0; i < costs->n; i++)
        if (costs->rows[i].n > 0) costs->rows[n++] = costs->rows[i];
    costs->n = n;
    for (int i = 0; i <= n; i++) {
        struct el_cost_row *row = i < n ? &costs->rows[i] : &costs->copy;
        double bytes[EL_COST_POINTS_MAX], ns[EL_COST_POINTS_MAX];
        for (int k = 0; k < row->n; k++) bytes[k] = row->points[k].bytes, ns[k] = row->points[k].ns;
        if (!el_stats_line(bytes, ns, (size_t)row->n, &row->latency_ns, &row->ns_per_byte))
            row->latency_ns = row->ns_per_byte = 0;
        row->ns_per_byte = fmax(row->ns_per_byte, 0);
    }
}

static void note_wire(struct el_cost_set *set, const char *dir, const json_t *document)
{
    bool shared = json_is_true(json_object_get(document, "shared_cores"));
    json_array_append_new(set->records, el_json_of(EL_KEY("dir", dir), EL_KEY("kind", "comm"),
                                                   EL_KEY("verdict", shared ? "suspect" : NULL),
                                                   EL_KEY("reason", shared ? "its ranks shared cores" : NULL),
                                                   EL_KEY("ranks", el_json_count(el_json_whole(document, "ranks"))),
                                                   EL_KEY("others_pct", el_json_number(document, "others_waited_pct")),
                                                   EL_KEY("beside", json_null()), EL_KEY("launches", 1)));
}

/* A file, or a folder of files, that another tool wrote; NULL: there is no such file. */
static enum el_status read_foreign(const char *path, json_t **document_p)
{
    json_t *paths;
    if (el_input_paths(&path, 1, el_foreign_endings, &paths) != EL_OK) return EL_OK;
    enum el_status status =
        access(path, F_OK) == 0 ? el_foreign_read(paths, json_array_size(paths) == 1, document_p) : EL_OK;
    json_decref(paths);
    return status == EL_ERR_ABSENT ? EL_ERR_INVALID : status; /* ABSENT is of who looks further */
}

static enum el_status add_wire(const char *dir, struct el_cost_set *set)
{
    char path[EL_PATH_BYTES + 16];
    json_t *document = NULL;
    snprintf(path, sizeof path, "%s/comm.json", dir);
    if (el_read_json(path, &document) != EL_OK) document = NULL;
    if (!document && access(path, F_OK) != 0) EL_TRY(read_foreign(dir, &document));
    bool ours = document && !strcmp(el_json_text(document, "kind", ""), "comm");
    bool known = ours && el_json_whole(document, "schema") == EL_WIRE_SCHEMA;
    double ranks = el_json_number(document, "ranks");
    for (int d = 0; d <= set->n_draws && known && ranks >= 2 && ranks <= 1024; d++) {
        const struct reader reader = {&set->costs[d], dir, d, (int)ranks};
        add_curves(&reader, document);
        add_copies(&reader, document);
        set->costs[d].on_cores = !strncmp(el_json_text(document, "devices.0", ""), "cpu:", 4);
        finish(&set->costs[d]);
    }
    const char *why = !document              ? "has no comm.json that can be read"
                      : !ours                ? "its comm.json is no record of 'evenload comm'"
                      : !known               ? "its comm.json is of another version"
                      : ranks < 2            ? "was measured on one rank"
                      : set->costs[0].n == 0 ? "has no figures"
                                             : NULL;
    if (!why) note_wire(set, dir, document);
    json_decref(document);
    if (!why) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--costs %s: %s: give the folder of 'evenload comm' with two ranks or more", dir,
                   why);
}

/* ---- all folders ---- */

static enum el_status add_all(const char *dirs, const struct el_train_config *train, struct el_cost_set *set)
{
    char list[EL_PATH_BYTES], *rest = list;
    snprintf(list, sizeof list, "%s", dirs);
    if (!dirs[strspn(dirs, ",")]) return el_fail(EL_ERR_INVALID, "--costs %s: names no folder", dirs);
    for (const char *dir = strtok_r(list, ",", &rest); dir; dir = strtok_r(NULL, ",", &rest)) {
        enum el_status status = costs_add_run(dir, train, set);
        if (status == EL_ERR_ABSENT) status = add_wire(dir, set);
        EL_TRY(status);
    }
    return EL_OK;
}

enum el_status el_cost_set_read(const char *dirs, const struct el_train_config *train, int n_draws,
                                struct el_cost_set *set_p)
{
    struct el_cost_set set = {
        .costs = calloc((size_t)n_draws + 1, sizeof *set.costs), .n_draws = n_draws, .records = json_array()};
    enum el_status status = set.costs && set.records ? add_all(dirs, train, &set) : el_fail_errno("costs");
    if (status == EL_OK)
        *set_p = set;
    else
        el_cost_set_free(&set);
    return status;
}

void el_cost_set_free(struct el_cost_set *set)
{
    free(set->costs);
    json_decref(set->records);
    *set = (struct el_cost_set){.costs = NULL};
}

enum el_status el_costs_read(const char *dirs, const struct el_train_config *train, struct el_costs **costs_p)
{
    struct el_cost_set set;
    EL_TRY(el_cost_set_read(dirs, train, 0, &set));
    *costs_p = set.costs;
    set.costs = NULL;
    el_cost_set_free(&set);
    return EL_OK;
}
