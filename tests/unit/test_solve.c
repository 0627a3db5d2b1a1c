/* --solve: shares from made-up measurements with known answers, and against all others there are. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/imbalance/imbalance.h"
#include "runtime/base/rng.h"
#include "tests/unit/near.h"
#include "tests/unit/options_parse.h"

enum { BATCH = 24, SMALL = 12 };

static struct el_trial_set resolve(const char *words)
{
    struct el_trial_set set;
    assert_int_equal(parse(EL_CMD_RUN, words), EL_OK);
    if (el_trials_resolve(EL_CMD_RUN, &options, &set) != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

/* A measured trial: ms of forward, half of it, and of backward, the other, and 7 ms that do not depend on samples. */
static json_t *measured(const char *shares, int n, const int64_t *samples, const double *ms)
{
    json_t *devices = json_array(), *batches = json_array();
    double slowest_ms = 0;
    for (int d = 0; d < n; d++) {
        json_array_append_new(devices,
                              json_pack("{s:o, s:{s:f, s:f, s:f}}", "device", json_sprintf("sim:%d", d), "busy_ms",
                                        "forward", ms[d] / 2, "backward", ms[d] / 2, "optimizer", 5.0));
        json_array_append_new(batches, json_integer(samples[d]));
        slowest_ms = fmax(slowest_ms, ms[d]);
    }
    return json_pack("{s:s, s:{s:s}, s:{s:f}, s:o, s:o}", "mode", "ddp", "config", "shares", shares, "step_ms",
                     "median", slowest_ms + 7, "batch_per_device", batches, "per_device", devices);
}

static bool next(struct el_solution *s, const struct el_trial *equal, const json_t *trials)
{
    bool found;
    if (el_solution_next(s, equal, trials, &found) != EL_OK) fail_msg("%s", el_error_message());
    return found;
}

/* One device at a third of the other's speed: 3 to 1. Its step is that of 18 samples. */
static void time_in_proportion_to_speed(void **state)
{
    struct el_trial_set set = resolve("--data dummy --mode ddp --model mlp --devices sim:2 --batch 24");
    struct el_solution s = {.n = 0};
    const int64_t samples[] = {12, 12}, better[] = {18, 6};
    const double ms[] = {12, 36}, after_ms[] = {18, 18};
    json_t *trials = json_pack("[o]", measured("", 2, samples, ms));
    assert_true(next(&s, &set.trials[0], trials));
    assert_string_equal(s.shares[0], "3,1");
    near(s.optimum, 7 + 18, 1e-12);
    json_array_append_new(trials, measured("3,1", 2, better, after_ms));
    assert_false(next(&s, &set.trials[0], trials));
    json_t *document = el_solution_document(&s, trials);
    assert_string_equal(el_json_text(document, "sentence", ""),
                        "sim:1 computes 3.00 times as long per sample as sim:0; shares 3,1 bring the step from 43.0 to "
                        "25.0 ms (1.72 times as fast), the optimum by the measured speeds is 25.0.");
    near(el_json_number(document, "times_as_long"), 3, 1e-12);
    assert_string_equal(el_json_text(document, "shares", ""), "3,1");
    json_decref(document);
    json_decref(trials);
    el_trials_free(&set);
}

/* 6 ms, and one per sample; 6 and 3. The first guess is by 18 ms and 42 for 12 samples; the line through both then
 * gives 18.75 and 5.25. */
static void the_second_round_knows_what_is_fixed(void **state)
{
    struct el_trial_set set = resolve("--data dummy --mode ddp --model mlp --devices sim:2 --batch 24");
    struct el_solution s = {.n = 0};
    const int64_t samples[] = {12, 12}, guess[] = {17, 7};
    const double ms[] = {18, 42}, guess_ms[] = {23, 27};
    json_t *trials = json_pack("[o]", measured("", 2, samples, ms));
    assert_true(next(&s, &set.trials[0], trials));
    assert_string_equal(s.shares[0], "17,7");
    json_array_append_new(trials, measured("17,7", 2, guess, guess_ms));
    assert_true(next(&s, &set.trials[0], trials));
    assert_string_equal(s.shares[1], "3,1");
    near(s.optimum, 7 + 24, 1e-12);
    assert_false(next(&s, &set.trials[0], trials));
    json_decref(trials);
    el_trials_free(&set);
}

static void even_ones_stay(void **state)
{
    struct el_trial_set set = resolve("--data dummy --mode ddp --model mlp --devices sim:2 --batch 24");
    struct el_solution s = {.n = 0};
    const int64_t samples[] = {12, 12};
    const double ms[] = {12, 12};
    json_t *trials = json_pack("[o]", measured("", 2, samples, ms));
    assert_false(next(&s, &set.trials[0], trials));
    json_t *document = el_solution_document(&s, trials);
    assert_non_null(strstr(el_json_text(document, "sentence", ""), "equal shares are the best already"));
    assert_true(json_is_null(json_object_get(document, "shares")));
    json_decref(document);
    json_decref(trials);
    el_trials_free(&set);
}

/* No other shares of three devices of drawn speeds end earlier. */
static void no_shares_end_earlier(void **state)
{
    const struct el_rng_key key = {.seed = 3};
    struct el_trial_set set = resolve("--data dummy --mode ddp --model mlp --devices sim:3 --batch 24");
    for (uint64_t i = 0; i < 200; i++) {
        struct el_solution s = {.n = 0};
        const int64_t samples[] = {8, 8, 8};
        double ms[3], least = INFINITY, most = 0;
        for (uint64_t d = 0; d < 3; d++) ms[d] = 8 * (1 + (double)(el_rng_u64(&key, i, d) % 50));
        json_t *trials = json_pack("[o]", measured("", 3, samples, ms));
        next(&s, &set.trials[0], trials);
        for (int a = 1; a < BATCH - 1; a++)
            for (int b = 1; a + b < BATCH; b++)
                least = fmin(least, fmax(a * ms[0], fmax(b * ms[1], (BATCH - a - b) * ms[2])) / 8);
        for (int d = 0; d < 3; d++) most = fmax(most, (double)s.samples[d] * ms[d] / 8);
        near(most, least, 1e-9);
        json_decref(trials);
    }
    el_trials_free(&set);
}

/* The highest peak of any shares, by forecast. */
static double highest_peak(struct el_trial trial, const int *samples)
{
    struct el_memory_forecast forecasts[3];
    double most = 0;
    trial.train.shares.n = trial.n_devices;
    memcpy(trial.train.shares.weight, samples, (size_t)trial.n_devices * sizeof *samples);
    assert_int_equal(el_trial_forecast(&trial, forecasts), EL_OK);
    for (int d = 0; d < trial.n_devices; d++) most = fmax(most, (double)forecasts[d].ledger.peak_bytes);
    return most;
}

/* An image net whose activations weigh more than its parameters. */
static void no_shares_have_a_lower_highest_peak(void **state)
{
    for (int n = 2; n <= 3; n++) {
        char words[160];
        struct el_solution s = {.memory = true};
        snprintf(words, sizeof words,
                 "--data dummy --mode dp --model resnet18 --image 96 --width 2 --devices cpu:%d --batch %d", n, SMALL);
        struct el_trial_set set = resolve(words);
        double least = INFINITY;
        assert_int_equal(el_solution_check(&set.trials[0]), EL_OK);
        assert_true(next(&s, &set.trials[0], NULL));
        for (int a = 1; a < SMALL - n + 2; a++)
            for (int b = n == 2 ? SMALL - a : 1; b > 0 && a + b <= SMALL - n + 2; b++)
                least = fmin(least, highest_peak(set.trials[0], (const int[]){a, b, SMALL - a - b}));
        near(s.optimum, least, 0.5);
        assert_true(least < highest_peak(set.trials[0], (const int[]){SMALL / n, SMALL / n, SMALL / n}));
        el_trials_free(&set);
    }
}

static void what_has_no_shares_is_refused(void **state)
{
    static const struct {
        const char *words, *says;
    } cases[] = {{"--mode pipeline --devices cpu:2 --batch 24", "mode pipeline takes no --shares"},
                 {"--mode ddp --devices sim:17 --batch 130", "at most 16 devices"},
                 {"--mode dp --devices cpu:3 --batch 4", "device 2 has no samples"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "--data dummy --model mlp %s", cases[i].words);
        struct el_trial_set set = resolve(words);
        assert_int_equal(el_solution_check(&set.trials[0]), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), cases[i].says));
        el_trials_free(&set);
    }
}

RUN_TESTS(NULL, NULL, time_in_proportion_to_speed, the_second_round_knows_what_is_fixed, even_ones_stay,
          no_shares_end_earlier, no_shares_have_a_lower_highest_peak, what_has_no_shares_is_refused)
