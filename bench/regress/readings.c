/* What a program printed, into metrics. A line of prose must not become one: a metric is two words, or three of which
 * the last is a unit; the first begins with a letter, and the second is a number and nothing else. */
#include "bench/regress/launches.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/foreign/foreign.h"
#include "bench/regress/session.h"
#include "bench/stats/stats.h"
#include "runtime/base/utf8.h"

/* ---- units ---- */

static const struct unit_kind {
    const char *names; /* between blanks */
    enum el_better better;
    bool directed, exact;
    bool cost, seconds; /* before a slash a cost ("ms/step", "J/sample"); after one a rate ("samples/s") */
} unit_kinds[] = {
    {" s sec second seconds min h ", EL_BETTER_LOWER, .directed = true, .cost = true, .seconds = true},
    {" ns us µs ms mJ J kJ Wh kWh ", EL_BETTER_LOWER, .directed = true, .cost = true},
    {" B byte bytes FLOP FLOPs count calls ops ", EL_BETTER_LOWER, .directed = true, .exact = true},
    {" KB kB MB GB TB KiB MiB GiB TiB MFLOP GFLOP TFLOP ", EL_BETTER_LOWER, .directed = true},
    {" FLOPS MFLOPS GFLOPS TFLOPS PFLOPS ips fps ", EL_BETTER_HIGHER, .directed = true},
    {" % pct 1 x ratio times op it steps tokens images samples W Hz MHz GHz C K ", EL_BETTER_LOWER, .directed = false},
};

static const struct unit_kind *kind_of(const char *unit, size_t length)
{
    char word[EL_CELL_UNIT_BYTES + 2];
    if (length == 0 || length >= EL_CELL_UNIT_BYTES) return NULL;
    snprintf(word, sizeof word, " %.*s ", (int)length, unit);
    for (size_t i = 0; i < sizeof unit_kinds / sizeof unit_kinds[0]; i++)
        if (strstr(unit_kinds[i].names, word)) return &unit_kinds[i];
    return NULL;
}

double el_readings_ratio(const char *from, const char *to)
{
    static const struct {
        const char *unit;
        double seconds;
    } times[] = {{"ns", 1e-9}, {"us", 1e-6},  {"µs", 1e-6},   {"ms", 1e-3}, {"s", 1},
                 {"sec", 1},   {"second", 1}, {"seconds", 1}, {"min", 60},  {"h", 3600}};
    double one = NAN, other = NAN;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (!strcmp(times[i].unit, from)) one = times[i].seconds;
        if (!strcmp(times[i].unit, to)) other = times[i].seconds;
    }
    return strcmp(from, to) ? one / other : 1;
}

/* "images/s" is a unit though nobody knows images. */
static bool is_unit(const char *word)
{
    const char *slash = strchr(word, '/');
    return kind_of(word, strlen(word)) || (slash && slash != word && isalpha((unsigned char)*word) && slash[1]);
}

/* A rate of what costs ("ms/step") is a cost; another by time ("MB/s") is better when higher; else as without the
 * slash ("B/step"), but no longer without noise. */
static void direct(struct el_reading *row)
{
    size_t length = strcspn(row->unit, "/");
    const char *after = row->unit[length] ? row->unit + length + 1 : "";
    const struct unit_kind *before = kind_of(row->unit, length), *by = kind_of(after, strlen(after));
    bool rate = by && by->seconds && !(before && before->cost);
    row->better = rate ? EL_BETTER_HIGHER : before ? before->better : EL_BETTER_LOWER;
    row->directed = rate || (before && before->directed);
    row->exact = before && before->exact && !*after;
}

/* ---- rows ---- */

enum el_status el_readings_add(struct el_readings_reader *reader, const char *name, const char *unit, double value,
                               struct el_reading **row_p)
{
    struct el_readings *all = reader->readings;
    struct el_reading new = {0};
    if (strlen(name) >= sizeof new.name || strlen(unit) >= sizeof new.unit)
        return el_fail(EL_ERR_INVALID, "printed a metric whose name has more than %zu bytes, or its unit %zu: %.40s...",
                       sizeof new.name - 1, sizeof new.unit - 1, name);
    snprintf(new.name, sizeof new.name, "%s", name);
    snprintf(new.unit, sizeof new.unit, "%s", unit);
    el_utf8_printable(new.name);
    el_utf8_printable(new.unit);
    const json_t *place = json_object_get(reader->places, new.name);
    if (place == NULL) {
        struct el_reading *rows = realloc(all->rows, (all->n + 1) * sizeof *rows);
        if (rows) all->rows = rows;
        if (!rows || json_object_set_new(reader->places, new.name, json_integer((json_int_t)all->n)) != 0)
            return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
        memcpy(new.other_unit, new.unit, sizeof new.unit);
        direct(&new);
        rows[all->n++] = new;
    }
    struct el_reading *row = &all->rows[place ? (size_t)json_integer_value(place) : all->n - 1];
    if (strcmp(row->unit, new.unit) != 0) memcpy(row->other_unit, new.unit, sizeof new.unit);
    if (row_p) *row_p = row;
    return el_regress_append(&row->values, &row->n_values, value);
}

/* One value that is none spoils the median. */
static double median_of(const struct el_reading *row)
{
    for (size_t i = 0; i < row->n_values; i++)
        if (isnan(row->values[i])) return NAN;
    return el_stats_median(row->values, row->n_values);
}

/* ---- lines ---- */

/* A number, and right behind it perhaps a unit: "12.5", "12.5ms", "nan". */
static bool read_number(const char *word, double *value_p, const char **unit_p)
{
    char *end;
    double value = strtod(word, &end);
    bool plain = !isfinite(value) || strspn(word, "0123456789+-.eE") >= (size_t)(end - word); /* no hexadecimal ones */
    if (end == word || !plain || (*end && !is_unit(end))) return false;
    *value_p = value;
    *unit_p = end;
    return true;
}

/* The name without a colon or an equals sign at its end. */
static bool read_name(char *word)
{
    size_t length = strlen(word);
    if (length > 1 && strchr(":=", word[length - 1])) word[--length] = 0;
    if (!isalpha((unsigned char)word[0])) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)word[i]) && !strchr("_-./:@%()[]", word[i])) return false;
    return true;
}

/* What a terminal shows of a line: what follows the last carriage return (a progress bar's), without colours; and the
 * Greek letter of "μs" as the sign for micro. */
static char *as_shown(char *line)
{
    size_t n = strlen(line), kept = 0;
    while (n && strchr(" \t\r", line[n - 1])) line[--n] = 0;
    char *begin = strrchr(line, '\r') ? strrchr(line, '\r') + 1 : line;
    for (char *at = begin; *at; at++) {
        if (*at == '\033' && at[1] == '[') {
            at += 2 + strspn(at + 2, "0123456789;");
            if (!*at) break;
            continue;
        }
        const bool greek = !strncmp(at, "\xce\xbc", 2);
        begin[kept++] = greek ? '\xc2' : *at;
        if (greek) begin[kept++] = '\xb5', at++;
    }
    begin[kept] = 0;
    return begin;
}

static enum el_status take_line(struct el_readings_reader *reader, char *line)
{
    enum { WORDS = 4 };
    char *words[WORDS] = {NULL}, *rest = NULL;
    const char *unit;
    double value;
    int n = 0;
    line = as_shown(line);
    EL_TRY(el_readings_trainer_line(reader, line));
    char *equals = strchr(line, '=');
    if (equals && equals[1] && !strchr(" \t", equals[1])) *equals = ' '; /* metric=value */
    for (char *word = strtok_r(line, " \t\r", &rest); word && n < WORDS; word = strtok_r(NULL, " \t\r", &rest))
        words[n++] = word;
    if (n < 2 || n > 3 || !read_name(words[0]) || !read_number(words[1], &value, &unit)) return EL_OK;
    if (n == 3 && (*unit || !is_unit(words[2]))) return EL_OK;
    return el_readings_add(reader, words[0], n == 3 ? words[2] : unit, value, NULL);
}

/* ---- records of ours ---- */

/* The figures of a session; of one among several trials with the trial's name behind them. */
static enum el_status take_trial(struct el_readings_reader *reader, const json_t *trial, const char *trial_name)
{
    enum el_status status = EL_OK;
    if (!el_json_is(trial, "status", "ok"))
        return el_fail(EL_ERR_INVALID, "printed a trial that did not finish: %s",
                       el_json_text(trial, "reason", "no reason"));
    json_t *figures = el_session_figures(trial);
    EL_EACH_KEY(name, figure, figures) {
        char full[EL_CELL_NAME_BYTES];
        struct el_reading *row;
        double value = el_json_number(figure, "value");
        if (status != EL_OK || isnan(value)) continue;
        snprintf(full, sizeof full, "%s%s%s", name, *trial_name ? " " : "", trial_name);
        status = el_readings_add(reader, full, el_json_text(figure, "unit", ""), value, &row);
        if (status != EL_OK) continue;
        row->better = el_figure_better(figure);
        row->directed = true;
        row->exact = el_figure_is_exact(figure);
        row->extra = !el_session_gates(trial, name, figure);
    }
    json_decref(figures);
    return status;
}

/* A run's document, or the one trial that `run --json` prints. */
static enum el_status take_record(struct el_readings_reader *reader, const json_t *record)
{
    if (json_is_object(json_object_get(record, "step_ms"))) return take_trial(reader, record, "");
    EL_EACH(trial, json_object_get(record, "trials")) {
        char name[EL_CELL_NAME_BYTES / 2];
        el_workload_name(trial, name, sizeof name);
        EL_TRY(take_trial(reader, trial, name));
    }
    return EL_OK;
}

/* Times of collectives, as `comm --json` prints them or another tool: "all_reduce_float_1048576B_in_place". */
static enum el_status take_comm(struct el_readings_reader *reader, const json_t *document)
{
    static const char *const places[] = {"out_of_place", "in_place"};
    EL_EACH(curve, json_object_get(document, "curves"))
        EL_EACH(point, json_object_get(curve, "points"))
            for (int p = 0; p < 2; p++) {
                char name[EL_CELL_NAME_BYTES], path[32];
                snprintf(path, sizeof path, "%s.time_us", places[p]);
                double us = el_json_number(point, path);
                if (!(us > 0)) continue;
                snprintf(name, sizeof name, "%.40s_%.16s_%.16s_%.0fB_%s", el_json_text(curve, "operation", "?"),
                         el_json_text(curve, "datatype", el_json_text(document, "datatype", "?")),
                         el_json_text(curve, "redop", "none"), el_json_number(point, "bytes"), places[p]);
                EL_TRY(el_readings_add(reader, name, "us", us, NULL));
            }
    return EL_OK;
}

enum el_status el_readings_parse(const char *text, struct el_readings *readings)
{
    struct el_readings_reader reader = {.readings = readings, .places = json_object()};
    *readings = (struct el_readings){0};
    json_t *record = text[strspn(text, " \t\r\n")] == '{' ? json_loads(text, 0, NULL) : NULL;
    json_t *comm = el_json_is(record, "kind", "comm") ? json_incref(record) : NULL;
    if (!comm && !json_object_get(record, "trials") && el_foreign_parse(text, "", &comm) != EL_OK) comm = NULL;
    char *copy = strdup(text), *rest = NULL, *line = record || comm || !copy ? NULL : strtok_r(copy, "\n", &rest);
    enum el_status status = copy ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    if (comm && copy)
        status = take_comm(&reader, comm);
    else if (record && copy)
        status = take_record(&reader, record);
    if (record && copy && status == EL_OK) status = el_readings_results(&reader, record);
    for (; line && status == EL_OK; line = strtok_r(NULL, "\n", &rest)) status = take_line(&reader, line);
    for (size_t i = 0; i < readings->n; i++) readings->rows[i].value = median_of(&readings->rows[i]);
    free(copy);
    json_decref(comm);
    json_decref(record);
    json_decref(reader.places);
    if (status != EL_OK || readings->n > 0) return status;
    readings->silent = true;
    return el_fail(EL_ERR_INVALID,
                   "printed no metric: lines 'metric value unit' are read, the JSON of 'evenload run', "
                   "'compare' and 'comm', nccl-tests' output, and more (docs/regress.md); or give --metric wall_time, "
                   "cpu_time or peak_resident, which any program has");
}

static const char *const measured[] = {"wall_time", "cpu_time", "peak_resident"};

bool el_readings_asks_measured(const char *list)
{
    return el_regress_listed(list, measured[0]) || el_regress_listed(list, measured[1]) ||
           el_regress_listed(list, measured[2]);
}

struct figure {
    const char *name, *unit;
    double value; /* NAN: not known */
    bool extra;
};

/* What the program printed under that name stays. */
static enum el_status add_figures(const struct figure *figures, size_t n, struct el_readings *readings)
{
    struct el_readings_reader reader = {.readings = readings, .places = json_object()};
    enum el_status status = EL_OK;
    for (size_t i = 0; i < readings->n; i++)
        json_object_set_new(reader.places, readings->rows[i].name, json_integer((json_int_t)i));
    for (size_t i = 0; i < n && status == EL_OK; i++) {
        struct el_reading *row;
        if (isnan(figures[i].value) || json_object_get(reader.places, figures[i].name)) continue;
        status = el_readings_add(&reader, figures[i].name, figures[i].unit, figures[i].value, &row);
        if (status == EL_OK) row->value = figures[i].value, row->extra = figures[i].extra;
    }
    json_decref(reader.places);
    return status;
}

enum el_status el_readings_measured(const struct el_shell_output *output, struct el_readings *readings)
{
    const struct figure figures[] = {{measured[0], "s", output->wall_s, true},
                                     {measured[1], "s", output->cpu_s, true},
                                     {measured[2], "MiB", (double)output->peak_bytes / (1 << 20), true}};
    return add_figures(figures, sizeof figures / sizeof figures[0], readings);
}

enum el_status el_readings_training(const struct el_training *training, struct el_readings *readings)
{
    json_t *step_ms = el_training_step_ms(training), *ranks = el_training_ranks(training);
    bool printed = false;
    for (size_t i = 0; i < readings->n; i++)
        printed = printed || (readings->rows[i].directed && !readings->rows[i].extra);
    const struct figure figures[] = {{"step_ms", "ms", el_json_number(step_ms, "median"), printed},
                                     {"samples_per_s", "samples/s", el_training_samples_per_s(training), true},
                                     {"data_ms", "ms", el_json_highest(ranks, "data_ms"), true},
                                     {"allocated", "MiB", el_json_highest(ranks, "allocated_bytes") / (1 << 20), true}};
    json_decref(step_ms);
    json_decref(ranks);
    return add_figures(figures, sizeof figures / sizeof figures[0], readings);
}

void el_readings_free(struct el_readings *readings)
{
    for (size_t i = 0; i < readings->n; i++) free(readings->rows[i].values);
    free(readings->rows);
    *readings = (struct el_readings){0};
}
