/* NVML's table and what is made of it, on a library that is not NVML: functions that are missing or fail, devices that
 * are not found or cannot tell, and figures of windows whose truth is known. */
#include "tests/test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "profiles/nvml.h"
#include "runtime/base/clock.h"

static struct {
    const char *missing[4];
    int utilization_result, other_result;
    _Atomic int n_looks; /* looks: clocks that were asked for */
    _Atomic unsigned long long millijoule;
    _Atomic unsigned clock_mhz;
    _Atomic unsigned long long bits;
    unsigned own_pid, replays;
    unsigned long long link_errors; /* each of two links' of a counter each */
    bool many;
    struct el_nvml_memory_v2 memory;
} fake;

static int device_a, device_b;

static int fake_handle(const char *uuid, void **device_p)
{
    if (strcmp(uuid, "GPU-a") != 0 && strcmp(uuid, "GPU-b") != 0) return 6;
    *device_p = strcmp(uuid, "GPU-a") == 0 ? &device_a : &device_b;
    return 0;
}

static const char *fake_text(int result)
{
    return result == 6 ? "Not Found" : "Unknown Error";
}

static int fake_utilization(void *device, struct el_nvml_utilization *utilization_p)
{
    *utilization_p = (struct el_nvml_utilization){.gpu_pct = device == &device_a ? 75 : 10};
    return fake.utilization_result;
}

/* A function of a device's that tells one thing. */
#define FAKE(name, type, told)                                                                                         \
    static int fake_##name(void *device, type *value_p)                                                                \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        *value_p = (told);                                                                                             \
        return fake.other_result;                                                                                      \
    }
FAKE(memory, struct el_nvml_memory,
     ((struct el_nvml_memory){.total_bytes = 1000, .used_bytes = 600, .free_bytes = 400}))
FAKE(memory_v2, struct el_nvml_memory_v2, fake.memory)
FAKE(power, unsigned, 250500)
FAKE(energy, unsigned long long, fake.millijoule)
FAKE(throttle, unsigned long long, fake.bits)

static int fake_clock(void *device, int type, unsigned *mhz_p)
{
    (void)device;
    fake.n_looks++;
    *mhz_p = type == EL_NVML_CLOCK_SM ? fake.clock_mhz : 1;
    return fake.other_result;
}

static int fake_processes(void *device, unsigned *n_p, struct el_nvml_process *list)
{
    (void)device;
    if (fake.many) {
        *n_p = 1000;
        return EL_NVML_TOO_SMALL;
    }
    assert_true(*n_p >= 2);
    list[0] = (struct el_nvml_process){.pid = 1, .used_bytes = 111};
    list[1] = (struct el_nvml_process){.pid = fake.own_pid, .used_bytes = 222};
    *n_p = 2;
    return fake.other_result;
}

static int fake_link(void *device, unsigned link, unsigned *active_p)
{
    *active_p = link != 1;
    return device == &device_b ? EL_NVML_NOT_SUPPORTED : link < 3 ? 0 : 2;
}

static int fake_link_errors(void *device, unsigned link, int counter, unsigned long long *count_p)
{
    (void)device;
    *count_p = fake.link_errors + link;
    return counter < 3 ? 0 : 3;
}

FAKE(replays, unsigned, fake.replays)

#define SYMBOL(name_, function_)                                                                                       \
    {                                                                                                                  \
        .name = name_, .function = (void (*)(void))function_                                                           \
    }
static const struct {
    const char *name;
    void (*function)(void);
} symbols[] = {
    SYMBOL("nvmlDeviceGetHandleByUUID", fake_handle),
    SYMBOL("nvmlErrorString", fake_text),
    SYMBOL("nvmlDeviceGetUtilizationRates", fake_utilization),
    SYMBOL("nvmlDeviceGetMemoryInfo", fake_memory),
    SYMBOL("nvmlDeviceGetMemoryInfo_v2", fake_memory_v2),
    SYMBOL("nvmlDeviceGetClockInfo", fake_clock),
    SYMBOL("nvmlDeviceGetPowerUsage", fake_power),
    SYMBOL("nvmlDeviceGetTotalEnergyConsumption", fake_energy),
    SYMBOL("nvmlDeviceGetCurrentClocksThrottleReasons", fake_throttle), /* an older driver's name */
    SYMBOL("nvmlDeviceGetComputeRunningProcesses_v3", fake_processes),
    SYMBOL("nvmlDeviceGetPcieReplayCounter", fake_replays),
    SYMBOL("nvmlDeviceGetNvLinkState", fake_link),
    SYMBOL("nvmlDeviceGetNvLinkErrorCounter", fake_link_errors),
};

static void *find(void *context, const char *name)
{
    void *symbol = NULL;
    (void)context;
    for (size_t i = 0; i < sizeof fake.missing / sizeof fake.missing[0]; i++)
        if (fake.missing[i] && strcmp(fake.missing[i], name) == 0) return NULL;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (strcmp(symbols[i].name, name) == 0) memcpy(&symbol, &symbols[i].function, sizeof symbol);
    return symbol;
}

static void reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.clock_mhz = 1500;
    fake.own_pid = (unsigned)getpid();
    fake.memory = (struct el_nvml_memory_v2){.total_bytes = 1000, .free_bytes = 400, .used_bytes = 600};
}

/* Ten times as fast as the machine's: figures need seconds. */
static int64_t fast_ns(void)
{
    return 10 * el_clock_ns();
}

/* One window of one device; a second and more by the fast clock, for only a short one must not become longer. */
static struct el_nvml_figures measure(const char *uuid, int milliseconds)
{
    struct el_nvml_api api;
    struct el_nvml *nvml;
    assert_int_equal(el_nvml_bind(find, NULL, &api), EL_OK);
    bool fast = milliseconds >= 1000;
    api.now_ns = fast ? fast_ns : NULL;
    assert_int_equal(el_nvml_open(&api, &uuid, 1, &nvml), EL_OK);
    el_nvml_begin(nvml, 0);
    usleep((useconds_t)milliseconds * (fast ? 50 : 500));
    fake.millijoule += 4000;
    fake.link_errors += 5;
    fake.replays += 7;
    usleep((useconds_t)milliseconds * (fast ? 50 : 500));
    el_nvml_end(nvml, 0);
    struct el_nvml_figures figures = *el_nvml_figures(nvml, 0);
    el_nvml_close(nvml);
    return figures;
}

static void a_window_with_all_functions(void **state)
{
    reset();
    fake.bits = 0x04 | 0x01; /* the power cap, and idling, which counts for nothing */
    struct el_nvml_figures f = measure("GPU-a", 2200);
    assert_string_equal(f.reason, "");
    assert_true(f.window_s >= 2.2);
    assert_true(f.n_looks > 3);
    assert_true(f.utilization_pct == 75);
    assert_string_equal(f.utilization_reason, "");
    assert_true(f.clock_min_hz == 1.5e9 && f.clock_max_hz == 1.5e9 && f.clock_mean_hz == 1.5e9);
    assert_true(fabs(f.power_w - 250.5) < 1e-9);
    assert_true(fabs(f.energy_j - 4) < 1e-9);
    assert_int_equal(f.used_bytes, 600);
    assert_int_equal(f.total_bytes, 1000);
    assert_int_equal(f.process_bytes, 222);
    assert_int_equal(f.n_processes, 2);
    assert_string_equal(el_nvml_throttle_name(0), "power cap");
    assert_true(f.throttled_pct[0] == 100 && f.throttled_pct[1] == 0 && f.throttled_pct[4] == 0);
}

static void a_short_window(void **state)
{
    reset();
    struct el_nvml_figures f = measure("GPU-a", 100);
    assert_true(isnan(f.utilization_pct) && isnan(f.energy_j));
    assert_non_null(strstr(f.utilization_reason, "under 2 s"));
    assert_true(f.clock_mean_hz == 1.5e9);
    assert_true(isnan(f.power_w)); /* the driver's mean is of the second before, which is not of the window */
}

static void looks_outside_a_window_do_not_count(void **state)
{
    struct el_nvml_api api;
    struct el_nvml *nvml;
    const char *uuids[] = {"GPU-a", "GPU-b"};
    reset();
    assert_int_equal(el_nvml_bind(find, NULL, &api), EL_OK);
    assert_int_equal(el_nvml_open(&api, uuids, 2, &nvml), EL_OK);
    usleep(150000);
    assert_int_equal(fake.n_looks, 0);
    el_nvml_begin(nvml, 1);
    usleep(20000);
    el_nvml_end(nvml, 1);
    int n_looks = fake.n_looks;
    fake.clock_mhz = 9999;
    usleep(150000);
    assert_int_equal(fake.n_looks, n_looks);
    assert_true(el_nvml_figures(nvml, 1)->clock_max_hz == 1.5e9);
    assert_true(isnan(el_nvml_figures(nvml, 0)->clock_max_hz));
    assert_int_equal(el_nvml_figures(nvml, 0)->n_looks, 0);
    el_nvml_begin(nvml, 1); /* a second window forgets the first */
    el_nvml_end(nvml, 1);
    assert_true(el_nvml_figures(nvml, 1)->clock_min_hz == 9999e6);
    el_nvml_close(nvml);
}

static void an_optional_function_costs_its_figure(void **state)
{
    reset();
    fake.missing[0] = "nvmlDeviceGetUtilizationRates";
    fake.missing[1] = "nvmlDeviceGetTotalEnergyConsumption";
    fake.missing[2] = "nvmlDeviceGetCurrentClocksThrottleReasons";
    fake.missing[3] = "nvmlErrorString";
    struct el_nvml_figures f = measure("GPU-b", 1100);
    assert_string_equal(f.reason, "");
    assert_true(isnan(f.utilization_pct) && isnan(f.energy_j) && isnan(f.throttled_pct[0]));
    assert_string_equal(f.utilization_reason, "this driver's NVML does not tell");
    assert_true(f.power_w > 250 && f.used_bytes == 600);
}

static void a_required_function_costs_all(void **state)
{
    struct el_nvml_api api;
    reset();
    fake.missing[0] = "nvmlDeviceGetHandleByUUID";
    assert_int_equal(el_nvml_bind(find, NULL, &api), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "nvmlDeviceGetHandleByUUID"));
}

static void a_device_that_is_not_found(void **state)
{
    reset();
    struct el_nvml_figures f = measure("GPU-z", 10);
    assert_string_equal(f.reason, "NVML does not find GPU-z: Not Found");
    assert_true(isnan(f.clock_mean_hz) && isnan(f.window_s));
    assert_int_equal(f.used_bytes, -1);
    assert_int_equal(fake.n_looks, 0);
    f = measure("", 10);
    assert_non_null(strstr(f.reason, "no UUID"));
}

static void calls_that_fail(void **state)
{
    reset();
    fake.other_result = 999;
    struct el_nvml_figures f = measure("GPU-a", 1100);
    assert_true(isnan(f.clock_mean_hz) && isnan(f.power_w) && isnan(f.energy_j) && isnan(f.throttled_pct[0]));
    assert_int_equal(f.used_bytes, -1);
    assert_int_equal(f.process_bytes, -1);
    assert_int_equal(f.n_processes, -1);
}

static void a_mig_instance(void **state)
{
    reset();
    fake.utilization_result = EL_NVML_NOT_SUPPORTED;
    struct el_nvml_figures f = measure("GPU-a", 2100);
    assert_true(isnan(f.utilization_pct));
    assert_non_null(strstr(f.utilization_reason, "MIG"));
    assert_int_equal(f.process_bytes, 222);
}

/* In a container the driver tells process numbers of the host: ours is not among them. */
static void processes_without_a_figure(void **state)
{
    reset();
    fake.own_pid = 2;
    struct el_nvml_figures f = measure("GPU-a", 10);
    assert_int_equal(f.process_bytes, -1);
    assert_int_equal(f.n_processes, 2);
    fake.many = true;
    f = measure("GPU-a", 10);
    assert_int_equal(f.n_processes, 1000);
    assert_int_equal(f.process_bytes, -1);
}

/* Whether a release counts what the driver reserved as used or not, we do not; an older driver does not tell it. */
static void reserved_memory_is_not_used(void **state)
{
    reset();
    fake.memory =
        (struct el_nvml_memory_v2){.total_bytes = 1000, .reserved_bytes = 70, .free_bytes = 400, .used_bytes = 530};
    assert_int_equal(measure("GPU-a", 10).used_bytes, 530);
    fake.memory.used_bytes = 600;
    assert_int_equal(measure("GPU-a", 10).used_bytes, 530);
    fake.missing[0] = "nvmlDeviceGetMemoryInfo_v2";
    assert_int_equal(measure("GPU-a", 10).used_bytes, 600);
}

static void the_library_itself(void **state)
{
    struct el_nvml_api api;
    if (el_nvml_load(&api) != EL_OK) assert_non_null(strstr(el_error_message(), "NVML"));
}

/* Two of its three links are up, and tell of three kinds of errors each. */
static void errors_of_links_are_those_of_the_window(void **state)
{
    reset();
    fake.link_errors = fake.replays = 1000;
    struct el_nvml_figures f = measure("GPU-a", 10);
    assert_int_equal(f.nvlink_errors, 2 * 3 * 5);
    assert_int_equal(f.pcie_replays, 7);
    f = measure("GPU-b", 10); /* without NVLinks */
    assert_int_equal(f.nvlink_errors, -1);
    fake.replays = UINT32_MAX; /* begins again */
    assert_int_equal(measure("GPU-b", 10).pcie_replays, -1);
    fake.missing[0] = "nvmlDeviceGetNvLinkState";
    fake.missing[1] = "nvmlDeviceGetPcieReplayCounter";
    f = measure("GPU-a", 10);
    assert_true(f.nvlink_errors == -1 && f.pcie_replays == -1);
}

RUN_TESTS(NULL, NULL, errors_of_links_are_those_of_the_window, a_window_with_all_functions, a_short_window,
          looks_outside_a_window_do_not_count, an_optional_function_costs_its_figure, a_required_function_costs_all,
          a_device_that_is_not_found, calls_that_fail, a_mig_instance, processes_without_a_figure,
          reserved_memory_is_not_used, the_library_itself)
