/* The verdict: a clean trial is valid, and each rule speaks on a trial with its defect planted, alone; the page's
 * table; the line of --strict. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/verdict/verdict.h"
#include "tests/unit/whole_files.h"

enum { REPEATS = 5, STEPS = 30 };

static json_t *member_of(int cpu)
{
    return json_pack("{s:o, s:s, s:{s:i}, s:[{s:i, s:i, s:f}], s:i}", "device", json_sprintf("cpu:%d", cpu), "host",
                     "h", "memory", "peak_bytes", 100, "cores", "cpu", cpu, "capacity", 1024, "max_mhz", 3000.0,
                     "memory_limit_bytes", 1 << 20);
}

static json_t *repeat_of(int k)
{
    json_t *steps = json_array();
    for (int i = 0; i < STEPS; i++) json_array_append_new(steps, json_real(10 + (i + k) % 3));
    json_t *repeat = json_pack("{s:i, s:i, s:s, s:n, s:b, s:o, s:[f, f], s:[], s:[o, o]}", "repeat", k, "order", k,
                               "status", "ok", "reason", "simulated", 0, "step_ms", steps, "loss", 0.7, 0.6, "warnings",
                               "members", member_of(0), member_of(1));
    json_object_set_new(repeat, "system",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:[]}", "window_s", 1.0, "waited_pct", 2.0,
                                  "others_pct", 4.0, "others_on_devices_pct", 4.5, "steal_pct", 1.5,
                                  "frequency_change_pct", -8.0, "throttled", 0, "machine_differences"));
    return repeat;
}

static json_t *clean(void)
{
    json_t *repeats = json_array();
    for (int k = 0; k < REPEATS; k++) json_array_append_new(repeats, repeat_of(k));
    return repeats;
}

/* A trial's record, as far as the verdict goes. Steals `repeats`. */
static json_t *judge(json_t *repeats)
{
    json_t *ok = json_array(), *warnings = json_array(), *rules = json_array();
    for (size_t i = 0; i < json_array_size(repeats); i++) {
        json_t *repeat = json_array_get(repeats, i);
        if (strcmp(el_json_text(repeat, "status", ""), "ok") == 0) json_array_append(ok, repeat);
    }
    const char *verdict = el_verdict_judge(repeats, ok, warnings, rules);
    json_decref(ok);
    json_decref(repeats);
    return json_pack("{s:s, s:o, s:o}", "verdict", verdict, "warnings", warnings, "warning_rules", rules);
}

static void set(json_t *repeats, size_t k, const char *object, const char *key, json_t *value)
{
    assert_int_equal(json_object_set_new(el_json_at(json_array_get(repeats, k), object), key, value), 0);
}

static void plant_unfinished(json_t *r)
{
    json_array_append_new(r, json_pack("{s:s, s:s}", "status", "oom", "reason", "no room"));
}

/* Each step slower than the one before: drift, were they enough. */
static void plant_few_steps(json_t *r)
{
    for (size_t k = 0; k < REPEATS; k++) {
        json_t *steps = json_object_get(json_array_get(r, k), "step_ms");
        json_array_clear(steps);
        for (int i = 0; i < 9; i++) json_array_append_new(steps, json_real(100 + 20 * i));
    }
}

static void plant_short(json_t *r)
{
    json_t *steps = el_json_at(r, "1.step_ms");
    for (size_t i = 0; i < json_array_size(steps); i++) json_array_set_new(steps, i, json_real(5));
}

static void scale_steps(json_t *repeat, size_t first, size_t last, double factor)
{
    json_t *steps = json_object_get(repeat, "step_ms");
    for (size_t i = first; i < last; i++)
        json_array_set_new(steps, i, json_real(factor * json_number_value(json_array_get(steps, i))));
}

static void plant_drift(json_t *r)
{
    for (size_t k = 0; k < REPEATS; k++) scale_steps(json_array_get(r, k), STEPS / 2, STEPS, 1.2);
}

/* Six repeats, each 5 % slower than the one before: five are too few to tell. */
static void plant_trend(json_t *r)
{
    json_array_append_new(r, repeat_of(REPEATS));
    for (size_t k = 0; k <= REPEATS; k++) scale_steps(json_array_get(r, k), 0, STEPS, 1 + 0.05 * (double)k);
}

static const struct {
    const char *rule, *words;
    void (*plant)(json_t *repeats);
    const char *patch; /* in its place: {path: what is put into the object there}, ' for " */
} planted[] = {
    {"reported", "recorder full", .patch = "{'3': {'warnings': ['recorder full']}}"},
    {"finished", "1 of 6 repeats did not finish", .plant = plant_unfinished},
    {"steps", "9 measured steps", .plant = plant_few_steps},
    {"time", "0.15 s measured", .plant = plant_short},
    {"shared_core", "devices share a core (cpu:0 and cpu:1)", .patch = "{'0.members.1.cores.0': {'cpu': 0}}"},
    {"physical_core", "together each reached 52 % of its speed alone, in 1 of 5 repeats",
     .patch = "{'2.system': {'core_rate_pct': 52.4}, '3.system': {'core_rate_pct': 66.0}}"},
    {"shared_gpu", "devices share a GPU (cpu:0 and cpu:1)",
     .patch = "{'1.members.0': {'uuid': 'GPU-1'}, '1.members.1': {'uuid': 'GPU-1'}}"},
    {"others", "other processes took up to 23 % of the cores", .patch = "{'3.system': {'others_pct': 23.4}}"},
    {"others", "31 % of the devices' cores", .patch = "{'3.system': {'others_on_devices_pct': 31.0}}"},
    {"others", "had a device's core for up to 47 % of the time", .patch = "{'3.system': {'waited_pct': 47.0}}"},
    {"stolen", "3 % of the cores' time", .patch = "{'2.system': {'steal_pct': 2.6}}"},
    {"frequency", "fell by 12 %", .patch = "{'2.system': {'frequency_change_pct': -12.0}}"},
    {"throttled", "throttled 3 times", .patch = "{'4.system': {'throttled': 3}}"},
    {"gpu_throttled", "cpu:1 was held down in up to 38 % of the samples (power brake)",
     .patch = "{'2.members.1': {'gpu': {'throttled_pct': {'power cap': 4.0, 'power brake': 37.5, 'heat': null}}}}"},
    {"host_bound", "cpu:1 may wait for the host, which takes 56 % of a step",
     .patch = "{'2.members.1': {'queue_ms': 5.6, 'step_ms': 10.0}}"},
    {"gpu_others", "2 other processes computed on cpu:0", /* each member has its card; on one of them three compute */
     .patch = "{'1.members.0': {'uuid': 'GPU-1', 'gpu': {'processes': 3}},"
              " '1.members.1': {'uuid': 'GPU-2', 'gpu': {'processes': 1}}}"},
    {"network_errors", "eth0 of b lost packets while it was measured (12 packets lost, 0.06 %)",
     .patch = "{'1.members.1': {'host': 'b'}, '1.system': {'interfaces': [{'name': 'eth0', 'host': 'b',"
              " 'rx_packets': 10000, 'tx_packets': 10000, 'rx_dropped': 8, 'tx_errors': 4, 'rx_errors': null}]}}"},
    {"network_errors", "mlx5_0/ports/1 of h went down",
     .patch = "{'1.members.1': {'host': 'b'}, '1.system': {'interfaces': [{'name': 'mlx5_0/ports/1', 'host': 'h',"
              " 'rx_packets': 10000, 'tx_packets': 10000, 'link_downed': 1}]}}"},
    {"network_errors", "lo of h lost packets",
     .patch = "{'1': {'communicator': 'tcp'}, '1.system': {'interfaces': [{'name': 'lo', 'host': 'h',"
              " 'rx_packets': 1000, 'tx_packets': 1000, 'rx_dropped': 10}]}}"},
    {"gpu_links", "NVLink errors of cpu:1 grew by 1 in 30 s",
     .patch = "{'2.members.1': {'gpu': {'nvlink_errors': 1, 'pcie_replays': 6, 'window_s': 30.0}},"
              " '3.members.1': {'gpu': {'nvlink_errors': 0, 'pcie_replays': 90, 'window_s': 30.0}}}"},
    {"gpu_links", "PCIe replays of cpu:1 grew by 90 in 600 s",
     .patch = "{'2.members.1': {'gpu': {'nvlink_errors': null, 'pcie_replays': 90, 'window_s': 600.0}},"
              " '3.members.1': {'gpu': {'nvlink_errors': 0, 'pcie_replays': 8, 'window_s': 30.0}}}"},
    {"heterogeneous_cores", "capacity 512 and 1024", .patch = "{'0.members.1.cores.0': {'capacity': 512}}"},
    {"heterogeneous_cores", "highest MHz 2000 and 3000", .patch = "{'0.members.0.cores.0': {'max_mhz': 2000.0}}"},
    {"heterogeneous_machines", "cpu_model: A and B",
     .patch = "{'2.system': {'machine_differences': ['cpu_model: A and B']}}"},
    {"drift", "20 % slower within", .plant = plant_drift},
    {"trend", "% slower from the first repeat", .plant = plant_trend},
    {"loss", "not deterministic", .patch = "{'2': {'loss': [0.7, 0.6000000000000001]}}"},
    {"diverged", "not a finite number from step 2 on",
     .patch = "{'0': {'loss': [0.7, null]}, '1': {'loss': [0.7, null]}, '2': {'loss': [0.7, null]},"
              " '3': {'loss': [0.7, null]}, '4': {'loss': [0.7, null]}}"},
    {"memory", "memory differs", .patch = "{'3.members.1.memory': {'peak_bytes': 101}}"},
    {"grown", "of cpu:1 grew by 12.0 MiB", .patch = "{'4.members.1.memory': {'grown_bytes': 12582912}}"},
    {"unattributed", "cpu:0 holds 8.0 MiB that no tag accounts for, 20 %",
     .patch = "{'0.members.0.memory': {'peak_bytes': 41943040},"
              " '1.members.0.memory': {'peak_bytes': 41943040, 'unattributed_bytes': 8388608},"
              " '2.members.0.memory': {'peak_bytes': 41943040},"
              " '3.members.0.memory': {'peak_bytes': 41943040},"
              " '4.members.0.memory': {'peak_bytes': 41943040}}"},
    {"emulated", "bf16 is computed in f32", .patch = "{'0': {'emulated': 'no AVX512-BF16'}}"},
    {"injected", "--inject delay=1:20", .patch = "{'0': {'injected': 'delay=1:20'}}"},
    {"checkpoints", "for checkpoints to be written, at 80 MB/s",
     .patch = "{'0': {'checkpoints': {'n': 2, 'failed': 0, 'wait_ms': 5000, 'write_mb_per_s': 80}}}"},
    {"unsettled", "in 3 of 5 repeats",
     .patch = "{'1': {'settled': false}, '2': {'settled': false}, '3': {'settled': false}}"},
    {"costs_suspect", "1 record of --costs is suspect; s64: devices share a core",
     .patch = "{'0': {'prediction': {'records': [{'dir': 'wire', 'verdict': null},"
              " {'dir': 's64', 'verdict': 'suspect', 'reason': 'devices share a core'}]}}}"},
    {"costs_others", "--costs wire was measured beside other work, which had up to 41 %",
     .patch = "{'0': {'prediction': {'records': [{'dir': 'wire', 'others_pct': 41.2}]}}}"},
    {"costs_beside", "b64 was measured beside 1 device, and here 4 devices work: record single with --beside 3",
     .patch = "{'0': {'prediction': {'devices': 4, 'records': [{'dir': 's64', 'beside': 0},"
              " {'dir': 'b64', 'beside': 1}]}}}"},
    {"costs_sizes", "25 % of the predicted time is of sizes outside those of --costs",
     .patch = "{'0': {'prediction': {'all_ms': 8.0, 'outside': {'ms': 2.0, 'op': 'copy', 'bytes': 512,"
              " 'low_bytes': 1024, 'high_bytes': 2048}}}}"},
    {"costs_ranks", "'all_reduce' of 64 ranks was measured with 2: its time follows the algorithm's closed form",
     .patch = "{'0': {'prediction': {'all_ms': 8.0, 'other_ranks': {'ms': 0.01, 'op': 'all_reduce', 'ranks': 64,"
              " 'measured_ranks': 2}}}}"},
    {"costs_borrowed", "by others' times: 'broadcast'",
     .patch = "{'0': {'prediction': {'all_ms': 8.0, 'borrowed': {'ms': 0.1, 'op': 'broadcast'}}}}"},
    {"costs_rates", "12 % of the predicted time was not measured, and has the machine's rates: 'load'",
     .patch = "{'0': {'prediction': {'costs': 'wire', 'all_ms': 8.0, 'by_rates': {'ms': 1.0, 'op': 'load'}}}}"},
};
enum { N_PLANTED = sizeof planted / sizeof planted[0] };

static void plant(size_t i, json_t *repeats)
{
    char text[512];
    if (planted[i].plant) {
        planted[i].plant(repeats);
        return;
    }
    snprintf(text, sizeof text, "%s", planted[i].patch);
    for (char *at = text; *at; at++)
        if (*at == '\'') *at = '"';
    json_t *patch = json_loads(text, 0, NULL);
    assert_non_null(patch);
    EL_EACH_KEY(path, more, patch) assert_int_equal(json_object_update(el_json_at(repeats, path), more), 0);
    json_decref(patch);
}

static void a_clean_trial_is_valid(void **state)
{
    json_t *trial = judge(clean());
    assert_string_equal(el_json_text(trial, "verdict", ""), "valid");
    assert_int_equal(json_array_size(json_object_get(trial, "warnings")), 0);
    json_decref(trial);
}

static void each_defect_is_found_alone(void **state)
{
    for (size_t i = 0; i < N_PLANTED; i++) {
        json_t *repeats = clean();
        plant(i, repeats);
        json_t *trial = judge(repeats);
        const char *text = el_json_text(trial, "warnings.0", "(nothing)");
        assert_string_equal(el_json_text(trial, "verdict", ""), "suspect");
        assert_string_equal(el_json_text(trial, "warning_rules.0", "(none)"), planted[i].rule);
        assert_int_equal(json_array_size(json_object_get(trial, "warnings")), 1);
        if (strstr(text, planted[i].words) == NULL)
            fail_msg("%s: '%s' does not have '%s'", planted[i].rule, text, planted[i].words);
        json_decref(trial);
    }
}

static bool is_planted(const char *rule)
{
    for (size_t i = 0; i < N_PLANTED; i++)
        if (strcmp(planted[i].rule, rule) == 0) return true;
    return false;
}

static void every_rule_has_its_defect(void **state)
{
    for (const struct el_verdict_rule *rule = el_verdict_rules(); rule->name != NULL; rule++)
        if (!rule->note && !rule->gap && !is_planted(rule->name))
            fail_msg("no defect is planted for the rule %s", rule->name);
}

static void set_all(json_t *repeats, const char *key, double value)
{
    for (size_t k = 0; k < REPEATS; k++) set(repeats, k, "system", key, el_json_real(value));
}

static void is_verdict(json_t *repeats, const char *verdict, const char *rules, const char *words)
{
    json_t *trial = judge(repeats);
    char *names = json_dumps(json_object_get(trial, "warning_rules"), JSON_COMPACT);
    assert_string_equal(el_json_text(trial, "verdict", ""), verdict);
    assert_string_equal(names, rules);
    const char *text = el_json_text(trial, "warnings.0", "");
    if (!strstr(text, words)) fail_msg("'%s' does not have '%s'", text, words);
    free(names);
    json_decref(trial);
}

/* One launch has no interval, which its row says; its figure is as good as any. */
static void few_repeats_are_no_ground_for_suspicion(void **state)
{
    json_t *repeats = clean();
    while (json_array_size(repeats) > 1) json_array_remove(repeats, 1);
    is_verdict(repeats, "valid", "[\"repeats\"]", "fewer than 5 repeats: there is no interval");
}

/* NCCL's sums may round otherwise in each run: a note, but not where they differ by more, or before any sum. */
static void sums_that_round_otherwise_are_no_ground_for_suspicion(void **state)
{
    json_t *repeats = clean();
    for (size_t k = 0; k < REPEATS; k++)
        json_object_set_new(json_array_get(repeats, k), "communicator", json_string("nccl"));
    json_array_set_new(el_json_at(repeats, "2.loss"), 1, json_real(0.6 * 1.001));
    is_verdict(json_deep_copy(repeats), "valid", "[\"rounding\"]", "NCCL_NVLS_ENABLE=0");
    json_array_set_new(el_json_at(repeats, "3.loss"), 1, json_real(0.6 * 1.1));
    is_verdict(json_deep_copy(repeats), "suspect", "[\"loss\"]", "not deterministic");
    json_array_set_new(el_json_at(repeats, "3.loss"), 1, json_real(0.6));
    json_array_set_new(el_json_at(repeats, "3.loss"), 0, json_real(nextafter(0.7, 1)));
    is_verdict(repeats, "suspect", "[\"loss\"]", "not deterministic");
}

/* A launch's peak is that of the longest batch among its steps, where they differ in length, and only there. */
static void batches_of_unlike_length_may_peak_apart(void **state)
{
    json_t *repeats = clean();
    set(repeats, 3, "members.1.memory", "peak_bytes", json_integer(101));
    set(repeats, 0, "members.0", "loading", json_pack("{s:{s:f, s:i}}", "length", "mean", 20.5, "max", 30));
    is_verdict(json_deep_copy(repeats), "valid", "[]", "");
    set(repeats, 0, "members.0", "loading", json_pack("{s:{s:f, s:i}}", "length", "mean", 30.0, "max", 30));
    is_verdict(repeats, "suspect", "[\"memory\"]", "memory differs");
}

static void what_grows_in_steps_without_a_warm_up_is_no_leak(void **state)
{
    json_t *repeats = clean();
    set(repeats, 4, "members.1.memory", "grown_bytes", json_integer(32 << 20));
    json_object_set_new(json_array_get(repeats, 0), "warmup_step_ms", json_pack("[f]", 9.5));
    is_verdict(json_deep_copy(repeats), "suspect", "[\"grown\"]", "a leak");
    json_object_set_new(json_array_get(repeats, 0), "warmup_step_ms", json_array());
    is_verdict(repeats, "valid", "[]", "");
}

/* What could not be checked is not valid; a frequency that the machine does not tell is. */
static void what_was_not_checked_is_a_verdict(void **state)
{
    json_t *repeats = clean();
    set(repeats, 2, "system", "others_pct", json_null());
    is_verdict(json_deep_copy(repeats), "valid", "[]", ""); /* the threads' waiting says it */
    set(repeats, 4, "system", "waited_pct", json_null());
    set(repeats, 4, "system", "reason", json_string("no ticks"));
    is_verdict(json_deep_copy(repeats), "unchecked", "[\"unchecked\"]", "took the cores (no ticks)");
    set(repeats, 1, "", "injected", json_null());
    set(repeats, 0, "", "injected", json_string("delay=1:20"));
    is_verdict(repeats, "suspect", "[\"injected\"]", "delay");
    repeats = clean();
    set(repeats, 0, "system", "steal_pct", json_null());
    is_verdict(repeats, "unchecked", "[\"unchecked\"]", "the hypervisor gave");
    repeats = clean();
    for (size_t k = 0; k < REPEATS; k++) {
        json_object_del(el_json_at(json_array_get(repeats, k), "system"), "frequency_change_pct");
        for (size_t m = 0; m < 2; m++) {
            json_t *member = json_array_get(el_json_at(json_array_get(repeats, k), "members"), m);
            json_object_del(member, "cores");
            json_object_set_new(member, "memory_limit_bytes", json_null());
        }
    }
    is_verdict(repeats, "valid", "[]", "");
}

/* Losses of others, of idle interfaces and of single packets are no doubt: the job did not go there, or is not slower
 * by it. */
static void losses_that_are_not_the_jobs_are_no_doubt(void **state)
{
    static const char *const interfaces[][3] = {
        /* on one host by shm, tcp; and apart */
        {"h", "shm", "{'name': 'eth0', 'rx_packets': 1000, 'tx_packets': 0, 'rx_dropped': 500}"},
        {"h", "shm", "{'name': 'lo', 'rx_packets': 1000, 'tx_packets': 0, 'rx_dropped': 500}"},
        {"h", "tcp", "{'name': 'eth0', 'rx_packets': 1000, 'tx_packets': 0, 'rx_dropped': 500}"},
        {"b", "tcp", "{'name': 'lo', 'rx_packets': 1000, 'tx_packets': 0, 'rx_dropped': 500}"},
        {"b", "tcp", "{'name': 'eth1', 'rx_packets': 90, 'tx_packets': 9, 'rx_dropped': 50}"}, /* under a tenth */
        {"b", "tcp", "{'name': 'eth0', 'rx_packets': 1000, 'tx_packets': 0, 'rx_dropped': 9}"},
        {"b", "tcp", "{'name': 'eth0', 'rx_packets': 200000, 'tx_packets': 0, 'rx_dropped': 20}"},
        {"b", "tcp", "{'name': 'eth0', 'rx_packets': null, 'tx_packets': null, 'rx_dropped': 20}"},
    };
    for (size_t i = 0; i < sizeof interfaces / sizeof interfaces[0]; i++) {
        json_t *repeats = clean(), *repeat = json_array_get(repeats, 3);
        char text[256];
        snprintf(text, sizeof text, "[%s, {'name': 'eth9', 'rx_packets': 900, 'tx_packets': 0}]", interfaces[i][2]);
        for (char *at = text; *at; at++)
            if (*at == '\'') *at = '"';
        json_t *rows = json_loads(text, 0, NULL);
        assert_non_null(rows);
        EL_EACH(row, rows) el_json_put_text(row, "host", "h");
        set(repeats, 3, "system", "interfaces", rows);
        set(repeats, 3, "members.1", "host", json_string(interfaces[i][0]));
        el_json_put_text(repeat, "communicator", interfaces[i][1]);
        is_verdict(repeats, "valid", "[]", "");
    }
}

/* Five windows of 0.2 s are one of 1 s: a tick in one of them is no finding, and a share in all of them is. */
static void short_windows_are_taken_together(void **state)
{
    json_t *repeats = clean();
    set_all(repeats, "window_s", 0.2);
    set_all(repeats, "waited_pct", NAN);
    set_all(repeats, "steal_pct", 0);
    set(repeats, 1, "system", "steal_pct", json_real(5));
    is_verdict(json_deep_copy(repeats), "valid", "[]", "");
    set_all(repeats, "others_pct", 6);
    is_verdict(json_deep_copy(repeats), "suspect", "[\"others\"]", "up to 6 %");
    set_all(repeats, "others_pct", 4);
    set_all(repeats, "window_s", 0.05); /* 0.25 s together */
    is_verdict(repeats, "unchecked", "[\"unchecked\",\"unchecked\"]", "not checked: whether other processes");
}

/* Ranks that share a core wait for each other. */
static void waiting_for_ones_own_ranks_is_not_others(void **state)
{
    json_t *repeats = clean();
    set_all(repeats, "waited_pct", 50);
    for (size_t k = 0; k < REPEATS; k++)
        json_object_set_new(el_json_at(json_array_get(repeats, k), "members.1.cores.0"), "cpu", json_integer(0));
    is_verdict(repeats, "suspect", "[\"shared_core\"]", "devices share a core");
}

/* A simulated trial is never valid; it is doubtful where more than that it is simulated was found. */
static void simulated_is_a_verdict(void **state)
{
    char line[512];
    json_t *repeats = clean(), *trials = json_array(), *run = json_pack("{s:o}", "trials", trials);
    for (size_t k = REPEATS - 1; k > 0; k--) json_array_remove(repeats, k);
    json_array_clear(el_json_at(repeats, "0.step_ms"));
    set(repeats, 0, "", "simulated", json_true());
    is_verdict(json_deep_copy(repeats), "simulated", "[\"simulated\"]", "all times are virtual");
    json_array_append_new(trials, judge(json_deep_copy(repeats)));
    assert_int_equal(el_verdict_doubtful(run, line, sizeof line), 0);
    json_t *machine = json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", "X", "f32_tflop_per_s", 2.0, "f64_tflop_per_s",
                                1.0, "memory_gb_per_s", 500.0, "link_gb_per_s", 20.0);
    set(repeats, 0, "", "prediction", json_pack("{s:o}", "machine", machine));
    is_verdict(json_deep_copy(repeats), "simulated", "[\"simulated\"]",
               "by the rates of machine X (f32 2.00 TFLOP/s, f64 1.00, memory 500 GB/s, links 20.0 GB/s)");
    set(repeats, 0, "", "injected", json_string("delay=1:20"));
    json_array_append_new(trials, judge(json_deep_copy(repeats)));
    assert_int_equal(el_verdict_doubtful(run, line, sizeof line), 1);
    assert_non_null(strstr(line, "1 of 2 trials is simulated"));
    is_verdict(repeats, "simulated", "[\"injected\",\"simulated\"]", "--inject");
    json_decref(run);
}

static void the_line_names_number_and_commonest_reason(void **state)
{
    char line[512];
    static const size_t shown[] = {7, 11, 7}; /* others, frequency, others */
    json_t *trials = json_array(), *run = json_pack("{s:o}", "trials", trials);
    json_array_append_new(trials, judge(clean()));
    assert_int_equal(el_verdict_doubtful(run, line, sizeof line), 0);
    assert_string_equal(line, "");
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        json_t *repeats = clean();
        plant(shown[i], repeats);
        json_array_append_new(trials, judge(repeats));
    }
    assert_int_equal(el_verdict_doubtful(run, line, sizeof line), 3);
    assert_string_equal(line, "3 of 4 trials are suspect; the commonest reason: other processes took up to 23 % of the "
                              "cores: stop them or measure again");
    json_t *repeats = clean();
    set(repeats, 0, "system", "steal_pct", json_null());
    json_array_append_new(trials, judge(repeats));
    assert_int_equal(el_verdict_doubtful(run, line, sizeof line), 4);
    assert_non_null(strstr(line, "4 of 5 trials are suspect or unchecked; the commonest reason: other"));
    /* A file that is not ours may have anything in its place. */
    json_array_append_new(trials, json_pack("{s:[i, n, {}], s:[s]}", "warning_rules", 1, "warnings", "?"));
    assert_int_equal(el_verdict_doubtful(run, line, sizeof line), 5);
    json_decref(run);
}

static void the_page_has_the_rules(void **state)
{
    char *page = read_whole("docs/metrics.md", NULL), row[512], limit[32];
    for (const struct el_verdict_rule *rule = el_verdict_rules(); rule->name != NULL; rule++) {
        snprintf(limit, sizeof limit, isnan(rule->limit) ? "-" : "%g%s", rule->limit, rule->unit);
        snprintf(row, sizeof row, "\n| `%s` | %s | ", rule->name, limit);
        if (strstr(page, row) == NULL) fail_msg("docs/metrics.md does not have this row as it is in verdict.c:%s", row);
    }
    free(page);
}

RUN_TESTS(NULL, NULL, a_clean_trial_is_valid, each_defect_is_found_alone, every_rule_has_its_defect,
          batches_of_unlike_length_may_peak_apart, what_grows_in_steps_without_a_warm_up_is_no_leak,
          what_was_not_checked_is_a_verdict, few_repeats_are_no_ground_for_suspicion,
          sums_that_round_otherwise_are_no_ground_for_suspicion, losses_that_are_not_the_jobs_are_no_doubt,
          short_windows_are_taken_together, waiting_for_ones_own_ranks_is_not_others, simulated_is_a_verdict,
          the_line_names_number_and_commonest_reason, the_page_has_the_rules)
