/* Five steps of a shard's optimizer in f64, against plain loops: AdamW with its decay, gradients whose norm is
 * limited. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/state/shard.h"
#include "runtime/train/train.h"

enum { STEPS = 5 };

static const double LR = 0.1;

/* Of element i in a step. */
static double gradient(int64_t i, int step)
{
    return sin((double)(i * 7 + step * 3)) / (step + 1);
}

struct numbers {
    double *w, *g, *m, *v;
};

static double norm_of(const double *g, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += g[i] * g[i];
    return sqrt(squares);
}

/* As the papers and PyTorch's pages write it. */
static void step_by_hand(const struct el_train_config *config, struct numbers *x, int64_t n, int step)
{
    const double b1 = 0.9, b2 = 0.999, eps = 1e-8, lr = LR;
    const bool adam = config->optimizer == EL_OPT_ADAM || config->optimizer == EL_OPT_ADAMW;
    double limit = config->clip > 0 ? config->clip / (norm_of(x->g, n) + 1e-6) : 1;
    for (int64_t i = 0; i < n; i++) {
        double g = x->g[i] * (limit < 1 ? limit : 1);
        if (config->optimizer == EL_OPT_ADAMW) x->w[i] *= 1 - lr * config->weight_decay;
        x->m[i] = adam ? b1 * x->m[i] + (1 - b1) * g : config->momentum * x->m[i] + g;
        x->v[i] = b2 * x->v[i] + (1 - b2) * g * g;
        double mean = x->m[i] / (1 - pow(b1, step + 1)), square = x->v[i] / (1 - pow(b2, step + 1));
        if (config->optimizer == EL_OPT_SGD) x->w[i] -= lr * g;
        if (config->optimizer == EL_OPT_MOMENTUM) x->w[i] -= lr * x->m[i];
        if (adam) x->w[i] -= lr * mean / (sqrt(square) + eps);
    }
}

/* All of the shard's arrays of a kind from, or into, `values`, one behind another. */
static void move(const struct el_shard *shard, struct el_view *views, double *values, bool write)
{
    for (int p = 0; p < shard->graph->n_params; p++) {
        size_t bytes = el_shard_param_bytes(shard, p);
        assert_int_equal(write ? el_device_write(views[p], values, bytes) : el_device_read(views[p], values, bytes),
                         EL_OK);
        values += bytes / sizeof *values;
    }
}

static void train(const struct el_train_config *config, struct el_device *device, const struct el_graph *graph)
{
    const struct el_shard_spec spec = {config, graph, device, true, 0, 0, 1};
    const int64_t n = el_graph_param_count(graph);
    struct numbers x = {.w = malloc((size_t)n * sizeof(double)),
                        .g = malloc((size_t)n * sizeof(double)),
                        .m = calloc((size_t)n, sizeof(double)),
                        .v = calloc((size_t)n, sizeof(double))};
    double *got = malloc((size_t)n * sizeof *got);
    struct el_shard shard;
    struct el_program *program;
    int clipped = 0;
    assert_int_equal(el_shard_open(&shard, &spec), EL_OK);
    move(&shard, shard.params, x.w, false);
    assert_int_equal(el_program_create(&program), EL_OK);
    el_shard_issue_optimizer(&shard, program, shard.grads);
    assert_int_equal(el_program_end(program), EL_OK);
    for (int step = 0; step < STEPS; step++) {
        for (int64_t i = 0; i < n; i++) x.g[i] = gradient(i, step);
        clipped += norm_of(x.g, n) > config->clip;
        move(&shard, shard.grads, x.g, true);
        step_by_hand(config, &x, n, step);
        assert_int_equal(el_program_run(program, (uint64_t)step, NULL), EL_OK);
        move(&shard, shard.params, got, false);
        for (int64_t i = 0; i < n; i++)
            if (!(fabs(got[i] - x.w[i]) <= 1e-14))
                fail_msg("optimizer %d, step %d, element %d: %.17g, not %.17g", (int)config->optimizer, step, (int)i,
                         got[i], x.w[i]);
    }
    assert_true(clipped == (config->clip > 0 ? 2 : STEPS)); /* by the larger gradients of the first steps */
    el_program_destroy(program);
    el_shard_close(&shard);
    free(x.w), free(x.g), free(x.m), free(x.v), free(got);
}

static void steps_are_those_of_plain_loops(void **state)
{
    const struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    struct el_train_config config = {.mode = "single",
                                     .dtype = EL_F64,
                                     .lr = LR,
                                     .momentum = 0.9,
                                     .seed = 7,
                                     .keep_grads = true,
                                     .model = {.name = "mlp"}};
    struct el_device *device;
    struct el_graph *graph;
    el_model_set(&config.model, "features", (const int64_t[]){5}, 1);
    el_model_set(&config.model, "hidden", (const int64_t[]){7, 4}, 2);
    assert_int_equal(el_model_resolve(&config.model), EL_OK);
    assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    double least = sqrt((double)el_graph_param_count(graph) / 2);
    for (int o = EL_OPT_SGD; o <= EL_OPT_ADAMW; o++)
        for (int clips = 0; clips < 2; clips++) {
            config.optimizer = (enum el_optimizer_kind)o;
            config.weight_decay = o == EL_OPT_ADAMW ? 0.3 : 0;
            config.clip = clips ? 0.4 * least : 0; /* norms: about `least`, and 1/2, 1/3, 1/4, 1/5 of it */
            train(&config, device, graph);
        }
    el_device_close(device);
    el_graph_destroy(graph);
}

/* A norm that is no number makes no number of any gradient, as in PyTorch: in both tables. */
static void a_norm_that_is_no_number_spreads(void **state)
{
    const struct el_kernel_table *tables[] = {el_kernels_reference(), el_kernels_cpu()};
    for (int t = 0; t < 2; t++) {
        float squares = NAN, g[] = {1, 2};
        struct el_kernel_args args = {.p = {&squares, g}, .d = {2}, .s = {1}};
        assert_int_equal(tables[t]->find(EL_OP_CLIP, EL_F32)->run(&args), EL_OK);
        assert_true(isnan(g[0]) && isnan(g[1]));
    }
}

RUN_TESTS(NULL, NULL, steps_are_those_of_plain_loops, a_norm_that_is_no_number_spreads)
