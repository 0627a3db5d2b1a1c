/* The gate's work: a mode's first steps against the reference on one device. How far apart they may be, and what
 * follows, is campaign/gate.c's. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "runtime/gate/gate.h"

static bool on_gpus(const struct el_job *job)
{
    return el_trial_backend(job->trial).gpu;
}

/* Without --device-mem: gradients are kept here, and a trial that has just enough memory must be checked too. */
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

/* On a CPU device of its own, without a limit of memory, since it takes the whole batch. GPUs are held against it too:
 * what both get right is not an error that they share. */
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
    enum el_status status = first_steps(job, &loss, &grads);
    if (status == EL_OK && el_bootstrap_rank(job->bootstrap) == 0) {
        status = reference(job, &reference_loss, &reference_grads);
        if (status == EL_OK)
            status = el_gate_compare(&job->trial->train, grads, reference_grads, &worst, parameter, sizeof parameter);
        if (status == EL_OK)
            *verdict_p = json_pack("{s:s, s:n, s:b, s:o, s:o, s:o, s:s}", "status", "ok", "reason", "gpu",
                                   (int)on_gpus(job), "loss", el_json_real(loss), "reference_loss",
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
        verdict = json_pack("{s:s, s:s}", "status", el_job_status(error.status), "reason", error.text);
    }
    json_decref(parts);
    *verdict_p = verdict;
    return gathered == EL_OK && error.status != EL_OK ? el_error_give(&error) : status;
}
