/* The rows of a machine's file: key, field, unit; reading and writing go by them. */
#include "bench/trial/machine.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/text.h"
#include "runtime/base/files.h"

/* `unit`: what 1 in the file is in the field. The network's keys are all there or none. */
static const struct row {
    const char *key;
    size_t offset;
    double unit;
    bool may_be_zero, of_network;
    const char *instead; /* whose number it has where it is missing */
} rows[] = {
    {"f32_tflop_per_s", offsetof(struct el_machine, f32_flops_per_s), 1e12, false, false, NULL},
    {"f64_tflop_per_s", offsetof(struct el_machine, f64_flops_per_s), 1e12, false, false, NULL},
    {"bf16_tflop_per_s", offsetof(struct el_machine, bf16_flops_per_s), 1e12, false, false, "f32_tflop_per_s"},
    {"memory_gb_per_s", offsetof(struct el_machine, memory_bytes_per_s), 1e9, false, false, NULL},
    {"copy_gb_per_s", offsetof(struct el_machine, copy_bytes_per_s), 1e9, false, false, NULL},
    {"host_link_gb_per_s", offsetof(struct el_machine, host_link_bytes_per_s), 1e9, false, false, NULL},
    {"link_gb_per_s", offsetof(struct el_machine, link_bytes_per_s), 1e9, false, false, NULL},
    {"link_latency_us", offsetof(struct el_machine, link_latency_ns), 1e3, true, false, NULL},
    {"kernel_launch_us", offsetof(struct el_machine, kernel_launch_ns), 1e3, true, false, NULL},
    {"copy_launch_us", offsetof(struct el_machine, copy_launch_ns), 1e3, true, false, NULL},
    {"collective_launch_us", offsetof(struct el_machine, collective_launch_ns), 1e3, true, false, NULL},
    {"host_call_us", offsetof(struct el_machine, host_call_ns), 1e3, true, false, NULL},
    {"network_gb_per_s", offsetof(struct el_machine, network_bytes_per_s), 1e9, false, true, NULL},
    {"network_latency_us", offsetof(struct el_machine, network_latency_ns), 1e3, true, true, NULL},
};
enum { N_ROWS = sizeof rows / sizeof rows[0], MACHINE_BYTES_MAX = 1 << 20 };
static const char HOSTS[] = "devices_per_host";

/* What collectives hold of a card: all keys or none. */
static const struct row held[] = {
    {"multiprocessors", offsetof(struct el_machine, multiprocessors), 1, false, false, NULL},
    {"collective_multiprocessors", offsetof(struct el_machine, collective_multiprocessors), 1, true, false, NULL},
    {"network_collective_multiprocessors", offsetof(struct el_machine, network_collective_multiprocessors), 1, true,
     false, NULL},
};
enum { N_HELD = sizeof held / sizeof held[0] };

/* The lists of measured rates by size: an object a rate, with its dtype, its sides and tflop_per_s. */
static const struct list {
    const char *key, *sides[4];
} lists[EL_RATE_KINDS] = {
    [EL_RATE_PRODUCT] = {"products", {"m", "n", "k"}}, [EL_RATE_ATTENTION] = {"attention", {"seq", "head"}}};

static double *field(struct el_machine *machine, const struct row *row)
{
    return (double *)((char *)machine + row->offset);
}

static bool is_known(const char *key)
{
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].key, key) == 0) return true;
    for (int i = 0; i < N_HELD; i++)
        if (strcmp(held[i].key, key) == 0) return true;
    for (int i = 0; i < EL_RATE_KINDS; i++)
        if (strcmp(lists[i].key, key) == 0) return true;
    return !strcmp(key, "name") || !strcmp(key, "source") || !strcmp(key, HOSTS);
}

/* A key of ours in another unit: "f32_gflop_per_s", "link_latency_ns". */
static const char *in_our_unit(const char *key)
{
    size_t length = strcspn(key, "_");
    const char *second = key[length] ? strchr(key + length + 1, '_') : NULL;
    if (second) length = (size_t)(second - key);
    for (int pass = 0; pass < 2; pass++, length = strcspn(key, "_"))
        for (int i = 0; i < N_ROWS; i++)
            if (strncmp(rows[i].key, key, length + 1) == 0 && key[length] == '_') return rows[i].key;
    return NULL;
}

static enum el_status check_keys(const char *path, json_t *object)
{
    EL_EACH_KEY(key, value, object) {
        if (is_known(key)) continue;
        const char *ours = in_our_unit(key);
        return ours ? el_fail(EL_ERR_INVALID,
                              "--machine %s: unknown key '%.60s': did you mean '%s'? The unit is in the name", path,
                              key, ours)
                    : el_fail(EL_ERR_INVALID, "--machine %s: unknown key '%.60s': docs/comm.md lists the keys", path,
                              key);
    }
    return EL_OK;
}

static enum el_status take_text(const char *path, const json_t *object, const char *key, char *to, size_t bytes)
{
    const char *text = el_json_text(object, key, NULL);
    if (!text || !*text || strlen(text) >= bytes)
        return el_fail(EL_ERR_INVALID, "--machine %s: '%s' must be a text of 1 to %zu characters", path, key,
                       bytes - 1);
    snprintf(to, bytes, "%s", text);
    return EL_OK;
}

static enum el_status take_number(const char *path, const json_t *object, const struct row *row, double *to)
{
    const json_t *value = json_object_get(object, row->key);
    if (!value && row->instead) value = json_object_get(object, row->instead);
    double number = json_number_value(value);
    if (!value) return el_fail(EL_ERR_INVALID, "--machine %s: '%s' is missing", path, row->key);
    if (!json_is_number(value) || !(number > 0 || (number == 0 && row->may_be_zero)) || number > 1e9)
        return el_fail(EL_ERR_INVALID, "--machine %s: '%s' must be a number %s 0, at most 1e9", path, row->key,
                       row->may_be_zero ? "from" : "above");
    *to = number * row->unit;
    return EL_OK;
}

static enum el_status take_rate(const char *path, const json_t *object, enum el_machine_rate_kind kind,
                                struct el_machine *machine)
{
    const struct list *list = &lists[kind];
    const char *dtype = el_json_text(object, "dtype", "");
    double sides[3] = {0}, rate = el_json_number(object, "tflop_per_s");
    bool right = rate > 0 && rate <= 1e9 && (!strcmp(dtype, "f32") || !strcmp(dtype, "f64") || !strcmp(dtype, "bf16"));
    size_t n = 2;
    for (int i = 0; list->sides[i]; i++, n++) {
        sides[i] = el_json_number(object, list->sides[i]);
        right = right && sides[i] >= 1 && sides[i] <= 1e9;
    }
    if (!right || json_object_size(object) != n)
        return el_fail(
            EL_ERR_INVALID,
            "--machine %s: each of '%s' must have dtype (f32, f64, bf16), %s and tflop_per_s above 0, no more", path,
            list->key, kind == EL_RATE_PRODUCT ? "m, n, k" : "seq, head");
    if (machine->n_rates == EL_MACHINE_RATES_MAX)
        return el_fail(EL_ERR_INVALID, "--machine %s: more than %d products and attentions", path,
                       EL_MACHINE_RATES_MAX);
    el_machine_add_rate(machine, kind, dtype, sides, rate * 1e12);
    return EL_OK;
}

static enum el_status take_lists(const char *path, const json_t *object, struct el_machine *machine)
{
    for (int kind = 0; kind < EL_RATE_KINDS; kind++) {
        const json_t *list = json_object_get(object, lists[kind].key);
        if (list && !json_is_array(list))
            return el_fail(EL_ERR_INVALID, "--machine %s: '%s' must be a list", path, lists[kind].key);
        EL_EACH(rate, list) EL_TRY(take_rate(path, rate, (enum el_machine_rate_kind)kind, machine));
    }
    return EL_OK;
}

static enum el_status take_held(const char *path, const json_t *object, struct el_machine *machine)
{
    bool any = false;
    for (int i = 0; i < N_HELD; i++) any |= json_object_get(object, held[i].key) != NULL;
    for (int i = 0; any && i < N_HELD; i++) EL_TRY(take_number(path, object, &held[i], field(machine, &held[i])));
    for (int i = 1; any && i < N_HELD; i++)
        if (*field(machine, &held[i]) > machine->multiprocessors / 2)
            return el_fail(EL_ERR_INVALID, "--machine %s: '%s' must be at most half of 'multiprocessors'", path,
                           held[i].key);
    return EL_OK;
}

static enum el_status take(const char *path, json_t *object, struct el_machine *machine)
{
    const json_t *hosts = json_object_get(object, HOSTS);
    bool network =
        hosts || json_object_get(object, "network_gb_per_s") || json_object_get(object, "network_latency_us");
    if (!json_is_object(object)) return el_fail(EL_ERR_INVALID, "--machine %s: is no object of JSON", path);
    EL_TRY(check_keys(path, object));
    EL_TRY(take_text(path, object, "name", machine->name, sizeof machine->name));
    EL_TRY(take_text(path, object, "source", machine->source, sizeof machine->source));
    for (int i = 0; i < N_ROWS; i++)
        if (network || !rows[i].of_network) EL_TRY(take_number(path, object, &rows[i], field(machine, &rows[i])));
    json_int_t devices = json_integer_value(hosts);
    if (network && !(devices >= 1 && devices <= 4096))
        return el_fail(EL_ERR_INVALID, "--machine %s: '%s' %s: with a network it says how many devices a host has",
                       path, HOSTS, hosts ? "must be a whole number from 1 to 4096" : "is missing");
    machine->devices_per_host = (int)devices;
    EL_TRY(take_held(path, object, machine));
    return take_lists(path, object, machine);
}

/* A file of that name, else one of ours. */
static bool find(const char *name, char path[2 * EL_PATH_BYTES])
{
    char file[EL_PATH_BYTES - 8], folder[EL_PATH_BYTES];
    snprintf(path, 2 * EL_PATH_BYTES, "%s", name);
    if (access(name, R_OK) == 0) return true;
    snprintf(file, sizeof file, "%s.json", name);
    if (strchr(name, '/') || !el_shared_folder("hardware", file, folder)) return false;
    snprintf(path, 2 * EL_PATH_BYTES, "%s/%s", folder, file);
    return true;
}

enum el_status el_machine_read(const char *name, struct el_machine *machine_p)
{
    char path[2 * EL_PATH_BYTES];
    struct el_machine machine = {.devices_per_host = 0};
    json_error_t error;
    *machine_p = el_machine_default;
    if (!*name) return EL_OK;
    if (!find(name, path))
        return el_fail(EL_ERR_INVALID,
                       "--machine %s: no such file, and no machine of that name: 'evenload machine' writes one, "
                       "profiles/hardware has h100-sxm, a100-sxm, v100-sxm2 and v100-pcie",
                       name);
    FILE *file;
    EL_TRY(el_file_stream("--machine ", path, MACHINE_BYTES_MAX, &file));
    json_t *object = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (!object) return el_fail(EL_ERR_INVALID, "--machine %s: line %d: %s", name, error.line, error.text);
    enum el_status status = take(name, object, &machine);
    json_decref(object);
    if (status == EL_OK) *machine_p = machine;
    return status;
}

const char *el_machine_worsen(struct el_machine *machine, int i)
{
    if (i >= N_ROWS || (rows[i].of_network && machine->devices_per_host == 0)) return NULL; /* the network's are last */
    *field(machine, &rows[i]) *= rows[i].may_be_zero ? 2 : 0.5;
    return rows[i].key;
}

static void put_rates(json_t *object, const struct el_machine *machine)
{
    for (int i = 0; i < machine->n_rates; i++) {
        const struct el_machine_rate *rate = &machine->rates[i];
        const struct list *list = &lists[rate->kind];
        double flops_per_s = rate->of_peak_rate * el_machine_flops_per_s(machine, rate->dtype);
        json_t *row = el_json_of(EL_KEY("dtype", rate->dtype));
        for (int side = 0; list->sides[side]; side++)
            el_json_put(row, list->sides[side], json_integer((json_int_t)rate->sides[side]));
        el_json_put_real(row, "tflop_per_s", flops_per_s / 1e12);
        if (!json_object_get(object, list->key)) el_json_put(object, list->key, json_array());
        json_array_append_new(json_object_get(object, list->key), row);
    }
}

json_t *el_machine_json(const struct el_machine *machine)
{
    struct el_machine copy = *machine;
    json_t *object = json_object();
    el_json_put_text(object, "name", machine->name);
    el_json_put_text(object, "source", machine->source);
    for (int i = 0; i < N_ROWS; i++)
        if (machine->devices_per_host > 0 || !rows[i].of_network)
            el_json_put_real(object, rows[i].key, *field(&copy, &rows[i]) / rows[i].unit);
    if (machine->devices_per_host > 0) el_json_put(object, HOSTS, json_integer(machine->devices_per_host));
    for (int i = 0; i < N_HELD && machine->multiprocessors > 0; i++)
        el_json_put_real(object, held[i].key, *field(&copy, &held[i]));
    put_rates(object, machine);
    return object;
}

const char *el_machine_text(const json_t *machine, char text[EL_MACHINE_TEXT_BYTES])
{
    char f32[EL_FIGURE_BYTES], f64[EL_FIGURE_BYTES], memory[EL_FIGURE_BYTES], link[EL_FIGURE_BYTES];
    double network = el_json_number(machine, "network_gb_per_s");
    snprintf(text, EL_MACHINE_TEXT_BYTES, "machine %s (f32 %s TFLOP/s, f64 %s, memory %s GB/s, links %s GB/s",
             el_json_text(machine, "name", "?"), el_text_figure(el_json_number(machine, "f32_tflop_per_s"), f32),
             el_text_figure(el_json_number(machine, "f64_tflop_per_s"), f64),
             el_text_figure(el_json_number(machine, "memory_gb_per_s"), memory),
             el_text_figure(el_json_number(machine, "link_gb_per_s"), link));
    if (network > 0)
        el_text_append(text, EL_MACHINE_TEXT_BYTES, ", network %s GB/s between hosts of %.0f",
                       el_text_figure(network, link), el_json_number(machine, HOSTS));
    el_text_append(text, EL_MACHINE_TEXT_BYTES, ")");
    return text;
}
