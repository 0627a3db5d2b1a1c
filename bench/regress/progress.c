/* Launches as the command line asks for them: what is said meanwhile, and what is kept of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/campaign/runner.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "bench/regress/launches.h"
#include "bench/regress/rule.h"
#include "bench/regress/session.h"
#include "bench/stats/stats.h"
#include "profiles/gpu_processes.h"
#include "runtime/base/clock.h"

static const int64_t MINUTE_NS = 60000000000;

static struct el_regress_launching *waiting; /* a go_on has no context */

static bool go_on(void)
{
    if (waiting->out) el_regress_progress_wait(waiting);
    return !el_runner_interrupted();
}

static void begin(const struct el_options *options, const char *dir, struct el_regress_launching *launching)
{
    *launching = (struct el_regress_launching){.options = options,
                                               .go_on = go_on,
                                               .out = options->quiet ? NULL : stderr,
                                               .terminal = isatty(STDERR_FILENO),
                                               .period_ns = MINUTE_NS};
    launching->begin_ns = launching->line_ns = el_clock_ns();
    if (options->hook) el_python_hook_begin(dir, "", &launching->hook);
    waiting = launching;
    el_runner_catch_signals();
}

/* ---- what is kept ---- */

/* The models of this host's GPUs, as the driver names them; none without one. */
static json_t *gpu_models(void)
{
    json_t *models = json_array();
    struct el_nvml_api api;
    struct el_gpu_processes *gpus = NULL;
    if (el_nvml_load(&api) == EL_OK && el_gpu_processes_open(&api, &gpus) == EL_OK)
        for (int i = 0; i < gpus->n; i++) json_array_append_new(models, el_json_string(gpus->gpus[i].name));
    el_gpu_processes_close(gpus);
    return models;
}

/* The head's cells that can be read. */
static json_t *figures_of(const struct el_regress_set *set)
{
    json_t *figures = json_object();
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        if (cell->fault != EL_CELL_SAME || cell->n_head == 0) continue;
        el_json_put(figures, cell->name,
                    el_figure_new(cell->unit, cell->better, el_stats_median(cell->head, cell->n_head),
                                  el_json_reals(cell->head, cell->n_head), cell->kind == EL_CELL_EXACT));
    }
    return figures;
}

/* The commit of the folder in which the program is launched, "-dirty" if its files differ; else what a continuous
 * integration says of it. */
static json_t *commit_here(void)
{
    char text[64] = "";
    FILE *git = popen("git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null", "r");
    if (git && fgets(text, sizeof text, git)) text[strcspn(text, "\n")] = 0;
    if (git) pclose(git);
    const char *github = getenv("GITHUB_SHA"), *gitlab = getenv("CI_COMMIT_SHA");
    return el_json_filled(*text ? text : github ? github : gitlab ? gitlab : "");
}

/* The head's launches as a run's document. What depends on the build of evenload is null in its environment: it does
 * not change what somebody else's program measures. The commit is the program's. */
static enum el_status save(const struct el_options *options, const char *dir, const struct el_regress_set *set)
{
    static const char *const of_build[] = {"commit", "compiler", "compiler_flags", "mpi", "cpu_library", "nccl"};
    const struct el_regress_options *r = &options->regress;
    const char *name = r->name[0] ? r->name : r->ab[0] ? options->dir : r->from;
    json_t *environment = el_environment();
    for (size_t i = 0; i < sizeof of_build / sizeof of_build[0]; i++)
        json_object_set_new(environment, of_build[i], json_null());
    el_json_put(environment, "commit", commit_here());
    json_t *trial = el_json_of(EL_KEY("program", name), EL_KEY("status", "ok"), EL_KEY("gpus", gpu_models()),
                               EL_KEY("figures", figures_of(set)));
    return el_session_save_programs(environment, json_pack("[o]", trial), dir);
}

enum el_status el_launching_ab(const struct el_options *options, const char *dir, struct el_regress_set *set)
{
    struct el_regress_launching launching;
    begin(options, dir, &launching);
    EL_TRY(el_regress_ab(&launching, set));
    return set->blocks ? save(options, dir, set) : EL_OK;
}

enum el_status el_launching_from(const struct el_options *options, const char *dir, struct el_regress_set *set)
{
    struct el_regress_set launched = {0};
    struct el_regress_launching launching;
    begin(options, dir, &launching);
    enum el_status status = el_regress_launches(&launching, &launched);
    if (status == EL_OK && !el_runner_interrupted()) status = save(options, dir, &launched);
    set->unjudged = json_incref(launched.unjudged);
    el_regress_free(&launched);
    return status;
}

/* ---- progress ---- */

/* A budget that is known to end before the first analysis, as soon as it is known. */
static void say_budget(const struct el_regress_launching *p, size_t timed, int next, double block_s)
{
    int needed = el_regress_blocks_needed(timed, el_regress_level(0, true));
    double fit = p->options->regress.budget_s < 0 ? INFINITY : fmax(1, floor(p->options->regress.budget_s / block_s));
    if (fit >= next) return;
    fprintf(p->out,
            "note: --budget of %.0f s ends after about %.0f block%s, before the first analysis: %s %d blocks, "
            "about %.0f s, are the least\n",
            p->options->regress.budget_s, fit, fit == 1 ? "" : "s",
            fit < needed ? "this run will be inconclusive:" : "those are analysed once, at its end;", needed,
            ceil(needed * block_s));
}

static void say_begin(const struct el_regress_launching *p, const struct el_regress_set *set, int next, double block_s)
{
    size_t timed = 0;
    for (size_t i = 0; i < set->n; i++) timed += set->cells[i].kind != EL_CELL_EXACT;
    int needed = el_regress_blocks_needed(timed, el_regress_level(0, p->options->regress.blocks > 0));
    const char *ending = set->n == 1 ? "" : "s";
    if (!p->options->regress.ab[0]) {
        fprintf(p->out, "%zu figure%s; a launch takes %.1f s, all %d about %.0f s\n", set->n, ending, block_s, next,
                block_s * next);
        return;
    }
    fprintf(p->out, "%zu cell%s; a block takes %.1f s, the first analysis is after %d (about %.0f s)\n", set->n, ending,
            block_s, next, block_s * next);
    say_budget(p, timed, next, block_s);
    if (needed > next)
        fprintf(p->out, "note: with %zu timed cell%s significance needs %d blocks%s\n", timed, timed == 1 ? "" : "s",
                needed, timed == 1 ? "" : ": choose fewer with --metric");
}

static void say_line(struct el_regress_launching *p)
{
    double elapsed_s = (double)(el_clock_ns() - p->begin_ns) / 1e9;
    const char *what = p->options->regress.ab[0] ? "block" : "launch";
    fprintf(p->out, "%s%s %d of %d, %.0f s%s", p->terminal ? "\r" : "", what, p->blocks, p->next, elapsed_s,
            p->terminal ? " " : "\n");
    fflush(p->out);
    p->line_ns = el_clock_ns();
}

void el_regress_progress_wait(struct el_regress_launching *p)
{
    if (!p->terminal && p->blocks > 0 && el_clock_ns() - p->line_ns >= p->period_ns) say_line(p);
}

void el_regress_progress_block(struct el_regress_launching *p, const struct el_regress_set *set, int next,
                               double elapsed_s)
{
    p->blocks = set->blocks;
    p->next = next;
    if (set->blocks == 1) say_begin(p, set, next, elapsed_s);
    if (p->terminal) say_line(p);
    el_regress_progress_wait(p);
    if (set->blocks == next && p->options->regress.ab[0])
        fprintf(p->out, "%sanalysis after block %d, %.0f s\n", p->terminal ? "\n" : "", set->blocks, elapsed_s);
}
