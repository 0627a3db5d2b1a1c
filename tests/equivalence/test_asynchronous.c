/* The modes on asynchronous devices: a fake whose streams run as far out of step as events allow, and whose memory the
 * host cannot touch, as a GPU's. Losses and accuracy are those of CPU devices with the same kernels, bit for
 * bit; so are the ledgers. It shows that nothing in training reads device memory, or counts on what an event did not
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/gate/gate.h"
#include "runtime/modes/dp/fix.h"
#include "tests/equivalence/case_images.h"
#include "tests/equivalence/cases.h"
#include "tests/unit/fake_async.h"
#include "tests/unit/fake_nccl.h"

enum { DEVICES = 3, STEPS = 12, STEPS_SANITIZED = 5 };

static struct el_dataset *dataset;

static int open_all(void **state)
{
    struct el_dataset_spec spec = {.source = "dummy", .vocab = 60, .seq = 9, .classes = 4, .seed = 3, .held_out = 0.2};
    return el_dataset_open(&spec, &dataset) == EL_OK ? 0 : -1;
}

static int close_all(void **state)
{
    el_dataset_close(dataset);
    return 0;
}

static struct el_device *cpu_device(int index)
{
    struct el_device_spec spec = {
        .backend = "cpu", .index = index, .position = index, .kernels = el_kernels_reference()};
    struct el_device *device = NULL;
    if (el_device_open(&spec, &device) != EL_OK) fail_msg("%s", el_error_message());
    return device;
}

/* Of asynchronous devices some steps have no spans. */
static void count_recorded(void *context, const struct el_step_event *event)
{
    *(_Atomic int *)context += event->spans != NULL;
}

/* On fresh devices; the policy is the fake's. */
static void train(const struct el_train_config *config, bool on_fake, struct el_train_result *result,
                  struct el_ledger *ledgers)
{
    struct el_device *devices[DEVICES];
    struct el_bootstrap *self;
    struct el_probe probes[DEVICES];
    _Atomic int n_recorded = 0;
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    for (int d = 0; d < config->n_devices; d++) {
        devices[d] = on_fake ? fake_device(d) : cpu_device(d);
        probes[d] = (struct el_probe){.context = &n_recorded, .spans = true, .step = count_recorded};
    }
    struct el_train_place place = {
        .devices = devices, .n_devices = config->n_devices, .bootstrap = self, .dataset = dataset};
    struct el_train_hooks hooks = {.probes = probes};
    enum el_status status = el_train(config, &place, &hooks, result);
    if (status != EL_OK) fail_msg("%s on %s: %s", config->mode, on_fake ? "the fake" : "cpu", el_error_message());
    assert_true(n_recorded > 0);
    for (int d = 0; d < config->n_devices; d++) {
        ledgers[d] = *el_device_ledger(devices[d]);
        el_device_close(devices[d]);
    }
    el_bootstrap_close(self);
}

static void compare_ledgers(const char *text, const struct el_ledger *a, const struct el_ledger *b, int n)
{
    for (int d = 0; d < n; d++) {
        for (int t = 0; t < EL_TAG_COUNT; t++) {
            if (t == EL_TAG_WORKSPACE) continue; /* a communicator's own scratch counts there */
            if (a[d].peak_by_tag[t] != b[d].peak_by_tag[t])
                fail_msg("%s: device %d holds %zu bytes of %s, not %zu", text, d, a[d].peak_by_tag[t],
                         el_tag_name((enum el_tag)t), b[d].peak_by_tag[t]);
        }
    }
}

static void compare(const char *text, const struct el_train_result *result, const struct el_train_result *wanted)
{
    for (int64_t i = 0; i < result->n_warmup + result->n_steps; i++)
        if (result->loss[i] != wanted->loss[i])
            fail_msg("%s: step %d: loss %.17g, on cpu %.17g", text, (int)i, result->loss[i], wanted->loss[i]);
    assert_true(result->n_steps > 0 && result->loss[0] != result->loss[result->n_steps - 1]);
    assert_int_equal(result->n_buffers, wanted->n_buffers);
    if (result->n_buffers && memcmp(result->buffers, wanted->buffers, (size_t)result->n_buffers * sizeof(double)))
        fail_msg("%s: other running statistics than on cpu", text);
    for (int e = 0; e < result->n_epochs; e++) {
        assert_true(result->epochs[e].held_out_accuracy >= 0);
        assert_true(result->epochs[e].held_out_accuracy == wanted->epochs[e].held_out_accuracy);
    }
    assert_int_equal(fake.n_wrong, 0);
    assert_int_equal(fake.n_events, 0);
}

/* In the place of the module's. */
enum el_status el_nccl_api_open(const struct el_nccl_api **api_p)
{
    *api_p = &api;
    return EL_OK;
}

/* Whether the fake's devices are cards of their own, which NCCL joins; else they share one, and the host does. */
static bool own_cards;

/* On CPU devices once, and on the fake with each policy from `first` up to `end`; under a sanitizer, which looks at
 * what a step does and not at what comes out, with one of them by turns. */
static void compare_steps(const struct el_train_config *config, const char *text, int first, int end)
{
    static int turn;
    if (is_sanitized()) first += turn++ % (end - first), end = first + 1;
    struct el_train_result wanted, result;
    struct el_ledger wanted_ledgers[DEVICES], ledgers[DEVICES];
    train(config, false, &wanted, wanted_ledgers);
    for (int policy = first; policy < end; policy++) {
        reset((enum fake_policy)policy);
        fake.own_cards = own_cards;
        train(config, true, &result, ledgers);
        compare(text, &result, &wanted);
        compare_ledgers(text, ledgers, wanted_ledgers, config->n_devices);
        el_train_result_free(&result);
    }
    el_train_result_free(&wanted);
}

static void compare_configured(struct el_train_config *config, const char *text, int first, int end)
{
    config->steps = is_sanitized() ? STEPS_SANITIZED : STEPS;
    compare_steps(config, text, first, end);
}

static void compare_policies(const struct el_case *c, const char *mode, int n, int64_t epochs, int first, int end)
{
    struct el_train_config config;
    char text[128];
    el_case_text(c, mode, n, text, sizeof text);
    assert_int_equal(el_case_config(c, mode, n, &config), EL_OK);
    config.epochs = epochs;
    compare_configured(&config, text, first, end);
}

/* Where labels and losses are on other devices than usual, a map comes from the host, parameters are summed. */
static void options_give_the_same_bits(void **state)
{
    const struct el_case mlp = {"mlp", EL_OPT_MOMENTUM, 0, 22}, branch = {"branch", EL_OPT_MOMENTUM, 0, 22};
    struct el_train_config config;
    for (int in_replica = 0; in_replica < 2; in_replica++) {
        assert_int_equal(el_case_config(&mlp, "dp", 3, &config), EL_OK);
        assert_int_equal(el_mode_option_set(&config, "output-device", "1"), EL_OK);
        config.loss_in_replica = in_replica;
        compare_configured(&config, in_replica ? "dp --loss-in replica" : "dp --output-device 1", 0, FAKE_POLICIES);
    }
    assert_int_equal(el_case_config(&branch, "ddp", 2, &config), EL_OK);
    config.find_unused = true;
    config.n_accumulate = 2;
    compare_configured(&config, "ddp --find-unused on --accumulate 2", 0, FAKE_POLICIES);
    assert_int_equal(el_case_config(&mlp, "manual", 2, &config), EL_OK);
    config.sync_params = true;
    compare_configured(&config, "manual --sync param", 0, FAKE_POLICIES);
}

/* dp without its causes, each set of fixes with one of the policies, by the host or NCCL. */
static void fixes_give_the_same_bits(void **state)
{
    const struct el_case mlp = {"mlp", EL_OPT_MOMENTUM, 0, 23};
    for (unsigned fixes = 1; fixes <= EL_DP_FIX_ALL; fixes++) {
        struct el_train_config config;
        char text[EL_DP_FIX_TEXT_BYTES];
        int policy = (int)(fixes % FAKE_POLICIES);
        if (el_dp_fix_close(fixes) != fixes || (is_sanitized() && fixes % 5 != 3)) continue;
        own_cards = fixes & EL_DP_FIX_INPUTS;
        assert_int_equal(el_case_config(&mlp, "dp", 2 + own_cards, &config), EL_OK);
        config.dp_fix = fixes;
        config.steps = STEPS_SANITIZED;
        assert_int_equal(el_train_check(&config), EL_OK);
        el_dp_fix_text(fixes, text, sizeof text);
        compare_steps(&config, text, policy, policy + 1);
    }
    own_cards = false;
}

static void modes_give_the_same_bits(void **state)
{
    static const char *const modes[] = {"single", "dp", "ddp"};
    static const int cases[] = {0, 2, 6, 8, 11}; /* textcnn, with dropout and unevenly; mlp; toy */
    const size_t step = is_sanitized() ? 2 : 1;
    for (size_t i = step - 1; i < sizeof cases / sizeof cases[0]; i += step)
        for (int m = 0; m < 3; m++)
            compare_policies(&el_cases[cases[i]], modes[m], m ? 2 + (int)i % 2 : 1, 0, 0, FAKE_POLICIES);
}

/* Messages between stages, from card to card or over NCCL's links, in each mode that cuts the model. */
static void stages_give_the_same_bits(void **state)
{
    static const char *const modes[] = {"mp", "pipeline"};
    for (int cards = 0; cards < 2; cards++)
        for (int m = 0; m < 2; m++) {
            own_cards = cards;
            compare_policies(&el_cases[0], modes[m], 2 + cards, 0, 0, FAKE_POLICIES);
            assert_int_equal(nccl.n_destroyed > 0, cards);
            assert_int_equal(nccl.n_open, 0);
        }
    own_cards = false;
}

/* Several parts a device, messages of both ways between the same two, backwards in halves. */
static void schedules_give_the_same_bits(void **state)
{
    static const char *const names[] = {"interleaved", "zero-bubble",
                                        "tests/unit/data/schedules/ZBVZeroBubble-2x2-4.csv"};
    for (int i = 0; i < 3; i++) {
        struct el_train_config config;
        assert_int_equal(el_case_config(&el_cases[0], "pipeline", 2, &config), EL_OK);
        snprintf(config.schedule, sizeof config.schedule, "%s", names[i]);
        config.n_micro = 0;
        assert_int_equal(el_train_check(&config), EL_OK);
        own_cards = i != 1;
        compare_configured(&config, names[i], 0, FAKE_POLICIES);
    }
    own_cards = false;
}

/* Running statistics that are sent with the model, before a step, or stage by stage, and those that nobody sends. */
static void batch_norm_gives_the_same_bits(void **state)
{
    static const char *const modes[] = {"dp", "ddp", "spmg", "pipeline", "manual"};
    struct el_dataset *sentences = dataset;
    assert_int_equal(el_case_images(&dataset), EL_OK);
    for (int m = 0; m < 5; m++) {
        struct el_train_config config;
        el_case_images_config(modes[m], m ? 2 : 3, 12, IMAGE_SIDE, &config);
        assert_int_equal(el_train_check(&config), EL_OK);
        config.steps = 2;
        compare_steps(&config, modes[m], 0, FAKE_POLICIES);
    }
    el_dataset_close(dataset);
    dataset = sentences;
}

/* An epoch, its evaluation, and the best weights taken to the host and back. */
static void epochs_give_the_same_accuracy(void **state)
{
    static const char *const modes[] = {"single", "dp", "ddp"};
    static const struct el_case large = {"mlp", EL_OPT_SGD, 0, 442}; /* 30 steps an epoch */
    for (int m = 0; m < 3; m++) compare_policies(&large, modes[m], m ? 2 : 1, 2, m, m + 1);
}

/* As the gate asks for them. */
static void gradients_are_read_through_the_device(void **state)
{
    struct el_train_config config;
    double loss[2], *grads[2];
    for (int on_fake = 0; on_fake < 2; on_fake++) {
        struct el_bootstrap *self;
        struct el_device *device = on_fake ? fake_device(0) : cpu_device(0);
        fake_reset(FAKE_LAZY);
        fake.n_devices = on_fake;
        assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
        struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = dataset};
        assert_int_equal(el_case_config(&el_cases[2], "single", 1, &config), EL_OK);
        assert_int_equal(el_gate_gradients(&config, &place, &loss[on_fake], &grads[on_fake]), EL_OK);
        el_device_close(device);
        el_bootstrap_close(self);
    }
    assert_true(loss[0] == loss[1]);
    assert_true(grads[0][0] == grads[1][0] && grads[0][7] == grads[1][7]);
    free(grads[0]);
    free(grads[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_give_the_same_bits),      cmocka_unit_test(options_give_the_same_bits),
        cmocka_unit_test(fixes_give_the_same_bits),      cmocka_unit_test(stages_give_the_same_bits),
        cmocka_unit_test(schedules_give_the_same_bits),  cmocka_unit_test(batch_norm_gives_the_same_bits),
        cmocka_unit_test(epochs_give_the_same_accuracy), cmocka_unit_test(gradients_are_read_through_the_device),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
