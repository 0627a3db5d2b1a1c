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
#include "bench/regress/fingerprint.h"
#include "bench/regress/session.h"
#include "tests/unit/record_v1.h"

/* ---- fingerprints ---- */

static void key_of(const json_t *run, char key[EL_FINGERPRINT_BYTES])
{
    struct el_fingerprint print;
    assert_int_equal(el_fingerprint_of(run, &print), EL_OK);
    memcpy(key, print.key, EL_FINGERPRINT_BYTES);
    el_fingerprint_free(&print);
}

/* If this key changes, every stored baseline is lost to its machine: FNV-1a of the 21 lines, computed apart. */
static void the_key_is_kept_for_good(void **state)
{
    char key[EL_FINGERPRINT_BYTES];
    json_t *run = version_1();
    key_of(run, key);
    assert_string_equal(key, "8e8ecef7e7bd25b6");
    json_decref(run);
}

static void each_field_makes_another_machine(void **state)
{
    static const char *const paths[] = {
        "environment.cpu_model", "environment.cpu_microcode",  "environment.governor",  "environment.mpi",
        "environment.compiler",  "environment.compiler_flags", "environment.gpu_driver"};
    struct el_fingerprint before, after;
    char words[256];
    json_t *run = version_1();
    assert_int_equal(el_fingerprint_of(run, &before), EL_OK);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        json_t *other = json_deep_copy(run);
        set(other, paths[i], json_string("another"));
        assert_int_equal(el_fingerprint_of(other, &after), EL_OK);
        assert_string_not_equal(before.key, after.key);
        assert_int_equal(el_fingerprint_differences(before.fields, after.fields, words, sizeof words), 1);
        assert_non_null(strstr(words, strchr(paths[i], '.') + 1));
        assert_non_null(strstr(words, "then another"));
        el_fingerprint_free(&after);
        json_decref(other);
    }
    el_fingerprint_free(&before);
    json_decref(run);
}

static void what_changes_by_itself_does_not(void **state)
{
    char before[EL_FINGERPRINT_BYTES], after[EL_FINGERPRINT_BYTES];
    json_t *run = version_1();
    key_of(run, before);
    set(run, "environment.hostname", json_string("elsewhere"));
    set(run, "environment.commit", json_string("abc"));
    set(run, "environment.time_utc", json_string("2031-01-01T00:00:00Z"));
    set(run, "environment.load_average", json_pack("[f, f, f]", 9.0, 9.0, 9.0));
    set(run, "environment.kernel", json_string("Linux 6.1.99-other"));
    key_of(run, after);
    assert_string_equal(before, after);
    set(run, "environment.kernel", json_string("Linux 6.2.0"));
    key_of(run, after);
    assert_string_not_equal(before, after);
    json_decref(run);
}

static void cards_and_cores_in_short(void **state)
{
    struct el_fingerprint print;
    json_t *run = version_1();
    set(run, "environment.affinity", json_pack("[i, i, i, i, i]", 0, 1, 2, 5, 7));
    set(run, "trials.1.per_device.0.model", json_string("NVIDIA H200"));
    set(run, "trials.1.per_device.1.model", json_string("NVIDIA H200"));
    set(run, "trials.2.per_device.0.model", json_string("NVIDIA A100"));
    set(run, "environment.nccl", json_pack("{s:s}", "version", "2.28.3"));
    assert_int_equal(el_fingerprint_of(run, &print), EL_OK);
    assert_string_equal(el_json_text(print.fields, "affinity", ""), "0-2,5,7");
    assert_string_equal(el_json_text(print.fields, "gpus", ""), "NVIDIA A100, NVIDIA H200");
    assert_string_equal(el_json_text(print.fields, "nccl", ""), "2.28.3");
    el_fingerprint_free(&print);
    /* No machine has such cores; a file may. */
    set(run, "environment.affinity", json_pack("[I, I]", (json_int_t)INT64_MAX, (json_int_t)INT64_MIN));
    assert_int_equal(el_fingerprint_of(run, &print), EL_OK);
    assert_string_equal(el_json_text(print.fields, "affinity", ""), "9223372036854775807,-9223372036854775808");
    /* A record from before there was such a field, and a machine that has none. */
    assert_string_equal(el_json_text(print.fields, "cpu_microcode", ""), "unknown");
    assert_string_equal(el_json_text(print.fields, "governor", ""), "none");
    el_fingerprint_free(&print);
    set(run, "environment.nccl", json_null());
    assert_int_equal(el_fingerprint_of(run, &print), EL_OK);
    assert_string_equal(el_json_text(print.fields, "nccl", ""), "none");
    el_fingerprint_free(&print);
    json_decref(run);
}

static void this_machine_says_all_it_can(void **state)
{
    struct el_fingerprint print;
    json_t *run = el_record_run(el_environment(), json_array());
    assert_int_equal(el_fingerprint_of(run, &print), EL_OK);
    for (void *at = json_object_iter(print.fields); at; at = json_object_iter_next(print.fields, at))
        if (!strcmp(json_string_value(json_object_iter_value(at)), "unknown") &&
            strcmp(json_object_iter_key(at), "compiler_flags") != 0)
            fail_msg("%s is not in the environment", json_object_iter_key(at));
    assert_non_null(strstr(el_json_text(print.fields, "compiler_flags", ""), "-std=c11"));
    el_fingerprint_free(&print);
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
