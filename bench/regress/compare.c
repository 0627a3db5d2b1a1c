/* Which trial belongs to which, on which machine: sessions of the past, of a store many, of a run one, beside the
 * session that is judged. */
#include "bench/regress/compare.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/run_folder.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"

struct side {
    const char *dir;
    json_t *run; /* of a base NULL: it is a store */
    struct el_fingerprint print;
};

struct comparison {
    struct side base, head;
    char folder[EL_PATH_BYTES]; /* the machine's, of a store */
    const char *metrics;
    FILE *notes;
    struct el_regress_set *set;
};

static enum el_status load_side(const char *dir, struct side *side)
{
    side->dir = dir;
    EL_TRY(el_run_load(dir, &side->run));
    return el_fingerprint_of(side->run, &side->print);
}

static void close_side(struct side *side)
{
    json_decref(side->run);
    el_fingerprint_free(&side->print);
}

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
    cell->kind = c->base.run ? EL_CELL_SESSION : EL_CELL_HISTORY;
    el_regress_fault(cell, fault, "%s%.120s", reason, more);
    return EL_OK;
}

/* The newest that is not this run itself, unless that alone is the level. */
static const json_t *last_of(const struct comparison *c, const struct el_compared *t)
{
    const char *run = el_json_text(t->head, "run", "");
    const json_t *last = NULL;
    size_t n = json_array_size(t->past);
    if (c->base.run) return json_array_get(t->past, 0);
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

/* The trial of `run` with the same workload, or NULL. `differs`: of the one that has only the name. A program of one's
 * own is one trial a run, and two versions of it may have two command lines. */
static const json_t *find_trial(const json_t *run, const json_t *trial, char *differs, size_t bytes)
{
    const json_t *trials = json_object_get(run, "trials"), *other, *found = NULL;
    char wanted[EL_CELL_NAME_BYTES], name[EL_CELL_NAME_BYTES];
    size_t i;
    json_t *workload = el_workload_of(trial);
    el_workload_name(trial, wanted, sizeof wanted);
    json_array_foreach(trials, i, other)
    {
        json_t *its = el_workload_of(other);
        el_workload_name(other, name, sizeof name);
        bool named = !strcmp(name, wanted), programs = el_program_is(trial) && el_program_is(other);
        if (!found && (programs || el_workload_same(workload, its, named ? differs : NULL, bytes))) found = other;
        json_decref(its);
    }
    json_decref(workload);
    return found;
}

/* What the base has of a trial: sessions, or NULL, after a note or a cell that says why. */
static enum el_status find_past(const struct comparison *c, const json_t *trial, const char *name, json_t **past_p)
{
    char path[EL_PATH_BYTES];
    bool exists = false;
    if (c->base.run) {
        const json_t *before = find_trial(c->base.run, trial, NULL, 0);
        if (before && el_json_is(before, "status", "ok"))
            *past_p = json_pack("[o]", el_session_of(c->base.run, before, c->base.dir));
        else if (!before)
            NOTE(c, "%s is only in the current run: not compared", name);
        return EL_OK;
    }
    json_t *workload = el_workload_of(trial);
    enum el_status status = el_sessions_path(c->folder, workload, path, sizeof path, &exists);
    json_decref(workload);
    if (status == EL_OK && exists) status = el_sessions_read(path, c->notes, NULL, past_p, NULL);
    if (status != EL_OK || exists) return status;
    c->set->new_trials++, c->set->other_trials++;
    need(c->set, EL_LEVEL_SESSIONS_MIN);
    return add_fault(c, name, EL_CELL_NO_BASELINE, "no session of this trial yet: 'evenload baseline add'", "");
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

static enum el_status add_trial(const struct comparison *c, const json_t *trial)
{
    char name[EL_CELL_NAME_BYTES], reason[EL_CELL_REASON_BYTES];
    bool finished = el_json_is(trial, "status", "ok");
    json_t *past = NULL, *head = NULL;
    el_workload_name(trial, name, sizeof name);
    enum el_status status = finished || c->base.run ? find_past(c, trial, name, &past) : EL_OK;
    if (status == EL_OK && !finished && (past || !c->base.run)) {
        snprintf(reason, sizeof reason, "%.40s in the current run: ", el_json_text(trial, "status", "failed"));
        status =
            add_fault(c, name, EL_CELL_UNREADABLE, reason, el_json_text(trial, "reason", "no reason is in its record"));
    } else if (status == EL_OK && past) {
        head = el_session_of(c->head.run, trial, c->head.dir);
        status =
            add_figures(c, &(struct el_compared){.name = name, .stored = !c->base.run, .past = past, .head = head});
    }
    json_decref(head);
    json_decref(past);
    return status;
}

/* Of two runs: what only the base has, or could not be measured there. */
static enum el_status add_missing(const struct comparison *c)
{
    const json_t *trials = json_object_get(c->base.run, "trials"), *trial;
    char name[EL_CELL_NAME_BYTES];
    size_t i;
    json_array_foreach(trials, i, trial)
    {
        char differs[120] = "";
        el_workload_name(trial, name, sizeof name);
        if (!el_json_is(trial, "status", "ok"))
            NOTE(c, "%s did not finish in %s: not compared", name, c->base.dir);
        else if (!find_trial(c->head.run, trial, differs, sizeof differs))
            EL_TRY(add_fault(c, name, EL_CELL_UNREADABLE,
                             *differs ? "the current run has no such trial; it has one with another "
                                      : "the current run has no such trial",
                             differs));
    }
    return EL_OK;
}

/* ---- machines ---- */

static enum el_status check_machines(const struct comparison *c)
{
    char differences[256];
    if (!el_fingerprint_differences(c->base.print.fields, c->head.print.fields, differences, sizeof differences))
        return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "no baseline that fits: %.60s and %.60s differ in machine or build: %s: measure both side by side, "
                   "by 'evenload regress --ab BASE HEAD'",
                   c->base.dir, c->head.dir, differences);
}

/* The machine of the store that differs in the fewest fields, in words. */
static void find_nearest(const struct comparison *c, char *text, size_t bytes)
{
    int fewest = 0;
    DIR *entries = opendir(c->base.dir);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[EL_PATH_BYTES * 2], differences[256];
        snprintf(path, sizeof path, "%s/%s/machine.json", c->base.dir, entry->d_name);
        json_t *machine = json_load_file(path, 0, NULL);
        const json_t *fields = json_object_get(machine, "fields");
        int n = el_fingerprint_differences(fields, c->head.print.fields, differences, sizeof differences);
        if (fields && (fewest == 0 || n < fewest)) {
            fewest = n;
            snprintf(text, bytes, "the nearest, %.16s, differs in %s", entry->d_name, differences);
        }
        json_decref(machine);
    }
    if (entries) closedir(entries);
}

/* Where the store does not know this machine, all cells have no baseline. */
static enum el_status find_machine(struct comparison *c)
{
    char words[320] = "it holds none at all";
    EL_TRY(el_store_machine(c->base.dir, &c->head.print, c->folder));
    if (access(c->folder, F_OK) == 0) return EL_OK;
    if (access(c->base.dir, F_OK) != 0) snprintf(words, sizeof words, "there is no such folder yet");
    find_nearest(c, words, sizeof words);
    NOTE(c,
         "no baseline that fits: %.200s has no sessions of this machine (%s); %s: --add fills it from this run "
         "on, and 'evenload regress --ab BASE HEAD' needs none",
         c->base.dir, c->head.print.key, words);
    return EL_OK;
}

/* By the figures of the first trial that has some. */
static enum el_status check_metrics(const struct comparison *c, const json_t *trials)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX + 1] = {NULL}, *key;
    char list[EL_PATH_BYTES], *rest = NULL;
    size_t i = 0, n = 0;
    enum el_status status = EL_OK;
    while (i < json_array_size(trials) && !el_json_is(json_array_get(trials, i), "status", "ok")) i++;
    if (!*c->metrics || i == json_array_size(trials)) return EL_OK;
    json_t *figures = el_session_figures(json_array_get(trials, i)), *figure;
    json_object_foreach(figures, key, figure)
    {
        if (n < NAMES_MAX) names[n++] = key;
    }
    snprintf(list, sizeof list, "%s", c->metrics);
    for (char *word = strtok_r(list, ",", &rest); word && status == EL_OK; word = strtok_r(NULL, ",", &rest)) {
        size_t known = 0;
        while (known < n && !el_regress_listed(word, names[known])) known++;
        if (known == n) status = el_fail_unknown("metric", word, names);
    }
    json_decref(figures);
    return status;
}

static enum el_status compare(struct comparison *c)
{
    const json_t *trials = json_object_get(c->head.run, "trials"), *trial;
    size_t i;
    EL_TRY(c->base.run ? check_machines(c) : find_machine(c));
    EL_TRY(check_metrics(c, trials));
    json_array_foreach(trials, i, trial)
    {
        EL_TRY(add_trial(c, trial));
    }
    EL_TRY(add_missing(c));
    if (c->set->n) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s and %s have no figure in common: there is nothing to compare", c->base.dir,
                   c->head.dir);
}

enum el_status el_regress_dirs(const char *base_dir, const char *head_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set)
{
    struct comparison c = {.base = {.dir = base_dir}, .metrics = metrics, .notes = notes, .set = set};
    el_regress_name_sides(set, base_dir, head_dir);
    enum el_status status = load_side(head_dir, &c.head);
    if (status == EL_OK && el_regress_is_run(base_dir)) status = load_side(base_dir, &c.base);
    if (status == EL_OK) status = compare(&c);
    close_side(&c.base);
    close_side(&c.head);
    return status;
}
