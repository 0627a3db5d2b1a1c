/* Whether two records are of the same work, and what else is not alike between them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/explain/difference.h"

enum { VALUE_BYTES = 48 };

/* A value in words, "?" where there is none. */
static void show(const json_t *value, char text[VALUE_BYTES])
{
    char *dumped = json_is_string(value) ? strdup(json_string_value(value))
                                         : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    snprintf(text, VALUE_BYTES, "%s", dumped && *dumped ? dumped : json_is_string(value) ? "none" : "?");
    free(dumped);
}

static bool is_whole_zero(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) == 0;
}

/* Where one record does not know the field, nothing can be said. */
static bool unlike(const json_t *a, const json_t *b)
{
    if (!a || !b || json_is_null(a) || json_is_null(b)) return false;
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) != json_number_value(b);
    return !json_equal(a, b);
}

/* Sizes that belong to other models are 0, or not there. */
static void append_sizes(const json_t *a, const json_t *b, char *text, size_t bytes)
{
    EL_EACH_KEY(key, value, json_object_get(a, "model_sizes")) {
        const json_t *other = json_object_get(json_object_get(b, "model_sizes"), key);
        char one[VALUE_BYTES], two[VALUE_BYTES];
        if (!unlike(value, other) || is_whole_zero(value) || is_whole_zero(other)) continue;
        show(value, one);
        show(other, two);
        el_text_append(text, bytes, "%s%s %s and %s", *text ? ", " : "", key, one, two);
    }
}

enum el_status el_sides_check(const struct el_side *a, const struct el_side *b)
{
    static const char *const same[][2] = {
        {"model", "model"}, {"config.data", "data"}, {"global_batch", "global batch"}};
    char text[512] = "";
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const json_t *x = el_json_at(a->trial, same[i][0]), *y = el_json_at(b->trial, same[i][0]);
        char one[VALUE_BYTES], two[VALUE_BYTES];
        if (!unlike(x, y)) continue;
        show(x, one);
        show(y, two);
        el_text_append(text, sizeof text, "%s%s %s and %s", *text ? ", " : "", same[i][1], one, two);
    }
    append_sizes(json_object_get(a->trial, "config"), json_object_get(b->trial, "config"), text, sizeof text);
    if (!*text) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "explain: these two records are not of the same work, so their steps cannot be compared: %s", text);
}

static void add(json_t *list, const char *field, const json_t *a, const json_t *b)
{
    char one[VALUE_BYTES], two[VALUE_BYTES];
    if (!unlike(a, b)) return;
    show(a, one);
    show(b, two);
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o}", "field", field, "a", el_json_string(one), "b", el_json_string(two)));
}

static void add_fields(json_t *list, const json_t *a, const json_t *b, const char *const *fields)
{
    for (; *fields; fields++) add(list, *fields, json_object_get(a, *fields), json_object_get(b, *fields));
}

json_t *el_sides_differences(const struct el_side *a, const struct el_side *b)
{
    static const char *const of_trial[] = {"mode", "devices",      "procs",     "dtype", "optimizer",
                                           "seed", "communicator", "simulated", NULL};
    static const char *const of_machine[] = {"hostname", "cpu_model",      "cores_online", "affinity",   "governor",
                                             "commit",   "compiler_flags", "cpu_library",  "gpu_driver", "framework",
                                             NULL};
    /* How long was measured, and what has been said already. */
    static const char *const left_out[] = {"model_sizes", "data",        "steps",          "warmup",       "min_time_s",
                                           "timeout_s",   "batch_given", "comm_timeout_s", "control_pairs"};
    json_t *list = json_array();
    add_fields(list, a->trial, b->trial, of_trial);
    EL_EACH_KEY(key, value, json_object_get(a->trial, "config")) {
        bool out = false;
        for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) out = out || !strcmp(key, left_out[i]);
        if (!out) add(list, key, value, json_object_get(json_object_get(b->trial, "config"), key));
    }
    add_fields(list, json_object_get(a->run, "environment"), json_object_get(b->run, "environment"), of_machine);
    return list;
}
