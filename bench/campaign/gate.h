/* The numerical gate: no mode is timed whose first steps differ from the reference, or could not be compared with it.
 *
 * In f32 by the fast kernels: loss within 1e-6 (relative where it is above 1), each parameter's gradient within 1e-4 in
 * relative L2 norm. Each mode once, at its smallest batch, and once
 * more where gradients are views of buckets. A gate that crashes or times out is run a second time; where
 * that fails too, or memory does not suffice, the mode's trials are rows with that status and reason. */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/campaign/progress.h"
#include "runtime/gate/gate.h"

/* Relative differences that the order of sums explains. */
#define EL_GATE_LOSS          1e-6
#define EL_GATE_GRADIENT      1e-4
/* Of GPUs from the reference kernels: other arithmetic moves a few maxima and ReLUs, each of which takes a sample's
 * gradient elsewhere; a mode that is wrong is off by its devices' number or by a sample's whole part.
 */
#define EL_GATE_GPU_LOSS      1e-3
#define EL_GATE_GPU_GRADIENT  5e-2
/* Where values are rounded to bf16, in another order of sums: gradients of few elements are what is left of larger
 * ones, which are rounded by a 256th (0.06 of a bias of two classes was seen). */
#define EL_GATE_BF16_LOSS     1e-2
#define EL_GATE_BF16_GRADIENT 0.2

/* Fills campaign->gate with a row a mode: {mode, bucket_view: true|false, status: ok|oom|timeout|failed|absent, agrees:
 * true|false|null, reason, loss, reference_loss, worst, parameter}; null: could not be compared. No rows where kernels
 * do not compute. What agreed in an earlier command is not run again. */
enum el_status el_gate_run(struct el_campaign *campaign, const struct el_runner *runner, struct el_progress *progress);
/* Why the trial's mode must not be timed, and the status of such a trial; or NULL. */
const char *el_gate_refusal(const struct el_campaign *campaign, const struct el_trial *trial, const char **status_p);

/* The judgement itself: completes a verdict's row (tests). New reference. */
json_t *el_gate_judge(const char *mode, bool bucket_view, const json_t *verdict);
