/* el_train: opens members where they live, runs their loops, and gathers what they measured. SPMD members of this
 * process get a thread each; a controller, or a rank of a job of several processes, runs in the caller's. */
#include "runtime/parallel/train.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/session.h"

static bool is_spmd(const struct el_session *session)
{
    return !session->mode->info.controller;
}

/* Opens the members of one host thread. */
static enum el_status open_members(struct el_run *run, struct el_comm *comm)
{
    const struct el_session *session = run->session;
    const struct el_train_place *place = session->place;
    int rank = comm ? el_comm_rank(comm) : 0, size = comm ? el_comm_size(comm) : 1;
    run->worker =
        (struct el_worker){.config = session->config, .graph = session->graph, .members = run->members, .n_members = 1};
    EL_TRY(el_member_open_owner(&run->members[0], session->config, session->graph, place->devices[run->first], comm,
                                rank, size, place->dataset));
    if (is_spmd(session) || session->mode->info.one_device) return EL_OK;
    for (int m = 1; m < place->n_devices; m++) {
        el_member_open_helper(&run->members[m], session->config, session->graph, place->devices[m], NULL);
    }
    run->worker.n_members = place->n_devices;
    return EL_OK;
}

static enum el_status read_grads(struct el_run *run)
{
    struct el_session *session = run->session;
    double *all = malloc((size_t)el_graph_param_count(session->graph) * sizeof *all), *at = all;
    if (!all) return el_fail_errno("gradients");
    for (int p = 0; p < session->graph->n_params; p++) {
        int64_t n = el_param_count(session->graph, p);
        /* Read in place: a float's bytes stand at the front of the doubles, and are spread from the back. */
        enum el_status status =
            el_device_read(run->members[0].grads[p], at, el_member_param_bytes(&run->members[0], p));
        if (status != EL_OK) {
            free(all);
            return status;
        }
        for (int64_t i = n - 1; session->config->dtype == EL_F32 && i >= 0; i--) {
            float value;
            memcpy(&value, (char *)at + (size_t)i * sizeof value, sizeof value);
            at[i] = value;
        }
        at += n;
    }
    session->grads = all;
    return EL_OK;
}

static void run_members(struct el_run *run, struct el_comm *comm)
{
    enum el_status status = open_members(run, comm);
    if (status == EL_OK) status = el_run_loop(run);
    if (status == EL_OK && run->session->want_grads && run->first == 0) status = read_grads(run);
    run->comm = run->worker.comm ? run->worker.comm : comm ? el_comm_backend(comm) : NULL;
    if (status != EL_OK && comm) el_comm_abort(comm);
    el_error_take(status, &run->error);
    el_program_destroy(run->program);
    run->program = NULL;
    if (run->session->mode->teardown && run->worker.state) run->session->mode->teardown(&run->worker);
    for (int m = 0; m < run->worker.n_members; m++) el_member_close(&run->members[m]);
}

struct thread {
    pthread_t thread;
    struct el_run *run;
    struct el_comm *comm;
};

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    run_members(thread->run, thread->comm);
    return NULL;
}

/* One thread a device of this process. */
static enum el_status run_threads(struct el_run **runs, int n)
{
    const struct el_train_place *place = runs[0]->session->place;
    struct el_comm *comms[EL_MEMBERS_MAX] = {NULL};
    struct thread threads[EL_MEMBERS_MAX];
    EL_TRY(el_comm_open_local(place->devices, n, comms));
    int started = 0;
    enum el_status status = EL_OK;
    for (; started < n; started++) {
        threads[started] = (struct thread){.run = runs[started], .comm = comms[started]};
        if (pthread_create(&threads[started].thread, NULL, run_thread, &threads[started]) != 0) {
            status = el_fail(EL_ERR_HOST_MEMORY, "a thread for member %d of %d could not be made", started, n);
            el_comm_abort(comms[0]);
            break;
        }
    }
    for (int i = 0; i < started; i++) pthread_join(threads[i].thread, NULL);
    for (int i = 0; i < n; i++) el_comm_close(comms[i]);
    return status;
}

static enum el_status run_here(struct el_run *run)
{
    const struct el_train_place *place = run->session->place;
    struct el_comm *comm = NULL;
    if (is_spmd(run->session)) {
        if (el_bootstrap_size(place->bootstrap) > 1) {
            EL_TRY(el_comm_open_ranks(place->comm_kind, place->bootstrap, place->devices[0], &comm));
        } else {
            EL_TRY(el_comm_open_self(place->devices[0], &comm));
        }
    }
    run_members(run, comm);
    el_comm_close(comm);
    return EL_OK;
}

/* The failure that explains the others: a peer that lost its partner is not it. */
static enum el_status first_failure(struct el_run *const *runs, int n)
{
    const struct el_error *found = NULL;
    for (int i = 0; i < n; i++) {
        const struct el_error *error = &runs[i]->error;
        if (error->status == EL_OK) continue;
        if (!found || found->status == EL_ERR_PEER) found = error;
    }
    return found ? el_error_give(found) : EL_OK;
}

static void hand_over(struct el_run *run, const struct el_session *session, struct el_train_result *result)
{
    const struct el_device *device = session->place->devices[0];
    *result = (struct el_train_result){.n_steps = run->n_steps,
                                       .n_warmup = run->n_warmup,
                                       .settled = run->settled,
                                       .n_control_pairs = run->n_control_pairs,
                                       .control_steps = run->control_steps,
                                       .warmup_step_ns = run->step_ns,
                                       .step_ns = run->step_ns + run->n_warmup,
                                       .loss = run->loss,
                                       .loss_valid = el_device_computes(device),
                                       .n_epochs = run->n_epochs,
                                       .epochs = run->epochs,
                                       .best_epoch = run->best_epoch,
                                       .test_accuracy = run->test_accuracy,
                                       .flops_per_step = run->model_flops,
                                       .param_bytes = (uint64_t)el_graph_param_count(session->graph) *
                                                      el_dtype_bytes(session->config->dtype),
                                       .simulated = el_device_is_simulated(device),
                                       .comm = run->comm};
    el_train_shares(session->config, result->batch_per_device);
    memcpy(result->control_on_ns, run->control_ns[0], sizeof result->control_on_ns);
    memcpy(result->control_off_ns, run->control_ns[1], sizeof result->control_off_ns);
    memcpy(result->ledgers, run->ledgers, (size_t)run->worker.n_members * sizeof *run->ledgers);
    run->step_ns = NULL;
    run->loss = NULL;
    run->epochs = NULL;
}

static void free_run(struct el_run *run)
{
    if (!run) return;
    free(run->members);
    free(run->step_ns);
    free(run->loss);
    free(run->epochs);
    free(run);
}

/* NULL: no memory. */
static struct el_run *make_run(struct el_session *session, int first, int n_members)
{
    struct el_run *run = calloc(1, sizeof *run);
    if (!run) return NULL;
    run->session = session;
    run->first = first;
    run->members = calloc((size_t)n_members, sizeof *run->members);
    if (run->members) return run;
    free_run(run);
    return NULL;
}

static enum el_status run_all(struct el_session *session, struct el_train_result *result_p)
{
    bool threads = is_spmd(session) && session->place->n_devices > 1;
    int n = threads ? session->place->n_devices : 1;
    struct el_run *runs[EL_MEMBERS_MAX] = {NULL};
    enum el_status status = EL_OK;
    for (int i = 0; i < n && status == EL_OK; i++) {
        runs[i] = make_run(session, i, threads ? 1 : session->place->n_devices);
        if (!runs[i]) status = el_fail_errno("member %d", i);
    }
    if (status == EL_OK) status = threads ? run_threads(runs, n) : run_here(runs[0]);
    if (status == EL_OK) status = first_failure(runs, n);
    if (status == EL_OK && result_p) {
        hand_over(runs[0], session, result_p);
        for (int i = 1; i < n; i++) {
            result_p->ledgers[i] = runs[i]->ledgers[0];
            if (result_p->simulated)
                result_p->flops_per_step += runs[i]->model_flops; /* real members have summed theirs */
        }
    }
    for (int i = 0; i < n; i++) free_run(runs[i]);
    return status;
}

static enum el_status check_place(const struct el_session *session)
{
    const struct el_train_place *place = session->place;
    int wanted = session->mode->info.one_device ? 1 : session->config->n_devices;
    int ranks = el_bootstrap_size(place->bootstrap), have = ranks > 1 ? ranks : place->n_devices;
    if (ranks > 1 && (place->n_devices != 1 || !is_spmd(session))) {
        return el_fail(EL_ERR_INVALID, "%s cannot run as %d processes with %d devices in this one; give --procs 1",
                       session->config->mode, ranks, place->n_devices);
    }
    if (have < wanted)
        return el_fail(EL_ERR_INVALID, "%s: %d devices are wanted and %d are there", session->config->mode, wanted,
                       have);
    return EL_OK;
}

static enum el_status train(const struct el_train_config *config, const struct el_train_place *place,
                            const struct el_train_hooks *hooks, struct el_train_result *result_p, double **grads_p)
{
    static const struct el_train_hooks none;
    struct el_session session = {.config = config,
                                 .place = place,
                                 .hooks = hooks ? hooks : &none,
                                 .mode = el_mode_ops_find(config->mode),
                                 .want_grads = grads_p != NULL};
    EL_TRY(check_place(&session));
    EL_TRY(el_model_build(&config->model, &session.graph));
    enum el_status status = run_all(&session, result_p);
    el_graph_destroy(session.graph);
    if (grads_p) *grads_p = session.grads;
    return status;
}

enum el_status el_train(const struct el_train_config *config, const struct el_train_place *place,
                        const struct el_train_hooks *hooks, struct el_train_result *result_p)
{
    return train(config, place, hooks, result_p, NULL);
}

void el_train_result_free(struct el_train_result *result)
{
    free(result->warmup_step_ns);
    free(result->loss);
    free(result->epochs);
    *result = (struct el_train_result){0};
}

enum el_status el_train_gradients(const struct el_train_config *config, const struct el_train_place *place,
                                  double *loss_p, double **grads_p)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    struct el_train_config still = *config;
    still.lr = 0;
    still.model.max_norm = 0;
    still.keep_grads = true;
    still.warmup = still.epochs = 0;
    still.min_time_s = 0;
    still.control = EL_CONTROL_NONE;
    still.steps = EL_GATE_STEPS;
    if (still.steps < mode->rounds) return el_fail(EL_ERR_INTERNAL, "the gate takes too few steps");
    struct el_train_result result;
    EL_TRY(train(&still, place, NULL, &result, grads_p));
    *loss_p = result.loss[EL_GATE_STEPS - 1];
    el_train_result_free(&result);
    return EL_OK;
}
