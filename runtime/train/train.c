/* el_train: opens this process's workers, runs their loops (a thread each; one alone in the caller's), and gathers
 * results. */
#include "runtime/train/train.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/train/session.h"
#include "runtime/worker/copies.h"

static enum el_status read_grads(struct el_run *run)
{
    const struct el_graph *model = run->session->parts.model;
    double *at = el_worker_is_first(&run->worker) ? run->session->grads : NULL;
    for (int p = 0; p < model->n_params; p++) {
        EL_TRY(el_gather(&run->worker, EL_STATE_GRAD, p, at));
        if (at) at += el_param_count(model, p);
    }
    return EL_OK;
}

static void run_worker(struct el_run *run)
{
    const struct el_worlds *worlds = run->worlds;
    const struct el_session *session = run->session;
    const struct el_train_place *place = session->place;
    struct el_worker_spec spec = {.config = session->config,
                                  .parts = &session->parts,
                                  .layout = &session->layout,
                                  .index = run->index,
                                  .devices = &place->devices[run->first],
                                  .worlds = &worlds->world[run->first],
                                  .group = worlds->group[run->first],
                                  .dataset = place->dataset};
    enum el_status status = el_worker_open(&run->worker, &spec);
    if (status == EL_OK) status = el_meeting_wait(session->meeting); /* pinned batch memory is allocated by now */
    if (status == EL_OK) status = el_run_loop(run);
    status = el_run_close_checkpoints(run, status);
    el_snapshot_close(run->best);
    if (status == EL_OK)
        status = el_copies_read(&run->worker, session->mode->buffers, &run->result.buffers, &run->result.n_buffers);
    if (status == EL_OK && session->wants_grads) status = read_grads(run);
    run->failed_ns = el_clock_ns(); /* before others are told */
    if (status != EL_OK) el_worker_abort(&run->worker);
    if (status != EL_OK) el_joint_abort(session->joint);
    if (status != EL_OK) el_meeting_abort(session->meeting);
    el_error_take(status, &run->error);
    el_run_drop_programs(run);
    if (session->mode->teardown) session->mode->teardown(&run->worker);
    el_worker_close(&run->worker);
}

static void *run_thread(void *argument)
{
    run_worker(argument);
    return NULL;
}

static enum el_status run_threads(struct el_run *runs, int n)
{
    struct el_session *session = runs->session;
    struct el_worlds worlds;
    int started = 0;
    enum el_status status = el_worlds_open_threads(&worlds, &session->layout, session->place->devices);
    if (status == EL_OK && el_device_is_simulated(session->place->devices[0]))
        status = el_joint_create(n, &session->joint);
    else if (status == EL_OK)
        status = el_meeting_create(n, &session->meeting);
    for (; status == EL_OK && started < n; started++) {
        runs[started].worlds = &worlds;
        if (pthread_create(&runs[started].thread, NULL, run_thread, &runs[started]) != 0) {
            status = el_fail(EL_ERR_HOST_MEMORY, "a thread for worker %d of %d could not be made", started, n);
            el_worlds_abort(&worlds);
            el_joint_abort(session->joint);
            el_meeting_abort(session->meeting);
            break;
        }
    }
    for (int i = 0; i < started; i++) pthread_join(runs[i].thread, NULL);
    el_worlds_close(&worlds);
    el_joint_destroy(session->joint);
    el_meeting_destroy(session->meeting);
    session->joint = NULL;
    session->meeting = NULL;
    return status;
}

static enum el_status run_here(struct el_run *run)
{
    const struct el_train_place *place = run->session->place;
    struct el_worlds worlds;
    enum el_status status =
        el_worlds_open_rank(&worlds, &run->session->layout, place->devices, place->bootstrap, place->comm_kind);
    run->worlds = &worlds;
    if (status == EL_OK) run_worker(run);
    el_worlds_close(&worlds);
    return status;
}

/* The root cause: not EL_ERR_PEER, and the earliest of several. */
static enum el_status first_failure(const struct el_run *runs, int n)
{
    const struct el_run *found = NULL;
    for (int i = 0; i < n; i++) {
        const struct el_run *run = &runs[i];
        if (run->error.status == EL_OK) continue;
        bool explains = !found || (found->error.status == EL_ERR_PEER &&
                                   (run->error.status != EL_ERR_PEER || run->failed_ns < found->failed_ns));
        if (explains) found = run;
    }
    return found ? el_error_give(&found->error) : EL_OK;
}

static void hand_over(struct el_run *run, const struct el_session *session, struct el_train_result *result_p)
{
    const struct el_device *device = session->place->devices[0];
    const struct el_graph *model = session->parts.model;
    struct el_train_result *result = &run->result;
    uint64_t width = el_dtype_bytes(el_config_stored(session->config));
    result->start = run->start;
    result->n_warmup = run->n_warmup - run->start;
    result->n_steps = run->n_steps;
    memmove(run->step_ns, run->step_ns + run->start, (size_t)(run->n_done - run->start) * sizeof *run->step_ns);
    result->warmup_step_ns = run->step_ns;
    result->step_ns = run->step_ns + result->n_warmup;
    memmove(result->wall_ns, result->wall_ns + run->n_warmup, (size_t)run->n_steps * sizeof *result->wall_ns);
    result->n_own_workers = session->layout.n_workers;
    result->loss_valid = el_device_computes(device);
    result->param_bytes = (uint64_t)el_graph_param_count(model) * width;
    result->trained_bytes = (uint64_t)el_graph_trained_count(model) * width;
    result->simulated = el_device_is_simulated(device);
    result->comm = run->worker.comm;
    *result_p = *result;
    *result = (struct el_train_result){0};
    run->step_ns = NULL;
}

static enum el_status make_runs(struct el_session *session, struct el_run **runs_p, int *n_p)
{
    const struct el_layout *layout = &session->layout;
    int begin, n = el_layout_of_process(layout, el_bootstrap_rank(session->place->bootstrap), &begin);
    int n_each = layout->n_devices / layout->n_workers, n_runs = n / n_each;
    if (n_runs == 0) return el_fail(EL_ERR_INVALID, "%s has no work for this process", session->config->mode);
    struct el_run *runs = *runs_p = calloc((size_t)n_runs, sizeof *runs);
    if (!runs) return el_fail_errno("%d workers", n_runs);
    *n_p = n_runs;
    for (int i = 0; i < n_runs; i++) {
        runs[i].session = session;
        runs[i].index = begin / n_each + i;
        runs[i].first = i * n_each;
    }
    struct el_train_result *result = session->result = &runs->result;
    result->loading = calloc((size_t)session->place->n_devices, sizeof *result->loading);
    result->routed = calloc((size_t)session->place->n_devices, sizeof *result->routed);
    result->n_routed = session->place->n_devices;
    result->ledgers = calloc((size_t)session->place->n_devices, sizeof *result->ledgers);
    return result->loading && result->ledgers && result->routed ? EL_OK : el_fail_errno("figures of %d devices", n);
}

static enum el_status run_all(struct el_session *session, struct el_train_result *result_p)
{
    struct el_run *runs = NULL;
    int n = 0;
    enum el_status status = make_runs(session, &runs, &n);
    if (status == EL_OK) status = n > 1 ? run_threads(runs, n) : run_here(runs);
    if (status == EL_OK) status = first_failure(runs, n);
    if (status == EL_OK && result_p) hand_over(runs, session, result_p);
    for (int i = 0; i < n; i++) {
        free(runs[i].step_ns);
        free(runs[i].lengths);
        el_train_result_free(&runs[i].result);
    }
    free(runs);
    return status;
}

static enum el_status check_place(const struct el_session *session)
{
    const struct el_train_place *place = session->place;
    const struct el_layout *layout = &session->layout;
    int ranks = el_bootstrap_size(place->bootstrap), first;
    int wanted = el_layout_of_process(layout, el_bootstrap_rank(place->bootstrap), &first);
    if (layout->n_processes != ranks || (ranks > 1 && place->n_devices != wanted)) {
        return el_fail(EL_ERR_INVALID, "%s cannot run as %d processes with %d devices in this one; give --procs 1",
                       session->config->mode, ranks, place->n_devices);
    }
    if (ranks > 1 && el_device_is_simulated(place->devices[0]))
        return el_fail(EL_ERR_INVALID,
                       "%s: simulated members are resolved together, in one process, not in %d: give --procs 1",
                       session->config->mode, ranks);
    if (place->n_devices < wanted)
        return el_fail(EL_ERR_INVALID, "%s: %d devices are wanted and %d are there", session->config->mode, wanted,
                       place->n_devices);
    return EL_OK;
}

static enum el_status make_grads(struct el_session *session, double **grads_p)
{
    session->wants_grads = grads_p != NULL;
    if (!grads_p || el_bootstrap_rank(session->place->bootstrap) != 0) return EL_OK;
    session->grads = calloc((size_t)el_graph_param_count(session->parts.model), sizeof *session->grads);
    return session->grads ? EL_OK : el_fail_errno("gradients");
}

enum el_status el_train_with_grads(const struct el_train_config *config, const struct el_train_place *place,
                                   const struct el_train_hooks *hooks, struct el_train_result *result_p,
                                   double **grads_p)
{
    static const struct el_train_hooks none;
    struct el_session session = {
        .config = config, .place = place, .hooks = hooks ? hooks : &none, .mode = el_mode_ops_find(config->mode)};
    EL_TRY(el_kernels_cpu_products(config->products));
    el_layout_of(config, el_bootstrap_size(place->bootstrap), &session.layout);
    EL_TRY(check_place(&session));
    enum el_status status = el_parts_open(config, &session.layout, true, &session.parts);
    if (status == EL_OK) status = make_grads(&session, grads_p);
    if (status == EL_OK) status = run_all(&session, result_p);
    el_parts_close(&session.parts);
    if (status != EL_OK) {
        free(session.grads);
        session.grads = NULL;
    }
    if (grads_p) *grads_p = session.grads;
    return status;
}

enum el_status el_train(const struct el_train_config *config, const struct el_train_place *place,
                        const struct el_train_hooks *hooks, struct el_train_result *result_p)
{
    return el_train_with_grads(config, place, hooks, result_p, NULL);
}

void el_train_result_free(struct el_train_result *result)
{
    free(result->warmup_step_ns);
    free(result->wall_ns);
    free(result->loss);
    free(result->own_loss);
    for (int e = 0; e < result->n_epochs; e++) free(result->epochs[e].held_out.ranks);
    free(result->test.ranks);
    free(result->epochs);
    free(result->buffers);
    free(result->loading);
    for (int i = 0; result->routed && i < result->n_routed; i++) {
        free(result->routed[i].counts);
        free(result->routed[i].last);
    }
    free(result->routed);
    free(result->ledgers);
    *result = (struct el_train_result){0};
}
