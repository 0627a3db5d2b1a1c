/* The parts of a trial's record that are statistics over its repeats. For the files of this room.
 *
 * `ok` is an array of those repeats (documents as in record.h) that were finished; it may be empty: then figures are
 * null. All results are new references. */
#ifndef EL_BENCH_RECORD_PARTS_H
#define EL_BENCH_RECORD_PARTS_H

#include "bench/record/record.h"
#include "bench/stats/stats.h"

json_t *el_trial_throughput(const json_t *ok, double global_batch);
/* {"median", "mean", "p95"}: each within a launch, then the geometric mean over those launches that have steps. */
json_t *el_trial_step_ms(const json_t *repeats);
/* One repeat's samples a second; NAN where it has no steps. */
double el_repeat_samples_per_s(const json_t *repeat, double global_batch);

/* Times are medians over repeats; memory, host and pid are the first finished repeat's, the memory's timeline that of
 * the repeat with the median throughput. */
json_t *el_trial_per_device(const json_t *ok, double global_batch);
/* The position of the member that worked longest in a step, waiting in collectives left aside; -1: not known. */
int el_trial_slowest(const json_t *per_device);
json_t *el_trial_comm(const json_t *per_device, int slowest, const json_t *breakdown);
/* Where the step goes, from the control blocks of the slowest member, means over the repeats (docs/metrics.md):
 * step = compute_alone + contention + exposed + other + idle; exposed_step = contention + exposed + idle_change.
 * null where there were none. */
json_t *el_trial_breakdown(const json_t *ok, int slowest);
/* The share of the stages' time that is bubble, in per cent: a launch's, then the median over launches. */
double el_trial_bubble_pct(const json_t *ok);
/* Bus bandwidth of a step's all-reduces, GB/s: a launch's, then the median over launches; NAN: there are none. */
double el_trial_busbw(const json_t *ok);
/* What recording costs: counted, and toggled where repeats have control blocks of the recorder (docs/metrics.md). */
json_t *el_trial_recorder(const json_t *ok);
/* Each measure of one value of each launch's "members", then the median over launches. */
json_t *el_launches_imbalance(const json_t *ok, double (*value)(const json_t *member));
/* Of memory, busy time and bytes moved; null for one device. */
json_t *el_trial_imbalance(const json_t *ok);

#endif
