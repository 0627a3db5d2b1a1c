/* What the system says in /proc, /sys and the cgroup's files. The input is several files: a line "=== NAME" begins one,
 * NAME being its path below the root. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine/host.h"
#include "profiles/process_tree.h"
#include "profiles/system.h"
#include "tests/fuzz/fuzz.h"

enum { ANCESTOR = 100, CHILD = 101 };

static const char *const names[] = {"proc/stat",
                                    "proc/loadavg",
                                    "proc/meminfo",
                                    "proc/self/cgroup",
                                    "proc/101/stat",
                                    "proc/101/status",
                                    "proc/101/cmdline",
                                    "proc/101/environ",
                                    "proc/101/smaps_rollup",
                                    "proc/self/net/dev",
                                    "sys/class/net/eth0/speed",
                                    "sys/devices/system/node/node0/meminfo",
                                    "sys/class/infiniband/mlx5_0/ports/1/state",
                                    "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed",
                                    "sys/fs/cgroup/cpu.max",
                                    "sys/fs/cgroup/memory.max",
                                    "sys/fs/cgroup/memory.current",
                                    "sys/fs/cgroup/memory.stat",
                                    "sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                                    "sys/fs/cgroup/cpu/cpu.cfs_period_us",
                                    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
                                    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                                    "sys/devices/system/cpu/cpu0/cpu_capacity"};
enum { N_NAMES = sizeof names / sizeof names[0] };

static void put_files(const uint8_t *data, size_t size)
{
    static const char mark[] = "=== ";
    for (int i = 0; i < N_NAMES; i++) {
        char line[128];
        size_t length = (size_t)snprintf(line, sizeof line, "%s%s\n", mark, names[i]);
        const uint8_t *at = memmem(data, size, line, length);
        const uint8_t *from = at ? at + length : data + size;
        const uint8_t *to = memmem(from, (size_t)(data + size - from), mark, sizeof mark - 1);
        fuzz_file(names[i], from, (size_t)((to ? to : data + size) - from));
    }
}

static void follow(const char *root)
{
    struct el_process_tree *tree;
    if (!fuzz_status(el_process_tree_open(root, ANCESTOR, &tree))) return;
    el_process_tree_expect(tree, CHILD);
    for (int i = 0; i < 2; i++) {
        fuzz_status(el_process_tree_discover(tree));
        el_process_tree_look(tree);
        el_process_tree_look_young(tree);
        el_process_tree_look_shared(tree);
    }
    el_process_tree_close(tree);
}

static void identify(const char *root)
{
    struct el_process process;
    struct el_process_identity identity;
    if (!el_process_open(root, CHILD, &process)) return;
    el_process_identify(&process, &identity);
    el_process_pss_bytes(&process);
    el_process_close(&process);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct el_system_reading begin, end;
    static struct el_system_figures figures;
    const char *root = fuzz_folder();
    const int cpus[] = {0, 1};
    struct el_cores cores;
    struct el_system_core core;
    char words[256];
    memset(&begin, 0, sizeof begin);
    put_files(data, size);
    el_system_read(root, cpus, 2, &end);
    el_system_compare(&begin, &end, &figures);
    el_system_busy_pct(&figures, cpus, 2);
    el_system_core(root, 0, &core);
    el_cores_find(root, &cores);
    fuzz_expect(cores.n >= 1 && cores.n <= EL_DEVICE_CORES_MAX, "there is a core");
    el_cores_describe(&cores, words, sizeof words);
    el_host_free_bytes(root);
    json_t *links = el_links_host(root), *counters = el_links_counters(root);
    json_decref(el_links_grown(counters, counters));
    fuzz_expect(json_array_size(json_object_get(links, "interfaces")) == 1, "there is an interface");
    json_decref(counters);
    json_decref(links);
    identify(root);
    follow(root);
    return 0;
}
