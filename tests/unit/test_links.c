/* Links: a machine's tree of /sys and a driver, both made by hand, so that what is told, and what is not, is known; and
 * counters between two readings. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "bench/machine/host.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/record_checks.h"
#include "tests/unit/whole_files.h"

static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    put_file(folder, whole, text, strlen(text));
}

static void put_driver(const char *device, const char *name)
{
    char link[256], target[128];
    snprintf(link, sizeof link, "%s/%s/driver", folder, device);
    snprintf(target, sizeof target, "../../../../bus/pci/drivers/%s", name);
    assert_int_equal(symlink(target, link), 0);
}

static void put_networks(const char *eth0)
{
    char text[1024];
    snprintf(text, sizeof text,
             "Inter-|   Receive                                                |  Transmit\n"
             " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
             "    lo: 50 5 0 0 0 0 0 0 50 5 0 0 0 0 0 0\n"
             "  eth0:%s\n"
             "  cut: 1 2 3\n",
             eth0);
    put("proc/self/net/dev", text);
}

static int make_machine(void **state)
{
    if (make_folder(state) != 0) return -1;
    put("sys/devices/system/node/node0/cpulist", "0-15,32-47\n");
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n");
    put("sys/devices/system/node/node1/cpulist", "16-31\n");
    put("sys/class/net/eth0/operstate", "up\n");
    put("sys/class/net/eth0/speed", "100000\n");
    put("sys/class/net/eth0/device/numa_node", "1\n");
    put_driver("sys/class/net/eth0/device", "mlx5_core");
    put("sys/class/net/veth7/operstate", "down\n");
    put("sys/class/net/veth7/speed", "-1\n");
    put("sys/class/infiniband/mlx5_0/device/numa_node", "0\n");
    put_driver("sys/class/infiniband/mlx5_0/device", "mlx5_core");
    put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
    put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    put("sys/bus/pci/devices/0000:0f:00.0/numa_node", "0\n");
    put("sys/bus/pci/devices/0000:10:00.0/numa_node", "-1\n");
    return 0;
}

static void is_text(const json_t *object, const char *path, const char *wanted)
{
    assert_string_equal(el_json_text(object, path, "(none)"), wanted);
}

static void the_host_tells(void **state)
{
    json_t *links = el_links_host(folder);
    (void)state;
    is_text(links, "numa.0.cores", "0-15,32-47");
    FIGURES(links, {"numa.0.memory_bytes", 1 << 20}, {"numa.1.memory_bytes", NAN});
    is_text(links, "numa.1.name", "1");
    is_text(links, "interfaces.0.name", "eth0");
    is_text(links, "interfaces.0.state", "up");
    is_text(links, "interfaces.0.driver", "mlx5_core");
    FIGURES(links, {"interfaces.0.speed_mbit_s", 1e5}, {"interfaces.0.numa_node", 1}, {"interfaces.0.reason", NAN});
    FIGURES(links, {"interfaces.1.speed_mbit_s", NAN}, {"interfaces.1.numa_node", NAN}, {"interfaces.1.driver", NAN});
    is_text(links, "interfaces.1.reason",
            "speed_mbit_s: unknown to the kernel; driver: not reported; numa_node: not reported");
    is_text(links, "infiniband.0.name", "mlx5_0/ports/1");
    is_text(links, "infiniband.0.state", "ACTIVE");
    is_text(links, "infiniband.0.link_layer", "InfiniBand");
    is_text(links, "infiniband.0.driver", "mlx5_core");
    FIGURES(links, {"infiniband.0.rate_gbit_s", 200}, {"infiniband.0.numa_node", 0});
    json_decref(links);
    links = el_links_host("/nonexistent");
    EL_EACH_KEY(kind, rows, links)
        if (json_array_size(rows) != 0) fail_msg("there are %s", kind);
    json_decref(links);
}

/* Errors of half a second: 3 packets spoiled, 2 dropped; the port's, and an interface that came meanwhile. */
static void counters_grow(void **state)
{
    (void)state;
    put_networks("1000 10 1 0 0 0 0 0 2000 20 0 4 0 0 0 0");
    put("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "3\n");
    put("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_packets", "18446744073709551615\n");
    json_t *begin = el_links_counters(folder);
    put_networks("9000 110 4 2 0 0 0 0 9000 220 0 3 0 1 0 0");
    put("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "4\n");
    json_t *end = el_links_counters(folder), *grown = el_links_grown(begin, end);
    is_text(grown, "0.name", "mlx5_0/ports/1");
    FIGURES(grown, {"0.link_downed", 1}, {"0.symbol_errors", NAN}, {"0.rx_packets", NAN});
    is_text(grown, "1.name", "eth0");
    FIGURES(grown, {"1.rx_packets", 100}, {"1.tx_packets", 200}, {"1.rx_errors", 3}, {"1.rx_dropped", 2},
            {"1.collisions", 1}, {"1.tx_errors", 0}, {"1.tx_dropped", NAN}); /* it went back: set to 0 meanwhile */
    assert_int_equal(json_array_size(grown), 2);                             /* over lo and "cut" nothing went */
    json_decref(grown);
    json_decref(begin);
    begin = json_object();
    grown = el_links_grown(begin, end);
    assert_int_equal(json_array_size(grown), 0);
    json_decref(grown);
    json_decref(begin);
    json_decref(end);
}

/* ---- three cards: two direct links between the first two, of which one is down to the third; the third is blind ----
 */

static int cards[3], nvlinks_result, pci_result;
static bool switched; /* links lead to switches: 3 of the first card, 2 of the second */

static const char *fake_text(int result)
{
    return result == 999 ? "Unknown Error" : "GPU is lost";
}

static int fake_count(unsigned *n_p)
{
    *n_p = 3;
    return 0;
}

static int fake_handle(unsigned i, void **device_p)
{
    *device_p = &cards[i];
    return 0;
}

static int index_of(const void *device)
{
    return (int)((const int *)device - cards);
}

static int fake_name(void *device, char *text, unsigned bytes)
{
    snprintf(text, bytes, "card %d", index_of(device));
    return 0;
}

static int fake_pci(void *device, struct el_nvml_pci *pci_p)
{
    *pci_p = (struct el_nvml_pci){.bus = 0x0f + (unsigned)index_of(device)};
    return pci_result;
}

#define FAKE_PCIE(name, value)                                                                                         \
    static int fake_##name(void *device, unsigned *value_p)                                                            \
    {                                                                                                                  \
        *value_p = (value);                                                                                            \
        return index_of(device) == 2 ? 15 : 0;                                                                         \
    }
FAKE_PCIE(generation, 3)
FAKE_PCIE(max_generation, 4)
FAKE_PCIE(width, 8)

static int fake_state(void *device, unsigned link, unsigned *active_p)
{
    *active_p = (int)link < (switched ? 3 - index_of(device) : 2);
    if (index_of(device) == 2) return nvlinks_result;
    return link < 3 ? 0 : 2;
}

static int fake_peer(void *device, unsigned link, unsigned *type_p)
{
    (void)device, (void)link;
    *type_p = switched ? EL_NVML_PEER_SWITCH : 0;
    return 0;
}

static int fake_peer_pci(void *device, unsigned link, struct el_nvml_pci *pci_p)
{
    (void)link;
    return fake_pci(&cards[1 - index_of(device)], pci_p);
}

static int fake_version(void *device, unsigned link, unsigned *version_p)
{
    (void)device, (void)link;
    *version_p = 2;
    return 0;
}

/* An older driver, that only tells the speed of all. */
static int fake_fields(void *device, int n, struct el_nvml_field *fields)
{
    (void)device;
    for (int i = 0; i < n; i++) {
        fields[i].result = fields[i].id == 90 ? 0 : 2;
        fields[i].type = 1;
        fields[i].value.whole = 25781;
    }
    return 0;
}

static int fake_ancestor(void *a, void *b, int *level_p)
{
    *level_p = index_of(a) + index_of(b) == 2 ? 30 : 50;
    return 0;
}

static struct el_nvml_api fake_driver(void)
{
    return (struct el_nvml_api){.error_text = fake_text,
                                .count = fake_count,
                                .handle_by_index = fake_handle,
                                .name = fake_name,
                                .pci = fake_pci,
                                .pcie = {fake_generation, fake_max_generation, fake_width, NULL},
                                .nvlink_state = fake_state,
                                .nvlink_version = fake_version,
                                .nvlink_peer = fake_peer,
                                .nvlink_peer_pci = fake_peer_pci,
                                .fields = fake_fields,
                                .ancestor = fake_ancestor};
}

static void the_driver_tells(void **state)
{
    struct el_nvml_api api = fake_driver();
    (void)state;
    nvlinks_result = EL_NVML_NOT_SUPPORTED;
    json_t *links = el_links_gpus(folder, &api);
    is_text(links, "gpus.0.name", "card 0");
    is_text(links, "gpus.0.bus_id", "0000:0f:00.0");
    FIGURES(links, {"gpus.0.numa_node", 0}, {"gpus.1.numa_node", NAN}, {"gpus.0.pcie.generation", 3},
            {"gpus.0.pcie.max_generation", 4}, {"gpus.0.pcie.width", 8}, {"gpus.0.pcie.max_width", NAN});
    is_text(links, "gpus.1.reason", "uuid: not reported; numa_node: unknown to the kernel; max_width: not reported");
    FIGURES(links, {"gpus.0.nvlinks.active", 2}, {"gpus.0.nvlinks.inactive", 1}, {"gpus.0.nvlinks.version", 2},
            {"gpus.0.nvlinks.mb_s", 25781});
    const json_t *peers = el_json_at(links, "gpus.0.nvlinks.to");
    assert_int_equal(json_integer_value(json_object_get(peers, "0000:10:00.0")), 2);
    FIGURES(links, {"gpus.2.nvlinks.active", 0}, {"gpus.2.nvlinks.inactive", 0}, {"gpus.2.nvlinks.mb_s", NAN});
    char *to = json_dumps(el_json_at(links, "gpus.0.to"), JSON_COMPACT);
    assert_string_equal(to, "[\"X\",\"NV2\",\"PHB\"]");
    is_text(links, "gpus.2.to.1", "SYS");
    assert_true(is_null(links, "reason"));
    free(to);
    json_decref(links);
    switched = true;
    links = el_links_gpus(folder, &api);
    switched = false;
    is_text(links, "gpus.0.to.1", "NV2");
    is_text(links, "gpus.1.to.0", "NV2");
    is_text(links, "gpus.0.to.2", "PHB");
    FIGURES(links, {"gpus.0.nvlinks.to.switch", 3});
    json_decref(links);
}

static void what_the_driver_does_not_tell_is_null(void **state)
{
    struct el_nvml_api api = fake_driver();
    (void)state;
    nvlinks_result = 999;
    api.ancestor = NULL;
    pci_result = 15;
    json_t *links = el_links_gpus(folder, &api);
    pci_result = 0;
    FIGURES(links, {"gpus.2.nvlinks", NAN}, {"gpus.2.pcie.generation", NAN}, {"gpus.0.to.2", NAN},
            {"gpus.0.bus_id", NAN}, {"gpus.0.to.1", NAN}, {"gpus.0.nvlinks.to.unknown", 2});
    is_text(links, "gpus.2.reason",
            "uuid: not reported; bus_id, numa_node: GPU is lost; generation: GPU is lost; max_generation: GPU is lost; "
            "width: GPU is lost; max_width: not reported; nvlinks: Unknown Error");
    json_decref(links);
    api.count = NULL;
    links = el_links_gpus(folder, &api);
    is_text(links, "reason", "gpus: not reported");
    json_decref(links);
}

RUN_TESTS(make_machine, remove_folder, the_host_tells, counters_grow, the_driver_tells,
          what_the_driver_does_not_tell_is_null)
