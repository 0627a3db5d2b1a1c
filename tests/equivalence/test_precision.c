/* bf16: every mode trains as single does, and single as in f32; a forecast is what a step holds; and what is cast has
 * half the bytes, in memory and on the way between devices. With the CPU's kernels, on small models. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/train/forecast.h"
#include "tests/equivalence/memory_cases.h"

enum { STEPS = 8, PAIR = 2, BATCH = 16, TOKENS = 12, CLASSES = 10, VOCAB = 120 };

/* Losses are between 1 and 5; sums in another order round some of the activations to the other of two neighbours, which
 * are 1/128 apart. */
static const double BETWEEN_MODES = 3e-3, FROM_F32 = 1e-2;

static const enum el_precision precisions[] = {EL_PRECISION_FULL, EL_PRECISION_BF16, EL_PRECISION_BF16_PURE,
                                               EL_PRECISION_BF16_MIXED};

static bool is_refused(const char *mode, enum el_precision precision)
{
    return precision == EL_PRECISION_BF16_MIXED && el_mode_find(mode)->one_type;
}

static void configure_in(struct el_train_config *config, const char *mode, const char *model,
                         enum el_precision precision, int n_devices)
{
    configure(config, mode, model, EL_OPT_MOMENTUM, false, n_devices, BATCH);
    config->warmup = 0;
    config->steps = STEPS;
    config->lr = 0.02;
    config->bucket_first_bytes = 1024;
    config->bucket_cap_bytes = 1 << 16;
    config->model.precision = precision;
    config->model.dropout = 0;
    el_model_set(&config->model, "vocab", (int64_t[]){VOCAB}, 1);
    el_model_set(&config->model, "embed", (int64_t[]){16}, 1);
    if (strcmp(model, "gpt") == 0) {
        el_model_set(&config->model, "layers", (int64_t[]){2}, 1);
        config->model.classes = VOCAB;
    }
    if (el_train_check(config) != EL_OK) fail_msg("%s %s: %s", mode, model, el_error_message());
}

static void train(const struct el_train_config *config, double loss[STEPS], struct el_ledger *ledgers)
{
    struct own_place own;
    struct el_dataset *dataset;
    struct el_dataset_spec data = {.source = "dummy",
                                   .input = el_model_find(config->model.name)->input,
                                   .image = 16,
                                   .vocab = VOCAB,
                                   .seq = TOKENS,
                                   .classes = CLASSES,
                                   .seed = 3};
    struct el_train_result result;
    assert_int_equal(el_dataset_open(&data, &dataset), EL_OK);
    open_place("cpu", config->n_devices, NULL, dataset, &own);
    if (el_train(config, &own.place, NULL, &result) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    memcpy(loss, result.loss, STEPS * sizeof *loss);
    if (ledgers) memcpy(ledgers, result.ledgers, (size_t)config->n_devices * sizeof *ledgers);
    el_train_result_free(&result);
    close_place(&own);
    el_dataset_close(dataset);
}

static double furthest(const double *a, const double *b)
{
    double worst = 0;
    for (int i = 0; i < STEPS; i++) worst = fabs(a[i] - b[i]) <= worst ? worst : fabs(a[i] - b[i]);
    return worst;
}

static void modes_train_alike(void **state)
{
    static const char *const models[] = {"mlp", "textcnn", "gpt"}, *const modes[] = {
                                                                       "dp",       "ddp", "manual", "spmg",  "mp",
                                                                       "pipeline", "tp",  "zero1",  "zero2", "zero3"};
    for (int i = 0; i < 3; i++) {
        double exact[STEPS], single[STEPS], other[STEPS];
        struct el_train_config config;
        configure_in(&config, "single", models[i], EL_PRECISION_FULL, 1);
        train(&config, exact, NULL);
        for (int p = 1; p < 4; p++) {
            configure_in(&config, "single", models[i], precisions[p], 1);
            train(&config, single, NULL);
            if (!(furthest(exact, single) <= FROM_F32) || furthest(exact, single) == 0)
                fail_msg("%s: %g from f32", models[i], furthest(exact, single));
            for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
                if (strcmp(modes[m], "tp") == 0 && strcmp(models[i], "gpt")) continue;
                if (is_refused(modes[m], precisions[p])) continue;
                configure_in(&config, modes[m], models[i], precisions[p], PAIR);
                train(&config, other, NULL);
                if (!(furthest(single, other) <= BETWEEN_MODES))
                    fail_msg("%s %s: %g from single", modes[m], models[i], furthest(single, other));
            }
        }
    }
}

static void forecasts_are_what_steps_hold(void **state)
{
    static const char *const modes[] = {"single", "dp", "ddp", "manual", "spmg", "pipeline", "tp", "zero1", "zero3"};
    for (int i = 0; i < 9 * 2 * 3; i++) {
        struct el_train_config config;
        struct el_ledger ledgers[PAIR];
        struct el_memory_forecast forecasts[PAIR];
        double loss[STEPS];
        const char *model = i % 2 ? "gpt" : "mlp", *mode = modes[i / 6];
        const enum el_precision precision = precisions[1 + i / 2 % 3];
        if ((strcmp(mode, "tp") == 0 && strcmp(model, "gpt")) || is_refused(mode, precision)) continue;
        const int n = strcmp(mode, "single") ? PAIR : 1;
        configure_in(&config, mode, model, precision, n);
        config.warmup = 1; /* ddp's buckets are regrouped */
        config.steps = STEPS - 1;
        train(&config, loss, ledgers);
        assert_int_equal(el_train_forecast(&config, el_kernels_cpu(), forecasts), EL_OK);
        for (int d = 0; d < n; d++)
            for (int t = 0; t < EL_TAG_COUNT; t++)
                if (forecasts[d].ledger.peak_by_tag[t] != ledgers[d].peak_by_tag[t])
                    fail_msg("%s %s, %s: %zu bytes, not %zu", mode, model, el_tag_name((enum el_tag)t),
                             ledgers[d].peak_by_tag[t], forecasts[d].ledger.peak_by_tag[t]);
    }
}

/* Of the mlp's P bytes in f32 all are of layers. By autocast, P of parameters, P of gradients and 2 P of Adam's, and P
 * / 2 of copies at the end of forward; of activations the input's and two layers', in bf16, and behind them a
 * gradient's. Pure, P / 2 of parameters and gradients, and no copy but the input's. Mixed by parameters, P of them, of
 * gradients and P / 2 of copies. */
static void memory_has_its_closed_form(void **state)
{
    const size_t count = (FEATURES + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * CLASSES;
    for (int p = 1; p < 4; p++) {
        struct el_train_config config;
        struct el_ledger ledger;
        const bool pure = precisions[p] == EL_PRECISION_BF16_PURE;
        double loss[STEPS];
        configure_in(&config, "single", "mlp", precisions[p], 1);
        config.optimizer = EL_OPT_ADAM;
        train(&config, loss, &ledger);
        const size_t *peak = ledger.peak_by_tag, stored = pure ? 2 : 4;
        assert_int_equal(peak[EL_TAG_PARAM], stored * count);
        assert_int_equal(peak[EL_TAG_GRAD], stored * count);
        assert_int_equal(peak[EL_TAG_OPTIMIZER], 2 * 4 * count);
        assert_int_equal(peak[EL_TAG_CAST], pure ? 0 : 2 * count);
        assert_int_equal(peak[EL_TAG_OUTPUT], 2 * 2 * BATCH * CLASSES + 4);
        assert_int_equal(peak[EL_TAG_ACTIVATION], 2 * BATCH * (FEATURES + 3 * HIDDEN));
    }
}

/* However many micro-batches are in flight, as autocast round the whole step. */
static void a_pipeline_keeps_one_copy_of_a_weight(void **state)
{
    size_t copies[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct el_train_config config;
        struct el_ledger ledgers[PAIR];
        double loss[STEPS];
        configure_in(&config, "pipeline", "mlp", EL_PRECISION_BF16, PAIR);
        snprintf(config.schedule, sizeof config.schedule, "gpipe");
        config.n_micro = i ? 4 : 1;
        assert_int_equal(el_train_check(&config), EL_OK);
        train(&config, loss, ledgers);
        copies[i] = ledgers[PAIR - 1].peak_by_tag[EL_TAG_CAST];
    }
    assert_true(copies[0] > 0);
    assert_int_equal(copies[0], copies[1]);
}

static void gradients_in_bf16_are_half_as_much(void **state)
{
    for (int p = 0; p < 2; p++) {
        struct el_train_config config;
        struct el_ledger whole[PAIR], half[PAIR];
        double a[STEPS], b[STEPS];
        configure_in(&config, "ddp", "mlp", precisions[p], PAIR);
        train(&config, a, whole);
        config.hook = EL_HOOK_BF16;
        train(&config, b, half);
        assert_int_equal(whole[0].peak_by_tag[EL_TAG_BUCKET], 2 * half[0].peak_by_tag[EL_TAG_BUCKET]);
        if (!(furthest(a, b) <= BETWEEN_MODES) || furthest(a, b) == 0) fail_msg("%g apart", furthest(a, b));
    }
}

static void hooks_hold_what_is_forecast(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct el_train_config config;
        struct el_ledger ledgers[PAIR];
        struct el_memory_forecast forecasts[PAIR];
        double loss[STEPS];
        configure_in(&config, "ddp", i ? "gpt" : "mlp", EL_PRECISION_FULL, PAIR);
        config.hook = EL_HOOK_F16;
        config.warmup = 2;
        config.steps = STEPS - 2;
        train(&config, loss, ledgers);
        assert_int_equal(el_train_forecast(&config, el_kernels_cpu(), forecasts), EL_OK);
        for (int d = 0; d < PAIR; d++)
            for (int t = 0; t < EL_TAG_COUNT; t++)
                if (forecasts[d].ledger.peak_by_tag[t] != ledgers[d].peak_by_tag[t])
                    fail_msg("hook %d, %s: %zu bytes, not %zu", i, el_tag_name((enum el_tag)t),
                             ledgers[d].peak_by_tag[t], forecasts[d].ledger.peak_by_tag[t]);
    }
}

/* As f32 and as each other, also in parts that micro-steps add to and copies average. */
static void parts_reduced_in_bf16_train_alike(void **state)
{
    for (int i = 0; i < 3 * 3; i++) {
        struct el_train_config config;
        double a[STEPS], b[STEPS], ddp[STEPS];
        const char mode[] = {'z', 'e', 'r', 'o', (char)('1' + i % 3), 0};
        configure_in(&config, "ddp", "mlp", EL_PRECISION_FULL, 2 * PAIR);
        config.n_accumulate = 1 + (i / 3 == 1);
        config.hook = EL_HOOK_BF16;
        train(&config, ddp, NULL);
        snprintf(config.mode, sizeof config.mode, "%s", mode);
        config.mesh[EL_AXIS_DATA] = i / 3 == 2 ? PAIR : 0;
        config.keep_grads = i / 3 == 0;
        assert_int_equal(el_train_check(&config), EL_OK);
        train(&config, b, NULL);
        config.hook = EL_HOOK_NONE;
        train(&config, a, NULL);
        if (!(furthest(a, b) <= BETWEEN_MODES) || furthest(a, b) == 0)
            fail_msg("%s, %d: %g from f32", mode, i, furthest(a, b));
        if (!(furthest(ddp, b) <= BETWEEN_MODES)) fail_msg("%s, %d: %g from ddp", mode, i, furthest(ddp, b));
    }
}

static void what_does_not_go_together_is_refused(void **state)
{
    struct el_train_config config;
    configure_in(&config, "ddp", "mlp", EL_PRECISION_BF16, PAIR);
    config.dtype = EL_F64;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "--precision bf16 and f64: leave one of them out");
    configure_in(&config, "dp", "mlp", EL_PRECISION_FULL, PAIR);
    config.model.precision = EL_PRECISION_BF16_MIXED;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "dp has its weights in one type"));
    configure_in(&config, "ddp", "mlp", EL_PRECISION_BF16, PAIR);
    config.dtype = EL_F32;
    config.hook = EL_HOOK_BF16;
    config.bucket_view = true;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "leave --comm-hook out"));
    config.bucket_view = false;
    config.model.precision = EL_PRECISION_FULL;
    config.hook = EL_HOOK_NONE;
    config.dtype = EL_F64;
    assert_int_equal(el_train_check(&config), EL_OK);
    config.hook = EL_HOOK_F16;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
}

RUN_TESTS(NULL, NULL, modes_train_alike, forecasts_are_what_steps_hold, memory_has_its_closed_form,
          a_pipeline_keeps_one_copy_of_a_weight, gradients_in_bf16_are_half_as_much, hooks_hold_what_is_forecast,
          parts_reduced_in_bf16_train_alike, what_does_not_go_together_is_refused)
