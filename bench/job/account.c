/* A process's account of a launch: what each of its members did and held, what recording cost, and what the system says
 * of the process. */
#include <stdlib.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "bench/record/record.h"
#include "profiles/cost.h"
#include "runtime/layout/parts.h"

/* What the recorder says of a member. */
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
    if (status == EL_OK) json_array_append_new(members, el_record_member(&account));
    el_memory_timeline_free(&account.timeline);
    free(account.lane.boxes);
    free(account.ops);
    return status;
}

/* ---- what recording cost: ranks record side by side, so a step loses what the busiest recorder takes, not the sum
 * over ranks; within a rank the count adds up its streams (profiles/cost.h) ---- */

static json_t *cost_of(const struct el_cost_events *events, const struct el_cost_prices *prices)
{
    json_t *counted =
        el_json_of(EL_KEY("clock_reads", events->clock_reads), EL_KEY("cpu_clock_reads", events->cpu_clock_reads),
                   EL_KEY("event_records", events->event_records), EL_KEY("kept_bytes", events->kept_bytes));
    json_t *each =
        el_json_of(EL_KEY("clock_read", prices->clock_read_ns), EL_KEY("cpu_clock_read", prices->cpu_clock_read_ns),
                   EL_KEY("event_record", prices->event_record_ns), EL_KEY("kept_byte", prices->kept_byte_ns));
    return el_json_of(EL_KEY("events", counted), EL_KEY("cost_ns", each),
                      EL_KEY("counted_us", el_cost_ns(events, prices) * 1e-3));
}

/* Of the recorder of this process that has most to do; null where there is none, or where it kept no step. */
static enum el_status busiest_cost(struct el_recorder *const *recorders, int n_recorders, struct el_device *device,
                                   json_t **cost_p)
{
    struct el_cost_prices prices;
    json_t *most = json_null();
    for (int i = 0; i < n_recorders; i++) {
        struct el_cost_events events;
        struct el_step_event step;
        if (el_recorder_step_count(recorders[i]) == 0) continue;
        step = el_recorder_step(recorders[i], 0);
        if (step.simulated) continue;
        if (json_is_null(most)) { /* once a process */
            EL_TRY(el_cost_measure(recorders[i], &prices));
            EL_TRY(el_device_event_cost(device, &prices.event_record_ns));
        }
        el_cost_count(step.ops, step.n_ops, el_device_is_asynchronous(device), &events);
        if (el_cost_ns(&events, &prices) * 1e-3 <= el_json_number(most, "counted_us")) continue;
        json_decref(most);
        most = cost_of(&events, &prices);
    }
    *cost_p = most;
    return EL_OK;
}

json_t *el_job_cost_of_ranks(const json_t *accounts)
{
    json_t *most = NULL;
    EL_EACH(account, accounts) {
        json_t *cost = json_object_get(account, "recorder_cost");
        if (!json_is_object(cost)) continue;
        if (!most || el_json_number(cost, "counted_us") > el_json_number(most, "counted_us")) most = cost;
    }
    return most ? json_incref(most) : json_null();
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
    json_t *members = json_array(), *cost = NULL, *profile = NULL;
    struct el_system_figures system;
    el_job_window_compare(&m->window, &system);
    enum el_status status = bytes ? add_members(m, &system, members) : el_fail_errno("an account");
    if (status == EL_OK) status = busiest_cost(m->recorders, m->n_recorders, m->open.devices[0], &cost);
    if (status == EL_OK) status = el_job_profile(m, &profile);
    if (status != EL_OK) {
        json_decref(profile);
        json_decref(cost);
        json_decref(members);
        free(bytes);
        return status;
    }
    for (int i = 0; i < m->open.n; i++) {
        bytes[m->open.first + i] = m->window.memory[i].end_bytes;
        if (!el_device_is_host_memory(m->open.devices[i])) continue; /* a GPU's memory is no part of the process's */
        own = own < 0 || m->window.memory[i].end_bytes < 0 ? -1 : own - m->window.memory[i].end_bytes;
    }
    json_t *process =
        el_record_process(getpid(), el_bootstrap_rank(m->job->bootstrap), bytes, m->job->trial->n_devices, own);
    free(bytes);
    *account_p = json_pack("{s:o, s:o, s:o, s:o, s:o}", "members", members, "process", process, "system",
                           el_job_window_account(&m->window, &system), "recorder_cost", cost, "profile", profile);
    return *account_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for an account");
}
