/* The verdict: is a trial's figure to be believed? Every doubt is a row: name, threshold, and a function that
 * looks at the trial's repeats and says what it found, how much, and what to do.
 *
 *     verdict = el_verdict_judge(repeats, ok, warnings, rules);      record.c: every trial is stamped
 *     n = el_verdict_doubtful(run, line, sizeof line);               --strict: how many, and the commonest reason
 *
 * A trial whose times are virtual is "simulated", whatever rules found: that are its reasons. Any other is "suspect"
 * where a rule found something, "unchecked" where none did but one that matters could not look, else "valid". A
 * simulated trial is doubtful where a rule found more than what is informational. The rows are those of the table in
 * docs/metrics.md (a test compares them). Errors: none. What a machine never tells (a frequency, throttling) raises no
 * doubt.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* In a repeat. */
enum { EL_VERDICT_STEPS_MIN = 10 };
/* Of a step: where the host needs more of it to queue it, spans of a GPU's ops say more of the host than of the GPU. */
enum { EL_VERDICT_HOST_BOUND_PCT = 50 };

struct el_verdict_rule;

/* The input of a rule, and where it reports its findings. */
struct el_verdict_case {
    const struct el_verdict_rule *rule;
    const json_t *repeats; /* all of the trial, documents as in record.h */
    const json_t *ok;      /* those that finished */
    json_t *warnings, *rules;
    bool suspect, unchecked;
};

struct el_verdict_rule {
    const char *name;
    double limit;     /* NAN: the thing itself is enough */
    const char *unit; /* of the limit, as it follows the number: " %" */
    bool note;        /* informational: no ground for suspicion */
    bool gap;         /* something could not be checked */
    bool of_clock;    /* not for simulated trials: their time is virtual, and the same in every repeat */
    void (*look)(struct el_verdict_case *c);
};
/* Ended by a row whose name is NULL. */
const struct el_verdict_rule *el_verdict_rules(void);
/* Appends each doubt to `warnings` (a text) and to `rules` (its rule's name). Returns "valid", "simulated",
 * "unchecked" or "suspect". */
const char *el_verdict_judge(const json_t *repeats, const json_t *ok, json_t *warnings, json_t *rules);
/* How many of a run's trials are doubtful; in `line` their number and the commonest reason (empty for none). */
size_t el_verdict_doubtful(const json_t *run, char *line, size_t bytes);

/* What a simulated trial's first finished repeat says of its times (bench/job/worker.h); NULL: nothing. */
const json_t *el_verdict_prediction(const json_t *ok);

/* For rules: says it, unless the same has been said. */
void el_verdict_say(struct el_verdict_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For rules: the member with the largest `value` above `least` over all finished repeats; `worst_p` gets that. NULL,
 * and nothing is written: none has. */
const json_t *el_verdict_worst_member(const struct el_verdict_case *c, double (*value)(const json_t *member),
                                      double least, double *worst_p);

/* Every rule; its function of that name is in a rules_*.c, by its input. */
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
