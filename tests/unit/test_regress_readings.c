/* What is taken for a metric of what a program prints, and what is not: lines, JSON in its several forms, our records.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/base/jvalue.h"
#include "bench/regress/readings.h"
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
    (void)state;
    el_readings_free(&readings);
    return 0;
}

static void test_lines(void **state)
{
    (void)state;
    read_text("step_ms 12.5 ms\nloss: 0.25\nrate=31.5 images/s\r\n  peak 4096 B\n\ttime 3.5ms\nvalid/throughput -1e3\n"
              "top1_accuracy 71 %\nstep_mean_ms 3\nbad nan\n",
              9);
    is("step_ms", 12.5, "ms", EL_BETTER_LOWER, false);
    is("loss", 0.25, "", EL_BETTER_LOWER, false);
    is("rate", 31.5, "images/s", EL_BETTER_HIGHER, false);
    is("peak", 4096, "B", EL_BETTER_LOWER, true);
    is("time", 3.5, "ms", EL_BETTER_LOWER, false);
    is("valid/throughput", -1000, "", EL_BETTER_HIGHER, false);
    is("top1_accuracy", 71, "%", EL_BETTER_HIGHER, false);
    is("step_mean_ms", 3, "", EL_BETTER_LOWER, false);
    is("bad", NAN, "", EL_BETTER_LOWER, false);
}

/* A time a step is no rate, though "/s" and "per_s" are in its name; and a word is a whole one. */
static void test_better(void **state)
{
    (void)state;
    static const struct {
        const char *name, *unit;
        enum el_better better;
    } cases[] = {
        {"step", "ms/step", EL_BETTER_LOWER},
        {"step", "ms/sample", EL_BETTER_LOWER},
        {"energy", "J/sample", EL_BETTER_LOWER},
        {"stall", "ms/s", EL_BETTER_LOWER},
        {"cost", "s/it", EL_BETTER_LOWER},
        {"rate", "samples/s", EL_BETTER_HIGHER},
        {"rate", "steps/sec", EL_BETTER_HIGHER},
        {"rate", "it/min", EL_BETTER_HIGHER},
        {"rate", "epochs/h", EL_BETTER_HIGHER},
        {"rate", "tokens/second", EL_BETTER_HIGHER},
        {"rate", "B/step", EL_BETTER_LOWER},
        {"rate", "images/shard", EL_BETTER_LOWER},
        {"ms_per_step", "", EL_BETTER_LOWER},
        {"bytes_per_sample", "", EL_BETTER_LOWER},
        {"samples_per_s", "", EL_BETTER_HIGHER},
        {"samples-per-sec", "", EL_BETTER_HIGHER},
        {"tokens_per_second", "", EL_BETTER_HIGHER},
        {"inaccuracy", "%", EL_BETTER_LOWER},
        {"top1.accuracy", "%", EL_BETTER_HIGHER},
        {"Throughput", "", EL_BETTER_HIGHER},
        {"bandwidth_test", "ms", EL_BETTER_LOWER},
        {"cache/hit_rate", "", EL_BETTER_HIGHER},
        {"tok/s", "", EL_BETTER_HIGHER},
        {"img/sec", "", EL_BETTER_HIGHER},
        {"ms/step", "", EL_BETTER_LOWER},
        {"time/s", "", EL_BETTER_LOWER},
        {"speed", "TFLOPS", EL_BETTER_HIGHER},
        {"speed", "fps", EL_BETTER_HIGHER},
        {"acc", "", EL_BETTER_HIGHER},
        {"val_acc", "%", EL_BETTER_HIGHER},
        {"eval/f1", "", EL_BETTER_HIGHER},
        {"mAP", "", EL_BETTER_HIGHER},
        {"gpu_util", "%", EL_BETTER_HIGHER},
        {"score_ms", "", EL_BETTER_LOWER},
        {"val_loss", "", EL_BETTER_LOWER},
        {"map_time", "", EL_BETTER_LOWER},
        {"accumulate", "", EL_BETTER_LOWER},
        {"loss/s", "", EL_BETTER_LOWER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[96];
        snprintf(line, sizeof line, "%s 5 %s", cases[i].name, cases[i].unit);
        read_text(line, 1);
        is(cases[i].name, 5, cases[i].unit, cases[i].better, false);
    }
}

/* A name that is cut within a character, and bytes that are none: the record must still be JSON. */
static void test_names_are_utf8(void **state)
{
    (void)state;
    char text[600] = "{\"a", word[8] = "a\xE9";
    for (int i = 0; i < EL_CELL_NAME_BYTES / 2; i++) strcat(text, "\xC3\xA9"); /* the cut is within one */
    strcat(text, "\": 1, \"b\": 2}");
    read_text(text, 2);
    assert_int_equal(strlen(readings.rows[0].name), EL_CELL_NAME_BYTES - 2);
    json_t *name = json_string(readings.rows[0].name);
    assert_non_null(name);
    json_decref(name);
    el_utf8_mend(word);
    assert_string_equal(word, "a");
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

/* Metrics that differ only behind what there is room for stay two, in lines as in JSON, and keep their beginning. */
static void test_long_names_stay_apart(void **state)
{
    (void)state;
    enum { FORMS = 3 };
    char name[EL_CELL_NAME_BYTES + 1], text[FORMS][1024], first[EL_CELL_NAME_BYTES];
    for (int i = 0; i < EL_CELL_NAME_BYTES; i++) name[i] = (char)('a' + i % 26);
    name[EL_CELL_NAME_BYTES] = 0;
    snprintf(text[0], sizeof text[0], "%s::a 1 ms\n%s::b 9 ms\n%s::a 3 ms\n", name, name, name);
    snprintf(text[1], sizeof text[1],
             "[{\"name\": \"%s::a\", \"value\": 1}, {\"name\": \"%s::b\", \"value\": 9}, {\"name\": \"%s::a\", "
             "\"value\": 3}]",
             name, name, name);
    snprintf(text[2], sizeof text[2], "{\"%s::a\": 2, \"%s::b\": {\"value\": 9}}", name, name);
    for (int f = 0; f < FORMS; f++) {
        read_text(text[f], 2);
        assert_true(readings.rows[0].value == 2 && readings.rows[1].value == 9);
        assert_int_equal(strlen(readings.rows[0].name), EL_CELL_NAME_BYTES - 1);
        assert_memory_equal(readings.rows[0].name, name, EL_CELL_NAME_BYTES - 18);
        assert_int_equal(readings.rows[0].name[EL_CELL_NAME_BYTES - 18], '~');
        if (f > 0) assert_string_equal(readings.rows[0].name, first); /* one metric, whatever the form */
        memcpy(first, readings.rows[0].name, sizeof first);
    }
    name[EL_CELL_NAME_BYTES - 1] = 0;
    snprintf(text[0], sizeof text[0], "%s 5 ms", name); /* there is room for this one */
    read_text(text[0], 1);
    is(name, 5, "ms", EL_BETTER_LOWER, false);
}

/* What a group and a long name in it come to, too: the hash is of both. */
static void test_long_names_of_groups_stay_apart(void **state)
{
    (void)state;
    char name[EL_CELL_NAME_BYTES], text[2048];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(text, sizeof text,
             "{\"a%s\": {\"x\": {\"value\": 1}}, \"b\": {\"%s\": {\"value\": 2}}, \"a%s%s\": {\"x\": 3}}", name, name,
             name, name);
    read_text(text, 3);
}

static void test_units_in_one_launch(void **state)
{
    (void)state;
    char text[512], unit[EL_CELL_UNIT_BYTES + 1];
    read_text("lat 5 ms\nlat 6000 us\nother 5\nlat 6000 us\nother 6\n", 2);
    assert_string_equal(find("lat")->unit, "ms");
    assert_string_equal(find("lat")->other_unit, "us");
    assert_string_equal(find("other")->other_unit, find("other")->unit);
    read_text("{\"lat\": 5}\nlat 5 ms\n", 1);
    assert_string_equal(find("lat")->other_unit, "ms");
    for (int i = 0; i < EL_CELL_UNIT_BYTES; i++) unit[i] = 'u';
    unit[EL_CELL_UNIT_BYTES] = 0;
    snprintf(text, sizeof text,
             "[{\"name\": \"t\", \"value\": 1, \"unit\": \"%sa\"}, {\"name\": \"t\", \"value\": 1, \"unit\": \"%sb\"}]",
             unit, unit);
    read_text(text, 1);
    assert_string_not_equal(find("t")->unit, find("t")->other_unit);
}

static void test_many_are_read_at_once(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
    read_text("step 3 ms\nstep 1 ms\nother 5\nstep 100 ms\n", 2);
    is("step", 3, "ms", EL_BETTER_LOWER, false);
    read_text("step nan ms\nstep 3 ms\nstep 4 ms\n", 1); /* one that is none is not passed over */
    is("step", NAN, "ms", EL_BETTER_LOWER, false);
}

static void test_json(void **state)
{
    (void)state;
    read_text("{\"step_ms\": 12.5, \"name\": \"x\", \"ok\": true}", 1);
    is("step_ms", 12.5, "", EL_BETTER_LOWER, false);
    read_text("{\"step\": {\"value\": 12.5, \"unit\": \"ms\"}, \"sent\": {\"value\": 8, \"unit\": \"bytes\"}, "
              "\"gone\": null}",
              3);
    is("step", 12.5, "ms", EL_BETTER_LOWER, false);
    is("sent", 8, "bytes", EL_BETTER_LOWER, true);
    is("gone", NAN, "", EL_BETTER_LOWER, false);
    read_text("{\"mlp\": {\"latency\": {\"value\": 88, \"lower_value\": 87, \"upper_value\": 89}, \"throughput\": "
              "{\"value\": 2}}}",
              2);
    is("mlp latency", 88, "", EL_BETTER_LOWER, false);
    is("mlp throughput", 2, "", EL_BETTER_HIGHER, false);
    read_text(
        "[{\"name\": \"a\", \"value\": 1, \"unit\": \"ms\"}, {\"name\": \"b\", \"value\": 2, \"unit\": \"it/s\"}]", 2);
    is("a", 1, "ms", EL_BETTER_LOWER, false);
    is("b", 2, "it/s", EL_BETTER_HIGHER, false);
    read_text(
        "{\"context\": {\"num_cpus\": 8}, \"benchmarks\": [{\"name\": \"f/8\", \"iterations\": 10, \"real_time\": 5.5, "
        "\"time_unit\": \"ns\"}]}",
        1);
    is("f/8", 5.5, "ns", EL_BETTER_LOWER, false);
    read_text(
        "{\"benchmarks\": [{\"name\": \"f\", \"run_type\": \"iteration\", \"real_time\": 4, \"time_unit\": \"ns\"}, "
        "{\"name\": \"f\", \"run_type\": \"iteration\", \"real_time\": 6, \"time_unit\": \"ns\"}, "
        "{\"name\": \"f_stddev\", \"run_type\": \"aggregate\", \"real_time\": 1, \"time_unit\": \"ns\"}]}",
        1);
    is("f", 5, "ns", EL_BETTER_LOWER, false);
}

static void test_json_among_lines(void **state)
{
    (void)state;
    read_text("starting\n{\"step_ms\": 12.5}\nrate 3 it/s\n{\"step_ms\": 13.5}\n{not json\n", 2);
    is("step_ms", 13, "", EL_BETTER_LOWER, false);
    el_readings_free(&readings);
    assert_int_equal(el_readings_parse("{\"step_ms\": NaN}", &readings), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "JSON that cannot be read: line 1"));
    assert_int_equal(el_readings_parse("{\"step\": \"12\"}", &readings), EL_ERR_INVALID);
    assert_int_equal(el_readings_parse("[[[[[[[{\"a\": 1}]]]]]]]", &readings), EL_ERR_INVALID);
}

static const char TRIAL[] =
    "{\"mode\": \"dp\", \"devices\": 2, \"model\": \"mlp\", \"global_batch\": 64, \"status\": \"ok\","
    " \"step_ms\": {\"median\": 5.5, \"mean\": 6}, \"throughput\": {\"samples_per_s\": 11}, \"comm\": {\"bytes\": "
    "8400},"
    " \"repeats\": [{\"step_ms\": [5, 4, 6, 7, 8, 9, 5, 5, 5, 5.5]}], \"flops_per_step\": 1000, \"param_bytes\": 400, "
    "\"per_device\": ["
    "{\"device\": \"cpu:0\", \"memory\": {\"peak_bytes\": 100}}, {\"device\": \"cpu:1\", \"memory\": {\"peak_bytes\": "
    "60}}]}";

static void test_our_records(void **state)
{
    (void)state;
    read_text(TRIAL, 9);
    is("step_median_ms", 5.5, "ms", EL_BETTER_LOWER, false);
    is("comm_bytes", 8400, "B", EL_BETTER_LOWER, true);
    is("flops_per_step", 1000, "FLOP", EL_BETTER_NEITHER, true);
    is("device_peak_bytes cpu:1", 60, "B", EL_BETTER_LOWER, true);
    assert_false(find("step_median_ms")->extra);
    assert_true(find("step_mean_ms")->extra); /* only where it is asked for */
    is("step_p10_ms", 4, "ms", EL_BETTER_LOWER, false);
    assert_true(find("step_p10_ms")->extra);
    is("samples_per_s", 11, "samples/s", EL_BETTER_HIGHER, false);
    char run[2048];
    snprintf(run, sizeof run, "{\"schema\": 1, \"trials\": [%s]}", TRIAL);
    read_text(run, 9);
    is("step_median_ms dp 2 mlp batch 64", 5.5, "ms", EL_BETTER_LOWER, false);
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
    json_object_set_new(other, "step_ms", json_pack("{s:f}", "median", 7.0));
    json_t *sweep = json_pack("{s:i, s:o}", "schema", 1, "trials", trials);
    char *text = json_dumps(sweep, 0);
    read_text(text, 26); /* sizes of buckets are no several figures of one trial */
    is("step_median_ms ddp 2 mlp batch 64", 7, "ms", EL_BETTER_LOWER, false);
    is("step_median_ms ddp 2 mlp batch 64 buckets of 1.5 MiB", 5.5, "ms", EL_BETTER_LOWER, false);
    is("step_median_ms ddp 2 mlp batch 64 buckets of 25 MiB, the first 2", 5.5, "ms", EL_BETTER_LOWER, false);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_better),
        cmocka_unit_test(test_names_are_utf8),
        cmocka_unit_test(test_long_names_stay_apart),
        cmocka_unit_test(test_long_names_of_groups_stay_apart),
        cmocka_unit_test(test_units_in_one_launch),
        cmocka_unit_test(test_many_are_read_at_once),
        cmocka_unit_test(test_prose_is_no_metric),
        cmocka_unit_test(test_several_are_their_median),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_among_lines),
        cmocka_unit_test(test_our_records),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
