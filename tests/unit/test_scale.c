/* Scaling: ratios and losses from hand-made records, and whether the interval for a repeat of the whole study holds
 * one. */
#include "tests/test.h"

#include "bench/stats/stats.h"
#include "runtime/base/rng.h"
#include "tests/unit/record_checks.h"
#include "tests/unit/scale_trials.h"

/* Half the width of an interval with WOBBLE, on logarithms. */
#define HALF (2.7764451051977987 * log(1.01) * sqrt(2.0 / 4 / REPEATS))

/* The machine's ups and downs are in both: a paired ratio has none of them. */
static void ratios_are_of_repeats_side_by_side(void **state)
{
    json_t *trials = json_pack("[o, o, o]", make_single(true), make_trial("ddp", 1, true, 0.8, NULL),
                               make_trial("ddp", 2, true, 1.2, WOBBLE));
    json_t *document = document_of(trials);
    assert_string_equal(el_json_text(document, "scaling", ""), "weak");
    FIGURES(document, {"batch", 8}, {"rows.2.plain.speedup", 1.2}, {"rows.2.plain.speedup_ci95.0", 1.2 * exp(-HALF)},
            {"rows.2.plain.speedup_ci95.1", 1.2 * exp(HALF)},
            {"rows.1.plain.speedup_ci95", NAN}, /* 0.8 in each repeat */
            {"rows.2.plain.efficiency", 0.6}, {"rows.2.wrapped.speedup", 1.5},
            {"rows.2.wrapped.efficiency_ci95.1", 0.75 * exp(HALF)}, {"rows.0.plain", NAN}, {"rows.1.wrapped", NAN},
            {"rows.2.peak_bytes", 300});
    double one_ms = 8 / exp((log(100) + log(104) + log(97) + log(101) + log(99)) / 5) * 1e3;
    assert_near(el_json_number(document, "rows.2.step.ideal_ms"), one_ms);
    assert_near(el_json_number(document, "rows.2.step.step_ms"), one_ms * 2 / 1.2);
    json_decref(document);
}

static void strong_shares_the_ideal_step(void **state)
{
    json_t *document = document_of(json_pack("[o, o]", make_single(false), make_trial("dp", 2, false, 1.5, NULL)));
    assert_string_equal(el_json_text(document, "scaling", ""), "strong");
    double ideal = el_json_number(document, "rows.1.step.ideal_ms"),
           one = el_json_number(document, "rows.0.step.step_ms");
    assert_near(ideal, one / 2);
    assert_near(el_json_number(document, "rows.1.step.step_ms"), one / 1.5);
    assert_near(el_json_number(document, "rows.1.plain.efficiency"), 0.75); /* T_1 / (2 T_2) */
    json_decref(document);
}

/* On a machine with other work the next study is one under another load: no interval is promised for it. */
static void no_repeat_is_predicted_beside_other_work(void **state)
{
    static const char *const rules[] = {"others", "stolen", "gpu_others", "drift"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        for (int side = 0; side < 2; side++) {
            json_t *trials[] = {make_single(true), make_trial("ddp", 2, true, 1.7, WOBBLE)};
            json_object_set_new(trials[side], "warning_rules", json_pack("[s]", rules[i]));
            json_object_set_new(trials[side], "warnings", json_pack("[s]", "words"));
            json_t *document = document_of(json_pack("[o, o]", trials[0], trials[1]));
            bool given = strcmp(rules[i], "drift") == 0;
            const json_t *plain = el_json_at(document, "rows.1.plain");
            assert_true(json_is_array(json_object_get(plain, "speedup_ci95")));
            assert_int_equal(json_is_array(json_object_get(plain, "speedup_repeat95")), given);
            assert_int_equal(json_is_array(json_object_get(plain, "efficiency_repeat95")), given);
            assert_string_equal(el_json_text(plain, "repeat_reason", "none"),
                                given ? "none" : "other work was on the machine");
            json_decref(document);
        }
}

/* A repeat that failed in one of both pairs with nothing; four pairs give no interval. */
static void a_missing_repeat_leaves_its_partner_out(void **state)
{
    static const double fails[REPEATS] = {1, NAN, 1, 1, 1};
    json_t *document = document_of(json_pack("[o, o]", make_single(true), make_trial("ddp", 2, true, 1.7, fails)));
    assert_near(el_json_number(document, "rows.1.plain.speedup"), 1.7);
    assert_true(json_is_null(el_json_at(document, "rows.1.plain.speedup_ci95")));
    assert_string_equal(el_json_text(document, "rows.1.plain.reason", ""), "fewer than 5 repeats");
    json_decref(document);
}

static void the_parts_of_the_loss_add_up(void **state)
{
    json_t *trial = make_trial("ddp", 2, true, 1.6, NULL);
    json_object_set_new(trial, "breakdown",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:[f, f]}", "step_ms", 100.0, "compute_alone_ms",
                                  82.0, "contention_ms", 3.0, "exposed_ms", 9.0, "other_ms", 2.0, "idle_ms", 4.0,
                                  "exposed_step_ms", 11.0, "exposed_step_ci95", 8.0, 14.0));
    json_object_set_new(trial, "slowest_member", json_integer(1));
    json_object_set_new(trial, "comm", json_pack("{s:f}", "exposed_ms", 10.0));
    json_object_set_new(el_json_at(trial, "per_device.1"), "compute_ms", json_real(84.0));
    json_t *document = document_of(json_pack("[o, o]", make_single(true), trial));
    const json_t *step = el_json_at(document, "rows.1.step");
    double parts = el_json_number(step, "compute_ms") + el_json_number(step, "contention_ms") +
                   el_json_number(step, "exposed_ms") + el_json_number(step, "idle_ms");
    double step_ms =
        2 * 8 / el_json_number(document, "rows.1.samples_per_s") * 1e3; /* the measured one, not the blocks' */
    assert_near(parts, el_json_number(step, "lost_ms"));
    assert_near(el_json_number(step, "ideal_ms") + parts, step_ms);
    FIGURES(step, {"step_ms", step_ms}, {"blocks_step_ms", 100},
            {"exposed_ms", 10}, /* the trial's, as in every table: not the blocks' 9 */
            {"contention_ms", 3 * step_ms / 100});
    assert_near(el_json_number(step, "compute_ms"),
                84 - 3 * step_ms / 100 - el_json_number(step, "ideal_ms")); /* by the measured steps */
    assert_near(el_json_number(step, "comm_costs_ms"), 11);
    assert_near(el_json_number(step, "comm_costs_ci95.1"), 14);
    json_decref(document);
}

/* What a record of another's making may hold. */
static void odd_words_are_skipped(void **state)
{
    json_t *odd = make_trial("ddp", 2, true, 1.7, NULL), *document = NULL;
    json_object_set_new(odd, "warning_rules", json_pack("[n, s]", "shared_core"));
    json_t *run = make_run(json_pack("[o, o]", make_single(true), odd));
    assert_int_equal(el_scale_document(run, "a folder\xff", &document), EL_OK);
    assert_string_equal(el_json_text(document, "dir", ""), "a folder?");
    json_decref(document);
    json_decref(run);
}

static void runs_without_a_baseline_are_refused(void **state)
{
    json_t *document = NULL;
    json_t *run = make_run(json_pack("[o]", make_trial("ddp", 2, true, 1, NULL)));
    assert_int_equal(el_scale_document(run, "dir", &document), EL_ERR_INVALID);
    json_decref(run);
    json_t *other = make_trial("dp", 2, true, 1, NULL);
    json_object_set_new(other, "global_batch", json_integer(48));
    run = make_run(json_pack("[o, o]", make_single(true), other));
    assert_int_equal(el_scale_document(run, "dir", &document), EL_ERR_INVALID);
    json_decref(run);
    assert_null(document);
}

static double normal(struct el_rng_key *key, uint64_t *at)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += (double)(el_rng_u64(key, (*at)++, 0) >> 11) * 0x1p-53;
    return sum - 6;
}

static struct el_interval study(struct el_rng_key *key, uint64_t *at)
{
    double one[REPEATS], two[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        double machine = 0.3 * normal(key, at); /* of the round: in both */
        one[r] = exp(machine + 0.05 * normal(key, at));
        two[r] = exp(machine + 0.05 * normal(key, at));
    }
    return el_stats_ratio_paired(two, one, REPEATS);
}

/* What docs/scale.md says: an interval holds the truth in 95 of 100, a repeat of the study in about 88; stretched by
 * sqrt(2) it holds that in 95. */
static void the_repeat_interval_holds_a_repeat(void **state)
{
    enum { STUDIES = 4000 };
    struct el_rng_key key = {.seed = 11, .use = EL_RNG_ORDER};
    uint64_t at = 0;
    int truth = 0, plain = 0, stretched = 0;
    for (int i = 0; i < STUDIES; i++) {
        struct el_interval first = study(&key, &at), again = study(&key, &at);
        struct el_interval repeat = el_stats_interval_stretch(first, sqrt(2));
        truth += first.low <= 1 && 1 <= first.high;
        plain += first.low <= again.centre && again.centre <= first.high;
        stretched += repeat.low <= again.centre && again.centre <= repeat.high;
    }
    print_message("# truth %d, repeat %d, repeat by its own interval %d of %d\n", truth, plain, stretched, STUDIES);
    assert_true(truth > 0.94 * STUDIES && truth < 0.96 * STUDIES);
    assert_true(plain > 0.86 * STUDIES && plain < 0.90 * STUDIES);
    assert_true(stretched > 0.94 * STUDIES && stretched < 0.96 * STUDIES);
}

RUN_TESTS(NULL, NULL, ratios_are_of_repeats_side_by_side, strong_shares_the_ideal_step,
          no_repeat_is_predicted_beside_other_work, a_missing_repeat_leaves_its_partner_out,
          the_parts_of_the_loss_add_up, odd_words_are_skipped, runs_without_a_baseline_are_refused,
          the_repeat_interval_holds_a_repeat)
