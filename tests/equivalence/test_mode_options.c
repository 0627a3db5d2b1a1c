/* Options of modes, each against what it must equal in f64 on one device, with its memory and its bytes: gradients that
 * accumulate over micro-steps, parameters averaged instead of gradients, dp's loss elsewhere, parameters without
 * gradients. */
#include "tests/test.h"

#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { DEVICES = 4, STEPS = 12 };

/* What a device said to the others in a step. */
struct talk {
    uint64_t sent_bytes;
    char operations[256]; /* the bytes of each, in their order */
};

struct outcome {
    struct el_train_result result;
    struct talk talks[DEVICES];
};

static void count_talk(void *context, const struct el_step_event *event)
{
    struct outcome *outcome = context;
    for (int i = 0; i < event->n_ops; i++) outcome->talks[event->ops[i].device] = (struct talk){0};
    for (int i = 0; i < event->n_ops; i++) {
        const struct el_op_info *op = &event->ops[i];
        struct talk *talk = &outcome->talks[op->device];
        if (op->op_class != EL_CLASS_COMM) continue;
        talk->sent_bytes += op->sent_bytes;
        size_t used = strlen(talk->operations);
        snprintf(talk->operations + used, sizeof talk->operations - used, "%s%.0f", used ? " " : "", op->bytes);
    }
}

static void train(const struct el_train_config *config, const char *backend, struct outcome *outcome)
{
    *outcome = (struct outcome){0};
    train_watched(config, backend, dataset, count_talk, outcome, &outcome->result);
}

/* The losses of the mean over `n` shares' means, computed on one device. */
static void train_reference(const struct el_case *c, int n, struct outcome *wanted)
{
    struct el_train_config config;
    assert_int_equal(el_case_config(c, "reference", n, &config), EL_OK);
    config.steps = STEPS;
    train(&config, "cpu", wanted);
}

static void hold(const struct el_case *c, const struct el_train_config *config, const struct outcome *wanted)
{
    struct outcome outcome;
    char text[128];
    el_case_text(c, config->mode, config->n_devices, text, sizeof text);
    train(config, "cpu", &outcome);
    double difference = el_case_difference(&outcome.result, &wanted->result);
    if (!(difference <= CASE_TOLERANCE))
        fail_msg("%s, %d micro-steps: losses differ by %g", text, (int)config->n_accumulate, difference);
    el_train_result_free(&outcome.result);
}

/* ---- micro-steps ---- */

/* N micro-steps on n devices are a step of n N devices, in dp of N: for even batches and for uneven ones. */
static void micro_steps_are_ranks_of_a_larger_job(void **state)
{
    static const struct el_case cases[] = {
        {"mlp", EL_OPT_SGD, 0, 22}, {"textcnn", EL_OPT_MOMENTUM, 0.5, 24}, {"textcnn", EL_OPT_ADAM, 0.5, 23}};
    for (int i = 0; i < 3 * DEVICES; i++) {
        const struct el_case *c = &cases[i / DEVICES];
        const int n = i % DEVICES + 1, micro = i % 2 ? 3 : 2;
        struct outcome wanted, one_rank;
        train_reference(c, n * micro, &wanted);
        train_reference(c, micro, &one_rank);
        for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
            struct el_train_config config;
            if (!el_mode_option_of(mode->name, "accumulate") || el_mode_devices_for(mode->name, c->model, n) < n)
                continue;
            assert_int_equal(el_case_config(c, mode->name, n, &config), EL_OK);
            config.steps = STEPS;
            config.n_accumulate = micro;
            const struct outcome *its = el_case_shares(c, mode->name, n) == 1 ? &one_rank : &wanted;
            hold(c, &config, its);
            config.keep_grads = false;
            config.bucket_view = el_mode_option_of(mode->name, "bucket-view");
            hold(c, &config, its);
        }
        el_train_result_free(&wanted.result);
        el_train_result_free(&one_rank.result);
    }
}

/* At its peak a step has inputs and activations of one micro-step, and new gradients beside those of the others: what a
 * step of that micro-batch alone has with kept gradients, but for a loss a micro-step. It sends what a step without
 * micro-steps sends; dp sends parameters and gradients in each. */
static void micro_steps_take_the_memory_of_one_and_talk_once(void **state)
{
    const struct el_case all = {"textcnn", EL_OPT_MOMENTUM, 0.5, 24}, one = {"textcnn", EL_OPT_MOMENTUM, 0.5, 8};
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        struct el_train_config config;
        struct outcome whole, micro, part;
        int n = el_mode_devices_for(mode->name, all.model, 2);
        if (!el_mode_option_of(mode->name, "accumulate") || mode->axes & 1U << EL_AXIS_SHARD) continue;
        assert_int_equal(el_case_config(&all, mode->name, n, &config), EL_OK);
        config.steps = 3;
        train(&config, "null", &whole);
        config.keep_grads = false;
        config.n_accumulate = 3;
        train(&config, "null", &micro);
        assert_int_equal(el_case_config(&one, mode->name, n, &config), EL_OK);
        config.steps = 3;
        train(&config, "null", &part);
        for (int d = 0; d < n; d++) {
            bool dp = strcmp(mode->name, "dp") == 0;
            size_t losses = dp && d > 0 ? 0 : 2 * sizeof(double);
            assert_int_equal(micro.result.ledgers[d].peak_bytes, part.result.ledgers[d].peak_bytes + losses);
            assert_int_equal(micro.talks[d].sent_bytes, whole.talks[d].sent_bytes * (dp ? 3 : 1));
            if (!dp) assert_string_equal(micro.talks[d].operations, whole.talks[d].operations);
            assert_true(n == 1 || *micro.talks[d].operations);
        }
        el_train_result_free(&whole.result);
        el_train_result_free(&micro.result);
        el_train_result_free(&part.result);
    }
}

/* ---- parameters instead of gradients ---- */

/* Steps of sgd and momentum are linear in the gradients, so the mean of the ranks' parameters is what the mean of their
 * gradients gives. Adam's are not: there it is the mean of parameters that ranks stepped to by themselves. Neither its
 * memory nor its bytes differ from those of averaged gradients. */
static void averaged_parameters(void **state)
{
    static const struct el_case cases[] = {
        {"mlp", EL_OPT_SGD, 0, 22}, {"textcnn", EL_OPT_MOMENTUM, 0.5, 23}, {"mlp", EL_OPT_ADAM, 0, 22}};
    for (int i = 0; i < 3 * DEVICES; i++) {
        const struct el_case *c = &cases[i % 3];
        const int n = i / 3 + 1;
        struct el_train_config config;
        struct outcome of_params, of_grads, params, grads;
        train_reference(c, n, &of_grads);
        assert_int_equal(el_case_config(c, "reference", n, &config), EL_OK);
        config.steps = STEPS;
        config.sync_params = true;
        train(&config, "cpu", &of_params);
        double difference = el_case_difference(&of_params.result, &of_grads.result);
        assert_true(c->optimizer == EL_OPT_ADAM && n > 1 ? difference > 1e-5 : difference <= CASE_TOLERANCE);
        assert_int_equal(el_case_config(c, "manual", n, &config), EL_OK);
        config.steps = STEPS;
        train(&config, "cpu", &grads);
        config.sync_params = true;
        train(&config, "cpu", &params);
        assert_true(el_case_difference(&params.result, &of_params.result) <= CASE_TOLERANCE);
        for (int d = 0; d < n; d++) {
            assert_string_equal(params.talks[d].operations, grads.talks[d].operations);
            assert_int_equal(params.talks[d].sent_bytes, grads.talks[d].sent_bytes);
            assert_int_equal(params.result.ledgers[d].peak_bytes, grads.result.ledgers[d].peak_bytes);
        }
        el_train_result_free(&of_params.result);
        el_train_result_free(&of_grads.result);
        el_train_result_free(&params.result);
        el_train_result_free(&grads.result);
    }
}

/* ---- where dp's loss is ---- */

static void give(struct el_train_config *config, const char *option, const char *text)
{
    assert_int_equal(el_mode_option_set(config, option, text), EL_OK);
}

static void give_position(struct el_train_config *config, const char *option, int position)
{
    char text[16];
    snprintf(text, sizeof text, "%d", position);
    give(config, option, text);
}

static void train_dp(const struct el_case *c, int n, int micro, int output, bool in_replica, struct outcome *outcome)
{
    struct el_train_config config;
    assert_int_equal(el_case_config(c, "dp", n, &config), EL_OK);
    config.steps = STEPS;
    give_position(&config, "output-device", output);
    config.loss_in_replica = in_replica;
    config.n_accumulate = micro;
    assert_int_equal(el_train_check(&config), EL_OK);
    train(&config, "cpu", outcome);
}

/* On whichever device the outputs are: single's loss. In replicas: the mean of their chunks' means, which count alike
 * however large they are; single's where they are even. */
static void loss_of_dp_by_its_place(void **state)
{
    static const struct el_case cases[] = {{"mlp", EL_OPT_MOMENTUM, 0, 24}, {"textcnn", EL_OPT_ADAM, 0.5, 22}};
    for (int i = 0; i < 2 * DEVICES; i++) {
        const struct el_case *c = &cases[i / DEVICES];
        const int n = i % DEVICES + 1, micro = i % 2 + 1;
        struct el_train_config config;
        struct outcome single, means, outcome;
        train_reference(c, micro, &single);
        assert_int_equal(el_case_config(c, "reference", 1, &config), EL_OK);
        config.steps = STEPS;
        config.n_pieces = n;
        config.loss_in_replica = true;
        config.n_accumulate = micro;
        train(&config, "cpu", &means);
        bool even = c->batch % (n * micro) == 0;
        double apart = el_case_difference(&means.result, &single.result);
        assert_true(even ? apart <= CASE_TOLERANCE : apart > 1e-5);
        for (int output = 0; output < n; output++) {
            train_dp(c, n, micro, output, false, &outcome);
            assert_true(el_case_difference(&outcome.result, &single.result) <= CASE_TOLERANCE);
            el_train_result_free(&outcome.result);
            train_dp(c, n, micro, output, true, &outcome);
            assert_true(el_case_difference(&outcome.result, &means.result) <= CASE_TOLERANCE);
            el_train_result_free(&outcome.result);
        }
        el_train_result_free(&single.result);
        el_train_result_free(&means.result);
    }
}

/* The closed forms of dp_loss.c: O = 24 x 500 outputs of 8 bytes, o = a third. */
static void memory_of_dp_by_the_place_of_its_loss(void **state)
{
    enum { N = 3, OUT = 1 };
    struct el_train_config config;
    struct outcome gathered, elsewhere, replicas;
    const struct el_case wide = {"mlp", EL_OPT_SGD, 0, 24};
    const size_t all = (size_t)24 * 500 * 8, own = all / N, loss = 8, labels = 24 * 4;
    struct outcome *const outcomes[] = {&gathered, &elsewhere, &replicas};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(el_case_config(&wide, "dp", N, &config), EL_OK);
        el_model_set(&config.model, "hidden", NULL, 0);
        config.model.classes = 500;
        config.steps = 2;
        give_position(&config, "output-device", i ? OUT : 0);
        config.loss_in_replica = i == 2;
        train(&config, "null", outcomes[i]);
    }
    for (int d = 0; d < N; d++) {
        size_t kept = d == 0 ? loss : 0; /* the master's, of every mode */
        const size_t *of_gathered = gathered.result.ledgers[d].peak_by_tag;
        const size_t *of_elsewhere = elsewhere.result.ledgers[d].peak_by_tag;
        const size_t *of_replicas = replicas.result.ledgers[d].peak_by_tag;
        assert_int_equal(of_gathered[EL_TAG_OUTPUT], d == 0 ? 2 * all + loss : own);
        assert_int_equal(of_elsewhere[EL_TAG_OUTPUT], d == OUT ? 2 * all + loss : own + kept);
        assert_int_equal(of_replicas[EL_TAG_OUTPUT], 2 * own + loss + kept + (d == OUT ? N * loss : 0));
        assert_int_equal(of_elsewhere[EL_TAG_INPUT],
                         of_gathered[EL_TAG_INPUT] + (d == OUT ? labels : 0) - (d ? 0 : labels));
        assert_int_equal(of_replicas[EL_TAG_INPUT], of_gathered[EL_TAG_INPUT] + (d ? labels / N : 0));
    }
    for (int i = 0; i < 3; i++) el_train_result_free(&outcomes[i]->result);
}

static void a_device_without_a_chunk_has_no_outputs(void **state)
{
    struct el_train_config config;
    const struct el_case five = {"mlp", EL_OPT_SGD, 0, 5}; /* on four devices: 2, 2, 1 */
    assert_int_equal(el_case_config(&five, "dp", 4, &config), EL_OK);
    give_position(&config, "output-device", 3);
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_string_equal(el_error_message(),
                        "--loss-in device=3: 3 devices have a part of the batch; they are numbered from 0");
}

/* ---- parameters without gradients ---- */

static const struct el_case branch = {"branch", EL_OPT_MOMENTUM, 0, 24}, branch_uneven = {"branch", EL_OPT_ADAM, 0, 22};

/* Every mode trains a model of which a layer is not used, as on one device; ddp where it is told to look. */
static void unused_parameters_are_found(void **state)
{
    for (int i = 0; i < 2 * DEVICES; i++) {
        const struct el_case *c = i < DEVICES ? &branch : &branch_uneven;
        const int n = i % DEVICES + 1;
        struct outcome wanted, single;
        train_reference(c, n, &wanted);
        train_reference(c, 1, &single);
        for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
            struct el_train_config config;
            bool finds = el_mode_option_of(mode->name, "find-unused"),
                 ddp = el_mode_option_of(mode->name, "static-graph");
            if (el_mode_devices_for(mode->name, c->model, n) < n || !el_case_can_be_cut(c, mode->name, n)) continue;
            for (int way = 0; way < (ddp ? 4 : 1); way++) {
                assert_int_equal(el_case_config(c, mode->name, n, &config), EL_OK);
                config.steps = STEPS;
                config.find_unused = finds && way % 2 == 0;
                if (ddp) give(&config, "static-graph", way % 2 ? "on" : "off");
                config.bucket_view = way >= 2;
                config.keep_grads = way == 1;
                hold(c, &config, el_case_shares(c, mode->name, n) == 1 ? &single : &wanted);
            }
        }
        el_train_result_free(&wanted.result);
        el_train_result_free(&single.result);
    }
}

/* As in PyTorch in the second step, on all ranks: nobody waits. */
static void unused_parameters_fail_by_name(void **state)
{
    struct el_train_config config;
    struct outcome outcome;
    for (int overlap = 0; overlap < 2; overlap++) {
        assert_int_equal(el_case_config(&branch, "ddp", 3, &config), EL_OK);
        config.overlap = overlap;
        config.steps = 1;
        train(&config, "cpu", &outcome);
        el_train_result_free(&outcome.result);
        config.steps = 2;
        assert_int_equal(try_to_train(&config, "cpu", el_kernels_reference(), dataset, NULL, NULL, &outcome.result),
                         EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "ddp: expected to have finished reduction in the prior iteration "
                                                   "before starting a new one: rank "));
        assert_non_null(
            strstr(el_error_message(), " got no gradient of 'side.weight' and 1 more; give --find-unused "));
    }
}

/* Buckets by the order of parameters, the last one first, and in every step the map; with a static graph as they became
 * ready, what did not come last, and no map after the first step. Its bytes are of tag bucket. */
static void what_is_done_about_unused_parameters(void **state)
{
    struct el_train_config config;
    struct outcome found, once, plain;
    const struct el_case mlp = {"mlp", EL_OPT_MOMENTUM, 0, 24};
    const size_t unused = (7 * 4 + 4) * sizeof(double), map = 8 * sizeof(int32_t); /* side: 7 inputs, 4 classes */
    assert_int_equal(el_case_config(&mlp, "ddp", 2, &config), EL_OK);
    train(&config, "null", &plain);
    assert_int_equal(el_case_config(&branch, "ddp", 2, &config), EL_OK);
    give(&config, "static-graph", "on");
    train(&config, "null", &once);
    give(&config, "static-graph", "off");
    config.find_unused = true;
    train(&config, "null", &found);
    /* 144 + 12, 84 + 7, side 28 + 4, out 28 + 4 elements; the first limit is 1 KiB, the second 4 */
    for (int d = 0; d < 2; d++) {
        assert_string_equal(found.talks[d].operations, "1336 1152 32");
        assert_string_equal(once.talks[d].operations, "1080 1408");
        const struct el_ledger *of_plain = &plain.result.ledgers[d], *of_found = &found.result.ledgers[d];
        assert_int_equal(of_found->peak_by_tag[EL_TAG_BUCKET], of_plain->peak_by_tag[EL_TAG_BUCKET] + unused + map);
        assert_int_equal(of_found->peak_by_tag[EL_TAG_PARAM], of_plain->peak_by_tag[EL_TAG_PARAM] + unused);
        assert_int_equal(of_found->peak_by_tag[EL_TAG_GRAD], of_plain->peak_by_tag[EL_TAG_GRAD]);
        assert_int_equal(of_found->peak_by_tag[EL_TAG_OPTIMIZER], of_plain->peak_by_tag[EL_TAG_OPTIMIZER]);
        assert_int_equal(of_found->peak_bytes, of_plain->peak_bytes + 2 * unused + map);
        assert_int_equal(once.result.ledgers[d].peak_bytes, of_found->peak_bytes);
        assert_int_equal(once.talks[d].sent_bytes, plain.talks[d].sent_bytes + unused);
        assert_int_equal(found.talks[d].sent_bytes, once.talks[d].sent_bytes + map);
    }
    el_train_result_free(&plain.result);
    el_train_result_free(&once.result);
    el_train_result_free(&found.result);
}

static void too_many_micro_steps_are_refused(void **state)
{
    struct el_train_config config;
    assert_int_equal(el_case_config(&el_cases[6], "ddp", 4, &config), EL_OK);
    config.n_accumulate = 6; /* of 22 samples */
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
    assert_string_equal(el_error_message(),
                        "--accumulate 6: a batch of 22 is smaller than the number of micro-steps on all devices (24)");
    assert_int_equal(el_case_config(&el_cases[6], "dp", 4, &config), EL_OK);
    config.n_accumulate = 5; /* 5, 5, 4, 4, 4 samples: 5 are 2, 2, 1 */
    assert_int_equal(el_train_check(&config), EL_ERR_INVALID);
}

RUN_TESTS(open_all, close_all, micro_steps_are_ranks_of_a_larger_job, micro_steps_take_the_memory_of_one_and_talk_once,
          too_many_micro_steps_are_refused, averaged_parameters, loss_of_dp_by_its_place,
          memory_of_dp_by_the_place_of_its_loss, a_device_without_a_chunk_has_no_outputs, unused_parameters_are_found,
          unused_parameters_fail_by_name, what_is_done_about_unused_parameters)
