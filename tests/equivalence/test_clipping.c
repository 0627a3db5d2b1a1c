/* Every mode with AdamW, a learning rate that rises and falls, and gradients that are clipped by the norm of the whole
 * model, also where its stages are on several devices: single's losses, and a forecast that is the ledger. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { DEVICES = 4, STEPS = 12 };

static const double LIMIT = 0.1, TOLERANCE = 1e-12;

/* Even shares, whose means are the batch's. */
static const struct el_case mlp = {"mlp", EL_OPT_ADAMW, 0, 24};

static void configure(const char *mode, int n, int copies, double clip, struct el_train_config *config)
{
    assert_int_equal(el_case_config(&mlp, "single", 1, config), EL_OK);
    snprintf(config->mode, sizeof config->mode, "%s", mode);
    config->n_devices = n;
    config->n_micro = 2;
    config->steps = STEPS;
    config->keep_grads = n % 2;
    config->weight_decay = 0.1;
    config->lr_warmup = 3;
    config->lr_cosine = 7;
    config->lr_min = 0.0002;
    config->clip = clip;
    config->mesh[EL_AXIS_DATA] = copies;
    if (el_train_check(config) != EL_OK) fail_msg("%s: %s", mode, el_error_message());
}

static void hold_forecast(const struct el_train_config *config, const struct el_train_result *result)
{
    struct el_memory_forecast forecasts[DEVICES];
    assert_int_equal(el_train_forecast(config, el_kernels_reference(), forecasts), EL_OK);
    for (int d = 0; d < config->n_devices; d++) {
        assert_int_equal(result->ledgers[d].peak_bytes, forecasts[d].ledger.peak_bytes);
        assert_memory_equal(result->ledgers[d].at_peak_by_tag, forecasts[d].ledger.at_peak_by_tag,
                            sizeof forecasts[d].ledger.at_peak_by_tag);
    }
}

static void hold(const char *mode, int n, int copies, const struct el_train_result *single)
{
    struct el_train_config config;
    struct el_train_result result;
    configure(mode, n, copies, LIMIT, &config);
    train_watched(&config, "cpu", dataset, NULL, NULL, &result);
    double difference = el_case_difference(&result, single);
    if (!(difference <= TOLERANCE)) fail_msg("%s on %d, %d copies: losses differ by %g", mode, n, copies, difference);
    hold_forecast(&config, &result);
    el_train_result_free(&result);
}

static void every_mode_clips_by_the_whole_models_norm(void **state)
{
    struct el_train_config config;
    struct el_train_result single, unlimited;
    configure("single", 1, 0, LIMIT, &config);
    train_watched(&config, "cpu", dataset, NULL, NULL, &single);
    configure("single", 1, 0, 0, &config);
    train_watched(&config, "cpu", dataset, NULL, NULL, &unlimited);
    assert_true(el_case_difference(&single, &unlimited) > 1e-5); /* else nothing was clipped */
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        for (int n = 1; n <= DEVICES; n++)
            if (el_mode_devices(mode->name, n) == n && el_case_can_be_cut(&mlp, mode->name, n))
                hold(mode->name, n, 0, &single);
    hold("pipeline", 4, 2, &single);
    hold("mp", 4, 2, &single);
    el_train_result_free(&single);
    el_train_result_free(&unlimited);
}

/* By ranks' own gradients where parameters are averaged, as on one device (reference.c). */
static void averaged_parameters_clip_each_ranks_gradients(void **state)
{
    struct el_train_result results[2];
    for (int i = 0; i < 2; i++) {
        struct el_train_config config;
        configure(i ? "manual" : "reference", 3, 0, LIMIT, &config);
        config.keep_grads = config.sync_params = true;
        train_watched(&config, "cpu", dataset, NULL, NULL, &results[i]);
    }
    assert_true(el_case_difference(&results[0], &results[1]) <= TOLERANCE);
    for (int i = 0; i < 2; i++) el_train_result_free(&results[i]);
}

RUN_TESTS(open_all, close_all, every_mode_clips_by_the_whole_models_norm, averaged_parameters_clip_each_ranks_gradients)
