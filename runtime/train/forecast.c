/* Predicts a step by issuing the mode's schedule on simulated devices, with the real kernels' scratch sizes; equivalent
 * workers once. */
#include "runtime/train/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/device/joint.h"
#include "runtime/models/experts.h"
#include "runtime/state/units.h"
#include "runtime/train/session.h"
#include "runtime/train/worlds.h"

enum { STEPS = 4, WARMUP = 2 };  /* as in `run --dry-run` */
enum { MOST_ONE_BY_ONE = 1024 }; /* mesh workers, each with a program of some MiB */

struct forecast {
    const struct el_train_config *config;
    const struct el_mode_ops *mode;
    struct el_layout layout;
    bool all;
    int64_t limit_bytes;
    const struct el_inject *injects;
    struct el_parts parts;
    struct el_machine machine;
    struct el_device **devices;
    struct el_worlds worlds;
    struct el_worker *workers;    /* [layout.n_workers]: the issued ones, one after another */
    struct el_program **programs; /* [layout.n_workers]: each one's repeated step */
    int n;
    uint64_t *ranges; /* [layout.n[EL_AXIS_SHARD]]: equal for equally divided state; NULL: none is */
    struct el_memory_forecast *forecasts;
};

/* Whether neighbours along all axes but data have the same hosts in each copy of the model and in each stage. */
static bool fits_hosts(const struct el_layout *layout, const struct el_machine *machine)
{
    const int host = machine->devices_per_host;
    const int blocks[] = {layout->n[EL_AXIS_TENSOR], el_layout_per_copy(layout), el_layout_stride(layout)};
    for (size_t i = 0; host > 0 && i < sizeof blocks / sizeof blocks[0]; i++)
        if (host % blocks[i] != 0 && blocks[i] % host != 0) return false;
    return true;
}

static enum el_status add_range(const struct forecast *f, const struct el_graph *graph, int n_pieces)
{
    struct el_units *units;
    EL_TRY(el_units_open(graph, (enum el_unit_kind)f->config->unit, n_pieces, &units));
    for (int piece = 0; piece < n_pieces; piece++) {
        int64_t all = 0; /* with --optimizer foreach=on one op has all arrays */
        for (int p = 0; p < graph->n_params; p++) {
            int64_t range[3] = {units->of[p]};
            el_units_own(units, p, el_param_count(graph, p), piece, &range[1], &range[2]);
            all += range[2];
            if (range[2] == 0 || f->config->foreach == EL_FOREACH_ON) continue;
            range[1] = 0; /* the offset does not matter */
            f->ranges[piece] = el_hash(f->ranges[piece], range, sizeof range);
        }
        f->ranges[piece] = el_hash(f->ranges[piece], &all, sizeof all);
    }
    el_units_close(units);
    return EL_OK;
}

/* Sizes of the arrays in each part of sharded state, by unit and stage: the optimizer's kernels and temporaries depend
 * on their number and sizes. */
static enum el_status note_ranges(struct forecast *f)
{
    const int n = f->layout.n[EL_AXIS_SHARD];
    if (!f->layout.split) return EL_OK;
    f->ranges = calloc((size_t)n, sizeof *f->ranges);
    if (!f->ranges) return el_fail_errno("%d parts of the state", n);
    for (int piece = 0; piece < n; piece++) f->ranges[piece] = EL_HASH_BEGIN;
    for (int stage = 0; stage < f->parts.n_stages; stage++) {
        const struct el_spot spot = {.at[EL_AXIS_STAGE] = stage};
        EL_TRY(add_range(f, el_parts_of(&f->parts, &spot), n));
    }
    return EL_OK;
}

/* In a mesh an injected delay reaches others through the device's groups, so that their members must be issued too. If
 * all are one group, one of each kind is enough. Ranks to which tokens are sent on purpose are not alike; of many
 * devices the first rank's experts stand for all. */
static enum el_status check_injects(struct forecast *f)
{
    const bool one_group =
        el_layout_is_whole(&f->layout, EL_AXIS_DATA) || el_layout_is_whole(&f->layout, EL_AXIS_SHARD);
    const bool sent = !el_routing_is_learned(&f->config->model) && f->layout.n[EL_AXIS_EXPERT] > 1;
    if (sent && f->layout.n_devices <= MOST_ONE_BY_ONE) f->all = true;
    if (!f->injects || one_group) return EL_OK;
    f->all = true;
    if (f->layout.n_devices <= MOST_ONE_BY_ONE) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "--inject: of a mesh each device is then simulated by itself: give at most %d devices, or a mode "
                   "without --mesh",
                   MOST_ONE_BY_ONE);
}

/* Whether two workers are equivalent: equal samples, equal injection, and they differ along data or tensor alone, or by
 * equal parts of the state. */
static bool alike(const struct forecast *f, int a, int b)
{
    const struct el_layout *layout = &f->layout;
    int first_a, first_b;
    const int n = el_layout_of_worker(layout, a, &first_a);
    el_layout_of_worker(layout, b, &first_b);
    for (int m = 0; m < n; m++) {
        const struct el_spot x = el_layout_spot(layout, first_a + m), y = el_layout_spot(layout, first_b + m);
        const int piece = x.at[EL_AXIS_SHARD], other = y.at[EL_AXIS_SHARD];
        if (x.samples != y.samples || x.owns != y.owns || x.at[EL_AXIS_STAGE] != y.at[EL_AXIS_STAGE]) return false;
        if (piece != other && (!f->ranges || f->ranges[piece] != f->ranges[other])) return false;
        if (f->injects && memcmp(&f->injects[first_a + m], &f->injects[first_b + m], sizeof *f->injects) != 0)
            return false;
    }
    return layout->shares.n == 0;
}

static uint64_t sent_bytes(const struct el_program *program, int position)
{
    const struct el_op_info *ops = el_program_ops(program);
    uint64_t sum = 0;
    for (int i = 0; i < el_program_op_count(program); i++)
        if (ops[i].device == position) sum += ops[i].sent_bytes;
    return sum;
}

/* A stage's first micro-batches already show that it does not fit. */
static void limit(const struct el_worker *worker, int64_t bytes)
{
    for (int m = 0; m < worker->n_members; m++) el_device_limit_memory(worker->members[m].shard.device, (size_t)bytes);
}

static enum el_status issue_step(struct forecast *f, struct el_worker *worker, struct el_program **program_p)
{
    const struct el_mode_ops *mode = f->mode;
    const struct el_schedule *schedule = &worker->parts->schedule;
    if (mode->setup) EL_TRY(mode->setup(worker));
    for (int round = 0; round < mode->rounds; round++) {
        el_program_destroy(*program_p);
        *program_p = NULL;
        if (mode->begin_round) EL_TRY(mode->begin_round(worker, round));
        if (f->layout.cuts && round + 1 == mode->rounds) limit(worker, f->limit_bytes);
        EL_TRY(el_program_create(program_p));
        EL_TRY(mode->issue(worker, *program_p, round));
    }
    EL_TRY(el_program_end(*program_p));
    const size_t kept_bytes = el_snapshot_bytes(worker, EL_KEPT_ROWS, el_checkpoint_file_has);
    for (int m = 0; m < worker->n_members; m++) el_device_ledger_reset_peak(worker->members[m].shard.device);
    el_program_book(*program_p);
    for (int m = 0; m < worker->n_members; m++) {
        struct el_memory_forecast *forecast = &f->forecasts[worker->first + m];
        struct el_device *device = worker->members[m].shard.device;
        enum el_phase phase = EL_PHASE_OPTIMIZER;
        el_program_ledger(*program_p, device, &phase);
        *forecast = (struct el_memory_forecast){.ledger = *el_device_ledger(device),
                                                .moment = el_phase_name(phase),
                                                .sent_bytes = sent_bytes(*program_p, worker->first + m),
                                                .kept_bytes = kept_bytes};
        if (schedule->n_parts > 0)
            forecast->activation_sets =
                el_schedule_in_flight(schedule, el_layout_spot(worker->layout, worker->first + m).at[EL_AXIS_STAGE]);
    }
    return EL_OK;
}

static enum el_status issue_worker(struct forecast *f, int index)
{
    int first;
    el_layout_of_worker(&f->layout, index, &first);
    struct el_worker_spec spec = {.config = f->config,
                                  .parts = &f->parts,
                                  .layout = &f->layout,
                                  .index = index,
                                  .worlds = &f->worlds.world[first],
                                  .group = f->worlds.group[first],
                                  .devices = &f->devices[first]};
    const int i = f->n++;
    EL_TRY(el_worker_open(&f->workers[i], &spec));
    return issue_step(f, &f->workers[i], &f->programs[i]);
}

static enum el_status issue_all(struct forecast *f)
{
    for (int index = 0; index < f->layout.n_workers; index++) {
        int like = 0, first;
        while (!f->all && like < f->n && !alike(f, f->workers[like].first / f->workers[like].n_members, index)) like++;
        const int n = el_layout_of_worker(&f->layout, index, &first);
        if (f->all || like == f->n)
            EL_TRY(issue_worker(f, index));
        else
            memcpy(&f->forecasts[first], &f->forecasts[f->workers[like].first], (size_t)n * sizeof *f->forecasts);
    }
    return EL_OK;
}

static enum el_status open_all(struct forecast *f, const struct el_kernel_table *kernels)
{
    const size_t n = (size_t)f->layout.n_workers;
    f->devices = calloc((size_t)f->layout.n_devices + 1, sizeof *f->devices);
    f->workers = calloc(n, sizeof *f->workers);
    f->programs = calloc(n, sizeof *f->programs);
    if (!f->devices || !f->workers || !f->programs) return el_fail_errno("%d devices", f->layout.n_devices);
    EL_TRY(el_parts_open(f->config, &f->layout, f->all, &f->parts));
    for (int d = 0; d < f->layout.n_devices; d++) {
        struct el_device_spec spec = {.backend = "sim",
                                      .index = d,
                                      .position = d,
                                      .kernels = kernels,
                                      .machine = &f->machine,
                                      .data_stride = el_layout_stride(&f->layout)};
        if (f->injects) spec.inject = f->injects[d];
        EL_TRY(el_device_open(&spec, &f->devices[d]));
    }
    return el_worlds_open_threads(&f->worlds, &f->layout, f->devices);
}

static void close_all(struct forecast *f)
{
    for (int i = 0; i < f->n; i++) {
        el_program_destroy(f->programs[i]);
        if (f->mode->teardown) f->mode->teardown(&f->workers[i]);
        el_worker_close(&f->workers[i]);
    }
    el_worlds_close(&f->worlds);
    for (int d = 0; f->devices && d < f->layout.n_devices; d++) el_device_close(f->devices[d]);
    free(f->devices);
    free(f->workers);
    free(f->programs);
    free(f->ranges);
    el_parts_close(&f->parts);
}

static bool fits(const struct forecast *f)
{
    for (int d = 0; d < f->layout.n_devices && f->limit_bytes; d++)
        if (f->forecasts[d].ledger.peak_bytes > (size_t)f->limit_bytes) return false;
    return true;
}

static enum el_status price(struct forecast *f, const struct el_probe *probe, double *step_ns_p)
{
    int64_t steps_ns[STEPS];
    EL_TRY(el_programs_resolve(f->programs, f->n, STEPS, steps_ns, probe));
    *step_ns_p = 0;
    for (int i = WARMUP; i < STEPS; i++) *step_ns_p += (double)steps_ns[i] / (STEPS - WARMUP);
    return EL_OK;
}

enum el_status el_train_predict(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                const struct el_predict_spec *spec, struct el_memory_forecast *forecasts,
                                double *step_ns)
{
    struct forecast f = {.config = config,
                         .mode = el_mode_ops_find(config->mode),
                         .machine = spec->n_machines ? spec->machines[0] : el_machine_default,
                         .limit_bytes = spec->limit_bytes,
                         .injects = spec->injects,
                         .forecasts = forecasts};
    el_layout_of(config, 1, &f.layout);
    f.all = !fits_hosts(&f.layout, &f.machine);
    for (int i = 0; i < spec->n_machines; i++) step_ns[i] = NAN;
    EL_TRY(check_injects(&f));
    EL_TRY(el_kernels_cpu_products(config->products));
    enum el_status status = open_all(&f, kernels);
    if (status == EL_OK) status = note_ranges(&f);
    if (status == EL_OK) status = issue_all(&f);
    const bool priced = status == EL_OK && fits(&f);
    for (int i = 0; i < spec->n_machines && priced && status == EL_OK; i++) {
        f.machine = spec->machines[i];
        status = price(&f, i == 0 ? spec->probe : NULL, &step_ns[i]);
    }
    close_all(&f);
    return status;
}

enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts)
{
    return el_train_predict(config, kernels, &(struct el_predict_spec){.n_machines = 0}, forecasts, NULL);
}
