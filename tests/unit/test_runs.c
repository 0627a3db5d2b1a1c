/* A run of ours as cells, against a store of one session: on trials of the reference run and on changed copies of them,
 * judged by the gate's own rule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"
#include "bench/regress/store.h"
#include "runtime/base/scratch.h"
#include "tests/test.h"
#include "tests/unit/kept_record.h"

static char store[64], head_dir[64];
static json_t *run, *head;             /* what is in the store, and what is held against it */
static struct el_regress_set compared; /* of the last comparison */

static void write_run(const json_t *document)
{
    char path[128];
    mkdir(head_dir, 0777);
    snprintf(path, sizeof path, "%s/results.json", head_dir);
    assert_int_equal(el_write_json(document, path), EL_OK);
}

static int setup(void **state)
{
    snprintf(store, sizeof store, "/tmp/evenload-runs-a-XXXXXX");
    snprintf(head_dir, sizeof head_dir, "/tmp/evenload-runs-b-XXXXXX");
    run = kept_record();
    head = kept_record();
    return !mkdtemp(store) || !mkdtemp(head_dir);
}

static int teardown(void **state)
{
    el_scratch_remove(store);
    el_scratch_remove(head_dir);
    el_regress_free(&compared);
    json_decref(run);
    json_decref(head);
    return 0;
}

/* The head, as a run of another time, against a store whose one session is the run. */
static enum el_status compare(const char *metrics)
{
    el_scratch_remove(store);
    el_regress_free(&compared);
    write_run(run);
    assert_int_equal(el_baseline_add(store, head_dir, false, false), EL_OK);
    set(head, "environment.time_utc", json_string("2031-01-01T00:00:00Z"));
    write_run(head);
    EL_TRY(el_regress_dirs(store, head_dir, metrics, NULL, &compared));
    el_regress_judge(&compared);
    return EL_OK;
}

static const struct el_regress_cell *cell_of(const char *name)
{
    for (size_t i = 0; i < compared.n; i++)
        if (!strcmp(compared.cells[i].name, name)) return &compared.cells[i];
    static const struct el_regress_cell none;
    fail_msg("no cell '%s'", name);
    return &none;
}

static void a_run_and_itself(void **state)
{
    assert_int_equal(compare(""), EL_OK);
    assert_int_equal(el_regress_outcome(&compared), EL_REGRESS_NO_BASELINE);
    const struct el_regress_cell *step = cell_of("ddp 2 devices textcnn batch 64 step_median_ms");
    assert_int_equal(step->kind, EL_CELL_HISTORY);
    assert_string_equal(step->unit, "ms");
    assert_non_null(strstr(step->reason, "1 session, and 8 are needed"));
    /* What is judged of a run is what its own record says: the geometric mean over launches. */
    double recorded = el_json_number(run, "trials.2.step_ms.median");
    assert_true(fabs(step->head[0] / recorded - 1) < 1e-9);
    const struct el_regress_cell *peak = cell_of("dp 2 devices textcnn batch 64 device_peak_bytes[1]");
    assert_int_equal(peak->kind, EL_CELL_EXACT);
    assert_int_equal(peak->verdict, EL_CELL_SAME);
    assert_true(peak->base[0] == 32128608 && peak->head[0] == 32128608);
    assert_true(cell_of("dp 2 devices textcnn batch 64 comm_bytes")->base[0] == 21735376);
    /* No tag that is never there is a cell. */
    for (size_t i = 0; i < compared.n; i++) assert_true(compared.cells[i].head[0] > 0);
}

static void a_list_of_metrics(void **state)
{
    assert_int_equal(compare("samples_per_s,device_peak_bytes"), EL_OK);
    assert_int_equal(compared.n, 3 + 1 + 2 + 2);
    assert_int_equal(cell_of("single 1 device textcnn batch 64 samples_per_s")->better, EL_BETTER_HIGHER);
    assert_int_equal(compare("device_peak_bytes[1]"), EL_OK);
    assert_int_equal(compared.n, 2); /* the first trial has one device */
    assert_int_equal(compare("step_medium_ms"), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "did you mean 'step_median_ms'?"));
    assert_int_equal(compared.n, 0);
}

static void exact_figures_are_compared_exactly(void **state)
{
    static const struct {
        const char *path;
        double value;
        enum el_cell_verdict verdict;
        const char *trial, *metric, *place;
    } changes[] = {
        {"trials.1.per_device.1.memory.peak_bytes", 32128609, EL_CELL_REGRESSION, "dp 2 devices", "device_peak_bytes",
         "[1]"},
        {"trials.1.per_device.1.memory.peak_bytes", 32128607, EL_CELL_IMPROVEMENT, "dp 2 devices", "device_peak_bytes",
         "[1]"},
        {"trials.2.comm.bytes", 21725649, EL_CELL_REGRESSION, "ddp 2 devices", "comm_bytes", ""},
        /* From none to some. */
        {"trials.0.per_device.0.memory.peak_by_tag.bucket", 1, EL_CELL_REGRESSION, "single 1 device",
         "peak_bucket_bytes", "[0]"},
        /* Less work is another computation. */
        {"trials.0.flops_per_step", 1, EL_CELL_REGRESSION, "single 1 device", "flops_per_step", ""},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char cell[96];
        json_decref(head);
        set(head = kept_record(), changes[i].path, json_real(changes[i].value));
        assert_int_equal(compare(changes[i].metric), EL_OK);
        snprintf(cell, sizeof cell, "%s textcnn batch 64 %s%s", changes[i].trial, changes[i].metric, changes[i].place);
        assert_int_equal(cell_of(cell)->verdict, changes[i].verdict);
        assert_int_equal(el_regress_outcome(&compared),
                         changes[i].verdict == EL_CELL_REGRESSION ? EL_REGRESS_FOUND : EL_REGRESS_NONE);
    }
}

/* Sessions are found by the workload: two trials of one run that differ in their buckets have a past each. */
static void trials_with_other_buckets_have_a_past_each(void **state)
{
    json_t *runs[] = {run, head};
    for (int i = 0; i < 2; i++) { /* ddp's trial a second time, in buckets of 1 MiB; and dp's, which has none */
        json_t *trials = json_object_get(runs[i], "trials");
        json_array_append_new(trials, json_deep_copy(json_array_get(trials, 2)));
        set(runs[i], "trials.3.config.bucket_cap_bytes", json_integer(1 << 20));
        set(runs[i], "trials.1.config.bucket_cap_bytes", json_integer(1 << 20));
    }
    set(head, "trials.3.comm.bytes", json_integer(99999999));
    assert_int_equal(compare("comm_bytes"), EL_OK);
    assert_int_equal(cell_of("dp 2 devices textcnn batch 64 comm_bytes")->verdict, EL_CELL_SAME);
    assert_int_equal(cell_of("ddp 2 devices textcnn batch 64 comm_bytes")->verdict, EL_CELL_SAME);
    assert_int_equal(cell_of("ddp 2 devices textcnn batch 64 buckets of 1 MiB comm_bytes")->verdict,
                     EL_CELL_REGRESSION);
}

/* Each is USE, names the cell, and says what is wrong with it. */
static void unreadable(const char *path, json_t *value, const char *cell, const char *words)
{
    json_decref(head);
    set(head = kept_record(), path, value);
    assert_int_equal(compare(""), EL_OK);
    assert_int_equal(el_regress_outcome(&compared), EL_REGRESS_USE);
    const struct el_regress_cell *found = cell_of(cell);
    assert_int_equal(found->verdict, EL_CELL_UNREADABLE);
    if (!strstr(found->reason, words)) fail_msg("'%s' does not have '%s'", found->reason, words);
}

static void what_cannot_be_read(void **state)
{
    static const char cell[] = "single 1 device textcnn batch 64 step_median_ms";
    static const char step[] = "trials.0.repeats.3.step_ms.4", words[] = "is no number, or not above 0";
    unreadable(step, json_null(), cell, words);
    unreadable(step, json_string("NaN"), cell, words);
    unreadable(step, json_real(0), cell, words);
    unreadable(step, json_real(-1), cell, words);
    unreadable("trials.1.comm.bytes", json_null(), "dp 2 devices textcnn batch 64 comm_bytes", "no such figure");
    unreadable("trials.1.status", json_string("timeout"), "dp 2 devices textcnn batch 64",
               "timeout in the current run");
}

static void doubts_are_carried_along(void **state)
{
    set(head, "trials.2.comm.bytes", json_integer(99999999));
    json_object_set_new(el_json_at(head, "trials.2"), "warning_rules", json_pack("[s, s]", "drift", "steal"));
    assert_int_equal(compare("comm_bytes"), EL_OK);
    const struct el_regress_cell *bytes = cell_of("ddp 2 devices textcnn batch 64 comm_bytes");
    assert_string_equal(bytes->doubt, "current is suspect: drift, steal");
    assert_non_null(strstr(bytes->reason, "is 99999999"));
    assert_non_null(strstr(bytes->reason, bytes->doubt));
    /* What is as it was has no reason, and nothing is added to it. */
    assert_string_equal(cell_of("dp 2 devices textcnn batch 64 comm_bytes")->reason, "");
}

static void folders_without_a_run(void **state)
{
    assert_int_equal(el_regress_dirs(store, head_dir, "", NULL, &compared), EL_ERR_IO);
    assert_non_null(strstr(el_error_message(), "no results.json"));
    json_array_clear(json_object_get(head, "trials"));
    write_run(head);
    assert_int_equal(el_regress_dirs(store, head_dir, "", NULL, &compared), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "nothing to compare"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(trials_with_other_buckets_have_a_past_each),
                                       TEST(a_run_and_itself),
                                       TEST(a_list_of_metrics),
                                       TEST(exact_figures_are_compared_exactly),
                                       TEST(what_cannot_be_read),
                                       TEST(doubts_are_carried_along),
                                       TEST(folders_without_a_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
