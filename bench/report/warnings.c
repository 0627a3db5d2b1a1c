/* Each warning once, for any objects with `warnings` and `warning_rules`. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/verdict/verdict.h"

static const char *text_at(const json_t *trial, const char *list, size_t k)
{
    return json_string_value(json_array_get(json_object_get(trial, list), k));
}

const char *el_report_warned(const json_t *trial, const char *rule)
{
    EL_EACH(name, json_object_get(trial, "warning_rules"))
        if (el_json_is(name, "", rule)) return text_at(trial, "warnings", name_at.i);
    return NULL;
}

static bool is_note(const char *name)
{
    for (const struct el_verdict_rule *rule = el_verdict_rules(); name && rule->name; rule++)
        if (strcmp(rule->name, name) == 0) return rule->note;
    return false;
}

const char *el_report_doubt(const json_t *trial)
{
    const char *verdict = el_report_verdict(trial);
    if (strcmp(verdict, "valid") == 0) return NULL;
    for (size_t k = 0; k < json_array_size(json_object_get(trial, "warnings")); k++) {
        const char *text = text_at(trial, "warnings", k);
        if (text && !is_note(text_at(trial, "warning_rules", k))) return text;
    }
    return strcmp(verdict, "simulated") == 0 ? NULL : "the record gives no reason";
}

/* Equal rules are one warning, whatever their figures; `reported` compares texts. */
static bool same_warning(const json_t *a, size_t i, const json_t *b, size_t k)
{
    const char *rule_a = text_at(a, "warning_rules", i), *rule_b = text_at(b, "warning_rules", k);
    const char *text_a = text_at(a, "warnings", i), *text_b = text_at(b, "warnings", k);
    if (rule_a && rule_b && strcmp(rule_a, "reported") != 0) return strcmp(rule_a, rule_b) == 0;
    return text_a && text_b && strcmp(text_a, text_b) == 0;
}

/* 0 if an earlier trial has the warning. *alike_p: all with equal text. */
static size_t count_warned(const json_t *trials, size_t first, size_t k, bool *alike_p)
{
    const json_t *from = json_array_get(trials, first);
    size_t count = 0;
    *alike_p = true;
    EL_EACH(trial, trials) {
        size_t n = json_array_size(json_object_get(trial, "warnings")), w = 0;
        while (w < n && !same_warning(from, k, trial, w)) w++;
        if (w == n) continue;
        if (trial_at.i < first || (trial_at.i == first && w < k)) return 0;
        *alike_p = *alike_p && json_equal(json_array_get(json_object_get(trial, "warnings"), w),
                                          json_array_get(json_object_get(from, "warnings"), k));
        count++;
    }
    return count;
}

void el_report_warnings(const json_t *trials, const char *but, FILE *out)
{
    EL_EACH(trial, trials)
        EL_EACH(warning, json_object_get(trial, "warnings")) {
            const char *text = json_string_value(warning), *rule = text_at(trial, "warning_rules", warning_at.i);
            bool alike, left_out = *but && rule && strncmp(rule, but, strlen(but)) == 0;
            size_t count = text == NULL || left_out ? 0 : count_warned(trials, trial_at.i, warning_at.i, &alike);
            if (count == 0) continue;
            el_table_begin(out, EL_TABLE_YELLOW);
            el_text_say("! ", "  ", out, "%s (%zu of %zu trials%s)", text, count, json_array_size(trials),
                        alike ? "" : ", with figures of their own");
            el_table_end(out);
        }
}
