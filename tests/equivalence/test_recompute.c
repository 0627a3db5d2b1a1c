/* Blocks that are computed again in backward: in every mode the losses are those of blocks that are not, bit for bit; a
 * forecast is what a step holds; and what a block keeps is its input. */
#include "tests/test.h"

#include <string.h>

#include "runtime/state/units.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/memory_cases.h"

enum { LAYERS = 3, WIDTH = 16, HEADS = 4, TOKENS = 12, VOCAB = 64, BATCH = 8, PAIR = 2, STEPS = 3 };

static const struct row {
    const char *mode, *schedule;
    enum el_unit_kind unit;
    enum el_precision precision;
    const char *freeze;
} rows[] = {{.mode = "single"},
            {.mode = "single", .freeze = "transformer.wte,transformer.wpe,transformer.h.0.ln_1"},
            {.mode = "single", .precision = EL_PRECISION_BF16},
            {.mode = "dp"},
            {.mode = "ddp", .precision = EL_PRECISION_BF16_PURE},
            {.mode = "manual"},
            {.mode = "spmg"},
            {.mode = "mp"},
            {.mode = "tp"},
            {.mode = "zero1"},
            {.mode = "zero2"},
            {.mode = "zero3"},
            {.mode = "zero3", .unit = EL_UNIT_LAYER, .precision = EL_PRECISION_BF16},
            {.mode = "zero3", .unit = EL_UNIT_MODEL},
            {.mode = "pipeline", .schedule = "1f1b"},
            {.mode = "pipeline", .schedule = "interleaved"},
            {.mode = "pipeline", .schedule = "zero-bubble"}};

static void configure_row(const struct row *row, bool recompute, struct el_train_config *config)
{
    const int n = strcmp(row->mode, "single") ? PAIR : 1;
    configure(config, row->mode, "gpt", EL_OPT_MOMENTUM, false, n, BATCH);
    el_model_set(&config->model, "layers", (int64_t[]){LAYERS}, 1);
    el_model_set(&config->model, "embed", (int64_t[]){WIDTH}, 1);
    el_model_set(&config->model, "heads", (int64_t[]){HEADS}, 1);
    el_model_set(&config->model, "vocab", (int64_t[]){VOCAB}, 1);
    config->model.classes = VOCAB;
    config->model.dropout = 0.1;
    config->model.precision = row->precision;
    config->model.recompute = recompute;
    config->unit = (int)row->unit;
    if (row->schedule) snprintf(config->schedule, sizeof config->schedule, "%s", row->schedule);
    if (row->freeze) snprintf(config->model.freeze, sizeof config->model.freeze, "%s", row->freeze);
    config->steps = STEPS;
    if (el_train_check(config) != EL_OK) fail_msg("%s: %s", row->mode, el_error_message());
}

static void train(const struct el_train_config *config, struct el_train_result *result)
{
    struct own_place own;
    struct el_dataset *dataset;
    struct el_dataset_spec data = {
        .source = "dummy", .input = EL_INPUT_TOKENS, .vocab = VOCAB, .seq = TOKENS, .classes = VOCAB, .seed = 3};
    assert_int_equal(el_dataset_open(&data, &dataset), EL_OK);
    open_place("cpu", config->n_devices, NULL, dataset, &own);
    if (el_train(config, &own.place, NULL, result) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    close_place(&own);
    el_dataset_close(dataset);
}

static void losses_are_equal_bit_for_bit(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct el_train_config config;
        struct el_train_result results[2];
        for (int again = 0; again < 2; again++) {
            configure_row(&rows[i], again, &config);
            train(&config, &results[again]);
        }
        if (memcmp(results[0].loss, results[1].loss, STEPS * sizeof *results[0].loss) != 0)
            fail_msg("row %zu, %s: losses differ", i, rows[i].mode);
        if (results[0].flops_per_step != results[1].flops_per_step)
            fail_msg("row %zu, %s: computed again counts as the model's", i, rows[i].mode);
        if (!(results[1].ledgers[0].peak_by_tag[EL_TAG_ACTIVATION] <
              results[0].ledgers[0].peak_by_tag[EL_TAG_ACTIVATION]))
            fail_msg("row %zu, %s: nothing is freed", i, rows[i].mode);
        el_train_result_free(&results[0]);
        el_train_result_free(&results[1]);
    }
}

static void forecasts_are_what_steps_hold(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct el_train_config config;
        struct el_train_result result;
        struct el_memory_forecast forecasts[PAIR];
        configure_row(&rows[i], true, &config);
        train(&config, &result);
        assert_int_equal(el_train_forecast(&config, el_kernels_cpu(), forecasts), EL_OK);
        for (int d = 0; d < config.n_devices; d++)
            for (int t = 0; t < EL_TAG_COUNT; t++)
                if (forecasts[d].ledger.peak_by_tag[t] != result.ledgers[d].peak_by_tag[t])
                    fail_msg("row %zu, %s, %s: %zu bytes, not %zu", i, rows[i].mode, el_tag_name((enum el_tag)t),
                             result.ledgers[d].peak_by_tag[t], forecasts[d].ledger.peak_by_tag[t]);
        el_train_result_free(&result);
    }
}

/* With A = [batch, tokens, width] a block keeps its input, A, both norms', the sum's and attention's outputs, 4 A,
 * query, key and value, 3 A, and of the inner layer twice 4 A; for each token two numbers of each norm and one of each
 * head. At the peak, in the last block's backward, the other blocks have their input alone. */
static void a_block_keeps_its_input(void **state)
{
    const size_t a = (size_t)BATCH * TOKENS * WIDTH, numbers = (size_t)BATCH * TOKENS * (2 + 2 + HEADS);
    size_t peaks[2];
    for (int again = 0; again < 2; again++) {
        const struct row single = {.mode = "single"};
        struct el_train_config config;
        struct el_train_result result;
        configure_row(&single, again, &config);
        config.model.dropout = 0;
        train(&config, &result);
        peaks[again] = result.ledgers[0].peak_by_tag[EL_TAG_ACTIVATION];
        el_train_result_free(&result);
    }
    assert_int_equal(peaks[0] - peaks[1], (LAYERS - 1) * (15 * a + numbers) * sizeof(float));
}

RUN_TESTS(NULL, NULL, losses_are_equal_bit_for_bit, forecasts_are_what_steps_hold, a_block_keeps_its_input)
