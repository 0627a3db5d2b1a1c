/* A process's account of a launch. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "bench/record/record.h"
#include "runtime/layout/parts.h"

static enum el_status ask_recorder(const struct el_job_measurement *m, int i, struct el_member_account *account)
{
    const struct el_recorder *recorder = el_job_recorder(m, i);
    int position = m->open.first + i, on = el_job_segment(EL_SEGMENT_ON), off = el_job_segment(EL_SEGMENT_OFF);
    account->recorded = recorder != NULL;
    if (!recorder) return EL_OK;
    account->controlled = m->job->trial->train.control == EL_CONTROL_COMM && el_recorder_kept(recorder, on) &&
                          el_recorder_kept(recorder, off);
    EL_TRY(el_recorder_summarize(recorder, position, EL_RECORDER_MEASURED, &account->summary));
    if (account->controlled) EL_TRY(el_recorder_summarize(recorder, position, on, &account->on));
    if (account->controlled) EL_TRY(el_recorder_summarize(recorder, position, off, &account->off));
    EL_TRY(el_recorder_ops(recorder, position, &account->ops, &account->n_ops));
    account->in_flight = el_recorder_in_flight(recorder, position);
    if (m->job->trial->train.length_by_batch) account->by_step = recorder;
    account->position = position;
    EL_TRY(el_recorder_lane(recorder, position, m->shown_step, &account->lane));
    return el_memory_timeline_make(recorder, position, m->result.ledgers[i].live_by_tag, &account->timeline);
}

/* Bytes of parts whose use is data. */
static void add_beyond(const struct el_routed *routed, struct el_member_account *account)
{
    struct el_device_summary *summary = &account->summary;
    const bool whole = account->layout && el_layout_is_whole(account->layout, EL_AXIS_EXPERT);
    const char *name = whole ? "world" : el_axis_row(EL_AXIS_EXPERT)->name;
    if (routed->n_steps == 0 || summary->n_steps == 0) return;
    const double sent = (double)routed->beyond[0] / (double)routed->n_steps;
    const double received = (double)routed->beyond[1] / (double)routed->n_steps;
    summary->sent_bytes += sent;
    summary->comm_bytes += sent;
    summary->received_bytes += received;
    for (int g = 0; g < summary->n_groups; g++) {
        if (strcmp(summary->groups[g].name, name) != 0) continue;
        summary->groups[g].sent_bytes += sent;
        summary->groups[g].received_bytes += received;
    }
}

static enum el_status add_member(const struct el_job_measurement *m, int i, const char *host,
                                 const struct el_system_figures *system, const struct el_parts *parts, json_t *members)
{
    const struct el_spot spot = el_layout_spot(&m->open.layout, m->open.first + i);
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
                                        .layout = &m->open.layout,
                                        .spot = spot,
                                        .part = el_parts_of(parts, &spot),
                                        .ledger = &m->result.ledgers[i],
                                        .loading = &m->result.loading[i],
                                        .routed = &m->result.routed[i],
                                        .reserved_bytes = reading->reserved_bytes,
                                        .driver_bytes = read ? reading->end_bytes : -1,
                                        .grown_bytes = reading->end_bytes - reading->begin_bytes,
                                        .driver_reason = reading->reason,
                                        .module_loading = *identity.uuid ? getenv("CUDA_MODULE_LOADING") : NULL,
                                        .time_sliced = m->open.time_sliced,
                                        .simulated = el_device_is_simulated(device),
                                        .memory_limit_bytes = (int64_t)el_device_memory_limit(device),
                                        .system = system,
                                        .gpu = el_job_window_gpu(&m->window, i)};
    account.n_cores = el_device_cores(device, &account.cores);
    enum el_status status = ask_recorder(m, i, &account);
    if (status == EL_OK) add_beyond(&m->result.routed[i], &account);
    if (status == EL_OK) json_array_append_new(members, el_record_member(&account));
    el_memory_timeline_free(&account.timeline);
    free(account.lane.boxes);
    free(account.ops);
    return status;
}

static enum el_status add_members(const struct el_job_measurement *m, const struct el_system_figures *system,
                                  json_t *members)
{
    char host[256] = "";
    struct el_parts parts;
    gethostname(host, sizeof host - 1);
    enum el_status status = el_parts_open(&m->job->trial->train, &m->open.layout, true, &parts);
    for (int i = 0; i < m->open.n && status == EL_OK; i++) status = add_member(m, i, host, system, &parts, members);
    el_parts_close(&parts);
    return status;
}

enum el_status el_job_account(const struct el_job_measurement *m, json_t **account_p)
{
    int64_t *bytes = calloc((size_t)m->job->trial->n_devices, sizeof *bytes), own = m->window.resident_bytes;
    json_t *members = json_array(), *profile = NULL;
    struct el_system_figures system;
    el_job_window_compare(&m->window, &system);
    enum el_status status = bytes ? add_members(m, &system, members) : el_fail_errno("an account");
    if (status == EL_OK) status = el_job_profile(m, &profile);
    if (status != EL_OK) {
        json_decref(profile);
        json_decref(members);
        free(bytes);
        return status;
    }
    for (int i = 0; i < m->open.n; i++) {
        bytes[m->open.first + i] = m->window.memory[i].end_bytes;
        if (!el_device_is_host_memory(m->open.devices[i])) continue; /* a GPU's memory is not the process's */
        own = own < 0 || m->window.memory[i].end_bytes < 0 ? -1 : own - m->window.memory[i].end_bytes;
    }
    json_t *process =
        el_record_process(getpid(), el_bootstrap_rank(m->job->bootstrap), bytes, m->job->trial->n_devices, own);
    free(bytes);
    *account_p = json_pack("{s:o, s:o, s:o, s:o}", "members", members, "process", process, "system",
                           el_job_window_account(&m->window, &system), "profile", profile);
    return *account_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for an account");
}
