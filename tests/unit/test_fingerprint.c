/* What tells one machine from another, and one workload: on the record of version 1 and on changed copies of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/machine/environment.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "tests/unit/record_v1.h"

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
    json_t *run = version_1(), *machine = el_fingerprint_of(run);
    assert_string_equal(el_json_text(machine, "fingerprint", ""), "8e8ecef7e7bd25b6");
    json_decref(machine);
    json_decref(run);
}

static void each_field_makes_another_machine(void **state)
{
    static const char *const paths[] = {
        "environment.cpu_model", "environment.cpu_microcode",  "environment.governor",  "environment.mpi",
        "environment.compiler",  "environment.compiler_flags", "environment.gpu_driver"};
    char words[256];
    json_t *run = version_1(), *before = el_fingerprint_of(run);
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

static void what_changes_by_itself_does_not(void **state)
{
    json_t *run = version_1();
    assert_true(is_same_machine(run, with(run, "environment.hostname", "elsewhere")));
    assert_true(is_same_machine(run, with(run, "environment.commit", "abc")));
    assert_true(is_same_machine(run, with(run, "environment.time_utc", "2031-01-01T00:00:00Z")));
    assert_true(is_same_machine(run, with(run, "environment.load_average", "9")));
    assert_true(is_same_machine(run, with(run, "environment.kernel", "Linux 6.1.99-other")));
    assert_false(is_same_machine(run, with(run, "environment.kernel", "Linux 6.2.0")));
    json_decref(run);
}

static void cards_and_cores_in_short(void **state)
{
    json_t *run = version_1();
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
    /* A record from before there was such a field, and a machine that has none. */
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
    json_t *run = version_1(), *trial = json_array_get(json_object_get(run, "trials"), 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_kept_for_good),        cmocka_unit_test(each_field_makes_another_machine),
        cmocka_unit_test(what_changes_by_itself_does_not), cmocka_unit_test(cards_and_cores_in_short),
        cmocka_unit_test(this_machine_says_all_it_can),    cmocka_unit_test(a_workload_is_what_is_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
