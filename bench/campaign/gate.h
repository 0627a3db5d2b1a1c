/* The numerical gate: only modes whose first steps agree with the reference are timed (limits: runtime/gate/gate.h).
 * Each mode runs once, at its smallest batch, and once more if gradients are views of buckets. A crash or time-out is
 * tried twice; on GPUs, gradients that may be off by chance are tried with two more seeds. After that, or without
 * memory, the mode's trials are rows with that status and reason. */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/campaign/progress.h"

/* Fills campaign->gate with a row per mode: {mode, bucket_view: true|false, status: ok|oom|timeout|failed|absent,
 * agrees: true|false|null, reason, loss, reference_loss, worst, parameter}; null: could not be compared. No rows if
 * kernels do not compute. Earlier agreements are kept. */
enum el_status el_gate_run(struct el_campaign *campaign, const struct el_runner *runner, struct el_progress *progress);
/* Why the trial's mode must not be timed, with the trial's status; or NULL. */
const char *el_gate_refusal(const struct el_campaign *campaign, const struct el_trial *trial, const char **status_p);

/* Completes a verdict's row. New reference. */
json_t *el_gate_judge(const char *mode, bool bucket_view, const json_t *verdict);
