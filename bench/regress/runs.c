/* Two runs into cells. */
#include "bench/regress/runs.h"

#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/regress/baseline.h"
#include "bench/regress/figure.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/program.h"
#include "bench/regress/session.h"
#include "runtime/base/utf8.h"

/* A side: its document and what it was measured on. */
struct side {
    const char *dir;
    json_t *run;
    struct el_fingerprint print;
};

struct pairing {
    struct side base, head;
    const char *metrics;
    FILE *notes;
    struct el_regress_set *set;
};

/* The path of the run's record. */
static bool find_record(const char *dir, char path[EL_PATH_BYTES])
{
    static const char *const names[] = {"results.json", EL_PROGRAM_FILE};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((size_t)snprintf(path, EL_PATH_BYTES, "%s/%s", dir, names[i]) < EL_PATH_BYTES && access(path, F_OK) == 0)
            return true;
    return false;
}

enum el_status el_run_load(const char *dir, json_t **run_p)
{
    char path[EL_PATH_BYTES];
    if (!find_record(dir, path))
        return el_fail(EL_ERR_IO,
                       "%.200s: there is no run in it (no results.json, no " EL_PROGRAM_FILE "): give the folder of a "
                       "run",
                       dir);
    json_t *run = NULL;
    EL_TRY(el_record_read(path, &run));
    if (json_object_get(run, "watch")) {
        json_t *program = el_program_of_watch(run);
        json_decref(run);
        if (!program) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was watched");
        run = program;
    }
    *run_p = run;
    return EL_OK;
}

/* Of a program of one's own there is one trial a run, and two versions of it may have two command lines. */
static const json_t *program_of(const json_t *run)
{
    const json_t *trial = json_array_get(json_object_get(run, "trials"), 0);
    return el_program_is(trial) ? trial : NULL;
}

bool el_trial_finished(const json_t *trial)
{
    return !strcmp(el_json_text(trial, "status", "failed"), "ok");
}

const json_t *el_run_find(const json_t *run, const json_t *trial, char *differs, size_t bytes)
{
    const json_t *trials = json_object_get(run, "trials"), *found = NULL;
    char wanted[EL_CELL_NAME_BYTES], name[EL_CELL_NAME_BYTES];
    if (el_program_is(trial)) return program_of(run);
    json_t *workload = el_workload_of(trial);
    el_workload_name(trial, wanted, sizeof wanted);
    for (size_t i = 0; i < json_array_size(trials) && !found; i++) {
        const json_t *other = json_array_get(trials, i);
        json_t *its = el_workload_of(other);
        el_workload_name(other, name, sizeof name);
        bool named = !strcmp(name, wanted);
        if (el_workload_same(workload, its, named ? differs : NULL, bytes)) found = other;
        json_decref(its);
    }
    json_decref(workload);
    return found;
}

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

static enum el_status check_machines(const struct pairing *p)
{
    char differences[256];
    if (!el_fingerprint_differences(p->base.print.fields, p->head.print.fields, differences, sizeof differences))
        return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "no baseline that fits: %.60s and %.60s differ in machine or build: %s: measure both side by side, "
                   "by 'evenload regress --ab BASE HEAD'",
                   p->base.dir, p->head.dir, differences);
}

/* One cell for a trial that cannot be compared at all. */
static enum el_status add_unreadable(const struct pairing *p, const char *name, const char *reason)
{
    struct el_regress_cell *cell = el_regress_add(p->set, name);
    if (!cell) return el_fail(EL_ERR_HOST_MEMORY, "no memory for cells");
    cell->kind = EL_CELL_SESSION;
    el_cell_unreadable(cell, "%s", reason);
    return EL_OK;
}

static enum el_status add_figure(const struct pairing *p, const char *name, const json_t *base, const json_t *head)
{
    const json_t *before = json_object_get(json_object_get(base, "figures"), name);
    const json_t *now = json_object_get(json_object_get(head, "figures"), name);
    if (!el_figure_selected(base, name, p->metrics) || el_figure_nothing(before, now)) return EL_OK;
    struct el_regress_cell *cell = el_figure_cell(base, head, name, EL_CELL_SESSION, p->set);
    if (!cell) return el_fail(EL_ERR_HOST_MEMORY, "no memory for cells");
    el_cell_doubt(base, head, cell);
    bool exact = cell->kind == EL_CELL_EXACT, good = el_figure_comparable(before, now, cell);
    EL_TRY((exact ? el_figure_value : el_figure_launches)(before, &cell->base, &cell->n_base));
    if (!good) return EL_OK;
    return (exact ? el_figure_value : el_figure_launches)(now, &cell->head, &cell->n_head);
}

static enum el_status add_pair(const struct pairing *p, const json_t *base_trial, const json_t *head_trial)
{
    json_t *base = el_session_of(p->base.run, base_trial, p->base.dir);
    json_t *head = el_session_of(p->head.run, head_trial, p->head.dir);
    json_t *figures = json_object_get(base, "figures");
    enum el_status status = EL_OK;
    for (void *at = json_object_iter(figures); at && status == EL_OK; at = json_object_iter_next(figures, at))
        status = add_figure(p, json_object_iter_key(at), base, head);
    json_decref(base);
    json_decref(head);
    return status;
}

static enum el_status add_trial(const struct pairing *p, const json_t *base)
{
    char name[EL_CELL_NAME_BYTES], differs[120] = "", reason[EL_CELL_REASON_BYTES];
    el_workload_name(base, name, sizeof name);
    if (!el_trial_finished(base)) {
        if (p->notes) fprintf(p->notes, "note: %s did not finish in %s: not compared\n", name, p->base.dir);
        return EL_OK;
    }
    const json_t *head = el_run_find(p->head.run, base, differs, sizeof differs);
    if (!head) {
        snprintf(reason, sizeof reason, "the current run has no such trial%s%s",
                 *differs ? "; it has one with another " : "", differs);
        return add_unreadable(p, name, reason);
    }
    if (el_trial_finished(head)) return add_pair(p, base, head);
    snprintf(reason, sizeof reason, "%s in the current run: %.120s", el_json_text(head, "status", "failed"),
             el_json_text(head, "reason", "no reason is in its record"));
    return add_unreadable(p, name, reason);
}

static void note_new(const struct pairing *p)
{
    const json_t *trials = json_object_get(p->head.run, "trials");
    for (size_t i = 0; i < json_array_size(trials) && p->notes; i++) {
        const json_t *trial = json_array_get(trials, i);
        char name[EL_CELL_NAME_BYTES];
        el_workload_name(trial, name, sizeof name);
        if (!el_run_find(p->base.run, trial, NULL, 0))
            fprintf(p->notes, "note: %s is only in the current run: not compared\n", name);
    }
}

static enum el_status pair_all(const struct pairing *p)
{
    const json_t *trials = json_object_get(p->base.run, "trials");
    EL_TRY(check_machines(p));
    EL_TRY(el_figure_check(p->head.run, p->metrics));
    el_fingerprint_soft(p->base.run, p->head.run, p->notes);
    for (size_t i = 0; i < json_array_size(trials); i++) EL_TRY(add_trial(p, json_array_get(trials, i)));
    note_new(p);
    if (p->set->n) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s has no trial that finished: there is nothing to compare with", p->base.dir);
}

enum el_status el_regress_runs(const char *base_dir, const char *head_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set)
{
    struct pairing p = {.metrics = metrics, .notes = notes, .set = set};
    enum el_status status = load_side(base_dir, &p.base);
    if (status == EL_OK) status = load_side(head_dir, &p.head);
    if (status == EL_OK) status = pair_all(&p);
    snprintf(set->base_name, sizeof set->base_name, "%s", base_dir);
    snprintf(set->head_name, sizeof set->head_name, "%s", head_dir);
    el_utf8_printable(set->base_name);
    el_utf8_printable(set->head_name);
    close_side(&p.base);
    close_side(&p.head);
    return status;
}

bool el_regress_is_run(const char *dir)
{
    char path[EL_PATH_BYTES];
    return find_record(dir, path);
}

enum el_status el_regress_dirs(const char *base_dir, const char *head_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set)
{
    if (el_regress_is_run(base_dir)) return el_regress_runs(base_dir, head_dir, metrics, notes, set);
    return el_regress_baseline(base_dir, head_dir, metrics, notes, set);
}
