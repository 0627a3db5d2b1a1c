/* NUMA nodes, network interfaces and InfiniBand from /sys, PCIe and NVLink from the driver. */
#include <glob.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/machine/host.h"
#include "runtime/base/files.h"

enum { TEXT_BYTES = 160, REASON_BYTES = 320, GPUS_MAX = 64 };

static void explain(char *reason, const char *what, const char *why)
{
    el_text_append(reason, REASON_BYTES, "%s%s: %s", *reason ? "; " : "", what, why);
}

/* After "Node 0 MemTotal:" or "4: " if present; or a link's target. */
struct fact {
    const char *key, *file;
    enum { TEXT, NUMBER, KIB, LINK } kind;
};

static const struct fact node_facts[] = {{"cores", "cpulist", TEXT}, {"memory_bytes", "meminfo", KIB}, {NULL}},
                         interface_facts[] = {{"state", "operstate", TEXT},
                                              {"speed_mbit_s", "speed", NUMBER},
                                              {"driver", "device/driver", LINK},
                                              {"numa_node", "device/numa_node", NUMBER},
                                              {NULL}},
                         port_facts[] = {{"state", "state", TEXT},
                                         {"rate_gbit_s", "rate", NUMBER},
                                         {"link_layer", "link_layer", TEXT},
                                         {"driver", "../../device/driver", LINK},
                                         {"numa_node", "../../device/numa_node", NUMBER},
                                         {NULL}},
                         port_counters[] = {{"rx_packets", "counters/port_rcv_packets", NUMBER},
                                            {"rx_errors", "counters/port_rcv_errors", NUMBER},
                                            {"tx_packets", "counters/port_xmit_packets", NUMBER},
                                            {"tx_dropped", "counters/port_xmit_discards", NUMBER},
                                            {"symbol_errors", "counters/symbol_error", NUMBER},
                                            {"link_downed", "counters/link_downed", NUMBER},
                                            {NULL}};

/* The kernel reports unknown as a negative number. */
static json_t *fact_of(const char *folder, const struct fact *fact, char *reason)
{
    char path[EL_PATH_BYTES * 2], text[TEXT_BYTES] = "", *end;
    snprintf(path, sizeof path, "%s/%s", folder, fact->file);
    bool found =
        fact->kind == LINK ? readlink(path, text, sizeof text - 1) > 0 : el_file_line(path, "", text, sizeof text);
    char *at = fact->kind == LINK ? strrchr(text, '/') : strstr(text, ":");
    at = at ? at + 1 + strspn(at + 1, " ") : text;
    double value = strtod(at, &end) * (fact->kind == KIB ? 1024 : 1);
    if (found && (fact->kind == TEXT || fact->kind == LINK)) return el_json_string(at);
    if (found && end > at && value >= 0 && value < 1e18) return json_integer((json_int_t)value);
    explain(reason, fact->key, found ? "unknown to the kernel" : "not reported");
    return json_null();
}

/* /sys may show the network of its mounter. */
static bool is_ours(const char *path)
{
    char file[EL_PATH_BYTES * 2], index[TEXT_BYTES];
    snprintf(file, sizeof file, "%s/ifindex", path);
    el_file_line(file, "", index, sizeof index);
    return strtoul(index, NULL, 10) == if_nametoindex(strrchr(path, '/') + 1);
}

/* By name. */
static json_t *parts(const char *root, const char *pattern, const struct fact *facts)
{
    char whole[EL_PATH_BYTES];
    json_t *rows = json_array();
    glob_t found;
    snprintf(whole, sizeof whole, "%s%s", root, pattern);
    if (glob(whole, 0, NULL, &found) != 0) return rows;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        char reason[REASON_BYTES] = "";
        if (facts == interface_facts && !*root && !is_ours(path)) continue;
        json_t *row = el_json_of(EL_KEY("name", path + strlen(root) + strcspn(pattern, "*[")));
        for (const struct fact *fact = facts; fact->key; fact++)
            el_json_put(row, fact->key, fact_of(path, fact, reason));
        if (facts != port_counters) el_json_put(row, "reason", el_json_filled(reason));
        json_array_append_new(rows, row);
    }
    globfree(&found);
    return rows;
}

json_t *el_links_host(const char *root)
{
    return el_json_of(EL_KEY("numa", parts(root, "/sys/devices/system/node/node[0-9]*", node_facts)),
                      EL_KEY("interfaces", parts(root, "/sys/class/net/*", interface_facts)),
                      EL_KEY("infiniband", parts(root, "/sys/class/infiniband/*/ports/*", port_facts)));
}

/* /proc/self/net/dev: "eth0: bytes packets errs drop fifo frame compressed multicast", and the same sent. It is this
 * process's network. */
json_t *el_links_counters(const char *root)
{
    static const char *const names[] = {NULL, "rx_packets", "rx_errors", "rx_dropped", NULL, NULL,        NULL, NULL,
                                        NULL, "tx_packets", "tx_errors", "tx_dropped", NULL, "collisions"};
    char path[EL_PATH_BYTES], line[512];
    json_t *rows = parts(root, "/sys/class/infiniband/*/ports/*", port_counters);
    snprintf(path, sizeof path, "%s/proc/self/net/dev", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *at = strchr(line, ':');
        if (!at) continue;
        *at++ = '\0';
        json_t *row = el_json_of(EL_KEY("name", line + strspn(line, " ")));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            int64_t count = strtoll(at, &at, 10);
            if (names[i]) el_json_put(row, names[i], el_json_count(count));
        }
        json_array_append_new(rows, row);
    }
    if (file) fclose(file);
    return rows;
}

json_t *el_links_grown(const json_t *begin, const json_t *end)
{
    json_t *rows = json_array();
    EL_EACH(before, begin) {
        EL_EACH(after, end) {
            if (!el_json_is(after, "name", el_json_text(before, "name", "?"))) continue;
            json_t *row = json_object();
            bool any = false;
            EL_EACH_KEY(counter, count, after) {
                double grown = el_json_number(count, "") - el_json_number(before, counter);
                el_json_put(row, counter, grown >= 0 ? json_integer((json_int_t)grown) : json_null());
                any |= grown > 0;
            }
            json_object_set(row, "name", json_object_get(after, "name"));
            if (any) json_array_append(rows, row);
            json_decref(row);
        }
    }
    return rows;
}

/* ---- from the driver of GPUs ---- */

struct gpu {
    void *handle;
    char bus[32];    /* as in /sys; "": not reported */
    json_t *nvlinks; /* borrowed */
    char reason[REASON_BYTES];
};

#define ASK(api, reason, what, function, ...)                                                                          \
    told(api, reason, what, (api)->function ? (api)->function(__VA_ARGS__) : EL_NVML_MISSING)

static bool told(const struct el_nvml_api *api, char *reason, const char *what, int result)
{
    if (result != 0) explain(reason, what, result == EL_NVML_MISSING ? "not reported" : el_nvml_text(api, result));
    return result == 0;
}

/* NVML's 00000000:0F:00.0 is 0000:0f:00.0 in /sys. */
static const char *bus_of(const struct el_nvml_pci *pci, char bus[32])
{
    snprintf(bus, 32, "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
    return bus;
}

/* One way, MB/s: newer drivers report by link, older ones once. */
static json_t *speed_of(const struct el_nvml_api *api, struct gpu *gpu, unsigned link)
{
    struct el_nvml_field fields[2] = {{.id = EL_NVML_LINK_SPEED, .scope = link}, {.id = EL_NVML_LINKS_SPEED}};
    bool known = ASK(api, gpu->reason, "mb_s", fields, gpu->handle, 2, fields);
    for (int i = 0; i < 2 && known; i++)
        if (fields[i].result == 0 && fields[i].type == EL_NVML_UNSIGNED && fields[i].value.whole > 0)
            return json_integer(fields[i].value.whole);
    if (known) explain(gpu->reason, "mb_s", el_nvml_text(api, fields[1].result));
    return json_null();
}

/* "switch", a card's bus address, or "unknown". */
static const char *peer_of(const struct el_nvml_api *api, struct gpu *gpu, unsigned l, char bus[32])
{
    unsigned type;
    struct el_nvml_pci pci;
    if (!ASK(api, gpu->reason, "to", nvlink_peer, gpu->handle, l, &type)) return "unknown";
    if (type == EL_NVML_PEER_SWITCH) return "switch";
    return type == 0 && ASK(api, gpu->reason, "to", nvlink_peer_pci, gpu->handle, l, &pci) ? bus_of(&pci, bus)
                                                                                           : "unknown";
}

/* {"active", "inactive", "to": {peer: links}, "version", "mb_s" (of an active one)}; null: not reported. */
static json_t *nvlinks_of(const struct el_nvml_api *api, struct gpu *gpu)
{
    unsigned active, version, l = 0, n_active = 0, first = 0;
    char bus[32];
    json_t *to = json_object();
    for (; l < EL_NVML_LINKS_MAX; l++) {
        int result = api->nvlink_state ? api->nvlink_state(gpu->handle, l, &active) : EL_NVML_MISSING;
        if (result == EL_NVML_NOT_SUPPORTED || (l > 0 && el_nvml_is_none(result))) break; /* none, or no more */
        if (!told(api, gpu->reason, "nvlinks", result)) {
            json_decref(to);
            return json_null();
        }
        if (!active) continue;
        const char *peer = peer_of(api, gpu, l, bus);
        el_json_put(to, peer, json_integer(1 + json_integer_value(json_object_get(to, peer))));
        if (n_active++ == 0) first = l;
    }
    bool versioned = n_active && ASK(api, gpu->reason, "version", nvlink_version, gpu->handle, first, &version);
    return el_json_of(EL_KEY("active", (int)n_active), EL_KEY("inactive", (int)(l - n_active)), EL_KEY("to", to),
                      EL_KEY("version", versioned ? json_integer(version) : json_null()),
                      EL_KEY("mb_s", n_active ? speed_of(api, gpu, first) : json_null()));
}

static json_t *describe(const char *root, const struct el_nvml_api *api, int i, struct gpu *gpu)
{
    static const char *const names[] = {"generation", "max_generation", "width", "max_width"};
    static const struct fact numa_node = {"numa_node", "numa_node", NUMBER};
    char name[96] = "", uuid[96] = "", path[EL_PATH_BYTES];
    struct el_nvml_pci pci;
    json_t *node = json_null(), *pcie = json_object();
    ASK(api, gpu->reason, "name", name, gpu->handle, name, sizeof name);
    ASK(api, gpu->reason, "uuid", uuid, gpu->handle, uuid, sizeof uuid);
    if (ASK(api, gpu->reason, "bus_id, numa_node", pci, gpu->handle, &pci)) {
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s", root, bus_of(&pci, gpu->bus));
        node = fact_of(path, &numa_node, gpu->reason);
    }
    for (int k = 0; k < EL_NVML_PCIE_COUNT; k++) {
        unsigned value;
        bool known = ASK(api, gpu->reason, names[k], pcie[k], gpu->handle, &value);
        el_json_put(pcie, names[k], known ? json_integer(value) : json_null());
    }
    gpu->nvlinks = nvlinks_of(api, gpu);
    return el_json_of(EL_KEY("index", i), EL_KEY("name", el_json_filled(name)), EL_KEY("uuid", el_json_filled(uuid)),
                      EL_KEY("bus_id", el_json_filled(gpu->bus)), EL_KEY("numa_node", node), EL_KEY("pcie", pcie),
                      EL_KEY("nvlinks", gpu->nvlinks));
}

static int64_t links_to(const struct gpu *gpu, const char *peer)
{
    return json_integer_value(json_object_get(json_object_get(gpu->nvlinks, "to"), peer));
}

/* As in nvidia-smi topo -m. */
static json_t *path_between(const struct el_nvml_api *api, struct gpu *a, const struct gpu *b)
{
    static const char *const names[] = {"PSB", "PIX", "PXB", "PHB", "NODE", "SYS"};
    int64_t mine = links_to(a, "switch"), theirs = links_to(b, "switch");
    int64_t links = links_to(a, b->bus) + (mine < theirs ? mine : theirs);
    int level;
    if (a == b) return json_string("X");
    if (links > 0) return json_sprintf("NV%lld", (long long)links);
    if (json_is_null(a->nvlinks) || json_is_null(b->nvlinks)) return json_null(); /* there may be some */
    if (!a->handle || !b->handle || !ASK(api, a->reason, "to", ancestor, a->handle, b->handle, &level))
        return json_null();
    return el_json_string(level >= 0 && level <= 50 && level % 10 == 0 ? names[level / 10] : NULL);
}

json_t *el_links_gpus(const char *root, const struct el_nvml_api *api)
{
    unsigned n = 0;
    json_t *rows = json_array();
    struct gpu *gpus = calloc(GPUS_MAX, sizeof *gpus);
    char reason[REASON_BYTES] = "";
    bool counted = gpus && ASK(api, reason, "gpus", count, &n);
    for (unsigned i = 0; counted && i < n && i < GPUS_MAX; i++)
        json_array_append_new(rows, ASK(api, gpus[i].reason, "all", handle_by_index, i, &gpus[i].handle)
                                        ? describe(root, api, (int)i, &gpus[i])
                                        : el_json_of(EL_KEY("index", (int)i)));
    EL_EACH(row, rows) {
        json_t *to = json_array();
        for (size_t k = 0; k < json_array_size(rows); k++)
            json_array_append_new(to, path_between(api, &gpus[row_at.i], &gpus[k]));
        el_json_put_all(row, EL_KEY("to", to), EL_KEY("reason", el_json_filled(gpus[row_at.i].reason)));
    }
    free(gpus);
    return el_json_of(EL_KEY("gpus", rows), EL_KEY("reason", el_json_filled(reason)));
}

json_t *el_links_gpus_here(void)
{
    struct el_nvml_api api;
    if (el_nvml_load(&api) == EL_OK) return el_links_gpus("", &api);
    return el_json_of(EL_KEY("gpus", json_array()), EL_KEY("reason", el_error_message()));
}
