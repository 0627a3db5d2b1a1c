/* Records: a member without spans, on a GPU, on a card that others share; and what a run learns from its repeats. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/metrics.h"
#include "bench/record/record.h"
#include "tests/test.h"
#include "tests/unit/record_checks.h"

/* --no-record: nulls, no noughts. */
static void test_without_spans(void **state)
{
    struct el_ledger ledger = {.peak_bytes = 5};
    json_t *m = el_record_member(&(struct el_member_account){.device = "cpu:0", .host = "h", .ledger = &ledger});
    near(m, "memory.peak_bytes", 5);
    assert_true(is_null(m, "busy_ms.forward") && is_null(m, "step_ms") && is_null(m, "comm.bytes"));
    assert_true(is_null(m, "sent_bytes") && is_null(m, "utilization.source"));
    json_decref(m);
}

static double metric_of(const json_t *member, const char *name)
{
    const struct el_metric *m = el_metric_list();
    while (m->name && strcmp(m->name, name) != 0) m++;
    assert_non_null(m->name);
    return el_metric_value(m, NULL, member);
}

/* A GPU's utilization is the driver's, and what the driver does not tell is null. */
static void test_gpu(void **state)
{
    struct el_ledger ledger = {.peak_bytes = 5};
    struct el_nvml_figures gpu;
    el_nvml_unknown("", &gpu);
    gpu.utilization_pct = 91;
    gpu.energy_j = 2.5;
    gpu.clock_min_hz = 1.2e9;
    gpu.clock_mean_hz = 1.5e9;
    gpu.used_bytes = 7;
    gpu.throttled_pct[0] = 12;
    gpu.n_processes = 1;
    struct el_member_account account = {
        .device = "cuda:0", .host = "h", .ledger = &ledger, .gpu = &gpu, .module_loading = "EAGER"};
    json_t *m = el_record_member(&account);
    FIGURES(m, {"utilization.system_pct", 91}, {"gpu.energy_mj", 2500}, {"gpu.clock_mhz.min", 1200},
            {"gpu.throttled_pct.power cap", 12});
    assert_true(metric_of(m, "device_gpu_clock_mean_mhz") == 1500);
    assert_true(metric_of(m, "device_gpu_used_bytes") == 7);
    near(m, "gpu.processes", 1);
    assert_string_equal(el_json_text(m, "memory.module_loading", ""), "EAGER");
    /* The CSV's columns are those figures, and on CPU empty. */
    assert_true(metric_of(m, "device_gpu_energy_mj") == 2500);
    assert_true(metric_of(m, "device_gpu_throttled_power_cap_pct") == 12);
    assert_true(isnan(metric_of(m, "device_gpu_power_w")));
    assert_true(isnan(metric_of(m, "device_gpu_throttled_heat_driver_pct")));
    assert_true(is_null(m, "gpu.power_w") && is_null(m, "gpu.process_bytes") && is_null(m, "gpu.reason"));
    json_decref(m);
    el_nvml_unknown("no driver", &gpu);
    m = el_record_member(&account);
    assert_true(is_null(m, "utilization.system_pct"));
    assert_string_equal(el_json_text(m, "utilization.system_reason", ""), "no driver");
    assert_string_equal(el_json_text(m, "gpu.reason", ""), "no driver");
    json_decref(m);
}

static json_t *on_card(const char *uuid, int rank)
{
    return json_pack("{s:o, s:i, s:{s:i, s:i, s:i, s:n, s:i, s:{s:i}}}", "uuid", el_json_string(uuid), "rank", rank,
                     "memory", "driver_bytes", 9, "unattributed_bytes", 3, "grown_bytes", 1, "driver_reason",
                     "peak_bytes", 5, "library_bytes", "context", 4);
}

/* Two members of one process on a card, two processes on another, and one with a card and one with a CPU to itself. */
static void test_shared_cards(void **state)
{
    json_t *members = json_pack("[o, o, o, o, o, o]", on_card("GPU-a", 0), on_card("GPU-a", 0), on_card("GPU-b", 1),
                                on_card("GPU-b", 2), on_card("GPU-c", 3), on_card(NULL, 4));
    json_t *processes = json_pack("[{s:[i, i, i, i, i, i]}]", "per_device_bytes", 9, 9, 9, 9, 9, 9);
    el_record_shared_cards(members, processes);
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        bool shared = i < 4, told = i != 2 && i != 3;
        assert_int_equal(is_null(member, "memory.driver_bytes"), shared);
        assert_int_equal(is_null(member, "memory.grown_bytes"), shared);
        assert_int_equal(is_null(member, "memory.unattributed_bytes"), shared);
        assert_int_equal(strstr(el_json_text(member, "memory.driver_reason", ""), "on this card") != NULL, shared);
        assert_int_equal(json_object_size(el_json_at(member, "memory.library_bytes")), told);
        near(member, "memory.peak_bytes", 5);
        assert_int_equal(json_is_null(json_array_get(el_json_at(processes, "0.per_device_bytes"), i)), shared);
    }
    json_decref(members);
    json_decref(processes);
}

/* What only a repeat's process could know stands in the run's environment, once one has told it. */
static void test_learn(void **state)
{
    json_t *environment = json_object();
    json_t *repeat = json_pack("{s:{s:s, s:n, s:{s:s}, s:s}}", "environment", "gpu_driver", "580.1, CUDA 13.0",
                               "gpu_libraries", "nccl", "version", "2.28.9", "hostname", "another");
    el_record_learn(environment, NULL);
    assert_true(is_null(environment, "gpu_driver") && is_null(environment, "nccl"));
    el_record_learn(environment, repeat);
    el_record_learn(environment, NULL);
    assert_string_equal(el_json_text(environment, "gpu_driver", ""), "580.1, CUDA 13.0");
    assert_string_equal(el_json_text(environment, "nccl.version", ""), "2.28.9");
    assert_true(is_null(environment, "gpu_libraries") && json_object_get(environment, "hostname") == NULL);
    json_decref(repeat);
    json_decref(environment);
}

RUN_TESTS(NULL, NULL, test_without_spans, test_gpu, test_learn, test_shared_cards)
