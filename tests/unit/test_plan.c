/* The plan (rounds, shuffled by the seed), the gate's judgement, and cores from recorded machines. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/campaign.h"
#include "bench/campaign/gate.h"
#include "bench/campaign/runner.h"
#include "bench/machine/host.h"
#include "runtime/gate/gate.h"
#include "tests/test.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

enum { TRIALS = 9, REPEATS = 5 };

static bool same_order(const struct el_plan_entry *a, const struct el_plan_entry *b)
{
    for (int t = 0; t < TRIALS; t++)
        if (a[t].trial != b[t].trial) return false;
    return true;
}

static void the_order_is_of_the_seed(void **state)
{
    struct el_plan_entry a[TRIALS * REPEATS], b[TRIALS * REPEATS], c[TRIALS * REPEATS];
    el_plan_make(TRIALS, REPEATS, 7, a);
    el_plan_make(TRIALS, REPEATS, 7, b);
    el_plan_make(TRIALS, REPEATS, 8, c);
    for (int r = 0; r < REPEATS; r++) assert_true(same_order(a + r * TRIALS, b + r * TRIALS));
    assert_false(same_order(a, c));
    assert_false(same_order(a, a + TRIALS));
}

/* No place of a round may belong to a trial: over many rounds each is first about equally often. */
static void each_trial_once_a_round_and_none_always_first(void **state)
{
    enum { ROUNDS = 900 };
    static struct el_plan_entry plan[TRIALS * ROUNDS];
    int first[TRIALS] = {0};
    el_plan_make(TRIALS, ROUNDS, 3, plan);
    for (int r = 0; r < ROUNDS; r++) {
        int seen = 0;
        for (int t = 0; t < TRIALS; t++) {
            assert_int_equal(plan[r * TRIALS + t].repeat, r);
            seen |= 1 << plan[r * TRIALS + t].trial;
        }
        assert_int_equal(seen, (1 << TRIALS) - 1);
        first[plan[r * TRIALS].trial]++;
    }
    for (int t = 0; t < TRIALS; t++) assert_in_range(first[t], 60, 140); /* 100 expected, 4 standard deviations */
}

static json_t *judge(enum el_gate_kernels kernels, double loss, double reference, double worst)
{
    const struct el_train_config config = {.model.name = "textcnn"};
    const struct el_gate_limits limits = el_gate_limits(&config, kernels);
    json_t *verdict = json_pack("{s:s, s:f, s:f, s:o, s:o, s:o, s:s}", "status", "ok", "loss_limit", limits.loss,
                                "gradient_limit", limits.gradient, "loss", el_json_real(loss), "reference_loss",
                                el_json_real(reference), "worst", el_json_real(worst), "parameter", "conv3.weight");
    json_t *row = el_gate_judge("dp", false, verdict);
    json_decref(verdict);
    return row;
}

/* GPUs are held against other kernels, as close as CPUs are with f32 and not with TF32; and deep models with batch norm
 * drift there, and bf16 rounds: what rounding explains is more, what an error makes is not. */
static void the_gate_judges(void **state)
{
    enum { SAME = EL_GATE_SAME, GPU = EL_GATE_GPU, TF32 = EL_GATE_TF32 };
    static const struct {
        int kernels;
        bool agrees;
        double loss, reference, worst;
        const char *reason; /* words of it */
    } cases[] = {{SAME, true, 1.7, 1.7000005, 9e-5, NULL},     {SAME, false, 1.7, 1.7, 2e-4, "conv3.weight"},
                 {SAME, false, 0.7, 0.700002, 0, "the loss"},  {SAME, false, NAN, 1.7, 0, "the loss"},
                 {SAME, false, 1.7, 1.7, NAN, "conv3.weight"}, {SAME, false, 1.7, 1.7, INFINITY, "conv3.weight"},
                 {GPU, true, 1.7, 1.700008, 9e-5, NULL},       {GPU, false, 1.7, 1.7, 2e-4, "conv3.weight"},
                 {GPU, false, 1.7, 1.70008, 0, "the loss"},    {GPU, false, 1.7, 1.7, NAN, "conv3.weight"},
                 {TF32, true, 1.7, 1.7008, 0.03, NULL},        {TF32, false, 1.7, 1.7, 0.5, "conv3.weight"},
                 {TF32, false, 1.7, 3.4, 0, "the loss"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *row = judge((enum el_gate_kernels)cases[i].kernels, cases[i].loss, cases[i].reference, cases[i].worst);
        const char *reason = el_json_text(row, "reason", NULL);
        bool agrees = json_is_true(json_object_get(row, "agrees"));
        assert_true(agrees || json_is_false(json_object_get(row, "agrees")));
        if (agrees != cases[i].agrees || !reason != agrees || (reason && !strstr(reason, cases[i].reason)))
            fail_msg("case %zu: %d, %s", i, agrees, reason ? reason : "no reason");
        json_decref(row);
    }
    struct el_train_config config = {.model.name = "resnet18"};
    assert_true(el_gate_limits(&config, EL_GATE_GPU).gradient == EL_GATE_SWITCHED);
    assert_true(el_gate_limits(&config, EL_GATE_SAME).gradient == EL_GATE_GRADIENT);
    config.model.precision = EL_PRECISION_BF16;
    assert_true(el_gate_limits(&config, EL_GATE_GPU).gradient == 0.2);
}

/* What could not be compared is not timed either, with the status that says why; what agreed is. */
static void a_gate_that_did_not_run_is_a_refusal(void **state)
{
    static const char *const statuses[] = {"oom", "failed", "timeout", "absent"};
    struct el_trial trial = {.train.mode = "dp"};
    const char *status = NULL;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        json_t *verdict = json_pack("{s:s, s:s}", "status", statuses[i], "reason", "cpu:0 is full");
        struct el_campaign campaign = {.gate = json_pack("[o]", el_gate_judge("dp", false, verdict))};
        assert_true(json_is_null(el_json_at(campaign.gate, "0.agrees")));
        assert_non_null(strstr(el_gate_refusal(&campaign, &trial, &status), "cpu:0 is full"));
        assert_string_equal(status, statuses[i]);
        json_decref(verdict);
        json_decref(campaign.gate);
    }
    struct el_campaign campaign = {.gate = json_pack("[o]", judge(EL_GATE_SAME, 1.7, 1.7, 2e-4))};
    assert_non_null(strstr(el_gate_refusal(&campaign, &trial, &status), "conv3.weight"));
    assert_string_equal(status, "failed");
    json_decref(campaign.gate);
    campaign.gate = json_pack("[o]", judge(EL_GATE_SAME, 1.7, 1.7, 0));
    assert_null(el_gate_refusal(&campaign, &trial, &status));
    json_decref(campaign.gate);
}

static void write_file(const char *path, const char *text)
{
    char whole[512], line[512];
    snprintf(whole, sizeof whole, "%s%s", folder, path);
    int n = snprintf(line, sizeof line, "%s\n", text);
    put_file(folder, whole, line, (size_t)n);
}

static int first_allowed(void)
{
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mask)) return cpu;
    return 0;
}

static void siblings_count_once(void **state)
{
    struct el_cores cores;
    int first = first_allowed();
    char path[128], text[32];
    snprintf(text, sizeof text, "%d,%d", first, first + 1);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", first + i);
        write_file(path, text);
    }
    el_cores_find(folder, &cores);
    assert_int_equal(cores.cpus[0], first);
    for (int i = 1; i < cores.n; i++) assert_int_not_equal(cores.cpus[i], first + 1);
}

static void the_quota_limits(void **state)
{
    static const struct {
        const char *path, *text;
        double quota;
    } files[] = {{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1", 0},
                 {"/sys/fs/cgroup/cpu.max", "max 100000", 0},
                 {"/sys/fs/cgroup/cpu.max", "250000 100000", 2.5},
                 {"/sys/fs/cgroup/a/cpu.max", "100000 100000", 1},
                 {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000", 0.5}};
    struct el_cores cores;
    write_file("/proc/self/cgroup", "0::/a/b");
    write_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        write_file(files[i].path, files[i].text);
        el_cores_find(folder, &cores);
        assert_true(fabs(cores.quota - files[i].quota) < 1e-9);
        if (cores.quota > 0) assert_true(cores.n <= fmax(1, cores.quota));
    }
    assert_int_equal(cores.n, 1);
}

/* cgroup v1: the group of `cpu`, wherever that stands in its list and whatever comes after; cpuset is another. */
static void the_quota_is_of_the_cpu_controller(void **state)
{
    static const char *const lists[] = {"5:cpu,cpuacct:/job\n3:cpuset:/other", "3:cpuset:/other\n5:cpu,cpuacct:/job",
                                        "5:cpuacct,cpu:/job\n3:cpuset:/other", "5:cpu:/job\n3:name=cpu:/other",
                                        "3:cpuset,cpu:/job\n5:cpuacct:/other"};
    struct el_cores cores;
    write_file("/sys/fs/cgroup/cpu.max", "max 100000");
    write_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
    write_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000");
    write_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        write_file("/proc/self/cgroup", lists[i]);
        el_cores_find(folder, &cores);
        if (fabs(cores.quota - 1) > 1e-9) fail_msg("%s: a quota of %g", lists[i], cores.quota);
        assert_int_equal(cores.n, 1);
    }
    write_file("/proc/self/cgroup", "3:cpuset:/job\n5:cpu,cpuacct:/other");
    el_cores_find(folder, &cores);
    assert_true(cores.quota == 0);
}

static const char *nothing_set(void *context, const char *name)
{
    return NULL;
}

static const char *loading_set(void *context, const char *name)
{
    return strcmp(name, "CUDA_MODULE_LOADING") ? NULL : "LAZY";
}

static void expect_environment(const struct el_trial *trial, const char *first, const char *second)
{
    const char *list[EL_RANK_VARIABLES];
    el_runner_environment(trial, nothing_set, list);
    if (!first) assert_null(list[0]);
    if (first) assert_string_equal(list[0], first);
    if (first && second) assert_string_equal(list[1], second);
    if (first && !second) assert_null(list[1]);
}

/* Threads with cards of their own, whose collectives wait for each other, and ranks whose messages do; nobody else, and
 * not against the user. */
static void ranks_have_what_keeps_them_from_waiting_for_each_other(void **state)
{
    const char *list[EL_RANK_VARIABLES];
    struct el_trial trial = {.procs = 1, .n_devices = 2, .train = {.mode = "ddp", .n_devices = 2}};
    for (int i = 0; i < 2; i++) trial.devices[i] = (struct el_device_name){.backend = "cuda", .index = i};
    expect_environment(&trial, "CUDA_MODULE_LOADING=EAGER", NULL);
    el_runner_environment(&trial, loading_set, list);
    assert_null(list[0]);
    trial.procs = 2;
    expect_environment(&trial, "NCCL_LAUNCH_ORDER_IMPLICIT=1", NULL);
    snprintf(trial.train.mode, sizeof trial.train.mode, "pipeline");
    expect_environment(&trial, "CUDA_MODULE_LOADING=EAGER", "CUDA_DEVICE_MAX_CONNECTIONS=32");
    el_runner_environment(&trial, loading_set, list);
    assert_string_equal(list[0], "CUDA_DEVICE_MAX_CONNECTIONS=32");
    trial.devices[1].index = 0; /* also where ranks share a card */
    expect_environment(&trial, "CUDA_MODULE_LOADING=EAGER", "CUDA_DEVICE_MAX_CONNECTIONS=32");
    snprintf(trial.train.mode, sizeof trial.train.mode, "ddp");
    trial.procs = 1;
    expect_environment(&trial, NULL, NULL); /* no NCCL there: host memory */
    for (int i = 0; i < 2; i++) trial.devices[i] = (struct el_device_name){.backend = "cpu", .index = i};
    expect_environment(&trial, NULL, NULL);
    for (int i = 0; i < 2; i++) trial.devices[i] = (struct el_device_name){.backend = "cuda", .index = i};
    snprintf(trial.train.mode, sizeof trial.train.mode, "dp"); /* one thread issues for all */
    expect_environment(&trial, NULL, NULL);
}

/* Only by NCCL, and only ranks: devices of one process may share a card. */
static void ranks_that_share_a_card_count_as_hosts(void **state)
{
    struct el_trial trial = {.procs = 2, .n_devices = 4, .comm = "nccl"};
    assert_string_equal(el_runner_numbered(&trial, NULL), "NCCL_HOSTID=evenload-");
    assert_null(el_runner_numbered(&trial, "mine"));
    trial.devices[2].index = trial.devices[3].index = 1;
    assert_null(el_runner_numbered(&trial, NULL));
    trial.devices[3].index = 0;
    snprintf(trial.comm, sizeof trial.comm, "shm");
    assert_null(el_runner_numbered(&trial, NULL));
}

RUN_TESTS(make_folder, remove_folder, the_order_is_of_the_seed, each_trial_once_a_round_and_none_always_first,
          the_gate_judges, ranks_have_what_keeps_them_from_waiting_for_each_other,
          ranks_that_share_a_card_count_as_hosts, a_gate_that_did_not_run_is_a_refusal, siblings_count_once,
          the_quota_limits, the_quota_is_of_the_cpu_controller)
