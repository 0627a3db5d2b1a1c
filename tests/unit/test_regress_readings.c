/* What is taken for a metric of what a program prints, and what is not: lines, and records of ours. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/regress/launches.h"
#include "runtime/base/utf8.h"

static struct el_readings readings;

static const struct el_reading *find(const char *name)
{
    for (size_t i = 0; i < readings.n; i++)
        if (!strcmp(readings.rows[i].name, name)) return &readings.rows[i];
    fail_msg("no '%s' among %zu", name, readings.n);
    return NULL;
}

static void read_text(const char *text, size_t n)
{
    el_readings_free(&readings);
    if (el_readings_parse(text, &readings) != EL_OK) fail_msg("%s", el_error_message());
    if (readings.n != n) fail_msg("%zu readings of '%s', wanted %zu", readings.n, text, n);
}

static void is(const char *name, double value, const char *unit, enum el_better better, bool exact)
{
    const struct el_reading *row = find(name);
    if (!(fabs(row->value - value) < 1e-12) && !(isnan(value) && isnan(row->value)))
        fail_msg("%s is %.12g, wanted %.12g", name, row->value, value);
    assert_string_equal(row->unit, unit);
    assert_int_equal(row->better, better);
    assert_true(row->exact == exact);
}

static int tear_down(void **state)
{
    el_readings_free(&readings);
    return 0;
}

static void test_lines(void **state)
{
    read_text("step_ms 12.5 ms\nloss: 0.25\nrate=31.5 images/s\r\n  peak 4096 B\n\ttime 3.5ms\nvalid/throughput -1e3\n"
              "top1_accuracy 71 %\nstep_mean_ms 3\nbad nan\n",
              9);
    is("step_ms", 12.5, "ms", EL_BETTER_LOWER, false);
    is("loss", 0.25, "", EL_BETTER_LOWER, false);
    is("rate", 31.5, "images/s", EL_BETTER_HIGHER, false);
    is("peak", 4096, "B", EL_BETTER_LOWER, true);
    is("time", 3.5, "ms", EL_BETTER_LOWER, false);
    is("valid/throughput", -1000, "", EL_BETTER_LOWER, false);
    is("top1_accuracy", 71, "%", EL_BETTER_LOWER, false);
    is("step_mean_ms", 3, "", EL_BETTER_LOWER, false);
    is("bad", NAN, "", EL_BETTER_LOWER, false);
}

/* Progress bars, colours and the Greek letter; and units of time into one another. */
static void test_lines_of_terminals(void **state)
{
    read_text("50%|##  | 1/2\rstep 125 ms\r\n\x1b[1;32mloss\x1b[0m 0.5\ncopy 125 \xce\xbcs\n\x1b[", 3);
    is("step", 125, "ms", EL_BETTER_LOWER, false);
    is("loss", 0.5, "", EL_BETTER_LOWER, false);
    is("copy", 125, "µs", EL_BETTER_LOWER, false);
    assert_true(fabs(el_readings_ratio("us", "ms") - 1e-3) < 1e-12 && fabs(el_readings_ratio("h", "s") - 3600) < 1e-9);
    assert_true(el_readings_ratio("B", "B") == 1 && isnan(el_readings_ratio("B", "ms")));
}

/* A unit says which way is better, or nobody does: a name never does. */
static void test_better(void **state)
{
    static const struct {
        const char *unit;
        enum el_better better;
        bool directed, exact;
    } cases[] = {
        {"ms", EL_BETTER_LOWER, true, false},
        {"s", EL_BETTER_LOWER, true, false},
        {"µs", EL_BETTER_LOWER, true, false},
        {"kWh", EL_BETTER_LOWER, true, false},
        {"B", EL_BETTER_LOWER, true, true},
        {"calls", EL_BETTER_LOWER, true, true},
        {"FLOP", EL_BETTER_LOWER, true, true},
        {"MiB", EL_BETTER_LOWER, true, false},
        {"TFLOPS", EL_BETTER_HIGHER, true, false},
        {"fps", EL_BETTER_HIGHER, true, false},
        {"ms/step", EL_BETTER_LOWER, true, false},
        {"ms/sample", EL_BETTER_LOWER, true, false},
        {"J/sample", EL_BETTER_LOWER, true, false},
        {"ms/s", EL_BETTER_LOWER, true, false},
        {"s/it", EL_BETTER_LOWER, true, false},
        {"samples/s", EL_BETTER_HIGHER, true, false},
        {"steps/sec", EL_BETTER_HIGHER, true, false},
        {"it/min", EL_BETTER_HIGHER, true, false},
        {"epochs/h", EL_BETTER_HIGHER, true, false},
        {"tokens/second", EL_BETTER_HIGHER, true, false},
        {"GB/s", EL_BETTER_HIGHER, true, false},
        {"B/step", EL_BETTER_LOWER, true, false},
        {"images/shard", EL_BETTER_LOWER, false, false},
        {"x/y", EL_BETTER_LOWER, false, false},
        {"%", EL_BETTER_LOWER, false, false},
        {"tokens", EL_BETTER_LOWER, false, false},
        {"W", EL_BETTER_LOWER, false, false},
        {"", EL_BETTER_LOWER, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[96];
        snprintf(line, sizeof line, "throughput 5 %s", cases[i].unit);
        read_text(line, 1);
        is("throughput", 5, cases[i].unit, cases[i].better, cases[i].exact);
        if (find("throughput")->directed != cases[i].directed) fail_msg("unit '%s'", cases[i].unit);
    }
}

/* Bytes that are no character, in a unit and in a record's name: what is written must still be JSON. */
static void test_names_are_utf8(void **state)
{
    char text[600];
    read_text("a 1 x/\xE9y", 1);
    assert_string_equal(readings.rows[0].unit, "x/?y");
    static const char *const pairs[][2] = {
        {"s\xE9t", "s?t"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\xED\xA0\x80", "???"},
        {"\xC0\xAFx", "??x"},
        {"\xF5", "?"},
        {"a\xE2\x82", "a"},
        {"", ""}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        snprintf(text, sizeof text, "%s", pairs[i][0]);
        el_utf8_mend(text);
        assert_string_equal(text, pairs[i][1]);
        json_t *mended = el_json_string(pairs[i][0]);
        assert_string_equal(json_string_value(mended), pairs[i][1]);
        json_decref(mended);
    }
}

/* There is room for 255 bytes of a name; a longer one could become another's. */
static void test_names_that_are_too_long(void **state)
{
    char name[EL_CELL_NAME_BYTES + 1], text[1024];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(text, sizeof text, "%s 5 ms", name);
    el_readings_free(&readings);
    assert_int_equal(el_readings_parse(text, &readings), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "more than 255 bytes"));
    name[EL_CELL_NAME_BYTES - 1] = 0;
    snprintf(text, sizeof text, "%s 5 ms", name);
    read_text(text, 1);
    is(name, 5, "ms", EL_BETTER_LOWER, false);
}

static void test_units_in_one_launch(void **state)
{
    char text[32];
    read_text("lat 5 ms\nlat 6000 us\nother 5\nlat 6000 us\nother 6\n", 2);
    assert_string_equal(find("lat")->unit, "ms");
    assert_string_equal(find("lat")->other_unit, "us");
    assert_string_equal(find("other")->other_unit, find("other")->unit);
    snprintf(text, sizeof text, "lat 5\nlat 5 ms\n");
    read_text(text, 1);
    assert_string_equal(find("lat")->other_unit, "ms");
}

static void test_many_are_read_at_once(void **state)
{
    enum { N = 4000 };
    char *text = malloc(N * 16);
    size_t used = 0;
    assert_non_null(text);
    for (int i = 0; i < N; i++) used += (size_t)sprintf(text + used, "m%d %d\n", i % (N / 2), i);
    read_text(text, N / 2);
    is("m7", 7 + N / 4.0, "", EL_BETTER_LOWER, false);
    assert_string_equal(readings.rows[N / 2 - 1].name, "m1999");
    free(text);
}

static void test_prose_is_no_metric(void **state)
{
    static const char *const lines[] = {"Loaded 5 files",
                                        "Epoch 3 of 10",
                                        "2026 11 ms",
                                        "-- 5 ms",
                                        "done",
                                        "took long",
                                        "took 0x10 ms",
                                        "took 1,5 ms",
                                        "took 12.5 ms now",
                                        "step 5ms ms",
                                        "took 5 s/",
                                        "step 12abc",
                                        "took infinitely",
                                        "[3] 5",
                                        "took nano ms",
                                        ""};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        el_readings_free(&readings);
        if (el_readings_parse(lines[i], &readings) != EL_ERR_INVALID) fail_msg("'%s' was taken", lines[i]);
        if (!strstr(el_error_message(), "printed no metric")) fail_msg("'%s': %s", lines[i], el_error_message());
    }
}

static void test_several_are_their_median(void **state)
{
    read_text("step 3 ms\nstep 1 ms\nother 5\nstep 100 ms\n", 2);
    is("step", 3, "ms", EL_BETTER_LOWER, false);
    read_text("step nan ms\nstep 3 ms\nstep 4 ms\n", 1); /* one that is none is not passed over */
    is("step", NAN, "ms", EL_BETTER_LOWER, false);
}

/* JSON that is no record of ours is none of ours to read. */
static void test_other_json(void **state)
{
    static const char *const texts[] = {"{\"step_ms\": 12.5}", "[{\"name\": \"a\", \"value\": 1}]", "{not json",
                                        "{\"trials\": []}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        el_readings_free(&readings);
        assert_int_equal(el_readings_parse(texts[i], &readings), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "lines 'metric value unit' are read"));
    }
}

static const char TRIAL[] =
    "{\"mode\": \"dp\", \"devices\": 2, \"model\": \"mlp\", \"global_batch\": 64, \"status\": \"ok\","
    " \"step_ms\": {}, \"comm\": {\"bytes\": 8400}, \"repeats\": [{\"step_ms\": [5, 4, 6, 7, 8, 9, 5, 5, 5, 6]}], "
    "\"flops_per_step\": 1000, \"param_bytes\": 400, \"per_device\": [{\"memory\": {\"peak_bytes\": 100}}, "
    "{\"memory\": {\"peak_bytes\": 60}}]}";

/* What its steps take depends on which batches they had: of the ten figures five are exact, and left out. */
static void test_batches_of_unlike_length_are_not_exact(void **state)
{
    json_t *trial = json_loads(TRIAL, 0, NULL);
    json_object_set_new(trial, "config", json_pack("{s:s}", "length_by", "batch"));
    char *text = json_dumps(trial, 0);
    read_text(text, 5);
    is("step_median_ms", 5.5, "ms", EL_BETTER_LOWER, false);
    free(text);
    json_decref(trial);
}

static void test_our_records(void **state)
{
    read_text(TRIAL, 10);
    is("step_median_ms", 5.5, "ms", EL_BETTER_LOWER, false);
    is("comm_bytes", 8400, "B", EL_BETTER_LOWER, true);
    is("flops_per_step", 1000, "FLOP", EL_BETTER_NEITHER, true);
    is("device_peak_bytes[1]", 60, "B", EL_BETTER_LOWER, true);
    assert_false(find("step_median_ms")->extra);
    assert_true(find("step_mean_ms")->extra); /* only where it is asked for */
    is("step_p10_ms", 4, "ms", EL_BETTER_LOWER, false);
    assert_true(find("step_p10_ms")->extra);
    assert_true(fabs(find("samples_per_s")->value - 64e3 / 6) < 1e-6);
    assert_int_equal(find("samples_per_s")->better, EL_BETTER_HIGHER);
    char run[2048];
    snprintf(run, sizeof run, "{\"schema\": 1, \"trials\": [%s]}", TRIAL);
    read_text(run, 10);
    is("step_median_ms dp 2 devices mlp batch 64", 5.5, "ms", EL_BETTER_LOWER, false);
    json_t *other = json_loads(TRIAL, 0, NULL), *trials = json_pack("[O, o]", other, json_deep_copy(other));
    for (size_t t = 0; t < 2; t++) {
        json_t *trial = json_array_get(trials, t);
        json_object_set_new(trial, "mode", json_string("ddp"));
        json_object_set_new(trial, "config", json_pack("{s:i}", "bucket_cap_bytes", t ? 3 << 19 : 25 << 20));
    }
    json_t *whole = json_deep_copy(json_array_get(trials, 1)); /* its first bucket is not the usual one */
    json_object_set_new(whole, "config",
                        json_pack("{s:i, s:i}", "bucket_cap_bytes", 25 << 20, "bucket_first_bytes", 2 << 20));
    json_array_append_new(trials, whole);
    json_object_set_new(other, "repeats", json_pack("[{s:[i]}]", "step_ms", 7));
    json_t *sweep = json_pack("{s:i, s:o}", "schema", 1, "trials", trials);
    char *text = json_dumps(sweep, 0);
    read_text(text, 30); /* sizes of buckets are no several figures of one trial */
    is("step_median_ms ddp 2 devices mlp batch 64", 7, "ms", EL_BETTER_LOWER, false);
    is("step_median_ms ddp 2 devices mlp batch 64 buckets of 1.5 MiB", 5.5, "ms", EL_BETTER_LOWER, false);
    is("step_median_ms ddp 2 devices mlp batch 64 buckets of 25 MiB, the first 2", 5.5, "ms", EL_BETTER_LOWER, false);
    free(text);
    json_decref(sweep);
    json_decref(other);
    el_readings_free(&readings);
    assert_int_equal(
        el_readings_parse("{\"mode\": \"dp\", \"status\": \"oom\", \"reason\": \"no room\", \"step_ms\": {}}",
                          &readings),
        EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "did not finish: no room"));
}

RUN_TESTS(NULL, tear_down, test_lines, test_lines_of_terminals, test_better, test_names_are_utf8,
          test_names_that_are_too_long, test_units_in_one_launch, test_many_are_read_at_once, test_prose_is_no_metric,
          test_several_are_their_median, test_other_json, test_batches_of_unlike_length_are_not_exact, test_our_records)
