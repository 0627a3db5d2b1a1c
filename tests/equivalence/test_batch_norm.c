/* Batch norm's running statistics in the modes, beyond what `evenload verify` compares: their memory in closed forms,
 * the one collective that sends them, which of them evaluation takes, and what is refused. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/state/buffers.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/case_images.h"
#include "tests/own_place.h"

enum { DEVICES = 4, IMAGE = IMAGE_SIDE };

static struct el_dataset *images;

/* How often running statistics were sent in the last step, and how many bytes. */
struct talk {
    int n;
    double bytes;
};

static void count_talk(void *context, const struct el_step_event *event)
{
    struct talk *talks = context;
    for (int i = 0; i < event->n_ops; i++) talks[event->ops[i].device] = (struct talk){0};
    for (int i = 0; i < event->n_ops; i++) {
        const struct el_op_info *op = &event->ops[i];
        if (op->op_class != EL_CLASS_COMM || !strstr(op->label, "buffers")) continue;
        talks[op->device].n++;
        talks[op->device].bytes += op->bytes;
    }
}

/* On fresh devices of this process; result and talks[DEVICES] may be NULL. */
static void train(struct el_train_config *config, const char *backend, struct el_train_result *result_p,
                  struct talk *talks)
{
    struct el_train_result result;
    if (el_train_check(config) != EL_OK) fail_msg("%s", el_error_message());
    if (try_to_train(config, backend, NULL, images, talks ? count_talk : NULL, talks, &result) != EL_OK)
        fail_msg("%s: %s", config->mode, el_error_message());
    if (result_p)
        *result_p = result;
    else
        el_train_result_free(&result);
}

/* Of the whole model, in f64. */
static size_t all_bytes(const struct el_train_config *config)
{
    struct el_graph *graph;
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    size_t bytes = el_buffers_bytes(graph, EL_F64);
    el_graph_destroy(graph);
    return bytes;
}

/* ---- memory ---- */

/* An owner holds B, of a model in stages all of them together; a replica of dp P and B during the step, of spmg 2 P and
 * B always. And what is forecast is what a step books. */
static void memory_of_buffers(void **state)
{
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        struct el_train_config config;
        struct el_train_result result;
        struct el_memory_forecast forecasts[DEVICES];
        struct el_layout layout;
        int n = el_mode_devices_for(mode->name, "resnet18", 3);
        el_case_images_config(mode->name, n, 12, IMAGE, &config);
        train(&config, "null", &result, NULL);
        size_t b = all_bytes(&config), sum = 0, p = (size_t)result.param_bytes;
        el_layout_of(&config, 1, &layout);
        assert_int_equal(el_train_forecast(&config, el_kernels_cpu(), forecasts), EL_OK);
        for (int d = 0; d < n; d++) {
            const size_t *peak = result.ledgers[d].peak_by_tag;
            sum += peak[EL_TAG_BUFFER];
            if (layout.n[EL_AXIS_STAGE] == 1)
                assert_int_equal(peak[EL_TAG_BUFFER], el_layout_spot(&layout, d).owns ? b : 0);
            if (!el_layout_spot(&layout, d).owns)
                assert_int_equal(peak[EL_TAG_REPLICA], (mode->memory.others - 2) / 2 * p + p + b);
            assert_memory_equal(forecasts[d].ledger.peak_by_tag, peak, sizeof result.ledgers[d].peak_by_tag);
        }
        if (layout.n[EL_AXIS_STAGE] > 1) assert_int_equal(sum, b);
        el_train_result_free(&result);
    }
}

/* ---- messages ---- */

/* One collective of B a step, in however many micro-steps; of copies in stages those of the stage's layers. dp sends
 * them with the model in every micro-step. */
static void buffers_are_sent_once_a_step(void **state)
{
    static const struct {
        const char *mode;
        int n_ranks, accumulate;
        bool broadcast;
        int wanted;
    } cases[] = {{"ddp", 0, 1, true, 1},      {"ddp", 0, 3, true, 1},      {"ddp", 0, 1, false, 0},
                 {"manual", 0, 1, true, 0},   {"dp", 0, 3, true, 3},       {"spmg", 1, 1, true, 1},
                 {"spmg", 2, 1, true, 2},     {"spmg", 2, 1, false, 0},    {"mp", 2, 1, true, 1},
                 {"pipeline", 2, 1, true, 1}, {"pipeline", 1, 1, true, 0}, {"pipeline", 2, 1, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_train_config config;
        struct talk talks[DEVICES];
        double bytes = 0;
        el_case_images_config(cases[i].mode, DEVICES, 24, IMAGE, &config);
        config.mesh[EL_AXIS_DATA] = cases[i].n_ranks;
        config.n_accumulate = cases[i].accumulate;
        config.broadcast_buffers = cases[i].broadcast;
        train(&config, "null", NULL, talks);
        bool in_stages = el_mode_cuts(cases[i].mode);
        if (talks[0].n != cases[i].wanted)
            fail_msg("case %zu: %s sent its buffers %d times", i, cases[i].mode, talks[0].n);
        for (int d = 0; d < DEVICES; d++) bytes += talks[d].bytes;
        if (cases[i].wanted == 1) assert_true(bytes == (double)all_bytes(&config) * (in_stages ? 2 : DEVICES));
    }
}

/* ---- evaluation ---- */

/* ddp with and without the broadcast, and by hand: the ranks train alike and rank 0 has the same statistics, while
 * those of the others differ. So evaluation, which takes rank 0's, must say the same of all; and it leaves everybody's
 * own as they are. */
static void evaluation_takes_rank_zeros(void **state)
{
    static const char *const modes[] = {"ddp", "ddp", "manual"};
    struct el_train_result results[3], still;
    struct el_dataset *dummy = images;
    struct el_dataset_spec learnable = {.source = "synthetic", .input = EL_INPUT_IMAGES, .seed = 3, .held_out = 0.5};
    assert_int_equal(el_dataset_open(&learnable, &images), EL_OK);
    for (int i = 0; i < 3; i++) {
        struct el_train_config config;
        el_case_images_config(modes[i], 2, 100, el_dataset_info(images)->image, &config);
        config.model.classes = el_dataset_info(images)->classes;
        config.broadcast_buffers = i == 0;
        config.epochs = 1;
        config.dtype = EL_F32;
        train(&config, "cpu", &results[i], NULL);
        assert_true(results[i].epochs[0].held_out.accuracy >= 0);
        assert_true(results[i].epochs[0].held_out.accuracy == results[0].epochs[0].held_out.accuracy);
        int64_t n = results[i].n_buffers / 2;
        assert_memory_equal(results[i].buffers, results[0].buffers, (size_t)n * sizeof(double));
        bool alike = !memcmp(results[i].buffers + n, results[0].buffers + n, (size_t)n * sizeof(double));
        assert_true(alike == (i == 0));
        if (i == 0) continue;
        config.epochs = 0;
        config.steps = results[i].n_steps;
        train(&config, "cpu", &still, NULL);
        assert_memory_equal(still.buffers, results[i].buffers, (size_t)still.n_buffers * sizeof(double));
        el_train_result_free(&still);
    }
    for (int i = 0; i < 3; i++) el_train_result_free(&results[i]);
    el_dataset_close(images);
    images = dummy;
}

/* Weights are alike whatever becomes of the statistics. With DDP's broadcast the forward of an evaluation sends rank
 * 0's first; without, and by hand, each rank has its own, and says something else of the same samples. */
static void each_rank_evaluates_by_its_own(void **state)
{
    static const char *const modes[] = {"ddp", "ddp", "manual"};
    struct el_train_result results[3];
    struct el_dataset *dummy = images;
    struct el_dataset_spec learnable = {.source = "synthetic", .input = EL_INPUT_IMAGES, .seed = 3, .held_out = 0.5};
    assert_int_equal(el_dataset_open(&learnable, &images), EL_OK);
    for (int i = 0; i < 3; i++) {
        struct el_train_config config;
        el_case_images_config(modes[i], 2, 50, el_dataset_info(images)->image, &config);
        config.model.classes = el_dataset_info(images)->classes;
        config.broadcast_buffers = i == 0;
        config.epochs = 1;
        config.eval = EL_EVAL_EACH;
        config.dtype = EL_F32;
        train(&config, "cpu", &results[i], NULL);
        const struct el_evaluation *got = &results[i].epochs[0].held_out, *first = &results[0].epochs[0].held_out;
        assert_int_equal(got->own_buffers, i > 0);
        assert_int_equal(got->n_ranks, 2);
        assert_memory_equal(&got->ranks[0], &first->ranks[0], sizeof got->ranks[0]);
        assert_int_equal(got->ranks[1].loss == got->ranks[0].loss, i == 0);
        assert_int_equal(got->ranks[1].correct == got->ranks[0].correct, i == 0);
        assert_true(got->ranks[1].counted == (double)el_dataset_size(images, EL_SPLIT_HELD_OUT));
    }
    for (int i = 0; i < 3; i++) el_train_result_free(&results[i]);
    el_dataset_close(images);
    images = dummy;
}

/* ---- what is refused ---- */

static void one_value_per_channel_is_refused(void **state)
{
    static const struct {
        const char *mode;
        int n_devices;
        int64_t batch, image;
        int accumulate;
        const char *which; /* NULL: it is served */
    } cases[] = {{"single", 1, 1, IMAGE, 1, "the batch is"},
                 {"single", 1, 2, IMAGE, 2, "the batch in a micro-step is"},
                 {"dp", 3, 7, IMAGE, 1, "the chunk of device 2 is"},
                 {"dp", 4, 5, IMAGE, 1, "the chunk of device 2 is"}, /* 2, 2, 1 */
                 {"ddp", 3, 5, IMAGE, 1, "the share of rank 2 is"},
                 {"manual", 2, 4, IMAGE, 1, NULL},
                 {"spmg", 2, 3, IMAGE, 1, "the chunk of device 1 is"},
                 {"mp", 2, 1, IMAGE, 1, "the batch is"},
                 {"pipeline", 2, 2, IMAGE, 1, "a micro-batch is"},
                 {"ddp", 3, 5, 64, 1, NULL}}; /* planes of 2 x 2 at the end */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_train_config config;
        char wanted[128];
        el_case_images_config(cases[i].mode, cases[i].n_devices, cases[i].batch, cases[i].image, &config);
        config.n_accumulate = cases[i].accumulate;
        assert_int_equal(el_train_check(&config), cases[i].which ? EL_ERR_INVALID : EL_OK);
        if (!cases[i].which) continue;
        snprintf(wanted, sizeof wanted, "%s: %s one sample, and 'layer3.0.bn1' has planes of one pixel", cases[i].mode,
                 cases[i].which);
        if (!strstr(el_error_message(), wanted)) fail_msg("case %zu: %s", i, el_error_message());
    }
}

/* Micro-batch 1 before 0 in both parts: any model is served but one with running statistics. */
static void micro_batches_out_of_order_are_refused(void **state)
{
    char path[] = "/tmp/evenload-order-XXXXXX.csv";
    int fd = mkstemps(path, 4);
    static const char rows[] = "0F1,0F0,,,0B1,0B0\n,1F1,1F0,1B1,1B0,\n";
    assert_int_equal(write(fd, rows, sizeof rows - 1), (ssize_t)sizeof rows - 1);
    close(fd);
    struct el_train_config config;
    el_case_images_config("pipeline", 2, 12, IMAGE, &config);
    snprintf(config.schedule, sizeof config.schedule, "%s", path);
    struct el_train_config served = config;
    enum el_status refused = el_train_check(&config);
    assert_non_null(strstr(el_error_message(), "the forwards of part 0 are not in the order of micro-batches"));
    served.model = (struct el_model_config){.name = "mlp", .classes = 4, .dropout = -1};
    assert_int_equal(el_model_resolve(&served.model), EL_OK);
    enum el_status mlp = el_train_check(&served);
    unlink(path);
    assert_int_equal(refused, EL_ERR_INVALID);
    assert_int_equal(mlp, EL_OK);
}

static int open_images(void **state)
{
    return el_case_images(&images) == EL_OK ? 0 : -1;
}

static int close_images(void **state)
{
    el_dataset_close(images);
    return 0;
}

RUN_TESTS(open_images, close_images, memory_of_buffers, buffers_are_sent_once_a_step, evaluation_takes_rank_zeros,
          each_rank_evaluates_by_its_own, one_value_per_channel_is_refused, micro_batches_out_of_order_are_refused)
