/* Imbalance: its presets, by forecast. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/commands.h"
#include "bench/options/options.h"
#include "bench/report/report.h"
#include "tests/unit/imbalance_cards.h"
#include "tests/unit/words.h"

/* Of the parameters a run has in MiB, by forecast. Steals nothing. */
static json_t *predicted(const char *preset, const char *more, struct el_options *options)
{
    struct el_trial_set set;
    json_t *run = NULL;
    char words[64], *argv[8];
    snprintf(words, sizeof words, "%s", more);
    int argc = words_of("imbalance", words, argv, sizeof argv / sizeof argv[0]);
    assert_int_equal(el_imbalance_preset(preset, options), EL_OK);
    assert_int_equal(el_options_parse(EL_CMD_IMBALANCE, argc, argv, options), EL_OK);
    assert_int_equal(el_trials_resolve(EL_CMD_IMBALANCE, options, &set), EL_OK);
    assert_int_equal(el_imbalance_predict(&set, &run), EL_OK);
    el_trials_free(&set);
    return run;
}

static double excess_at(const json_t *run, int trial, enum el_tag tag)
{
    double bytes[EL_TAG_COUNT];
    const json_t *of = json_array_get(json_object_get(run, "trials"), (size_t)trial);
    el_excess_by_tag(json_object_get(of, "per_device"), bytes);
    return bytes[tag];
}

/* MiB of the second card's peaks that a sample of its own adds, with sentences of `words`. */
static double growth_of(int words)
{
    static struct el_options options;
    char more[64];
    double mib[2];
    snprintf(more, sizeof more, "--batch 64,256 --seq %d", words);
    json_t *run = predicted("two-cards", more, &options);
    mib[0] = el_imbalance_highs(el_json_at(run, "trials.0.per_device.1")) / MIB;
    mib[1] = el_imbalance_highs(el_json_at(run, "trials.1.per_device.1")) / MIB;
    json_decref(run);
    return (mib[1] - mib[0]) / (128 - 32);
}

/* No other whole number of words comes nearer to what was published: least squares through its three batches. */
static void the_length_is_the_fitted_one(void **state)
{
    const double published = 0.9598, at = fabs(growth_of(280) - published);
    assert_true(at < fabs(growth_of(279) - published) && at < fabs(growth_of(281) - published));
}

/* Six copies of the parameters on the main card and two on the second: four between them at any batch, whatever the
 * published ones do. */
static void two_cards_differ_by_four_copies(void **state)
{
    struct el_options options;
    json_t *run = predicted("two-cards", "", &options);
    double params = el_json_number(run, "trials.0.per_device.0.memory.at_peak_by_tag.param");
    const json_t *trials = json_object_get(run, "trials");
    assert_int_equal(json_array_size(trials), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *devices = json_object_get(json_array_get(trials, i), "per_device");
        double main = el_imbalance_highs(json_array_get(devices, 0));
        assert_true(fabs((main - el_imbalance_highs(json_array_get(devices, 1))) / params - 4) < 0.002);
    }
    json_decref(run);
}

static void the_presets_differ_by_what_they_say(void **state)
{
    struct el_options options;
    json_t *momentum = predicted("momentum", "--modes dp --devices cpu:2", &options);
    json_t *adam = predicted("adam", "--modes dp --devices cpu:2", &options);
    double params = el_json_number(momentum, "trials.0.per_device.0.memory.at_peak_by_tag.param");
    assert_true(params > 0);
    assert_near(excess_at(momentum, 0, EL_TAG_OPTIMIZER), params);
    assert_near(excess_at(adam, 0, EL_TAG_OPTIMIZER), 2 * params);
    json_decref(momentum);
    json_decref(adam);
    json_t *outputs = predicted("outputs", "--modes dp --devices cpu:2", &options);
    for (int trial = 0; trial < options.n_batches; trial++) {
        /* Gathered outputs and their gradients; the second card has its share of both. */
        double bytes = 2.0 * (double)options.batches[trial] * (double)options.train.model.classes * 4;
        assert_true(fabs(excess_at(outputs, trial, EL_TAG_OUTPUT) / (bytes * 3 / 4) - 1) < 0.01);
    }
    json_decref(outputs);
}

static void every_preset_is_named_in_the_help(void **state)
{
    const struct el_option_row *row = el_option_rows();
    const struct el_command_row *command = el_command_rows();
    struct el_options options;
    while (strcmp(row->name, "preset") != 0) row++;
    while (command->bit != EL_CMD_IMBALANCE) command++;
    for (const struct el_imbalance_preset *preset = el_imbalance_presets(); preset->name; preset++) {
        assert_non_null(strstr(row->choices, preset->name));
        assert_non_null(strstr(command->examples, preset->name));
        assert_true(preset->reported[0]);
    }
    assert_int_equal(el_imbalance_preset("momentun", &options), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "did you mean 'momentum'"));
}

static void a_forecast_is_a_record_without_times(void **state)
{
    struct el_options options;
    json_t *run = predicted("adam", "--devices cpu:4 --batch 66", &options);
    json_t *dp = el_json_at(run, "trials.0"), *document = el_imbalance_document(run, "adam", NULL);
    assert_string_equal(el_json_text(dp, "verdict", ""), "predicted");
    assert_int_equal(json_array_size(json_object_get(dp, "per_device")), 4);
    assert_near(el_json_number(dp, "batch_per_device.3"), 15);
    assert_true(isnan(el_json_number(dp, "per_device.0.sent_bytes")));
    assert_true(isnan(el_json_number(dp, "imbalance.busy.cv")));
    assert_near(el_json_number(dp, "imbalance.memory.first_over_rest"),
                el_json_number(dp, "per_device.0.memory.peak_bytes") * 3 /
                    (el_json_number(dp, "per_device.1.memory.peak_bytes") +
                     el_json_number(dp, "per_device.2.memory.peak_bytes") +
                     el_json_number(dp, "per_device.3.memory.peak_bytes")));
    assert_true(json_is_true(json_object_get(document, "predicted")));
    assert_string_equal(el_json_text(document, "trials.0.cards.3.card", ""), "fourth");
    assert_near(el_json_number(document, "trials.0.difference.peak_bytes"),
                el_excess_of(json_object_get(dp, "per_device"), "memory.peak_bytes"));
    json_decref(document);
    json_decref(run);
}

RUN_TESTS(NULL, NULL, the_length_is_the_fitted_one, two_cards_differ_by_four_copies,
          the_presets_differ_by_what_they_say, every_preset_is_named_in_the_help, a_forecast_is_a_record_without_times)
