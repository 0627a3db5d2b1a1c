/* Parameters that are frozen: those of the rest get the gradients that they get in the whole model, every mode trains
 * the rest as one device does, and what is frozen costs no gradient, no optimizer state, no bucket and no message. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/gate/gate.h"
#include "runtime/modes/dp/fix.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/case_images.h"
#include "tests/own_place.h"

enum { DEVICES = 4, STEPS = 6 };

static struct el_dataset *images;

static int open_both(void **state)
{
    return open_all(state) == 0 && el_case_images(&images) == EL_OK ? 0 : -1;
}

static int close_both(void **state)
{
    el_dataset_close(images);
    return close_all(state);
}

/* What a device sent in a step, and whether it computed an embedding's gradient. */
struct seen {
    uint64_t sent_bytes;
    double reduced_bytes;
    int n_embedding_backward;
};

static void look(void *context, const struct el_step_event *event)
{
    struct seen *seen = context;
    for (int i = 0; i < event->n_ops; i++) seen[event->ops[i].device] = (struct seen){0};
    for (int i = 0; i < event->n_ops; i++) {
        const struct el_op_info *op = &event->ops[i];
        seen[op->device].sent_bytes += op->sent_bytes;
        if (strstr(op->label, "all_reduce")) seen[op->device].reduced_bytes += op->bytes;
        seen[op->device].n_embedding_backward += strstr(op->label, "embedding_backward") != NULL;
    }
}

static struct el_dataset *data_of(const struct el_train_config *config)
{
    return el_model_find(config->model.name)->input == EL_INPUT_IMAGES ? images : dataset;
}

/* `seen` may be NULL. */
static void train(struct el_train_config *config, const char *backend, struct el_train_result *result,
                  struct seen *seen)
{
    if (el_train_check(config) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    train_watched(config, backend, data_of(config), seen ? look : NULL, seen, result);
}

static double *gradients(struct el_train_config *config, double *loss_p)
{
    struct own_place p;
    double *grads;
    if (el_train_check(config) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    open_place("cpu", config->n_devices, el_kernels_reference(), data_of(config), &p);
    if (el_gate_gradients(config, &p.place, loss_p, &grads) != EL_OK)
        fail_msg("%s: %s", config->mode, el_error_message());
    close_place(&p);
    return grads;
}

static void freeze(struct el_train_config *config, const char *names)
{
    snprintf(config->model.freeze, sizeof config->model.freeze, "%s", names);
}

static void configure(const char *model, const char *mode, int n_devices, struct el_train_config *config)
{
    const struct el_case c = {model, EL_OPT_MOMENTUM, 0, 24};
    if (!strncmp(model, "resnet", 6)) {
        el_case_images_config(mode, n_devices, 12, IMAGE_SIDE, config);
    } else {
        assert_int_equal(el_case_config(&c, "single", 1, config), EL_OK);
        snprintf(config->mode, sizeof config->mode, "%s", mode);
        config->n_devices = n_devices;
        config->n_micro = 2;
    }
    config->steps = STEPS;
}

/* ---- what the rest gets ---- */

static const char *const frozen[][2] = {
    {"textcnn", "embedding"},
    {"textcnn", "conv4"},
    {"textcnn", "embedding,conv3,conv4,conv5"},
    {"textcnn", "fc"},
    {"mlp", "hidden1"},
    {"mlp", "hidden2"},
    {"mlp", "out.bias,hidden1.weight"},
    {"branch", "side"},
    {"resnet18", "conv1,bn1"},
    {"resnet18", "conv1,bn1,layer1"},
    {"resnet18", "bn1,layer2.0.bn1,layer2.0.downsample"},
    {"resnet18", "conv1,bn1,layer1,layer2,layer3,layer4"},
    {"resnet18", "layer2.0.conv2.weight,layer2.0.bn2.weight"},
};
enum { N_FROZEN = sizeof frozen / sizeof frozen[0] };

/* To the bit, on one device: no gradient of the rest goes another way. */
static void the_rest_has_the_whole_models_gradients(void **state)
{
    for (int i = 0; i < 2 * N_FROZEN; i++) {
        struct el_train_config config;
        struct el_graph *graph;
        double loss, its_loss;
        int64_t n_frozen = 0;
        configure(frozen[i / 2][0], "single", 1, &config);
        config.n_accumulate = 1 + i % 2;
        double *whole = gradients(&config, &loss), *at = whole;
        freeze(&config, frozen[i / 2][1]);
        double *rest = gradients(&config, &its_loss), *its = rest;
        assert_true(loss == its_loss);
        assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
        for (int p = 0; p < graph->n_params; p++) {
            int64_t n = el_param_count(graph, p);
            for (int64_t k = 0; k < n; k++)
                if (its[k] != (graph->params[p].frozen ? 0 : at[k]))
                    fail_msg("%s, frozen %s: gradient of %s is %g, not %g", config.model.name, config.model.freeze,
                             graph->params[p].name, its[k], at[k]);
            if (graph->params[p].frozen) n_frozen += n;
            at += n;
            its += n;
        }
        assert_true(n_frozen > 0 && n_frozen + el_graph_trained_count(graph) == el_graph_param_count(graph));
        el_graph_destroy(graph);
        free(whole);
        free(rest);
    }
}

/* ---- modes ---- */

static void hold(struct el_train_config *config, const struct el_train_result *wanted, const char *what)
{
    struct el_train_result result;
    train(config, "cpu", &result, NULL);
    double difference = el_case_difference(&result, wanted);
    if (!(difference <= CASE_TOLERANCE))
        fail_msg("%s %s on %d, frozen %s, %s: losses differ by %g", config->mode, config->model.name, config->n_devices,
                 config->model.freeze, what, difference);
    el_train_result_free(&result);
}

/* Each with the ways in which it holds gradients. */
static void hold_ways(struct el_train_config *config, const struct el_train_result *wanted)
{
    const char *mode = config->mode;
    hold(config, wanted, "kept");
    config->keep_grads = false;
    hold(config, wanted, "freed");
    config->bucket_view = el_mode_option_of(mode, "bucket-view");
    if (config->bucket_view) hold(config, wanted, "views");
    config->find_unused = el_mode_option_of(mode, "find-unused");
    if (config->find_unused) hold(config, wanted, "find-unused");
    for (int f = 0; el_mode_option_of(mode, "dp-fix") && f < EL_DP_FIXES; f++) {
        const struct el_dp_fix_row *row = &el_dp_fix_rows()[f];
        config->dp_fix = el_dp_fix_close(row->fix);
        hold(config, wanted, row->name);
    }
    if (!el_mode_option_of(mode, "schedule")) return;
    snprintf(config->schedule, sizeof config->schedule, "zero-bubble");
    hold(config, wanted, "zero-bubble");
}

/* Single's losses, as shares are even; and not those of training everything. A layer that is not used and frozen too is
 * nobody's to look for. */
static void every_mode_trains_the_rest(void **state)
{
    for (int i = 0; i < 8; i++) {
        for (int n = 2; n <= 4; n += i % 3 ? 2 : 1) {
            struct el_train_config config;
            struct el_train_result wanted, whole;
            configure(frozen[i][0], "single", 1, &config);
            train(&config, "cpu", &whole, NULL);
            freeze(&config, frozen[i][1]);
            train(&config, "cpu", &wanted, NULL);
            assert_true(!strcmp(frozen[i][0], "branch") || el_case_difference(&wanted, &whole) > 1e-6);
            for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
                const struct el_case c = {frozen[i][0], EL_OPT_MOMENTUM, 0, 24};
                if (el_mode_devices_for(mode->name, c.model, n) < n || !el_case_can_be_cut(&c, mode->name, n)) continue;
                configure(frozen[i][0], mode->name, n, &config);
                freeze(&config, frozen[i][1]);
                hold_ways(&config, &wanted);
            }
            el_train_result_free(&wanted);
            el_train_result_free(&whole);
        }
    }
}

/* Ranks that average parameters leave what is frozen alone; copies in stages have a stage without anything to train. */
static void averaged_parameters_and_copies_in_stages(void **state)
{
    struct el_train_config config;
    struct el_train_result wanted;
    configure("textcnn", "single", 1, &config);
    freeze(&config, "embedding");
    train(&config, "cpu", &wanted, NULL);
    configure("textcnn", "manual", 3, &config);
    freeze(&config, "embedding");
    config.sync_params = true;
    hold(&config, &wanted, "--sync param");
    for (int micro = 1; micro <= 2; micro++) {
        configure("textcnn", micro > 1 ? "pipeline" : "mp", 4, &config);
        freeze(&config, "embedding");
        config.mesh[EL_AXIS_DATA] = 2;
        config.n_micro = micro;
        snprintf(config.cut, sizeof config.cut, "conv3");
        hold(&config, &wanted, "--mesh dp=2,pp=2");
    }
    el_train_result_free(&wanted);
}

/* The gate, of a residual network whose first layers are frozen, and of one with single batch norms frozen. */
static void residual_networks_pass_the_gate(void **state)
{
    for (int i = 8; i < N_FROZEN; i++) {
        for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
            struct el_train_config config;
            struct own_place p;
            double loss, reference_loss, worst, *reference;
            char name[128];
            int n = el_mode_devices_for(mode->name, "resnet18", 2 + i % 2);
            if (i % 2 && is_sanitized()) continue;
            configure("resnet18", mode->name, n, &config);
            freeze(&config, frozen[i][1]);
            double *grads = gradients(&config, &loss);
            open_place("cpu", 1, el_kernels_reference(), images, &p);
            assert_int_equal(el_gate_reference(&config, p.devices[0], images, &reference_loss, &reference), EL_OK);
            assert_int_equal(el_gate_compare(&config, grads, reference, &worst, name, sizeof name), EL_OK);
            close_place(&p);
            if (!(worst <= 1e-9) || !(fabs(loss - reference_loss) <= 1e-9))
                fail_msg("%s, frozen %s: %s differs by %g", mode->name, frozen[i][1], name, worst);
            free(grads);
            free(reference);
        }
    }
}

/* ---- memory and bytes ---- */

struct sizes {
    size_t all, trained;
};

static struct sizes sizes_of(const struct el_train_config *config)
{
    struct el_graph *graph;
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    struct sizes sizes = {8 * (size_t)el_graph_param_count(graph), 8 * (size_t)el_graph_trained_count(graph)};
    el_graph_destroy(graph);
    return sizes;
}

/* With P all parameters and F those that are trained: P of weights, F of gradients, S F of the optimizer's state, F of
 * buckets; replicas get P (and spmg's keep F of gradients, beside which come a layer's new ones). Only dp, where
 * autograd makes zeros of what is frozen, has P of gradients on each device and of sums. What is forecast is what a
 * step books. */
static void what_is_frozen_takes_weights_alone(void **state)
{
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        struct el_train_config config;
        struct el_train_result result;
        struct el_memory_forecast forecasts[DEVICES];
        struct seen seen[DEVICES];
        const int n = el_mode_devices_for(mode->name, "textcnn", 3);
        const bool dp = !strcmp(mode->name, "dp"), cuts = el_mode_cuts(mode->name);
        configure("textcnn", mode->name, n, &config);
        el_model_set(&config.model, "vocab", (int64_t[]){2000}, 1);
        freeze(&config, "embedding");
        config.optimizer = EL_OPT_ADAM;
        config.keep_grads = false;
        train(&config, "null", &result, seen);
        struct sizes sizes = sizes_of(&config);
        size_t sum[EL_TAG_COUNT] = {0}, layer = (4 * 5 * 6 + 4) * 8; /* conv5: its new gradients beside kept ones */
        assert_int_equal(result.param_bytes, sizes.all);
        assert_int_equal(result.trained_bytes, sizes.trained);
        assert_int_equal(el_train_forecast(&config, el_kernels_reference(), forecasts), EL_OK);
        for (int d = 0; d < n; d++) {
            const size_t *peak = result.ledgers[d].peak_by_tag;
            bool owns = !mode->memory.others || d == 0;
            for (int t = 0; t < EL_TAG_COUNT; t++) sum[t] += peak[t];
            assert_memory_equal(forecasts[d].ledger.peak_by_tag, peak, sizeof result.ledgers[d].peak_by_tag);
            assert_int_equal(seen[d].n_embedding_backward, 0);
            if (cuts || mode->axes & (1U << EL_AXIS_SHARD | 1U << EL_AXIS_EXPERT)) continue; /* test_zero.c, moe.bats */
            assert_int_equal(peak[EL_TAG_PARAM], owns ? sizes.all : 0);
            assert_int_equal(peak[EL_TAG_GRAD], dp ? sizes.all : sizes.trained + (owns ? 0 : layer));
            assert_int_equal(peak[EL_TAG_OPTIMIZER], owns ? 2 * sizes.trained : 0);
            if (mode->memory.backward > 2)
                assert_int_equal(peak[EL_TAG_BUCKET], dp ? (d ? 0 : sizes.all) : sizes.trained);
            if (!strcmp(mode->name, "ddp")) assert_true(seen[d].reduced_bytes == (double)sizes.trained);
        }
        if (cuts) assert_int_equal(sum[EL_TAG_PARAM], sizes.all);
        if (cuts) assert_int_equal(sum[EL_TAG_OPTIMIZER], 2 * sizes.trained);
        el_train_result_free(&result);
    }
}

/* A chunk of dp in which all is frozen is summed, and freed before the optimizer's step; the others' sums stay. */
static void sums_of_what_is_frozen_end_with_the_reduction(void **state)
{
    struct el_train_config config;
    struct el_train_result result, whole;
    configure("textcnn", "dp", 2, &config);
    el_model_set(&config.model, "vocab", (int64_t[]){400000}, 1); /* 18 MiB: a chunk of its own */
    config.optimizer = EL_OPT_ADAM;
    config.keep_grads = false;
    config.n_accumulate = 2;
    config.steps = 2;
    train(&config, "sim", &whole, NULL);
    freeze(&config, "embedding");
    train(&config, "sim", &result, NULL);
    struct sizes sizes = sizes_of(&config);
    size_t table = sizes.all - sizes.trained;
    /* sums of the first micro-step beside those of the second; without the table's of the first */
    assert_int_equal(whole.ledgers[0].peak_by_tag[EL_TAG_BUCKET], 2 * sizes.all);
    assert_int_equal(result.ledgers[0].peak_by_tag[EL_TAG_BUCKET], sizes.all + sizes.trained);
    assert_true(table > 100 * sizes.trained);
    el_train_result_free(&whole);
    el_train_result_free(&result);
}

/* Nobody wants the gradient of a frozen stage's output: it is not sent. */
static void no_gradient_goes_to_a_frozen_stage(void **state)
{
    for (int names = 0; names < 2; names++) {
        struct el_train_config config;
        struct el_train_result result;
        struct seen seen[DEVICES];
        configure("textcnn", "pipeline", 2, &config);
        snprintf(config.cut, sizeof config.cut, "conv3");
        if (names) freeze(&config, "embedding");
        train(&config, "null", &result, seen);
        assert_int_equal(seen[0].sent_bytes, 24 * 9 * 6 * 8);
        assert_int_equal(seen[1].sent_bytes, names ? 0 : 24 * 9 * 6 * 8);
        if (names) assert_int_equal(result.ledgers[0].peak_by_tag[EL_TAG_GRAD], 0);
        el_train_result_free(&result);
    }
}

/* ---- what is refused ---- */

static void bad_names_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"conv", "--freeze: textcnn has no parameter or layer 'conv' (it has embedding conv3 conv4 conv5 fc)"},
        {"fc,,conv3", "--freeze: textcnn has no parameter or layer '' (it has embedding conv3 conv4 conv5 fc)"},
        {"embedding.weights",
         "--freeze: textcnn has no parameter or layer 'embedding.weights' (it has embedding conv3 conv4 conv5 fc)"},
        {"embedding,conv3,conv4,conv5,fc",
         "all parameters are frozen: nothing is left to train: give fewer names to --freeze"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_train_config config;
        configure("textcnn", "ddp", 2, &config);
        freeze(&config, cases[i][0]);
        assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
        assert_string_equal(el_error_message(), cases[i][1]);
    }
}

RUN_TESTS(open_both, close_both, the_rest_has_the_whole_models_gradients, every_mode_trains_the_rest,
          averaged_parameters_and_copies_in_stages, residual_networks_pass_the_gate, what_is_frozen_takes_weights_alone,
          sums_of_what_is_frozen_end_with_the_reduction, no_gradient_goes_to_a_frozen_stage, bad_names_are_refused)
