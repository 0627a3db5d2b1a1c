/* Which record a folder holds; launches of somebody's program, or a watch of it, as a run's document. */
#include "bench/regress/run_folder.h"

#include <stdio.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/machine/environment.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "profiles/gpu_processes.h"

static const char *const files[] = {"results.json", "program.json"};

static bool find_record(const char *dir, char path[EL_PATH_BYTES])
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if ((size_t)snprintf(path, EL_PATH_BYTES, "%s/%s", dir, files[i]) < EL_PATH_BYTES && access(path, F_OK) == 0)
            return true;
    return false;
}

bool el_regress_is_run(const char *dir)
{
    char path[EL_PATH_BYTES];
    return find_record(dir, path);
}

static json_t *document_of(json_t *environment, const char *name, const char *status, json_t *gpus, json_t *figures)
{
    static const char *const of_build[] = {"commit", "compiler", "compiler_flags", "mpi", "cpu_library", "nccl"};
    for (size_t i = 0; i < sizeof of_build / sizeof of_build[0]; i++)
        json_object_set_new(environment, of_build[i], json_null());
    json_t *trial = json_pack("{s:o, s:s, s:o, s:o}", "program", el_json_string(name), "status", status, "gpus", gpus,
                              "figures", figures);
    return el_record_run(environment, trial ? json_pack("[o]", trial) : NULL);
}

/* ---- a program that was launched ---- */

/* The models of this host's GPUs, as the driver names them; none without one. */
static json_t *gpu_models(void)
{
    json_t *models = json_array();
    struct el_nvml_api api;
    struct el_gpu_processes *gpus = NULL;
    if (el_nvml_load(&api) == EL_OK && el_gpu_processes_open(&api, &gpus) == EL_OK)
        for (int i = 0; i < el_gpu_processes_count(gpus); i++)
            json_array_append_new(models, el_json_string(el_gpu_processes_gpu(gpus, i)->name));
    el_gpu_processes_close(gpus);
    return models;
}

static json_t *figure_of(const struct el_regress_cell *cell)
{
    json_t *launches = json_array();
    for (size_t i = 0; i < cell->n_head; i++) json_array_append_new(launches, el_json_real(cell->head[i]));
    json_t *figure =
        json_pack("{s:o, s:s, s:o, s:o}", "unit", el_json_string(cell->unit), "better", el_better_text(cell->better),
                  "value", el_json_real(el_stats_median(cell->head, cell->n_head)), "launches", launches);
    if (cell->kind == EL_CELL_EXACT) json_object_set_new(figure, "exact", json_true());
    return figure;
}

enum el_status el_program_save(const struct el_regress_set *set, const char *name, const char *dir)
{
    char path[EL_PATH_BYTES + 32];
    json_t *figures = json_object();
    for (size_t i = 0; i < set->n; i++)
        if (set->cells[i].fault == EL_CELL_FAULTLESS && set->cells[i].n_head > 0)
            json_object_set_new(figures, set->cells[i].name, figure_of(&set->cells[i]));
    json_t *document = document_of(el_environment(), name, "ok", gpu_models(), figures);
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was launched");
    snprintf(path, sizeof path, "%s/%s", dir, files[1]);
    enum el_status status = el_write_json(document, path);
    json_decref(document);
    return status;
}

/* ---- a command that was watched ---- */

static void put_watched(json_t *figures, const char *name, const char *unit, double value)
{
    if (!(value > 0)) return; /* not known, or below what the system counts */
    json_object_set_new(
        figures, name,
        json_pack("{s:s, s:s, s:f, s:[f]}", "unit", unit, "better", "lower", "value", value, "launches", value));
}

static json_t *program_of_watch(const json_t *run)
{
    const json_t *trial = el_json_at(run, "trials.0"), *gpus = el_json_at(run, "watch.gpus");
    json_t *figures = json_object(), *models = json_array();
    put_watched(figures, "seconds", "s", el_json_number(run, "watch.seconds"));
    put_watched(figures, "cpu_s", "s", el_json_number(run, "watch.cpu_s"));
    put_watched(figures, "resident_peak_bytes", "B", el_json_number(run, "watch.resident_peak_bytes"));
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        char name[48];
        const json_t *gpu = json_array_get(gpus, i);
        snprintf(name, sizeof name, "gpu_peak_bytes[%zu]", i);
        put_watched(figures, name, "B", el_json_number(gpu, "ours_peak_bytes"));
        json_array_append_new(models, el_json_string(el_json_text(gpu, "name", "?")));
    }
    json_t *document =
        document_of(json_deep_copy(json_object_get(run, "environment")), el_json_text(trial, "command", "?"),
                    el_json_text(trial, "status", "failed"), models, figures);
    json_object_set_new(el_json_at(document, "trials.0"), "reason",
                        el_json_string(el_json_text(trial, "reason", NULL)));
    return document;
}

enum el_status el_run_load(const char *dir, json_t **run_p)
{
    char path[EL_PATH_BYTES];
    json_t *run = NULL;
    if (!find_record(dir, path))
        return el_fail(EL_ERR_IO, "%.200s: there is no run in it (no %s, no %s): give the folder of a run", dir,
                       files[0], files[1]);
    EL_TRY(el_record_read(path, &run));
    *run_p = json_object_get(run, "watch") ? program_of_watch(run) : json_incref(run);
    json_decref(run);
    return *run_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for what was watched");
}
