/* What a store holds, as a document: each workload's sessions, and for each figure the level they make. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/regress/baseline.h"
#include "bench/regress/figure.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/program.h"
#include "bench/regress/runs.h"
#include "bench/regress/session.h"

struct description {
    const char *store;
    FILE *notes;
    json_t *run; /* NULL: all */
    struct el_fingerprint print;
};

static enum el_status add_history(const struct el_level *level, const char *better, struct el_regress_set *set)
{
    struct el_regress_cell *cell = el_regress_add(set, "");
    if (!cell) return el_fail(EL_ERR_HOST_MEMORY, "no memory for cells");
    cell->kind = EL_CELL_HISTORY;
    cell->base_df = level->df;
    cell->better = strcmp(better, "higher") ? EL_BETTER_LOWER : EL_BETTER_HIGHER;
    EL_TRY(el_regress_cell_append(&cell->head, &cell->n_head, level->centre));
    for (size_t i = 0; i < level->n; i++) EL_TRY(el_regress_cell_append(&cell->base, &cell->n_base, level->values[i]));
    return EL_OK;
}

/* By the gate's own rule, for a history of this figure among `cells` of its kind, which share the level. */
static double finds_pct(const struct el_level *level, const char *better, size_t cells)
{
    struct el_regress_set set = {0};
    enum el_status status = EL_OK;
    double found = NAN;
    if (level->needs) return NAN;
    for (size_t i = 0; i < cells && status == EL_OK; i++) status = add_history(level, better, &set);
    if (status == EL_OK) {
        el_regress_judge(&set);
        found = 100 * (set.cells[0].detectable - 1);
    }
    el_regress_free(&set);
    return found;
}

static enum el_status describe_figure(const char *name, const json_t *last, const json_t *sessions, size_t cells,
                                      json_t *figures)
{
    bool exact = json_is_true(json_object_get(last, "exact"));
    const char *unit = el_json_text(last, "unit", "");
    struct el_level level;
    json_t *figure = json_pack("{s:s, s:b, s:o}", "unit", unit, "exact", (int)exact, "last",
                               el_json_real(el_json_number(last, "value")));
    json_object_set_new(figures, name, figure);
    if (exact) return EL_OK;
    EL_TRY(el_sessions_level(sessions, name, unit, NULL, &level));
    json_t *of_level =
        json_pack("{s:o, s:I, s:I, s:I, s:b, s:o, s:o, s:I}", "level", el_json_real(level.centre), "counted",
                  (json_int_t)level.n, "of_level", (json_int_t)level.n_era, "outliers", (json_int_t)level.n_far,
                  "last_is_outlier", (int)level.last_far, "sd_pct", el_json_real(100 * level.sd_ratio),
                  "detectable_pct", el_json_real(finds_pct(&level, el_json_text(last, "better", "lower"), cells)),
                  "sessions_needed", (json_int_t)level.needs);
    json_object_update(figure, of_level);
    json_decref(of_level);
    return EL_OK;
}

/* When, and of what, a session was. */
static json_t *event_of(const json_t *session)
{
    static const char *const keys[] = {"time_utc", "commit", "dir", "suspect"};
    json_t *event = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_t *value = json_object_get(session, keys[i]);
        json_object_set(event, keys[i], value ? value : json_null());
    }
    return event;
}

/* Where the last accepted session stands, counted from 1; 0: none is. */
static size_t last_accepted(const json_t *sessions)
{
    size_t at = json_array_size(sessions);
    while (at > 0 && !json_is_true(json_object_get(json_array_get(sessions, at - 1), "accepted"))) at--;
    return at;
}

/* When the level was accepted, and how many sessions there are since, with it: all, whether they count or not. */
static void describe_accepted(const json_t *sessions, json_t *workload)
{
    size_t at = last_accepted(sessions), n = json_array_size(sessions);
    const json_t *session = at ? json_array_get(sessions, at - 1) : NULL;
    json_object_set_new(workload, "accepted",
                        session ? el_json_string(el_json_text(session, "time_utc", NULL)) : json_null());
    json_object_set_new(workload, "since_accepted", session ? json_integer((json_int_t)(n - at + 1)) : json_null());
}

/* A file of a store, read. */
struct workload_file {
    char path[EL_PATH_BYTES * 2];
    json_t *sessions; /* NULL: none, or not asked about */
    size_t skipped;
};

static enum el_status describe_file(const struct workload_file *file, size_t cells, json_t *workloads)
{
    const json_t *sessions = file->sessions;
    size_t n = json_array_size(sessions);
    const json_t *last = json_array_get(sessions, n - 1);
    json_t *figures = json_object(), *its = json_object_get(last, "figures");
    enum el_status status = EL_OK;
    for (void *at = json_object_iter(its); at && status == EL_OK; at = json_object_iter_next(its, at))
        status = describe_figure(json_object_iter_key(at), json_object_iter_value(at), sessions, cells, figures);
    json_t *workload =
        json_pack("{s:s, s:o, s:I, s:I, s:o, s:o, s:o}", "name", el_json_text(last, "name", "?"), "file",
                  el_json_string(file->path), "sessions", (json_int_t)n, "skipped", (json_int_t)file->skipped, "first",
                  event_of(json_array_get(sessions, 0)), "last", event_of(last), "figures", figures);
    if (el_program_is(last)) json_object_set(workload, "program", json_object_get(last, "program"));
    describe_accepted(sessions, workload);
    json_array_append_new(workloads, workload);
    return status;
}

/* Whether the run that was asked about has this workload. */
static bool is_asked(const struct description *d, const json_t *workload)
{
    const json_t *trials = json_object_get(d->run, "trials");
    bool asked = !d->run;
    for (size_t i = 0; i < json_array_size(trials) && !asked; i++) {
        json_t *its = el_workload_of(json_array_get(trials, i));
        asked = el_workload_same(workload, its, NULL, 0);
        json_decref(its);
    }
    return asked;
}

static int only_sessions(const struct dirent *entry)
{
    return el_sessions_is_file(entry->d_name);
}

static int only_machines(const struct dirent *entry)
{
    return strlen(entry->d_name) == EL_FINGERPRINT_BYTES - 1 &&
           strspn(entry->d_name, "0123456789abcdef") == EL_FINGERPRINT_BYTES - 1;
}

static void free_entries(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
}

static enum el_status read_file(const struct description *d, const char *folder, const char *name,
                                struct workload_file *file)
{
    json_t *workload = NULL, *sessions = NULL;
    snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    enum el_status status = el_sessions_read(file->path, d->notes, &workload, &sessions, &file->skipped);
    if (status == EL_OK && json_array_size(sessions) > 0 && is_asked(d, workload))
        file->sessions = json_incref(sessions);
    json_decref(workload);
    json_decref(sessions);
    return status;
}

/* How many timed figures a gate of all these trials has: one each, but for those in virtual time; a program's all. */
static size_t count_timed(const struct workload_file *files, int n)
{
    size_t cells = 0;
    for (int i = 0; i < n; i++) {
        const json_t *last = json_array_get(files[i].sessions, json_array_size(files[i].sessions) - 1);
        json_t *figures = json_object_get(last, "figures");
        for (void *at = json_object_iter(figures); at; at = json_object_iter_next(figures, at))
            cells += el_figure_leads(last, json_object_iter_key(at)) &&
                     !json_is_true(json_object_get(json_object_iter_value(at), "exact"));
    }
    return cells ? cells : 1;
}

static enum el_status describe_files(const struct description *d, const char *folder, json_t *workloads)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, only_sessions, alphasort);
    if (n < 0) return el_fail_errno("%s could not be read", folder);
    struct workload_file *files = calloc((size_t)n + 1, sizeof *files);
    enum el_status status = files ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the files of %s", folder);
    for (int i = 0; i < n && status == EL_OK; i++) status = read_file(d, folder, entries[i]->d_name, &files[i]);
    for (int i = 0; i < n && status == EL_OK; i++)
        if (files[i].sessions) status = describe_file(&files[i], count_timed(files, n), workloads);
    for (int i = 0; i < n && files; i++) json_decref(files[i].sessions);
    free(files);
    free_entries(entries, n);
    return status;
}

static enum el_status describe_machine(const struct description *d, const char *key, json_t *machines)
{
    char folder[EL_PATH_BYTES + 32], path[EL_PATH_BYTES + 64];
    if (d->run && strcmp(d->print.key, key) != 0) return EL_OK;
    snprintf(folder, sizeof folder, "%s/%s", d->store, key);
    snprintf(path, sizeof path, "%s/machine.json", folder);
    json_t *machine = json_load_file(path, 0, NULL), *workloads = json_array();
    json_t *fields = json_object_get(machine, "fields");
    enum el_status status = describe_files(d, folder, workloads);
    if (status == EL_OK && json_array_size(workloads) > 0)
        json_array_append_new(machines,
                              json_pack("{s:s, s:o, s:O}", "fingerprint", key, "fields",
                                        fields ? json_incref(fields) : json_object(), "workloads", workloads));
    json_decref(workloads);
    json_decref(machine);
    return status;
}

static enum el_status describe(const struct description *d, json_t *machines)
{
    struct dirent **entries = NULL;
    int n = scandir(d->store, &entries, only_machines, alphasort);
    enum el_status status = EL_OK;
    for (int i = 0; i < n && status == EL_OK; i++) status = describe_machine(d, entries[i]->d_name, machines);
    free_entries(entries, n < 0 ? 0 : n);
    if (status != EL_OK || json_array_size(machines) > 0) return status;
    return el_fail(EL_ERR_ABSENT, "%s holds no sessions%s: add some by 'evenload baseline add DIR', DIR being a run's",
                   d->store, d->run ? " of this run's machine and trials" : "");
}

enum el_status el_baseline_describe(const char *store_dir, const char *run_dir, FILE *notes, json_t **document_p)
{
    struct description d = {.store = store_dir, .notes = notes};
    json_t *machines = json_array();
    enum el_status status = EL_OK;
    if (run_dir && *run_dir) {
        status = el_run_load(run_dir, &d.run);
        if (status == EL_OK) status = el_fingerprint_of(d.run, &d.print);
    }
    if (status == EL_OK) status = describe(&d, machines);
    if (status == EL_OK)
        *document_p = json_pack("{s:o, s:O}", "store", el_json_string(store_dir), "machines", machines);
    json_decref(machines);
    json_decref(d.run);
    el_fingerprint_free(&d.print);
    return status;
}
