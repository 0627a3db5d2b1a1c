/* Lines of a program into metrics. A line of prose must not become one: a metric is two words, or three of which the
 * last is a unit that is known; the first begins with a letter, and the second is a number and nothing else. */
#include "bench/regress/readings.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/stats/stats.h"

static const char *const units[] = {
    "ns",  "us",  "µs",  "ms",    "s",     "sec",   "min",   "h",    "B",     "KB",     "kB",     "MB",      "GB",
    "TB",  "KiB", "MiB", "GiB",   "TiB",   "byte",  "bytes", "FLOP", "FLOPs", "MFLOP",  "GFLOP",  "TFLOP",   "FLOPS",
    "ops", "op",  "x",   "%",     "pct",   "1",     "count", "W",    "J",     "mJ",     "Hz",     "MHz",     "GHz",
    "C",   "K",   "it",  "steps", "ratio", "times", "calls", "ips",  "fps",   "tokens", "images", "samples", NULL};
static const char *const exact_units[] = {"B", "byte", "bytes", "FLOP", "FLOPs", "count", "calls", "ops", NULL};
static const char *const more_is_better[] = {"throughput", "per_s",  "per_sec", "accuracy", "bandwidth", "mfu", "qps",
                                             "tflops",     "gflops", "speedup", "hit_rate", "goodput",   NULL};

static bool in(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

static bool contains_any(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcasestr(text, *list)) return true;
    return false;
}

static bool is_rate(const char *unit)
{
    const char *slash = strchr(unit, '/');
    return (slash && (slash[1] == 's' || !strncmp(slash, "/min", 4) || !strncmp(slash, "/h", 2))) ||
           !strcmp(unit, "ips") || !strcmp(unit, "fps") || !strcmp(unit, "FLOPS");
}

static bool is_unit(const char *word)
{
    const char *slash = strchr(word, '/');
    return in(word, units) || (slash && slash != word && isalpha((unsigned char)word[0]) && slash[1]);
}

/* The part before a blank: "device_peak_bytes" of "device_peak_bytes cpu:0". */
static const struct el_metric *our_row(const char *name)
{
    char first[EL_CELL_NAME_BYTES];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(name, " "), name);
    return el_metric_find(first);
}

enum el_status el_readings_add(struct el_readings *readings, const char *name, const char *unit, double value)
{
    struct el_reading *rows = realloc(readings->rows, (readings->n + 1) * sizeof *rows);
    if (rows == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    readings->rows = rows;
    struct el_reading *row = &rows[readings->n++];
    const struct el_metric *ours = our_row(name);
    *row = (struct el_reading){.value = value, .exact = in(unit, exact_units)};
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    if (ours)
        row->better = ours->better;
    else
        row->better = is_rate(unit) || contains_any(name, more_is_better) ? EL_BETTER_HIGHER : EL_BETTER_LOWER;
    return EL_OK;
}

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
    if (!isalpha((unsigned char)word[0]) || length >= EL_CELL_NAME_BYTES) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)word[i]) && !strchr("_-./:@%()[]", word[i])) return false;
    return true;
}

static enum el_status take_line(struct el_readings *readings, char *line)
{
    enum { WORDS = 4 };
    char *words[WORDS] = {NULL}, *rest = NULL;
    const char *unit;
    double value;
    int n = 0;
    char *equals = strchr(line, '=');
    if (equals && equals[1] && !strchr(" \t", equals[1])) *equals = ' '; /* metric=value */
    for (char *word = strtok_r(line, " \t\r", &rest); word && n < WORDS; word = strtok_r(NULL, " \t\r", &rest))
        words[n++] = word;
    if (n < 2 || n > 3 || !read_name(words[0]) || !read_number(words[1], &value, &unit)) return EL_OK;
    if (n == 3 && (*unit || !is_unit(words[2]))) return EL_OK;
    return el_readings_add(readings, words[0], n == 3 ? words[2] : unit, value);
}

/* Line by line; one that begins with a brace may be an object of JSON. */
static enum el_status take_lines(struct el_readings *readings, char *text)
{
    char *rest = NULL;
    enum el_status status = EL_OK;
    for (char *line = strtok_r(text, "\n", &rest); line && status == EL_OK; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " \t");
        json_t *object = *line == '{' ? json_loads(line, JSON_ALLOW_NUL, NULL) : NULL;
        if (object)
            status = el_readings_json(readings, object);
        else if (*line != '{')
            status = take_line(readings, line);
        json_decref(object);
    }
    return status;
}

/* Readings of one name become the first of them, with the median. */
static void merge(struct el_readings *readings)
{
    size_t kept = 0;
    double *values = malloc((readings->n + 1) * sizeof *values);
    for (size_t i = 0; i < readings->n && values; i++) {
        struct el_reading row = readings->rows[i];
        size_t n = 0, before = 0;
        while (before < kept && strcmp(readings->rows[before].name, row.name) != 0) before++;
        if (before < kept) continue;
        for (size_t j = i; j < readings->n; j++)
            if (!strcmp(readings->rows[j].name, row.name)) values[n++] = readings->rows[j].value;
        for (size_t k = 0; k < n; k++)
            if (isnan(values[k])) values[0] = NAN; /* one that is none spoils them */
        row.value = isnan(values[0]) ? NAN : el_stats_median(values, n);
        readings->rows[kept++] = row;
    }
    if (values) readings->n = kept;
    free(values);
}

/* A log may begin with a bracket too ("[INFO] ..."). */
static bool looks_like_json(const char *text)
{
    if (*text == '[') text += 1 + strspn(text + 1, " \t\r\n");
    return *text == '{';
}

enum el_status el_readings_parse(const char *text, struct el_readings *readings)
{
    json_error_t error;
    memset(readings, 0, sizeof *readings);
    text += strspn(text, " \t\r\n");
    json_t *document = looks_like_json(text) ? json_loads(text, 0, &error) : NULL;
    enum el_status status = EL_OK;
    if (document) {
        status = el_readings_json(readings, document);
    } else {
        char *copy = strdup(text);
        status =
            copy ? take_lines(readings, copy) : el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
        free(copy);
    }
    bool was_json = !document && looks_like_json(text);
    json_decref(document);
    if (status != EL_OK) return status;
    if (readings->n == 0 && was_json)
        return el_fail(EL_ERR_INVALID, "printed JSON that cannot be read: line %d: %s", error.line, error.text);
    if (readings->n == 0)
        return el_fail(EL_ERR_INVALID, "printed no metric: lines 'metric value [unit]' or JSON are read");
    merge(readings);
    return EL_OK;
}

void el_readings_free(struct el_readings *readings)
{
    free(readings->rows);
    *readings = (struct el_readings){0};
}
