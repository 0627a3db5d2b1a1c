/* Which record a folder holds; launches of somebody's program as a run's document. */
#include "bench/regress/run_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/machine/environment.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
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

/* Drawn for each run: two in one second may have equal figures, and are two sessions. */
static json_t *draw_id(void)
{
    uint64_t drawn;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) return NULL;
    return json_sprintf("%016" PRIx64, drawn);
}

enum el_status el_program_save(const struct el_regress_set *set, const char *name, const char *dir)
{
    static const char *const of_build[] = {"commit", "compiler", "compiler_flags", "mpi", "cpu_library", "nccl"};
    char path[EL_PATH_BYTES + 32];
    json_t *figures = json_object(), *environment = el_environment();
    for (size_t i = 0; i < sizeof of_build / sizeof of_build[0]; i++)
        json_object_set_new(environment, of_build[i], json_null());
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        if (cell->fault != EL_CELL_SAME || cell->n_head == 0) continue;
        el_json_put(figures, cell->name,
                    el_figure_new(cell->unit, cell->better, el_stats_median(cell->head, cell->n_head),
                                  el_json_reals(cell->head, cell->n_head), cell->kind == EL_CELL_EXACT));
    }
    json_t *trials = json_pack("[{s:o, s:s, s:o, s:o}]", "program", el_json_string(name), "status", "ok", "gpus",
                               gpu_models(), "figures", figures);
    json_t *document = el_record_run(environment, trials);
    json_t *id = draw_id();
    if (!document || !id) {
        json_decref(document);
        json_decref(id);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was launched");
    }
    el_json_put(document, "run_id", id);
    snprintf(path, sizeof path, "%s/%s", dir, files[1]);
    enum el_status status = el_write_json(document, path);
    json_decref(document);
    return status;
}

enum el_status el_run_load(const char *dir, json_t **run_p)
{
    char path[EL_PATH_BYTES];
    json_t *run = NULL;
    if (!find_record(dir, path))
        return el_fail(EL_ERR_IO, "%.200s: there is no run in it (no %s, no %s): give the folder of a run", dir,
                       files[0], files[1]);
    EL_TRY(el_record_read(path, &run));
    if (json_object_get(run, "watch")) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID,
                       "%s is a watch of one launch: 'baseline add --from' launches a program several "
                       "times",
                       path);
    }
    *run_p = run;
    return EL_OK;
}
