/* The fields of a fingerprint, as rows, and the key made of them. How many cards a trial takes is its configuration's,
 * so only their names are here. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/text.h"
#include "bench/regress/store.h"
#include "bench/stats/stats.h"

enum { VALUE_BYTES = 512, DIFFERENCES_SHOWN = 3 };

#define VARIABLES "gpu_variables"
/* Of the environment, but for the last two. If one is put in or moved, every stored baseline is lost to its machine. */
static const char *const fields[] = {
    "machine",        "cpu_model",     "cpu_stepping", "cpu_microcode", "cores_online", "smt",
    "numa_nodes",     "governor",      "turbo",        "cgroup_cores",  "affinity",     "gpus",
    "gpu_driver",     "gpu_libraries", "nccl",         "mpi",           "cpu_library",  "compiler",
    "compiler_flags", "kernel",        "schema",       VARIABLES,
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* [0, 1, 2, 5] as "0-2,5". */
static void put_list(const json_t *list, char *text, size_t bytes)
{
    size_t n = json_array_size(list);
    for (size_t i = 0, end; i < n; i = end) {
        json_int_t first = json_integer_value(json_array_get(list, i)), last = first;
        for (end = i + 1; end < n; end++) {
            json_int_t next = json_integer_value(json_array_get(list, end));
            if (next <= last || next - 1 != last) break;
            last = next;
        }
        el_text_append(text, bytes, "%s%" JSON_INTEGER_FORMAT, i ? "," : "", first);
        if (end - i > 1) el_text_append(text, bytes, "-%" JSON_INTEGER_FORMAT, last);
    }
}

/* "unknown" for what is not in the document, unless what it would lie in is null. */
static const char *absent(const json_t *run, const char *path)
{
    char parent[64];
    const char *dot = strrchr(path, '.');
    snprintf(parent, sizeof parent, "%.*s", dot ? (int)(dot - path) : 0, path);
    return dot && json_is_null(el_json_at(run, parent)) ? "none" : "unknown";
}

static void put_value(const json_t *run, const char *field, char *text, size_t bytes)
{
    char number[32], path[64];
    snprintf(path, sizeof path, "%s%s%s", strcmp(field, "schema") ? "environment." : "", field,
             strcmp(field, "nccl") ? "" : ".version");
    const json_t *value = el_json_at(run, path);
    if (json_is_array(value))
        put_list(value, text, bytes);
    else
        el_text_append(text, bytes, "%s",
                       !value                   ? absent(run, path)
                       : json_is_string(value)  ? json_string_value(value)
                       : json_is_boolean(value) ? (json_is_true(value) ? "yes" : "no")
                       : json_is_number(value)  ? el_json_shortest(json_number_value(value), number)
                                                : "none");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The models of the trials' cards, and of a program of one's own the machine's, each once, in alphabetical order. */
static void put_gpus(const json_t *run, char *text, size_t bytes)
{
    const char *names[64];
    size_t n = 0, most = sizeof names / sizeof names[0];
    EL_EACH(trial, json_object_get(run, "trials")) {
        const json_t *gpus = json_object_get(trial, "gpus");
        EL_EACH(device, gpus ? gpus : json_object_get(trial, "per_device")) {
            const char *name = gpus ? json_string_value(device) : el_json_text(device, "model", NULL);
            for (size_t i = 0; name && i < n; i++)
                if (!strcmp(names[i], name)) name = NULL;
            if (name && n < most) names[n++] = name;
        }
    }
    qsort(names, n, sizeof names[0], by_name);
    if (n == 0) el_text_append(text, bytes, "none");
    for (size_t i = 0; i < n; i++) el_text_append(text, bytes, "%s%s", i ? ", " : "", names[i]);
}

/* Those that are set for GPUs and NCCL and may change numbers or times. Others say where something lies, which cards a
 * job was given, or whose host it is; CUDA_MODULE_LOADING is a trial's own, where evenload sets it. */
static void put_variables(const json_t *run, char *text, size_t bytes)
{
    static const char *const paths[] = {"environment.gpu_variables", "environment.nccl.variables"};
    static const char *const places[] = {"VISIBLE_DEVICES", "HOME",    "PATH",   "ROOT",    "VERSION",       "REQUIRE",
                                         "CAPABILITIES",    "_HOSTID", "_DEBUG", "COMM_ID", "MODULE_LOADING"};
    const char *names[64];
    size_t n = 0, most = sizeof names / sizeof names[0];
    for (int i = 0; i < 2; i++)
        EL_EACH_KEY(name, value, el_json_at(run, paths[i])) {
            bool kept = n < most && json_is_string(value);
            for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) kept &= !strstr(name, places[p]);
            if (kept) names[n++] = name;
        }
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        const char *value = el_json_text(el_json_at(run, paths[!strncmp(names[i], "NCCL_", 5)]), names[i], "");
        el_text_append(text, bytes, "%s%s=%s", i ? " " : "", names[i], value);
    }
}

json_t *el_fingerprint_of(const json_t *run)
{
    json_t *all = json_object();
    uint64_t hash = EL_HASH_BEGIN;
    for (int i = 0; i < N_FIELDS; i++) {
        char value[VALUE_BYTES] = "", line[VALUE_BYTES + 64];
        if (!strcmp(fields[i], VARIABLES))
            put_variables(run, value, sizeof value);
        else if (strcmp(fields[i], "gpus"))
            put_value(run, fields[i], value, sizeof value);
        else
            put_gpus(run, value, sizeof value);
        if (!*value && !strcmp(fields[i], VARIABLES)) continue; /* as with the machines of older stores */
        char *dot = strcmp(fields[i], "kernel") ? NULL : strchr(value, '.');
        if (dot) dot[1 + strspn(dot + 1, "0123456789")] = 0; /* "Linux 6.18.44-generic" as "Linux 6.18" */
        if (!strcmp(fields[i], "schema") && !strcmp(value, "2"))
            strcpy(value, "1"); /* a store's figures are the same */
        el_json_put_text(all, fields[i], value);
        snprintf(line, sizeof line, "%s=%s\n", fields[i], value);
        hash = el_hash(hash, line, strlen(line));
    }
    return el_json_of(EL_KEY("fingerprint", json_sprintf("%016" PRIx64, hash)), EL_KEY("fields", all));
}

json_t *el_fingerprint_changes(const json_t *base, const json_t *head)
{
    json_t *changes = json_object();
    for (int i = 0; i < N_FIELDS; i++) {
        const char *absent = strcmp(fields[i], VARIABLES) ? "unknown" : "none";
        const char *before = el_json_text(base, fields[i], absent), *now = el_json_text(head, fields[i], absent);
        if (strcmp(before, now) != 0) el_json_put(changes, fields[i], json_pack("[s, s]", before, now));
    }
    return changes;
}

size_t el_fingerprint_changes_text(const json_t *changes, char *text, size_t bytes)
{
    size_t n = 0;
    EL_EACH_KEY(field, both, changes)
        if (n++ < DIFFERENCES_SHOWN)
            el_text_append(text, bytes, "%s%s %.60s, then %.60s", n > 1 ? "; " : "", field,
                           json_string_value(json_array_get(both, 0)), json_string_value(json_array_get(both, 1)));
    if (n > DIFFERENCES_SHOWN) el_text_append(text, bytes, "; and %zu more", n - DIFFERENCES_SHOWN);
    return n;
}

int el_fingerprint_differences(const json_t *base, const json_t *head, char *text, size_t bytes)
{
    json_t *changes = el_fingerprint_changes(base, head);
    text[0] = 0;
    int n = (int)el_fingerprint_changes_text(changes, text, bytes);
    json_decref(changes);
    return n;
}

bool el_fingerprint_same_hardware(const json_t *a, const json_t *b)
{
    static const char *const its[] = {"machine",    "cpu_model",    "cpu_stepping", "cores_online", "smt",
                                      "numa_nodes", "cgroup_cores", "affinity",     "gpus"};
    for (size_t i = 0; i < sizeof its / sizeof its[0]; i++)
        if (strcmp(el_json_text(a, its[i], "unknown"), el_json_text(b, its[i], "unknown")) != 0) return false;
    return true;
}

void el_fingerprint_words(const json_t *all, char *text, size_t bytes)
{
    static const char *const optional[] = {"gpus", "kernel", "compiler"};
    snprintf(text, bytes, "%s, %s cores", el_json_text(all, "cpu_model", "unknown"),
             el_json_text(all, "cores_online", "?"));
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        const char *value = el_json_text(all, optional[i], "none");
        if (strcmp(value, "none") != 0) el_text_append(text, bytes, ", %s", value);
    }
}
