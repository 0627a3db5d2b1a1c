/* Modes within one process: on one device all are plain training; captured and issued steps, and the same trial twice,
 * give the same bits and the same ledger. That each gives the loss that its row promises is what `evenload verify`
 * checks (tests/cli/verify.bats). */
#include "tests/test.h"

#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { DEVICES = 4 };

/* Trains on fresh devices of this process; ledgers are those of the end. */
static void train(const struct el_train_config *config, const struct el_kernel_table *kernels,
                  struct el_train_result *result, struct el_ledger *ledgers)
{
    struct own_place own;
    open_place("cpu", config->n_devices, kernels, dataset, &own);
    if (strcmp(config->mode, "reference") == 0) own.place.n_devices = 1;
    if (el_train(config, &own.place, NULL, result) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    for (int d = 0; d < own.n && ledgers; d++) ledgers[d] = *el_device_ledger(own.devices[d]);
    close_place(&own);
}

/* What `evenload verify` leaves out. */
static void every_mode_on_one_device_is_single(void **state)
{
    struct el_train_config config;
    struct el_train_result single, result;
    assert_int_equal(el_case_config(&el_cases[3], "single", 1, &config), EL_OK);
    train(&config, el_kernels_reference(), &single, NULL);
    assert_true(single.loss[0] != single.loss[config.steps - 1]);
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        assert_int_equal(el_case_config(&el_cases[3], mode->name, 1, &config), EL_OK);
        train(&config, el_kernels_reference(), &result, NULL);
        double difference = el_case_difference(&result, &single);
        if (!(difference <= CASE_TOLERANCE)) fail_msg("%s on one device: losses differ by %g", mode->name, difference);
        el_train_result_free(&result);
    }
    el_train_result_free(&single);
}

/* With an uneven batch the two must differ: else the comparison above would show nothing. */
static void an_uneven_mean_of_means_is_not_singles_loss(void **state)
{
    struct el_train_config config;
    struct el_train_result means, single;
    const struct el_case *c = &el_cases[6];
    assert_int_equal(el_case_config(c, "reference", 4, &config), EL_OK);
    train(&config, el_kernels_reference(), &means, NULL);
    assert_int_equal(el_case_config(c, "single", 1, &config), EL_OK);
    train(&config, el_kernels_reference(), &single, NULL);
    assert_true(el_case_difference(&means, &single) > 1e-5);
    el_train_result_free(&means);
    el_train_result_free(&single);
}

/* Twice the same, captured and issued, overlap on and off, freed and kept gradients, these two also as views of
 * buckets: the same bits; the first two the same ledger. */
static void same_bits(enum el_dtype dtype)
{
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        struct el_train_config config;
        struct el_train_result base, other;
        struct el_ledger base_ledger[DEVICES], other_ledger[DEVICES];
        int n = el_mode_devices_for(mode->name, el_cases[1].model, 3);
        assert_int_equal(el_case_config(&el_cases[1], mode->name, n, &config), EL_OK);
        config.dtype = dtype;
        train(&config, NULL, &base, base_ledger);
        for (int variant = 0; variant < 6; variant++) {
            struct el_train_config changed = config;
            if (variant == 1) changed.capture = false;
            if (variant == 2) changed.overlap = false;
            if (variant == 3 || variant == 5) changed.keep_grads = false;
            if (variant >= 4) changed.bucket_view = true;
            assert_int_equal(el_train_check(&changed), EL_OK);
            train(&changed, NULL, &other, other_ledger);
            assert_memory_equal(base.loss, other.loss, (size_t)config.steps * sizeof *base.loss);
            if (variant < 2) assert_memory_equal(base_ledger, other_ledger, (size_t)n * sizeof *base_ledger);
            el_train_result_free(&other);
        }
        el_train_result_free(&base);
    }
}

static void variants_give_the_same_bits_in_f64(void **state)
{
    same_bits(EL_F64);
}

static void variants_give_the_same_bits_in_f32(void **state)
{
    same_bits(EL_F32);
}

RUN_TESTS(open_all, close_all, every_mode_on_one_device_is_single, an_uneven_mean_of_means_is_not_singles_loss,
          variants_give_the_same_bits_in_f64, variants_give_the_same_bits_in_f32)
