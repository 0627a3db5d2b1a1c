/* The system's counters: two recorded readings with known answers, this machine's own, and what processes of one or
 * several hosts come to together. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "profiles/core_rate.h"
#include "profiles/system.h"
#include "runtime/base/clock.h"
#include "tests/test.h"
#include "tests/unit/record_checks.h"

static const char BEGIN[] = "tests/unit/data/system/begin", END[] = "tests/unit/data/system/end";
static const int DEVICES[] = {0, 2};

struct readings {
    struct el_system_reading begin, end;
    struct el_system_figures figures;
};

/* The recorded ones, as if `window_s` lay between them. */
static struct readings *read_recorded(double window_s)
{
    struct readings *r = calloc(1, sizeof *r);
    assert_non_null(r);
    el_system_read(BEGIN, DEVICES, 2, &r->begin);
    el_system_read(END, DEVICES, 2, &r->end);
    r->end.clock_ns = r->begin.clock_ns + (int64_t)(window_s * 1e9);
    r->end.own_cpu_s = r->begin.own_cpu_s + 1.25;
    el_system_compare(&r->begin, &r->end, &r->figures);
    return r;
}

static void is_near(double got, double wanted)
{
    if (!(fabs(got - wanted) < 1e-9 * fmax(1, fabs(wanted)))) fail_msg("got %.12g, wanted %.12g", got, wanted);
}

static void recorded_readings(void **state)
{
    struct readings *r = read_recorded(2.0);
    const struct el_system_figures *f = &r->figures;
    is_near(f->window_s, 2);
    is_near(f->own_cpu_s, 1.25);
    is_near(f->busy_pct[0], 75); /* user, nice, system, irq and softirq of 200 ticks */
    is_near(f->busy_pct[1], 0);
    is_near(f->busy_pct[2], 30); /* its iowait went back: that is nothing */
    is_near(f->steal_pct[2], 10);
    is_near(f->steal_pct[0], 0);
    assert_true(isnan(f->busy_pct[3]) && isnan(f->busy_pct[4])); /* a line cut off; no such CPU */
    is_near(el_system_busy_pct(f, DEVICES, 2), 52.5);
    assert_true(isnan(el_system_busy_pct(f, (const int[]){0, 4}, 2)) && isnan(el_system_busy_pct(f, DEVICES, 0)));
    is_near(f->frequency_begin.min_hz, 2.4e9);
    is_near(f->frequency_begin.max_hz, 3.0e9);
    is_near(f->frequency_end.max_hz, 2.5e9);
    assert_int_equal(f->throttled, 4); /* 2 of the core, 1 of the package, which both CPUs count */
    assert_string_equal(f->reason, "");
    free(r);
}

/* Of the CPUs' ticks too little by itself; in nanoseconds, how long threads waited. In 0.3 s on CPU 0 a thread waited
 * for 0.2 s, of which one of its own process ran 0.05: half the window is others'. On CPU 2 0.06 s, all of it others'.
 */
static void a_short_window_says_how_long_threads_waited(void **state)
{
    struct readings *r = read_recorded(0.3);
    assert_true(isnan(el_system_busy_pct(&r->figures, DEVICES, 2)));
    assert_int_equal(r->begin.n_threads, 3);
    assert_int_equal(r->end.n_threads, 4);
    is_near(r->figures.waited_pct, 50);
    is_near(el_system_ran_pct(&r->figures, DEVICES, 2), 100 * (0.15 + 0.2) / 2 / 0.3); /* CPU 0 and 2 */
    for (int i = 0; i < 4; i++)
        if (r->end.threads[i].cpu == 0) r->end.threads[i].waited_ns = 0;
    el_system_compare(&r->begin, &r->end, &r->figures);
    is_near(r->figures.waited_pct, 20);
    r->end.n_threads = -1;
    el_system_compare(&r->begin, &r->end, &r->figures);
    assert_true(isnan(r->figures.waited_pct) && isnan(el_system_ran_pct(&r->figures, DEVICES, 2)));
    assert_string_equal(r->figures.reason, "window of 0.3 s: under 0.5 s the system's 10 ms ticks say too little");
    is_near(r->figures.frequency_end.min_hz, 2.0e9);
    free(r);
}

static void what_is_not_there_is_not_known(void **state)
{
    struct readings *r = calloc(1, sizeof *r);
    assert_non_null(r);
    el_system_read("/nonexistent", DEVICES, 2, &r->begin);
    r->end = r->begin;
    r->end.clock_ns += 2000000000;
    el_system_compare(&r->begin, &r->end, &r->figures);
    assert_true(isnan(r->figures.busy_pct[0]) && isnan(r->figures.frequency_begin.min_hz));
    assert_int_equal(r->figures.throttled, -1);
    assert_true(isnan(r->figures.waited_pct));
    assert_true(r->figures.reason[0] != '\0');
    free(r);
}

static void cores_have_sizes(void **state)
{
    json_t *cores = el_record_cores(BEGIN, (const int[]){0, 2, 9}, 3);
    FIGURES(cores, {"0.capacity", 1024}, {"1.capacity", 512}, {"1.max_mhz", 1800}, {"2.capacity", NAN},
            {"2.max_mhz", NAN});
    json_decref(cores);
}

/* Half a second of this thread's work is in the process's own time, and no CPU is busy beyond its window. */
static void this_machine(void **state)
{
    struct readings *r = calloc(1, sizeof *r);
    assert_non_null(r);
    volatile double sink = 0;
    el_system_read("", DEVICES, 1, &r->begin);
    while (el_clock_ns() < r->begin.clock_ns + 600000000) sink += sqrt(sink + 1);
    el_system_read("", DEVICES, 1, &r->end);
    el_system_compare(&r->begin, &r->end, &r->figures);
    assert_true(isnan(r->figures.waited_pct) || (r->figures.waited_pct >= 0 && r->figures.waited_pct <= 100));
    assert_true(r->figures.own_cpu_s > 0.01 && r->figures.own_cpu_s <= r->figures.window_s + 0.1);
    double sum = 0;
    for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++) sum += isnan(r->figures.busy_pct[c]) ? 0 : r->figures.busy_pct[c];
    if (*r->figures.reason == '\0') assert_true(sum > 1);
    free(r);
}

/* A process that used `own` CPUs of its host, where two CPUs were busy and stolen as given. */
static json_t *part_of(const char *boot, int device_cpu, double own, double busy0, double busy1, double steal)
{
    return json_pack("{s:f, s:f, s:f, s:[{s:i, s:f, s:f}, {s:i, s:f, s:f}], s:[i], s:{s:f}, s:{s:f}, s:n, s:n, s:{s:s, "
                     "s:s, s:s, s:s, s:i, s:i}}",
                     "window_s", 2.0, "own_cpu_s", 2 * own, "waited_pct", steal, "cpus", "cpu", 0, "busy_pct", busy0,
                     "steal_pct", steal, "cpu", 1, "busy_pct", busy1, "steal_pct", steal, "device_cpus", device_cpu,
                     "freq_mhz_begin", "max", 3000.0, "freq_mhz_end", "max", 2400.0, "throttled", "reason", "machine",
                     "boot_id", boot, "kernel", "k", "machine", "x", "cpu_model", "A", "cores_online", 2,
                     "memory_bytes", 1000);
}

static json_t *job_of(json_t *first, json_t *second)
{
    json_t *parts = json_array();
    json_array_append_new(parts, first);
    json_array_append_new(parts, second);
    return el_record_system_of_job(parts);
}

static void processes_of_one_host(void **state)
{
    json_t *s = job_of(part_of("a", 0, 0.7, 90, 80, 3), part_of("a", 1, 0.6, 90, 80, 3));
    FIGURES(s, {"others_pct", 20}, /* (0.9 + 0.8 - 0.7 - 0.6) of 2 CPUs */
            {"others_on_devices_pct", 20}, {"steal_pct", 3}, {"frequency_change_pct", -20}, {"throttled", NAN});
    assert_int_equal(json_array_size(json_object_get(s, "machine_differences")), 0);
    assert_int_equal(json_array_size(json_object_get(s, "processes")), 2);
    json_decref(s);
}

static void processes_of_two_hosts(void **state)
{
    json_t *slow = part_of("b", 1, 0.5, 10, 90, 0);
    json_object_set_new(json_object_get(slow, "machine"), "cpu_model", json_string("B"));
    json_object_set_new(json_object_get(slow, "machine"), "memory_bytes", json_integer(1040)); /* alike */
    json_t *s = job_of(part_of("a", 0, 0.7, 75, 5, 1), slow);
    FIGURES(s, {"others_pct", 25}, /* of b: 1.0 - 0.5 of 2 CPUs; of a: 5 */
            {"others_on_devices_pct", 40}, {"steal_pct", 1}, {"waited_pct", 1}, {"window_s", 2});
    assert_string_equal(el_json_text(s, "machine_differences.0", ""), "cpu_model: A and B");
    assert_int_equal(json_array_size(json_object_get(s, "machine_differences")), 1);
    json_decref(s);
}

static void unknown_figures_stay_null(void **state)
{
    struct el_system_figures *f = calloc(1, sizeof *f);
    assert_non_null(f);
    el_system_unknown("simulated", f);
    json_t *parts = json_array();
    json_array_append_new(parts, el_record_system(f, DEVICES, 2, DEVICES, 0));
    json_t *s = el_record_system_of_job(parts);
    FIGURES(s, {"others_pct", NAN}, {"steal_pct", NAN});
    assert_string_equal(el_json_text(s, "reason", ""), "simulated");
    json_decref(s);
    free(f);
}

/* The bounds are wide: other programs compute on them too. The last of all CPU numbers is not there. */
static void cores_are_measured_together(void **state)
{
    int cpus[EL_SYSTEM_CPUS_MAX], n = el_cores_allowed(cpus);
    double pct = el_core_rate_pct(cpus, n);
    assert_true(n < 2 ? isnan(pct) : pct > 10 && pct < 400);
    assert_true(isnan(el_core_rate_pct(cpus, 1)));
    assert_true(isnan(el_core_rate_pct((const int[]){cpus[0], EL_SYSTEM_CPUS_MAX - 1}, 2)));
}

RUN_TESTS(NULL, NULL, recorded_readings, a_short_window_says_how_long_threads_waited, cores_have_sizes,
          what_is_not_there_is_not_known, this_machine, processes_of_one_host, processes_of_two_hosts,
          unknown_figures_stay_null, cores_are_measured_together)
