/* One launch of one trial. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "bench/record/record.h"
#include "bench/trial/events.h"
#include "profiles/core_rate.h"
#include "profiles/nvtx.h"
#include "runtime/gate/gate.h"

static enum el_status open_recorders(struct el_job_measurement *m)
{
    int n_each = m->open.layout.n_devices / m->open.layout.n_workers, n = m->open.n / n_each;
    m->n_workers = n;
    m->recorders = calloc((size_t)n, sizeof(struct el_recorder *));
    m->launches = calloc((size_t)n, sizeof *m->launches);
    m->probes = calloc((size_t)m->open.n, sizeof *m->probes);
    if (!m->recorders || !m->launches || !m->probes) return el_fail_errno("recorders of %d workers", n);
    for (; m->n_recorders < n && m->job->trial->record; m->n_recorders++)
        EL_TRY(el_recorder_create(m->open.first + m->n_recorders * n_each, n_each, &m->recorders[m->n_recorders]));
    for (int i = 0; i < m->open.n && m->n_recorders; i++) m->probes[i] = el_recorder_probe(el_job_recorder(m, i));
    return EL_OK;
}

/* Profilers name their NVTX library in this variable; without one, marks would only cost time. */
static void mark_for_profiler(struct el_job_measurement *m)
{
    const char *library = getenv("NVTX_INJECTION64_PATH");
    m->watched = library && *library && el_nvtx_open(&m->watch) == EL_OK;
    for (int i = 0; i < m->open.n && m->watched; i++) m->probes[i].watch = &m->watch;
}

/* Arrows in a trace from the host to its devices' later work. An attached profiler draws its own. */
static void watch_launches(struct el_job_measurement *m)
{
    if (!*m->job->trial->trace || m->watched || m->open.n == 0 || !el_device_is_asynchronous(m->open.devices[0]))
        return;
    for (int i = 0; i < m->n_recorders; i++) el_recorder_watch_launches(m->recorders[i], &m->launches[i]);
    for (int i = 0; i < m->open.n; i++)
        if (m->n_recorders) m->probes[i].watch = &m->launches[i / (m->open.n / m->n_workers)];
}

static void measure_begin(void *context, int member)
{
    struct el_job_measurement *m = context;
    struct el_recorder *recorder = el_job_recorder(m, member);
    el_job_window_read_memory(&m->window, member);
    if (recorder) el_recorder_begin(recorder);
    el_job_window_begin(&m->window, member);
}

static void measure_end(void *context, int member)
{
    struct el_job_measurement *m = context;
    el_job_window_end(&m->window, member);
    if (el_job_recorder(m, member)) el_recorder_segment(el_job_recorder(m, member), -1);
}

static void begin_segment(void *context, int member, enum el_segment segment)
{
    struct el_recorder *recorder = el_job_recorder(context, member);
    if (recorder) el_recorder_segment(recorder, el_job_segment(segment));
}

static void fall(const struct el_job_measurement *m, int member, int64_t step)
{
    const int n_each = m->open.n / m->n_workers;
    for (int i = member; i < member + n_each; i++) {
        const struct el_inject *inject = el_device_inject(m->open.devices[i]);
        const bool kills = inject->kill_step > 0 && inject->kill_step == step;
        if (!kills && (inject->stop_step == 0 || inject->stop_step != step)) continue;
        const int events = m->events >= 0 ? m->events : el_events_open(m->job->trial->checkpoint);
        el_events_add(events, kills ? "kill" : "stop", step);
        kill(getpid(), kills ? SIGKILL : SIGSTOP);
    }
}

static enum el_status before_step(void *context, int member, int64_t step)
{
    struct el_job_measurement *m = context;
    if (m->open.first + member == 0) el_events_add(m->events, "step", step);
    if (m->events >= 0 && step > 0 && el_device_inject(m->open.devices[0])->come_step == step) {
        el_events_add(m->events, "come", step);
        el_events_come(m->job->trial->checkpoint);
    }
    fall(m, member, step);
    return m->beside ? el_job_beside_meet(m->beside) : EL_OK;
}

static enum el_status train(struct el_job_measurement *m)
{
    const struct el_job *job = m->job;
    struct el_train_place place = el_job_place(job, &m->open);
    struct el_train_hooks hooks = {.probes = m->n_recorders || m->watched ? m->probes : NULL,
                                   .context = m,
                                   .measure_begin = measure_begin,
                                   .measure_end = measure_end,
                                   .segment = begin_segment,
                                   .before_step = before_step};
    EL_TRY(el_train(&job->trial->train, &place, &hooks, &m->result));
    m->trained = true;
    for (int i = 0; i < m->n_workers; i++)
        fall(m, i * (m->open.n / m->n_workers), m->result.start + m->result.n_warmup + m->result.n_steps);
    return EL_OK;
}

/* A stopped rank cannot take part in an agreement. */
static bool lost_a_rank(const struct el_job *job, enum el_status *status)
{
    struct el_error error;
    char silent[96] = "";
    if (*status != EL_ERR_PEER) return false;
    el_bootstrap_silent(job->bootstrap, silent, sizeof silent);
    if (!*silent) return false;
    el_error_take(*status, &error);
    *status = el_fail(EL_ERR_PEER, "%s; rank %s does not answer (stopped?)", error.text, silent);
    return true;
}

static void look_at_cores(struct el_job_measurement *m)
{
    int cpus[EL_MEMBERS_MAX];
    if (el_bootstrap_rank(m->job->bootstrap) != 0) return;
    m->core_rate_pct = fmin(m->core_rate_pct, el_core_rate_pct(cpus, el_job_device_cpus(m->job, cpus)));
}

static enum el_status train_and_relate(struct el_job_measurement *m)
{
    struct el_bootstrap *bootstrap = m->job->bootstrap;
    look_at_cores(m);
    EL_TRY(el_clock_relate(bootstrap, &m->begin));
    EL_TRY(el_job_beside_open(m->job, &m->beside));
    enum el_status mine = train(m);
    m->beside_ratios = el_job_beside_close(m->beside);
    m->beside = NULL;
    m->alone = lost_a_rank(m->job, &mine);
    EL_TRY(m->alone ? mine : el_bootstrap_agree(bootstrap, mine));
    look_at_cores(m);
    EL_TRY(el_clock_relate(bootstrap, &m->end));
    return el_job_relate_collectives(m);
}

static const char *job_status(enum el_status status)
{
    switch (status) {
    case EL_OK:
        return "ok";
    case EL_ERR_OOM:
        return "oom";
    case EL_ERR_ABSENT:
        return "absent";
    case EL_ERR_TIMEOUT:
        return "timeout";
    default:
        return "failed";
    }
}

static enum el_status open_measurement(struct el_job_measurement *m)
{
    EL_TRY(el_job_open_devices(m->job, &m->open));
    EL_TRY(el_job_window_open(&m->open, &m->window));
    EL_TRY(open_recorders(m));
    mark_for_profiler(m);
    watch_launches(m);
    return EL_OK;
}

enum el_status el_job_measure(const struct el_job *job, json_t **repeat_p)
{
    struct el_job_measurement *m = calloc(1, sizeof *m);
    if (!m) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a measurement");
    struct el_error error;
    json_t *account = NULL, *accounts = NULL;
    m->job = job;
    m->core_rate_pct = NAN;
    m->events = el_bootstrap_rank(job->bootstrap) == 0 ? el_events_open(job->trial->checkpoint) : -1;
    el_events_add(m->events, "start", 0);
    /* nobody waits in training for a rank that could not begin */
    enum el_status status = el_bootstrap_agree(job->bootstrap, open_measurement(m));
    if (status == EL_OK) status = train_and_relate(m);
    if (status == EL_OK) status = el_job_account(m, &account);
    if (status == EL_OK && m->result.simulated && job->repeat == 0) /* equal in all launches */
        status = el_job_predict(job, &m->open, true, &m->prediction);
    enum el_status gathered = m->alone ? status : el_job_gather(job, status, account, &accounts, &error);
    *repeat_p = NULL;
    if (gathered != EL_OK) el_error_take(gathered, &error); /* a rank is gone: rank 0 can still report it */
    if (accounts && error.status == EL_OK)
        *repeat_p = el_job_repeat(m, accounts);
    else if (accounts || (gathered != EL_OK && el_bootstrap_rank(job->bootstrap) == 0))
        *repeat_p = el_record_failed_repeat(job->trial, job->repeat, job->order, job_status(error.status), error.text);
    json_decref(accounts);
    for (int i = 0; i < m->n_recorders; i++) el_recorder_destroy(m->recorders[i]);
    free(m->recorders);
    free(m->launches);
    free(m->probes);
    if (m->events >= 0) close(m->events);
    json_decref(el_job_beside_close(m->beside));
    json_decref(m->beside_ratios);
    el_job_window_close(&m->window);
    el_job_close_devices(&m->open);
    if (m->trained) el_train_result_free(&m->result);
    json_decref(m->collectives);
    json_decref(m->arrivals);
    json_decref(m->prediction);
    free(m);
    return error.status != EL_OK ? el_error_give(&error) : status;
}

/* ---- the gate: a mode's first steps against the reference; campaign/gate.c judges ---- */

static bool on_gpus(const struct el_job *job)
{
    return el_trial_backend(job->trial).gpu;
}

/* Without --devices mem: gradients are kept too, and a trial with just enough memory must pass. */
static enum el_status first_steps(const struct el_job *job, double *loss_p, double **grads_p)
{
    struct el_job_devices open;
    struct el_trial trial = *job->trial;
    trial.device_mem_bytes = 0;
    struct el_job unlimited = {.trial = &trial, .dataset = job->dataset, .bootstrap = job->bootstrap};
    enum el_status mine = el_job_open_devices(&unlimited, &open), status = el_bootstrap_agree(job->bootstrap, mine);
    if (status != EL_OK) {
        if (mine == EL_OK) el_job_close_devices(&open);
        return status;
    }
    struct el_train_place place = el_job_place(job, &open);
    status = el_gate_gradients(&job->trial->train, &place, loss_p, grads_p);
    el_job_close_devices(&open);
    return status;
}

/* On a CPU device without memory limit, because it takes the whole batch. GPUs are compared with it too, so that they
 * share no error. */
static enum el_status reference(const struct el_job *job, double *loss_p, double **grads_p)
{
    struct el_cores cores;
    struct el_device *device;
    el_cores_find("", &cores);
    const char *backend = on_gpus(job) ? "cpu" : job->trial->devices[0].backend;
    struct el_device_spec spec = {.backend = backend, .n_cores = 1, .cores = {cores.cpus[0]}};
    if (on_gpus(job)) spec.kernels = el_kernels_reference();
    EL_TRY(el_device_open(&spec, &device));
    enum el_status status = el_gate_reference(&job->trial->train, device, job->dataset, loss_p, grads_p);
    el_device_close(device);
    return status;
}

static enum el_status compare(const struct el_job *job, json_t **verdict_p)
{
    double loss = 0, reference_loss = 0, worst = 0, *grads = NULL, *reference_grads = NULL;
    char parameter[64] = "";
    const struct el_gate_limits limits = el_gate_limits(&job->trial->train, !on_gpus(job)      ? EL_GATE_SAME
                                                                            : job->trial->tf32 ? EL_GATE_TF32
                                                                                               : EL_GATE_GPU);
    enum el_status status = first_steps(job, &loss, &grads);
    if (status == EL_OK && el_bootstrap_rank(job->bootstrap) == 0) {
        status = reference(job, &reference_loss, &reference_grads);
        if (status == EL_OK)
            status = el_gate_compare(&job->trial->train, grads, reference_grads, &worst, parameter, sizeof parameter);
        if (status == EL_OK)
            *verdict_p =
                json_pack("{s:s, s:n, s:f, s:f, s:o, s:o, s:o, s:s}", "status", "ok", "reason", "loss_limit",
                          limits.loss, "gradient_limit", limits.gradient, "loss", el_json_real(loss), "reference_loss",
                          el_json_real(reference_loss), "worst", el_json_real(worst), "parameter", parameter);
    }
    free(grads);
    free(reference_grads);
    return status;
}

enum el_status el_job_gate(const struct el_job *job, json_t **verdict_p)
{
    struct el_error error;
    json_t *verdict = NULL, *parts = NULL;
    enum el_status status = compare(job, &verdict);
    enum el_status gathered = el_job_gather(job, status, NULL, &parts, &error);
    *verdict_p = NULL;
    if (gathered == EL_OK && parts && error.status != EL_OK) {
        json_decref(verdict);
        verdict = json_pack("{s:s, s:s}", "status", job_status(error.status), "reason", error.text);
    }
    json_decref(parts);
    *verdict_p = verdict;
    return gathered == EL_OK && error.status != EL_OK ? el_error_give(&error) : status;
}
