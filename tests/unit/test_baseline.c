/* The stored baseline: a run and a store, from the first session to an accepted one. Levels and files are in
 * test_baseline_levels.c and test_baseline_files.c, the command in tests/cli/baseline.bats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/regress/compare.h"
#include "bench/regress/store.h"
#include "tests/unit/test_baseline_common.h"

/* The record of version 1, each step of ddp (its third trial) times `ratio`, as the run of its second `second`. */
static void write_run(const char *name, int second, double ratio, double peak)
{
    char path[EL_PATH_BYTES], time[32];
    json_t *run = NULL;
    assert_int_equal(el_record_read("tests/unit/data/record-v1.json", &run), EL_OK);
    json_array_remove(json_object_get(run, "trials"), 3);
    snprintf(time, sizeof time, "2026-01-01T00:00:%02dZ", second);
    json_object_set_new(json_object_get(run, "environment"), "time_utc", json_string(time));
    for (int r = 0; r < 5; r++) {
        char at[64];
        snprintf(at, sizeof at, "trials.2.repeats.%d.step_ms", r);
        json_t *steps = el_json_at(run, at);
        for (size_t i = 0; i < json_array_size(steps); i++)
            json_array_set_new(steps, i, json_real(ratio * json_number_value(json_array_get(steps, i))));
    }
    json_object_set_new(el_json_at(run, "trials.2.per_device.0.memory"), "peak_bytes", json_real(peak));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/results.json", dir, name);
    assert_int_equal(el_write_json(run, path), EL_OK);
    json_decref(run);
}

static enum el_status add(const char *name, bool accept)
{
    char store[EL_PATH_BYTES], run[EL_PATH_BYTES];
    snprintf(store, sizeof store, "%s/store", dir);
    snprintf(run, sizeof run, "%s/%s", dir, name);
    return el_baseline_add(store, run, accept, false);
}

static enum el_regress_exit judge(const char *name, const char *cell, struct el_regress_cell *cell_p)
{
    char store[EL_PATH_BYTES], run[EL_PATH_BYTES];
    struct el_regress_set set = {0};
    snprintf(store, sizeof store, "%s/store", dir);
    snprintf(run, sizeof run, "%s/%s", dir, name);
    if (el_regress_dirs(store, run, "", NULL, &set) != EL_OK) fail_msg("%s", el_error_message());
    el_regress_judge(&set);
    enum el_regress_exit outcome = el_regress_outcome(&set);
    const struct el_regress_cell *found = NULL;
    for (size_t i = 0; i < set.n; i++)
        if (!strcmp(set.cells[i].name, cell)) found = &set.cells[i];
    if (found)
        *cell_p = *found; /* its samples are gone then */
    else
        fail_msg("no cell %s", cell);
    el_regress_free(&set);
    return outcome;
}

static const char STEP[] = "ddp 2 devices textcnn batch 64 step_median_ms";
static const char PEAK[] = "ddp 2 devices textcnn batch 64 device_peak_bytes[0]";
static const double PEAK_BYTES = 12345678901; /* more digits than a float has */

/* Eight sessions, the others of the three trials all alike: those have the floor of 2 % only. */
static void keep_eight(void)
{
    struct el_regress_cell cell;
    write_run("now", 50, 1, PEAK_BYTES);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        write_run(name, i, i % 2 ? 1.004 : 0.996, PEAK_BYTES);
        if (add(name, false) != EL_OK) fail_msg("%s", el_error_message());
        if (i != 0 && i != 2 && i < 6) continue;
        enum el_regress_exit outcome = judge("now", STEP, &cell);
        assert_int_equal(outcome, i < 7 ? EL_REGRESS_NO_BASELINE : EL_REGRESS_NONE);
        if (i == 2)
            assert_string_equal(cell.reason, "3 sessions, and 8 are needed to know how far they scatter: 5 more "
                                             "by 'evenload baseline add'");
    }
    assert_int_equal(cell.kind, EL_CELL_HISTORY);
    assert_int_equal(cell.n_base, 8);
}

static void a_store_from_the_first_session_on(void **state)
{
    struct el_regress_cell cell;
    keep_eight();
    assert_int_equal(add("r3", false), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "r3 is a session in"));
    write_run("now", 50, 1.1, PEAK_BYTES);
    assert_int_equal(judge("now", STEP, &cell), EL_REGRESS_FOUND);
    near(cell.effect, 1.1, 0.001);
    /* A run that is in the store is held against the others: it would else be its own excuse. */
    assert_int_equal(judge("r3", STEP, &cell), EL_REGRESS_NO_BASELINE);
    assert_int_equal(cell.n_base, 7);
    /* Exact figures: against the last. One that is worse needs somebody who says that it is right. */
    write_run("now", 50, 1, PEAK_BYTES + 64);
    assert_int_equal(judge("now", PEAK, &cell), EL_REGRESS_FOUND);
    assert_int_equal(add("now", false), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "device_peak_bytes[0] is 12345678965 B, and was 12345678901"));
    assert_int_equal(add("now", true), EL_OK);
    write_run("next", 51, 1, PEAK_BYTES + 64);
    assert_int_equal(judge("next", PEAK, &cell), EL_REGRESS_NONE);
}

static void a_level_that_is_accepted(void **state)
{
    struct el_regress_cell cell;
    write_run("slow", 52, 1.5, PEAK_BYTES + 128);
    assert_int_equal(judge("slow", STEP, &cell), EL_REGRESS_FOUND);
    assert_int_equal(add("slow", true), EL_OK);
    assert_int_equal(add("slow", true), EL_ERR_INVALID);
    /* It is the level: neither the sessions before it are, nor the figures without noise that it had then. */
    assert_int_equal(judge("slow", STEP, &cell), EL_REGRESS_NONE);
    near(cell.effect, 1, 1e-12);
    assert_int_equal(judge("slow", PEAK, &cell), EL_REGRESS_NONE);
    write_run("again", 53, 1.501, PEAK_BYTES + 128);
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_NONE);
    near(cell.effect, 1.501 / 1.5, 1e-3);
    write_run("back", 54, 1, PEAK_BYTES + 128);
    assert_int_equal(judge("back", STEP, &cell), EL_REGRESS_NONE);
    assert_int_equal(cell.verdict, EL_CELL_IMPROVEMENT);
    write_run("slower", 55, 1.8, PEAK_BYTES + 128);
    assert_int_equal(judge("slower", STEP, &cell), EL_REGRESS_FOUND);
}

/* Changes all records of the store. */
static void edit(const char *script)
{
    char command[512];
    snprintf(command, sizeof command, "sed -i '%s' %s/store/*.json", script, dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c,concurrency-mt-unsafe): files that this test made
}

static void another_unit_zero_and_no_number(void **state)
{
    struct el_regress_cell cell;
    edit("s/\"unit\": \"ms\"/\"unit\": \"s\"/");
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_USE);
    assert_string_equal(cell.reason, "the unit is ms, and was s");
    edit("s/\"unit\": \"s\"/\"unit\": \"ms\"/");
    edit("/\"step_median_ms\"/,/}/ s/\"value\": [^,]*/\"value\": 0/");
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_USE);
    assert_string_equal(cell.reason, "the baseline's figure is 0, and must be above 0");
    edit("/\"step_median_ms\"/,/}/ s/\"value\": 0/\"value\": null/");
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_USE);
    assert_non_null(strstr(cell.reason, "no number"));
}

static void a_machine_that_the_store_does_not_know(void **state)
{
    char store[EL_PATH_BYTES], run[EL_PATH_BYTES], path[EL_PATH_BYTES * 2];
    struct el_regress_set set = {0};
    json_t *document = NULL;
    snprintf(store, sizeof store, "%s/store", dir);
    snprintf(run, sizeof run, "%s/again", dir);
    snprintf(path, sizeof path, "%s/results.json", run);
    assert_int_equal(el_record_read(path, &document), EL_OK);
    json_object_set_new(json_object_get(document, "environment"), "compiler", json_string("cc 9"));
    assert_int_equal(el_write_json(document, path), EL_OK);
    json_decref(document);
    char notes[2048] = "";
    FILE *file = fmemopen(notes, sizeof notes - 1, "w");
    assert_non_null(file);
    assert_int_equal(el_regress_dirs(store, run, "", file, &set), EL_OK);
    assert_int_equal(el_regress_dirs("/tmp/evenload-none-such", run, "", file, &set), EL_OK);
    fclose(file);
    assert_non_null(strstr(notes, "differs in compiler gcc 12.2.0, then cc 9"));
    assert_non_null(strstr(notes, "--ab"));
    assert_non_null(strstr(notes, "no such folder yet"));
    el_regress_judge(&set);
    assert_int_equal(el_regress_outcome(&set), EL_REGRESS_NO_BASELINE);
    assert_int_equal(set.sessions_needed, 8);
    el_regress_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_from_the_first_session_on),
        cmocka_unit_test(a_level_that_is_accepted),
        cmocka_unit_test(another_unit_zero_and_no_number),
        cmocka_unit_test(a_machine_that_the_store_does_not_know),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
