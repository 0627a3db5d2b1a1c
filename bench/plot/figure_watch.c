/* Memory, CPU time and GPU memory of the heaviest processes over time; a process has the same line in all panels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/plot/plot.h"
#include "bench/report/report.h"

enum { LINES_MAX = 8, PROGRAM_LETTERS = 17, WIDTH_BARS = 10, CPU_STEPS = 150, RESIDENT = 0, CPU = 1, GPUS = 2 };
static const double MIB = 1048576, CPU_STEP_S = 0.5; /* shorter steps are rough: the system ticks every 10 ms */

struct curve {
    const json_t *of; /* the process, or its use of a GPU */
    int panel, line;
};

struct picture {
    const json_t *watch;
    const json_t *lines[LINES_MAX]; /* processes */
    int n_lines;
    struct curve *curves; /* by panel */
    int n_curves, n_panels;
    double right_s;
};

static size_t points_of(const json_t *thing)
{
    return json_array_size(el_json_at(thing, "series.bytes"));
}

static bool is_peer(const json_t *process)
{
    return json_is_true(json_object_get(process, "peer"));
}

/* Peers first, in order, then by peak. */
static bool comes_before(const json_t *a, const json_t *b)
{
    if (is_peer(a) || is_peer(b)) return is_peer(a) && !is_peer(b);
    return el_json_number(a, "peak_bytes") > el_json_number(b, "peak_bytes");
}

static void choose_lines(struct picture *picture)
{
    const json_t *processes = json_object_get(picture->watch, "processes");
    EL_EACH(process, processes) {
        if (points_of(process) <= 1) continue;
        int at = picture->n_lines < LINES_MAX ? picture->n_lines++ : LINES_MAX;
        for (; at > 0 && comes_before(process, picture->lines[at - 1]); at--)
            if (at < LINES_MAX) picture->lines[at] = picture->lines[at - 1];
        if (at < LINES_MAX) picture->lines[at] = process;
    }
}

static void add_curve(struct picture *picture, const json_t *of, int panel, int line)
{
    picture->curves[picture->n_curves++] = (struct curve){of, panel, line};
    if (panel >= picture->n_panels) picture->n_panels = panel + 1;
}

static int line_of(const struct picture *picture, int64_t process)
{
    const json_t *processes = json_object_get(picture->watch, "processes");
    for (int k = 0; k < picture->n_lines; k++)
        if (process >= 0 && picture->lines[k] == json_array_get(processes, (size_t)process)) return k;
    return -1;
}

/* A GPU has a panel if a drawn process has memory there over time. */
static enum el_status choose_curves(struct picture *picture)
{
    const json_t *uses = json_object_get(picture->watch, "gpu_processes");
    size_t n_gpus = json_array_size(json_object_get(picture->watch, "gpus")), n_uses = json_array_size(uses);
    picture->curves = calloc((size_t)GPUS * LINES_MAX + n_uses, sizeof *picture->curves);
    if (!picture->curves) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a figure of %zu curves", n_uses);
    picture->n_panels = GPUS;
    for (int panel = 0; panel < GPUS; panel++)
        for (int k = 0; k < picture->n_lines; k++) add_curve(picture, picture->lines[k], panel, k);
    for (size_t gpu = 0; gpu < n_gpus; gpu++) {
        int panel = picture->n_panels;
        for (size_t u = 0; u < n_uses; u++) {
            const json_t *use = json_array_get(uses, u);
            int line = line_of(picture, el_json_whole(use, "process"));
            if (el_json_number(use, "gpu") == (double)gpu && line >= 0 && points_of(use) > 0)
                add_curve(picture, use, panel, line);
        }
    }
    return EL_OK;
}

static void shorten(char *program, size_t bytes)
{
    size_t end = PROGRAM_LETTERS;
    if (strlen(program) <= end) return;
    while (end > 0 && program[end] != ' ') end--;
    size_t at = end ? end : PROGRAM_LETTERS;
    snprintf(program + at, bytes - at, "%s", end ? " ..." : "...");
}

/* "rank 0 (4711)", "4711 python train.py" */
static struct el_data_text name_of(const json_t *process)
{
    double rank = el_json_number(process, "rank"), pid = el_json_number(process, "pid");
    char program[128];
    struct el_data_text name;
    el_table_command(el_json_text(process, "command", el_json_text(process, "name", "?")), program, sizeof program);
    shorten(program, sizeof program);
    if (isnan(rank))
        snprintf(name.text, sizeof name.text, "%.0f %.21s", pid, el_data_label(program).text);
    else
        snprintf(name.text, sizeof name.text, "rank %.0f (%.0f)", rank, pid);
    return name;
}

static void put_about(const struct picture *picture, const json_t *run, FILE *file)
{
    size_t n = json_array_size(json_object_get(picture->watch, "processes"));
    const json_t *trial = json_array_get(json_object_get(run, "trials"), 0);
    const char *command = el_json_text(trial, "model", "?"), *slash = strrchr(command, '/');
    char heaviest[48] = "", title[EL_TITLE_BYTES];
    if (n > (size_t)picture->n_lines) snprintf(heaviest, sizeof heaviest, ", the %d heaviest", picture->n_lines);
    snprintf(title, sizeof title, "%s, %zu process%s%s", el_data_label(slash && slash[1] ? slash + 1 : command).text, n,
             n == 1 ? "" : "es", heaviest);
    el_data_about(file, &(struct el_data_about){title, NULL, picture->right_s, WIDTH_BARS, NULL}, ", panels, lines");
    fprintf(file, "\t%d\t%d\n", picture->n_panels, picture->n_lines);
    el_data_block(file, "name", "names");
    for (int k = 0; k < picture->n_lines; k++) fprintf(file, "%s\n", name_of(picture->lines[k]).text);
}

static void put_panels(const struct picture *picture, FILE *file)
{
    el_data_block(file, "title, unit, lines", "panels");
    for (int i = 0; i < picture->n_curves; i++) {
        const struct curve *curve = &picture->curves[i];
        bool first = i == 0 || curve->panel != picture->curves[i - 1].panel;
        if (first && curve->panel == RESIDENT) fputs("resident memory\tMiB\t", file);
        if (first && curve->panel == CPU) fputs("\nCPU time\t% of a core\t", file);
        if (first && curve->panel >= GPUS)
            fprintf(file, "\nmemory on gpu:%.0f\tMiB\t", el_json_number(curve->of, "gpu"));
        fprintf(file, "%s%d", first ? "" : " ", curve->line);
    }
    fputc('\n', file);
}

static double second_of(const struct picture *picture, const json_t *thing, size_t i)
{
    size_t frame = (size_t)el_json_whole(thing, "series.from") + i;
    return json_number_value(json_array_get(json_object_get(picture->watch, "frames_s"), frame));
}

static double value_of(const json_t *thing, const char *path, size_t i)
{
    return json_number_value(json_array_get(el_json_at(thing, path), i));
}

/* Steps of at least half a second, or a third of a shorter watch. */
static void put_cpu(const struct picture *picture, const json_t *process, FILE *file)
{
    double step_s = fmax(fmin(CPU_STEP_S, picture->right_s / 3), picture->right_s / CPU_STEPS);
    double begin_s = second_of(picture, process, 0), from_s = begin_s;
    double from_cpu_s = value_of(process, "series.cpu_s", 0);
    for (size_t i = 1; i < points_of(process); i++) {
        double to_s = second_of(picture, process, i), cpu_s = value_of(process, "series.cpu_s", i);
        bool last = i + 1 == points_of(process);
        if (to_s - from_s < step_s && !(last && to_s - from_s > 0.2 * step_s)) continue;
        double pct = 100 * (cpu_s - from_cpu_s) / (to_s - from_s);
        fprintf(file, "%.6g\t%.4g\n%.6g\t%.4g\n", from_s, pct, to_s, pct);
        from_s = to_s;
        from_cpu_s = cpu_s;
    }
    if (from_s == begin_s) fputs("?\t?\n", file);
}

static void put_curve(const struct picture *picture, const struct curve *curve, FILE *file)
{
    bool cpu = curve->panel == CPU;
    el_data_block(file, cpu ? "s, % of a core" : "s, MiB", "%d %d", curve->panel, curve->line);
    if (cpu) put_cpu(picture, curve->of, file);
    for (size_t i = 0; i < points_of(curve->of) && !cpu; i++)
        fprintf(file, "%.6g\t%.6g\n", second_of(picture, curve->of, i), value_of(curve->of, "series.bytes", i) / MIB);
}

static enum el_status write_watch(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    struct picture picture = {.watch = json_object_get(run, "watch")};
    const json_t *frames_s = json_object_get(picture.watch, "frames_s");
    picture.right_s = json_number_value(json_array_get(frames_s, json_array_size(frames_s) - 1));
    choose_lines(&picture);
    if (picture.n_lines == 0 || !(picture.right_s > 0)) return EL_OK;
    EL_TRY(choose_curves(&picture));
    put_about(&picture, run, file);
    put_panels(&picture, file);
    for (int i = 0; i < picture.n_curves; i++) put_curve(&picture, &picture.curves[i], file);
    free(picture.curves);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_watch = {.name = "watch", .write = write_watch};
