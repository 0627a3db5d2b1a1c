/* Records as files: the kept v1 record through every reader, files that are no records, the page of metrics, and what a
 * record says of the machine. */
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
#include "tests/unit/whole_files.h"

static const char V1[] = "tests/unit/data/record-v1.json";

/* A reader of schema 1 must find every one of these in every record, for good. */
static void test_v1_names(void **state)
{
    static const char names[] =
        "id mode model devices procs dtype global_batch batch_per_device.0 seed optimizer order command status reason "
        "verdict warnings throughput.samples_per_s throughput.ci95.1 throughput.ci_reason step_ms.median step_ms.mean "
        "step_ms.p95 repeats.0.order repeats.0.step_ms.0 repeats.0.warmup_step_ms.0 phases_ms.data phases_ms.h2d "
        "phases_ms.replicate phases_ms.scatter phases_ms.forward phases_ms.gather phases_ms.loss phases_ms.backward "
        "phases_ms.reduce phases_ms.comm phases_ms.optimizer slowest_member idle_ms comm.bytes comm.total_ms "
        "comm.overlapped_ms comm.exposed_ms comm.overlap_pct comm.exposed_step_ms comm.contention_ms "
        "per_device.0.device per_device.0.host per_device.0.rank per_device.0.pid per_device.0.uuid "
        "per_device.0.memory.peak_bytes per_device.0.memory.at_peak_by_tag.param per_device.0.memory.peak_by_tag.param "
        "per_device.0.memory.driver_bytes per_device.0.memory.unattributed_bytes per_device.0.utilization.busy_pct "
        "per_device.0.utilization.system_pct per_device.0.utilization.source per_device.0.busy_ms.forward "
        "per_device.0.sent_bytes per_device.0.received_bytes processes.0.pid processes.0.rank "
        "processes.0.per_device_bytes.0 processes.0.process_bytes imbalance.memory.max_over_mean_minus_1 "
        "imbalance.memory.imbalance_pct imbalance.memory.lb imbalance.memory.cv imbalance.memory.first_over_rest "
        "imbalance.busy.lb imbalance.bytes.lb loss.0 epochs accuracy";
    json_t *run = NULL;
    assert_int_equal(el_record_read(V1, &run), EL_OK);
    const json_t *ddp = el_json_at(run, "trials.2");
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ') {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        if (el_json_at(ddp, name) == NULL) fail_msg("the record has no %s", name);
    }
    for (size_t d = 0; d < 2; d++) {
        const json_t *memory = el_json_at(el_json_at(ddp, d == 0 ? "per_device.0" : "per_device.1"), "memory");
        double sum = 0;
        EL_EACH_KEY(key, value, json_object_get(memory, "at_peak_by_tag")) sum += json_number_value(value);
        assert_true(el_json_number(memory, "peak_bytes") == sum); /* whole bytes: exact */
    }
    json_decref(run);
}

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

/* Every name of schema 1 that changed (docs/record.md), read by its name of today. */
static void a_record_of_schema_1_has_the_names_of_schema_2(void **state)
{
    static const char v1[] =
        "{\"schema\": 1, \"environment\": {\"cpu_library_lack\": \"L\"}, \"trials\": [{\"warning_rules\": [\"own\", "
        "\"planted\", \"unlike_cores\", \"unlike_memory\", \"unlike_machines\", \"drift\"],\"per_device\": [{\"gpu\": "
        "{\"looks\": 7}, \"ops\": [{\"op\": \"x\", \"how\": \"H\"}]}],\"repeats\": [{\"system\": {\"unlike_machines\": "
        "[\"U\"]}}]}]}";
    static const struct {
        const char *path, *text;
    } now[] = {{"environment.cpu_library_reason", "L"},
               {"trials.0.warning_rules.0", "reported"},
               {"trials.0.warning_rules.1", "injected"},
               {"trials.0.warning_rules.2", "heterogeneous_cores"},
               {"trials.0.warning_rules.3", "heterogeneous_memory"},
               {"trials.0.warning_rules.4", "heterogeneous_machines"},
               {"trials.0.warning_rules.5", "drift"},
               {"trials.0.per_device.0.ops.0.implementation", "H"},
               {"trials.0.repeats.0.system.machine_differences.0", "U"}};
    json_t *run = read_text(v1, EL_OK);
    for (size_t i = 0; i < sizeof now / sizeof now[0]; i++)
        assert_string_equal(el_json_text(run, now[i].path, "(none)"), now[i].text);
    assert_true(el_json_number(run, "trials.0.per_device.0.gpu.samples") == 7);
    assert_true(el_json_number(run, "schema") == EL_SCHEMA);
    assert_null(el_json_at(run, "trials.0.per_device.0.ops.0.how"));
    json_decref(run);
}

static char *report_of(const json_t *run)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    el_report_table(run, out, false);
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

/* A row a trial, a row a device, a row a step: no figure stands twice. */
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

static void test_v1_readers(void **state)
{
    char dir[] = "/tmp/el-record-XXXXXX", path[256];
    json_t *first = NULL, *run = NULL, *again = NULL;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_record_read(V1, &first), EL_OK);
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
    assert_non_null(strstr(report, "23.8 MiB of parameters and 23.8 of gradients"));
    assert_non_null(strstr(report, "oom: cpu:0 refused"));
    free(report);
    holds_csv(run, dir);
    assert_int_equal(el_plot_data(run, dir), EL_OK);
    static const char *const files[] = {"memory", "throughput", "step", "utilization"};
    for (size_t i = 0; i < 4; i++) {
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
    json_t *run = read_text("{\"schema\": 1,\n oops", EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "line 2"));
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

RUN_TESTS(NULL, NULL, test_v1_names, a_record_of_schema_1_has_the_names_of_schema_2, test_v1_readers,
          test_report_of_little, test_names_and_texts_of_others, test_bad_files, test_metrics_page, test_environment,
          test_activations_a_sample)
