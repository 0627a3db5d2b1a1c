/* Sizes of buckets: their names, those that make the same ones, and which is recommended. */
#include "tests/test.h"

#include "bench/report/report.h"
#include "tests/unit/printed.h"
#include "tests/unit/scale_trials.h"

/* ddp at `factor` times PLAIN's rates, with these limits and two all-reduces, the first of `bytes`. */
static json_t *sized(double first_mib, double cap_mib, double factor, const double *noise, int bytes)
{
    json_t *trial = make_trial("ddp", 2, false, factor, noise);
    json_object_set_new(json_object_get(trial, "config"), "bucket_first_bytes", json_real(first_mib * MIB));
    json_object_set_new(json_object_get(trial, "config"), "bucket_cap_bytes", json_real(cap_mib * MIB));
    json_object_set_new(trial, "collectives",
                        json_pack("[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}]", "phase", "comm", "bytes", bytes, "phase",
                                  "replicate", "bytes", cap_mib > 4 ? 7 : 8, "phase", "comm", "bytes", 2 * MIB));
    return trial;
}

static void says(json_t *trials, const char *wanted, const char *unwanted)
{
    json_t *run = make_run(trials);
    char *text = said(el_report_buckets, run);
    if (!strstr(text, wanted) || strstr(text, unwanted)) fail_msg("'%s', not '%s'", text, wanted);
    free(text);
    json_decref(run);
}

static void the_default_has_no_name(void **state)
{
    static const struct {
        double first, cap;
        const char *name;
    } rows[] = {{1, 25, "ddp"}, {25, 25, "ddp 25M"}, {5, 5, "ddp 5M"}, {1, 5, "ddp 1/5M"}, {2, 25, "ddp 2/25M"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[64];
        json_t *trial = sized(rows[i].first, rows[i].cap, 1, NULL, 1);
        el_table_mode(trial, name, sizeof name);
        assert_string_equal(name, rows[i].name);
        json_decref(trial);
    }
}

static void same_buckets_are_named(void **state)
{
    says(json_pack("[o, o, o]", sized(1, 1, 1, NULL, MIB), sized(5, 5, 1.2, WOBBLE, 3 * MIB),
                   sized(25, 25, 1.3, NULL, 3 * MIB)),
         "* ddp 5M, ddp 25M make the same buckets (2 all-reduces per step, 5.0 MiB): tensors are not split.\n",
         "no difference");
    says(json_pack("[o, o]", sized(5, 5, 1.2, NULL, MIB), sized(25, 25, 1.3, NULL, MIB)),
         "so the size makes no difference here.", "batch");
}

static void the_best_is_recommended_beyond_chance(void **state)
{
    const double noise[REPEATS] = {1.2, 1 / 1.2, 1, 1, 1};
    says(json_pack("[o, o, o]", sized(1, 1, 1, NULL, 1), sized(5, 5, 1.2, WOBBLE, 2), sized(25, 25, 1.1, NULL, 3)),
         "Size of buckets at batch 8: recommended: ddp 5M; slower: ddp 1M (0.83 times its samples/s, 0.8",
         "no significant");
    says(json_pack("[o, o, o]", sized(1, 1, 1, WOBBLE, 1), sized(5, 5, 1.5, NULL, 2), sized(25, 25, 1.45, noise, 3)),
         "no significant difference between ddp 5M and ddp 25M; slower: ddp 1M (0.67 times", "recommended:");
    says(json_pack("[o, o]", sized(1, 1, 1, noise, 1), sized(5, 5, 1.02, NULL, 2)),
         "no significant difference, so none is recommended.", "slower");
    says(json_pack("[o, o]", sized(1, 1, 1, NULL, 1), sized(5, 5, 1.02, NULL, 2)), "have no interval (repeats do not",
         "slower");
    json_t *suspect = sized(1, 1, 1, NULL, 1);
    json_object_set_new(suspect, "verdict", json_string("suspect"));
    says(json_pack("[o, o]", suspect, sized(5, 5, 1.2, WOBBLE, 2)), "recommended: ddp 5M; slower: ddp 1M",
         " corrected");
    suspect = sized(1, 1, 1, NULL, 1);
    json_object_set_new(suspect, "verdict", json_string("suspect"));
    says(json_pack("[o, o]", suspect, sized(5, 5, 1.2, WOBBLE, 2)), "It is suspect: ", "none is");
}

RUN_TESTS(NULL, NULL, the_default_has_no_name, same_buckets_are_named, the_best_is_recommended_beyond_chance)
