/* The verdict: is a trial's figure to be believed? Every doubt is a row: name, threshold, words, and a function that
 * looks at the trial's repeats and says what it found, how much, and what to do.
 *
 *     verdict = el_verdict_judge(repeats, ok, warnings, rules);      record.c: every trial is stamped
 *     n = el_verdict_doubtful(run, line, sizeof line);               --strict: how many, and the commonest reason
 *
 * A trial is "suspect" where a rule found something, "unchecked" where none did but one that matters could not look,
 * else "valid". The rows are those of the table in docs/metrics.md (a test compares them). Errors: none. What a machine
 * never tells (a frequency, throttling) raises no doubt.
 */
#ifndef EL_BENCH_VERDICT_H
#define EL_BENCH_VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* In a repeat. */
enum { EL_VERDICT_STEPS_MIN = 10 };

struct el_verdict_rule;

/* What a rule looks at, and where it says what it found. */
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
    const char *words; /* when it speaks */
};
/* Ended by a row whose name is NULL. */
const struct el_verdict_rule *el_verdict_rules(void);
/* What the rule of that name makes of a trial: "valid" (it is informational), "unchecked", "suspect". NULL is legal. */
const char *el_verdict_of_rule(const char *name);
/* "5 %", or "-". `text` has at least 32 bytes. */
const char *el_verdict_limit(const struct el_verdict_rule *rule, char *text);

/* Appends each doubt to `warnings` (a text) and to `rules` (its rule's name). Returns "valid", "unchecked" or
 * "suspect". */
const char *el_verdict_judge(const json_t *repeats, const json_t *ok, json_t *warnings, json_t *rules);
/* How many of a run's trials are not valid; in `line` their number and the commonest reason (empty for none). */
size_t el_verdict_doubtful(const json_t *run, char *line, size_t bytes);

/* For rules: says it, unless the same has been said. */
void el_verdict_say(struct el_verdict_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The rules' functions, by what they look at: steps.c, machine.c, gpu.c, memory.c. */
void el_verdict_reported(struct el_verdict_case *c);
void el_verdict_finished(struct el_verdict_case *c);
void el_verdict_repeats(struct el_verdict_case *c);
void el_verdict_steps(struct el_verdict_case *c);
void el_verdict_time(struct el_verdict_case *c);
void el_verdict_drift(struct el_verdict_case *c);
void el_verdict_trend(struct el_verdict_case *c);
void el_verdict_loss(struct el_verdict_case *c);
void el_verdict_memory(struct el_verdict_case *c);
void el_verdict_grown(struct el_verdict_case *c);
void el_verdict_unattributed(struct el_verdict_case *c);
void el_verdict_injected(struct el_verdict_case *c);
void el_verdict_unchecked(struct el_verdict_case *c);
void el_verdict_unsettled(struct el_verdict_case *c);
void el_verdict_time_sliced(struct el_verdict_case *c);
void el_verdict_simulated(struct el_verdict_case *c);
void el_verdict_shared_core(struct el_verdict_case *c);
void el_verdict_shared_gpu(struct el_verdict_case *c);
void el_verdict_others(struct el_verdict_case *c);
void el_verdict_stolen(struct el_verdict_case *c);
void el_verdict_frequency(struct el_verdict_case *c);
void el_verdict_throttled(struct el_verdict_case *c);
void el_verdict_gpu_throttled(struct el_verdict_case *c);
void el_verdict_host_bound(struct el_verdict_case *c);
void el_verdict_gpu_others(struct el_verdict_case *c);
void el_verdict_heterogeneous_cores(struct el_verdict_case *c);
void el_verdict_heterogeneous_memory(struct el_verdict_case *c);
void el_verdict_heterogeneous_machines(struct el_verdict_case *c);

#endif
