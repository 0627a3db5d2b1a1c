/* Figures of a session beside those of the past: which of them are judged, and what makes a side of one unreadable. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/regress/compare.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "runtime/base/utf8.h"

static const json_t *figure_of(const json_t *session, const char *name)
{
    return json_object_get(json_object_get(session, "figures"), name);
}

/* Sees that the head's figure can be put beside the base's. */
static void find_faults(const json_t *base, const json_t *head, struct el_regress_cell *cell)
{
    const enum el_cell_verdict bad = EL_CELL_UNREADABLE;
    const char *before = el_json_text(base, "unit", ""), *now = el_json_text(head, "unit", "");
    double earlier = el_json_number(base, "value"), value = el_json_number(head, "value");
    bool exact = cell->kind == EL_CELL_EXACT;
    if (!head)
        el_regress_fault(cell, bad, "the current run has no such figure, the baseline has");
    else if (strcmp(before, now))
        el_regress_fault(cell, bad, "the unit is %s, and was %s", *now ? now : "none", *before ? before : "none");
    if (isnan(earlier)) el_regress_fault(cell, bad, "the baseline's figure is no number, or not above 0");
    if (isnan(value)) el_regress_fault(cell, bad, "the current figure is no number, or not above 0");
    if (!exact && value <= 0) el_regress_fault(cell, bad, "the current figure is %g, and must be above 0", value);
    if (!exact && earlier <= 0)
        el_regress_fault(cell, bad, "the baseline's figure is %g, and must be above 0", earlier);
}

static void put_rules(const json_t *session, char *text, size_t bytes)
{
    EL_EACH(rule, json_object_get(session, "suspect")) {
        const char *its = json_string_value(rule);
        el_text_append(text, bytes, "%s%s", rule_at.i ? ", " : "current is suspect: ", its ? its : "?");
    }
}

/* Of one level as many are needed as there are to be; each level that was accepted takes one more. */
static void say_needs(const struct el_level *level, struct el_regress_cell *cell)
{
    if (level->n_eras > 1)
        el_regress_fault(cell, EL_CELL_NO_BASELINE,
                         "%zu levels, each of too few sessions to estimate their scatter: %zu more by "
                         "'evenload baseline add'",
                         level->n_eras, level->needs);
    else
        el_regress_fault(
            cell, EL_CELL_NO_BASELINE,
            "%zu session%s, and %d are needed to know how far they scatter: %zu more by 'evenload baseline add'",
            level->n, level->n == 1 ? "" : "s", EL_LEVEL_SESSIONS_MIN, level->needs);
}

/* The base of a history: the level that the sessions make, without this run's own. */
static enum el_status put_level(const struct el_compared *t, const char *name, struct el_regress_set *set,
                                struct el_regress_cell *cell)
{
    struct el_level level;
    const char *run = el_json_text(t->head, "run", "");
    cell->is_level = el_sessions_is_level(t->past, run);
    EL_TRY(el_sessions_level(t->past, name, cell->unit, cell->is_level ? NULL : run, &level));
    for (size_t i = 0; i < level.n; i++) EL_TRY(el_regress_append(&cell->base, &cell->n_base, level.values[i]));
    cell->base_df = level.df;
    if (level.needs > set->sessions_needed) set->sessions_needed = level.needs;
    if (level.needs) say_needs(&level, cell);
    return EL_OK;
}

static enum el_status add_figure(const struct el_compared *t, const char *name, struct el_regress_set *set)
{
    const json_t *before = figure_of(t->last, name), *now = figure_of(t->head, name);
    char full[EL_CELL_NAME_BYTES];
    struct el_regress_cell *cell;
    bool program = el_program_is(t->last), exact = el_figure_is_exact(before) && (!now || el_figure_is_exact(now));
    snprintf(full, sizeof full, "%s%s%s", program ? "" : t->name, program ? "" : " ", name);
    EL_TRY(el_regress_add(set, full, &cell));
    snprintf(cell->unit, sizeof cell->unit, "%s", el_json_text(before, "unit", ""));
    el_utf8_printable(cell->unit);
    cell->better = el_figure_better(before);
    cell->kind = exact ? EL_CELL_EXACT : EL_CELL_HISTORY;
    put_rules(t->head, cell->doubt, sizeof cell->doubt);
    find_faults(before, now, cell);
    if (cell->fault != EL_CELL_SAME) return EL_OK;
    EL_TRY(el_regress_append(&cell->head, &cell->n_head, el_json_number(now, "value")));
    if (cell->kind == EL_CELL_HISTORY) return put_level(t, name, set, cell);
    return el_regress_append(&cell->base, &cell->n_base, el_json_number(before, "value"));
}

enum el_status el_compare_figures(const struct el_compared *trial, const char *metrics, struct el_regress_set *set)
{
    EL_EACH_KEY(name, figure, json_object_get(trial->last, "figures")) {
        bool asked = *metrics ? el_regress_listed(metrics, name) : el_session_gates(trial->last, name, figure);
        bool nothing = el_figure_is_exact(figure) && el_json_number(figure, "value") == 0 &&
                       el_json_number(figure_of(trial->head, name), "value") == 0;
        if (asked && !nothing) EL_TRY(add_figure(trial, name, set));
    }
    return EL_OK;
}
