/* Opens a trial's devices by name, each with its core. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/job/worker.h"
#include "bench/machine/host.h"
#include "bench/trial/costs.h"
#include "bench/trial/machine.h"
#include "bench/trial/trial.h"
#include "runtime/comm/comm.h"

static bool is_on_cores(const struct el_device_name *name)
{
    return el_backend_facts(name->backend).on_host;
}

static struct el_device_spec spec_of(const struct el_trial *trial, const struct el_cores *cores,
                                     const struct el_device_name *name, int position)
{
    struct el_device_spec spec = {.backend = trial->devices[position < EL_MEMBERS_MAX ? position : 0].backend,
                                  .index = name->index,
                                  .position = position,
                                  .tf32 = trial->tf32,
                                  .memory_limit_bytes = (size_t)trial->device_mem_bytes};
    if (!is_on_cores(name)) return spec;
    spec.n_cores = 1;
    spec.cores[0] = cores->cpus[name->index % cores->n];
    return spec;
}

static enum el_status open_sources(const struct el_job *job, const struct el_cores *cores, int n,
                                   struct el_job_devices *open)
{
    const struct el_trial *trial = job->trial;
    int spare[EL_MEMBERS_MAX];
    if (!el_trial_backend(trial).simulated) return EL_OK;
    open->sources = calloc(1, sizeof *open->sources);
    if (open->sources) open->sources->uses = calloc((size_t)n, sizeof *open->sources->uses);
    if (!open->sources || !open->sources->uses)
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d simulated devices", n);
    EL_TRY(el_machine_read(trial->machine, &open->sources->machine));
    if (!open->costs) return EL_OK;
    open->costs->shares_core = open->costs->on_cores && open->costs->n_ops > 0 &&
                               !el_cores_spare(cores, trial->devices, trial->n_devices, spare);
    return EL_OK;
}

/* injects[] of the whole job. */
static enum el_status open_each(const struct el_job *job, const struct el_cores *cores, int wanted,
                                const struct el_inject *injects, struct el_job_devices *open)
{
    const struct el_trial *trial = job->trial;
    int spare[EL_MEMBERS_MAX];
    bool on_cores = is_on_cores(&trial->devices[0]);
    bool apart = on_cores && el_cores_spare(cores, trial->devices, trial->n_devices, spare);
    double most_bytes = el_host_free_bytes("") / 2 / trial->n_devices; /* limit for an injected disturbance */
    open->time_sliced = on_cores && trial->n_devices > 1 && !apart;
    for (; open->n < wanted; open->n++) {
        int position = open->first + open->n;
        struct el_device_name name = el_nth_device(trial->devices, position);
        struct el_device_spec spec = spec_of(trial, cores, &name, position);
        if (apart) spec.comm_core = spare[position] + 1;
        spec.costs = open->costs;
        spec.cost_use = open->sources ? &open->sources->uses[open->n] : NULL;
        spec.machine = open->sources ? &open->sources->machine : NULL;
        spec.data_stride = el_layout_stride(&open->layout);
        spec.inject = injects[position];
        spec.inject.most_bytes = isnan(most_bytes) ? INT64_MAX : (int64_t)most_bytes;
        EL_TRY(el_device_open(&spec, &open->devices[open->n]));
    }
    return EL_OK;
}

static enum el_status open_all(const struct el_job *job, const struct el_cores *cores, struct el_job_devices *open)
{
    const struct el_trial *trial = job->trial;
    el_layout_of(&trial->train, el_bootstrap_size(job->bootstrap), &open->layout);
    int wanted = el_layout_of_process(&open->layout, el_bootstrap_rank(job->bootstrap), &open->first);
    struct el_inject *injects = calloc((size_t)trial->n_devices, sizeof *injects);
    open->devices = calloc((size_t)wanted + 1, sizeof(struct el_device *));
    enum el_status status = injects && open->devices
                                ? el_inject_parse(trial->inject, trial->n_devices, injects)
                                : el_fail(EL_ERR_HOST_MEMORY, "no memory for %d devices", trial->n_devices);
    if (status == EL_OK) status = open_sources(job, cores, wanted, open);
    if (status == EL_OK) status = open_each(job, cores, wanted, injects, open);
    free(injects);
    return status;
}

enum el_status el_job_open_with_costs(const struct el_job *job, const struct el_costs *costs,
                                      struct el_job_devices *devices_p)
{
    struct el_job_devices open = {0};
    struct el_cores cores;
    el_cores_find("", &cores);
    if (costs) {
        open.costs = malloc(sizeof *costs);
        if (!open.costs) return el_fail(EL_ERR_HOST_MEMORY, "no memory for costs");
        *open.costs = *costs;
    } else if (*job->trial->costs) {
        EL_TRY(el_costs_read(job->trial->costs, &job->trial->train, &open.costs));
    }
    enum el_status status = open_all(job, &cores, &open);
    if (status == EL_OK) status = el_job_watch_stuck(job, &open);
    if (status == EL_OK)
        *devices_p = open;
    else
        el_job_close_devices(&open);
    return status;
}

enum el_status el_job_open_devices(const struct el_job *job, struct el_job_devices *devices_p)
{
    return el_job_open_with_costs(job, NULL, devices_p);
}

enum el_status el_job_check_beside(const struct el_device_name *first, int beside)
{
    struct el_cores cores;
    el_cores_find("", &cores);
    if (!beside || !is_on_cores(first) || first->index + beside < cores.n) return EL_OK;
    return el_fail(
        EL_ERR_INVALID,
        "--beside %d: each device needs a core of its own from %s:%d on, and there %s %d: give fewer, or leave it out",
        beside, first->backend, first->index, cores.n == 1 ? "is" : "are", cores.n);
}

enum el_status el_job_open_beside(const struct el_job *job, int k, struct el_device **device_p)
{
    struct el_device_name name = job->trial->devices[0];
    struct el_cores cores;
    el_cores_find("", &cores);
    EL_TRY(el_job_check_beside(&name, job->trial->beside));
    name.index += 1 + k;
    struct el_device_spec spec = spec_of(job->trial, &cores, &name, 0);
    return el_device_open(&spec, device_p);
}

int el_job_device_cpus(const struct el_job *job, int *cpus)
{
    const struct el_trial *trial = job->trial;
    const struct el_device_name *first = &trial->devices[0];
    struct el_cores cores;
    int n = 0;
    if (!is_on_cores(first) || el_trial_backend(trial).simulated) return 0;
    el_cores_find("", &cores);
    for (int i = 0; i < trial->n_devices + trial->beside && n < EL_MEMBERS_MAX; i++) {
        int of_device =
            i < trial->n_devices ? el_nth_device(trial->devices, i).index : first->index + 1 + i - trial->n_devices;
        int cpu = cores.cpus[of_device % cores.n];
        bool known = false;
        for (int k = 0; k < n; k++) known |= cpus[k] == cpu;
        if (!known) cpus[n++] = cpu;
    }
    return n;
}

struct el_train_place el_job_place(const struct el_job *job, struct el_job_devices *devices)
{
    const char *kind = job->trial->comm;
    bool several = el_bootstrap_size(job->bootstrap) > 1;
    if (several && !strcmp(kind, "auto")) kind = el_comm_choose(job->bootstrap, devices->devices[0]);
    struct el_train_place place = {.devices = devices->devices,
                                   .n_devices = devices->n,
                                   .bootstrap = job->bootstrap,
                                   .comm_kind = kind,
                                   .dataset = job->dataset,
                                   .save = *job->trial->save ? job->trial->save : NULL,
                                   .checkpoint = {.dir = *job->trial->checkpoint ? job->trial->checkpoint : NULL,
                                                  .job = job->trial->id,
                                                  .keep = (int)job->trial->checkpoint_keep,
                                                  .async = job->trial->checkpoint_async,
                                                  .resume = job->trial->from}};
    el_trial_checkpoint_every(job->trial, &place.checkpoint.every, &place.checkpoint.every_s);
    return place;
}

void el_job_close_devices(struct el_job_devices *devices)
{
    el_job_watch_end(devices->stuck);
    for (int i = 0; i < devices->n; i++) el_device_close(devices->devices[i]);
    free(devices->devices);
    free(devices->costs);
    if (devices->sources) free(devices->sources->uses);
    free(devices->sources);
    *devices = (struct el_job_devices){.n = 0};
}
