/* Blocks, cells and texts of a data file. */
#include "bench/plot/data_file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "runtime/modes/mode_info.h"

enum { CPUS_MAX = 1024 };

static enum el_status put_file(const char *plots_dir, const char *path, const char *text)
{
    char temporary[EL_PATH_BYTES + 64];
    if (mkdir(plots_dir, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s could not be made", plots_dir);
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    fputs(text, file);
    return el_file_end(file, temporary, path);
}

enum el_status el_data_save(const struct el_figure *figure, const json_t *document, const char *plots_dir,
                            bool *drawn_p)
{
    char path[EL_PATH_BYTES], *text = NULL;
    size_t bytes = 0;
    bool any = false;
    *drawn_p = false;
    if ((size_t)snprintf(path, sizeof path, "%s/%s.dat", plots_dir, figure->name) >= sizeof path)
        return el_fail(EL_ERR_INVALID, "%s: the path is too long", plots_dir);
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL) return el_fail(EL_ERR_HOST_MEMORY, "%s: out of memory", path);
    enum el_status status = figure->write(figure, document, memory, &any);
    fputs("\n\n", memory);
    bool bad = ferror(memory) != 0;
    bad |= fclose(memory) != 0;
    if (status == EL_OK && bad) status = el_fail(EL_ERR_HOST_MEMORY, "%s: out of memory", path);
    if (status == EL_OK && any) status = put_file(plots_dir, path, text);
    if (status == EL_OK && !any) remove(path); /* an earlier run's */
    free(text);
    *drawn_p = status == EL_OK && any;
    return status;
}

static struct el_data_text safe(const char *foreign, const char *allowed)
{
    struct el_data_text safe;
    snprintf(safe.text, sizeof safe.text, "%s", *foreign ? foreign : "_");
    for (char *at = safe.text; *at; at++)
        if (!strchr(allowed, *at)) *at = '_';
    return safe;
}

#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:/-"

struct el_data_text el_data_word(const char *foreign)
{
    return safe(foreign, WORD);
}

struct el_data_text el_data_label(const char *foreign)
{
    return safe(foreign, WORD " ");
}

void el_data_add_name(char list[EL_NAMES_BYTES], const char *foreign)
{
    struct el_data_text name = el_data_word(foreign);
    size_t used = strlen(list), length = strlen(name.text);
    if (used + length + 2 <= EL_NAMES_BYTES)
        snprintf(list + used, EL_NAMES_BYTES - used, "%s%s", used == 0 ? "" : " ", name.text);
}

void el_data_block(FILE *file, const char *columns, const char *name, ...)
{
    va_list list;
    fputs(ftell(file) > 0 ? "\n\n# " : "# ", file); /* ends the previous block */
    va_start(list, name);
    vfprintf(file, name, list);
    va_end(list);
    fprintf(file, "\n# columns: %s\n", columns);
}

void el_data_number(FILE *file, double value)
{
    fprintf(file, isnan(value) ? "\t?" : "\t%.6g", value);
}

static const char *or_blank(const char *text)
{
    return text != NULL && *text ? text : " "; /* a cell is never empty */
}

void el_data_about(FILE *file, const struct el_data_about *about, const char *columns)
{
    const struct el_data_names none = {"", ""}, *names = about->names ? about->names : &none;
    char all[256];
    snprintf(all, sizeof all, "title, parts drawn, parts too thin for the legend, right end, width in bars, foot%s",
             columns);
    el_data_block(file, all, "about");
    fprintf(file, "%s\t%s\t%s\t%.6g\t%g\t%s", about->title, or_blank(names->present), or_blank(names->thin),
            about->right, about->bars, or_blank(about->foot));
}

void el_data_looks(FILE *file, const struct el_data_names *modes)
{
    el_data_block(file, "mode, fill, ink, pattern, point, its size", "looks");
    fputs("*\t0\t0\t0\t0\t0\n", file); /* a block is never empty */
    for (const char *at = modes->present, *end; *at; at = *end ? end + 1 : end) {
        struct el_data_text name;
        end = at + strcspn(at, " ");
        snprintf(name.text, sizeof name.text, "%.*s", (int)(end - at), at);
        const struct el_mode_info *mode = el_mode_find(name.text);
        if (mode == NULL) continue;
        fprintf(file, "%s\t%d\t%d\t%d\t%d\t%g\n", mode->name, (int)mode->look.fill, (int)mode->look.ink,
                mode->look.pattern, mode->look.point, mode->look.point_size);
    }
}

bool el_data_seen(const json_t *rows, size_t i, const char *key)
{
    const json_t *value = json_object_get(json_array_get(rows, i), key);
    size_t k = 0;
    while (k < i && !json_equal(json_object_get(json_array_get(rows, k), key), value)) k++;
    return k < i;
}

bool el_data_has_mark(const json_t *trial)
{
    static const char *const unmarked[] = {"valid", "predicted", "simulated"};
    bool marked = !strcmp(el_json_text(trial, "status", "ok"), "ok");
    for (size_t i = 0; i < sizeof unmarked / sizeof unmarked[0]; i++)
        marked &= strcmp(el_json_text(trial, "verdict", "valid"), unmarked[i]) != 0;
    return marked;
}

void el_data_foot(const json_t *trials, const char *words, char foot[EL_TITLE_BYTES])
{
    bool simulated = false;
    EL_EACH(trial, trials)
        simulated |= json_is_true(json_object_get(trial, "simulated")) || el_json_is(trial, "verdict", "simulated");
    snprintf(foot, EL_TITLE_BYTES, "%s%s%s", words ? words : "", words && simulated ? " " : "",
             simulated ? "Simulated: computed, not measured." : "");
}

void el_data_warning(FILE *file, const json_t *trials, const char *more)
{
    size_t n = 0, n_suspect = 0;
    EL_EACH(trial, trials) {
        n += el_data_has_mark(trial);
        n_suspect += el_data_has_mark(trial) && el_json_is(trial, "verdict", "suspect");
    }
    el_data_block(file, "trials with a mark, and why", "warning");
    fprintf(file, "%zu\t", n);
    if (n == 0)
        fputs("none\n", file);
    else if (n_suspect == 0 || n_suspect == n)
        fprintf(file, "%s, see the warnings%s\n", n_suspect == 0 ? "not checked" : "suspect", more ? more : "");
    else
        fprintf(file, "suspect (%zu) or not checked (%zu), see the warnings%s\n", n_suspect, n - n_suspect,
                more ? more : "");
}

static const json_t *devices_of(const json_t *trial)
{
    return json_object_get(trial, "per_device");
}

static const json_t *widest(const json_t *trials)
{
    const json_t *found = json_array_get(trials, 0);
    EL_EACH(trial, trials) {
        size_t here = json_array_size(devices_of(trial)), there = json_array_size(devices_of(found));
        if (here != there ? here > there : el_json_number(trial, "devices") > el_json_number(found, "devices"))
            found = trial;
    }
    return found;
}

/* Cut at any of `ends` ("cpu" of "cpu:0"); else "". */
static struct el_data_text common(const json_t *devices, const char *key, const char *ends)
{
    struct el_data_text all = {""}, own;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *text = el_json_text(json_array_get(devices, i), key, "");
        snprintf(own.text, sizeof own.text, "%.*s", (int)strcspn(text, ends), text);
        if (i > 0 && strcmp(own.text, all.text) != 0) return (struct el_data_text){""};
        all = own;
    }
    return all;
}

static int count_cores(const json_t *devices)
{
    bool used[CPUS_MAX] = {false};
    int n = 0;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *cores = json_object_get(json_array_get(devices, i), "cores");
        if (json_array_size(cores) == 0) return 0;
        for (size_t k = 0; k < json_array_size(cores); k++) {
            int64_t cpu = el_json_whole(json_array_get(cores, k), "cpu");
            if (cpu < 0 || cpu >= CPUS_MAX || used[cpu]) continue;
            used[cpu] = true;
            n++;
        }
    }
    return n;
}

/* "2 CPU cores", "4 CPU devices on 2 cores", "2 x NVIDIA H100", "2 simulated devices" */
static void devices_text(const json_t *trial, char text[EL_TITLE_BYTES])
{
    int n = (int)json_array_size(devices_of(trial)), cores = count_cores(devices_of(trial));
    if (n == 0) n = (int)fmax(0, fmin(1e6, el_json_number(trial, "devices")));
    struct el_data_text model = common(devices_of(trial), "model", "");
    bool ran = strcmp(el_json_text(trial, "verdict", ""), "predicted") != 0;
    bool cpu = ran && strcmp(common(devices_of(trial), "device", ":").text, "cpu") == 0;
    const char *s = n == 1 ? "" : "s";
    if (json_is_true(json_object_get(trial, "simulated")))
        snprintf(text, EL_TITLE_BYTES, "%d simulated device%s", n, s);
    else if (cpu && cores == n)
        snprintf(text, EL_TITLE_BYTES, "%d CPU core%s", n, s);
    else if (cpu && cores > 0)
        snprintf(text, EL_TITLE_BYTES, "%d CPU device%s on %d core%s", n, s, cores, cores == 1 ? "" : "s");
    else if (cpu)
        snprintf(text, EL_TITLE_BYTES, "%d CPU device%s", n, s);
    else if (*model.text)
        snprintf(text, EL_TITLE_BYTES, "%d x %s", n, el_data_label(model.text).text);
    else
        snprintf(text, EL_TITLE_BYTES, "%d device%s", n, s);
}

/* The text at the first key, or at the second one in records that lack it. */
static const char *text_at(const json_t *trial, const char *const keys[2])
{
    const char *text = el_json_text(trial, keys[0], NULL);
    return text ? text : el_json_text(trial, keys[1] ? keys[1] : keys[0], "?");
}

/* What all trials have in common. */
void el_data_title(const json_t *trials, char title[EL_TITLE_BYTES])
{
    static const char *const keys[][2] = {{"model"}, {"config.precision", "dtype"}, {"optimizer"}};
    char devices[EL_TITLE_BYTES];
    *title = 0;
    for (int k = 0; k < 3; k++) {
        const char *first = text_at(json_array_get(trials, 0), keys[k]);
        bool same = true;
        EL_EACH(trial, trials) same = same && !strcmp(text_at(trial, keys[k]), first);
        if (same) el_text_append(title, EL_TITLE_BYTES, "%s, ", el_data_label(first).text);
    }
    devices_text(widest(trials), devices);
    el_text_append(title, EL_TITLE_BYTES, "%.100s", devices);
}
