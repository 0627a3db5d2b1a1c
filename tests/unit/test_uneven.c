/* Uneven ends: how they are given, which samples the epochs behind them have, and who is named where ranks hang. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/layout/layout.h"
#include "runtime/state/state.h"
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

/* ---- PyTorch's Join as a plain loop ---- */

enum { LAYERS = 3, WIDEST = 12, N_PARAMS = 12 * 12 + 12 + 12 * 7 + 7 + 7 * 4 + 4, RANKS = 2, SHARE = BATCH / RANKS };
static const int widths[LAYERS + 1] = {12, 12, 7, 4};

/* Parameters of a layer: weights [outputs, inputs], then biases. */
struct plain_rank {
    double params[N_PARAMS], momentum[N_PARAMS];
    struct el_loader *loader;
};

/* The loss of one sample; adds its gradient, times `scale`. */
static double plain_sample(const double *params, const double *x, int label, double scale, double *grads)
{
    double y[LAYERS + 1][WIDEST], d[LAYERS + 1][WIDEST] = {{0}}, sum = 0;
    int at = 0;
    memcpy(y[0], x, sizeof y[0]);
    for (int l = 0; l < LAYERS; at += (widths[l] + 1) * widths[l + 1], l++)
        for (int o = 0; o < widths[l + 1]; o++) {
            double value = params[at + widths[l] * widths[l + 1] + o];
            for (int i = 0; i < widths[l]; i++) value += params[at + o * widths[l] + i] * y[l][i];
            y[l + 1][o] = l < LAYERS - 1 ? fmax(value, 0) : value;
        }
    for (int c = 0; c < widths[LAYERS]; c++) sum += exp(y[LAYERS][c]);
    for (int c = 0; c < widths[LAYERS]; c++) d[LAYERS][c] = scale * (exp(y[LAYERS][c]) / sum - (c == label));
    for (int l = LAYERS - 1; l >= 0; l--) {
        at -= (widths[l] + 1) * widths[l + 1];
        for (int o = 0; o < widths[l + 1]; o++) {
            if (l < LAYERS - 1 && !(y[l + 1][o] > 0)) continue;
            grads[at + widths[l] * widths[l + 1] + o] += d[l + 1][o];
            for (int i = 0; i < widths[l]; i++) {
                grads[at + o * widths[l] + i] += d[l + 1][o] * y[l][i];
                d[l][i] += d[l + 1][o] * params[at + o * widths[l] + i];
            }
        }
    }
    return log(sum) - y[LAYERS][label];
}

static void open_plain(const struct el_train_config *config, struct plain_rank ranks[RANKS])
{
    struct el_graph *graph;
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    assert_int_equal(el_graph_param_count(graph), N_PARAMS);
    for (int r = 0; r < RANKS; r++) {
        struct el_loader_spec spec = {.global_batch = BATCH,
                                      .ranks = RANKS,
                                      .rank = r,
                                      .shuffle = true,
                                      .seed = config->seed,
                                      .input = EL_INPUT_FEATURES,
                                      .features = widths[0],
                                      .dtype = EL_F64};
        double *values = ranks[r].params;
        for (int p = 0; p < graph->n_params; p++) {
            assert_int_equal(el_state_initial_values(config, graph, &graph->params[p], values), EL_OK);
            values += el_shape_count(&graph->params[p].shape);
        }
        memset(ranks[r].momentum, 0, sizeof ranks[r].momentum);
        assert_int_equal(el_loader_open(dataset, &spec, &ranks[r].loader), EL_OK);
    }
    el_graph_destroy(graph);
}

/* A step of the ranks [first, end), which have a batch: their gradients are summed and divided by all ranks, and no
 * other rank's optimizer makes a step. Returns the mean of their losses. */
static double plain_step(const struct el_train_config *config, struct plain_rank *ranks, int first, int end, int step)
{
    double grads[N_PARAMS] = {0}, loss = 0, x[SHARE * WIDEST];
    int32_t labels[SHARE];
    for (int r = first; r < end; r++) {
        assert_int_equal(el_loader_fill(ranks[r].loader, (uint64_t)step, x, labels), EL_OK);
        for (int s = 0; s < SHARE; s++)
            loss += plain_sample(ranks[r].params, x + s * widths[0], labels[s], 1.0 / SHARE / RANKS, grads);
    }
    for (int r = first; r < end; r++)
        for (int p = 0; p < N_PARAMS; p++) {
            ranks[r].momentum[p] = config->momentum * ranks[r].momentum[p] + grads[p];
            ranks[r].params[p] -= config->lr * ranks[r].momentum[p];
        }
    return loss / SHARE / (end - first);
}

/* Behind an epoch all have the parameters of the highest rank that had its last batch, and keep their own momentum. */
static void join_is_pytorchs(void **state)
{
    for (int i = 0; i < RANKS * (BATCHES - 1); i++) {
        const int rank = i % RANKS, fewer = i / RANKS + 1;
        struct plain_rank ranks[RANKS];
        struct el_train_config config;
        struct el_train_result joined;
        const struct el_case momentum = {"mlp", EL_OPT_MOMENTUM, 0, BATCH};
        assert_int_equal(el_case_config(&momentum, "ddp", RANKS, &config), EL_OK);
        config.epochs = EPOCHS;
        config.lr = 0.3;
        snprintf(config.uneven, sizeof config.uneven, "join:rank=%d,batches=%d", rank, fewer);
        train_watched(&config, "cpu", dataset, NULL, NULL, &joined);
        assert_int_equal(joined.n_steps, BATCHES * EPOCHS);
        open_plain(&config, ranks);
        for (int step = 0; step < BATCHES * EPOCHS; step++) {
            const bool all = step % BATCHES < BATCHES - fewer;
            double wanted = plain_step(&config, ranks, all ? 0 : 1 - rank, all ? RANKS : 2 - rank, step);
            if (!(fabs(joined.loss[step] - wanted) < 1e-12))
                fail_msg("%s: step %d: %.17g, not %.17g", config.uneven, step, joined.loss[step], wanted);
            if (step % BATCHES == BATCHES - 1)
                memcpy(ranks[rank].params, ranks[1 - rank].params, sizeof ranks[rank].params);
        }
        for (int r = 0; r < RANKS; r++) el_loader_close(ranks[r].loader);
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
    const int64_t begin_ns = el_clock_ns();
    assert_int_equal(try_to_train(&config, "cpu", NULL, dataset, NULL, NULL, &result), EL_ERR_PEER);
    if (!strstr(el_error_message(), "rank 1 ran out of batches: it has 2 in an epoch and the others 4") ||
        !strstr(el_error_message(), "step 3 of the epoch for 0.2 s (--comm-timeout)"))
        fail_msg("%s", el_error_message());
    assert_true(el_clock_ns() - begin_ns >= 200000000); /* the others did wait */
}

RUN_TESTS(open_data, close_data, what_is_given_is_read, an_epoch_that_stops_leaves_out_its_last,
          who_joins_has_no_part_in_the_loss, join_is_pytorchs, joins_that_cannot_be_are_refused,
          no_batch_at_all_is_refused, who_hangs_is_named)
