/* Records of plain training as costs of ops: how long each kernel, copy and host call took, with how many bytes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/options/options.h"
#include "bench/trial/costs.h"

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

static struct el_cost_op *row_of(struct el_costs *costs, const char *label, enum el_phase phase, bool beside)
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
    struct el_cost_op *row = row_of(costs, el_json_text(op, "op", ""), phase, beside);
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
    if (strcmp(el_json_text(trial, "config.precision", "f32"), precision))
        return el_fail(EL_ERR_INVALID, "--costs %s: was measured with --precision %.20s, not %s", dir,
                       el_json_text(trial, "config.precision", "f32"), precision);
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

/* Of each draw another launch; where none was kept, what the record comes to. */
static void draw_launches(const char *dir, const json_t *trial, bool beside, struct el_cost_set *set)
{
    json_t *launches = set->n_draws > 0 ? launches_of(dir, trial) : NULL;
    size_t n = json_array_size(launches);
    for (int d = 1; d <= set->n_draws; d++) {
        uint64_t number = el_cost_draw(d, dir, (uint64_t)json_array_size(set->records));
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

enum el_status el_costs_add_run(const char *dir, const struct el_train_config *train, struct el_cost_set *set)
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
