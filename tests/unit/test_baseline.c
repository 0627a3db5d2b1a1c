/* The stored baseline: the level that sittings make and how often a gate by it errs; files that writers share, that
 * were cut off, or are none; a run held against them. The command is in tests/cli/baseline.bats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/options/config.h"
#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/baseline.h"
#include "bench/regress/level.h"
#include "bench/regress/runs.h"
#include "tests/unit/test_random_common.h"

static void near(double value, double wanted, double within)
{
    if (!(fabs(value - wanted) <= within)) fail_msg("%.12g is not %.12g within %g", value, wanted, within);
}

/* ---- levels ---- */

static void a_level_of_one_era(void **state)
{
    (void)state;
    const double values[] = {10, 10.1, 9.9, 10.05, 9.95, 10, 10.02, 9.98};
    const bool accepted[8] = {false};
    double logs = 0, squares = 0;
    struct el_level level;
    el_level_of(values, accepted, 8, &level);
    for (int i = 0; i < 8; i++) logs += log(values[i]) / 8;
    for (int i = 0; i < 8; i++) squares += (log(values[i]) - logs) * (log(values[i]) - logs);
    assert_int_equal(level.n, 8);
    assert_int_equal(level.n_era, 8);
    assert_int_equal(level.n_far, 0);
    assert_int_equal(level.needs, 0);
    near(level.centre, exp(logs), 1e-12);
    near(level.sd_ratio, sqrt(squares / 7), 1e-12);
    for (int i = 0; i < 8; i++) near(level.values[i], values[i], 1e-12);
}

static void few_sittings(void **state)
{
    (void)state;
    const double values[] = {10, 11, 12};
    const bool accepted[3] = {false};
    struct el_level level;
    el_level_of(values, accepted, 0, &level);
    assert_int_equal(level.n, 0);
    assert_int_equal(level.needs, EL_LEVEL_SITTINGS_MIN);
    assert_true(isnan(level.centre) && isnan(level.sd_ratio));
    el_level_of(values, accepted, 1, &level);
    near(level.centre, 10, 1e-12);
    assert_true(isnan(level.sd_ratio));
    el_level_of(values, accepted, 3, &level);
    assert_int_equal(level.needs, EL_LEVEL_SITTINGS_MIN - 3);
}

static void only_the_last_thirty_count(void **state)
{
    (void)state;
    double values[100];
    const bool accepted[100] = {false};
    struct el_level level;
    for (int i = 0; i < 100; i++) values[i] = i < 70 ? 50 : 10 + 0.01 * (i % 3);
    el_level_of(values, accepted, 100, &level);
    assert_int_equal(level.n, EL_LEVEL_SITTINGS_MAX);
    assert_int_equal(level.n_far, 0);
    near(level.centre, 10.01, 0.001);
    near(level.values[29], 10 + 0.01 * (99 % 3), 1e-12);
}

static void what_is_far_does_not_count(void **state)
{
    (void)state;
    double values[12] = {10, 10.1, 9.9, 10.05, 9.95, 10, 10.02, 9.98, 10, 10.1, 9.9, 30};
    const bool accepted[12] = {false};
    bool far[12];
    struct el_level level;
    el_level_of(values, accepted, 12, &level);
    assert_int_equal(level.n, 11);
    assert_int_equal(level.n_far, 1);
    assert_true(level.last_far);
    near(level.centre, 10, 0.02);
    values[11] = 10, values[3] = 3;
    el_level_of(values, accepted, 12, &level);
    assert_int_equal(level.n_far, 1);
    assert_false(level.last_far);
    /* On a machine that hardly scatters 1 % is no reason to leave a sitting out; of seven none is. */
    for (int i = 0; i < 12; i++) values[i] = i == 11 ? 10.1 : 10 + 1e-4 * i;
    el_level_far(values, 12, far);
    assert_false(far[11]);
    values[6] = 30;
    el_level_far(values, 7, far);
    assert_false(far[6]);
}

/* After an accepted sitting the level is its own, the scatter that of before, stretched for what one sitting tells. */
static void an_accepted_sitting_begins_an_era(void **state)
{
    (void)state;
    enum { N = 13 };
    double values[N], squares = 0;
    bool accepted[N] = {false};
    struct el_level level, before;
    for (int i = 0; i < N - 1; i++) values[i] = 10 * exp(i % 2 ? 0.01 : -0.01);
    values[N - 1] = 15;
    accepted[N - 1] = true;
    el_level_of(values, accepted, N - 1, &before);
    el_level_of(values, accepted, N, &level);
    assert_int_equal(level.n, N);
    assert_int_equal(level.n_era, 1);
    assert_int_equal(level.needs, 0);
    near(level.centre, 15, 1e-12);
    near(level.sd_ratio, before.sd_ratio, 1e-12);
    /* What a rule makes of the values is the interval of a sitting about one sitting: s sqrt(1 + 1/1). */
    for (int i = 0; i < N; i++) squares += log(level.values[i] / 15) * log(level.values[i] / 15);
    near(sqrt(squares / (N - 1)) * sqrt(1 + 1.0 / N), before.sd_ratio * sqrt(2), 1e-12);
    /* Eight of the new era are enough by themselves. */
    double many[20];
    bool marks[20] = {false};
    for (int i = 0; i < 20; i++) many[i] = i < 12 ? 99 : 10 + 0.01 * i;
    marks[12] = true;
    el_level_of(many, marks, 20, &level);
    assert_int_equal(level.n, 8);
    assert_int_equal(level.n_era, 8);
    near(level.values[0], 10.12, 1e-12);
}

/* One more sitting of the same machine and program, judged: was it called a regression? `tail`: one sitting in ten
 * scatters four times as much. */
static bool alarms(struct random *random, size_t before, size_t after, bool tail, double effect)
{
    double values[64];
    bool accepted[64] = {false};
    struct el_level level;
    struct el_regress_set set = {0};
    size_t n = before + after;
    for (size_t i = 0; i <= n; i++) {
        double cv = tail && random_uniform(random) < 0.1 ? 0.08 : 0.02;
        values[i] = (i < before && after ? 20 : 10) * exp(cv * random_normal(random));
    }
    if (after) accepted[before] = true;
    el_level_of(values, accepted, n, &level);
    struct el_regress_cell *cell = el_regress_add(&set, "cell");
    assert_non_null(cell);
    cell->kind = EL_CELL_HISTORY;
    cell->better = EL_BETTER_LOWER;
    for (size_t i = 0; i < level.n; i++) el_regress_cell_append(&cell->base, &cell->n_base, level.values[i]);
    el_regress_cell_append(&cell->head, &cell->n_head, effect * values[n]);
    el_regress_judge(&set);
    bool found = set.cells[0].verdict == EL_CELL_REGRESSION;
    el_regress_free(&set);
    return found;
}

static double rate(size_t before, size_t after, bool tail, double effect, int trials)
{
    struct random random = random_seeded(before * 100 + after * 10 + tail + 1);
    int hits = 0;
    for (int i = 0; i < trials; i++) hits += alarms(&random, before, after, tail, effect);
    return (double)hits / trials;
}

struct history {
    size_t before, after;
    bool tail;
};

/* Sittings that scatter by 2 %. A gate of one figure errs in 0.5 of 100 runs by its rule, and has to in fewer than 1;
 * what is left out as far makes the scatter look a little smaller. Where every tenth sitting scatters four times as
 * much no rule of this kind keeps that: 1.7 of 100 with nothing left out, 2 to 3 so, but twice as many regressions
 * found. */
static void false_alarms_and_power(void **state)
{
    (void)state;
    static const struct history histories[] = {{8, 0, false},  {12, 0, false}, {30, 0, false}, {12, 1, false},
                                               {30, 1, false}, {12, 3, false}, {8, 7, false},  {12, 8, false},
                                               {8, 0, true},   {12, 0, true},  {30, 0, true},  {30, 1, true}};
    if (getenv("EVENLOAD_SANITIZER")) skip(); /* arithmetic on arrays, which the tests below go through too */
    int trials = getenv("EVENLOAD_LONG") ? 100000 : 5000;
    for (size_t i = 0; i < sizeof histories / sizeof histories[0]; i++) {
        const struct history *h = &histories[i];
        double same = rate(h->before, h->after, h->tail, 1, trials);
        double worse = rate(h->before, h->after, h->tail, 1.1, trials / 10);
        print_message("%2zu sittings, %zu since accepted%s: alarms %.2f %%, +10 %% found in %.0f %%\n", h->before,
                      h->after, h->tail ? ", heavy tails" : "", 100 * same, 100 * worse);
        if (same > (h->tail ? 0.035 : 0.01)) fail_msg("%.2f %% of false alarms", 100 * same);
        if (worse < (h->before >= 12 && !h->tail && h->after != 1 ? 0.8 : 0.3)) fail_msg("found in %.2f", worse);
    }
}

/* ---- files ---- */

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/evenload-baseline-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command); // NOLINT(cert-env33-c,concurrency-mt-unsafe): a folder that this test made
}

static json_t *workload(void)
{
    return json_pack("{s:s, s:s, s:i, s:[s, s], s:{s:f}}", "mode", "dp", "model", "mlp", "global_batch", 8,
                     "device_names", "cpu:0", "cpu:1", "config", "lr", 0.1);
}

static json_t *sitting(const char *run, double value)
{
    return json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:f}}}", "time_utc", "2026-01-01T00:00:00Z", "run", run, "figures",
                     "step_median_ms", "unit", "ms", "better", "lower", "value", value);
}

static void append(const char *path, const char *run, double value, bool accepted)
{
    json_t *of = workload(), *what = sitting(run, value);
    if (accepted) json_object_set_new(what, "accepted", json_true());
    if (el_sittings_append(path, of, what) != EL_OK) fail_msg("%s", el_error_message());
    json_decref(of);
    json_decref(what);
}

/* How many sittings are in the file; lines that are none in *passed_over_p. */
static size_t count(const char *path, size_t *passed_over_p)
{
    json_t *sittings = NULL;
    if (el_sittings_read(path, NULL, NULL, &sittings, passed_over_p) != EL_OK) fail_msg("%s", el_error_message());
    size_t n = json_array_size(sittings);
    json_decref(sittings);
    return n;
}

static void a_file_is_found_again(void **state)
{
    (void)state;
    char path[EL_PATH_BYTES], again[EL_PATH_BYTES];
    bool exists = true;
    json_t *of = workload();
    assert_int_equal(el_sittings_path(dir, of, path, sizeof path, &exists), EL_OK);
    assert_false(exists);
    assert_non_null(strstr(path, "/dp-2-mlp-b8-"));
    append(path, "a", 1, false);
    /* A later version knows one field more of a configuration: the same workload. */
    json_object_set_new(json_object_get(of, "config"), "later", json_integer(1));
    assert_int_equal(el_sittings_path(dir, of, again, sizeof again, &exists), EL_OK);
    assert_true(exists);
    assert_string_equal(path, again);
    json_object_set_new(json_object_get(of, "config"), "lr", json_real(0.2));
    assert_int_equal(el_sittings_path(dir, of, again, sizeof again, &exists), EL_OK);
    assert_false(exists);
    assert_string_not_equal(path, again);
    json_decref(of);
}

static void a_run_is_kept_once(void **state)
{
    (void)state;
    char path[EL_PATH_BYTES];
    size_t passed_over;
    snprintf(path, sizeof path, "%s/once.jsonl", dir);
    append(path, "a", 1, false);
    append(path, "b", 2, false);
    append(path, "a", 1, false);
    assert_int_equal(count(path, &passed_over), 2);
    append(path, "a", 1, true);
    append(path, "a", 1, true);
    assert_int_equal(count(path, &passed_over), 3);
}

/* Six processes, fifteen sittings each, the same file that none has made: all are there, whole, below one header. */
static void writers_at_once_lose_nothing(void **state)
{
    (void)state;
    enum { WRITERS = 6, EACH = 15 };
    char path[EL_PATH_BYTES];
    size_t passed_over;
    snprintf(path, sizeof path, "%s/shared.jsonl", dir);
    for (int w = 0; w < WRITERS; w++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0) continue;
        for (int i = 0; i < EACH; i++) {
            char run[32];
            snprintf(run, sizeof run, "%d-%d", w, i);
            append(path, run, 1, false);
        }
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count(path, &passed_over), WRITERS * EACH);
    assert_int_equal(passed_over, 0);
}

/* Of old lines only what is asked for is read: who they were, and that they are there. */
static void a_long_history(void **state)
{
    (void)state;
    enum { N = 150 };
    char path[EL_PATH_BYTES], run[32];
    size_t passed_over;
    json_t *sittings = NULL, *of = workload();
    snprintf(path, sizeof path, "%s/long.jsonl", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    char *header = json_dumps(of, JSON_COMPACT);
    fprintf(file, "{\"schema\":1,\"workload\":%s}\n", header);
    for (int i = 0; i < N; i++) {
        snprintf(run, sizeof run, "r%d", i);
        json_t *what = sitting(run, 10 + 0.01 * (i % 2));
        if (i == 3) json_object_set_new(what, "accepted", json_true());
        char *line = json_dumps(what, JSON_COMPACT);
        fprintf(file, i == 7 ? "%.40s\n" : "%s\n", line);
        free(line);
        json_decref(what);
    }
    fclose(file);
    free(header);
    json_decref(of);
    assert_int_equal(el_sittings_read(path, NULL, NULL, &sittings, &passed_over), EL_OK);
    assert_int_equal(passed_over, 1);
    assert_int_equal(json_array_size(sittings), N - 1);
    assert_true(el_sittings_have(sittings, "r0", false) && el_sittings_have(sittings, "r3", true));
    assert_true(el_sittings_have(sittings, "r149", false) && !el_sittings_have(sittings, "r7", false));
    assert_string_equal(el_json_text(json_array_get(sittings, 3), "time_utc", ""), "2026-01-01T00:00:00Z");
    struct el_level level;
    assert_int_equal(el_sittings_level(sittings, "step_median_ms", "ms", NULL, &level), EL_OK);
    assert_int_equal(level.n, EL_LEVEL_SITTINGS_MAX);
    json_decref(sittings);
    append(path, "r0", 1, false);
    assert_int_equal(count(path, &passed_over), N - 1);
}

static void a_line_that_was_cut_off(void **state)
{
    (void)state;
    char path[EL_PATH_BYTES];
    size_t passed_over;
    struct stat info;
    snprintf(path, sizeof path, "%s/torn.jsonl", dir);
    append(path, "a", 1, false);
    append(path, "b", 2, false);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 20), 0);
    assert_int_equal(count(path, &passed_over), 1);
    assert_int_equal(passed_over, 1);
    append(path, "c", 3, false);
    assert_int_equal(count(path, &passed_over), 2);
    assert_int_equal(passed_over, 1);
}

/* As on a full disk: ten bytes of the line can be written, and then no more. */
static void what_cannot_be_written_whole_is_not_written(void **state)
{
    (void)state;
    char path[EL_PATH_BYTES];
    struct stat before, after;
    struct rlimit limit, less;
    size_t passed_over;
    json_t *of = workload(), *what = sitting("b", 2);
    snprintf(path, sizeof path, "%s/full.jsonl", dir);
    append(path, "a", 1, false);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    less = limit;
    less.rlim_cur = (rlim_t)before.st_size + 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    enum el_status status = el_sittings_append(path, of, what);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(status, EL_ERR_IO);
    assert_non_null(strstr(el_error_message(), "could not be written"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    append(path, "b", 2, false);
    assert_int_equal(count(path, &passed_over), 2);
    assert_int_equal(passed_over, 0);
    json_decref(of);
    json_decref(what);
}

static void what_is_no_file_of_sittings(void **state)
{
    (void)state;
    char path[EL_PATH_BYTES];
    json_t *of = workload(), *what = sitting("a", 1), *sittings = NULL;
    snprintf(path, sizeof path, "%s/other.jsonl", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"schema\": 1}\n", file);
    fclose(file);
    assert_int_equal(el_sittings_read(path, NULL, NULL, &sittings, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "line 1"));
    assert_int_equal(el_sittings_append(path, of, what), EL_ERR_INVALID);
    snprintf(path, sizeof path, "%s/none/such.jsonl", dir);
    assert_int_equal(el_sittings_read(path, NULL, NULL, &sittings, NULL), EL_ERR_IO);
    assert_int_equal(el_sittings_append(path, of, what), EL_ERR_IO);
    assert_null(sittings);
    json_decref(of);
    json_decref(what);
}

/* ---- a run and a store ---- */

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
    return el_baseline_add(store, run, accept, false, NULL);
}

static enum el_regress_exit judge(const char *name, const char *cell, struct el_regress_cell *cell_p)
{
    char store[EL_PATH_BYTES], run[EL_PATH_BYTES];
    struct el_regress_set set = {0};
    snprintf(store, sizeof store, "%s/store", dir);
    snprintf(run, sizeof run, "%s/%s", dir, name);
    if (el_regress_baseline(store, run, "", NULL, &set) != EL_OK) fail_msg("%s", el_error_message());
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

/* Eight sittings, the others of the three trials all alike: those have the floor of 2 % only. */
static void keep_eight(void)
{
    struct el_regress_cell cell;
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        write_run(name, i, i % 2 ? 1.004 : 0.996, PEAK_BYTES);
        if (add(name, false) != EL_OK) fail_msg("%s", el_error_message());
        write_run("now", 50, 1, PEAK_BYTES);
        enum el_regress_exit outcome = judge("now", STEP, &cell);
        assert_int_equal(outcome, i < 7 ? EL_REGRESS_NO_BASELINE : EL_REGRESS_NONE);
        if (i == 2)
            assert_string_equal(cell.reason, "3 sittings, and 8 are needed to know how far they scatter: 5 more "
                                             "by 'evenload baseline add'");
    }
    assert_int_equal(cell.kind, EL_CELL_HISTORY);
    assert_int_equal(cell.n_base, 8);
}

static void a_store_from_the_first_sitting_on(void **state)
{
    (void)state;
    struct el_regress_cell cell;
    keep_eight();
    assert_int_equal(add("r3", false), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "r3 is a sitting in"));
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

/* Added, and accepted later: two lines, one sitting. */
static void a_run_counts_once(void **state)
{
    (void)state;
    char path[EL_PATH_BYTES], run[16];
    struct el_level level;
    json_t *sittings = NULL;
    snprintf(path, sizeof path, "%s/twice.jsonl", dir);
    for (int i = 0; i < 9; i++) {
        snprintf(run, sizeof run, "r%d", i < 8 ? i : 7);
        append(path, run, 1 + 0.01 * i, i == 8);
    }
    assert_int_equal(el_sittings_read(path, NULL, NULL, &sittings, NULL), EL_OK);
    assert_int_equal(json_array_size(sittings), 9);
    assert_int_equal(el_sittings_level(sittings, "step_median_ms", "ms", NULL, &level), EL_OK);
    assert_int_equal(level.n, 8);
    assert_int_equal(level.n_era, 1);
    near(level.centre, 1.08, 1e-12);
    json_decref(sittings);
}

static void a_level_that_is_accepted(void **state)
{
    (void)state;
    struct el_regress_cell cell;
    write_run("slow", 52, 1.5, PEAK_BYTES + 64);
    assert_int_equal(judge("slow", STEP, &cell), EL_REGRESS_FOUND);
    assert_int_equal(add("slow", true), EL_OK);
    assert_int_equal(add("slow", true), EL_ERR_INVALID);
    write_run("again", 53, 1.501, PEAK_BYTES + 64);
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_NONE);
    near(cell.effect, 1.501 / 1.5, 1e-3);
    write_run("back", 54, 1, PEAK_BYTES + 64);
    assert_int_equal(judge("back", STEP, &cell), EL_REGRESS_NONE);
    assert_int_equal(cell.verdict, EL_CELL_IMPROVEMENT);
    write_run("slower", 55, 1.8, PEAK_BYTES + 64);
    assert_int_equal(judge("slower", STEP, &cell), EL_REGRESS_FOUND);
}

/* Replaces words in the only file of ddp. */
static void edit(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "sed -i 's/%s/%s/g' %s/store/*/ddp-*.jsonl", from, to, dir);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c,concurrency-mt-unsafe): files that this test made
}

static void another_unit_zero_and_no_number(void **state)
{
    (void)state;
    struct el_regress_cell cell;
    edit("\"unit\":\"ms\"", "\"unit\":\"s\"");
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_USE);
    assert_string_equal(cell.reason, "the unit is ms, and was s");
    edit("\"unit\":\"s\"", "\"unit\":\"ms\"");
    edit("\"value\":[0-9.]*,\"launches\"", "\"value\":0,\"launches\"");
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_USE);
    assert_string_equal(cell.reason, "the baseline's figure is 0, and must be above 0");
    edit("\"value\":0,\"launches\"", "\"value\":null,\"launches\"");
    assert_int_equal(judge("again", STEP, &cell), EL_REGRESS_USE);
    assert_non_null(strstr(cell.reason, "no number"));
}

static void a_machine_that_the_store_does_not_know(void **state)
{
    (void)state;
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
    assert_int_equal(el_regress_dirs(store, run, "", NULL, &set), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "differs in compiler gcc 12.2.0, then cc 9"));
    assert_non_null(strstr(el_error_message(), "--ab"));
    assert_int_equal(el_regress_dirs("/tmp/evenload-none-such", run, "", NULL, &set), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "no such folder yet"));
    el_regress_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_of_one_era),
        cmocka_unit_test(few_sittings),
        cmocka_unit_test(only_the_last_thirty_count),
        cmocka_unit_test(what_is_far_does_not_count),
        cmocka_unit_test(an_accepted_sitting_begins_an_era),
        cmocka_unit_test(false_alarms_and_power),
        cmocka_unit_test(a_file_is_found_again),
        cmocka_unit_test(a_run_is_kept_once),
        cmocka_unit_test(writers_at_once_lose_nothing),
        cmocka_unit_test(a_long_history),
        cmocka_unit_test(a_line_that_was_cut_off),
        cmocka_unit_test(what_cannot_be_written_whole_is_not_written),
        cmocka_unit_test(what_is_no_file_of_sittings),
        cmocka_unit_test(a_store_from_the_first_sitting_on),
        cmocka_unit_test(a_run_counts_once),
        cmocka_unit_test(a_level_that_is_accepted),
        cmocka_unit_test(another_unit_zero_and_no_number),
        cmocka_unit_test(a_machine_that_the_store_does_not_know),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
