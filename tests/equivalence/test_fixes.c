/* dp without its causes of waiting, one by one and together: every set of fixes trains as one device does, and with all
 * of them a step has ddp's ops, bytes and memory. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/gate/gate.h"
#include "runtime/modes/dp/fix.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/case_images.h"
#include "tests/own_place.h"

enum { DEVICES = 3, STEPS = 6, OPS_MAX = 1024, LINE_BYTES = 320 };

/* A device's ops of the last step, each as a line. */
struct list {
    int n;
    char (*lines)[LINE_BYTES];
};

struct outcome {
    struct el_train_result result;
    struct list lists[DEVICES];
};

static void note(struct list *list, const struct el_op_info *op)
{
    const char *verb = op->messages.verb ? op->messages.verb : "-";
    assert_true(list->n < OPS_MAX);
    snprintf(list->lines[list->n++], LINE_BYTES,
             "%s: %s, class %d, stream %d, waits %d, %.0f FLOPs, %.0f bytes, %llu sent, %llu received, peer %d, "
             "%s by %s in %d rounds of %llu",
             op->label, el_phase_name(op->phase), op->op_class, op->stream, op->n_waits > 0, op->flops, op->bytes,
             (unsigned long long)op->sent_bytes, (unsigned long long)op->received_bytes, op->peer, verb,
             op->messages.verb ? op->messages.algorithm : "-", op->messages.rounds,
             (unsigned long long)op->messages.largest_bytes);
}

static void take_ops(void *context, const struct el_step_event *event)
{
    struct outcome *outcome = context;
    for (int i = 0; i < event->n_ops; i++) outcome->lists[event->ops[i].device].n = 0;
    for (int i = 0; i < event->n_ops; i++) note(&outcome->lists[event->ops[i].device], &event->ops[i]);
}

static void train(const struct el_train_config *config, const char *backend, struct outcome *outcome)
{
    *outcome = (struct outcome){0};
    for (int d = 0; d < DEVICES; d++) {
        outcome->lists[d].lines = calloc(OPS_MAX, LINE_BYTES);
        assert_non_null(outcome->lists[d].lines);
    }
    train_watched(config, backend, dataset, take_ops, outcome, &outcome->result);
}

static void forget(struct outcome *outcome)
{
    for (int d = 0; d < DEVICES; d++) free(outcome->lists[d].lines);
    el_train_result_free(&outcome->result);
}

/* Sets of fixes with all that they need, one after another; EL_DP_FIX_ALL is the last. */
static unsigned next_set(unsigned fixes)
{
    do fixes++;
    while (el_dp_fix_close(fixes) != fixes);
    return fixes;
}

static void fixed(const struct el_case *c, int n, unsigned fixes, struct el_train_config *config)
{
    assert_int_equal(el_case_config(c, "dp", n, config), EL_OK);
    config->steps = STEPS;
    config->dp_fix = fixes;
    assert_int_equal(el_train_check(config), EL_OK);
    assert_int_equal(config->dp_fix, fixes);
}

/* Losses over the steps, and running statistics after them, those of the reference on one device. */
static void hold(const struct el_train_config *config)
{
    struct el_train_config reference;
    struct outcome outcome, wanted;
    char fixes[EL_DP_FIX_TEXT_BYTES];
    el_dp_fix_text(config->dp_fix, fixes, sizeof fixes);
    el_gate_reference_config(config, &reference);
    train(&reference, "cpu", &wanted);
    train(config, "cpu", &outcome);
    double difference = el_case_difference(&outcome.result, &wanted.result);
    if (!(difference <= CASE_TOLERANCE))
        fail_msg("%s on %d, batch %d, %s: losses differ by %g", config->model.name, config->n_devices,
                 (int)config->global_batch, fixes, difference);
    assert_true(outcome.result.n_buffers <= wanted.result.n_buffers);
    for (int64_t i = 0; i < outcome.result.n_buffers; i++)
        if (!(fabs(outcome.result.buffers[i] - wanted.result.buffers[i]) <= CASE_TOLERANCE))
            fail_msg("%s: running statistic %d differs", fixes, (int)i);
    forget(&outcome);
    forget(&wanted);
}

/* Where the batch is even and where it is not; where a device has no chunk of it, and takes no part but for loading for
 * itself; and with running statistics. */
static void every_set_trains_as_one_device(void **state)
{
    static const struct el_case cases[] = {
        {"textcnn", EL_OPT_MOMENTUM, 0.5, 24}, {"mlp", EL_OPT_ADAM, 0, 22}, {"textcnn", EL_OPT_SGD, 0.5, 23}};
    static const struct el_case four = {"mlp", EL_OPT_MOMENTUM, 0, 4}; /* on three devices: 2, 2, 0 */
    struct el_dataset *sentences = dataset, *images;
    int n_sets = 0;
    assert_int_equal(el_case_images(&images), EL_OK);
    for (unsigned fixes = 0;; fixes = next_set(fixes)) {
        struct el_train_config config;
        for (int n = 2; n <= DEVICES; n++) {
            fixed(&cases[(2 * n_sets + n) % 3], n, fixes, &config);
            config.keep_grads = n % 2;
            hold(&config);
        }
        fixed(&four, 3, fixes, &config);
        hold(&config);
        el_case_images_config("dp", 2 + (int)(fixes % 2), 12, IMAGE_SIDE, &config);
        config.dp_fix = fixes;
        config.steps = 2;
        assert_int_equal(el_train_check(&config), EL_OK);
        dataset = images;
        hold(&config);
        dataset = sentences;
        n_sets++;
        if (fixes == EL_DP_FIX_ALL) break;
    }
    assert_int_equal(n_sets, 32);
    el_dataset_close(images);
}

static void same_lists(const struct outcome *dp, const struct outcome *ddp, int n)
{
    for (int d = 0; d < n; d++) {
        const struct list *a = &dp->lists[d], *b = &ddp->lists[d];
        for (int i = 0; i < a->n && i < b->n; i++) assert_string_equal(a->lines[i], b->lines[i]);
        assert_int_equal(a->n, b->n);
        assert_true(a->n > 10);
        assert_memory_equal(&dp->result.ledgers[d], &ddp->result.ledgers[d], sizeof dp->result.ledgers[d]);
    }
}

/* By every device's ops, in their order and to the byte, by its ledger and by each step's loss; buffers too. */
static void with_all_fixes_dp_is_ddp(void **state)
{
    struct el_dataset *sentences = dataset;
    for (int i = 0; i <= 2 * 3; i++) {
        const struct el_case c = {i % 3 ? "textcnn" : "mlp", (enum el_optimizer_kind)(i % 3), i % 3 ? 0.5 : 0, 23};
        struct el_train_config configs[2]; /* dp, ddp */
        struct outcome outcomes[2];
        int n = 2 + i / 3 % 2;
        bool of_images = i == 2 * 3;
        if (of_images) assert_int_equal(el_case_images(&dataset), EL_OK);
        for (int k = 0; k < 2; k++) {
            const char *mode = k ? "ddp" : "dp";
            if (of_images)
                el_case_images_config(mode, n, 12, IMAGE_SIDE, &configs[k]);
            else
                assert_int_equal(el_case_config(&c, mode, n, &configs[k]), EL_OK);
            configs[k].dp_fix = k ? 0 : EL_DP_FIX_ALL;
            configs[k].keep_grads = i % 2;
            configs[k].steps = of_images ? 2 : STEPS;
            assert_int_equal(el_train_check(&configs[k]), EL_OK);
            train(&configs[k], "cpu", &outcomes[k]);
        }
        same_lists(&outcomes[0], &outcomes[1], n);
        assert_true(el_case_difference(&outcomes[0].result, &outcomes[1].result) <= 1e-12);
        for (int k = 0; k < 2; k++) forget(&outcomes[k]);
    }
    el_dataset_close(dataset);
    dataset = sentences;
}

/* dp_fix.h: where parameters weigh more than all else. */
static void memory_is_in_copies_of_the_parameters(void **state)
{
    const struct el_case wide = {"mlp", EL_OPT_MOMENTUM, 0, 6};
    for (unsigned fixes = 0;; fixes = next_set(fixes)) {
        struct el_train_config config;
        struct el_memory_forecast forecasts[DEVICES];
        struct el_graph *graph;
        char text[EL_DP_FIX_TEXT_BYTES];
        double slots = 1, others = 2;
        fixed(&wide, DEVICES, fixes, &config);
        config.keep_grads = false;
        el_model_set(&config.model, "features", (int64_t[]){5000}, 1);
        el_model_set(&config.model, "hidden", (int64_t[]){500}, 1);
        if (fixes & EL_DP_FIX_OVERLAP) others = 3;
        if (fixes & EL_DP_FIX_UPDATE) others = 4 + slots;
        if (fixes & EL_DP_FIX_REPLICAS) others = 3 + slots;
        el_dp_fix_text(fixes, text, sizeof text);
        assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
        assert_int_equal(el_train_forecast(&config, el_kernels_reference(), forecasts), EL_OK);
        for (int d = 0; d < DEVICES; d++) {
            double copies = (double)forecasts[d].ledger.peak_bytes / (double)(el_graph_param_count(graph) * 8);
            if (!(fabs(copies - (d ? others : 3 + slots)) < 0.05)) fail_msg("%s: device %d: %.3f P", text, d, copies);
        }
        el_graph_destroy(graph);
        if (fixes == EL_DP_FIX_ALL) break;
    }
}

static void a_fix_brings_what_it_needs(void **state)
{
    struct el_train_config config;
    char text[EL_DP_FIX_TEXT_BYTES];
    const struct el_dp_fix_row *rows = el_dp_fix_rows();
    for (int i = 0; i < EL_DP_FIXES; i++) {
        unsigned before = 0;
        for (int k = 0; k < i; k++) before |= rows[k].fix;
        assert_int_equal(rows[i].needs & ~before, 0); /* one after another each has a difference of its own */
    }
    el_dp_fix_text(el_dp_fix_close(EL_DP_FIX_REPLICAS), text, sizeof text);
    assert_string_equal(text, "outputs,update,replicas");
    el_dp_fix_text(0, text, sizeof text);
    assert_string_equal(text, "none");
    fixed(&el_cases[0], 2, EL_DP_FIX_INPUTS, &config);
    config.n_accumulate = 2;
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "--dp-fix and --accumulate do not go together: leave one of them out");
}

RUN_TESTS(open_all, close_all, every_set_trains_as_one_device, with_all_fixes_dp_is_ddp,
          memory_is_in_copies_of_the_parameters, a_fix_brings_what_it_needs)
