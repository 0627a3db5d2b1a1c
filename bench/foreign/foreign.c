/* Recognizes a file's form, and makes the document from its rows. */
#include "bench/foreign/foreign.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/stats/stats.h"
#include "runtime/base/files.h"
#include "runtime/base/grow.h"

enum { FILE_MAX = 256 << 20, SCHEMA = 1 /* of `evenload comm` */ };

const char *const el_foreign_endings[] = {".log", ".txt", ".out", ".json", NULL};

/* busbw is `factor` (n - 1) / n of algbw; 0: equal. A name that contains another one precedes it. */
static const struct operation {
    const char *name;
    int factor;
    bool parts;
} operations[] = {{"all_reduce", 2, false}, {"all_gather", 1, true}, {"reduce_scatter", 1, true},
                  {"alltoallv", 1, true},   {"alltoall", 1, true},   {"broadcast", 0, false},
                  {"sendrecv", 0, false},   {"gather", 1, true},     {"scatter", 1, true},
                  {"reduce", 0, false},     {"send", 0, false},      {"recv", 0, false},
                  {"hypercube", 1, true}};
enum { N_OPERATIONS = sizeof operations / sizeof operations[0] };

static const struct operation *find(const char *name)
{
    for (int i = 0; i < N_OPERATIONS; i++)
        if (!strcmp(operations[i].name, name)) return &operations[i];
    return NULL;
}

/* In lower case, without underscores. */
static void plain(const char *name, char *text, size_t bytes)
{
    size_t n = 0;
    for (; *name && n + 1 < bytes; name++)
        if (*name != '_' && *name != '-') text[n++] = (char)tolower((unsigned char)*name);
    text[n] = 0;
}

const char *el_foreign_operation(const char *name)
{
    char base[256], own[EL_FOREIGN_WORD];
    const char *slash = strrchr(name, '/');
    plain(slash ? slash + 1 : name, base, sizeof base);
    for (int i = 0; i < N_OPERATIONS; i++) {
        plain(operations[i].name, own, sizeof own);
        if (strstr(base, own)) return operations[i].name;
    }
    return "";
}

double el_foreign_bus_factor(const char *operation, int n)
{
    const struct operation *o = find(operation);
    return !o || n < 1 ? NAN : o->factor ? o->factor * (double)(n - 1) / n : 1;
}

bool el_foreign_has_parts(const char *operation)
{
    return find(operation) && find(operation)->parts;
}

static json_t *curve_of(struct el_foreign *foreign, const struct el_foreign_row *row)
{
    const char *algorithm = *row->algorithm ? row->algorithm : "auto";
    EL_EACH(curve, foreign->curves)
        if (el_json_is(curve, "operation", row->operation) && el_json_is(curve, "datatype", row->type) &&
            el_json_is(curve, "algorithm", algorithm) && el_json_is(curve, "redop", row->redop) &&
            el_json_number(curve, "root") == row->root)
            return curve;
    if (json_array_size(foreign->curves) == EL_FOREIGN_CURVES_MAX) return NULL;
    json_t *curve = el_json_of(EL_KEY("operation", (const char *)row->operation), EL_KEY("algorithm", algorithm),
                               EL_KEY("datatype", (const char *)row->type), EL_KEY("redop", (const char *)row->redop),
                               EL_KEY("root", row->root), EL_KEY("status", "ok"), EL_KEY("reason", json_null()),
                               EL_KEY("reduces", json_boolean(strcmp(row->redop, "none") != 0)),
                               EL_KEY("rooted", json_boolean(row->root >= 0)), EL_KEY("points", json_array()));
    json_array_append_new(foreign->curves, curve);
    return curve;
}

static json_t *point_of(json_t *curve, const struct el_foreign_row *row)
{
    json_t *points = json_object_get(curve, "points");
    const char *algorithm = *row->used ? row->used : *row->algorithm ? row->algorithm : "auto";
    for (size_t i = json_array_size(points); i-- > 0;)
        if (el_json_number(json_array_get(points, i), "bytes") == row->bytes) return json_array_get(points, i);
    if (json_array_size(points) == EL_FOREIGN_POINTS_MAX) return NULL;
    json_t *point = el_json_of(EL_KEY("bytes", (int64_t)row->bytes), EL_KEY("count", (int64_t)row->count),
                               EL_KEY("algorithm", algorithm), EL_KEY("out_of_place", json_null()),
                               EL_KEY("in_place", json_null()), EL_KEY("cold", json_null()));
    json_array_append_new(points, point);
    return point;
}

/* Further rows of one size, as of nccl-tests' -N, are more calls. */
enum el_status el_foreign_add(struct el_foreign *foreign, struct el_foreign_row *row)
{
    const char *key = row->in_place ? "in_place" : "out_of_place";
    json_t *curve = curve_of(foreign, row), *point = curve ? point_of(curve, row) : NULL;
    json_t *place = json_object_get(point, key), *samples = json_object_get(place, "samples_us");
    if (json_is_array(samples) && json_array_size(samples) == json_array_size(row->samples)) {
        const double wrong = el_json_number(place, "wrong") + row->wrong;
        EL_EACH(rank, row->samples) json_array_extend(json_array_get(samples, rank_at.i), rank);
        if (fabs(wrong) < 1e15) el_json_put(place, "wrong", json_integer((json_int_t)wrong));
    } else if (point) {
        bool checked = isfinite(row->wrong) && fabs(row->wrong) < 1e15;
        place = el_json_of(EL_KEY("wrong", checked ? json_integer((json_int_t)row->wrong) : json_null()),
                           EL_KEY("bus_ratio", row->bus_ratio), EL_KEY("samples_us", json_incref(row->samples)));
        json_object_set_new(point, key, place);
    }
    json_decref(row->samples);
    row->samples = NULL;
    return point ? EL_OK
                 : el_fail(EL_ERR_INVALID, "more than %d tables, or %d sizes in one", EL_FOREIGN_CURVES_MAX,
                           EL_FOREIGN_POINTS_MAX);
}

/* A call's time is the slowest rank's. */
static void finish_place(json_t *place, double bytes, double factor)
{
    const json_t *ranks = json_object_get(place, "samples_us");
    size_t n = json_array_size(json_array_get(ranks, 0));
    double *us = calloc(n + 1, sizeof *us), ratio = el_json_number(place, "bus_ratio");
    if (!us || !json_is_object(place)) return free(us);
    for (size_t i = 0; i < n; i++)
        EL_EACH(rank, ranks) us[i] = fmax(us[i], json_number_value(json_array_get(rank, i)));
    double median = el_stats_median(us, n), algbw = bytes / median * 1e-3;
    el_json_put_all(place, EL_KEY("time_us", median), EL_KEY("mean_us", el_stats_mean(us, n)),
                    EL_KEY("min_us", el_stats_quantile(us, n, 1e-9)), EL_KEY("p50_us", el_stats_quantile(us, n, 0.5)),
                    EL_KEY("p99_us", el_stats_quantile(us, n, 0.99)), EL_KEY("algbw_gb_per_s", algbw),
                    EL_KEY("busbw_gb_per_s", algbw * (isnan(factor) ? ratio : factor)));
    json_object_del(place, "bus_ratio");
    free(us);
}

static json_t *common(const json_t *curves, const char *key)
{
    json_t *first = json_object_get(json_array_get(curves, 0), key);
    EL_EACH(curve, curves)
        if (!json_equal(json_object_get(curve, key), first))
            return json_is_string(first) ? json_string("all") : json_integer(-1);
    return json_incref(first);
}

/* As nccl-tests averages: over rows and places. */
static json_t *average_json(const struct el_foreign *foreign)
{
    double sum = 0, n = 0;
    EL_EACH(curve, foreign->curves)
        EL_EACH(point, json_object_get(curve, "points")) {
            const double rates[] = {el_json_number(point, "out_of_place.busbw_gb_per_s"),
                                    el_json_number(point, "in_place.busbw_gb_per_s")};
            for (int place = 0; place < 2; place++)
                if (isfinite(rates[place])) sum += rates[place], n++;
        }
    if (foreign->n_stated != 1 || !(n > 0)) return json_null();
    return el_json_of(EL_KEY("stated_busbw_gb_per_s", foreign->stated_busbw), EL_KEY("busbw_gb_per_s", sum / n));
}

static json_t *finish(const struct el_foreign *foreign)
{
    double checked = 0;
    bool gpus = strncmp(el_json_text(foreign->devices, "0", ""), "cpu:", 4) != 0;
    EL_EACH(curve, foreign->curves)
        EL_EACH(point, json_object_get(curve, "points")) {
            double factor = el_foreign_bus_factor(el_json_text(curve, "operation", ""), foreign->ranks);
            finish_place(json_object_get(point, "out_of_place"), el_json_number(point, "bytes"), factor);
            finish_place(json_object_get(point, "in_place"), el_json_number(point, "bytes"), factor);
            checked += json_is_integer(el_json_at(point, "out_of_place.wrong")) ||
                       json_is_integer(el_json_at(point, "in_place.wrong"));
        }
    json_t *document =
        el_json_of(EL_KEY("schema", SCHEMA), EL_KEY("kind", "comm"), EL_KEY("source", foreign->source),
                   EL_KEY("backend", gpus ? "nccl" : "?"), EL_KEY("devices", json_incref(foreign->devices)),
                   EL_KEY("device_names", json_incref(foreign->names)),
                   EL_KEY("hosts", (uint64_t)json_object_size(foreign->hosts)), EL_KEY("ranks", foreign->ranks),
                   EL_KEY("datatype", common(foreign->curves, "datatype")),
                   EL_KEY("redop", common(foreign->curves, "redop")), EL_KEY("root", common(foreign->curves, "root")),
                   EL_KEY("check", checked > 0 ? 1 : 0), EL_KEY("shared_cores", false), EL_KEY("copy", json_array()),
                   EL_KEY("curves", json_incref(foreign->curves)), EL_KEY("left_out", json_incref(foreign->left_out)),
                   EL_KEY("cut", foreign->cut), EL_KEY("lost_rows", foreign->lost_rows),
                   EL_KEY("lost_calls", foreign->lost_calls), EL_KEY("average", average_json(foreign)),
                   EL_KEY("late", foreign->late ? json_incref(foreign->late) : json_null()));
    el_json_printable(document);
    return document;
}

static enum el_status add_text(const char *text, const char *name, struct el_foreign *foreign,
                               struct el_inspector **inspector_p)
{
    enum el_status status = EL_ERR_ABSENT;
    json_t *whole = text[strspn(text, " \t\r\n")] == '{' ? json_loads(text, 0, NULL) : NULL;
    if (whole) status = el_foreign_nccl_json(whole, name, foreign);
    if (status == EL_ERR_ABSENT) status = el_inspector_add(text, inspector_p);
    if (status == EL_ERR_ABSENT && !whole) status = el_foreign_nccl_text(text, name, foreign);
    json_decref(whole);
    if (status != EL_ERR_ABSENT) return status;
    return el_fail(
        EL_ERR_ABSENT,
        "%s: tried as nccl-tests' text, as nccl-tests' JSON (-J) and as NCCL Inspector's lines: it is none of "
        "them",
        el_path_tail(name));
}

static void begin(struct el_foreign *foreign)
{
    *foreign = (struct el_foreign){.curves = json_array(),
                                   .devices = json_array(),
                                   .names = json_array(),
                                   .hosts = json_object(),
                                   .left_out = json_array()};
}

static enum el_status end(enum el_status status, const char *name, struct el_foreign *foreign,
                          struct el_inspector *inspector, json_t **document_p)
{
    if (status == EL_OK && inspector) status = el_inspector_end(inspector, foreign);
    if (status == EL_OK && foreign->ranks < 1)
        status =
            el_fail(EL_ERR_INVALID, "%s: it does not say of how many ranks it is: lines '#  Rank  0 ...' are missing",
                    el_path_tail(name));
    if (status == EL_OK) *document_p = finish(foreign);
    el_inspector_free(inspector);
    json_decref(foreign->curves);
    json_decref(foreign->devices);
    json_decref(foreign->names);
    json_decref(foreign->hosts);
    json_decref(foreign->late);
    json_decref(foreign->left_out);
    return status;
}

enum el_status el_foreign_parse(const char *text, const char *name, json_t **document_p)
{
    struct el_foreign foreign;
    struct el_inspector *inspector = NULL;
    begin(&foreign);
    enum el_status status = add_text(text, name, &foreign, &inspector);
    return end(status, name, &foreign, inspector, document_p);
}

static enum el_status read_text(const char *path, char **text_p)
{
    char *text;
    size_t n;
    EL_TRY(el_file_read(path, FILE_MAX, &text, &n));
    for (size_t i = 0; i < n; i++)
        if (text[i] == 0) text[i] = ' ';
    *text_p = text;
    return EL_OK;
}

enum el_status el_foreign_read(const json_t *paths, bool named, json_t **document_p)
{
    struct el_foreign foreign;
    struct el_inspector *inspector = NULL;
    const char *name = "";
    enum el_status status = EL_OK;
    begin(&foreign);
    EL_EACH(path, paths) {
        char *text = NULL;
        if (status != EL_OK) continue;
        name = json_string_value(path);
        status = read_text(name, &text);
        if (status == EL_OK) status = add_text(text, name, &foreign, &inspector);
        free(text);
        if (status != EL_ERR_ABSENT || named) continue;
        json_array_append_new(foreign.left_out, el_json_string(el_path_tail(name)));
        status = EL_OK;
    }
    if (status == EL_OK && json_array_size(foreign.left_out) == json_array_size(paths))
        status = el_fail(EL_ERR_ABSENT, "%s and %zu more: none of them is nccl-tests' output or NCCL Inspector's lines",
                         el_path_tail(json_string_value(json_array_get(paths, 0))), json_array_size(paths) - 1);
    return end(status, name, &foreign, inspector, document_p);
}
