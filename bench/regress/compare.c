/* Which trial belongs to which, on which machine: sessions of the past beside the session that is judged. */
#include "bench/regress/compare.h"

#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/run_folder.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"

struct comparison {
    const char *store, *dir; /* dir: of the run that is judged */
    json_t *run, *machines;  /* machines: what the store holds */
    struct el_fingerprint print;
    const char *metrics;
    FILE *notes;
    struct el_regress_set *set;
};

#define NOTE(c, ...) ((c)->notes ? el_text_line((c)->notes, "note: " __VA_ARGS__) : (void)0)

/* For who says how far the store is from a verdict. */
static void need(struct el_regress_set *set, size_t sessions)
{
    if (sessions > set->sessions_needed) set->sessions_needed = sessions;
}

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
static const json_t *last_of(const struct comparison *c, const struct el_compared *t)
{
    const char *run = el_json_text(t->head, "run", "");
    const json_t *last = NULL;
    size_t n = json_array_size(t->past);
    if (el_sessions_is_level(t->past, run)) {
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

static enum el_status add_figures(const struct comparison *c, struct el_compared *t)
{
    const char *run = el_json_text(t->head, "run", "");
    c->set->new_trials += !el_sessions_have(t->past, run, false);
    c->set->other_trials += !el_sessions_have(t->past, run, true);
    t->last = last_of(c, t);
    if (t->last) return el_compare_figures(t, c->metrics, c->set);
    need(c->set, EL_LEVEL_SESSIONS_MIN);
    return add_fault(c, t->name, EL_CELL_NO_BASELINE, "no other session of this trial: 'evenload baseline add'", "");
}

/* A trial of which the store has nothing. */
static enum el_status add_unknown(const struct comparison *c, const char *name)
{
    c->set->new_trials++, c->set->other_trials++;
    need(c->set, EL_LEVEL_SESSIONS_MIN);
    return add_fault(c, name, EL_CELL_NO_BASELINE, "no session of this trial yet: 'evenload baseline add'", "");
}

static enum el_status add_trial(const struct comparison *c, const json_t *trial)
{
    char name[EL_CELL_NAME_BYTES], reason[EL_CELL_REASON_BYTES];
    el_workload_name(trial, name, sizeof name);
    if (!el_json_is(trial, "status", "ok")) {
        snprintf(reason, sizeof reason, "%.40s in the current run: ", el_json_text(trial, "status", "failed"));
        return add_fault(c, name, EL_CELL_UNREADABLE, reason,
                         el_json_text(trial, "reason", "no reason is in its record"));
    }
    json_t *workload = el_workload_of(trial);
    const json_t *past = el_store_sessions(c->machines, c->print.key, workload);
    json_decref(workload);
    if (!past) return add_unknown(c, name);
    json_t *head = el_session_of(c->run, trial, c->dir);
    enum el_status status = add_figures(c, &(struct el_compared){.name = name, .past = past, .head = head});
    json_decref(head);
    return status;
}

/* ---- machines ---- */

/* Where the store does not know this machine, all cells have no baseline. The nearest differs in the fewest fields. */
static void find_machine(const struct comparison *c)
{
    char words[320] = "it holds none at all", differences[256];
    int fewest = 0;
    if (access(c->store, F_OK) != 0) snprintf(words, sizeof words, "there is no such folder yet");
    EL_EACH(machine, c->machines) {
        const json_t *fields = json_object_get(machine, "fields");
        int n = el_fingerprint_differences(fields, c->print.fields, differences, sizeof differences);
        if (n == 0) return;
        if (fewest > 0 && n >= fewest) continue;
        fewest = n;
        snprintf(words, sizeof words, "the nearest, %.16s, differs in %s", el_json_text(machine, "fingerprint", "?"),
                 differences);
    }
    NOTE(c,
         "no baseline that fits: %.200s has no sessions of this machine (%s); %s: --add fills it from this run "
         "on, and 'evenload regress --ab BASE HEAD' needs none",
         c->store, c->print.key, words);
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
    EL_TRY(el_fingerprint_of(c->run, &c->print));
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
    json_decref(c.machines);
    el_fingerprint_free(&c.print);
    return status;
}
