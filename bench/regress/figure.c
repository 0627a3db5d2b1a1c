/* Figures into cells. The rule that judges a cell is elsewhere; here a side is missing, no number, or in another unit.
 */
#include "bench/regress/figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/options/options.h"
#include "bench/regress/program.h"
#include "bench/regress/session.h"

enum { METRIC_BYTES = 96, NAMES_MAX = 64 };

static bool is_timed(const char *name, size_t length)
{
    for (const char *const *timed = el_session_timed(); *timed; timed++)
        if (strlen(*timed) == length && !strncmp(*timed, name, length)) return true;
    return false;
}

static bool is_figure(const char *name, size_t length)
{
    char word[METRIC_BYTES];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    const struct el_metric *metric = el_metric_find(word);
    return is_timed(name, length) || (metric && el_session_is_exact(metric));
}

static enum el_status fail_name(const char *name, size_t length)
{
    const char *names[NAMES_MAX + 1] = {NULL};
    char word[METRIC_BYTES];
    size_t n = 0;
    for (const char *const *timed = el_session_timed(); *timed; timed++) names[n++] = *timed;
    for (const struct el_metric *m = el_metric_list(); m->name && n < NAMES_MAX; m++)
        if (el_session_is_exact(m)) names[n++] = m->name;
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    return el_fail_unknown("metric", word, names);
}

/* "step_ms" and "peak[1]" are in "step_ms,peak". */
static bool listed(const char *name, const char *metrics)
{
    size_t length = strcspn(name, "["), whole = strlen(name);
    for (const char *at = metrics; *at;) {
        size_t n = strcspn(at, ",");
        if ((n == length || n == whole) && !strncmp(at, name, n)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static enum el_status check_of_program(const json_t *figures, const char *metrics)
{
    for (const char *at = metrics; *at;) {
        char word[METRIC_BYTES];
        bool found = false;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        json_t *all = (json_t *)(uintptr_t)figures;
        for (void *i = json_object_iter(all); i && !found; i = json_object_iter_next(all, i))
            found = listed(json_object_iter_key(i), word);
        if (!found) return el_fail(EL_ERR_INVALID, "--metric: the current run has no figure '%s'", word);
        at += strcspn(at, ","), at += *at == ',';
    }
    return EL_OK;
}

enum el_status el_figure_check(const json_t *run, const char *metrics)
{
    const json_t *trial = json_array_get(json_object_get(run, "trials"), 0);
    if (el_program_is(trial)) return check_of_program(json_object_get(trial, "figures"), metrics ? metrics : "");
    for (const char *at = metrics ? metrics : ""; *at;) {
        size_t length = strcspn(at, ",");
        if (!is_figure(at, length)) return fail_name(at, length);
        at += length + (at[length] == ',');
    }
    return EL_OK;
}

bool el_figure_selected(const json_t *session, const char *name, const char *metrics)
{
    const json_t *figure = json_object_get(json_object_get(session, "figures"), name);
    if (metrics && *metrics) return listed(name, metrics);
    if (el_program_is(session)) return true;
    bool exact = json_is_true(json_object_get(figure, "exact")), first = !strcmp(name, el_session_timed()[0]);
    return first || (exact && !is_timed(name, strcspn(name, "[")));
}

bool el_figure_leads(const json_t *session, const char *name)
{
    return el_program_is(session) || !strcmp(name, el_session_timed()[0]);
}

bool el_figure_nothing(const json_t *base, const json_t *head)
{
    return json_is_true(json_object_get(base, "exact")) && el_json_number(base, "value") == 0 &&
           el_json_number(head, "value") == 0;
}

static enum el_better better_of(const json_t *figure)
{
    const char *text = el_json_text(figure, "better", "lower");
    if (!strcmp(text, el_better_text(EL_BETTER_HIGHER))) return EL_BETTER_HIGHER;
    return strcmp(text, el_better_text(EL_BETTER_LOWER)) ? EL_BETTER_NEITHER : EL_BETTER_LOWER;
}

static bool is_exact(const json_t *figure)
{
    return json_is_true(json_object_get(figure, "exact"));
}

struct el_regress_cell *el_figure_cell(const json_t *base, const json_t *head, const char *name,
                                       enum el_cell_kind otherwise, struct el_regress_set *set)
{
    char full[EL_CELL_NAME_BYTES];
    const json_t *figure = json_object_get(json_object_get(base, "figures"), name);
    const json_t *now = json_object_get(json_object_get(head, "figures"), name);
    bool program = el_program_is(base);
    snprintf(full, sizeof full, "%s%s%s", program ? "" : el_json_text(head, "name", "?"), program ? "" : " ", name);
    struct el_regress_cell *cell = el_regress_add(set, full);
    if (!cell) return NULL;
    snprintf(cell->unit, sizeof cell->unit, "%s", el_json_text(figure, "unit", ""));
    cell->better = better_of(figure);
    cell->kind = is_exact(figure) && (!now || is_exact(now)) ? EL_CELL_EXACT : otherwise;
    return cell;
}

bool el_figure_comparable(const json_t *base, const json_t *head, struct el_regress_cell *cell)
{
    const char *before = el_json_text(base, "unit", ""), *now = el_json_text(head, "unit", "");
    double value = el_json_number(head, "value"), earlier = el_json_number(base, "value");
    bool exact = cell->kind == EL_CELL_EXACT;
    if (!head)
        el_cell_unreadable(cell, "the current run has no such figure, the baseline has");
    else if (strcmp(before, now))
        el_cell_unreadable(cell, "the unit is %s, and was %s", *now ? now : "none", *before ? before : "none");
    else if (isnan(earlier))
        el_cell_unreadable(cell, "the baseline's figure is no number, or not above 0");
    else if (isnan(value))
        el_cell_unreadable(cell, "the current figure is no number, or not above 0");
    else if (!exact && !(value > 0))
        el_cell_unreadable(cell, "the current figure is %g, and must be above 0", value);
    else if (!exact && !(earlier > 0))
        el_cell_unreadable(cell, "the baseline's figure is %g, and must be above 0", earlier);
    return cell->fault == EL_CELL_FAULTLESS;
}

enum el_status el_figure_value(const json_t *figure, double **values, size_t *n)
{
    return el_regress_cell_append(values, n, el_json_number(figure, "value"));
}

enum el_status el_figure_launches(const json_t *figure, double **values, size_t *n)
{
    const json_t *launches = json_object_get(figure, "launches");
    for (size_t i = 0; i < json_array_size(launches); i++) {
        const json_t *value = json_array_get(launches, i);
        EL_TRY(el_regress_cell_append(values, n, json_is_number(value) ? json_number_value(value) : NAN));
    }
    return EL_OK;
}

void el_cell_unreadable(struct el_regress_cell *cell, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(cell->reason, sizeof cell->reason, format, list);
    va_end(list);
    cell->fault = EL_CELL_FAULT_UNREADABLE;
    free(cell->head);
    cell->head = NULL;
    cell->n_head = 0;
}

static void put_rules(const char *side, const json_t *session, char *text, size_t bytes)
{
    const json_t *rules = json_object_get(session, "suspect");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        size_t used = strlen(text);
        const char *rule = json_string_value(json_array_get(rules, i));
        if (i == 0)
            snprintf(text + used, bytes - used, "%s%s is suspect: %s", used ? "; " : "", side, rule ? rule : "?");
        else
            snprintf(text + used, bytes - used, ", %s", rule ? rule : "?");
    }
}

void el_cell_doubt(const json_t *base, const json_t *head, struct el_regress_cell *cell)
{
    cell->doubt[0] = 0;
    put_rules("baseline", base, cell->doubt, sizeof cell->doubt);
    put_rules("current", head, cell->doubt, sizeof cell->doubt);
}
