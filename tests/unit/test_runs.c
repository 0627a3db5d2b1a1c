/* Two runs of ours as cells, and what tells one machine from another: on the record of version 1 and on changed copies
 * of it, judged by the gate's own rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/runs.h"
#include "bench/regress/sitting.h"

static const char V1[] = "tests/unit/data/record-v1.json";
static char base_dir[64], head_dir[64];

static json_t *version_1(void)
{
    json_t *run = NULL;
    assert_int_equal(el_record_read(V1, &run), EL_OK);
    return run;
}

static void write_run(const json_t *run, const char *dir)
{
    char path[128];
    snprintf(path, sizeof path, "%s/results.json", dir);
    assert_int_equal(el_write_json(run, path), EL_OK);
}

/* Sets the value at a dotted path whose last part is a key or an index. */
static void set(json_t *run, const char *path, json_t *value)
{
    char parent[128];
    const char *dot = strrchr(path, '.');
    snprintf(parent, sizeof parent, "%.*s", (int)(dot - path), path);
    json_t *object = el_json_at(run, parent);
    assert_non_null(object);
    if (json_is_array(object))
        assert_int_equal(json_array_set_new(object, strtoul(dot + 1, NULL, 10), value), 0);
    else
        assert_int_equal(json_object_set_new(object, dot + 1, value), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(base_dir, sizeof base_dir, "/tmp/evenload-runs-a-XXXXXX");
    snprintf(head_dir, sizeof head_dir, "/tmp/evenload-runs-b-XXXXXX");
    return !mkdtemp(base_dir) || !mkdtemp(head_dir);
}

static void remove_run(const char *dir)
{
    char path[128];
    snprintf(path, sizeof path, "%s/results.json", dir);
    unlink(path);
    rmdir(dir);
}

static int teardown(void **state)
{
    (void)state;
    remove_run(base_dir);
    remove_run(head_dir);
    return 0;
}

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
    (void)state;
    char key[EL_FINGERPRINT_BYTES];
    json_t *run = version_1();
    key_of(run, key);
    assert_string_equal(key, "8e8ecef7e7bd25b6");
    json_decref(run);
}

static void each_field_makes_another_machine(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
    char differs[120] = "";
    json_t *run = version_1(), *trial = json_array_get(json_object_get(run, "trials"), 2);
    json_t *before = el_workload_of(trial), *after;
    json_object_set_new(trial, "id", json_string("another build"));
    set(trial, "config.min_time_s", json_real(9));
    set(trial, "config.inject", json_string("compute=2"));
    set(trial, "config.of_a_later_version", json_string("x"));
    after = el_workload_of(trial);
    assert_true(el_workload_same(before, after, differs, sizeof differs));
    assert_true(el_workload_same(after, before, differs, sizeof differs));
    json_decref(after);
    set(trial, "config.lr", json_real(0.5));
    after = el_workload_of(trial);
    assert_false(el_workload_same(before, after, differs, sizeof differs));
    assert_string_equal(differs, "lr 0.050000000000000003, then 0.5");
    json_decref(after);
    json_decref(before);
    json_decref(run);
}

/* ---- cells ---- */

struct outcome {
    enum el_status status;
    struct el_regress_set set;
    char notes[2048];
};

static void compare(const json_t *base, const json_t *head, const char *metrics, struct outcome *o)
{
    memset(o, 0, sizeof *o);
    write_run(base, base_dir);
    write_run(head, head_dir);
    FILE *notes = fmemopen(o->notes, sizeof o->notes - 1, "w");
    assert_non_null(notes);
    o->status = el_regress_dirs(base_dir, head_dir, metrics, notes, &o->set);
    fclose(notes);
    if (o->status == EL_OK) el_regress_judge(&o->set);
}

static const struct el_regress_cell *cell_of(const struct outcome *o, const char *name)
{
    for (size_t i = 0; i < o->set.n; i++)
        if (!strcmp(o->set.cells[i].name, name)) return &o->set.cells[i];
    static const struct el_regress_cell none;
    fail_msg("no cell '%s'", name);
    return &none;
}

static void a_run_and_itself(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1();
    compare(run, run, "", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_NONE);
    const struct el_regress_cell *step = cell_of(&o, "ddp 2 devices textcnn batch 64 step_median_ms");
    assert_int_equal(step->kind, EL_CELL_SITTING);
    assert_int_equal(step->n_base, 5);
    assert_int_equal(step->n_head, 5);
    assert_string_equal(step->unit, "ms");
    /* The median of the first launch's ten steps, computed apart. */
    assert_true(fabs(step->base[0] - 20.552736) < 1e-9);
    const struct el_regress_cell *peak = cell_of(&o, "dp 2 devices textcnn batch 64 device_peak_bytes[1]");
    assert_int_equal(peak->kind, EL_CELL_EXACT);
    assert_true(peak->base[0] == 56905888 && peak->head[0] == 56905888);
    assert_true(cell_of(&o, "dp 2 devices textcnn batch 64 comm_bytes")->base[0] == 49928736);
    /* The trial that ran out of memory is told, and is no cell; no tag that is never there is one. */
    assert_non_null(strstr(o.notes, "note: dp 2 devices textcnn batch 256 did not finish"));
    for (size_t i = 0; i < o.set.n; i++) {
        assert_null(strstr(o.set.cells[i].name, "batch 256"));
        assert_true(o.set.cells[i].base[0] > 0);
    }
    el_regress_free(&o.set);
    json_decref(run);
}

static void a_list_of_metrics(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1();
    compare(run, run, "samples_per_s,device_peak_bytes", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(o.set.n, 3 + 1 + 2 + 2);
    assert_int_equal(cell_of(&o, "single 1 device textcnn batch 64 samples_per_s")->better, EL_BETTER_HIGHER);
    el_regress_free(&o.set);
    compare(run, run, "step_medium_ms", &o);
    assert_int_equal(o.status, EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "did you mean 'step_median_ms'?"));
    assert_int_equal(o.set.n, 0);
    json_decref(run);
}

/* Every step of a trial times `ratio`. */
static void stretch(json_t *run, const char *trial, double ratio)
{
    for (int r = 0; r < 5; r++) {
        char path[64];
        snprintf(path, sizeof path, "trials.%s.repeats.%d.step_ms", trial, r);
        json_t *steps = el_json_at(run, path);
        for (size_t i = 0; i < json_array_size(steps); i++)
            json_array_set_new(steps, i, json_real(ratio * json_number_value(json_array_get(steps, i))));
    }
}

struct change {
    const char *path;
    double value;
    enum el_regress_exit outcome;
    enum el_cell_verdict verdict;
    const char *cell;
};

static void exact_figures_are_compared_exactly(void **state)
{
    (void)state;
    static const struct change changes[] = {
        {"trials.1.per_device.1.memory.peak_bytes", 56905889, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "dp 2 devices textcnn batch 64 device_peak_bytes[1]"},
        {"trials.1.per_device.1.memory.peak_bytes", 56905887, EL_REGRESS_NONE, EL_CELL_IMPROVEMENT,
         "dp 2 devices textcnn batch 64 device_peak_bytes[1]"},
        {"trials.2.comm.bytes", 49923617, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "ddp 2 devices textcnn batch 64 comm_bytes"},
        /* From none to some. */
        {"trials.0.per_device.0.memory.peak_by_tag.bucket", 1, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "single 1 device textcnn batch 64 peak_bucket_bytes[0]"},
        /* Less work is another computation. */
        {"trials.0.flops_per_step", 1, EL_REGRESS_FOUND, EL_CELL_REGRESSION,
         "single 1 device textcnn batch 64 flops_per_step"},
    };
    json_t *run = version_1();
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct outcome o;
        json_t *head = json_deep_copy(run);
        set(head, changes[i].path, json_real(changes[i].value));
        compare(run, head, "", &o);
        assert_int_equal(o.status, EL_OK);
        assert_int_equal(cell_of(&o, changes[i].cell)->verdict, changes[i].verdict);
        assert_int_equal(el_regress_outcome(&o.set), changes[i].outcome);
        el_regress_free(&o.set);
        json_decref(head);
    }
    json_decref(run);
}

static void slower_and_faster(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1(), *head = version_1();
    stretch(head, "2", 1.5);
    compare(run, head, "samples_per_s,step_median_ms", &o);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_FOUND);
    const struct el_regress_cell *step = cell_of(&o, "ddp 2 devices textcnn batch 64 step_median_ms");
    assert_int_equal(step->verdict, EL_CELL_REGRESSION);
    assert_true(fabs(step->effect - 1.5) < 1e-9);
    assert_int_equal(cell_of(&o, "ddp 2 devices textcnn batch 64 samples_per_s")->verdict, EL_CELL_REGRESSION);
    assert_int_equal(cell_of(&o, "dp 2 devices textcnn batch 64 step_median_ms")->verdict, EL_CELL_SAME);
    el_regress_free(&o.set);
    compare(head, run, "", &o);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_NONE);
    assert_int_equal(cell_of(&o, "ddp 2 devices textcnn batch 64 step_median_ms")->verdict, EL_CELL_IMPROVEMENT);
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

/* Each is USE, names the cell, and says what is wrong with it. */
static void unreadable(json_t *run, json_t *head, const char *cell, const char *words)
{
    struct outcome o;
    compare(run, head, "", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_USE);
    const struct el_regress_cell *found = cell_of(&o, cell);
    assert_int_equal(found->verdict, EL_CELL_UNREADABLE);
    if (!strstr(found->reason, words)) fail_msg("'%s' lacks '%s'", found->reason, words);
    el_regress_free(&o.set);
    json_decref(head);
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    static const char step[] = "single 1 device textcnn batch 64 step_median_ms";
    json_t *run = version_1(), *head;
    set(head = version_1(), "trials.0.repeats.3.step_ms.4", json_null());
    unreadable(run, head, step, "is no number");
    set(head = version_1(), "trials.0.repeats.3.step_ms.4", json_string("NaN"));
    unreadable(run, head, step, "is no number");
    set(head = version_1(), "trials.0.repeats.3.step_ms.4", json_real(0));
    unreadable(run, head, step, "is no number, or not above 0");
    set(head = version_1(), "trials.0.repeats.3.step_ms.4", json_real(-1));
    unreadable(run, head, step, "is no number, or not above 0");
    set(head = version_1(), "trials.1.comm.bytes", json_null());
    unreadable(run, head, "dp 2 devices textcnn batch 64 comm_bytes", "no such figure");
    set(head = version_1(), "trials.1.status", json_string("timeout"));
    unreadable(run, head, "dp 2 devices textcnn batch 64", "timeout in the current run");
    set(head = version_1(), "trials.1.seed", json_integer(7));
    unreadable(run, head, "dp 2 devices textcnn batch 64", "another seed 1, then 7");
    head = version_1();
    json_array_remove(json_object_get(head, "trials"), 1);
    unreadable(run, head, "dp 2 devices textcnn batch 64", "no such trial");
    json_decref(run);
}

static void only_in_the_current_run(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1(), *head = version_1();
    json_array_remove(json_object_get(run, "trials"), 0);
    compare(run, head, "", &o);
    assert_int_equal(o.status, EL_OK);
    assert_int_equal(el_regress_outcome(&o.set), EL_REGRESS_NONE);
    assert_non_null(strstr(o.notes, "note: single 1 device textcnn batch 64 is only in the current run"));
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

static void doubts_are_carried_along(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1(), *head = version_1();
    stretch(head, "2", 1.5);
    json_object_set_new(el_json_at(head, "trials.2"), "warning_rules", json_pack("[s, s]", "drift", "steal"));
    json_object_set_new(el_json_at(run, "trials.2"), "warning_rules", json_pack("[s]", "repeats"));
    compare(run, head, "", &o);
    const struct el_regress_cell *step = cell_of(&o, "ddp 2 devices textcnn batch 64 step_median_ms");
    assert_string_equal(step->doubt, "baseline is suspect: repeats; current is suspect: drift, steal");
    assert_non_null(strstr(step->reason, "worse by 50.0 %"));
    assert_non_null(strstr(step->reason, step->doubt));
    /* What is as it was has no reason, and nothing is added to it. */
    assert_string_equal(cell_of(&o, "ddp 2 devices textcnn batch 64 comm_bytes")->reason, "");
    assert_string_equal(cell_of(&o, "dp 2 devices textcnn batch 64 step_median_ms")->doubt, "");
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

static void another_machine(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1(), *head = version_1();
    set(head, "environment.cpu_model", json_string("Other"));
    set(head, "environment.cores_online", json_integer(64));
    compare(run, head, "", &o);
    assert_int_equal(o.status, EL_ERR_ABSENT);
    assert_int_equal(o.set.n, 0);
    for (const char *const *words =
             (const char *const[]){"cpu_model", "then Other", "cores_online 2, then 64", "--ab", NULL};
         *words; words++)
        if (!strstr(el_error_message(), *words)) fail_msg("'%s' lacks '%s'", el_error_message(), *words);
    json_decref(head);
    json_decref(run);
}

static void another_host_of_the_same_kind(void **state)
{
    (void)state;
    struct outcome o;
    json_t *run = version_1(), *head = version_1();
    set(head, "environment.hostname", json_string("bench2"));
    compare(run, head, "", &o);
    assert_int_equal(o.status, EL_OK);
    assert_non_null(strstr(o.notes, "another host of the same kind: bench, then bench2"));
    assert_non_null(strstr(o.notes, "load average was 2.1 on 2 cores"));
    el_regress_free(&o.set);
    json_decref(head);
    json_decref(run);
}

static void folders_without_a_run(void **state)
{
    (void)state;
    struct el_regress_set cells = {0};
    json_t *run = version_1(), *empty = version_1();
    write_run(run, base_dir);
    remove_run(head_dir);
    assert_int_equal(el_regress_dirs(base_dir, head_dir, "", NULL, &cells), EL_ERR_IO);
    assert_non_null(strstr(el_error_message(), "no results.json"));
    assert_int_equal(mkdir(head_dir, 0777), 0);
    json_array_clear(json_object_get(empty, "trials"));
    write_run(empty, base_dir);
    write_run(run, head_dir);
    assert_int_equal(el_regress_dirs(base_dir, head_dir, "", NULL, &cells), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "nothing to compare"));
    el_regress_free(&cells);
    json_decref(empty);
    json_decref(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_kept_for_good),
        cmocka_unit_test(each_field_makes_another_machine),
        cmocka_unit_test(what_changes_by_itself_does_not),
        cmocka_unit_test(cards_and_cores_in_short),
        cmocka_unit_test(this_machine_says_all_it_can),
        cmocka_unit_test(a_workload_is_what_is_trained),
        cmocka_unit_test(a_run_and_itself),
        cmocka_unit_test(a_list_of_metrics),
        cmocka_unit_test(exact_figures_are_compared_exactly),
        cmocka_unit_test(slower_and_faster),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(only_in_the_current_run),
        cmocka_unit_test(doubts_are_carried_along),
        cmocka_unit_test(another_machine),
        cmocka_unit_test(another_host_of_the_same_kind),
        cmocka_unit_test(folders_without_a_run),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
