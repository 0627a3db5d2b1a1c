/* A run of ours as cells, against a store of one session: on the record of version 1 and on changed copies of it,
 * judged by the gate's own rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"
#include "bench/regress/store.h"
#include "tests/unit/record_v1.h"

static char base_dir[64], head_dir[64];

static void write_run(const json_t *run, const char *dir)
{
    char path[128];
    snprintf(path, sizeof path, "%s/results.json", dir);
    assert_int_equal(el_write_json(run, path), EL_OK);
}

static int setup(void **state)
{
    snprintf(base_dir, sizeof base_dir, "/tmp/evenload-runs-a-XXXXXX");
    snprintf(head_dir, sizeof head_dir, "/tmp/evenload-runs-b-XXXXXX");
    return !mkdtemp(base_dir) || !mkdtemp(head_dir);
}

static void empty_store(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -r %s && mkdir %s", base_dir, base_dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c,concurrency-mt-unsafe): a folder of this test */
}

static void remove_run(const char *dir)
{
    char path[128];
    snprintf(path, sizeof path, "%s/results.json", dir);
    unlink(path);
    rmdir(dir);
}

static int teardown(void **state)
{
    empty_store();
    remove_run(base_dir);
    remove_run(head_dir);
    return 0;
}

struct outcome {
    enum el_status status;
    struct el_regress_set set;
};

/* The record of version 1 without the trial that ran out of memory: a store holds only what finished. */
static json_t *finished_run(void)
{
    json_t *run = version_1();
    json_array_remove(json_object_get(run, "trials"), 3);
    return run;
}

/* The head, as a run of another time, against a store whose one session is the base. */
static void compare(const json_t *base, json_t *head, const char *metrics, struct outcome *o)
{
    memset(o, 0, sizeof *o);
    empty_store();
    write_run(base, head_dir);
    assert_int_equal(el_baseline_add(base_dir, head_dir, false, false), EL_OK);
    set(head, "environment.time_utc", json_string("2031-01-01T00:00:00Z"));
    write_run(head, head_dir);
    o->status = el_regress_dirs(base_dir, head_dir, metrics, NULL, &o->set);
    if (o->status == EL_OK) el_regress_judge(&o->set);
}

static const struct el_regress_cell *cell_of(const struct outcome *o, const char *name)
{
    for (size_t i = 0; i < o->set.n; i++)
        if (!strcmp(o->set.cells[i].name, name)) return &o->set.cells[i];
    static const struct el_regress_cell none;
    fail_msg("no cell '%s'", name);
    return &none;
}

static void a_run_and_itself(void **state)
{
    struct outcome o;
    json_t *run = finished_run(), *head = finished_run();
    compare(run, head, "", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_NO_BASELINE);
    const struct el_regress_cell *step = cell_of(&o, "ddp 2 devices textcnn batch 64 step_median_ms");
    assert_int_equal(step->kind, EL_CELL_HISTORY);
    assert_string_equal(step->unit, "ms");
    assert_non_null(strstr(step->reason, "1 session, and 8 are needed"));
    /* What is judged of a run is what its own record says: the geometric mean over launches. */
    double recorded = el_json_number(run, "trials.2.step_ms.median");
    assert_true(fabs(step->head[0] / recorded - 1) < 1e-9);
    const struct el_regress_cell *peak = cell_of(&o, "dp 2 devices textcnn batch 64 device_peak_bytes[1]");
    assert_int_equal(peak->kind, EL_CELL_EXACT);
    assert_int_equal(peak->verdict, EL_CELL_SAME);
    assert_true(peak->base[0] == 56905888 && peak->head[0] == 56905888);
    assert_true(cell_of(&o, "dp 2 devices textcnn batch 64 comm_bytes")->base[0] == 49928736);
    /* No tag that is never there is a cell. */
    for (size_t i = 0; i < o.set.n; i++) assert_true(o.set.cells[i].head[0] > 0);
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

static void a_list_of_metrics(void **state)
{
    struct outcome o;
    json_t *run = finished_run(), *head = finished_run();
    compare(run, head, "samples_per_s,device_peak_bytes", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(o.set.n, 3 + 1 + 2 + 2);
    assert_int_equal(cell_of(&o, "single 1 device textcnn batch 64 samples_per_s")->better, EL_BETTER_HIGHER);
    el_regress_free(&o.set);
    compare(run, head, "step_medium_ms", &o);
    assert_int_equal(o.status, EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "did you mean 'step_median_ms'?"));
    assert_int_equal(o.set.n, 0);
    json_decref(head);
    json_decref(run);
}

struct change {
    const char *path;
    double value;
    enum el_regress_exit outcome;
    enum el_cell_verdict verdict;
    const char *cell;
};

static void exact_figures_are_compared_exactly(void **state)
{
    static const struct change changes[] = {
        {"trials.1.per_device.1.memory.peak_bytes", 56905889, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "dp 2 devices textcnn batch 64 device_peak_bytes[1]"},
        {"trials.1.per_device.1.memory.peak_bytes", 56905887, EL_REGRESS_NONE, EL_CELL_IMPROVEMENT,
         "dp 2 devices textcnn batch 64 device_peak_bytes[1]"},
        {"trials.2.comm.bytes", 49923617, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "ddp 2 devices textcnn batch 64 comm_bytes"},
        /* From none to some. */
        {"trials.0.per_device.0.memory.peak_by_tag.bucket", 1, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "single 1 device textcnn batch 64 peak_bucket_bytes[0]"},
        /* Less work is another computation. */
        {"trials.0.flops_per_step", 1, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "single 1 device textcnn batch 64 flops_per_step"},
    };
    json_t *run = finished_run();
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct outcome o;
        json_t *head = json_deep_copy(run);
        char metric[64];
        snprintf(metric, sizeof metric, "%s", strrchr(changes[i].cell, ' ') + 1);
        metric[strcspn(metric, "[")] = 0;
        set(head, changes[i].path, json_real(changes[i].value));
        compare(run, head, metric, &o);
        assert_int_equal(o.status, EL_OK);
        assert_int_equal(cell_of(&o, changes[i].cell)->verdict, changes[i].verdict);
        assert_int_equal(el_regress_outcome(&o.set), changes[i].outcome);
        el_regress_free(&o.set);
        json_decref(head);
    }
    json_decref(run);
}

/* The run with its ddp trial a second time, in buckets of 1 MiB; and the trials without buckets under another size. */
static json_t *with_buckets(void)
{
    json_t *run = version_1(), *trials = json_object_get(run, "trials");
    json_array_insert_new(trials, 3, json_deep_copy(json_array_get(trials, 2)));
    set(run, "trials.3.config.bucket_cap_bytes", json_integer(1 << 20));
    set(run, "trials.1.config.bucket_cap_bytes", json_integer(1 << 20)); /* dp has no buckets */
    return run;
}

/* Sessions are found by the workload: two trials of one run that differ in their buckets have a past each. */
static void trials_with_other_buckets_have_a_past_each(void **state)
{
    struct outcome o;
    json_t *run = with_buckets(), *head = with_buckets();
    write_run(run, head_dir);
    assert_int_equal(el_baseline_add(base_dir, head_dir, false, false), EL_ERR_INVALID); /* one ran out of memory */
    json_array_remove(json_object_get(run, "trials"), 4);
    write_run(run, head_dir);
    empty_store();
    assert_int_equal(el_baseline_add(base_dir, head_dir, false, false), EL_OK);
    set(head, "environment.time_utc", json_string("2031-01-01T00:00:00Z"));
    set(head, "trials.3.comm.bytes", json_integer(99999999));
    write_run(head, head_dir);
    memset(&o, 0, sizeof o);
    assert_int_equal(el_regress_dirs(base_dir, head_dir, "comm_bytes", NULL, &o.set), EL_OK);
    el_regress_judge(&o.set);
    assert_int_equal(cell_of(&o, "ddp 2 devices textcnn batch 64 comm_bytes")->verdict, EL_CELL_SAME);
    assert_int_equal(cell_of(&o, "ddp 2 devices textcnn batch 64 buckets of 1 MiB comm_bytes")->verdict,
                     EL_CELL_REGRESSION);
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

/* Each is USE, names the cell, and says what is wrong with it. */
static void unreadable(json_t *run, json_t *head, const char *cell, const char *words)
{
    struct outcome o;
    compare(run, head, "", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_USE);
    const struct el_regress_cell *found = cell_of(&o, cell);
    assert_int_equal(found->verdict, EL_CELL_UNREADABLE);
    if (!strstr(found->reason, words)) fail_msg("'%s' does not have '%s'", found->reason, words);
    el_regress_free(&o.set);
    json_decref(head);
}

static void what_cannot_be_read(void **state)
{
    static const char step[] = "single 1 device textcnn batch 64 step_median_ms";
    json_t *run = finished_run(), *head;
    set(head = finished_run(), "trials.0.repeats.3.step_ms.4", json_null());
    unreadable(run, head, step, "is no number");
    set(head = finished_run(), "trials.0.repeats.3.step_ms.4", json_string("NaN"));
    unreadable(run, head, step, "is no number");
    set(head = finished_run(), "trials.0.repeats.3.step_ms.4", json_real(0));
    unreadable(run, head, step, "is no number, or not above 0");
    set(head = finished_run(), "trials.0.repeats.3.step_ms.4", json_real(-1));
    unreadable(run, head, step, "is no number, or not above 0");
    set(head = finished_run(), "trials.1.comm.bytes", json_null());
    unreadable(run, head, "dp 2 devices textcnn batch 64 comm_bytes", "no such figure");
    set(head = finished_run(), "trials.1.status", json_string("timeout"));
    unreadable(run, head, "dp 2 devices textcnn batch 64", "timeout in the current run");
    json_decref(run);
}

static void doubts_are_carried_along(void **state)
{
    struct outcome o;
    json_t *run = finished_run(), *head = finished_run();
    set(head, "trials.2.comm.bytes", json_integer(99999999));
    json_object_set_new(el_json_at(head, "trials.2"), "warning_rules", json_pack("[s, s]", "drift", "steal"));
    compare(run, head, "comm_bytes", &o);
    const struct el_regress_cell *bytes = cell_of(&o, "ddp 2 devices textcnn batch 64 comm_bytes");
    assert_string_equal(bytes->doubt, "current is suspect: drift, steal");
    assert_non_null(strstr(bytes->reason, "is 99999999"));
    assert_non_null(strstr(bytes->reason, bytes->doubt));
    /* What is as it was has no reason, and nothing is added to it. */
    assert_string_equal(cell_of(&o, "dp 2 devices textcnn batch 64 comm_bytes")->reason, "");
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

static void folders_without_a_run(void **state)
{
    struct el_regress_set cells = {0};
    json_t *empty = version_1();
    remove_run(head_dir);
    assert_int_equal(el_regress_dirs(base_dir, head_dir, "", NULL, &cells), EL_ERR_IO);
    assert_non_null(strstr(el_error_message(), "no results.json"));
    assert_int_equal(mkdir(head_dir, 0777), 0);
    json_array_clear(json_object_get(empty, "trials"));
    write_run(empty, head_dir);
    assert_int_equal(el_regress_dirs(base_dir, head_dir, "", NULL, &cells), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "nothing to compare"));
    el_regress_free(&cells);
    json_decref(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trials_with_other_buckets_have_a_past_each),
        cmocka_unit_test(a_run_and_itself),
        cmocka_unit_test(a_list_of_metrics),
        cmocka_unit_test(exact_figures_are_compared_exactly),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(doubts_are_carried_along),
        cmocka_unit_test(folders_without_a_run),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
