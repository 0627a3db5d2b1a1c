/* A trial of CPU devices and its repeats, as tests of records make them: two devices of which the first holds and does
 * more. */
#pragma once

#include <stdio.h>

#include "bench/record/record.h"

static inline struct el_trial trial_of(const char *mode, int n_devices)
{
    struct el_trial trial = {.n_devices = n_devices, .procs = 1, .record = true};
    snprintf(trial.id, sizeof trial.id, "%s", "0123456789abcdef");
    snprintf(trial.train.mode, sizeof trial.train.mode, "%s", mode);
    snprintf(trial.train.model.name, sizeof trial.train.model.name, "textcnn");
    trial.train.global_batch = 64;
    trial.train.n_devices = n_devices;
    for (int i = 0; i < n_devices; i++) {
        snprintf(trial.devices[i].backend, sizeof trial.devices[i].backend, "cpu");
        trial.devices[i].index = i;
    }
    return trial;
}

/* Device 0 holds 300 bytes and works 8 ms, device 1 holds 100 and works 6 ms, in a step of 10 ms times `stretch`. */
static inline json_t *member_of(int position, double stretch)
{
    struct el_ledger ledger = {.peak_bytes = position == 0 ? 300 : 100};
    ledger.at_peak_by_tag[EL_TAG_GRAD] = ledger.peak_bytes - 20;
    ledger.at_peak_by_tag[EL_TAG_INPUT] = 20;
    ledger.peak_by_tag[EL_TAG_GRAD] = 290;
    struct el_device_summary s = {.n_steps = 4, .step_s = 0.010 * stretch, .comm_total_s = 0.002, .comm_bytes = 1000};
    s.phase_s[EL_PHASE_FORWARD] = (position == 0 ? 0.008 : 0.006) * stretch;
    s.phase_s[EL_PHASE_COMM] = 0.002;
    s.busy_s = s.phase_s[EL_PHASE_FORWARD];
    s.comm_overlapped_s = 0.0005;
    s.comm_exposed_s = 0.0015;
    s.idle_s = 0.001;
    s.sent_bytes = position == 0 ? 3000 : 1000;
    s.arrivals_known = position == 0;
    s.wait_s = 0.0008;
    struct el_device_summary on = {.step_s = 0.012 * stretch, .compute_s = 0.007, .comm_exposed_s = 0.002};
    on.other_s = 0.001;
    on.idle_s = on.step_s - 0.010;
    struct el_device_summary off = {.step_s = 0.008, .compute_s = 0.006, .other_s = 0.0005, .idle_s = 0.0015};
    bool known = position == 0;
    return el_record_member(&(struct el_member_account){.device = position == 0 ? "cpu:0" : "cpu:1",
                                                        .host = "h",
                                                        .rank = position,
                                                        .pid = 7,
                                                        .ledger = &ledger,
                                                        .driver_bytes = known ? 340 : -1,
                                                        .grown_bytes = 8,
                                                        .driver_reason = "not reported",
                                                        .controlled = known,
                                                        .on = on,
                                                        .off = off,
                                                        .recorded = true,
                                                        .summary = s});
}

static inline json_t *repeat_of(int k, int n_devices, double step_ms, int n_steps)
{
    json_t *steps = json_array(), *members = json_array(), *loss = json_array();
    for (int i = 0; i < n_steps; i++) json_array_append_new(steps, json_real(step_ms + (i % 2 == 0 ? 0.5 : -0.5)));
    for (int i = 0; i < 3; i++) json_array_append_new(loss, json_real(0.7 - 0.1 * i));
    for (int i = 0; i < n_devices; i++) json_array_append_new(members, member_of(i, 1 + 0.1 * k));
    return json_pack("{s:i, s:i, s:i, s:s, s:n, s:o, s:o, s:o, s:[i,i], s:[], s:{s:f, s:f, s:f}}", "schema", 2,
                     "repeat", k, "order", 10 + k, "status", "ok", "reason", "step_ms", steps, "members", members,
                     "loss", loss, "batch_per_device", 32, 32, "warnings", "system", "window_s", 1.0, "others_pct", 1.0,
                     "steal_pct", 0.0);
}

static inline json_t *repeats_of(int n, int n_devices)
{
    json_t *repeats = json_array();
    for (int k = 0; k < n; k++) json_array_append_new(repeats, repeat_of(k, n_devices, 8.0, 32));
    return repeats;
}
