/* Training on cards whose streams run as far out of step as events allow: losses, accuracy and running statistics are,
 * bit for bit, those of streams that go on as they come, and, but for rounding, those of CPU devices; so are the
 * ledgers, with NCCL and without. It shows that nothing in training reads a card's memory, or counts on what an event
 * did not order. */
#include "runtime/gate/gate.h"
#include "runtime/modes/dp/fix.h"
#include "tests/cards/cards_cases.h"

enum { STEPS = 4, ALL = 0 };

/* One way of training. What stands beside the name is left out where it is 0. */
struct way {
    const char *mode, *model;
    int n, only; /* devices; one policy alone */
    bool nccl;
    enum el_optimizer_kind optimizer;
    double dropout;
    int64_t batch, n_accumulate, epochs;
    int data; /* ranks that each have a copy of the model */
    bool find_unused, loss_in_replica, sync_params;
    const char *option, *value;
    const char *schedule;
    unsigned fixes;
};

static const struct way ways[] = {
    {"single", "textcnn", 1, ALL, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22},
    {"dp", "textcnn", 3, ALL, false, EL_OPT_MOMENTUM, .dropout = 0.5, .batch = 24},
    {"dp", "toy", 2, ALL, true, EL_OPT_SGD, .batch = 24},
    {"ddp", "textcnn", 2, ALL, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22},
    {"ddp", "mlp", 3, ALL, true, EL_OPT_SGD, .batch = 22},
    /* Labels and losses on other devices than usual, a map from the host, parameters that are summed. */
    {"dp", "mlp", 3, ALL, .batch = 22, .option = "output-device", .value = "1"},
    {"dp", "mlp", 3, ALL, .batch = 22, .loss_in_replica = true},
    {"ddp", "branch", 2, ALL, .batch = 22, .find_unused = true, .n_accumulate = 2},
    {"manual", "mlp", 2, ALL, .batch = 22, .sync_params = true},
    /* Ranks that have several devices each. */
    {"spmg", "textcnn", 4, ALL, false, EL_OPT_ADAM, .dropout = 0.5, .batch = 22, .data = 2},
    {"spmg", "mlp", 4, CARDS_LAZY, .batch = 22, .data = 2, .option = "reduce", .value = "hierarchical"},
    {"pipeline", "mlp", 4, CARDS_RANDOM, true, .batch = 24, .data = 2},
    /* Messages between stages, from card to card or over NCCL's links. */
    {"mp", "textcnn", 2, ALL, false, EL_OPT_SGD, .batch = 24},
    {"mp", "textcnn", 3, ALL, true, EL_OPT_SGD, .batch = 24},
    {"pipeline", "textcnn", 2, ALL, false, EL_OPT_SGD, .batch = 24},
    {"pipeline", "textcnn", 3, ALL, true, EL_OPT_SGD, .batch = 24},
    /* Several parts a device, messages of both ways between the same two, backwards in halves. */
    {"pipeline", "textcnn", 2, ALL, true, EL_OPT_SGD, .batch = 24, .schedule = "interleaved"},
    {"pipeline", "textcnn", 2, ALL, false, EL_OPT_SGD, .batch = 24, .schedule = "zero-bubble"},
    {"pipeline", "textcnn", 2, ALL, true, EL_OPT_SGD, .batch = 24,
     .schedule = "tests/unit/data/schedules/ZBVZeroBubble-2x2-4.csv"},
    /* Running statistics that are sent with the model, before a step, or stage by stage, and those that nobody sends.
     */
    {"dp", "resnet18", 3, CARDS_LAZY, .batch = 12},
    {"ddp", "resnet18", 2, CARDS_OTHERS_FIRST, .batch = 12},
    {"spmg", "resnet18", 2, CARDS_RANDOM, .batch = 12},
    {"pipeline", "resnet18", 2, CARDS_LAZY, .batch = 12},
    {"manual", "resnet18", 2, CARDS_OTHERS_FIRST, .batch = 12},
    /* An epoch, its evaluation, and the best weights taken to the host and back. */
    {"dp", "mlp", 2, CARDS_OTHERS_FIRST, false, EL_OPT_SGD, .batch = 442, .epochs = 1},
    {"ddp", "mlp", 2, CARDS_LAZY, false, EL_OPT_SGD, .batch = 442, .epochs = 1},
};

static void configure_way(const struct way *way, struct el_train_config *config)
{
    if (strcmp(way->model, "resnet18") == 0) {
        el_case_images_config(way->mode, way->n, way->batch, IMAGE_SIDE, config);
        config->steps = 2;
    } else {
        const struct el_case c = {way->model, way->optimizer ? way->optimizer : EL_OPT_MOMENTUM, way->dropout,
                                  way->batch};
        if (el_case_config(&c, way->data ? "single" : way->mode, way->data ? 1 : way->n, config) != EL_OK)
            fail_msg("%s", el_error_message());
        config->steps = is_sanitized() ? 3 : STEPS;
    }
    snprintf(config->mode, sizeof config->mode, "%s", way->mode);
    config->n_devices = way->n;
    config->mesh[EL_AXIS_DATA] = way->data;
    config->n_accumulate = way->n_accumulate;
    config->epochs = way->epochs;
    config->find_unused = way->find_unused;
    config->loss_in_replica = way->loss_in_replica;
    config->sync_params = way->sync_params;
    config->dp_fix = way->fixes;
    if (way->schedule) {
        snprintf(config->schedule, sizeof config->schedule, "%s", way->schedule);
        config->n_micro = 0;
    }
    if (way->option) assert_int_equal(el_mode_option_set(config, way->option, way->value), EL_OK);
    if (el_train_check(config) != EL_OK) fail_msg("%s", el_error_message());
}

static void compare_bits(const char *text, const struct trained *trained, const struct trained *wanted, int n)
{
    const struct el_train_result *a = &trained->result, *b = &wanted->result;
    if (el_case_difference(a, b) != 0) fail_msg("%s: other losses", text);
    assert_int_equal(a->n_buffers, b->n_buffers);
    if (a->n_buffers && memcmp(a->buffers, b->buffers, (size_t)a->n_buffers * sizeof(double)) != 0)
        fail_msg("%s: other running statistics", text);
    for (int e = 0; e < a->n_epochs; e++) {
        assert_true(a->epochs[e].held_out_accuracy >= 0);
        assert_true(a->epochs[e].held_out_accuracy == b->epochs[e].held_out_accuracy);
    }
    for (int d = 0; d < n; d++)
        assert_memory_equal(trained->ledgers[d].peak_by_tag, wanted->ledgers[d].peak_by_tag,
                            sizeof wanted->ledgers[d].peak_by_tag);
}

/* On CPU devices, on cards as they come, and with one policy or each; under a sanitizer, which looks at what a step
 * does and not at what comes out, on cards with one of them by turns. */
static void check_way(const struct way *way, const char *text)
{
    static int turn;
    struct el_train_config config;
    struct trained on_cpu, wanted, trained;
    int first = way->only ? way->only : CARDS_LAZY, end = way->only ? way->only + 1 : CARDS_POLICIES;
    if (is_sanitized()) first += turn++ % (end - first), end = first + 1;
    configure_way(way, &config);
    with_nccl = way->nccl;
    train_on("cuda", false, &config, &wanted);
    if (wanted.status != EL_OK) fail_msg("%s: %s", text, el_error_message());
    if (!is_sanitized()) {
        train_on("cpu", false, &config, &on_cpu);
        assert_int_equal(on_cpu.status, EL_OK);
        double far = el_case_difference(&wanted.result, &on_cpu.result);
        if (!(far <= CASE_TOLERANCE)) fail_msg("%s: %g from the CPU's losses", text, far);
        el_train_result_free(&on_cpu.result);
    }
    assert_true(wanted.result.n_steps > 0 && wanted.result.loss[0] != wanted.result.loss[wanted.result.n_steps - 1]);
    for (int policy = first; policy < end; policy++) {
        cards_set_policy((enum cards_policy)policy, 5);
        train_on("cuda", false, &config, &trained);
        cards_set_policy(CARDS_FREE, 0);
        if (trained.status != EL_OK) fail_msg("%s, policy %d: %s", text, policy, el_error_message());
        compare_bits(text, &trained, &wanted, way->n);
        el_train_result_free(&trained.result);
        assert_nothing_left();
    }
    el_train_result_free(&wanted.result);
}

static void every_way_has_the_same_bits(void **state)
{
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        char text[128];
        snprintf(text, sizeof text, "%zu: %s %s on %d", w, ways[w].mode, ways[w].model, ways[w].n);
        if (!is_sanitized() || w % 2 == 1) check_way(&ways[w], text);
    }
}

/* dp without its causes: each set of fixes with one of the policies, by the host or NCCL. */
static void fixes_have_the_same_bits(void **state)
{
    for (unsigned fixes = 1; fixes <= EL_DP_FIX_ALL; fixes++) {
        bool nccl = fixes & EL_DP_FIX_INPUTS;
        const struct way way = {"dp", "mlp",       2 + nccl,      (int)(CARDS_LAZY + fixes % 3),
                                nccl, .batch = 23, .fixes = fixes};
        char text[EL_DP_FIX_TEXT_BYTES];
        if (el_dp_fix_close(fixes) != fixes || (is_sanitized() && fixes % 5 != 3)) continue;
        el_dp_fix_text(fixes, text, sizeof text);
        check_way(&way, text);
    }
}

/* As the gate asks for them. */
static void gradients_are_read_through_the_device(void **state)
{
    const struct way way = {"single", "textcnn", 1, .batch = 24};
    struct el_train_config config;
    double loss[2], *grads[2];
    for (int on_card = 0; on_card < 2; on_card++) {
        struct el_bootstrap *self;
        struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
        struct el_device *device = NULL;
        cards_set_policy(on_card ? CARDS_LAZY : CARDS_FREE, 0);
        if (on_card)
            device = open_card(0);
        else
            assert_int_equal(el_device_open(&spec, &device), EL_OK);
        assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
        struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = sentences};
        configure_way(&way, &config);
        assert_int_equal(el_gate_gradients(&config, &place, &loss[on_card], &grads[on_card]), EL_OK);
        el_device_close(device);
        el_bootstrap_close(self);
    }
    cards_set_policy(CARDS_FREE, 0);
    assert_true(fabs(loss[0] - loss[1]) < CASE_TOLERANCE);
    for (int i = 0; i < 8; i++) assert_true(fabs(grads[0][i] - grads[1][i]) < CASE_TOLERANCE);
    free(grads[0]);
    free(grads[1]);
}

/* With samples to evaluate on. */
static int open_sets(void **state)
{
    struct el_dataset_spec spec = {.source = "dummy", .vocab = 60, .seq = 9, .classes = 4, .seed = 3, .held_out = 0.2};
    return el_dataset_open(&spec, &sentences) == EL_OK && el_case_images(&images) == EL_OK ? 0 : -1;
}

int main(void)
{
    set_up_cards();
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch would wait for the card, and hide what does not */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_has_the_same_bits),
        cmocka_unit_test(fixes_have_the_same_bits),
        cmocka_unit_test(gradients_are_read_through_the_device),
    };
    return cmocka_run_group_tests_name("training on cards out of step", tests, open_sets, close_all);
}
