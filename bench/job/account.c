/* A process's account of a launch: what each of its members did and held, and what the system says of the process. */
#include <stdlib.h>
#include <unistd.h>

#include "bench/job/measurement.h"
#include "bench/record/record.h"

/* What the recorder says of a member. */
struct told {
    struct el_device_summary summary, on, off;
    struct el_memory_timeline timeline;
    struct el_op_figures *ops;
    size_t n_ops;
    bool recorded, control;
};

static void free_told(struct told *told)
{
    el_memory_timeline_free(&told->timeline);
    free(told->ops);
}

static enum el_status ask_recorder(const struct el_job_measurement *m, int i, struct told *told)
{
    const struct el_recorder *recorder = el_job_recorder(m, i);
    int position = m->open.first + i, on = el_job_segment(EL_SEGMENT_ON), off = el_job_segment(EL_SEGMENT_OFF);
    told->recorded = recorder != NULL;
    if (!recorder) return EL_OK;
    told->control = m->job->trial->train.control == EL_CONTROL_COMM && el_recorder_kept(recorder, on) &&
                    el_recorder_kept(recorder, off);
    EL_TRY(el_recorder_summarize(recorder, position, EL_RECORDER_MEASURED, &told->summary));
    if (told->control) EL_TRY(el_recorder_summarize(recorder, position, on, &told->on));
    if (told->control) EL_TRY(el_recorder_summarize(recorder, position, off, &told->off));
    EL_TRY(el_recorder_ops(recorder, position, &told->ops, &told->n_ops));
    return el_memory_timeline_make(recorder, position, m->result.ledgers[i].live_by_tag, &told->timeline);
}

static json_t *member_of(const struct el_job_measurement *m, int i, const char *host,
                         const struct el_system_figures *system, const struct told *told)
{
    const struct el_device *device = m->open.devices[i];
    const struct el_job_reading *reading = &m->window.memory[i];
    struct el_device_identity identity;
    struct el_library_memory libraries[EL_LIBRARIES_MAX];
    el_device_identify(device, &identity);
    bool read = reading->begin_bytes >= 0 && reading->end_bytes >= 0;
    struct el_member_account account = {.device = el_device_name(device),
                                        .identity = &identity,
                                        .libraries = libraries,
                                        .n_libraries = el_device_library_memory(device, libraries),
                                        .host = host,
                                        .rank = el_bootstrap_rank(m->job->bootstrap),
                                        .pid = getpid(),
                                        .ledger = &m->result.ledgers[i],
                                        .summary = told->recorded ? &told->summary : NULL,
                                        .timeline = told->recorded ? &told->timeline : NULL,
                                        .ops = told->ops,
                                        .n_ops = told->n_ops,
                                        .reserved_bytes = reading->reserved_bytes,
                                        .driver_bytes = read ? reading->end_bytes : -1,
                                        .grown_bytes = reading->end_bytes - reading->begin_bytes,
                                        .driver_reason = reading->reason,
                                        .module_loading = *identity.uuid ? getenv("CUDA_MODULE_LOADING") : NULL,
                                        .time_sliced = m->open.time_sliced,
                                        .control_on = told->control ? &told->on : NULL,
                                        .control_off = told->control ? &told->off : NULL,
                                        .simulated = el_device_is_simulated(device),
                                        .memory_limit_bytes = (int64_t)el_device_memory_limit(device),
                                        .system = system,
                                        .gpu = el_job_window_gpu(&m->window, i)};
    account.n_cores = el_device_cores(device, &account.cores);
    return el_record_member(&account);
}

static enum el_status add_member(const struct el_job_measurement *m, int i, const char *host,
                                 const struct el_system_figures *system, json_t *members)
{
    struct told told = {.n_ops = 0};
    enum el_status status = ask_recorder(m, i, &told);
    if (status == EL_OK) json_array_append_new(members, member_of(m, i, host, system, &told));
    free_told(&told);
    return status;
}

enum el_status el_job_account(const struct el_job_measurement *m, json_t **account_p)
{
    char host[256] = "";
    int64_t bytes[EL_MEMBERS_MAX] = {0}, own = m->window.resident_bytes;
    json_t *members = json_array(), *cost = NULL;
    struct el_system_figures system;
    el_job_window_compare(&m->window, &system);
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < m->open.n; i++) {
        enum el_status status = add_member(m, i, host, &system, members);
        if (status == EL_OK && i == 0) status = el_job_cost(m->recorders, m->n_recorders, &cost);
        if (status != EL_OK) {
            json_decref(cost);
            json_decref(members);
            return status;
        }
        bytes[m->open.first + i] = m->window.memory[i].end_bytes;
        if (!el_device_is_host_memory(m->open.devices[i])) continue; /* a GPU's memory is no part of the process's */
        own = own < 0 || m->window.memory[i].end_bytes < 0 ? -1 : own - m->window.memory[i].end_bytes;
    }
    json_t *process =
        el_record_process(getpid(), el_bootstrap_rank(m->job->bootstrap), bytes, m->job->trial->n_devices, own);
    *account_p = json_pack("{s:o, s:o, s:o, s:o}", "members", members, "process", process, "system",
                           el_job_window_account(&m->window, &system), "recorder_cost", cost);
    return *account_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for an account");
}
