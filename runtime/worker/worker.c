#include "runtime/worker/worker.h"

#include <stdlib.h>
#include <string.h>

enum el_feed_what el_worker_feeds(const struct el_parts *parts, int stage)
{
    bool first = parts->schedule.device[0] == stage, last = parts->schedule.device[parts->n - 1] == stage;
    if (first && last) return EL_FEED_ALL;
    if (last) return EL_FEED_LABELS;
    return first ? EL_FEED_INPUTS : EL_FEED_NOTHING;
}

static enum el_status open_feeds(struct el_worker *worker, const struct el_worker_spec *spec, int m)
{
    const struct el_spot spot = el_layout_spot(worker->layout, worker->first + m);
    int n_steps = (int)worker->config->n_accumulate;
    struct el_feed_spec feed = {.config = worker->config,
                                .graph = worker->graph,
                                .device = spec->devices[m],
                                .dataset = spec->dataset,
                                .split = EL_SPLIT_TRAIN,
                                .batch = worker->config->global_batch,
                                .n_parts = n_steps * spot.n_feeds,
                                .shares = el_layout_feed_shares(worker->layout),
                                .what = el_worker_feeds(worker->parts, spot.at[EL_AXIS_STAGE])};
    worker->members[m].feeds = calloc((size_t)n_steps, sizeof *worker->members[m].feeds);
    if (!worker->members[m].feeds) return el_fail_errno("feeds of %d micro-steps", n_steps);
    for (int k = 0; k < n_steps; k++) {
        feed.part = spot.feed + k * spot.n_feeds;
        EL_TRY(el_feed_open(&worker->members[m].feeds[k], &feed));
    }
    return EL_OK;
}

static enum el_status open_members(struct el_worker *worker, const struct el_worker_spec *spec)
{
    for (int m = 0; m < worker->n_members; m++) {
        const struct el_spot spot = el_layout_spot(worker->layout, worker->first + m);
        const struct el_graph *part = el_parts_of(spec->parts, &spot);
        struct el_shard_spec shard = {
            .config = worker->config, .graph = part, .device = spec->devices[m], .owns = spot.owns};
        if (worker->layout->split) {
            shard.split = worker->layout->split;
            shard.piece = spot.at[EL_AXIS_SHARD];
            shard.n_pieces = worker->layout->n[EL_AXIS_SHARD];
        }
        EL_TRY(el_shard_open(&worker->members[m].shard, &shard));
        if (el_layout_is_cut(worker->layout)) worker->members[m].shard.rest = spec->worlds[m];
        worker->members[m].shard.n_copies = worker->layout->n[EL_AXIS_DATA];
        EL_TRY(open_feeds(worker, spec, m));
    }
    return EL_OK;
}

enum el_status el_worker_open(struct el_worker *worker, const struct el_worker_spec *spec)
{
    *worker = (struct el_worker){.config = spec->config,
                                 .graph = spec->parts->model,
                                 .layout = spec->layout,
                                 .world = spec->worlds[0],
                                 .worlds = spec->worlds};
    worker->n_members = el_layout_of_worker(spec->layout, spec->index, &worker->first);
    const struct el_spot spot = el_layout_spot(spec->layout, worker->first);
    worker->parts = el_parts_piece(spec->parts, &spot);
    worker->members = calloc((size_t)worker->n_members, sizeof *worker->members);
    if (!worker->members) return el_fail_errno("worker %d", spec->index);
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        worker->group[axis] = el_layout_is_whole(worker->layout, axis) ? worker->world : spec->group[axis];
    struct el_comm *comm;
    for (int i = 0; (comm = el_worker_comm(worker, i)); i++) EL_TRY(el_worker_set_comm(worker->config, comm));
    return open_members(worker, spec);
}

enum el_status el_worker_set_comm(const struct el_train_config *config, struct el_comm *comm)
{
    EL_TRY(el_comm_set_algorithm(comm, config->comm_algorithm));
    EL_TRY(el_comm_set_timeout(comm, config->comm_timeout_s));
    return el_comm_set_checking(comm, config->comm_check);
}

struct el_comm *el_worker_comm(const struct el_worker *worker, int i)
{
    if (i < worker->n_members) return worker->worlds[i];
    i -= worker->n_members;
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (worker->group[axis] && worker->group[axis] != worker->world && i-- == 0) return worker->group[axis];
    return NULL;
}

void el_worker_abort(struct el_worker *worker)
{
    struct el_comm *comm;
    for (int i = 0; (comm = el_worker_comm(worker, i)); i++) el_comm_abort(comm);
}

void el_worker_close(struct el_worker *worker)
{
    for (int m = 0; m < worker->n_members && worker->members; m++) {
        el_shard_close(&worker->members[m].shard);
        for (int k = 0; worker->members[m].feeds && k < worker->config->n_accumulate; k++)
            el_feed_close(&worker->members[m].feeds[k]);
        free(worker->members[m].feeds);
    }
    free(worker->members);
    worker->members = NULL;
}

/* A step with one collective over `n` doubles; not on simulated devices, which have no memory. */
static enum el_status exchange(struct el_worker *worker, double *values, int64_t n, bool sum)
{
    struct el_comm_op op = {.verb = sum ? EL_COMM_ALL_REDUCE : EL_COMM_BROADCAST,
                            .dtype = EL_F64,
                            .count = (size_t)n,
                            .data = el_view_host(values),
                            .label = "exchange",
                            .phase = EL_PHASE_COMM};
    if (worker->layout->n_workers == 1) return EL_OK;
    struct el_device *device = worker->members[0].shard.device;
    if (el_device_is_simulated(device)) return el_comm_exchange(worker->world, &op);
    size_t bytes = (size_t)n * sizeof(double);
    struct el_ledger before = *el_device_ledger(device);
    struct el_buffer *buffer;
    struct el_program *program = NULL;
    EL_TRY(el_device_alloc(device, EL_TAG_WORKSPACE, bytes, "exchange", &buffer));
    enum el_status status;
    EL_TRY_GOTO(el_device_write(el_view_of(buffer, 0), values, bytes), done);
    EL_TRY_GOTO(el_program_create(&program), done);
    op.data = el_view_of(buffer, 0);
    EL_TRY_GOTO(el_comm_issue(worker->world, program, &op, NULL), done);
    EL_TRY_GOTO(el_program_end(program), done);
    EL_TRY_GOTO(el_program_run(program, 0, NULL), done);
    EL_TRY_GOTO(el_device_read(el_view_of(buffer, 0), values, bytes), done);
done:
    el_program_destroy(program);
    el_device_free(buffer);
    el_device_ledger_restore_peak(device, &before);
    return status;
}

/* In pieces: a device may have little room. */
enum { PIECE = 1 << 17 };

enum el_status el_worker_sum(struct el_worker *worker, double *values, int64_t n)
{
    for (int64_t at = 0; at < n; at += PIECE)
        EL_TRY(exchange(worker, values + at, n - at < PIECE ? n - at : PIECE, true));
    return EL_OK;
}

/* Each worker's values have their own places, zero elsewhere, so that the sum is exact in any order. */
static enum el_status sum_piece(struct el_worker *worker, double *values, int64_t n)
{
    const int64_t n_workers = worker->layout->n_workers, own = worker->first / worker->n_members;
    double *all = calloc((size_t)(n_workers * n), sizeof *all);
    if (!all) return el_fail_errno("sums of %d workers", worker->layout->n_workers);
    memcpy(all + own * n, values, (size_t)n * sizeof *values);
    enum el_status status = el_worker_sum(worker, all, n_workers * n);
    for (int64_t i = 0; i < n && status == EL_OK; i++) {
        values[i] = all[i];
        for (int64_t w = 1; w < n_workers; w++) values[i] += all[w * n + i];
    }
    free(all);
    return status;
}

enum el_status el_worker_sum_in_order(struct el_worker *worker, double *values, int64_t n)
{
    const struct el_device *device = worker->members[0].shard.device;
    if (worker->layout->n_workers == 1 || !el_device_computes(device)) return EL_OK;
    const int64_t piece = PIECE / worker->layout->n_workers + 1;
    for (int64_t at = 0; at < n; at += piece) EL_TRY(sum_piece(worker, values + at, n - at < piece ? n - at : piece));
    return EL_OK;
}

enum el_status el_worker_take_first(struct el_worker *worker, double *values, int64_t n)
{
    return exchange(worker, values, n, false);
}
