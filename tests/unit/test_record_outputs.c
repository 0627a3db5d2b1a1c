/* One figure in every output: table, CSV, the data of plots and a session of the store say what the record says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/report/report.h"
#include "tests/test.h"
#include "tests/unit/printed.h"
#include "tests/unit/record_checks.h"
#include "tests/unit/record_trials.h"
#include "tests/unit/whole_files.h"

static char *file_of(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *text = read_whole(path, NULL);
    unlink(path);
    return text;
}

/* The cell of that column in the first row. */
static const char *cell_of(const char *csv, const char *column)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",%s,", column);
    const char *head = strstr(csv, wanted), *cell = strchr(csv, '\n');
    assert_non_null(head);
    for (const char *c = csv; c <= head; c++)
        if (*c == ',') cell = strchr(cell + 1, ',');
    return cell + 1;
}

static void near_text(const char *text, double wanted)
{
    double got = strtod(text, NULL);
    if (!(fabs(got - wanted) < 1e-9 * wanted)) fail_msg("%.40s, not %.12g", text, wanted);
}

/* The record's integers end at 2^63 - 1: above it a seed is a text, in JSON and CSV the same digits. */
static void a_seed_is_recorded_as_itself(void **state)
{
    char dir[] = "/tmp/el-record-XXXXXX";
    struct el_trial trial = trial_of("dp", 2);
    trial.train.seed = UINT64_MAX;
    json_t *repeats = repeats_of(1, 2), *t = el_record_trial(&trial, "", repeats),
           *run = json_pack("{s:[O]}", "trials", t);
    assert_string_equal(el_json_text(t, "seed", ""), "18446744073709551615");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_write_csv(run, dir), EL_OK);
    char *csv = file_of(dir, "trials.csv");
    assert_int_equal(strncmp(cell_of(csv, "seed"), "18446744073709551615,", 21), 0);
    free(csv);
    free(file_of(dir, "devices.csv"));
    free(file_of(dir, "steps.csv"));
    assert_int_equal(rmdir(dir), 0);
    json_decref(run);
    json_decref(t);
    trial.train.seed = 7;
    t = el_record_trial(&trial, "", repeats);
    assert_true(json_integer_value(json_object_get(t, "seed")) == 7);
    json_decref(t);
    json_decref(repeats);
}

/* Launches as --min-time makes them: the faster, the more steps. Each step lasts its launch's mean, 1 ms more or less.
 */
static json_t *uneven_launches(void)
{
    static const int steps[] = {11, 28, 10, 11, 46};
    static const double mean_ms[] = {60, 26, 65, 61, 15};
    json_t *repeats = repeats_of(5, 2);
    for (size_t k = 0; k < 5; k++) {
        json_t *repeat = json_array_get(repeats, k), *step_ms = json_array();
        for (int i = 0; i < steps[k]; i++) json_array_append_new(step_ms, json_real(mean_ms[k]));
        json_object_set_new(repeat, "step_ms", step_ms);
    }
    return repeats;
}

/* The end of the highest bar in plots/step.dat: the last column of any row of numbers. */
static double highest(const char *data)
{
    double most = 0, x[5];
    for (const char *line = data; *line; line += strcspn(line, "\n") + 1)
        if (sscanf(line, "%lf %lf %lf %lf %lf", &x[0], &x[1], &x[2], &x[3], &x[4]) == 5) most = fmax(most, x[4]);
    return most;
}

/* The length of the first bar's part. */
static double drawn(const char *data, const char *part)
{
    double x[5];
    char name[16];
    for (const char *line = data; *line; line += strcspn(line, "\n") + 1)
        if (sscanf(line, "%lf %lf %lf %lf %lf %15s", &x[0], &x[1], &x[2], &x[3], &x[4], name) == 6 &&
            !strcmp(name, part))
            return x[4] - x[3];
    return NAN;
}

/* The geometric mean of the launches' mean steps is 39.2 ms; over all 106 steps as one it would be 32.1, their
 * median 26. */
static void all_outputs_give_the_same_step(void **state)
{
    char dir[] = "/tmp/el-record-XXXXXX", wanted[64], figure[EL_FIGURE_BYTES], *table = NULL;
    size_t bytes;
    const double step = pow(60.0 * 26 * 65 * 61 * 15, 0.2), rate = 64e3 / step;
    struct el_trial trial = trial_of("ddp", 2);
    json_t *repeats = uneven_launches(), *t = el_record_trial(&trial, "", repeats);
    json_t *run = el_record_run(json_object(), json_pack("[O]", t));
    FIGURES(t, {"step_ms.mean", step}, {"step_ms.median", step}, {"step_ms.p95", step},
            {"throughput.samples_per_s", rate});
    json_t *session = el_session_of(run, t, "here");
    FIGURES(session, {"figures.step_mean_ms.value", step}, {"figures.step_median_ms.value", step},
            {"figures.samples_per_s.value", rate});
    FILE *out = open_memstream(&table, &bytes);
    el_report_table(run, out);
    fclose(out);
    for (int i = 0; i < 2; i++) {
        snprintf(wanted, sizeof wanted, " %s ", el_text_figure(i ? step : rate, figure)); /* 1,632 samples/s; 39.2 ms */
        if (!strstr(table, wanted)) fail_msg("no%sin:\n%s", wanted, table);
    }
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_write_csv(run, dir), EL_OK);
    char *csv = file_of(dir, "trials.csv"), *lines = file_of(dir, "steps.csv");
    near_text(cell_of(csv, "step_mean_ms"), step);
    near_text(cell_of(csv, "step_median_ms"), step);
    near_text(cell_of(csv, "samples_per_s"), rate);
    assert_non_null(strstr(lines, "t-0123456789abcdef,4,45,15\n"));
    free(file_of(dir, "devices.csv"));
    free(csv);
    free(lines);
    /* Each a median for itself: the figure has those of the table. */
    json_object_update_new(json_object_get(t, "comm"),
                           json_pack("{s:f, s:f, s:f, s:f}", "overlapped_ms", 0.9, "exposed_ms", 1.5, "wait_ms", 0.8,
                                     "wait_exposed_ms", 0.3));
    assert_int_equal(el_plot_data(run, dir), EL_OK);
    char *data = file_of(dir, "step.dat");
    assert_true(fabs(highest(data) - step) < 1e-4 * step);
    assert_true(fabs(drawn(data, "comm") - 1.2) < 1e-3 && fabs(drawn(data, "wait") - 0.3) < 1e-3);
    static const char *const rest[] = {"memory.dat", "throughput.dat", "utilization.dat"};
    for (size_t i = 0; i < 3; i++) free(file_of(dir, rest[i]));
    assert_int_equal(rmdir(dir), 0);
    free(data);
    free(table);
    json_decref(session);
    json_decref(run);
    json_decref(t);
    json_decref(repeats);
}

static void print_processes(const json_t *run, FILE *out)
{
    el_report_processes(run, out);
}

/* Of the first line that begins so. */
static size_t width_of(const char *text, const char *beginning)
{
    const char *line = strstr(text, beginning);
    assert_non_null(line);
    return strcspn(line, "\n");
}

/* A trial on one device beside one on two: what its host holds stands under the host's head. */
static void figures_of_the_host_stand_in_one_column(void **state)
{
    static const char per_device[] = "{'device': 'cpu:0', 'memory': {'driver_bytes': 1048576, 'peak_bytes': 1048576}}";
    char words[1024];
    snprintf(
        words, sizeof words,
        "{'trials': [{'mode': 'single', 'global_batch': 8, 'per_device': [%s], 'processes': [{'rank': 0, 'pid': 7, "
        "'per_device_bytes': [1048576], 'process_bytes': 5242880}]}, {'mode': 'dp', 'global_batch': 8, "
        "'per_device': [%s, %s], 'processes': []}]}",
        per_device, per_device, per_device);
    for (char *c = words; *c; c++)
        if (*c == '\'') *c = '"';
    json_t *run = json_loads(words, 0, NULL);
    assert_non_null(run);
    char *text = printed(print_processes, run);
    assert_int_equal(width_of(text, "mode, batch"), width_of(text, "single 8"));
    free(text);
    json_decref(run);
}

RUN_TESTS(NULL, NULL, all_outputs_give_the_same_step, a_seed_is_recorded_as_itself,
          figures_of_the_host_stand_in_one_column)
