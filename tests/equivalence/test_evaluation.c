/* What ranks count in an evaluation: the answers of DistributedSampler's indices, written down by its rule, each sample
 * having the loss and the answer that it has alone. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { TRAINED = 48, TESTED = 10, CLASSES = 3, PLACES_MAX = 64 };

static char train_path[] = "/tmp/el-test-evaluation-XXXXXX", test_path[] = "/tmp/el-test-evaluation-XXXXXX";
static struct el_dataset *dataset;

static void write_lines(char *path, int n, int salt)
{
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    for (int i = 0; i < n; i++)
        dprintf(descriptor, "%d w%d w%d w%d\n", i * 7 % CLASSES, (i + salt) % 11, i * 5 % 13, (i * i + salt) % 17);
    close(descriptor);
}

static int open_data(void **state)
{
    write_lines(train_path, TRAINED, 0);
    write_lines(test_path, TESTED, 3);
    return el_dataset_open(&(struct el_dataset_spec){.source = train_path, .test_path = test_path}, &dataset) == EL_OK
               ? 0
               : -1;
}

static int close_data(void **state)
{
    el_dataset_close(dataset);
    return unlink(train_path) | unlink(test_path);
}

/* An epoch in f64 that changes no weight: shares that differ would train otherwise. The caller frees the result. */
static struct el_evaluation evaluate_in(const char *mode, int n_ranks, enum el_eval eval,
                                        struct el_train_result *result)
{
    struct el_train_config config;
    const struct el_case mlp = {"mlp", EL_OPT_SGD, 0, 24};
    assert_int_equal(el_case_config(&mlp, mode, n_ranks, &config), EL_OK);
    config.model.classes = CLASSES;
    config.epochs = 1;
    config.lr = 0;
    config.eval = eval;
    train_watched(&config, "cpu", dataset, NULL, NULL, result);
    assert_int_equal(result->test.samples, TESTED);
    assert_int_equal(result->test.n_ranks, n_ranks);
    return result->test;
}

static struct el_evaluation evaluate(int n_ranks, enum el_eval eval, struct el_train_result *result)
{
    return evaluate_in("ddp", n_ranks, eval, result);
}

/* torch/utils/data/distributed.py, with shuffle=False and drop_last=False: the indices of all ranks. */
static int indices_of_sampler(int n, int n_ranks, int *indices)
{
    int total = (n + n_ranks - 1) / n_ranks * n_ranks, padding = total - n;
    for (int i = 0; i < n; i++) indices[i] = i;
    for (int i = 0; i < padding; i++) indices[n + i] = padding <= n ? indices[i] : indices[i % n];
    return total;
}

static void check_near(const struct el_score *a, const struct el_score *b)
{
    if (a->counted != b->counted || a->correct != b->correct || !(fabs(a->loss - b->loss) < 1e-9))
        fail_msg("%g of %g right, loss %.17g; not %g of %g, %.17g", a->correct, a->counted, a->loss, b->correct,
                 b->counted, b->loss);
}

static void add(const struct el_score *one, struct el_score *sum)
{
    sum->correct += one->correct, sum->counted += one->counted, sum->loss += one->loss;
}

/* Ranks enough for a sample each say what each sample answers. */
static void ranks_count_the_samplers_samples(void **state)
{
    static const int worlds[] = {1, 2, 3, 4, 7, 10, 12};
    struct el_train_result alone, result;
    const struct el_evaluation ones = evaluate(TESTED, EL_EVAL_EXACT, &alone);
    assert_in_range((int)ones.all.correct, 1, TESTED - 1);
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        int indices[PLACES_MAX], n_ranks = worlds[w], total = indices_of_sampler(TESTED, n_ranks, indices);
        for (int padded = 0; padded < 2; padded++) {
            struct el_evaluation got = evaluate(n_ranks, padded ? EL_EVAL_PADDED : EL_EVAL_EXACT, &result);
            struct el_score all = {0};
            for (int r = 0; r < n_ranks; r++) {
                struct el_score rank = {0};
                for (int i = r; i < (padded ? total : TESTED); i += n_ranks) add(&ones.ranks[indices[i]], &rank);
                check_near(&got.ranks[r], &rank);
                add(&rank, &all);
            }
            check_near(&got.all, &all);
            assert_true(got.accuracy == all.correct / all.counted);
            el_train_result_free(&result);
        }
        struct el_evaluation each = evaluate(n_ranks, EL_EVAL_EACH, &result);
        for (int r = 0; r < n_ranks; r++) check_near(&each.ranks[r], &ones.all);
        check_near(&each.all, &ones.all);
        el_train_result_free(&result);
    }
    el_train_result_free(&alone);
}

/* Copies of a model in stages are ranks too, and a stage counts only where the last part is. */
static void copies_in_stages_evaluate_too(void **state)
{
    static const enum el_eval evals[] = {EL_EVAL_EXACT, EL_EVAL_PADDED, EL_EVAL_EACH};
    for (size_t e = 0; e < sizeof evals / sizeof evals[0]; e++) {
        struct el_train_result ranks, copies;
        struct el_train_config config;
        const struct el_case mlp = {"mlp", EL_OPT_SGD, 0, 24};
        struct el_evaluation wanted = evaluate(3, evals[e], &ranks);
        assert_int_equal(el_case_config(&mlp, "pipeline", 2, &config), EL_OK);
        config.n_devices = 6;
        config.mesh[EL_AXIS_DATA] = 3;
        config.model.classes = CLASSES;
        config.epochs = 1;
        config.lr = 0;
        config.eval = evals[e];
        assert_int_equal(el_train_check(&config), EL_OK);
        train_watched(&config, "cpu", dataset, NULL, NULL, &copies);
        assert_int_equal(copies.test.n_ranks, 3);
        for (int r = 0; r < 3; r++) check_near(&copies.test.ranks[r], &wanted.ranks[r]);
        el_train_result_free(&ranks);
        el_train_result_free(&copies);
    }
}

/* Ranks that hold parts of the weights are ddp's, in their number, and have its answers. */
static void ranks_with_parts_of_the_weights_evaluate_too(void **state)
{
    static const char *const modes[] = {"zero1", "zero2", "zero3"};
    for (int m = 0; m < 3; m++)
        for (int eval = EL_EVAL_EXACT; eval <= EL_EVAL_EACH; eval++) {
            struct el_train_result ranks, parts;
            const struct el_evaluation wanted = evaluate(3, (enum el_eval)eval, &ranks),
                                       got = evaluate_in(modes[m], 3, (enum el_eval)eval, &parts);
            for (int r = 0; r < 3; r++) check_near(&got.ranks[r], &wanted.ranks[r]);
            check_near(&got.all, &wanted.all);
            el_train_result_free(&ranks);
            el_train_result_free(&parts);
        }
}

RUN_TESTS(open_data, close_data, ranks_count_the_samplers_samples, copies_in_stages_evaluate_too,
          ranks_with_parts_of_the_weights_evaluate_too)
