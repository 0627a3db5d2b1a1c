/* Each CPU of a host counts once, and so does each process's own time. Hosts are identified by boot id: containers may
 * have several names on one machine. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "runtime/comm/nccl/api.h"

static json_t *range_mhz(double min_hz, double max_hz)
{
    return el_json_of(EL_KEY("min", min_hz / 1e6), EL_KEY("max", max_hz / 1e6));
}

json_t *el_record_system(const struct el_system_figures *f, const int *allowed, int n_allowed, const int *devices,
                         int n_devices)
{
    json_t *cpus = json_array(), *device_cpus = json_array();
    for (int i = 0; i < n_devices; i++) json_array_append_new(device_cpus, json_integer(devices[i]));
    for (int i = 0; i < n_allowed; i++) {
        int cpu = allowed[i];
        if (cpu < 0 || cpu >= EL_SYSTEM_CPUS_MAX) continue;
        json_array_append_new(cpus, el_json_of(EL_KEY("cpu", cpu), EL_KEY("busy_pct", f->busy_pct[cpu]),
                                               EL_KEY("steal_pct", f->steal_pct[cpu])));
    }
    return el_json_of(EL_KEY("window_s", f->window_s), EL_KEY("own_cpu_s", f->own_cpu_s),
                      EL_KEY("waited_pct", f->waited_pct), EL_KEY("cpus", cpus), EL_KEY("device_cpus", device_cpus),
                      EL_KEY("freq_mhz_begin", range_mhz(f->frequency_begin.min_hz, f->frequency_begin.max_hz)),
                      EL_KEY("freq_mhz_end", range_mhz(f->frequency_end.min_hz, f->frequency_end.max_hz)),
                      EL_KEY("throttled", el_json_count(f->throttled)), EL_KEY("reason", el_json_filled(f->reason)),
                      EL_KEY("machine", el_machine()));
}

json_t *el_record_cores(const char *root, const int *cpus, int n_cpus)
{
    json_t *cores = json_array();
    for (int i = 0; i < n_cpus; i++) {
        struct el_system_core core;
        el_system_core(root, cpus[i], &core);
        json_array_append_new(cores,
                              el_json_of(EL_KEY("cpu", cpus[i]), EL_KEY("capacity", el_json_count(core.capacity)),
                                         EL_KEY("max_mhz", core.max_hz / 1e6)));
    }
    return cores;
}

static const char *host_of(const json_t *part)
{
    return el_json_text(part, "machine.boot_id", el_json_text(part, "machine.hostname", ""));
}

struct host {
    double busy[EL_SYSTEM_CPUS_MAX], steal[EL_SYSTEM_CPUS_MAX]; /* per cent; NAN: no process may run there */
    bool device[EL_SYSTEM_CPUS_MAX];
    double own; /* CPU time used by the job, in CPUs */
};

static void add_part(struct host *host, const json_t *part)
{
    EL_EACH(row, json_object_get(part, "cpus")) {
        double cpu = el_json_number(row, "cpu");
        if (!(cpu >= 0 && cpu < EL_SYSTEM_CPUS_MAX)) continue;
        host->busy[(int)cpu] = el_json_number(row, "busy_pct");
        host->steal[(int)cpu] = el_json_number(row, "steal_pct");
    }
    EL_EACH(device, json_object_get(part, "device_cpus")) {
        json_int_t cpu = json_integer_value(device);
        if (cpu >= 0 && cpu < EL_SYSTEM_CPUS_MAX) host->device[cpu] = true;
    }
    host->own += el_json_number(part, "own_cpu_s") / el_json_number(part, "window_s");
}

struct shares {
    double others_pct, others_on_devices_pct, steal_pct;
};

/* The job's time elsewhere is subtracted from the devices' cores too, as its place is unknown: that share is rather too
 * small. */
static struct shares shares_of(const struct host *host)
{
    double busy = 0, steal = 0, device_busy = 0;
    int n = 0, n_devices = 0;
    for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++) {
        if (isnan(host->busy[c])) continue;
        busy += host->busy[c];
        steal += host->steal[c];
        n++;
        if (!host->device[c]) continue;
        device_busy += host->busy[c];
        n_devices++;
    }
    struct shares s = {NAN, NAN, NAN};
    bool own_known = !isnan(host->own);
    if (n && own_known) s.others_pct = fmax(0, (busy - 100 * host->own) / n);
    if (n) s.steal_pct = steal / n;
    if (n_devices && own_known) s.others_on_devices_pct = fmax(0, (device_busy - 100 * host->own) / n_devices);
    return s;
}

static struct shares worst_shares(const json_t *parts)
{
    struct shares worst = {NAN, NAN, NAN};
    struct host *host = malloc(sizeof *host);
    for (size_t i = 0; i < json_array_size(parts) && host; i++) {
        const char *name = host_of(json_array_get(parts, i));
        bool first = true;
        memset(host, 0, sizeof *host);
        for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++) host->busy[c] = NAN;
        EL_EACH(part, parts) {
            if (strcmp(host_of(part), name) != 0) continue;
            first = first && part_at.i >= i;
            add_part(host, part);
        }
        if (!first) continue;
        struct shares s = shares_of(host);
        worst.others_pct = fmax(worst.others_pct, s.others_pct);
        worst.others_on_devices_pct = fmax(worst.others_on_devices_pct, s.others_on_devices_pct);
        worst.steal_pct = fmax(worst.steal_pct, s.steal_pct);
    }
    free(host);
    return worst;
}

/* The fastest of the devices' cores: an idle one may be slow. */
static double frequency_change_pct(const json_t *parts)
{
    double worst = NAN;
    EL_EACH(part, parts) {
        double begin = el_json_number(part, "freq_mhz_begin.max"), end = el_json_number(part, "freq_mhz_end.max");
        double change = 100 * (end / begin - 1);
        if (!isnan(change) && (isnan(worst) || fabs(change) > fabs(worst))) worst = change;
    }
    return worst;
}

static double longest(const json_t *parts, const char *name)
{
    double *values;
    size_t n = el_json_numbers_at(parts, name, &values);
    free(values);
    return n == json_array_size(parts) ? el_json_highest(parts, name) : NAN;
}

static json_t *machine_differences(const json_t *parts)
{
    static const char *const texts[] = {"cpu_model", "machine", "kernel"}, *const counts[] = {"cores_online",
                                                                                              "memory_bytes"};
    static const double within[] = {0, 0.05}; /* memory sizes of equal machines differ slightly */
    json_t *differences = json_array();
    const json_t *first = json_object_get(json_array_get(parts, 0), "machine");
    for (size_t i = 1; i < json_array_size(parts) && json_array_size(differences) == 0; i++) {
        const json_t *other = json_object_get(json_array_get(parts, i), "machine");
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            const char *a = el_json_text(first, texts[k], "?"), *b = el_json_text(other, texts[k], "?");
            if (strcmp(a, b) != 0) json_array_append_new(differences, json_sprintf("%s: %s and %s", texts[k], a, b));
        }
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            double a = el_json_number(first, counts[k]), b = el_json_number(other, counts[k]);
            if (fabs(a - b) > within[k] * fmax(a, b))
                json_array_append_new(differences, json_sprintf("%s: %.0f and %.0f", counts[k], a, b));
        }
    }
    return differences;
}

/* As each host's first process saw them: containers have their own networks. */
static json_t *interfaces(const json_t *parts)
{
    json_t *rows = json_array(), *hosts = json_array();
    EL_EACH(part, parts) {
        const char *host = el_json_text(part, "machine.hostname", "");
        if (el_json_has(hosts, host)) continue;
        json_array_append_new(hosts, json_string(host));
        EL_EACH(interface, json_object_get(part, "interfaces")) {
            el_json_put_text(interface, "host", host);
            json_array_append(rows, interface);
        }
    }
    json_decref(hosts);
    return rows;
}

static const char *reason_of(const json_t *parts)
{
    EL_EACH(part, parts)
        if (el_json_text(part, "reason", NULL)) return el_json_text(part, "reason", NULL);
    return NULL;
}

json_t *el_record_system_of_job(json_t *parts)
{
    struct shares shares = worst_shares(parts);
    return el_json_of(
        EL_KEY("window_s", longest(parts, "window_s")), EL_KEY("waited_pct", longest(parts, "waited_pct")),
        EL_KEY("others_pct", shares.others_pct), EL_KEY("others_on_devices_pct", shares.others_on_devices_pct),
        EL_KEY("steal_pct", shares.steal_pct), EL_KEY("frequency_change_pct", frequency_change_pct(parts)),
        EL_KEY("throttled", el_json_rounded(el_json_highest(parts, "throttled"))),
        EL_KEY("machine_differences", machine_differences(parts)), EL_KEY("interfaces", interfaces(parts)),
        EL_KEY("reason", reason_of(parts)), EL_KEY("processes", parts));
}

json_t *el_record_gpu(const struct el_nvml_figures *f)
{
    if (!f) return json_null();
    json_t *throttled = json_object();
    for (int r = 0; r < EL_NVML_THROTTLE_COUNT; r++)
        el_json_put_real(throttled, el_nvml_throttle_name(r), f->throttled_pct[r]);
    json_t *clock = el_json_of(EL_KEY("min", f->clock_min_hz / 1e6), EL_KEY("mean", f->clock_mean_hz / 1e6),
                               EL_KEY("max", f->clock_max_hz / 1e6));
    return el_json_of(
        EL_KEY("clock_mhz", clock), EL_KEY("power_w", f->power_w), EL_KEY("energy_mj", f->energy_j * 1e3),
        EL_KEY("throttled_pct", throttled), EL_KEY("used_bytes", el_json_count(f->used_bytes)),
        EL_KEY("total_bytes", el_json_count(f->total_bytes)), EL_KEY("process_bytes", el_json_count(f->process_bytes)),
        EL_KEY("nvlink_errors", el_json_count(f->nvlink_errors)),
        EL_KEY("pcie_replays", el_json_count(f->pcie_replays)), EL_KEY("processes", el_json_count(f->n_processes)),
        EL_KEY("samples", f->n_looks), EL_KEY("window_s", f->window_s), EL_KEY("reason", el_json_filled(f->reason)));
}

/* `apart_p`: a member of another process is on the card. */
static bool is_shared(const json_t *members, size_t position, bool *apart_p)
{
    const json_t *member = json_array_get(members, position);
    const char *uuid = el_json_text(member, "uuid", NULL);
    bool shared = false;
    *apart_p = false;
    EL_EACH(other, members) {
        if (!uuid || other == member || !el_json_is(other, "uuid", uuid)) continue;
        shared = true;
        *apart_p |= el_json_number(other, "rank") != el_json_number(member, "rank");
    }
    return shared;
}

void el_record_shared_cards(json_t *members, json_t *processes)
{
    static const char *const figures[] = {"driver_bytes", "unattributed_bytes", "grown_bytes"};
    for (size_t i = 0; i < json_array_size(members); i++) {
        bool apart;
        json_t *memory = json_object_get(json_array_get(members, i), "memory");
        if (!is_shared(members, i, &apart)) continue;
        for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++) el_json_put(memory, figures[f], json_null());
        el_json_put(memory, "driver_reason",
                    json_string("several of the run's devices are on this card, and the driver tells the card's bytes, "
                                "not a device's (gpu.used_bytes)"));
        if (apart) el_json_put(memory, "library_bytes", json_object());
        EL_EACH(process, processes) json_array_set_new(json_object_get(process, "per_device_bytes"), i, json_null());
    }
}

/* Settings as given; libraries do not report their effective values. */
static json_t *variables(const char *const *prefixes)
{
    json_t *variables = json_object();
    for (char **at = environ; *at; at++)
        for (const char *const *prefix = prefixes; *prefix; prefix++) {
            const char *value = strchr(*at, '=');
            char name[128];
            if (strncmp(*at, *prefix, strlen(*prefix)) != 0 || !value) continue;
            snprintf(name, sizeof name, "%.*s", (int)(value - *at), *at);
            el_json_put_text(variables, name, value + 1);
        }
    return variables;
}

json_t *el_record_gpu_variables(void)
{
    return variables((const char *const[]){"CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", NULL});
}

json_t *el_record_nccl(void)
{
    char version[32];
    bool known = el_nccl_version(version, sizeof version) == EL_OK;
    return el_json_of(EL_KEY("version", known ? version : NULL), EL_KEY("reason", known ? NULL : el_error_message()),
                      EL_KEY("variables", variables((const char *const[]){"NCCL_", NULL})));
}
