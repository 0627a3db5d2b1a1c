/* Batches padded to their own longest sentence, in f64: each mode's losses are those of plain training with the same
 * rows, whatever lengths come after one another, and whether programs are kept or each step is issued anew. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/gate/gate.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { SHORTEST = 3, LONGEST = 24, BATCH = 12, STEPS = 24, DEVICES = 3 };

static const double EXACT = 1e-12;
static const char *const modes[] = {"single", "dp", "ddp", "manual", "spmg", "zero1", "zero2", "zero3"};
enum { N_MODES = sizeof modes / sizeof modes[0] };

static struct el_dataset *dataset;

static struct el_dataset *open_set(int64_t shortest, int64_t longest, int64_t seq)
{
    struct el_dataset *set = NULL;
    struct el_dataset_spec spec = {
        .source = "dummy", .vocab = 60, .seq = seq, .classes = 4, .seed = 3, .shortest = shortest, .longest = longest};
    if (el_dataset_open(&spec, &set) != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

static int open_all(void **state)
{
    dataset = open_set(SHORTEST, LONGEST, 0);
    return 0;
}

static int close_all(void **state)
{
    el_dataset_close(dataset);
    return 0;
}

static struct el_train_config by_batch(const char *mode, int n_devices)
{
    static const struct el_case own = {"textcnn", EL_OPT_MOMENTUM, 0.5, BATCH};
    struct el_train_config config;
    assert_int_equal(el_case_config(&own, mode, n_devices, &config), EL_OK);
    el_model_set(&config.model, "seq", (int64_t[]){LONGEST}, 1);
    config.length_by_batch = true;
    config.steps = STEPS;
    if (el_train_check(&config) != EL_OK) fail_msg("%s", el_error_message());
    return config;
}

static void train(const struct el_train_config *config, const struct el_dataset *set, struct el_train_result *result,
                  struct el_ledger *ledgers)
{
    struct own_place own;
    open_place("cpu", config->n_devices, el_kernels_reference(), set, &own);
    if (el_train(config, &own.place, NULL, result) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    for (int d = 0; d < own.n && ledgers; d++) ledgers[d] = *el_device_ledger(own.devices[d]);
    close_place(&own);
}

/* The worst difference of the two runs' losses. */
static double difference(const struct el_train_config *a, const struct el_train_config *b)
{
    struct el_train_result results[2];
    train(a, dataset, &results[0], NULL);
    train(b, dataset, &results[1], NULL);
    double worst = el_case_difference(&results[0], &results[1]);
    el_train_result_free(&results[0]);
    el_train_result_free(&results[1]);
    return worst;
}

/* dp pads the whole batch before it is scattered; a rank of the others its own share, as a micro-step does: the mean
 * over ranks is that over micro-steps. spmg in one process pads as dp does. */
static void modes_equal_plain_training_with_the_same_rows(void **state)
{
    for (int m = 1; m < N_MODES; m++)
        for (int n = 2; n <= DEVICES; n++) {
            struct el_train_config config = by_batch(modes[m], n), plain = by_batch("single", 1);
            struct el_layout layout;
            el_layout_of(&config, 0, &layout);
            plain.n_accumulate = layout.n_feeds;
            double worst = difference(&config, &plain);
            if (!(worst <= EXACT)) fail_msg("%s on %d: losses differ by %g", modes[m], n, worst);
        }
}

static void micro_steps_of_ranks_have_lengths_of_their_own(void **state)
{
    struct el_train_config config = by_batch("ddp", 2), plain = by_batch("single", 1);
    config.n_accumulate = 2;
    plain.n_accumulate = 4;
    assert_true(difference(&config, &plain) <= EXACT);
}

/* Else the comparisons above would show nothing. */
static void what_is_padded_matters(void **state)
{
    struct el_train_config config = by_batch("single", 1), model = config, halves = config;
    model.length_by_batch = false;
    halves.n_accumulate = 2;
    assert_true(difference(&config, &model) > 1e-4);
    assert_true(difference(&config, &halves) > 1e-6);
}

static void kept_programs_are_those_issued_anew(void **state)
{
    for (int m = 0; m < N_MODES; m++) {
        struct el_train_config config = by_batch(modes[m], m ? 2 : 1), anew = config;
        struct el_train_result results[2];
        struct el_ledger ledgers[2][DEVICES];
        anew.capture = false;
        train(&config, dataset, &results[0], ledgers[0]);
        train(&anew, dataset, &results[1], ledgers[1]);
        assert_memory_equal(results[0].loss, results[1].loss, STEPS * sizeof *results[0].loss);
        assert_memory_equal(ledgers[0], ledgers[1], (size_t)config.n_devices * sizeof **ledgers);
        el_train_result_free(&results[0]);
        el_train_result_free(&results[1]);
    }
}

/* The words that the rows of a step have. */
static int64_t length_of(const struct el_dataset *set, int rank, int ranks, uint64_t step)
{
    const struct el_loader_spec spec = {
        .global_batch = BATCH, .ranks = ranks, .rank = rank, .shuffle = true, .seed = 7, .least = 5};
    struct el_loader *loader;
    assert_int_equal(el_loader_open(set, &spec, &loader), EL_OK);
    int64_t length = el_loader_length(loader, step);
    el_loader_close(loader);
    return length;
}

/* The first step is that of a model whose `seq` is the batch's longest sentence. */
static void a_step_is_that_of_a_model_of_its_length(void **state)
{
    struct el_dataset *set = open_set(SHORTEST, 5 * LONGEST, 0);
    const int64_t length = length_of(set, 0, 1, 0), seq = 5 * LONGEST;
    struct el_train_config config = by_batch("single", 1), model = config;
    struct el_train_result results[2];
    assert_true(length < seq);
    el_model_set(&config.model, "seq", &seq, 1);
    el_model_set(&model.model, "seq", &length, 1);
    model.length_by_batch = false;
    config.steps = model.steps = 1;
    struct el_dataset *cut = open_set(SHORTEST, 5 * LONGEST, length);
    train(&config, set, &results[0], NULL);
    train(&model, cut, &results[1], NULL);
    assert_memory_equal(results[0].loss, results[1].loss, sizeof *results[0].loss);
    el_train_result_free(&results[0]);
    el_train_result_free(&results[1]);
    el_dataset_close(cut);
    el_dataset_close(set);
}

/* The peak is that of the longest batch, and never above the forecast, which is for the model's `seq`. */
static void the_peak_is_the_longest_batchs(void **state)
{
    struct el_train_config config = by_batch("single", 1), model = config;
    struct el_train_result results[2];
    struct el_ledger ledgers[2];
    config.steps = model.steps = 4;
    int64_t longest = 0;
    for (uint64_t step = 0; step < 4; step++) {
        int64_t length = length_of(dataset, 0, 1, step);
        longest = length > longest ? length : longest;
    }
    struct el_dataset *cut = open_set(SHORTEST, LONGEST, longest);
    model.length_by_batch = false;
    el_model_set(&model.model, "seq", &longest, 1);
    train(&config, dataset, &results[0], &ledgers[0]);
    train(&model, cut, &results[1], &ledgers[1]);
    assert_int_equal(ledgers[0].peak_bytes, ledgers[1].peak_bytes);
    el_train_result_free(&results[0]);
    el_train_result_free(&results[1]);
    el_dataset_close(cut);
}

/* Of two ranks each has the longer batch in some steps: the straggler wanders. */
static void each_rank_is_the_longest_now_and_then(void **state)
{
    int longer[2] = {0, 0};
    for (uint64_t step = 0; step < 60; step++) {
        int64_t lengths[2] = {length_of(dataset, 0, 2, step), length_of(dataset, 1, 2, step)};
        if (lengths[0] != lengths[1]) longer[lengths[1] > lengths[0]]++;
    }
    assert_true(longer[0] >= 10 && longer[1] >= 10);
}

static void refuses_what_has_one_length(void **state)
{
    static const struct {
        const char *mode, *model, *words;
        bool by_batch, ahead;
    } cases[] = {
        {"pipeline", "textcnn", "--lengths pad=batch: pipeline: its stages pass on values of one length", true, false},
        {"mp", "textcnn", "--lengths pad=batch: mp: its stages", true, false},
        {"single", "mlp", "--lengths pad=batch: model mlp takes no sentences of any length", true, false},
        {"single", "mlp", "--lengths bucketed: model mlp", false, false},
        {"ddp", "textcnn", "leave --non-blocking ahead out", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct el_case own = {cases[i].model, EL_OPT_SGD, 0, BATCH};
        struct el_train_config config;
        assert_int_equal(el_case_config(&own, cases[i].mode, 2, &config), EL_OK);
        config.length_by_batch = cases[i].by_batch;
        config.bucket_lengths = !cases[i].by_batch;
        if (cases[i].ahead) config.loading.transfer = EL_TRANSFER_AHEAD;
        assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
        if (!strstr(el_error_message(), cases[i].words)) fail_msg("%s", el_error_message());
    }
}

RUN_TESTS(open_all, close_all, modes_equal_plain_training_with_the_same_rows,
          micro_steps_of_ranks_have_lengths_of_their_own, what_is_padded_matters, kept_programs_are_those_issued_anew,
          a_step_is_that_of_a_model_of_its_length, the_peak_is_the_longest_batchs,
          each_rank_is_the_longest_now_and_then, refuses_what_has_one_length)
