/* Unequal shares of the batch, in f64. Weighted by samples they train as one device, whatever they are; weighted alike
 * a step's loss and gradients are the mean of the shares' own means; and each device has memory for its own share. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

/* Of losses over all steps, as the sums are taken in another order. */
static const double TOLERANCE = 1e-12;

static void with(struct el_train_config *config, const char *name, const char *value)
{
    if (el_mode_option_set(config, name, value) != EL_OK) fail_msg("%s", el_error_message());
}

static void shared(const struct el_case *c, const char *mode, int n, const char *shares, struct el_train_config *config)
{
    assert_int_equal(el_case_config(c, mode, n, config), EL_OK);
    if (*shares) with(config, "shares", shares);
    config->share_weights = EL_SHARE_WEIGHTS_AUTO;
    if (el_train_check(config) != EL_OK) fail_msg("%s --shares %s: %s", mode, shares, el_error_message());
}

static void train(const struct el_train_config *config, struct el_train_result *result)
{
    train_watched(config, "cpu", dataset, NULL, NULL, result);
}

/* ---- by samples ---- */

static const char *const vectors[] = {"3,1", "1,4", "1,20", "2,1,5", "7,1,1,2"};

static int count(const char *shares)
{
    int n = 1;
    for (; *shares; shares++) n += *shares == ',';
    return n;
}

static void hold(const struct el_train_config *config, const struct el_train_result *single)
{
    struct el_train_result result;
    train(config, &result);
    double difference = el_case_difference(&result, single);
    if (!(difference <= TOLERANCE))
        fail_msg("%s of %s on %d, batch %d, %d micro-steps, loss in replica %d, fixes %u: losses differ by %g",
                 config->mode, config->model.name, config->n_devices, (int)config->global_batch,
                 (int)config->n_accumulate, config->loss_in_replica, config->dp_fix, difference);
    el_train_result_free(&result);
}

static void by_samples_they_train_as_one_device(void **state)
{
    static const struct el_case cases[] = {{"mlp", EL_OPT_MOMENTUM, 0, 22},
                                           {"textcnn", EL_OPT_SGD, 0.5, 24},
                                           {"toy", EL_OPT_SGD, 0, 23},
                                           {"linear", EL_OPT_MOMENTUM, 0, 21}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_train_config config;
        struct el_train_result single;
        assert_int_equal(el_case_config(&cases[i], "single", 1, &config), EL_OK);
        train(&config, &single);
        for (size_t v = 0; v < sizeof vectors / sizeof vectors[0]; v++) {
            const int n = count(vectors[v]);
            for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
                if (!el_mode_option_of(mode->name, "shares")) continue;
                shared(&cases[i], mode->name, n, vectors[v], &config);
                hold(&config, &single);
                config.bucket_view = el_mode_option_of(mode->name, "bucket-view");
                config.n_accumulate = 1 + (int)(v % 2) * (v < 2); /* "1,4": 2 */
                assert_int_equal(el_train_check(&config), EL_OK);
                hold(&config, &single);
            }
            shared(&cases[i], "dp", n, vectors[v], &config);
            config.loss_in_replica = true;
            hold(&config, &single);
            with(&config, "dp-fix", v % 2 ? "all" : "inputs");
            assert_int_equal(el_train_check(&config), EL_OK);
            hold(&config, &single);
        }
        el_train_result_free(&single);
    }
}

/* ---- all alike ---- */

struct step {
    double loss, *grads;
    int64_t n;
};

/* The first step's. */
static struct step step_of(struct el_train_config *config)
{
    struct own_place own;
    struct el_train_result result;
    struct step step;
    config->steps = 1;
    open_place("cpu", config->n_devices, el_kernels_reference(), dataset, &own);
    assert_int_equal(el_train_with_grads(config, &own.place, NULL, &result, &step.grads), EL_OK);
    step.loss = result.loss[0];
    step.n = (int64_t)(result.param_bytes / sizeof(double));
    el_train_result_free(&result);
    close_place(&own);
    return step;
}

/* The first device's share is single's batch of as many samples; what is left of the whole batch is the other's. */
static void alike_they_give_the_mean_of_their_means(void **state)
{
    static const struct el_case whole = {"mlp", EL_OPT_SGD, 0, 22}, first = {"mlp", EL_OPT_SGD, 0, 18};
    static const char *const options[][3] = {
        {"ddp", "", ""}, {"manual", "", ""}, {"dp", "loss-in", "replica"}, {"dp", "dp-fix", "all"}};
    struct el_train_config config;
    shared(&whole, "single", 1, "", &config);
    struct step all = step_of(&config);
    shared(&first, "single", 1, "", &config);
    struct step one = step_of(&config);
    double other = (22 * all.loss - 18 * one.loss) / 4, mean = (one.loss + other) / 2;
    assert_true(fabs(mean - all.loss) > 1e-4);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        shared(&whole, options[i][0], 2, "9,2", &config);
        with(&config, "share-weights", "equal");
        if (*options[i][1]) with(&config, options[i][1], options[i][2]);
        assert_int_equal(el_train_check(&config), EL_OK);
        struct step alike = step_of(&config);
        assert_true(fabs(alike.loss - mean) < 1e-14);
        double worst = 0;
        for (int64_t p = 0; p < all.n; p++) {
            double rest = (22 * all.grads[p] - 18 * one.grads[p]) / 4;
            worst = fmax(worst, fabs(alike.grads[p] - (one.grads[p] + rest) / 2));
        }
        if (!(worst < 1e-14)) fail_msg("%s %s: gradients differ by %g", options[i][0], options[i][1], worst);
        free(alike.grads);
    }
    free(all.grads);
    free(one.grads);
}

/* ---- memory and bytes ---- */

struct sent {
    uint64_t bytes[4];
};

static void count_sent(void *context, const struct el_step_event *event)
{
    struct sent *sent = context;
    for (int i = 0; i < event->n_ops; i++) sent->bytes[event->ops[i].device] = 0;
    for (int i = 0; i < event->n_ops; i++) sent->bytes[event->ops[i].device] += event->ops[i].sent_bytes;
}

/* Inputs, in the linear model 10 features and a label, are a device's own share; dp's master has all. Each holds what
 * was predicted. Gradients have no samples: ddp sends what it sends with equal shares. */
static void each_has_memory_for_its_share(void **state)
{
    static const struct el_case c = {"linear", EL_OPT_SGD, 0, 22};
    static const int64_t samples[] = {14, 2, 2, 4};
    const size_t row_bytes = 10 * sizeof(double), label_bytes = sizeof(int32_t);
    struct sent equal = {{0}};
    for (int i = 0; i < 3; i++) {
        struct el_train_config config;
        struct el_train_result result;
        struct el_memory_forecast forecasts[4];
        struct sent sent = {{0}};
        bool dp = i == 2;
        shared(&c, dp ? "dp" : "ddp", 4, i == 0 ? "" : "7,1,1,2", &config);
        config.steps = 2;
        train_watched(&config, "null", dataset, count_sent, &sent, &result);
        assert_int_equal(el_train_forecast(&config, el_kernels_reference(), forecasts), EL_OK);
        if (i == 0) equal = sent;
        for (int d = 0; d < 4; d++) {
            const struct el_ledger *ledger = &result.ledgers[d];
            size_t rows = (size_t)(i == 0 ? el_share_size(22, 4, d) : dp && d == 0 ? 22 : samples[d]);
            assert_int_equal(ledger->peak_bytes, forecasts[d].ledger.peak_bytes);
            assert_int_equal(ledger->peak_by_tag[EL_TAG_INPUT],
                             rows * row_bytes + (dp && d > 0 ? 0 : rows * label_bytes));
            if (i == 1) assert_int_equal(sent.bytes[d], equal.bytes[d]);
        }
        el_train_result_free(&result);
    }
}

/* ---- what cannot be ---- */

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *mode, *shares, *option, *value, *says;
    } cases[] = {{"ddp", "3,1,1", "", "", "3 weights for 2 devices"},
                 {"dp", "50,1", "", "", "of the batch's 22 samples device 1 would get none"},
                 {"ddp", "30,1", "accumulate", "2", "of a micro-step's 11 samples device 1 would get none"},
                 {"manual", "3,1", "sync", "param", "give --shares weights=equal"}};
    static const char *const texts[] = {"3,0", "3,", ",3", "3,-1", "3, 1", "3;1", "1000001,1", "3,1/1,1", "+3,1"};
    struct el_train_config config;
    char many[3 * EL_SHARES_MAX] = "1";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(el_case_config(&(struct el_case){"mlp", EL_OPT_SGD, 0, 22}, cases[i].mode, 2, &config), EL_OK);
        with(&config, "shares", cases[i].shares);
        if (*cases[i].option) with(&config, cases[i].option, cases[i].value);
        config.share_weights = EL_SHARE_WEIGHTS_AUTO;
        assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), cases[i].says));
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(el_mode_option_set(&config, "shares", texts[i]), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "is not a whole number from 1 to 1000000"));
    }
    for (int i = 1; i <= EL_SHARES_MAX; i++) strcat(many, ",1");
    assert_int_equal(el_mode_option_set(&config, "shares", many), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "more than 64 weights"));
    with(&config, "shares", "");
    assert_int_equal(config.shares.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_samples_they_train_as_one_device),
                                       cmocka_unit_test(alike_they_give_the_mean_of_their_means),
                                       cmocka_unit_test(each_has_memory_for_its_share),
                                       cmocka_unit_test(what_cannot_be_is_refused)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
