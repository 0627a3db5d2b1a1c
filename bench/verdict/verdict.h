/* Is a trial's figure to be believed? Every doubt is a row: name, threshold, and a function that examines the trial's
 * repeats.
 *
 *     verdict = el_verdict_judge(repeats, ok, warnings, rules);      for every trial
 *     n = el_verdict_doubtful(run, line, sizeof line);               --strict: number and commonest reason
 *
 * Trials in virtual time are "simulated", with findings as reasons. Others are "suspect" if a rule found something,
 * "unchecked" if an important rule could not look, else "valid". A simulated trial is doubtful if a finding is more
 * than informational. docs/metrics.md has the rows (a test compares them). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* In a repeat. */
enum { EL_VERDICT_STEPS_MIN = 10 };
/* Of a step: if the host needs more to queue it, GPU spans describe the host rather than the GPU. */
enum { EL_VERDICT_HOST_BOUND_PCT = 50 };

struct el_verdict_rule;

/* Input and findings of a rule. */
struct el_verdict_case {
    const struct el_verdict_rule *rule;
    const json_t *repeats; /* all, as in record.h */
    const json_t *ok;      /* finished ones */
    json_t *warnings, *rules;
    bool suspect, unchecked;
};

struct el_verdict_rule {
    const char *name;
    double limit;     /* NAN: no threshold */
    const char *unit; /* of the limit, with its blank: " %" */
    bool note;        /* informational: not suspect */
    bool gap;         /* something could not be checked */
    bool of_clock;    /* skipped for simulated trials: virtual time is equal in every repeat */
    void (*look)(struct el_verdict_case *c);
};
/* Ends with a NULL name. */
const struct el_verdict_rule *el_verdict_rules(void);
/* Appends each doubt to `warnings` (text) and `rules` (name). Returns "valid", "simulated", "unchecked" or
 * "suspect". */
const char *el_verdict_judge(const json_t *repeats, const json_t *ok, json_t *warnings, json_t *rules);
/* Number of doubtful trials; `line`: number and commonest reason, empty for none. */
size_t el_verdict_doubtful(const json_t *run, char *line, size_t bytes);

/* The first finished repeat's prediction (bench/job/worker.h); NULL: none. */
const json_t *el_verdict_prediction(const json_t *ok);

/* For rules: adds a finding unless it was added before. */
void el_verdict_say(struct el_verdict_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For rules: the member with the largest `value` above `least` over finished repeats, and `worst_p`. NULL, nothing
 * written: none. */
const json_t *el_verdict_worst_member(const struct el_verdict_case *c, double (*value)(const json_t *member),
                                      double least, double *worst_p);

/* Every rule; its function is in a rules_*.c. */
/* clang-format off */
#define EL_VERDICT_LIST(X)                                                                                             \
    X(reported) X(finished) X(repeats) X(steps) X(time) X(shared_core) X(physical_core) X(shared_gpu) X(others) X(stolen) X(frequency)  \
    X(throttled) X(gpu_throttled) X(host_bound) X(gpu_others) X(network_errors) X(gpu_links) X(heterogeneous_cores)    \
    X(heterogeneous_machines) X(drift) X(trend) X(loss) X(rounding) X(diverged) X(memory) X(grown) X(unattributed) X(injected)     \
    X(emulated) X(share_weights) X(checkpoints) X(unsettled) X(time_sliced) X(simulated) X(costs_suspect) X(costs_others) X(costs_beside)         \
    X(costs_sizes) X(costs_ranks) X(costs_borrowed) X(costs_rates) X(unchecked)
/* clang-format on */
#define EL_VERDICT_DECLARE(name) void el_verdict_##name(struct el_verdict_case *c);
EL_VERDICT_LIST(EL_VERDICT_DECLARE)
