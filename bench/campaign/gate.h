/* The numerical gate: no mode is timed whose first steps differ from the reference, or could not be compared with it.
 *
 * How far they may be apart is runtime/gate/gate.h's. Each mode once, at its smallest batch, and once more where
 * gradients are views of buckets. A gate that crashes or times out is run a second time, and on GPUs one whose
 * gradients may be off by chance is run twice more, with other seeds; where that fails too, or memory does not suffice,
 * the mode's trials are rows with that status and reason. */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/campaign/progress.h"

/* Fills campaign->gate with a row a mode: {mode, bucket_view: true|false, status: ok|oom|timeout|failed|absent, agrees:
 * true|false|null, reason, loss, reference_loss, worst, parameter}; null: could not be compared. No rows where kernels
 * do not compute. What agreed in an earlier command is not run again. */
enum el_status el_gate_run(struct el_campaign *campaign, const struct el_runner *runner, struct el_progress *progress);
/* Why the trial's mode must not be timed, and the status of such a trial; or NULL. */
const char *el_gate_refusal(const struct el_campaign *campaign, const struct el_trial *trial, const char **status_p);

/* The judgement itself: completes a verdict's row (tests). New reference. */
json_t *el_gate_judge(const char *mode, bool bucket_view, const json_t *verdict);
