/* Rule names stay: they are in users' records and CI. */
#include "bench/verdict/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/stats/stats.h"

enum { TEXT_BYTES = 320 };

#define ANY      NAN
#define ALWAYS   .of_clock = false
#define OF_CLOCK .of_clock = true
#define NOTE     .note = true
#define GAP      .gap = true
#define ROW(name_, limit_, unit_, ...)                                                                                 \
    {                                                                                                                  \
        .name = #name_, .limit = limit_, .unit = unit_, .look = el_verdict_##name_, __VA_ARGS__                        \
    }

static const struct el_verdict_rule rules[] = {
    ROW(reported, ANY, "", ALWAYS),
    ROW(finished, ANY, "", ALWAYS),
    ROW(repeats, EL_REPEATS_MIN, "", OF_CLOCK, NOTE),
    ROW(steps, EL_VERDICT_STEPS_MIN, "", OF_CLOCK),
    ROW(time, 0.2, " s", OF_CLOCK),
    ROW(shared_core, ANY, "", ALWAYS),
    ROW(physical_core, 60, " %", OF_CLOCK),
    ROW(shared_gpu, ANY, "", ALWAYS),
    ROW(others, 5, " %", ALWAYS),
    ROW(stolen, 2, " %", ALWAYS),
    ROW(frequency, 10, " %", ALWAYS),
    ROW(throttled, ANY, "", ALWAYS),
    ROW(gpu_throttled, 5, " %", ALWAYS),
    ROW(host_bound, EL_VERDICT_HOST_BOUND_PCT, " %", OF_CLOCK),
    ROW(gpu_others, ANY, "", ALWAYS),
    ROW(network_errors, 0.01, " %", ALWAYS),
    ROW(gpu_links, 8, " a minute", ALWAYS),
    ROW(heterogeneous_cores, 0.75, "", ALWAYS),
    ROW(heterogeneous_machines, ANY, "", ALWAYS),
    ROW(drift, ANY, "", OF_CLOCK),
    ROW(trend, ANY, "", OF_CLOCK),
    ROW(loss, ANY, "", ALWAYS),
    ROW(rounding, ANY, "", NOTE),
    ROW(diverged, ANY, "", ALWAYS),
    ROW(memory, ANY, "", ALWAYS),
    ROW(grown, 1, " MiB", ALWAYS),
    ROW(unattributed, 5, " %", ALWAYS),
    ROW(injected, ANY, "", ALWAYS),
    ROW(emulated, ANY, "", ALWAYS),
    ROW(share_weights, ANY, "", NOTE),
    ROW(checkpoints, 2, " %", OF_CLOCK),
    ROW(unsettled, ANY, "", OF_CLOCK),
    ROW(time_sliced, ANY, "", NOTE),
    ROW(simulated, ANY, "", NOTE),
    ROW(costs_suspect, ANY, "", ALWAYS),
    ROW(costs_others, 5, " %", ALWAYS),
    ROW(costs_beside, ANY, "", ALWAYS),
    ROW(costs_sizes, 1, " %", ALWAYS),
    ROW(costs_ranks, ANY, "", ALWAYS),
    ROW(costs_borrowed, 1, " %", ALWAYS),
    ROW(costs_rates, 1, " %", ALWAYS),
    ROW(unchecked, ANY, "", OF_CLOCK, GAP),
    {.name = NULL},
};

const struct el_verdict_rule *el_verdict_rules(void)
{
    return rules;
}

void el_verdict_say(struct el_verdict_case *c, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (el_json_has(c->warnings, text)) return;
    json_t *string = json_string(text);
    json_array_append_new(c->warnings, string != NULL ? string : json_string("a warning that is not UTF-8"));
    json_array_append_new(c->rules, json_string(c->rule->name));
    c->unchecked |= c->rule->gap;
    c->suspect |= !c->rule->note && !c->rule->gap;
}

const json_t *el_verdict_worst_member(const struct el_verdict_case *c, double (*value)(const json_t *member),
                                      double least, double *worst_p)
{
    const json_t *found = NULL;
    EL_EACH(repeat, c->ok) {
        EL_EACH(member, json_object_get(repeat, "members")) {
            double own = value(member);
            if (!(own > least)) continue;
            least = *worst_p = own;
            found = member;
        }
    }
    return found;
}

const char *el_verdict_judge(const json_t *repeats, const json_t *ok, json_t *warnings, json_t *names)
{
    struct el_verdict_case c = {.repeats = repeats, .ok = ok, .warnings = warnings, .rules = names};
    bool simulated = json_is_true(el_json_at(ok, "0.simulated"));
    for (c.rule = rules; c.rule->name != NULL; c.rule++) {
        if (!simulated || !c.rule->of_clock) c.rule->look(&c);
    }
    return simulated ? "simulated" : c.suspect ? "suspect" : c.unchecked ? "unchecked" : "valid";
}

static bool is_informational(const char *name)
{
    for (const struct el_verdict_rule *rule = rules; name && rule->name; rule++)
        if (strcmp(rule->name, name) == 0) return rule->note;
    return false;
}

static bool is_doubtful(const json_t *trial)
{
    bool doubtful = false;
    if (!el_json_is(trial, "verdict", "simulated")) return !el_json_is(trial, "verdict", "valid");
    EL_EACH(name, json_object_get(trial, "warning_rules")) doubtful |= !is_informational(json_string_value(name));
    return doubtful;
}

static size_t count_rule(const json_t *trials, const struct el_verdict_rule *rule, const char **text_p)
{
    size_t count = 0;
    EL_EACH(trial, trials) {
        const json_t *names = json_object_get(trial, "warning_rules");
        if (!is_doubtful(trial)) continue;
        EL_EACH(name, names) {
            if (!el_json_is(name, "", rule->name)) continue;
            if (count++ == 0)
                *text_p = json_string_value(json_array_get(json_object_get(trial, "warnings"), name_at.i));
            break;
        }
    }
    return count;
}

size_t el_verdict_doubtful(const json_t *run, char *line, size_t bytes)
{
    const json_t *trials = json_object_get(run, "trials");
    size_t n = json_array_size(trials), doubtful = 0, unchecked = 0, simulated = 0, most = 0;
    const char *reason = "a trial did not finish", *word = "suspect";
    EL_EACH(trial, trials) {
        doubtful += is_doubtful(trial);
        unchecked += el_json_is(trial, "verdict", "unchecked");
        simulated += is_doubtful(trial) && el_json_is(trial, "verdict", "simulated");
    }
    for (const struct el_verdict_rule *rule = rules; rule->name != NULL; rule++) {
        const char *text = NULL;
        size_t count = rule->note ? 0 : count_rule(trials, rule, &text);
        if (count <= most || text == NULL) continue;
        most = count;
        reason = text;
    }
    if (simulated > 0)
        word = simulated == doubtful ? "simulated, with doubts" : "doubtful";
    else if (unchecked > 0)
        word = unchecked == doubtful ? "unchecked" : "suspect or unchecked";
    if (bytes > 0) *line = '\0';
    if (doubtful > 0)
        snprintf(line, bytes, "%zu of %zu trials %s %s; the commonest reason: %s", doubtful, n,
                 doubtful == 1 ? "is" : "are", word, reason);
    return doubtful;
}
