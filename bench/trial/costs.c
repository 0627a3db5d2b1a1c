/* Records as costs: those of `evenload comm` are of messages; see costs.h. */
#include "bench/trial/costs.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "runtime/comm/rounds.h"

/* nccl-tests' name of an operation into the verb that it measures; EL_COMM_VERB_COUNT: none. */
static enum el_comm_verb verb_of(const char *operation)
{
    int verb = 0;
    if (!strcmp(operation, "alltoall")) return EL_COMM_ALL_TO_ALL;
    if (!strcmp(operation, "sendrecv")) return EL_COMM_SEND;
    while (verb < EL_COMM_VERB_COUNT && strcmp(operation, el_comm_verb_row((enum el_comm_verb)verb)->name)) verb++;
    return (enum el_comm_verb)verb;
}

static enum el_comm_algorithm algorithm_of(const char *name)
{
    int algorithm = EL_COMM_ALGORITHM_COUNT - 1;
    while (algorithm > EL_COMM_AUTO && strcmp(name, el_comm_algorithm_name((enum el_comm_algorithm)algorithm)))
        algorithm--;
    return (enum el_comm_algorithm)algorithm;
}

static struct el_cost_row *row_of(struct el_costs *costs, const char *verb, const char *algorithm)
{
    struct el_cost_row *row = costs->rows;
    for (; row < costs->rows + costs->n; row++)
        if (!strcmp(row->verb, verb) && !strcmp(row->algorithm, algorithm)) return row;
    if (costs->n == EL_COST_ROWS_MAX) return NULL;
    snprintf(row->verb, sizeof row->verb, "%s", verb);
    snprintf(row->algorithm, sizeof row->algorithm, "%s", algorithm);
    costs->n++;
    return row;
}

/* Several calls may have one largest message (chains of equal segments): the last stands. */
static void add_point(struct el_cost_row *row, double bytes, double ns)
{
    row->n = el_costs_add_point(row->points, row->n, EL_COST_POINTS_MAX, (struct el_cost_point){bytes, ns});
}

/* In a step each buffer was touched long ago: what was measured so, if it was. */
static double step_us(const json_t *point, const char *warm)
{
    double cold = el_json_number(point, "cold.time_us");
    return cold > 0 ? cold : el_json_number(point, warm);
}

static void add(struct el_costs *costs, enum el_comm_verb verb, int ranks, const json_t *point)
{
    const struct el_comm_verb_row *words = el_comm_verb_row(verb);
    double count = el_json_number(point, "count"), bytes = el_json_number(point, "bytes");
    double us = step_us(point, "in_place.time_us");
    double parts = words->all_data || words->all_result ? ranks : 1;
    if (!(us > 0) || !(count >= 1 && count <= 1e15) || !(bytes >= count * parts && bytes <= 16 * count * parts)) return;
    struct el_comm_shape shape = {.verb = verb,
                                  .algorithm = algorithm_of(el_json_text(point, "algorithm", "auto")),
                                  .size = ranks,
                                  .count = (size_t)count,
                                  .element_bytes = (size_t)(bytes / count / parts)};
    struct el_op_messages messages = el_comm_messages(&shape);
    struct el_cost_row *row = row_of(costs, messages.verb, messages.algorithm);
    if (row && messages.rounds > 0) add_point(row, (double)messages.largest_bytes, us * 1e3 / messages.rounds);
}

static void add_curves(struct el_costs *costs, const json_t *document)
{
    int ranks = (int)el_json_number(document, "ranks");
    const json_t *curves = json_object_get(document, "curves"), *curve, *point;
    size_t c, i;
    json_array_foreach(curves, c, curve)
    {
        enum el_comm_verb verb = verb_of(el_json_text(curve, "operation", ""));
        if (verb == EL_COMM_VERB_COUNT) continue;
        json_array_foreach(json_object_get(curve, "points"), i, point) add(costs, verb, ranks, point);
    }
}

/* Rows without points are of no use to anybody. */
static void leave_out_empty(struct el_costs *costs)
{
    int n = 0;
    for (int i = 0; i < costs->n; i++)
        if (costs->rows[i].n > 0) costs->rows[n++] = costs->rows[i];
    costs->n = n;
}

/* How fast a rank's memory is copied while all others' is. */
static void add_copies(struct el_costs *costs, const json_t *document)
{
    const json_t *point;
    size_t i;
    json_array_foreach(json_object_get(document, "copy"), i, point)
    {
        double bytes = el_json_number(point, "bytes"), us = step_us(point, "time_us");
        if (bytes > 0 && us > 0) add_point(&costs->copy, bytes, us * 1e3);
    }
}

static enum el_status add_wire(const char *dir, struct el_costs *costs)
{
    char path[EL_PATH_BYTES + 16];
    json_t *document = NULL;
    snprintf(path, sizeof path, "%s/comm.json", dir);
    if (el_read_json(path, &document) != EL_OK) document = NULL;
    bool ours = document && !strcmp(el_json_text(document, "kind", ""), "comm");
    bool known = ours && el_json_whole(document, "schema") == EL_WIRE_SCHEMA;
    double ranks = el_json_number(document, "ranks");
    if (known && ranks >= 2 && ranks <= 1024) {
        add_curves(costs, document);
        add_copies(costs, document);
        costs->on_cores = !strncmp(el_json_text(document, "devices.0", ""), "cpu:", 4);
    }
    leave_out_empty(costs);
    const char *why = !document      ? "has no comm.json that can be read"
                      : !ours        ? "its comm.json is no record of 'evenload comm'"
                      : !known       ? "its comm.json is of another version"
                      : ranks < 2    ? "was measured on one rank"
                      : costs->n > 0 ? NULL
                                     : "has no figures";
    json_decref(document);
    if (!why) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--costs %s: %s: give the folder of 'evenload comm' with two ranks or more", dir,
                   why);
}

static enum el_status add_all(const char *dirs, const struct el_train_config *train, struct el_costs *costs)
{
    char list[EL_PATH_BYTES], *rest = list;
    snprintf(list, sizeof list, "%s", dirs);
    if (!dirs[strspn(dirs, ",")]) return el_fail(EL_ERR_INVALID, "--costs %s: names no folder", dirs);
    for (const char *dir = strtok_r(list, ",", &rest); dir; dir = strtok_r(NULL, ",", &rest)) {
        enum el_status status = el_costs_add_run(dir, train, costs);
        if (status == EL_ERR_ABSENT) status = add_wire(dir, costs);
        EL_TRY(status);
    }
    return EL_OK;
}

enum el_status el_costs_read(const char *dirs, const struct el_train_config *train, struct el_costs **costs_p)
{
    struct el_costs *costs = calloc(1, sizeof *costs);
    if (!costs) return el_fail_errno("costs");
    enum el_status status = add_all(dirs, train, costs);
    if (status == EL_OK)
        *costs_p = costs;
    else
        free(costs);
    return status;
}
