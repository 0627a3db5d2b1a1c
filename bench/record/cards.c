/* GPUs in the record: what the driver said of each, and of NCCL. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "runtime/comm/nccl/api.h"

json_t *el_record_gpu(const struct el_nvml_figures *f)
{
    if (!f) return json_null();
    json_t *throttled = json_object();
    for (int r = 0; r < EL_NVML_THROTTLE_COUNT; r++)
        el_json_put_real(throttled, el_nvml_throttle_name(r), f->throttled_pct[r]);
    json_t *clock = el_json_of(EL_KEY("min", f->clock_min_hz / 1e6), EL_KEY("mean", f->clock_mean_hz / 1e6),
                               EL_KEY("max", f->clock_max_hz / 1e6));
    return el_json_of(EL_KEY("clock_mhz", clock), EL_KEY("power_w", f->power_w), EL_KEY("energy_mj", f->energy_j * 1e3),
                      EL_KEY("throttled_pct", throttled), EL_KEY("used_bytes", el_json_count(f->used_bytes)),
                      EL_KEY("total_bytes", el_json_count(f->total_bytes)),
                      EL_KEY("process_bytes", el_json_count(f->process_bytes)),
                      EL_KEY("processes", el_json_count(f->n_processes)), EL_KEY("samples", f->n_looks),
                      EL_KEY("window_s", f->window_s), EL_KEY("reason", el_json_filled(f->reason)));
}

/* Whether another member is on the same card; `apart_p`: one of another process is. */
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

/* NCCL's settings as they were given: it says nowhere what it made of them. */
static json_t *variables(void)
{
    json_t *variables = json_object();
    for (char **at = environ; *at; at++) {
        const char *value = strchr(*at, '=');
        char name[128];
        if (strncmp(*at, "NCCL_", 5) != 0 || !value) continue;
        snprintf(name, sizeof name, "%.*s", (int)(value - *at), *at);
        el_json_put_text(variables, name, value + 1);
    }
    return variables;
}

json_t *el_record_nccl(void)
{
    char version[32];
    bool known = el_nccl_version(version, sizeof version) == EL_OK;
    return el_json_of(EL_KEY("version", known ? version : NULL), EL_KEY("reason", known ? NULL : el_error_message()),
                      EL_KEY("variables", variables()));
}
