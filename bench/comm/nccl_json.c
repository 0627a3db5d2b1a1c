/* A document of `evenload comm` as the JSON that nccl-tests writes with -J, version 3 (src/util.cu there: flags are the
 * texts "true" and "false", a root is a text of six characters). What it has no key for is left out. Its time is the
 * table's: our median of the calls. Of several operations "experiment_name" says which. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/comm/wire.h"

extern char **environ;

enum { NCCL_TESTS_VERSION = 3, ARGUMENTS_BYTES = 1 << 16 };

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static double number(const json_t *document, const char *path)
{
    return el_json_number(document, path);
}

static json_t *whole(const json_t *document, const char *path)
{
    return el_json_count(el_json_whole(document, path));
}

/* The words of this process's command line. */
static json_t *arguments(void)
{
    json_t *words = json_array();
    char *text = calloc(1, ARGUMENTS_BYTES + 1);
    FILE *file = text ? fopen("/proc/self/cmdline", "r") : NULL;
    size_t n = file ? fread(text, 1, ARGUMENTS_BYTES, file) : 0;
    for (size_t at = 0; at < n; at += strlen(text + at) + 1) json_array_append_new(words, el_json_string(text + at));
    if (file) fclose(file);
    free(text);
    return words;
}

/* nccl-tests has all variables; here are those that change a measurement, and nobody's secrets. */
static json_t *environment(void)
{
    json_t *variables = json_array();
    for (char **at = environ; *at; at++)
        if (!strncmp(*at, "NCCL_", 5) || !strncmp(*at, "CUDA_", 5))
            json_array_append_new(variables, el_json_string(*at));
    return variables;
}

static json_t *devices_json(const json_t *document)
{
    json_t *rows = json_array(), *members = json_object_get(document, "members");
    EL_EACH(device, json_object_get(document, "devices")) {
        const json_t *member = json_array_get(members, device_at.i);
        const char *name = json_string_value(device), *index = strchr(name ? name : "", ':');
        json_array_append_new(
            rows,
            el_json_of(EL_KEY("rank", (int64_t)device_at.i), EL_KEY("group", el_json_whole(member, "group")),
                       EL_KEY("pid", whole(member, "pid")), EL_KEY("hostname", el_json_text(member, "host", "")),
                       EL_KEY("device", index ? (int64_t)strtoll(index + 1, NULL, 10) : 0), EL_KEY("device_hex", name),
                       EL_KEY("device_info", el_json_text(document, "environment.cpu_model", ""))));
    }
    return rows;
}

static json_t *config_json(const json_t *document)
{
    bool steps = number(document, "stepbytes") > 0;
    int64_t processes = el_json_whole(document, "processes"),
            ranks = (int64_t)json_array_size(json_object_get(document, "devices"));
    return el_json_of(
        EL_KEY("nthreads", processes > 0 ? ranks / processes : ranks), EL_KEY("ngpus", 1),
        EL_KEY("minimum_bytes", whole(document, "minbytes")), EL_KEY("maximum_bytes", whole(document, "maxbytes")),
        EL_KEY(steps ? "step_bytes" : "step_factor", whole(document, steps ? "stepbytes" : "stepfactor")),
        EL_KEY("warmup_iters", whole(document, "warmup")), EL_KEY("iterations", whole(document, "iters")),
        EL_KEY("aggregated_iterations", whole(document, "agg_iters")), EL_KEY("validation", whole(document, "check")),
        EL_KEY("graph", 0), EL_KEY("blocking_collectives", truth(number(document, "blocking") != 0)),
        EL_KEY("per_iter_timing", truth(false)), EL_KEY("per_iter_skip", 0), EL_KEY("parallel_init", truth(true)),
        EL_KEY("devices", devices_json(document)));
}

static json_t *place_json(const json_t *place)
{
    const json_t *wrong = json_object_get(place, "wrong");
    if (!json_is_object(place)) return json_null();
    return el_json_of(
        EL_KEY("time", number(place, "time_us")), EL_KEY("alg_bw", number(place, "algbw_gb_per_s")),
        EL_KEY("bus_bw", number(place, "busbw_gb_per_s")),
        EL_KEY("nwrong", json_is_integer(wrong) ? json_real((double)json_integer_value(wrong)) : json_null()));
}

static json_t *row_json(const json_t *curve, const json_t *point, int64_t iters)
{
    char root[16], name[64];
    const char *algorithm = el_json_text(curve, "algorithm", "auto");
    bool chosen = strcmp(algorithm, "auto") != 0;
    snprintf(root, sizeof root, "%6.0f", number(curve, "root"));
    snprintf(name, sizeof name, "%s%s%s", el_json_text(curve, "operation", ""), chosen ? "/" : "",
             chosen ? algorithm : "");
    return el_json_of(EL_KEY("size", whole(point, "bytes")), EL_KEY("count", whole(point, "count")),
                      EL_KEY("type", el_json_text(curve, "datatype", "")),
                      EL_KEY("redop", el_json_text(curve, "redop", "none")), EL_KEY("root", (const char *)root),
                      EL_KEY("out_of_place", place_json(json_object_get(point, "out_of_place"))),
                      EL_KEY("in_place", place_json(json_object_get(point, "in_place"))),
                      EL_KEY("actual_iterations", iters), EL_KEY("experiment_name", (const char *)name));
}

/* "2026-07-09 16:03:21" of now, in UTC. */
static void write_now(char text[32])
{
    struct tm parts;
    time_t now = time(NULL);
    gmtime_r(&now, &parts);
    strftime(text, 32, "%Y-%m-%d %H:%M:%S", &parts);
}

json_t *el_wire_nccl_json(const json_t *document)
{
    json_t *results = json_array(), *errors = json_array();
    char begin[32], end[32];
    double sum = 0, n = 0;
    snprintf(begin, sizeof begin, "%.10s %.8s", el_json_text(document, "environment.time_utc", "                   "),
             el_json_text(document, "environment.time_utc", "                   ") + 11);
    write_now(end);
    EL_EACH(curve, json_object_get(document, "curves")) {
        if (!el_json_is(curve, "status", "ok")) json_array_append(errors, json_object_get(curve, "reason"));
        EL_EACH(point, json_object_get(curve, "points")) {
            if (!(number(point, "bytes") > 0)) continue; /* a barrier, which nccl-tests has not */
            json_array_append_new(results, row_json(curve, point, el_json_whole(document, "iters")));
            for (int p = 0; p < EL_WIRE_WARM_PLACES; p++) {
                double busbw = number(json_object_get(point, el_wire_places[p]), "busbw_gb_per_s");
                if (isfinite(busbw)) sum += busbw, n++;
            }
        }
    }
    int64_t wrong = el_wire_wrong(document);
    return el_json_of(EL_KEY("version", NCCL_TESTS_VERSION), EL_KEY("start_time", (const char *)begin),
                      EL_KEY("args", arguments()), EL_KEY("env", environment()), EL_KEY("nccl_version", 0),
                      EL_KEY("config", config_json(document)), EL_KEY("results", results),
                      EL_KEY("out_of_bounds", el_json_of(EL_KEY("count", wrong), EL_KEY("okay", truth(wrong == 0)))),
                      EL_KEY("average_bus_bandwidth",
                             el_json_of(EL_KEY("bandwidth", n > 0 ? sum / n : 0.0), EL_KEY("okay", "unchecked"))),
                      EL_KEY("errors", errors), EL_KEY("end_time", (const char *)end));
}
