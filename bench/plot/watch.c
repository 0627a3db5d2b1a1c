/* The data file of a watch: memory and CPU time of its heaviest processes over time, and what they held on GPUs; a
 * panel each, a line a process, the same line everywhere. All arithmetic is here, none in the script. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/plot/layout.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/report/parts.h"

enum { LINES_MAX = 8, WIDTH_BARS = 10, CPU_STEPS = 150 };
static const double MIB = 1048576, CPU_STEP_S = 0.5; /* the system's ticks of 10 ms make shorter steps rough */

struct line {
    const json_t *process;
    char name[EL_NAME_BYTES];
};

struct picture {
    const json_t *watch;
    struct line lines[LINES_MAX];
    int n;
    double right_s;
    FILE *file;
};

static size_t points_of(const json_t *thing)
{
    return json_array_size(el_json_at(thing, "series.bytes"));
}

static bool is_peer(const json_t *process)
{
    return json_is_true(json_object_get(process, "peer"));
}

/* Peers first, as they were found, then the heavier. */
static bool comes_before(const json_t *a, const json_t *b)
{
    if (is_peer(a) || is_peer(b)) return is_peer(a) && !is_peer(b);
    return el_json_number(a, "peak_bytes") > el_json_number(b, "peak_bytes");
}

static void add_line(struct picture *picture, const json_t *process)
{
    int at = picture->n < LINES_MAX ? picture->n++ : LINES_MAX;
    while (at > 0 && comes_before(process, picture->lines[at - 1].process)) {
        if (at < LINES_MAX) picture->lines[at] = picture->lines[at - 1];
        at--;
    }
    if (at < LINES_MAX) picture->lines[at].process = process;
}

/* "rank 0 (4711)", "4711 python train.py": enough to find the row of the table. */
static void name_line(struct line *line)
{
    double rank = el_json_number(line->process, "rank"), pid = el_json_number(line->process, "pid");
    char program[128], name[256];
    el_table_command(el_json_text(line->process, "command", el_json_text(line->process, "name", "?")), program,
                     sizeof program);
    if (isnan(rank))
        snprintf(name, sizeof name, "%.0f %.18s", pid, program);
    else
        snprintf(name, sizeof name, "rank %.0f (%.0f)", rank, pid);
    el_layout_text(name, line->name, sizeof line->name);
}

static void choose_lines(struct picture *picture)
{
    const json_t *processes = json_object_get(picture->watch, "processes");
    for (size_t i = 0; i < json_array_size(processes); i++)
        if (points_of(json_array_get(processes, i)) > 1) add_line(picture, json_array_get(processes, i));
    for (int k = 0; k < picture->n; k++) name_line(&picture->lines[k]);
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

static void begin_line(struct picture *picture, int panel, int line, const char *columns)
{
    char name[32];
    snprintf(name, sizeof name, "%d %d", panel, line);
    el_layout_begin(picture->file, name, columns);
}

static void write_bytes(struct picture *picture, const json_t *thing)
{
    for (size_t i = 0; i < points_of(thing); i++)
        fprintf(picture->file, "%.6g\t%.6g\n", second_of(picture, thing, i), value_of(thing, "series.bytes", i) / MIB);
}

/* Steps of half a second at least, of a third where it took no longer. */
static void write_cpu(struct picture *picture, const json_t *process)
{
    double step_s = fmax(fmin(CPU_STEP_S, picture->right_s / 3), picture->right_s / CPU_STEPS);
    double from_s = second_of(picture, process, 0), from_cpu_s = value_of(process, "series.cpu_s", 0);
    for (size_t i = 1; i < points_of(process); i++) {
        double to_s = second_of(picture, process, i), cpu_s = value_of(process, "series.cpu_s", i);
        bool last = i + 1 == points_of(process);
        if (to_s - from_s < step_s && !(last && to_s - from_s > 0.2 * step_s)) continue;
        double pct = 100 * (cpu_s - from_cpu_s) / (to_s - from_s);
        fprintf(picture->file, "%.6g\t%.4g\n%.6g\t%.4g\n", from_s, pct, to_s, pct);
        from_s = to_s;
        from_cpu_s = cpu_s;
    }
    if (from_s == second_of(picture, process, 0)) fputs("?\t?\n", picture->file);
}

/* The line of a process that is drawn; -1. */
static int line_of(const struct picture *picture, size_t process)
{
    for (int k = 0; k < picture->n; k++)
        if (picture->lines[k].process == json_array_get(json_object_get(picture->watch, "processes"), process))
            return k;
    return -1;
}

/* Whether any of the drawn processes has memory on the GPU over time. */
static bool has_gpu(const struct picture *picture, size_t gpu)
{
    const json_t *uses = json_object_get(picture->watch, "gpu_processes");
    for (size_t u = 0; u < json_array_size(uses); u++) {
        const json_t *use = json_array_get(uses, u);
        if (el_json_number(use, "gpu") == (double)gpu && points_of(use) > 0 &&
            line_of(picture, (size_t)el_json_whole(use, "process")) >= 0)
            return true;
    }
    return false;
}

static void write_gpu(struct picture *picture, size_t gpu, int panel)
{
    const json_t *uses = json_object_get(picture->watch, "gpu_processes");
    for (size_t u = 0; u < json_array_size(uses); u++) {
        const json_t *use = json_array_get(uses, u);
        int line = line_of(picture, (size_t)el_json_whole(use, "process"));
        if (el_json_number(use, "gpu") != (double)gpu || line < 0 || points_of(use) == 0) continue;
        begin_line(picture, panel, line, "s, MiB");
        write_bytes(picture, use);
        el_layout_end(picture->file);
    }
}

/* Which lines a panel has, as words: a GPU has not all. */
static void write_panel(struct picture *picture, const char *title, const char *unit, const char *lines)
{
    fprintf(picture->file, "%s\t%s\t%s\n", title, unit, lines);
}

static void lines_of_gpu(const struct picture *picture, size_t gpu, char *text, size_t bytes)
{
    const json_t *uses = json_object_get(picture->watch, "gpu_processes");
    size_t used = 0;
    text[0] = '\0';
    for (size_t u = 0; u < json_array_size(uses) && used + 8 < bytes; u++) {
        const json_t *use = json_array_get(uses, u);
        int line = line_of(picture, (size_t)el_json_whole(use, "process"));
        if (el_json_number(use, "gpu") == (double)gpu && line >= 0 && points_of(use) > 0)
            used += (size_t)snprintf(text + used, bytes - used, "%s%d", used ? " " : "", line);
    }
}

static void write_panels(struct picture *picture)
{
    char all[64] = "", some[64], title[64];
    size_t used = 0, n_gpus = json_array_size(json_object_get(picture->watch, "gpus"));
    for (int k = 0; k < picture->n; k++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%d", k ? " " : "", k);
    el_layout_begin(picture->file, "panels", "title, unit, lines");
    write_panel(picture, "resident memory", "MiB", all);
    write_panel(picture, "CPU time", "% of a core", all);
    for (size_t g = 0; g < n_gpus; g++) {
        if (!has_gpu(picture, g)) continue;
        lines_of_gpu(picture, g, some, sizeof some);
        snprintf(title, sizeof title, "memory on gpu:%zu", g);
        write_panel(picture, title, "MiB", some);
    }
    el_layout_end(picture->file);
}

static int count_panels(const struct picture *picture)
{
    int n = 2;
    for (size_t g = 0; g < json_array_size(json_object_get(picture->watch, "gpus")); g++) n += has_gpu(picture, g);
    return n;
}

static void write_about(struct picture *picture, const json_t *run)
{
    size_t n = json_array_size(json_object_get(picture->watch, "processes"));
    const json_t *trial = json_array_get(json_object_get(run, "trials"), 0);
    const char *command = el_json_text(trial, "model", "?"), *slash = strrchr(command, '/');
    char name[EL_NAME_BYTES], heaviest[48] = "", title[EL_TITLE_BYTES];
    el_layout_text(slash && slash[1] ? slash + 1 : command, name, sizeof name);
    if (n > (size_t)picture->n) snprintf(heaviest, sizeof heaviest, ", the %d heaviest", picture->n);
    snprintf(title, sizeof title, "%s, %zu process%s%s", name, n, n == 1 ? "" : "es", heaviest);
    el_layout_begin(picture->file, "about", EL_ABOUT_COLUMNS ", panels, lines");
    el_layout_about(picture->file, title, "", "", picture->right_s, WIDTH_BARS, " ");
    fprintf(picture->file, "\t%d\t%d\n", count_panels(picture), picture->n);
    el_layout_end(picture->file);
    el_layout_begin(picture->file, "names", "name");
    for (int k = 0; k < picture->n; k++) fprintf(picture->file, "%s\n", picture->lines[k].name);
    el_layout_end(picture->file);
}

static void write_picture(struct picture *picture, const json_t *run)
{
    int panel = 2;
    write_about(picture, run);
    write_panels(picture);
    for (int k = 0; k < picture->n; k++) {
        begin_line(picture, 0, k, "s, MiB");
        write_bytes(picture, picture->lines[k].process);
        el_layout_end(picture->file);
        begin_line(picture, 1, k, "s, % of a core");
        write_cpu(picture, picture->lines[k].process);
        el_layout_end(picture->file);
    }
    for (size_t g = 0; g < json_array_size(json_object_get(picture->watch, "gpus")); g++)
        if (has_gpu(picture, g)) write_gpu(picture, g, panel++);
}

enum el_status el_plot_watch(const json_t *run, const char *plots_dir, int *n_files_p)
{
    char path[EL_PATH_BYTES], temporary[EL_PATH_BYTES + 64];
    struct picture picture = {.watch = json_object_get(run, "watch")};
    const json_t *frames_s = json_object_get(picture.watch, "frames_s");
    if (mkdir(plots_dir, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s could not be made", plots_dir);
    snprintf(path, sizeof path, "%s/watch.dat", plots_dir);
    picture.right_s = json_number_value(json_array_get(frames_s, json_array_size(frames_s) - 1));
    choose_lines(&picture);
    if (picture.n == 0 || !(picture.right_s > 0)) {
        remove(path); /* of an earlier run in the same folder */
        return EL_OK;
    }
    picture.file = el_file_begin(path, temporary, sizeof temporary);
    if (!picture.file) return el_fail_errno("%s could not be written", path);
    write_picture(&picture, run);
    EL_TRY(el_file_end(picture.file, temporary, path));
    *n_files_p += 1;
    return EL_OK;
}
