/* The stored baseline: sessions that count; records that writers share, that cannot be written, or are none; what tells
 * one machine from another, and one workload, on the kept record and on changed copies of it. */
#include "tests/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/machine/host.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "tests/unit/kept_record.h"
#include "tests/unit/near.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

/* ---- which sessions count ---- */

static void append(json_t *sessions, const char *run, double value, bool accepted)
{
    json_array_append_new(sessions,
                          json_pack("{s:s, s:b, s:{s:{s:s, s:s, s:f}}}", "run", run, "accepted", accepted, "figures",
                                    "step_median_ms", "unit", "ms", "better", "lower", "value", value));
}

static struct el_level level_of(const json_t *sessions, const char *except)
{
    struct el_level level;
    assert_int_equal(el_sessions_level(sessions, "step_median_ms", "ms", except, &level), EL_OK);
    return level;
}

/* `n` sessions that are alike, r0 and so on. */
static json_t *alike(int n)
{
    json_t *sessions = json_array();
    for (int i = 0; i < n; i++) {
        char run[16];
        snprintf(run, sizeof run, "r%d", i);
        append(sessions, run, 1 + 0.001 * (i % 2), false);
    }
    return sessions;
}

/* Added, and accepted later: two entries, one session. */
static void a_run_counts_once(void **state)
{
    json_t *sessions = alike(8);
    append(sessions, "r7", 1.08, true);
    struct el_level level = level_of(sessions, NULL);
    assert_int_equal(level.n, 8);
    assert_int_equal(level.n_era, 1);
    near(level.centre, 1.08, 1e-12);
    struct el_standing first = el_sessions_standing(sessions, "r0"), last = el_sessions_standing(sessions, "r7");
    assert_true(first.there && !first.accepted && last.there && last.accepted && last.is_level);
    assert_false(el_sessions_standing(sessions, "r8").there);
    json_decref(sessions);
}

static bool is_level(const json_t *sessions, const char *run)
{
    return el_sessions_standing(sessions, run).is_level;
}

/* What is accepted begins an era, also where that session is left out or the figure is missing from it. */
static void an_acceptance_is_not_forgotten(void **state)
{
    json_t *sessions = alike(9);
    append(sessions, "R", 1.3, true);
    assert_true(is_level(sessions, "R") && !is_level(sessions, "r8"));
    assert_int_equal(level_of(sessions, "R").n, 0); /* of the level without R there is none */
    append(sessions, "after", 1.31, false);
    assert_false(is_level(sessions, "R") || is_level(sessions, "after"));
    struct el_level level = level_of(sessions, "R");
    assert_int_equal(level.n_era, 1);
    near(level.centre, 1.31, 1e-12);
    append(sessions, "no figure", 1, true);
    json_object_clear(el_json_at(sessions, "11.figures"));
    append(sessions, "then", 2, false);
    level = level_of(sessions, NULL);
    assert_int_equal(level.n_era, 1);
    near(level.centre, 2, 1e-12);
    json_decref(sessions);
}

/* ---- records ---- */

/* Adds launches of a program, which printed `value`, to the store; `run` tells them from others. */
static enum el_status add(const char *store, const char *run, double value)
{
    char of_run[EL_PATH_BYTES], path[EL_PATH_BYTES * 2];
    json_t *document = json_pack("{s:i, s:{s:s}, s:s, s:[{s:s, s:s, s:[], s:{s:{s:s, s:s, s:f}}}]}", "schema", 2,
                                 "environment", "machine", "x86", "run_id", run, "trials", "program", "train", "status",
                                 "ok", "gpus", "figures", "step", "unit", "ms", "better", "lower", "value", value);
    snprintf(of_run, sizeof of_run, "%s/run-%s", folder, run);
    snprintf(path, sizeof path, "%s/program.json", of_run);
    mkdir(of_run, 0777);
    assert_int_equal(el_write_json(document, path), EL_OK);
    json_decref(document);
    return el_baseline_add(store, of_run, false, false);
}

/* How many sessions of the program a store has. */
static size_t count(const char *store)
{
    json_t *machines = NULL;
    if (el_store_read(store, &machines) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(json_array_size(machines), 1);
    assert_int_equal(json_array_size(el_json_at(machines, "0.workloads")), 1);
    size_t n = json_array_size(el_json_at(machines, "0.workloads.0"));
    json_decref(machines);
    return n;
}

/* Six processes, fifteen sessions each, in a folder that none has made: all are there. */
static void writers_at_once_lose_nothing(void **state)
{
    enum { WRITERS = 6, EACH = 15 };
    char store[EL_PATH_BYTES];
    snprintf(store, sizeof store, "%s/shared", folder);
    for (int w = 0; w < WRITERS; w++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0) continue;
        for (int i = 0; i < EACH; i++) {
            char run[32];
            snprintf(run, sizeof run, "%d-%d", w, i);
            if (add(store, run, 1) != EL_OK) _exit(1);
        }
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count(store), WRITERS * EACH);
}

/* As on a full disk: some bytes of the record can be written, and then no more. */
static void what_cannot_be_written_whole_is_not_written(void **state)
{
    char store[EL_PATH_BYTES];
    struct rlimit limit, less;
    snprintf(store, sizeof store, "%s/full", folder);
    assert_int_equal(add(store, "a", 1), EL_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    less = limit;
    less.rlim_cur = 600; /* more than program.json has, less than the record */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    enum el_status status = add(store, "b", 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(status, EL_ERR_IO);
    assert_non_null(strstr(el_error_message(), "could not be written"));
    assert_int_equal(count(store), 1);
    assert_int_equal(add(store, "b", 2), EL_OK);
    assert_int_equal(count(store), 2);
}

/* A copy that somebody made of a record is neither read nor counted; what is no record, or of an older form, is said.
 */
static void what_is_no_record(void **state)
{
    static const char of_trials[] = "{\"schema\": 2, \"trials\": []}";
    char store[EL_PATH_BYTES], path[EL_PATH_BYTES * 2];
    json_t *machines = NULL;
    snprintf(store, sizeof store, "%s/odd", folder);
    assert_int_equal(add(store, "odd", 1), EL_OK);
    snprintf(path, sizeof path, "%s/0123456789abcdef-1.json.bak", store);
    put_file(folder, path, "{}", 2);
    assert_int_equal(count(store), 1);
    snprintf(path, sizeof path, "%s/0123456789abcdef-1.json", store);
    put_file(folder, path, of_trials, strlen(of_trials));
    assert_int_equal(el_store_read(store, &machines), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "-1.json is no record of a baseline"));
    assert_int_equal(add(store, "more", 1), EL_ERR_INVALID);
    assert_int_equal(remove(path), 0);
    assert_null(machines);
}

/* ---- fingerprints ---- */

/* Compares, and lets go of `other`. */
static bool is_same_machine(const json_t *run, json_t *other)
{
    json_t *a = el_fingerprint_of(run), *b = el_fingerprint_of(other);
    bool same = el_json_is(a, "fingerprint", el_json_text(b, "fingerprint", ""));
    json_decref(a);
    json_decref(b);
    json_decref(other);
    return same;
}

static json_t *with(const json_t *run, const char *path, const char *text)
{
    json_t *other = json_deep_copy(run);
    set(other, path, json_string(text));
    return other;
}

static void assert_field(const json_t *run, const char *field, const char *text)
{
    json_t *machine = el_fingerprint_of(run);
    assert_string_equal(el_json_text(json_object_get(machine, "fields"), field, ""), text);
    json_decref(machine);
}

/* If this key changes, every stored baseline is lost to its machine: FNV-1a of the 21 lines, computed apart. */
static void the_key_is_kept_for_good(void **state)
{
    json_t *run = kept_record(), *machine = el_fingerprint_of(run);
    assert_string_equal(el_json_text(machine, "fingerprint", ""), "ad73914fece48e19");
    json_decref(machine);
    json_decref(run);
}

static void each_field_makes_another_machine(void **state)
{
    static const char *const paths[] = {
        "environment.cpu_model", "environment.cpu_microcode",  "environment.governor",  "environment.mpi",
        "environment.compiler",  "environment.compiler_flags", "environment.gpu_driver"};
    char words[256];
    json_t *run = kept_record(), *before = el_fingerprint_of(run);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        json_t *other = with(run, paths[i], "another"), *after = el_fingerprint_of(other);
        assert_int_equal(el_fingerprint_differences(json_object_get(before, "fields"), json_object_get(after, "fields"),
                                                    words, sizeof words),
                         1);
        assert_non_null(strstr(words, strchr(paths[i], '.') + 1));
        assert_non_null(strstr(words, "then another"));
        assert_false(is_same_machine(run, other));
        json_decref(after);
    }
    json_decref(before);
    json_decref(run);
}

static void variables_of_the_gpus_libraries_make_another_machine(void **state)
{
    char words[256];
    json_t *run = kept_record(), *other = json_deep_copy(run), *before, *after;
    set(run, "environment.gpu_variables", json_pack("{s:s, s:s}", "CUDA_VISIBLE_DEVICES", "1", "CUDA_HOME", "/x"));
    assert_true(is_same_machine(run, json_deep_copy(other)));
    set(run, "environment.nccl", json_pack("{s:s, s:{s:s}}", "version", "2.28.3", "variables", "NCCL_ALGO", "Ring"));
    set(other, "environment.nccl", json_pack("{s:s}", "version", "2.28.3"));
    set(run, "environment.gpu_variables", json_pack("{s:s}", "NVIDIA_TF32_OVERRIDE", "0"));
    before = el_fingerprint_of(other), after = el_fingerprint_of(run);
    assert_int_equal(el_fingerprint_differences(json_object_get(before, "fields"), json_object_get(after, "fields"),
                                                words, sizeof words),
                     1);
    assert_string_equal(words, "gpu_variables none, then NCCL_ALGO=Ring NVIDIA_TF32_OVERRIDE=0");
    assert_false(is_same_machine(run, other));
    json_decref(before);
    json_decref(after);
    json_decref(run);
}

static void what_changes_by_itself_does_not(void **state)
{
    json_t *run = kept_record();
    assert_true(is_same_machine(run, with(run, "environment.hostname", "elsewhere")));
    assert_true(is_same_machine(run, with(run, "environment.commit", "abc")));
    assert_true(is_same_machine(run, with(run, "environment.time_utc", "2031-01-01T00:00:00Z")));
    assert_true(is_same_machine(run, with(run, "environment.load_average", "9")));
    assert_true(is_same_machine(run, with(run, "environment.kernel", "Linux 6.18.99-other")));
    assert_false(is_same_machine(run, with(run, "environment.kernel", "Linux 6.19.0")));
    json_decref(run);
}

static void cards_and_cores_in_short(void **state)
{
    json_t *run = kept_record();
    set(run, "environment.affinity", json_pack("[i, i, i, i, i]", 0, 1, 2, 5, 7));
    set(run, "trials.1.per_device.0.model", json_string("NVIDIA H200"));
    set(run, "trials.1.per_device.1.model", json_string("NVIDIA H200"));
    set(run, "trials.2.per_device.0.model", json_string("NVIDIA A100"));
    set(run, "environment.nccl", json_pack("{s:s}", "version", "2.28.3"));
    assert_field(run, "affinity", "0-2,5,7");
    assert_field(run, "gpus", "NVIDIA A100, NVIDIA H200");
    assert_field(run, "nccl", "2.28.3");
    /* No machine has such cores; a file may. */
    set(run, "environment.affinity", json_pack("[I, I]", (json_int_t)INT64_MAX, (json_int_t)INT64_MIN));
    assert_field(run, "affinity", "9223372036854775807,-9223372036854775808");
    /* A record without such a field, and a machine that has none. */
    json_object_del(json_object_get(run, "environment"), "cpu_microcode");
    assert_field(run, "cpu_microcode", "unknown");
    assert_field(run, "governor", "none");
    set(run, "environment.nccl", json_null());
    assert_field(run, "nccl", "none");
    json_decref(run);
}

static void this_machine_says_all_it_can(void **state)
{
    json_t *run = el_record_run(el_environment(), json_array()), *machine = el_fingerprint_of(run);
    EL_EACH_KEY(name, value, json_object_get(machine, "fields")) {
        if (!strcmp(json_string_value(value), "unknown") && strcmp(name, "compiler_flags") != 0)
            fail_msg("%s is not in the environment", name);
    }
    assert_non_null(strstr(el_json_text(machine, "fields.compiler_flags", ""), "-std=c11"));
    json_decref(machine);
    json_decref(run);
}

/* ---- workloads ---- */

static void a_workload_is_what_is_trained(void **state)
{
    json_t *run = kept_record(), *trial = json_array_get(json_object_get(run, "trials"), 2);
    json_t *before = el_workload_of(trial), *after;
    json_object_set_new(trial, "id", json_string("another build"));
    set(trial, "config.min_time_s", json_real(9));
    set(trial, "config.inject", json_string("compute=2"));
    set(trial, "config.of_a_later_version", json_string("x"));
    after = el_workload_of(trial);
    assert_true(el_workload_same(before, after));
    assert_true(el_workload_same(after, before));
    json_decref(after);
    set(trial, "config.lr", json_real(0.5));
    after = el_workload_of(trial);
    assert_false(el_workload_same(before, after));
    json_decref(after);
    json_decref(before);
    json_decref(run);
}

RUN_TESTS(make_folder, remove_folder, a_run_counts_once, an_acceptance_is_not_forgotten, writers_at_once_lose_nothing,
          what_cannot_be_written_whole_is_not_written, what_is_no_record, the_key_is_kept_for_good,
          each_field_makes_another_machine, variables_of_the_gpus_libraries_make_another_machine,
          what_changes_by_itself_does_not, cards_and_cores_in_short, this_machine_says_all_it_can,
          a_workload_is_what_is_trained)
