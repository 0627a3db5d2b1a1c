/* A run of ours against this machine's sessions, as cells. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/regress/baseline.h"
#include "bench/regress/figure.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/runs.h"
#include "bench/regress/session.h"
#include "runtime/base/utf8.h"

struct comparison {
    const char *store, *metrics;
    FILE *notes;
    json_t *run;
    struct el_fingerprint print;
    char folder[EL_PATH_BYTES];
    struct el_regress_set *set;
};

/* For who says how far the store is from a verdict. */
static void need(struct el_regress_set *set, size_t sessions)
{
    if (sessions > set->sessions_needed) set->sessions_needed = sessions;
}

/* The machine of the store that differs in the fewest fields, in words. Returns how many there are. */
static int nearest(const struct comparison *c, char *text, size_t bytes)
{
    int machines = 0, fewest = 0;
    DIR *entries = opendir(c->store);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[EL_PATH_BYTES * 2], differences[256];
        snprintf(path, sizeof path, "%s/%s/machine.json", c->store, entry->d_name);
        json_t *machine = json_load_file(path, 0, NULL);
        const json_t *fields = json_object_get(machine, "fields");
        int n = el_fingerprint_differences(fields, c->print.fields, differences, sizeof differences);
        if (fields && (machines++ == 0 || n < fewest)) {
            fewest = n;
            snprintf(text, bytes, "the nearest, %.16s, differs in %s", entry->d_name, differences);
        }
        json_decref(machine);
    }
    if (entries) closedir(entries);
    return machines;
}

/* Where the store does not know this machine, all cells have no baseline. */
static void note_machine(const struct comparison *c)
{
    char words[320] = "it holds none at all";
    if (!c->notes || access(c->folder, F_OK) == 0) return;
    if (access(c->store, F_OK) != 0) snprintf(words, sizeof words, "there is no such folder yet");
    nearest(c, words, sizeof words);
    fprintf(
        c->notes,
        "note: no baseline that fits: %.200s has no sessions of this machine (%s); %s: --add fills it from this run "
        "on, and 'evenload regress --ab BASE HEAD' needs none\n",
        c->store, c->print.key, words);
}

static enum el_status add_cell(const struct comparison *c, const char *name, enum el_cell_fault fault,
                               const char *reason)
{
    struct el_regress_cell *cell = el_regress_add(c->set, name);
    if (!cell) return el_fail(EL_ERR_HOST_MEMORY, "no memory for cells");
    cell->kind = EL_CELL_HISTORY;
    cell->fault = fault;
    snprintf(cell->reason, sizeof cell->reason, "%s", reason);
    return EL_OK;
}

/* Of one level as many are needed as there are to be; each level that was accepted takes one more. */
static void say_needs(const struct comparison *c, const struct el_level *level, struct el_regress_cell *cell)
{
    need(c->set, level->needs);
    cell->fault = EL_CELL_FAULT_NO_BASELINE;
    if (level->n_eras > 1)
        snprintf(cell->reason, sizeof cell->reason,
                 "%zu levels, each of too few sessions to estimate their scatter: %zu more by "
                 "'evenload baseline add'",
                 level->n_eras, level->needs);
    else
        snprintf(cell->reason, sizeof cell->reason,
                 "%zu session%s, and %d are needed to know how far they scatter: %zu more by 'evenload baseline add'",
                 level->n, level->n == 1 ? "" : "s", EL_LEVEL_SESSIONS_MIN, level->needs);
}

static enum el_status fill_history(const struct comparison *c, const json_t *sessions, const json_t *head,
                                   const char *name, struct el_regress_cell *cell)
{
    struct el_level level;
    const json_t *now = json_object_get(json_object_get(head, "figures"), name);
    const char *run = el_json_text(head, "run", "");
    cell->is_level = el_sessions_is_level(sessions, run);
    EL_TRY(el_sessions_level(sessions, name, cell->unit, cell->is_level ? NULL : run, &level));
    for (size_t i = 0; i < level.n; i++) EL_TRY(el_regress_cell_append(&cell->base, &cell->n_base, level.values[i]));
    EL_TRY(el_figure_value(now, &cell->head, &cell->n_head));
    cell->base_df = level.df;
    if (level.needs) say_needs(c, &level, cell);
    return EL_OK;
}

static enum el_status add_figure(const struct comparison *c, const char *name, const json_t *sessions,
                                 const json_t *last, const json_t *head)
{
    const json_t *before = json_object_get(json_object_get(last, "figures"), name);
    const json_t *now = json_object_get(json_object_get(head, "figures"), name);
    if (!el_figure_selected(last, name, c->metrics) || el_figure_nothing(before, now)) return EL_OK;
    struct el_regress_cell *cell = el_figure_cell(last, head, name, EL_CELL_HISTORY, c->set);
    if (!cell) return el_fail(EL_ERR_HOST_MEMORY, "no memory for cells");
    el_cell_doubt(NULL, head, cell);
    if (!el_figure_comparable(before, now, cell)) return EL_OK;
    if (cell->kind == EL_CELL_HISTORY) return fill_history(c, sessions, head, name, cell);
    EL_TRY(el_figure_value(before, &cell->base, &cell->n_base));
    return el_figure_value(now, &cell->head, &cell->n_head);
}

/* The newest that is not this run itself, unless that alone is the level. */
static const json_t *last_of(const struct comparison *c, const char *name, const json_t *sessions, const char *run)
{
    const json_t *last = NULL;
    bool itself = false;
    if (el_sessions_is_level(sessions, run)) {
        if (c->notes)
            fprintf(c->notes, "note: %s: this run is the accepted level, and the only session of it so far\n", name);
        return json_array_get(sessions, json_array_size(sessions) - 1);
    }
    for (size_t i = json_array_size(sessions); i > 0 && !last; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        bool same = !strcmp(el_json_text(session, "run", ""), run);
        itself |= same;
        if (!same) last = session;
    }
    if (itself && c->notes)
        fprintf(c->notes, "note: %s: this run is among the sessions: it is not compared with itself\n", name);
    return last;
}

static enum el_status add_figures(const struct comparison *c, const char *name, const json_t *sessions,
                                  const json_t *head)
{
    const json_t *last = last_of(c, name, sessions, el_json_text(head, "run", ""));
    json_t *figures = json_object_get(last, "figures");
    if (!last) need(c->set, EL_LEVEL_SESSIONS_MIN);
    if (!last)
        return add_cell(c, name, EL_CELL_FAULT_NO_BASELINE, "no other session of this trial: 'evenload baseline add'");
    for (void *at = json_object_iter(figures); at; at = json_object_iter_next(figures, at))
        EL_TRY(add_figure(c, json_object_iter_key(at), sessions, last, head));
    return EL_OK;
}

/* For who says what to do next: what is in the store is not added again. */
static void count_trial(const json_t *sessions, const char *run, struct el_regress_set *set)
{
    set->new_trials += !el_sessions_have(sessions, run, false);
    set->other_trials += !el_sessions_have(sessions, run, true);
}

static enum el_status add_trial(const struct comparison *c, const json_t *trial)
{
    char name[EL_CELL_NAME_BYTES], path[EL_PATH_BYTES], reason[EL_CELL_REASON_BYTES];
    bool exists = false;
    json_t *sessions = NULL;
    el_workload_name(trial, name, sizeof name);
    if (!el_trial_finished(trial)) {
        snprintf(reason, sizeof reason, "%s in the current run: %.120s", el_json_text(trial, "status", "failed"),
                 el_json_text(trial, "reason", "no reason is in its record"));
        return add_cell(c, name, EL_CELL_FAULT_UNREADABLE, reason);
    }
    json_t *workload = el_workload_of(trial);
    enum el_status status = el_sessions_path(c->folder, workload, path, sizeof path, &exists);
    json_decref(workload);
    EL_TRY(status);
    if (!exists) count_trial(NULL, "", c->set);
    if (!exists) need(c->set, EL_LEVEL_SESSIONS_MIN);
    if (!exists)
        return add_cell(c, name, EL_CELL_FAULT_NO_BASELINE, "no session of this trial yet: 'evenload baseline add'");
    EL_TRY(el_sessions_read(path, c->notes, NULL, &sessions, NULL));
    json_t *head = el_session_of(c->run, trial, "");
    count_trial(sessions, el_json_text(head, "run", ""), c->set);
    status = add_figures(c, name, sessions, head);
    json_decref(head);
    json_decref(sessions);
    return status;
}

static enum el_status add_all(const struct comparison *c, const char *dir)
{
    const json_t *trials = json_object_get(c->run, "trials");
    note_machine(c);
    EL_TRY(el_figure_check(c->run, c->metrics));
    el_fingerprint_soft(NULL, c->run, c->notes);
    for (size_t i = 0; i < json_array_size(trials); i++) EL_TRY(add_trial(c, json_array_get(trials, i)));
    if (c->set->n) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s has no figure to compare", dir);
}

enum el_status el_regress_baseline(const char *store_dir, const char *head_dir, const char *metrics, FILE *notes,
                                   struct el_regress_set *set)
{
    struct comparison c = {.store = store_dir, .metrics = metrics, .notes = notes, .set = set};
    snprintf(set->base_name, sizeof set->base_name, "%s", store_dir);
    snprintf(set->head_name, sizeof set->head_name, "%s", head_dir);
    el_utf8_printable(set->base_name);
    el_utf8_printable(set->head_name);
    enum el_status status = el_run_load(head_dir, &c.run);
    if (status == EL_OK) status = el_fingerprint_of(c.run, &c.print);
    if (status == EL_OK &&
        (size_t)snprintf(c.folder, sizeof c.folder, "%s/%s", store_dir, c.print.key) >= sizeof c.folder - 128)
        status = el_fail(EL_ERR_INVALID, "%.60s...: the store's name is too long", store_dir);
    if (status == EL_OK) status = add_all(&c, head_dir);
    json_decref(c.run);
    el_fingerprint_free(&c.print);
    return status;
}
