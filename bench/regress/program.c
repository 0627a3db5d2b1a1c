/* Launches of somebody's program, or a watch of it, into a run's document. */
#include "bench/regress/program.h"

#include <stdio.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/machine/environment.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "profiles/gpu_processes.h"

bool el_program_is(const json_t *trial)
{
    return json_is_string(json_object_get(trial, "program"));
}

/* What only evenload's own build says. */
static json_t *without_build(json_t *environment)
{
    static const char *const keys[] = {"commit", "compiler", "compiler_flags", "mpi", "cpu_library", "nccl"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) json_object_set_new(environment, keys[i], json_null());
    return environment;
}

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

static json_t *document_of(json_t *environment, const char *name, json_t *gpus, json_t *figures)
{
    json_t *trial = json_pack("{s:o, s:s, s:o, s:o}", "program", el_json_string(name), "status", "ok", "gpus", gpus,
                              "figures", figures);
    return el_record_run(without_build(environment), trial ? json_pack("[o]", trial) : NULL);
}

enum el_status el_program_save(const struct el_regress_set *set, const char *name, const char *dir)
{
    char path[EL_PATH_BYTES + 32];
    json_t *figures = json_object();
    for (size_t i = 0; i < set->n; i++)
        if (set->cells[i].fault == EL_CELL_FAULTLESS && set->cells[i].n_head > 0)
            json_object_set_new(figures, set->cells[i].name, figure_of(&set->cells[i]));
    json_t *document = document_of(el_environment(), name, gpu_models(), figures);
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was launched");
    snprintf(path, sizeof path, "%s/" EL_PROGRAM_FILE, dir);
    enum el_status status = el_write_json(document, path);
    json_decref(document);
    return status;
}

/* ---- a watched command ---- */

static const struct watched {
    const char *name, *path, *unit;
} watched[] = {
    {"seconds", "watch.seconds", "s"},
    {"cpu_s", "watch.cpu_s", "s"},
    {"resident_peak_bytes", "watch.resident_peak_bytes", "B"},
};

static void put_watched(json_t *figures, const char *name, const char *unit, double value)
{
    if (!(value > 0)) return; /* not known, or below what the system counts */
    json_object_set_new(
        figures, name,
        json_pack("{s:s, s:s, s:f, s:[f]}", "unit", unit, "better", "lower", "value", value, "launches", value));
}

json_t *el_program_of_watch(json_t *run)
{
    const json_t *trial = el_json_at(run, "trials.0"), *gpus = el_json_at(run, "watch.gpus");
    json_t *figures = json_object(), *models = json_array();
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++)
        put_watched(figures, watched[i].name, watched[i].unit, el_json_number(run, watched[i].path));
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        char name[48];
        const json_t *gpu = json_array_get(gpus, i);
        snprintf(name, sizeof name, "gpu_peak_bytes[%zu]", i);
        put_watched(figures, name, "B", el_json_number(gpu, "ours_peak_bytes"));
        json_array_append_new(models, el_json_string(el_json_text(gpu, "name", "?")));
    }
    json_t *document = document_of(json_incref(json_object_get(run, "environment")),
                                   el_json_text(trial, "command", "?"), models, figures);
    json_t *its = el_json_at(document, "trials.0");
    json_object_set_new(its, "status", el_json_string(el_json_text(trial, "status", "failed")));
    json_object_set_new(its, "reason", el_json_string(el_json_text(trial, "reason", NULL)));
    return document;
}
