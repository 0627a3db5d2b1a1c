/* Records as files: trials of the reference run through every reader, files that are no records, the page of metrics,
 * and what a record says of the machine. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/machine/host.h"
#include "bench/plot/plot.h"
#include "bench/record/metrics.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "tests/test.h"
#include "tests/unit/kept_record.h"
#include "tests/unit/whole_files.h"

/* The record that a file with this text is, or why it is none. */
static json_t *read_text(const char *text, enum el_status wanted)
{
    char path[] = "/tmp/el-record-XXXXXX";
    json_t *run = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(el_record_read(path, &run), wanted);
    unlink(path);
    return run;
}

static char *report_of(const json_t *run)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    el_report_table(run, out);
    el_report_sentences(run, out);
    fclose(out);
    return text;
}

/* The number of rows, all with as many cells as the head has; no cell of these has a comma in it. */
static int rows_of(const char *csv)
{
    int rows = 0, wanted = 0, commas = 0;
    for (const char *c = csv; *c != '\n'; c++) wanted += *c == ',';
    for (const char *c = strchr(csv, '\n') + 1; *c; c++) {
        commas += *c == ',';
        if (*c != '\n') continue;
        assert_int_equal(commas, wanted);
        commas = 0;
        rows++;
    }
    return rows;
}

/* A row per trial, a row per device, a row per step: no figure stands twice. */
static void holds_csv(const json_t *run, const char *dir)
{
    static const char *const heads[] = {",bucket_cap_bytes,", ",at_peak_replica_bytes,", "trial,launch,step,ms\n"};
    static const char *const names[] = {"trials", "devices", "steps"}, *const figures[] = {",step_mean_ms,",
                                                                                           ",device_step_ms,", ""};
    int wanted[3] = {0};
    EL_EACH(trial, json_object_get(run, "trials")) {
        wanted[0]++;
        wanted[1] += (int)json_array_size(json_object_get(trial, "per_device"));
        EL_EACH(repeat, json_object_get(trial, "repeats"))
            wanted[2] += (int)json_array_size(json_object_get(repeat, "step_ms"));
    }
    assert_int_equal(el_write_csv(run, dir), EL_OK);
    for (int f = 0; f < 3; f++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s.csv", dir, names[f]);
        char *csv = read_whole(path, NULL);
        assert_true(strstr(csv, heads[f]) && strstr(csv, figures[f]));
        if (f == 1) assert_null(strstr(csv, "samples_per_s"));
        assert_int_equal(rows_of(csv), wanted[f]);
        free(csv);
        unlink(path);
    }
}

/* A trial that ran out of memory, as it is recorded. */
static json_t *out_of_memory(void)
{
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:[], s:[{s:s, s:[]}]}", "mode", "dp", "devices", 2, "global_batch",
                     256, "status", "oom", "reason", "cpu:0 refused 25000000 bytes of grad", "per_device", "repeats",
                     "status", "oom", "step_ms");
}

static void test_readers(void **state)
{
    char dir[] = "/tmp/el-record-XXXXXX", path[256];
    json_t *first = kept_record(), *run = NULL, *again = NULL;
    assert_non_null(mkdtemp(dir));
    json_array_append_new(json_object_get(first, "trials"), out_of_memory());
    snprintf(path, sizeof path, "%s/results.json", dir);
    assert_int_equal(el_write_json(first, path), EL_OK); /* without its numbers' noise */
    json_decref(first);
    assert_int_equal(el_record_read(path, &run), EL_OK);
    assert_int_equal(el_write_json(run, path), EL_OK);
    assert_int_equal(el_record_read(path, &again), EL_OK);
    assert_true(json_equal(run, again)); /* every number survives */
    unlink(path);
    char *report = report_of(run);
    for (const char *line = report; *line != '\0'; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    assert_non_null(strstr(report, "10.4 MiB of optimizer state and 9.9 of buckets"));
    assert_non_null(strstr(report, "oom: cpu:0 refused"));
    free(report);
    holds_csv(run, dir);
    assert_int_equal(el_plot_data(run, dir), EL_OK);
    static const char *const files[] = {"memory", "throughput", "step", "utilization", "timeline"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s.dat", dir, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0); /* nothing temporary is left */
    json_decref(run);
    json_decref(again);
}

/* What did not finish is said; of modes that nobody asked for nothing is. */
static void test_report_of_little(void **state)
{
    json_t *trials = json_array(), *run = el_record_run(json_object(), trials);
    char *report = report_of(run);
    assert_null(strstr(report, "No statement about"));
    assert_null(strstr(report, "cannot be compared"));
    assert_non_null(strstr(report, "On a GPU"));
    free(report);
    json_array_append_new(trials, json_pack("{s:s, s:s, s:i}", "mode", "dp", "status", "failed", "devices", 2));
    json_array_append_new(trials, json_pack("{s:s, s:s, s:i}", "mode", "ddp", "status", "failed", "devices", 2));
    report = report_of(run);
    assert_non_null(strstr(report, "No statement about"));
    assert_non_null(strstr(report, "dp on two devices or more did"));
    assert_non_null(strstr(report, "dp and ddp cannot be compared: dp did not finish."));
    free(report);
    json_array_clear(trials);
    json_array_append_new(trials, json_pack("{s:s, s:s, s:i, s:[s], s:{s:f}}", "mode", "dp", "status", "ok", "devices",
                                            1, "device_names", "cuda:0", "throughput", "samples_per_s", 9.0));
    report = report_of(run);
    assert_non_null(strstr(report, "--devices cuda:0,cuda:0 runs it on one GPU"));
    free(report);
    json_decref(run);
}

static void test_names_and_texts_of_others(void **state)
{
    static const char text[] =
        "{\"schema\": 2, \"trials\": [{\"a\\u001b[31m\": {\"b\\n::error::\": \"c\\u009b\"}}], \"d\": 1}";
    json_t *run = read_text(text, EL_OK);
    assert_string_equal(el_json_text(run, "trials.0.a?[31m.b?::error::", "none"), "c?");
    assert_int_equal(json_object_size(el_json_at(run, "trials.0")), 1);
    assert_int_equal(el_json_whole(run, "d"), 1);
    json_decref(run);
}

static void test_bad_files(void **state)
{
    json_t *run = read_text("{\"schema\": 2,\n oops", EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "line 2"));
    read_text("{\"schema\": 1, \"trials\": []}", EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "schema 1"));
    read_text("{\"schema\": 99, \"trials\": []}", EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "take a newer evenload"));
    read_text("{\"schema\": 1e300, \"trials\": []}", EL_ERR_INVALID);
    static const char *const devices[] = {"-2", "9223372036854775807", "2.5", "\"2\""};
    for (int i = 0; i < 4; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"schema\": 2, \"trials\": [{\"devices\": 2}, {\"devices\": %s}]}", devices[i]);
        read_text(text, EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "a trial's 'devices' is no number from 0 to"));
    }
    assert_int_equal(el_record_read("/tmp/no-such-record", &run), EL_ERR_IO);
    json_t *document = json_object();
    assert_int_equal(el_write_json(document, "/nonexistent/results.json"), EL_ERR_IO);
    assert_int_equal(el_print_json(document, stderr), EL_OK);
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        assert_int_equal(el_print_json(document, full), EL_ERR_NO_ROOM);
        fclose(full);
    }
    json_decref(document);
}

/* The page has a row for each of the program's, in the same words where both have them, and says how it is measured and
 * made. */
static void test_metrics_page(void **state)
{
    char *page = read_whole("docs/metrics.md", NULL), row[256], words[2][256];
    for (const struct el_metric *m = el_metric_list(); m->name != NULL; m++) {
        snprintf(row, sizeof row, "\n| `%s` | %s | %s | ", m->name, m->unit, el_better_text(m->better));
        const char *at = strstr(page, row);
        if (at == NULL) fail_msg("docs/metrics.md does not have this row as it is in metrics.c:%s", row);
        if (sscanf(at + strlen(row), "%255[^|\n] | %255[^|\n]", words[0], words[1]) != 2)
            fail_msg("docs/metrics.md does not say how %s is measured, and its formula", m->name);
    }
    free(page);
}

static void test_environment(void **state)
{
    json_t *e = el_environment();
    assert_true(el_json_number(e, "cores_online") >= 1 && el_json_number(e, "memory_bytes") > 1e6);
    assert_true(json_array_size(json_object_get(e, "affinity")) >= 1);
    assert_true(strlen(el_json_text(e, "time_utc", "")) == 20);
    json_decref(e);
}

/* In place: runs of blanks and ends of lines become one blank. */
static void unwrap(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (!isspace((unsigned char)*at))
            *to++ = *at;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
}

/* A sample's activations are the model's: equal in every mode and at every batch, wherever the peak lies. The reference
 * run's trials, each as a run of its own. */
static void test_activations_a_sample(void **state)
{
    json_t *run = NULL;
    assert_int_equal(el_record_read("results/reference/cpu-2-cores/results.json", &run), EL_OK);
    assert_true(json_array_size(json_object_get(run, "trials")) >= 9);
    EL_EACH(trial, json_object_get(run, "trials")) {
        json_t *alone = json_pack("{s:[O]}", "trials", trial);
        char *report = report_of(alone);
        unwrap(report);
        if (!strstr(report, " 0.13 MiB of activations per local sample"))
            fail_msg("%s, batch %.0f: %s", el_json_text(trial, "mode", "?"), el_json_number(trial, "global_batch"),
                     report);
        free(report);
        json_decref(alone);
    }
    json_decref(run);
}

RUN_TESTS(NULL, NULL, test_readers, test_report_of_little, test_names_and_texts_of_others, test_bad_files,
          test_metrics_page, test_environment, test_activations_a_sample)
