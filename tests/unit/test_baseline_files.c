/* The stored baseline: files of sessions that writers share, that were cut off, or are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/regress/store.h"
#include "tests/unit/test_baseline_common.h"

static json_t *workload(void)
{
    return json_pack("{s:s, s:s, s:i, s:[s, s], s:{s:f}}", "mode", "dp", "model", "mlp", "global_batch", 8,
                     "device_names", "cpu:0", "cpu:1", "config", "lr", 0.1);
}

static json_t *session(const char *run, double value)
{
    return json_pack("{s:s, s:s, s:{s:{s:s, s:s, s:f}}}", "time_utc", "2026-01-01T00:00:00Z", "run", run, "figures",
                     "step_median_ms", "unit", "ms", "better", "lower", "value", value);
}

static void append(const char *path, const char *run, double value, bool accepted)
{
    json_t *of = workload(), *what = session(run, value);
    if (accepted) json_object_set_new(what, "accepted", json_true());
    if (el_sessions_append(path, of, what) != EL_OK) fail_msg("%s", el_error_message());
    json_decref(of);
    json_decref(what);
}

/* How many sessions are in the file; lines that are none in *skipped_p. */
static size_t count(const char *path, size_t *skipped_p)
{
    json_t *sessions = NULL;
    if (el_sessions_read(path, NULL, NULL, &sessions, skipped_p) != EL_OK) fail_msg("%s", el_error_message());
    size_t n = json_array_size(sessions);
    json_decref(sessions);
    return n;
}

static void a_file_is_found_again(void **state)
{
    char path[EL_PATH_BYTES], again[EL_PATH_BYTES];
    bool exists = true;
    json_t *of = workload();
    assert_int_equal(el_sessions_path(dir, of, path, sizeof path, &exists), EL_OK);
    assert_false(exists);
    assert_non_null(strstr(path, "/dp-2-mlp-b8-"));
    append(path, "a", 1, false);
    /* A later version knows one field more of a configuration: the same workload. */
    json_object_set_new(json_object_get(of, "config"), "later", json_integer(1));
    assert_int_equal(el_sessions_path(dir, of, again, sizeof again, &exists), EL_OK);
    assert_true(exists);
    assert_string_equal(path, again);
    json_object_set_new(json_object_get(of, "config"), "lr", json_real(0.2));
    assert_int_equal(el_sessions_path(dir, of, again, sizeof again, &exists), EL_OK);
    assert_false(exists);
    assert_string_not_equal(path, again);
    json_decref(of);
}

/* A copy that somebody made beside it is neither read nor written. */
static void a_copy_of_a_file_is_none(void **state)
{
    static const char *const copies[] = {".bak", "~", ".1"};
    char path[EL_PATH_BYTES], again[EL_PATH_BYTES], copy[EL_PATH_BYTES + 8];
    bool exists = true;
    json_t *of = workload();
    json_object_set_new(of, "model", json_string("copied"));
    assert_int_equal(el_sessions_path(dir, of, path, sizeof path, &exists), EL_OK);
    json_t *what = session("a", 1);
    assert_int_equal(el_sessions_append(path, of, what), EL_OK);
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        snprintf(copy, sizeof copy, "%s%s", path, copies[i]);
        assert_int_equal(rename(path, copy), 0);
        assert_int_equal(el_sessions_path(dir, of, again, sizeof again, &exists), EL_OK);
        assert_false(exists);
        assert_string_equal(again, path);
        assert_int_equal(rename(copy, path), 0);
        assert_false(el_sessions_is_file(copy));
    }
    assert_true(el_sessions_is_file(path));
    assert_false(el_sessions_is_file(".jsonl"));
    json_decref(of);
    json_decref(what);
}

static void a_run_is_kept_once(void **state)
{
    char path[EL_PATH_BYTES];
    size_t skipped;
    snprintf(path, sizeof path, "%s/once.jsonl", dir);
    append(path, "a", 1, false);
    append(path, "b", 2, false);
    append(path, "a", 1, false);
    assert_int_equal(count(path, &skipped), 2);
    append(path, "a", 1, true);
    append(path, "a", 1, true);
    assert_int_equal(count(path, &skipped), 3);
}

/* Added, and accepted later: two lines, one session. */
static void a_run_counts_once(void **state)
{
    char path[EL_PATH_BYTES], run[16];
    struct el_level level;
    json_t *sessions = NULL;
    snprintf(path, sizeof path, "%s/twice.jsonl", dir);
    for (int i = 0; i < 9; i++) {
        snprintf(run, sizeof run, "r%d", i < 8 ? i : 7);
        append(path, run, 1 + 0.01 * i, i == 8);
    }
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, NULL), EL_OK);
    assert_int_equal(json_array_size(sessions), 9);
    assert_int_equal(el_sessions_level(sessions, "step_median_ms", "ms", NULL, &level), EL_OK);
    assert_int_equal(level.n, 8);
    assert_int_equal(level.n_era, 1);
    near(level.centre, 1.08, 1e-12);
    json_decref(sessions);
}

static void read_level(const char *path, const char *except, struct el_level *level)
{
    json_t *sessions = NULL;
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, NULL), EL_OK);
    assert_int_equal(el_sessions_level(sessions, "step_median_ms", "ms", except, level), EL_OK);
    json_decref(sessions);
}

/* What is accepted begins an era, also where that session is left out or the figure is missing from it. */
static void an_acceptance_is_not_forgotten(void **state)
{
    char path[EL_PATH_BYTES], run[16];
    struct el_level level;
    json_t *sessions = NULL, *of = workload(), *no_figure = session("no figure", 1);
    snprintf(path, sizeof path, "%s/accepted.jsonl", dir);
    for (int i = 0; i < 9; i++) {
        snprintf(run, sizeof run, "r%d", i);
        append(path, run, 1 + 0.001 * i, false);
    }
    append(path, "R", 1.3, true);
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, NULL), EL_OK);
    assert_true(el_sessions_is_level(sessions, "R") && !el_sessions_is_level(sessions, "r8"));
    json_decref(sessions);
    read_level(path, "R", &level); /* of the level without R there is none */
    assert_int_equal(level.n, 0);
    append(path, "after", 1.31, false);
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, NULL), EL_OK);
    assert_false(el_sessions_is_level(sessions, "R") || el_sessions_is_level(sessions, "after"));
    json_decref(sessions);
    read_level(path, "R", &level);
    assert_int_equal(level.n_era, 1);
    near(level.centre, 1.31, 1e-12);
    json_object_clear(json_object_get(no_figure, "figures"));
    json_object_set_new(no_figure, "accepted", json_true());
    assert_int_equal(el_sessions_append(path, of, no_figure), EL_OK);
    append(path, "then", 2, false);
    read_level(path, NULL, &level);
    assert_int_equal(level.n_era, 1);
    near(level.centre, 2, 1e-12);
    json_decref(of);
    json_decref(no_figure);
}

/* Six processes, fifteen sessions each, the same file that none has made: all are there, whole, below one header. */
static void writers_at_once_lose_nothing(void **state)
{
    enum { WRITERS = 6, EACH = 15 };
    char path[EL_PATH_BYTES];
    size_t skipped;
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
    assert_int_equal(count(path, &skipped), WRITERS * EACH);
    assert_int_equal(skipped, 0);
}

/* Of old lines only what is asked for is read: who they were, and that they are there. */
static void a_long_history(void **state)
{
    enum { N = 150 };
    char path[EL_PATH_BYTES], run[32];
    size_t skipped;
    json_t *sessions = NULL, *of = workload();
    snprintf(path, sizeof path, "%s/long.jsonl", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    char *header = json_dumps(of, JSON_COMPACT);
    fprintf(file, "{\"schema\":1,\"workload\":%s}\n", header);
    for (int i = 0; i < N; i++) {
        snprintf(run, sizeof run, "r%d", i);
        json_t *what = session(run, 10 + 0.01 * (i % 2));
        if (i == 3) json_object_set_new(what, "accepted", json_true());
        char *line = json_dumps(what, JSON_COMPACT);
        fprintf(file, i == 7 ? "%.40s\n" : "%s\n", line);
        free(line);
        json_decref(what);
    }
    fclose(file);
    free(header);
    json_decref(of);
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, &skipped), EL_OK);
    assert_int_equal(skipped, 1);
    assert_int_equal(json_array_size(sessions), N - 1);
    assert_true(el_sessions_have(sessions, "r0", false) && el_sessions_have(sessions, "r3", true));
    assert_true(el_sessions_have(sessions, "r149", false) && !el_sessions_have(sessions, "r7", false));
    assert_string_equal(el_json_text(json_array_get(sessions, 3), "time_utc", ""), "2026-01-01T00:00:00Z");
    struct el_level level;
    assert_int_equal(el_sessions_level(sessions, "step_median_ms", "ms", NULL, &level), EL_OK);
    assert_int_equal(level.n, EL_LEVEL_SESSIONS_MAX);
    json_decref(sessions);
    append(path, "r0", 1, false);
    assert_int_equal(count(path, &skipped), N - 1);
}

static void a_line_that_was_cut_off(void **state)
{
    char path[EL_PATH_BYTES];
    size_t skipped;
    struct stat info;
    snprintf(path, sizeof path, "%s/torn.jsonl", dir);
    append(path, "a", 1, false);
    append(path, "b", 2, false);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 20), 0);
    assert_int_equal(count(path, &skipped), 1);
    assert_int_equal(skipped, 1);
    append(path, "c", 3, false);
    assert_int_equal(count(path, &skipped), 2);
    assert_int_equal(skipped, 1);
}

/* As on a full disk: ten bytes of the line can be written, and then no more. */
static void what_cannot_be_written_whole_is_not_written(void **state)
{
    char path[EL_PATH_BYTES];
    struct stat before, after;
    struct rlimit limit, less;
    size_t skipped;
    json_t *of = workload(), *what = session("b", 2);
    snprintf(path, sizeof path, "%s/full.jsonl", dir);
    append(path, "a", 1, false);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    less = limit;
    less.rlim_cur = (rlim_t)before.st_size + 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    enum el_status status = el_sessions_append(path, of, what);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(status, EL_ERR_IO);
    assert_non_null(strstr(el_error_message(), "could not be written"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    append(path, "b", 2, false);
    assert_int_equal(count(path, &skipped), 2);
    assert_int_equal(skipped, 0);
    json_decref(of);
    json_decref(what);
}

static void what_is_no_file_of_sessions(void **state)
{
    char path[EL_PATH_BYTES];
    json_t *of = workload(), *what = session("a", 1), *sessions = NULL;
    snprintf(path, sizeof path, "%s/other.jsonl", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"schema\": 1}\n", file);
    fclose(file);
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "line 1"));
    assert_int_equal(el_sessions_append(path, of, what), EL_ERR_INVALID);
    snprintf(path, sizeof path, "%s/none/such.jsonl", dir);
    assert_int_equal(el_sessions_read(path, NULL, NULL, &sessions, NULL), EL_ERR_IO);
    assert_int_equal(el_sessions_append(path, of, what), EL_ERR_IO);
    assert_null(sessions);
    json_decref(of);
    json_decref(what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_found_again),
        cmocka_unit_test(a_copy_of_a_file_is_none),
        cmocka_unit_test(a_run_is_kept_once),
        cmocka_unit_test(a_run_counts_once),
        cmocka_unit_test(an_acceptance_is_not_forgotten),
        cmocka_unit_test(writers_at_once_lose_nothing),
        cmocka_unit_test(a_long_history),
        cmocka_unit_test(a_line_that_was_cut_off),
        cmocka_unit_test(what_cannot_be_written_whole_is_not_written),
        cmocka_unit_test(what_is_no_file_of_sessions),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
