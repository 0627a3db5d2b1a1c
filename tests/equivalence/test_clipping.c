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
static const char *const models[] = {"mlp", "gpt"};

static struct el_dataset *tokens;

static int open_sets(void **state)
{
    struct el_dataset_spec spec = {.source = "dummy", .input = EL_INPUT_TOKENS, .vocab = 60, .seq = 12, .seed = 3};
    return open_all(state) == 0 && el_dataset_open(&spec, &tokens) == EL_OK ? 0 : -1;
}

static int close_sets(void **state)
{
    el_dataset_close(tokens);
    return close_all(state);
}

/* Even shares, whose means are the batch's. false: the mode does not take the model, or so many devices of it. */
static bool configure(const char *model, const char *mode, int n, int copies, double clip,
                      struct el_train_config *config)
{
    static const struct el_case mlp = {"mlp", EL_OPT_ADAMW, 0, 24};
    assert_int_equal(el_case_config(&mlp, "single", 1, config), EL_OK);
    if (strcmp(model, "gpt") == 0) {
        config->model = (struct el_model_config){
            .name = "gpt", .sizes = {{"layers", 1, {2}}, {"embed", 1, {8}}, {"seq", 1, {12}}, {"vocab", 1, {60}}}};
        assert_int_equal(el_model_resolve(&config->model), EL_OK);
    }
    snprintf(config->mode, sizeof config->mode, "%s", mode);
    config->n_devices = n;
    config->n_micro = 2;
    config->steps = STEPS;
    config->keep_grads = n % 2;
    config->weight_decay = 0.1;
    config->clip = clip;
    config->mesh[EL_AXIS_DATA] = copies;
    return el_train_check(config) == EL_OK;
}

/* With dropout or without it: of a model that is cut by tokens each device drops by those that it has. */
static void drop(struct el_train_config *config, bool drops)
{
    config->model.dropout = drops ? 0.3 : 0;
}

static void train_model(const struct el_train_config *config, struct el_train_result *result)
{
    train_watched(config, "cpu", strcmp(config->model.name, "gpt") ? dataset : tokens, NULL, NULL, result);
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

static bool hold(const char *model, const char *mode, int n, int copies, const struct el_train_result *single)
{
    struct el_train_config config;
    struct el_train_result result;
    if (!configure(model, mode, n, copies, LIMIT, &config)) return false;
    train_model(&config, &result);
    double difference = el_case_difference(&result, single);
    if (!(difference <= TOLERANCE))
        fail_msg("%s of %s on %d, %d copies: losses differ by %g", mode, model, n, copies, difference);
    hold_forecast(&config, &result);
    el_train_result_free(&result);
    return true;
}

static void every_mode_clips_by_the_whole_models_norm(void **state)
{
    enum { MODES_MAX = 16, MODELS = sizeof models / sizeof models[0] };
    int held[MODES_MAX] = {0};
    for (int i = 0; i < MODELS; i++) {
        struct el_train_config config;
        struct el_train_result single, unlimited;
        assert_true(configure(models[i], "single", 1, 0, LIMIT, &config));
        train_model(&config, &single);
        assert_true(configure(models[i], "single", 1, 0, 0, &config));
        train_model(&config, &unlimited);
        assert_true(el_case_difference(&single, &unlimited) > 1e-5); /* else nothing was clipped */
        for (int m = 0; el_mode_list()[m].name; m++)
            for (int n = 1; n <= DEVICES; n++)
                if (el_mode_devices(el_mode_list()[m].name, n) == n)
                    held[m] += hold(models[i], el_mode_list()[m].name, n, 0, &single);
        assert_true(hold(models[i], "pipeline", 4, 2, &single) && hold(models[i], "mp", 4, 2, &single));
        if (!strcmp(models[i], "gpt")) assert_true(hold(models[i], "tp", 4, 2, &single));
        el_train_result_free(&single);
        el_train_result_free(&unlimited);
    }
    for (int m = 0; el_mode_list()[m].name; m++)
        if (held[m] < 2) fail_msg("%s: %d runs", el_mode_list()[m].name, held[m]);
}

static void hold_case(struct el_train_config *config, const char *text, const struct el_train_result *single)
{
    struct el_train_result result;
    if (el_train_check(config) != EL_OK) fail_msg("%s: %s", text, el_error_message());
    train_model(config, &result);
    double difference = el_case_difference(&result, single);
    if (!(difference <= TOLERANCE)) fail_msg("%s, tokens %d: losses differ by %g", text, config->by_tokens, difference);
    hold_forecast(config, &result);
    el_train_result_free(&result);
}

/* A residual's inputs have one gradient, but in halves: the first would add to what the second reads. */
static void backward_in_halves_trains_as_one(void **state)
{
    struct el_train_config config;
    struct el_train_result single;
    assert_true(configure("gpt", "single", 1, 0, LIMIT, &config));
    train_model(&config, &single);
    assert_true(configure("gpt", "pipeline", 2, 0, LIMIT, &config));
    snprintf(config.schedule, sizeof config.schedule, "zero-bubble");
    hold_case(&config, config.schedule, &single);
    el_train_result_free(&single);
}

/* Before any node: what the last one sends may be a sum over the pieces. */
static void stages_of_pieces_are_cut_anywhere(void **state)
{
    struct el_train_config config;
    struct el_train_result single;
    struct el_graph *model;
    assert_true(configure("gpt", "single", 1, 0, LIMIT, &config));
    drop(&config, true);
    train_model(&config, &single);
    assert_int_equal(el_model_build(&config.model, &model), EL_OK);
    for (int i = 0, n; (n = 1 + i / 2) < model->n_nodes; i += is_sanitized() ? 9 : 1) {
        assert_true(configure("gpt", "pipeline", 4, 1, LIMIT, &config));
        drop(&config, true);
        config.by_tokens = i % 2;
        config.mesh[EL_AXIS_TENSOR] = 2;
        snprintf(config.cut, sizeof config.cut, "%s", model->nodes[n].name);
        hold_case(&config, config.cut, &single);
    }
    el_graph_destroy(model);
    el_train_result_free(&single);
}

/* Pieces whose tokens lie in a part of one sample, in one, in parts of two, and in several: batches of 1, 2, 3 and 24
 * samples a pass. Backward in halves too, and several micro-steps. */
static void pieces_by_tokens_train_as_one(void **state)
{
    static const struct {
        const char *mode;
        int n, copies, pieces;
        int64_t batch, n_micro, n_accumulate;
        const char *schedule;
    } cases[] = {{"tp", 2, 1, 0, 1, 1, 1, ""},
                 {"tp", 4, 1, 0, 2, 1, 1, ""},
                 {"tp", 4, 1, 0, 3, 1, 1, ""},
                 {"tp", 2, 1, 0, 3, 1, 1, ""},
                 {"tp", 4, 1, 0, 24, 1, 1, ""},
                 {"tp", 2, 1, 0, 12, 1, 4, ""},
                 {"tp", 4, 2, 0, 6, 1, 1, ""},
                 {"mp", 4, 1, 2, 5, 1, 1, ""},
                 {"mp", 4, 2, 2, 6, 1, 1, ""},
                 {"pipeline", 4, 1, 2, 6, 2, 1, "1f1b"},
                 {"pipeline", 4, 1, 2, 4, 4, 1, "zero-bubble"}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    for (int i = 0; i < 2 * CASES; i++) {
        struct el_train_config config;
        struct el_train_result single;
        char text[64];
        for (int cut = 0; cut < 2; cut++) {
            assert_true(
                configure("gpt", cut ? cases[i / 2].mode : "single", cut ? cases[i / 2].n : 1, 0, LIMIT, &config));
            config.global_batch = cases[i / 2].batch;
            drop(&config, i % 2);
            if (!cut) train_model(&config, &single);
        }
        config.by_tokens = true;
        config.mesh[EL_AXIS_DATA] = cases[i / 2].copies;
        config.mesh[EL_AXIS_TENSOR] = cases[i / 2].pieces;
        config.n_micro = cases[i / 2].n_micro;
        config.n_accumulate = cases[i / 2].n_accumulate;
        if (*cases[i / 2].schedule) snprintf(config.schedule, sizeof config.schedule, "%s", cases[i / 2].schedule);
        snprintf(text, sizeof text, "case %d, dropout %d", i / 2, i % 2);
        hold_case(&config, text, &single);
        el_train_result_free(&single);
    }
}

/* On two devices each, which are pieces of the model; where these have some of the tokens, too. */
static void pieces_share_their_state(void **state)
{
    struct el_train_config config;
    struct el_train_result single, result;
    assert_true(configure("gpt", "single", 1, 0, LIMIT, &config));
    train_model(&config, &single);
    for (int i = 0; i < 6; i++) {
        const char mode[] = {'z', 'e', 'r', 'o', (char)('1' + i % 3), 0};
        assert_true(configure("gpt", mode, 4, 0, LIMIT, &config));
        config.mesh[EL_AXIS_TENSOR] = 2;
        config.by_tokens = i >= 3;
        if (el_train_check(&config) != EL_OK) fail_msg("%s: %s", mode, el_error_message());
        train_model(&config, &result);
        double difference = el_case_difference(&result, &single);
        if (!(difference <= TOLERANCE)) fail_msg("%s of pieces: losses differ by %g", mode, difference);
        hold_forecast(&config, &result);
        el_train_result_free(&result);
    }
    el_train_result_free(&single);
}

/* By ranks' own gradients where parameters are averaged, as on one device (reference.c). */
static void averaged_parameters_clip_each_ranks_gradients(void **state)
{
    struct el_train_result results[2];
    for (int i = 0; i < 2; i++) {
        struct el_train_config config;
        assert_true(configure(models[0], i ? "manual" : "reference", 3, 0, LIMIT, &config));
        config.keep_grads = config.sync_params = true;
        train_model(&config, &results[i]);
    }
    assert_true(el_case_difference(&results[0], &results[1]) <= TOLERANCE);
    for (int i = 0; i < 2; i++) el_train_result_free(&results[i]);
}

RUN_TESTS(open_sets, close_sets, every_mode_clips_by_the_whole_models_norm, backward_in_halves_trains_as_one,
          stages_of_pieces_are_cut_anywhere, pieces_by_tokens_train_as_one, pieces_share_their_state,
          averaged_parameters_clip_each_ranks_gradients)
