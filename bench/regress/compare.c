/* A run against a store: which trial belongs to which, on which machine, and their figures as cells. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "runtime/base/utf8.h"

/* A trial of the run, and what there is of it in the store. */
struct compared {
    const char *name;
    const json_t *past; /* sessions, oldest first */
    const json_t *last; /* the one of them whose figures are asked for */
    const json_t *head; /* the session that is judged */
};

/* ---- figures: which are judged, and what makes a side of one unreadable ---- */

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

/* For who says how far the store is from a verdict. */
static void need(struct el_regress_set *set, size_t sessions)
{
    if (sessions > set->sessions_needed) set->sessions_needed = sessions;
}

/* Of one level as many are needed as there are to be; each level that was accepted takes one more. */
static void say_needs(const struct el_level *level, struct el_regress_cell *cell)
{
    const char *add = "more by 'evenload baseline add'";
    if (level->n_eras > 1)
        el_regress_fault(cell, EL_CELL_NO_BASELINE,
                         "%zu levels, each of too few sessions to estimate their scatter: %zu %s", level->n_eras,
                         level->needs, add);
    else
        el_regress_fault(cell, EL_CELL_NO_BASELINE,
                         "%zu session%s, and %d are needed to know how far they scatter: %zu %s", level->n,
                         level->n == 1 ? "" : "s", EL_LEVEL_SESSIONS_MIN, level->needs, add);
}

/* The base of a history: the level that the sessions make, without this run's own. */
static enum el_status put_level(const struct compared *t, const char *name, struct el_regress_set *set,
                                struct el_regress_cell *cell)
{
    struct el_level level;
    const char *run = el_json_text(t->head, "run", "");
    cell->is_level = el_sessions_standing(t->past, run).is_level;
    EL_TRY(el_sessions_level(t->past, name, cell->unit, cell->is_level ? NULL : run, &level));
    for (size_t i = 0; i < level.n; i++) EL_TRY(el_regress_append(&cell->base, &cell->n_base, level.values[i]));
    cell->base_df = level.df;
    need(set, level.needs);
    if (level.needs) say_needs(&level, cell);
    return EL_OK;
}

static enum el_status add_figure(const struct compared *t, const char *name, struct el_regress_set *set)
{
    const json_t *before = figure_of(t->last, name), *now = figure_of(t->head, name);
    char full[EL_CELL_NAME_BYTES] = "";
    struct el_regress_cell *cell;
    bool exact = el_figure_is_exact(before) && (!now || el_figure_is_exact(now));
    if (!el_program_is(t->last)) el_text_append(full, sizeof full, "%s ", t->name);
    el_text_append(full, sizeof full, "%s", name);
    EL_TRY(el_regress_add(set, full, &cell));
    snprintf(cell->unit, sizeof cell->unit, "%s", el_json_text(before, "unit", ""));
    el_utf8_printable(cell->unit);
    cell->better = el_figure_better(before);
    cell->kind = exact ? EL_CELL_EXACT : EL_CELL_HISTORY;
    EL_EACH(rule, json_object_get(t->head, "suspect")) {
        const char *its = json_string_value(rule);
        el_text_append(cell->doubt, sizeof cell->doubt, "%s%s",
                       rule_at.i ? ", " : "current is suspect: ", its ? its : "?");
    }
    find_faults(before, now, cell);
    if (cell->fault != EL_CELL_SAME) return EL_OK;
    EL_TRY(el_regress_append(&cell->head, &cell->n_head, el_json_number(now, "value")));
    if (cell->kind == EL_CELL_HISTORY) return put_level(t, name, set, cell);
    return el_regress_append(&cell->base, &cell->n_base, el_json_number(before, "value"));
}

/* A cell for each figure that is asked for. */
static enum el_status compare_figures(const struct compared *trial, const char *metrics, struct el_regress_set *set)
{
    EL_EACH_KEY(name, figure, json_object_get(trial->last, "figures")) {
        bool asked = *metrics ? el_regress_listed(metrics, name) : el_session_gates(trial->last, name, figure);
        bool nothing = el_figure_is_exact(figure) && el_json_number(figure, "value") == 0 &&
                       el_json_number(figure_of(trial->head, name), "value") == 0;
        if (asked && !nothing) EL_TRY(add_figure(trial, name, set));
    }
    return EL_OK;
}

/* ---- trials ---- */

struct comparison {
    const char *store, *dir;          /* dir: of the run that is judged */
    json_t *run, *machine, *machines; /* machine: the run's; machines: what the store holds */
    const char *metrics;
    FILE *notes;
    struct el_regress_set *set;
};

#define NOTE(c, ...) ((c)->notes ? el_text_line((c)->notes, "note: " __VA_ARGS__) : (void)0)

/* A cell for a whole trial that cannot be compared. */
static enum el_status add_fault(const struct comparison *c, const char *name, enum el_cell_verdict fault,
                                const char *reason, const char *more)
{
    struct el_regress_cell *cell;
    EL_TRY(el_regress_add(c->set, name, &cell));
    cell->kind = EL_CELL_HISTORY;
    el_regress_fault(cell, fault, "%s%.120s", reason, more);
    return EL_OK;
}

/* The newest that is not this run itself, unless that alone is the level. */
static const json_t *last_of(const struct comparison *c, const struct compared *t, bool is_level)
{
    const char *run = el_json_text(t->head, "run", "");
    const json_t *last = NULL;
    size_t n = json_array_size(t->past);
    if (is_level) {
        NOTE(c, "%s: this run is the accepted level, and the only session of it so far", t->name);
        return json_array_get(t->past, n - 1);
    }
    for (size_t i = n; i > 0 && !last; i--) {
        const json_t *session = json_array_get(t->past, i - 1);
        if (!el_json_is(session, "run", run))
            last = session;
        else
            NOTE(c, "%s: this run is among the sessions: it is not compared with itself", t->name);
    }
    return last;
}

/* A trial that finished. */
static enum el_status compare_trial(const struct comparison *c, const json_t *trial, const char *name)
{
    json_t *workload = el_workload_of(trial), *head = el_session_of(c->run, trial, c->dir);
    struct compared t = {.name = name, .past = el_store_sessions(c->machines, c->machine, workload), .head = head};
    struct el_standing standing = el_sessions_standing(t.past, el_json_text(head, "run", ""));
    enum el_status status;
    c->set->new_trials += !standing.there;
    c->set->other_trials += !standing.accepted;
    t.last = last_of(c, &t, standing.is_level);
    if (t.last) {
        status = compare_figures(&t, c->metrics, c->set);
    } else {
        need(c->set, EL_LEVEL_SESSIONS_MIN);
        status = add_fault(c, name, EL_CELL_NO_BASELINE,
                           t.past ? "no other session of this trial: 'evenload baseline add'"
                                  : "no session of this trial yet: 'evenload baseline add'",
                           "");
    }
    json_decref(workload);
    json_decref(head);
    return status;
}

static enum el_status add_trial(const struct comparison *c, const json_t *trial)
{
    char name[EL_CELL_NAME_BYTES], reason[EL_CELL_REASON_BYTES];
    el_workload_name(trial, name, sizeof name);
    if (el_json_is(trial, "status", "ok")) return compare_trial(c, trial, name);
    snprintf(reason, sizeof reason, "%.40s in the current run: ", el_json_text(trial, "status", "failed"));
    return add_fault(c, name, EL_CELL_UNREADABLE, reason, el_json_text(trial, "reason", "no reason is in its record"));
}

/* ---- machines ---- */

/* Where the store does not know this machine, all cells have no baseline. The nearest differs in the fewest fields. */
static void find_machine(const struct comparison *c)
{
    char words[320] = "it holds none at all", differences[256];
    const json_t *own = json_object_get(c->machine, "fields");
    int fewest = 0;
    if (access(c->store, F_OK) != 0) snprintf(words, sizeof words, "there is no such folder yet");
    EL_EACH(machine, c->machines) {
        const json_t *fields = json_object_get(machine, "fields");
        int n = el_fingerprint_differences(fields, own, differences, sizeof differences);
        if (n == 0) return;
        if (fewest > 0 && n >= fewest) continue;
        fewest = n;
        snprintf(words, sizeof words, "the nearest, %.16s, differs in %s", el_json_text(machine, "fingerprint", "?"),
                 differences);
    }
    NOTE(c,
         "no baseline that fits: %.200s has no sessions of this machine (%s); %s: --add fills it from this run "
         "on, and 'evenload regress --ab BASE HEAD' needs none",
         c->store, el_json_text(c->machine, "fingerprint", "?"), words);
}

/* By the figures of all trials: one on more devices has more. */
static enum el_status check_metrics(const struct comparison *c, const json_t *trials)
{
    enum { NAMES_MAX = 512 };
    const char *names[NAMES_MAX + 1] = {NULL};
    char list[EL_PATH_BYTES], *rest = NULL;
    size_t n = 0;
    enum el_status status = EL_OK;
    json_t *figures = json_object();
    EL_EACH(trial, trials) {
        json_t *own = el_json_is(trial, "status", "ok") ? el_session_figures(trial) : NULL;
        if (own) json_object_update(figures, own);
        json_decref(own);
    }
    EL_EACH_KEY(key, figure, figures) {
        if (n < NAMES_MAX) names[n++] = key;
    }
    snprintf(list, sizeof list, "%s", c->metrics);
    for (char *word = strtok_r(list, ",", &rest); n && word && status == EL_OK; word = strtok_r(NULL, ",", &rest)) {
        size_t known = 0;
        while (known < n && !el_regress_listed(word, names[known])) known++;
        if (known == n) status = el_fail_unknown("metric", word, names);
    }
    json_decref(figures);
    return status;
}

static enum el_status compare(struct comparison *c)
{
    EL_TRY(el_run_load(c->dir, &c->run));
    c->machine = el_fingerprint_of(c->run);
    EL_TRY(el_store_read(c->store, &c->machines));
    find_machine(c);
    const json_t *trials = json_object_get(c->run, "trials");
    EL_TRY(check_metrics(c, trials));
    EL_EACH(trial, trials) EL_TRY(add_trial(c, trial));
    return c->set->n ? EL_OK
                     : el_fail(EL_ERR_INVALID, "%s has no figure that is asked for: nothing to compare", c->dir);
}

enum el_status el_regress_dirs(const char *store_dir, const char *run_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set)
{
    struct comparison c = {.store = store_dir, .dir = run_dir, .metrics = metrics, .notes = notes, .set = set};
    el_regress_name_sides(set, store_dir, run_dir);
    enum el_status status = compare(&c);
    json_decref(c.run);
    json_decref(c.machine);
    json_decref(c.machines);
    return status;
}
