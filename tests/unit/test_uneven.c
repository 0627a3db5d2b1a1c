/* Uneven ends: how they are given, which samples the epochs behind them have, and who is named where ranks hang. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/layout/uneven.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { SAMPLES = 52, BATCH = 12, BATCHES = SAMPLES / BATCH, EPOCHS = 3 };

static char path[] = "/tmp/el-test-uneven-XXXXXX";
static struct el_dataset *dataset;

static int open_data(void **state)
{
    int descriptor = mkstemp(path);
    if (descriptor < 0) return -1;
    for (int i = 0; i < SAMPLES; i++) dprintf(descriptor, "%d w%d w%d\n", i % 4, i, i * 7 % 11);
    close(descriptor);
    return el_dataset_open(&(struct el_dataset_spec){.source = path}, &dataset) == EL_OK ? 0 : -1;
}

static int close_data(void **state)
{
    el_dataset_close(dataset);
    return unlink(path);
}

static void what_is_given_is_read(void **state)
{
    static const struct {
        const char *text;
        struct el_uneven wanted;
    } good[] = {{"", {EL_UNEVEN_OFF, 2, 1}},
                {"off", {EL_UNEVEN_OFF, 2, 1}},
                {"stop", {EL_UNEVEN_STOP, 2, 1}},
                {"join", {EL_UNEVEN_JOIN, 2, 1}},
                {"hang:rank=0", {EL_UNEVEN_HANG, 0, 1}},
                {"stop:batches=3", {EL_UNEVEN_STOP, 2, 3}},
                {"stop:rank=1,batches=12", {EL_UNEVEN_STOP, 1, 12}},
                {"stop:batches=12,rank=1", {EL_UNEVEN_STOP, 1, 12}}};
    static const char *const bad[] = {"halt",
                                      "sto",
                                      "stop:",
                                      "stop:rank",
                                      "stop:rank=",
                                      "stop:rank=3",
                                      "stop:rank=-1",
                                      "stop:batches=0",
                                      "stop:rank=1,",
                                      "stop,rank=1",
                                      "off:rank=1",
                                      "stop:rank=1x",
                                      "stop:rank=1,rank=2"};
    struct el_train_config config = {.n_devices = 3};
    struct el_uneven got;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(config.uneven, sizeof config.uneven, "%s", good[i].text);
        assert_int_equal(el_uneven_read(&config, &got), EL_OK);
        assert_int_equal(got.how, good[i].wanted.how);
        assert_int_equal(got.rank, good[i].wanted.rank);
        assert_int_equal(got.fewer, good[i].wanted.fewer);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(config.uneven, sizeof config.uneven, "%s", bad[i]);
        if (el_uneven_read(&config, &got) != EL_ERR_INVALID) fail_msg("'%s' was taken", bad[i]);
        if (!strstr(el_error_message(), bad[i])) fail_msg("%s", el_error_message());
    }
    config.n_devices = 1;
    snprintf(config.uneven, sizeof config.uneven, "stop");
    assert_int_equal(el_uneven_read(&config, &got), EL_ERR_INVALID);
}

static struct el_train_config config_of(const char *how)
{
    struct el_train_config config;
    assert_int_equal(el_case_config(&(struct el_case){"mlp", EL_OPT_SGD, 0, BATCH}, "ddp", 3, &config), EL_OK);
    config.epochs = EPOCHS;
    config.lr = 0;
    snprintf(config.uneven, sizeof config.uneven, "%s", how);
    if (el_train_check(&config) != EL_OK) fail_msg("%s", el_error_message());
    return config;
}

static void count_step(void *context, const struct el_step_event *event)
{
    uint64_t *n = context;
    if (event->ops[0].device == 0) assert_true(event->step == (*n)++); /* Adam counts by it */
}

/* With weights that never change a step's loss says which samples it had: an epoch that ends early leaves out its last
 * ones, and the next one begins with its own first. */
static void an_epoch_that_stops_leaves_out_its_last(void **state)
{
    struct el_train_result full, stopped;
    struct el_train_config config = config_of("off");
    train_watched(&config, "cpu", dataset, NULL, NULL, &full);
    assert_int_equal(full.n_steps, BATCHES * EPOCHS);
    assert_int_equal(full.n_agreements, 0);
    for (int fewer = 1; fewer < BATCHES; fewer++) {
        char how[32];
        const int steps = BATCHES - fewer;
        snprintf(how, sizeof how, "stop:rank=1,batches=%d", fewer);
        config = config_of(how);
        uint64_t n_seen = 0;
        config.loading.transfer = fewer == 2 ? EL_TRANSFER_AHEAD : EL_TRANSFER_NON_BLOCKING;
        train_watched(&config, "cpu", dataset, count_step, &n_seen, &stopped);
        assert_int_equal(n_seen, steps * EPOCHS);
        assert_int_equal(stopped.n_steps, steps * EPOCHS);
        assert_int_equal(stopped.n_epochs, EPOCHS);
        assert_int_equal(stopped.epoch_batches, BATCHES);
        assert_int_equal(stopped.n_agreements, (steps + 1) * EPOCHS);
        assert_true(stopped.agreement_ns > 0);
        for (int i = 0; i < steps * EPOCHS; i++)
            assert_true(stopped.loss[i] == full.loss[i / steps * BATCHES + i % steps]);
        el_train_result_free(&stopped);
    }
    for (int i = 1; i < BATCHES * EPOCHS; i++) assert_true(full.loss[i] != full.loss[i - 1]);
    el_train_result_free(&full);
}

/* All batches of the others are trained on, a step's loss is the mean over those who had one, and the next epoch begins
 * together. */
static void who_joins_has_no_part_in_the_loss(void **state)
{
    struct el_train_result full, joined;
    for (int rank = 0; rank < 3; rank++) {
        char how[32];
        snprintf(how, sizeof how, "join:rank=%d,batches=2", rank);
        struct el_train_config config = config_of("off");
        train_watched(&config, "cpu", dataset, NULL, NULL, &full);
        assert_int_equal(full.n_own, BATCHES);
        config = config_of(how);
        train_watched(&config, "cpu", dataset, NULL, NULL, &joined);
        assert_int_equal(joined.n_steps, full.n_steps);
        assert_int_equal(joined.n_own, BATCHES - 2);
        assert_int_equal(joined.n_agreements, (BATCHES + 1) * EPOCHS);
        for (int i = 0; i < BATCHES * EPOCHS; i++) {
            double wanted = full.loss[i];
            for (int r = 0; r < 3 && i >= BATCHES - 2 && i < BATCHES; r++)
                wanted += (r == rank ? -full.loss[i] : full.own_loss[r * BATCHES + i] / 2);
            if (i % BATCHES < 2 || i < BATCHES) assert_true(fabs(joined.loss[i] - wanted) < 1e-14);
        }
        el_train_result_free(&full);
        el_train_result_free(&joined);
    }
}

/* What a joined rank could not do as PyTorch does. */
static void joins_that_cannot_be_are_refused(void **state)
{
    struct el_train_config config = config_of("join");
    config.optimizer = EL_OPT_ADAM;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "leave --optimizer adam"));
    config = config_of("join");
    config.find_unused = true;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "leave --find-unused on out"));
}

static void no_batch_at_all_is_refused(void **state)
{
    struct el_train_result result;
    struct el_train_config config = config_of("stop:batches=4");
    assert_int_equal(try_to_train(&config, "cpu", NULL, dataset, NULL, NULL, &result), EL_ERR_INVALID);
    if (!strstr(el_error_message(), "an epoch has 4 batches: leave rank 2 at least one"))
        fail_msg("%s", el_error_message());
}

static void who_hangs_is_named(void **state)
{
    struct el_train_result result;
    struct el_train_config config = config_of("hang:rank=1,batches=2");
    assert_true(config.comm_timeout_s == EL_UNEVEN_TIMEOUT_S);
    config.comm_timeout_s = 0.2;
    assert_int_equal(try_to_train(&config, "cpu", NULL, dataset, NULL, NULL, &result), EL_ERR_PEER);
    if (!strstr(el_error_message(), "rank 1 ran out of batches: it has 2 in an epoch and the others 4") ||
        !strstr(el_error_message(), "step 3 of the epoch for 0.2 s (--comm-timeout)"))
        fail_msg("%s", el_error_message());
}

RUN_TESTS(open_data, close_data, what_is_given_is_read, an_epoch_that_stops_leaves_out_its_last,
          who_joins_has_no_part_in_the_loss, joins_that_cannot_be_are_refused, no_batch_at_all_is_refused,
          who_hangs_is_named)
