/* Processes on GPUs, by a library that is not NVML, and the record of ranks on them; and who is compared with whom:
 * GPUs, ranks, siblings, or nobody. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/fake_proc.h"

static struct {
    int processes_result, samples_result;
    unsigned long long since_us;
} fake;

static int handles[2];

static int fake_count(unsigned *n_p)
{
    *n_p = 3; /* the third cannot be opened */
    return 0;
}

static int fake_handle(unsigned index, void **device_p)
{
    if (index > 1) return 4;
    *device_p = &handles[index];
    return 0;
}

static int fake_uuid(void *device, char *text, unsigned bytes)
{
    snprintf(text, bytes, "GPU-%d", device == &handles[1]);
    return 0;
}

static int fake_name(void *device, char *text, unsigned bytes)
{
    (void)device;
    snprintf(text, bytes, "Fake 100");
    return 0;
}

static int fake_utilization(void *device, struct el_nvml_utilization *utilization_p)
{
    utilization_p->gpu_pct = device == &handles[0] ? 90 : 30;
    return 0;
}

static int fake_memory(void *device, struct el_nvml_memory *memory_p)
{
    (void)device;
    *memory_p = (struct el_nvml_memory){.total_bytes = 1000LL << 20, .used_bytes = 700LL << 20};
    return 0;
}

/* Both ranks have a context on the first GPU, rank 1 works on the second; somebody else's process is there too. */
static int fake_processes(void *device, unsigned *n_p, struct el_nvml_process *list)
{
    bool first = device == &handles[0];
    assert_true(*n_p >= 3);
    if (fake.processes_result) return fake.processes_result;
    list[0] = (struct el_nvml_process){.pid = first ? 102 : 103, .used_bytes = (first ? 400ULL : 300ULL) << 20};
    list[1] = (struct el_nvml_process){.pid = first ? 103 : 5000, .used_bytes = first ? 100ULL << 20 : 50ULL << 20};
    list[2] = (struct el_nvml_process){.pid = 5001, .used_bytes = UINT64_MAX};
    *n_p = 3;
    return 0;
}

static int fake_process_utilization(void *device, struct el_nvml_process_sample *list, unsigned *n_p,
                                    unsigned long long since_us)
{
    fake.since_us = since_us;
    if (device != &handles[0]) return EL_NVML_NOT_SUPPORTED;
    if (fake.samples_result) return fake.samples_result;
    assert_true(*n_p >= 3);
    list[0] = (struct el_nvml_process_sample){.pid = 102, .time_us = 50, .sm_pct = 80};
    list[1] = (struct el_nvml_process_sample){.pid = 102, .time_us = 60, .sm_pct = 60};
    list[2] = (struct el_nvml_process_sample){.pid = 5001, .time_us = 40, .sm_pct = 1};
    *n_p = 3;
    return 0;
}

static const struct el_nvml_api fake_api = {.count = fake_count,
                                            .handle_by_index = fake_handle,
                                            .uuid = fake_uuid,
                                            .name = fake_name,
                                            .utilization = fake_utilization,
                                            .memory = fake_memory,
                                            .processes = fake_processes,
                                            .process_utilization = fake_process_utilization};

static void gpus_and_their_processes(void **state)
{
    struct el_gpu_processes *gpus;
    memset(&fake, 0, sizeof fake);
    assert_int_equal(el_gpu_processes_open(&fake_api, &gpus), EL_OK);
    assert_int_equal(gpus->n, 2);
    el_gpu_processes_look(gpus);
    assert_string_equal(gpus->gpus[1].uuid, "GPU-1");
    assert_true(gpus->gpus[1].busy_pct == 30);
    assert_int_equal(gpus->gpus[0].used_bytes, 700LL << 20);
    assert_int_equal(gpus->n_uses, 6);
    assert_true(gpus->uses[0].busy_pct == 70);
    assert_true(isnan(gpus->uses[1].busy_pct));
    assert_int_equal(gpus->uses[2].used_bytes, -1);
    assert_int_equal(gpus->uses[3].gpu, 1);
    el_gpu_processes_look(gpus); /* samples that were counted are not asked for again */
    fake.processes_result = EL_NVML_TOO_SMALL;
    el_gpu_processes_look(gpus);
    assert_int_equal(gpus->n_uses, 0);
    el_gpu_processes_close(gpus);
    struct el_nvml_api none = fake_api;
    none.processes = NULL;
    assert_int_equal(el_gpu_processes_open(&none, &gpus), EL_ERR_ABSENT);
}

static void ranks_on_gpus(void **state)
{
    struct el_process_tree *tree = open_tree();
    put_rank(102, 0);
    put_rank(103, 1);
    PUT(.pid = 101, .name = "torchrun", .resident_kib = 10);
    PUT(.pid = 102, .parent = 101, .name = "python", .resident_kib = 5 << 10);
    PUT(.pid = 103, .parent = 101, .name = "python", .resident_kib = 7 << 10);
    struct el_watching *watch = watch_tree(tree);
    memset(&fake, 0, sizeof fake);
    assert_int_equal(el_gpu_processes_open(&fake_api, &watch->gpus), EL_OK);
    put_last(103);
    for (int round = 0; round < 3; round++)
        for (int a = 0; a < EL_WATCH_ACTIVITIES; a++)
            assert_int_equal(el_watch_do(watch, (enum el_watch_activity)a), EL_OK);
    watch->end_ns = el_clock_ns();
    json_t *document = el_watch_record(watch, "evenload watch -- job");
    assert_non_null(document);
    assert_string_equal(el_json_text(document, "watch.compared.what", ""), "GPUs");
    assert_int_equal(json_array_size(el_json_at(document, "watch.gpu_processes")), 3);
    assert_true(number(document, "watch.gpus.0.ours_peak_bytes") == 500 << 20);
    assert_true(number(document, "watch.gpus.1.ours_peak_bytes") == 300 << 20);
    assert_true(number(document, "watch.gpus.1.others_peak_bytes") == 50 << 20);
    assert_true(number(document, "watch.gpu_processes.1.rank") == 1); /* its context on a GPU that is not its own */
    assert_true(fabs(number(document, "watch.gpu_processes.0.busy_pct") - 70) < 1e-6);
    assert_true(number(document, "trials.0.per_device.0.memory.peak_bytes") == 500 << 20);
    assert_true(number(document, "trials.0.per_device.1.utilization.busy_pct") == 30);
    assert_true(fabs(number(document, "trials.0.imbalance.memory.first_over_rest") - 5. / 3) < 1e-9);
    assert_true(fabs(number(document, "trials.0.imbalance.busy.imbalance_pct") - 200. / 3) < 1e-9);
    char *text = tables_of(document);
    assert_non_null(strstr(text, "gpu:0 holds 200.0 MiB more than the other, 1.67 times"));
    assert_non_null(strstr(text, "gpu:1, Fake 100: busy 30.0 %"));
    free(text);
    json_decref(document);
    el_watch_end(watch);
}

/* As if the last look had been that long ago. */
static void look_after(struct el_watching *watch, int64_t ns)
{
    watch->gpu_look_ns -= ns;
    for (int k = 0; k < watch->n_uses; k++) watch->uses[k].busy_ns -= ns;
    assert_int_equal(el_watch_do(watch, EL_WATCH_GPUS), EL_OK);
}

/* The driver has samples of processes that worked; one that did nothing meanwhile is not as busy as when it did. */
static void idle_time_counts(void **state)
{
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 102, .name = "python", .resident_kib = 10);
    discover(tree, 102);
    struct el_watching *watch = watch_tree(tree);
    memset(&fake, 0, sizeof fake);
    assert_int_equal(el_gpu_processes_open(&fake_api, &watch->gpus), EL_OK);
    look_after(watch, 0);
    assert_true(isnan(el_watch_use_busy_pct(&watch->uses[0])));
    look_after(watch, 1000000000);
    fake.samples_result = EL_NVML_NOT_FOUND;
    look_after(watch, 500000000); /* the next sample is not due */
    assert_true(fabs(el_watch_use_busy_pct(&watch->uses[0]) - 70) < 1);
    look_after(watch, 2000000000);
    assert_true(fabs(el_watch_use_busy_pct(&watch->uses[0]) - 70 * 1.5 / 3.5) < 1);
    fake.samples_result = EL_NVML_NOT_SUPPORTED; /* a missing sample is no idleness */
    look_after(watch, 9000000000);
    assert_true(fabs(el_watch_use_busy_pct(&watch->uses[0]) - 70 * 1.5 / 3.5) < 1);
    el_watch_end(watch);
}

/* ---- who is compared ---- */

static struct el_watch_peers peers_of(const struct el_watching *watch)
{
    struct el_watch_peers peers;
    assert_int_equal(el_watch_peers(watch, &peers), EL_OK);
    return peers;
}

static int pid_of(const struct el_watching *watch, const struct el_watch_peers *peers, int i)
{
    return watch->tree->list[peers->list[i].process]->process.pid;
}

static void peers_are_ranks(void **state)
{
    struct el_process_tree *tree = open_tree();
    static const struct {
        int pid, parent, rank, kib;
    } processes[] = {{101, ANCESTOR, -1, 9000}, {102, 101, 1, 10},  {103, 102, 1, 500},
                     {104, 101, 0, 900},        {105, 104, 0, 100}, {106, 101, 2, 300}};
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++) {
        int kib = processes[i].kib;
        if (processes[i].rank >= 0) put_rank(processes[i].pid, processes[i].rank);
        if (processes[i].rank < 0) put(processes[i].pid, "environ", "RANK=5", 6); /* anybody may use that name */
        PUT(.pid = processes[i].pid, .parent = processes[i].parent, .ticks = 1, .resident_kib = kib, .peak_kib = kib);
    }
    discover(tree, 106);
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_string_equal(peers.what, "ranks");
    assert_int_equal(peers.n, 3);
    assert_int_equal(pid_of(watch, &peers, 0), 104);
    assert_int_equal(pid_of(watch, &peers, 1), 103); /* what the script of rank 1 started */
    assert_int_equal(pid_of(watch, &peers, 2), 106);
    assert_true(peers.list[1].memory_bytes == 500 * 1024);
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

static void peers_are_siblings(void **state)
{
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "main", .resident_kib = 99999);
    PUT(.pid = 102, .parent = 101, .name = "worker", .ticks = 40, .resident_kib = 800);
    PUT(.pid = 103, .parent = 101, .name = "worker", .ticks = 50, .resident_kib = 900);
    PUT(.pid = 104, .parent = 101, .name = "worker", .ticks = 1, .resident_kib = 20); /* helps */
    PUT(.pid = 105, .parent = 103, .name = "loader", .ticks = 2, .resident_kib = 100);
    PUT(.pid = 106, .parent = 103, .name = "loader", .ticks = 2, .resident_kib = 100);
    PUT(.pid = 107, .parent = 101, .name = "worker", .ticks = 50, .resident_kib = 900);
    discover(tree, 107);
    for (int pid = 101; pid < 107; pid++) set_life(tree, pid, 1000, 41000);
    set_life(tree, 107, 25000, 45000); /* together for 16 of 40: not side by side */
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_int_equal(peers.n, 2);
    assert_int_equal(pid_of(watch, &peers, 0), 102);
    assert_int_equal(pid_of(watch, &peers, 1), 103);
    el_watch_peers_free(&peers);
    set_life(tree, 107, 19000, 45000); /* for 22 of them */
    peers = peers_of(watch);
    assert_int_equal(peers.n, 3);
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

static void nothing_to_compare(void **state)
{
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "alone", .resident_kib = 1);
    discover(tree, 101);
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_int_equal(peers.n, 0);
    assert_non_null(strstr(peers.rule, "no two processes"));
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gpus_and_their_processes), TEST(ranks_on_gpus),      TEST(idle_time_counts),
        TEST(peers_are_ranks),          TEST(peers_are_siblings), TEST(nothing_to_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
