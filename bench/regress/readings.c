/* Lines of a program into metrics. A line of prose must not become one: a metric is two words, or three of which the
 * last is a unit that is known; the first begins with a letter, and the second is a number and nothing else. */
#include "bench/regress/readings.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/hash.h"
#include "bench/stats/stats.h"
#include "bench/trial/trial.h"
#include "runtime/base/utf8.h"

static const char *const units[] = {
    "ns",    "us",    "µs",     "ms",     "s",      "sec",    "min",     "h",     "B",    "KB",    "kB",    "MB",
    "GB",    "TB",    "KiB",    "MiB",    "GiB",    "TiB",    "byte",    "bytes", "FLOP", "FLOPs", "MFLOP", "GFLOP",
    "TFLOP", "FLOPS", "MFLOPS", "GFLOPS", "TFLOPS", "PFLOPS", "ops",     "op",    "x",    "%",     "pct",   "1",
    "count", "W",     "J",      "mJ",     "Hz",     "MHz",    "GHz",     "C",     "K",    "it",    "steps", "ratio",
    "times", "calls", "ips",    "fps",    "tokens", "images", "samples", NULL};
static const char *const exact_units[] = {"B", "byte", "bytes", "FLOP", "FLOPs", "count", "calls", "ops", NULL};
static const char *const more_is_better[] = {
    "throughput", "per_s",    "per_sec",   "per_second", "per_min", "bandwidth", "speedup", "goodput", "mfu",
    "qps",        "ips",      "fps",       "tflops",     "gflops",  "hit_rate",  "util",    "busy",    "utilization",
    "occupancy",  "accuracy", "acc",       "top1",       "top5",    "f1",        "auc",     "map",     "miou",
    "bleu",       "rouge",    "precision", "recall",     "score",   "reward",    NULL};
/* Also where a slash follows, as in "time/s", which is a time in seconds. */
static const char *const less_is_better[] = {"time",       "latency", "duration", "elapsed", "loss", "error",
                                             "perplexity", "ms",      "us",       "ns",      NULL};
static const char *const rates[] = {"ips", "fps", "FLOPS", "MFLOPS", "GFLOPS", "TFLOPS", "PFLOPS", NULL};
/* Before a slash these make a cost ("ms/step", "J/sample", and "ms/s" too), whatever follows it. */
static const char *const costs[] = {"ns",     "us",      "µs", "ms", "s",  "sec", "min", "h",
                                    "second", "seconds", "mJ", "J",  "kJ", "Wh",  "kWh", NULL};
static const char *const seconds[] = {"s", "sec", "second", "seconds", "min", "h", NULL};

static bool in(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

/* As whole words of the name, whatever stands between them: "samples-per-s" has "per_s", "ms_per_step" has not. */
static bool contains_any(const char *name, const char *const *list)
{
    for (; *list; list++) {
        size_t length = strlen(*list);
        for (const char *at = name; *at; at++) {
            size_t n = 0;
            if (at > name && isalnum((unsigned char)at[-1])) continue;
            while (n < length && (tolower((unsigned char)at[n]) == (*list)[n] ||
                                  ((*list)[n] == '_' && ispunct((unsigned char)at[n]))))
                n++;
            if (n == length && !isalnum((unsigned char)at[n])) return true;
        }
    }
    return false;
}

static bool is_cost(const char *unit)
{
    char before[EL_CELL_NAME_BYTES];
    snprintf(before, sizeof before, "%.*s", (int)strcspn(unit, "/"), unit);
    return in(before, costs);
}

static bool is_rate(const char *unit)
{
    const char *slash = strchr(unit, '/');
    return (slash && in(slash + 1, seconds)) || in(unit, rates);
}

/* By the unit, and where there is none by the name: "tok/s 100". */
static enum el_better better_by_words(const char *name, const char *unit)
{
    if (is_cost(unit) || is_cost(name)) return EL_BETTER_LOWER;
    if (is_rate(unit)) return EL_BETTER_HIGHER;
    if (contains_any(name, less_is_better)) return EL_BETTER_LOWER;
    return is_rate(name) || contains_any(name, more_is_better) ? EL_BETTER_HIGHER : EL_BETTER_LOWER;
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

void el_readings_join(char *text, size_t bytes, const char *before, const char *after)
{
    enum { MARK_BYTES = 17 }; /* '~' and 16 digits */
    const char *between = *before && *after ? " " : "";
    int length = snprintf(text, bytes, "%s%s%s", before, between, after);
    if (length >= 0 && (size_t)length < bytes) {
        el_utf8_printable(text);
        return;
    }
    uint64_t hash = el_hash(EL_HASH_BEGIN, before, strlen(before));
    hash = el_hash(el_hash(hash, between, strlen(between)), after, strlen(after));
    text[bytes - 1 - MARK_BYTES] = 0;
    el_utf8_printable(text);
    size_t kept = strlen(text);
    snprintf(text + kept, bytes - kept, "~%016" PRIx64, hash);
}

enum el_status el_readings_add(struct el_readings *readings, const char *name, const char *unit, double value)
{
    struct el_reading *rows = realloc(readings->rows, (readings->n + 1) * sizeof *rows);
    if (rows == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    readings->rows = rows;
    struct el_reading *row = &rows[readings->n++];
    const struct el_metric *ours = our_row(name);
    *row = (struct el_reading){.value = value, .exact = in(unit, exact_units)};
    el_readings_join(row->name, sizeof row->name, "", name);
    el_readings_join(row->unit, sizeof row->unit, "", unit);
    memcpy(row->other_unit, row->unit, sizeof row->unit);
    row->better = ours ? ours->better : better_by_words(name, unit);
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
    if (!isalpha((unsigned char)word[0])) return false;
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

/* By name, and where that is the same in the order in which they were printed. */
static int by_name(const void *a, const void *b)
{
    const struct el_reading *x = *(const struct el_reading *const *)a, *y = *(const struct el_reading *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

/* The median of readings of one name; one that is none spoils them. `values` has room for n. */
static double median_of(struct el_reading *const *same, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = same[i]->value;
        if (isnan(values[i])) return NAN;
    }
    return el_stats_median(values, n);
}

/* The first unit of `same` that is not the first one's, to that one: figures in two units have no median. */
static void find_other_unit(struct el_reading *const *same, size_t n)
{
    for (size_t k = 1; k < n; k++) {
        if (!strcmp(same[k]->unit, same[0]->unit)) continue;
        memcpy(same[0]->other_unit, same[k]->unit, sizeof same[0]->other_unit);
        return;
    }
}

/* Readings of one name become the first of them, with the median. */
static enum el_status merge(struct el_readings *readings)
{
    size_t kept = 0, n = readings->n;
    double *values = malloc((n + 1) * sizeof *values);
    struct el_reading **order = malloc((n + 1) * sizeof *order);
    for (size_t i = 0; order && i < n; i++) order[i] = &readings->rows[i];
    if (values && order) qsort(order, n, sizeof *order, by_name);
    for (size_t i = 0, end; values && order && i < n; i = end) {
        for (end = i + 1; end < n && !strcmp(order[i]->name, order[end]->name); end++) continue;
        order[i]->value = median_of(order + i, end - i, values);
        find_other_unit(order + i, end - i);
        for (size_t k = i + 1; k < end; k++) order[k]->again = true;
    }
    for (size_t i = 0; values && order && i < n; i++)
        if (!readings->rows[i].again) readings->rows[kept++] = readings->rows[i];
    bool made = values && order;
    if (made) readings->n = kept;
    free(values);
    free(order);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
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
    return merge(readings);
}

void el_readings_free(struct el_readings *readings)
{
    free(readings->rows);
    *readings = (struct el_readings){0};
}
