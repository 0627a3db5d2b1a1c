/* `evenload comm --from A,B`: two records, size by size. Times are the geometric means of the calls, each by its
 * slowest rank; a ratio's interval is Welch's t on their logarithms. It covers calls of these two launches: another
 * launch may differ by more, which two records cannot show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "bench/report/report.h"
#include "bench/stats/stats.h"

/* Logarithms of the calls' microseconds. Returns how many; to be freed. */
static size_t log_times(const json_t *place, double **logs_p)
{
    const json_t *ranks = json_object_get(place, "samples_us");
    size_t calls = json_array_size(json_array_get(ranks, 0));
    double *logs = calloc(calls + 1, sizeof *logs);
    for (size_t i = 0; i < calls && logs; i++) {
        double most = 0;
        EL_EACH(rank, ranks) most = fmax(most, json_number_value(json_array_get(rank, i)));
        logs[i] = log(most);
    }
    *logs_p = logs;
    return logs ? calls : 0;
}

static json_t *row_of(const json_t *curve, const json_t *point, const char *place, const json_t *a, const json_t *b)
{
    double *a_logs, *b_logs;
    size_t n_a = log_times(a, &a_logs), n_b = log_times(b, &b_logs);
    struct el_interval ratio = el_stats_difference_unpaired(a_logs, n_a, b_logs, n_b);
    json_t *row = el_json_of(
        EL_KEY("operation", el_json_text(curve, "operation", "?")),
        EL_KEY("algorithm", el_json_text(curve, "algorithm", "?")), EL_KEY("place", place),
        EL_KEY("bytes", el_json_whole(point, "bytes")), EL_KEY("a_us", exp(el_stats_mean(a_logs, n_a))),
        EL_KEY("b_us", exp(el_stats_mean(b_logs, n_b))), EL_KEY("ratio", exp(ratio.centre)),
        EL_KEY("ratio_ci95", el_json_interval(exp(ratio.low), exp(ratio.high))), EL_KEY("reason", ratio.reason));
    free(a_logs);
    free(b_logs);
    return row;
}

/* In `list` the object that has the same of these fields; NULL: none. */
static const json_t *same_in(const json_t *list, const json_t *as, const char *const *fields)
{
    EL_EACH(other, list) {
        bool same = true;
        for (size_t i = 0; fields[i]; i++)
            same &= json_equal(json_object_get(other, fields[i]), json_object_get(as, fields[i])) == 1;
        if (same) return other;
    }
    return NULL;
}

static json_t *rows_of(const json_t *a, const json_t *b)
{
    static const char *const of_curve[] = {"operation", "algorithm", "datatype", "redop", "root", "cycle", NULL};
    static const char *const of_point[] = {"bytes", NULL}, *const places[] = {"out_of_place", "in_place"};
    json_t *rows = json_array();
    EL_EACH(curve, json_object_get(a, "curves")) {
        const json_t *other = same_in(json_object_get(b, "curves"), curve, of_curve);
        EL_EACH(point, json_object_get(curve, "points")) {
            const json_t *match = same_in(json_object_get(other, "points"), point, of_point);
            for (size_t p = 0; p < 2 && match; p++) {
                const json_t *one = json_object_get(point, places[p]), *two = json_object_get(match, places[p]);
                if (json_is_object(one) && json_is_object(two))
                    json_array_append_new(rows, row_of(curve, point, p ? "in" : "out of", one, two));
            }
        }
    }
    return rows;
}

static json_t *side_of(const char *name, const json_t *document)
{
    static const char *const copied[] = {"backend", "ranks", "iters", "shared_cores", "others_waited_pct", NULL};
    json_t *side = el_json_of(EL_KEY("name", name));
    el_json_copy(side, document, copied);
    return side;
}

/* The record at a folder or file. */
static enum el_status read_one(const char *name, json_t **document_p)
{
    char path[EL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/comm.json", name);
    return el_wire_read(access(path, F_OK) == 0 ? path : name, document_p);
}

enum el_status el_wire_two(const char *list, json_t **document_p)
{
    char names[EL_PATH_BYTES];
    json_t *a, *b;
    struct el_error ignored;
    snprintf(names, sizeof names, "%s", list);
    char *second = strchr(names, ',');
    *document_p = NULL;
    if (!second) return EL_OK;
    *second++ = '\0';
    enum el_status status = read_one(names, &a);
    if (status != EL_OK) { /* others' output */
        el_error_take(status, &ignored);
        return EL_OK;
    }
    status = read_one(second, &b);
    if (status == EL_OK) {
        *document_p = el_json_of(EL_KEY("kind", "comm difference"), EL_KEY("a", side_of(names, a)),
                                 EL_KEY("b", side_of(second, b)), EL_KEY("rows", rows_of(a, b)));
        json_decref(b);
    }
    json_decref(a);
    return status;
}

void el_wire_print_two(const json_t *document, FILE *out)
{
    static const struct el_column columns[] = {
        EL_TEXT("operation", -16, "operation"), EL_TEXT("algorithm", -10, "algorithm"), EL_TEXT("place", -7, "place"),
        EL_COUNT("bytes", 12, "bytes"),         EL_FIGURE("A us", 10, "a_us"),          EL_FIGURE("B us", 10, "b_us"),
        EL_RATIO("B / A", 8, "ratio"),          EL_INTERVAL("95 %", 15, "ratio_ci95"),  EL_NO_MORE};
    const struct el_table table = {.columns = columns, .out = out};
    const json_t *rows = json_object_get(document, "rows");
    for (int i = 0; i < 2; i++) {
        const json_t *side = json_object_get(document, i ? "b" : "a");
        el_text_line(out, "%c: %s, %.0f ranks, communicator %s%s", i ? 'B' : 'A', el_json_text(side, "name", "?"),
                     el_json_number(side, "ranks"), el_json_text(side, "backend", "?"),
                     json_is_true(json_object_get(side, "shared_cores")) ? "; devices share a core" : "");
    }
    fputc('\n', out);
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows) el_table_row(&table, EL_TABLE_PLAIN, row);
    el_text_say("", "", EL_REPORT_COLUMNS, out,
                "Geometric means of the calls. The intervals cover the calls of one launch of each; another launch may "
                "differ by more.");
}
