/* Closed forms of many devices: what a device sends, the messages of a collective, the state's memory, and the bubble,
 * on 64 and 4,096 devices of which those that differ are issued. gpt of width w, v tokens in its vocabulary and s in a
 * sequence, in d copies, p stages of L blocks and t pieces; a micro-batch of b samples has A = 4 b s w bytes of
 * activations. P, the parameters of a stage's piece:
 *
 *     each    L (12 w^2 + 7 w) / t + 6 L w      the second term is whole on each: norms, and biases behind sums
 *     first   v w / t + s w more
 *     last    2 w more; and v w / t, where it is not the first one too
 *
 * A device sends, in bytes:
 *
 *     along tensor   2 (t - 1) / t A for each all-reduce: 4 L a micro-batch, one more behind the embedding, and one
 *                    before the head; and 12 b s (t - 1) for the loss, of which each has three numbers a token
 *     along stage    A for each micro-batch and cut, in each direction; the embedding's gradient once, 4 v w / t
 *     along data     2 (d - 1) / d 4 P, on the average: chunks are whole lines of 64 bytes, so that a device of a ring
 *                    sends less or more by under two of them a bucket
 *     along shard    the same with n for d, and along stage one n-th of the embedding's gradient; of zero2 and zero3
 * one n-th along data; zero3 gathers the blocks, but not the rest, once more: (n - 1) / n of their bytes */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/train/forecast.h"
#include "runtime/train/train.h"

enum {
    DEVICES_MAX = 4096,
    WIDTH = 512,
    HEADS = 8,
    SEQ = 16,
    VOCAB = 1024,
    EACH = 2 /* blocks a stage */,
    LINE_BYTES = 64
};

/* What a step's ops say, of all devices that are issued. */
struct heard {
    int ring_rounds_wrong, n_collectives;
    int64_t longest_ns; /* of a collective */
    uint64_t copied_bytes;
    struct el_span window;
    double busy_ns; /* in forward and backward, and adding up gradients */
    int n;          /* devices */
};

static int rounds_of(const struct el_op_messages *messages)
{
    const int once = messages->size - 1;
    return strcmp(messages->verb, "all_reduce") == 0 ? 2 * once : messages->partner < 0 ? once : 1;
}

static void hear(void *context, const struct el_step_event *event)
{
    struct heard *heard = context;
    heard->n++;
    for (int i = 0; i < event->n_ops; i++) {
        const struct el_op_info *op = &event->ops[i];
        const struct el_span span = event->spans[i];
        const int64_t ns = span.end_ns - span.begin_ns;
        if (op->messages.verb && !op->link) {
            heard->n_collectives++;
            heard->copied_bytes += op->messages.copied_bytes;
            heard->ring_rounds_wrong += op->messages.rounds != rounds_of(&op->messages);
            if (ns > heard->longest_ns) heard->longest_ns = ns;
        }
        if (op->op_class != EL_CLASS_COMPUTE || op->phase == EL_PHASE_OPTIMIZER) continue;
        heard->busy_ns += (double)ns;
        if (op->phase == EL_PHASE_REDUCE) continue;
        if (span.begin_ns < heard->window.begin_ns) heard->window.begin_ns = span.begin_ns;
        if (span.end_ns > heard->window.end_ns) heard->window.end_ns = span.end_ns;
    }
}

struct mesh {
    const char *mode;
    int d, p, t, n; /* along data, stage, tensor, shard */
};

static int devices_of(const struct mesh *mesh)
{
    return mesh->d * mesh->p * mesh->t * mesh->n;
}

static void configure(const struct mesh *mesh, int64_t batch, int64_t micro, struct el_train_config *config)
{
    *config = (struct el_train_config){.dtype = EL_F32,
                                       .optimizer = EL_OPT_ADAM,
                                       .lr = 0.01,
                                       .overlap = true,
                                       .capture = true,
                                       .comm_algorithm = EL_COMM_RING,
                                       .global_batch = batch,
                                       .n_devices = devices_of(mesh),
                                       .n_micro = micro,
                                       .steps = 1,
                                       .bucket_cap_bytes = (size_t)1 << 30, /* one for all */
                                       .model = {.sizes = {{"layers", 1, {(int64_t)EACH * mesh->p}},
                                                           {"embed", 1, {WIDTH}},
                                                           {"heads", 1, {HEADS}},
                                                           {"seq", 1, {SEQ}},
                                                           {"vocab", 1, {VOCAB}}}}};
    snprintf(config->model.name, sizeof config->model.name, "gpt");
    el_mode_change(config, mesh->mode);
    config->n_micro = micro;
    if (strcmp(mesh->mode, "ddp") == 0) return;
    const int along[] = {[EL_AXIS_DATA] = mesh->d, [EL_AXIS_STAGE] = mesh->p, [EL_AXIS_TENSOR] = mesh->t};
    for (size_t a = 0; a < sizeof along / sizeof along[0]; a++) config->mesh[a] = along[a];
    config->mesh[EL_AXIS_SHARD] = mesh->n > 1 ? mesh->n : 0;
    for (int s = 1; s < mesh->p; s++) {
        const size_t at = strlen(config->cut);
        snprintf(config->cut + at, sizeof config->cut - at, "%sh.%d.ln_1", s > 1 ? "," : "", EACH * s);
    }
}

static void predict(struct el_train_config *config, const struct el_machine *machine, struct heard *heard,
                    struct el_memory_forecast *forecasts)
{
    const struct el_probe probe = {.context = heard, .step = hear};
    const struct el_predict_spec spec = {.machines = machine, .n_machines = 1, .probe = &probe};
    double step_ns;
    *heard = (struct heard){.window = {INT64_MAX, INT64_MIN}};
    if (el_model_resolve(&config->model) != EL_OK || el_train_check(config) != EL_OK ||
        el_train_predict(config, el_kernels_reference(), &spec, forecasts, &step_ns) != EL_OK)
        fail_msg("%s: %s", config->mode, el_error_message());
}

/* Of zero; else 0. */
static int stage_of(const struct mesh *mesh)
{
    return strncmp(mesh->mode, "zero", 4) == 0 ? mesh->mode[4] - '0' : 0;
}

/* Elements. */
static uint64_t block_of(const struct mesh *mesh)
{
    const uint64_t w = WIDTH;
    return (12 * w * w + 7 * w) / (uint64_t)mesh->t + 6 * w;
}

static uint64_t params_of(const struct mesh *mesh, int stage)
{
    const uint64_t w = WIDTH, t = (uint64_t)mesh->t, table = VOCAB * w / t;
    const bool first = stage == 0, last = stage == mesh->p - 1;
    return EACH * block_of(mesh) + (first ? table + SEQ * w : 0) + (last ? 2 * w + (first ? 0 : table) : 0);
}

/* By a device of a stage in a step of `micro` micro-batches of `b` samples. */
static uint64_t sent_of(const struct mesh *mesh, int stage, uint64_t micro, uint64_t b)
{
    const uint64_t t = (uint64_t)mesh->t, n = (uint64_t)mesh->n, d = (uint64_t)mesh->d, a = 4 * b * SEQ * WIDTH,
                   p4 = 4 * params_of(mesh, stage);
    const bool first = stage == 0, last = stage == mesh->p - 1;
    const uint64_t sums = 4 * EACH + first + last, crossed = (first ? 0 : 1) + (last ? 0 : 1);
    const uint64_t tensor = micro * (2 * (t - 1) * a / t * sums + (last ? 12 * b * SEQ * (t - 1) : 0));
    const uint64_t cut = micro * crossed * a + (first != last ? 4 * VOCAB * WIDTH / t / n : 0);
    const uint64_t again = stage_of(mesh) == 3 ? EACH * 4 * block_of(mesh) : 0;
    return tensor + cut + 2 * (d - 1) * p4 / n / d + (n - 1) * (2 * p4 + again) / n;
}

/* Bytes of a block's largest layer: while micro-batches add up its new gradients are beside all others. */
static uint64_t largest_layer(const struct mesh *mesh)
{
    const uint64_t w = WIDTH, t = (uint64_t)mesh->t, inner = 4 * (4 * w * w / t + w),
                   outer = 4 * (4 * w * w + 4 * w) / t;
    return inner > outer ? inner : outer;
}

static void check_memory(const struct mesh *mesh, int stage, uint64_t micro, const struct el_ledger *ledger)
{
    const uint64_t bytes = 4 * params_of(mesh, stage), n = (uint64_t)mesh->n;
    const uint64_t table = n > 1 ? 0 : 4 * VOCAB * WIDTH / (uint64_t)mesh->t; /* by the head, and by the embedding */
    assert_int_equal(ledger->peak_by_tag[EL_TAG_PARAM], stage_of(mesh) == 3 ? bytes / n : bytes);
    assert_int_equal(ledger->peak_by_tag[EL_TAG_OPTIMIZER], 2 * bytes / n);
    if (stage_of(mesh) > 1) return; /* test_zero.c has what is gathered and reduced */
    assert_int_equal(ledger->peak_by_tag[EL_TAG_GRAD], bytes + (micro > 1 ? largest_layer(mesh) : table));
    assert_int_equal(ledger->peak_by_tag[EL_TAG_BUCKET], mesh->d > 1 ? bytes : 0);
}

static void bytes_messages_and_memory_have_closed_forms(void **state)
{
    static const struct mesh meshes[] = {
        {"ddp", 64, 1, 1, 1},     {"ddp", 4096, 1, 1, 1},    {"tp", 1, 1, 8, 1},       {"tp", 8, 1, 8, 1},
        {"tp", 512, 1, 8, 1},     {"pipeline", 1, 8, 1, 1},  {"pipeline", 8, 8, 1, 1}, {"pipeline", 1, 8, 8, 1},
        {"pipeline", 2, 4, 8, 1}, {"pipeline", 64, 8, 8, 1}, {"zero1", 1, 1, 1, 64},   {"zero1", 1, 8, 8, 64},
        {"zero1", 1, 4, 4, 4},    {"zero2", 1, 1, 1, 64},    {"zero2", 8, 1, 8, 64},   {"zero3", 1, 1, 1, 64},
        {"zero3", 8, 1, 8, 64},
    };
    static struct el_memory_forecast forecasts[DEVICES_MAX];
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        const struct mesh *mesh = &meshes[i];
        const int micro = mesh->p > 1 ? 16 : 1, copies = mesh->d * mesh->n, b = 2;
        struct el_train_config config;
        struct heard heard;
        configure(mesh, (int64_t)b * micro * copies, micro, &config);
        predict(&config, &el_machine_default, &heard, forecasts);
        const int n_sums = mesh->n > 1 ? EACH + 1 : 1, slack = mesh->d > 1 ? n_sums * 2 * LINE_BYTES : 0;
        struct el_layout layout;
        el_layout_of(&config, 1, &layout);
        for (int device = 0; device < devices_of(mesh); device++) {
            const int stage = el_layout_spot(&layout, device).at[EL_AXIS_STAGE];
            const uint64_t sent = sent_of(mesh, stage, (uint64_t)micro, b);
            if (llabs((long long)(forecasts[device].sent_bytes - sent)) > slack)
                fail_msg("%s dp=%d,pp=%d,tp=%d,shard=%d: device %d sends %llu bytes, by the form %llu", mesh->mode,
                         mesh->d, mesh->p, mesh->t, mesh->n, device, (unsigned long long)forecasts[device].sent_bytes,
                         (unsigned long long)sent);
            check_memory(mesh, stage, (uint64_t)micro, &forecasts[device].ledger);
        }
        assert_true(heard.n_collectives > 0 || (mesh->d == 1 && mesh->t == 1 && mesh->n == 1));
        assert_int_equal(heard.ring_rounds_wrong, 0);
        const uint64_t gathered = 4 * params_of(mesh, 0) + 4 * EACH * block_of(mesh); /* zero3's, not in place */
        if (mesh->t == 1)
            assert_int_equal(heard.copied_bytes,
                             stage_of(mesh) == 3 ? (uint64_t)heard.n * gathered / (uint64_t)mesh->n : 0);
    }
}

/* A ring's all-reduce of S bytes by n ranks: 2 (n - 1) (latency + S / (n bandwidth)), behind its launch. */
static void a_ring_takes_its_closed_form(void **state)
{
    static struct el_memory_forecast forecasts[DEVICES_MAX];
    struct el_machine machine = el_machine_default;
    machine.link_latency_ns = 700;
    for (int n = 64; n <= DEVICES_MAX; n *= 64) {
        const struct mesh mesh = {"ddp", n, 1, 1, 1};
        struct el_train_config config;
        struct heard heard;
        configure(&mesh, n, 1, &config);
        config.overlap = false;
        predict(&config, &machine, &heard, forecasts);
        const double bytes = 4 * (double)params_of(&mesh, 0), messages = 2.0 * (n - 1);
        const double ns = machine.collective_launch_ns +
                          messages * (machine.link_latency_ns + bytes / n / machine.link_bytes_per_s * 1e9);
        assert_int_equal(heard.n_collectives, 1);
        assert_true(fabs((double)heard.longest_ns - ns) <= 1);
    }
}

/* On a machine that takes time for FLOPs alone: p stages of equal blocks, m micro-batches. The head of two tokens is
 * all that the last one has more. */
static void bubbles_are_p_less_1_of_m_and_p_less_1(void **state)
{
    static struct el_memory_forecast forecasts[DEVICES_MAX];
    static const char *const schedules[] = {"1f1b", "gpipe"};
    struct el_machine machine = {.f32_flops_per_s = 1e12,
                                 .memory_bytes_per_s = 1e30,
                                 .copy_bytes_per_s = 1e30,
                                 .host_link_bytes_per_s = 1e30,
                                 .link_bytes_per_s = 1e30};
    for (int i = 0; i < 2 * 3; i++) {
        const int p = 1 << (1 + 2 * (i / 2)), m = 4 * p, copies = (i % 2 ? DEVICES_MAX : 64) / p;
        const struct mesh mesh = {"pipeline", copies, p, 1, 1};
        struct el_train_config config;
        struct heard heard;
        configure(&mesh, (int64_t)8 * m * copies, m, &config);
        snprintf(config.cut, sizeof config.cut, "time");
        snprintf(config.schedule, sizeof config.schedule, "%s", schedules[i % 2]);
        config.model.sizes[4] = (struct el_model_values){"vocab", 1, {2}};
        predict(&config, &machine, &heard, forecasts);
        const double window_ns = (double)(heard.window.end_ns - heard.window.begin_ns);
        const double bubble = 1 - heard.busy_ns / (window_ns * heard.n), form = (p - 1.0) / (m + p - 1.0);
        assert_int_equal(heard.n, p);
        if (!(fabs(bubble / form - 1) < 0.002))
            fail_msg("%s, %d stages: idle for %.5f of the time, by the form %.5f", config.schedule, p, bubble, form);
    }
}

RUN_TESTS(NULL, NULL, bytes_messages_and_memory_have_closed_forms, a_ring_takes_its_closed_form,
          bubbles_are_p_less_1_of_m_and_p_less_1)
