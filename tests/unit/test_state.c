/* Slices and ranges: however an array is cut, its numbers are its origin's. Initial values and dropout by slices, a
 * shard's memory and the optimizer's step by ranges, and the names of its rows. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/state/shard.h"

enum { ROWS = 6, COLUMNS = 10, ALL = ROWS * COLUMNS, PIECES = 3, WIDTH = sizeof(double) };

static struct el_device *device;

static int open_device(void **state)
{
    struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    return el_device_open(&spec, &device) == EL_OK ? 0 : -1;
}

static int close_device(void **state)
{
    el_device_close(device);
    return 0;
}

/* A third along either dimension: rows 2 and 3, or columns 3 to 7. */
static const struct cut {
    struct el_shape shape;
    struct el_slice slice;
} cuts[] = {{{2, {2, COLUMNS}}, {0, 2, ROWS}}, {{2, {ROWS, 5}}, {1, 3, COLUMNS}}};

static const struct el_shape whole_shape = {2, {ROWS, COLUMNS}};

static void a_slice_begins_with_its_origins_values(void **state)
{
    static const struct el_initial initials[] = {
        {EL_INITIAL_CONSTANT, 3}, {EL_INITIAL_UNIFORM, 0.25}, {EL_INITIAL_NORMAL, 1}};
    struct el_train_config config = {.seed = 5};
    struct el_graph graph = {0};
    for (size_t i = 0; i < sizeof initials / sizeof initials[0]; i++)
        for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
            double all[ALL], own[ALL], wanted[ALL], back[ALL];
            struct el_param param = {.name = "w", .origin = 4, .shape = whole_shape, .initial = initials[i]};
            assert_int_equal(el_state_initial_values(&config, &graph, &param, all), EL_OK);
            param.shape = cuts[c].shape;
            param.slice = cuts[c].slice;
            assert_int_equal(el_state_initial_values(&config, &graph, &param, own), EL_OK);
            int64_t n = el_shape_count(&param.shape);
            el_slice_take(&param.shape, &param.slice, all, wanted);
            assert_memory_equal(own, wanted, (size_t)n * WIDTH);
            memcpy(back, all, sizeof back);
            el_slice_put(&param.shape, &param.slice, own, back);
            assert_memory_equal(back, all, sizeof back);
            /* Element by element: column 3 + i % 5 of row i / 5, or row 2 + i / 10. */
            for (int64_t e = 0; e < n; e++) {
                int64_t d = param.shape.d[1], row = e / d, column = e % d;
                row += c == 0 ? 2 : 0;
                column += c == 0 ? 0 : 3;
                assert_true(own[e] == all[row * COLUMNS + column]);
            }
        }
}

/* What both kinds of kernels drop of a slice is what they drop of it in the whole. */
static void a_slice_drops_its_origins_elements(void **state)
{
    enum { SAMPLES = 3 };
    const struct el_kernel_table *tables[] = {el_kernels_reference(), el_kernels_cpu()};
    for (int t = 0; t < 2; t++)
        for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
            float ones[SAMPLES * ALL], all[SAMPLES * ALL], own[SAMPLES * ALL];
            const struct el_shape *shape = &cuts[c].shape;
            const struct el_slice *slice = &cuts[c].slice;
            int64_t n = el_shape_count(shape), run = el_slice_run(shape, slice), from = el_slice_at(shape, slice, 0);
            for (int i = 0; i < SAMPLES * ALL; i++) ones[i] = 1;
            struct el_kernel_args args = {
                .p = {ones, all}, .d = {SAMPLES, ALL, 7, 2}, .s = {0.5}, .k = {11, 4}, .step = 9};
            assert_int_equal(tables[t]->find(EL_OP_DROPOUT, EL_F32)->run(&args), EL_OK);
            args.p[1] = own;
            args.d[1] = n;
            args.d[4] = run;
            args.d[5] = el_slice_at(shape, slice, run) - from;
            args.d[6] = from;
            assert_int_equal(tables[t]->find(EL_OP_DROPOUT, EL_F32)->run(&args), EL_OK);
            for (int s = 0; s < SAMPLES; s++)
                for (int64_t e = 0; e < n; e++)
                    assert_true(own[s * n + e] == all[s * ALL + el_slice_at(shape, slice, e)]);
        }
}

static struct el_train_config config_of(enum el_optimizer_kind optimizer)
{
    struct el_train_config config = {.mode = "single",
                                     .dtype = EL_F64,
                                     .optimizer = optimizer,
                                     .lr = 0.1,
                                     .momentum = 0.9,
                                     .seed = 7,
                                     .n_devices = 1,
                                     .global_batch = 1,
                                     .n_accumulate = 1,
                                     .keep_grads = true,
                                     .model = {.name = "mlp"}};
    assert_int_equal(el_model_resolve(&config.model), EL_OK);
    return config;
}

/* A step of the optimizer by gradients that are the parameters themselves; adds what it stores to sums[what]. */
static void step_by_ranges(const struct el_train_config *config, const struct el_graph *graph, int piece, int n_pieces,
                           double *sums[EL_STATE_COUNT])
{
    const unsigned split = n_pieces > 1 ? ~0U : 0;
    const struct el_shard_spec spec = {config, graph, device, true, split, piece, n_pieces};
    struct el_shard shard;
    struct el_program *program;
    double *places[EL_STATE_COUNT];
    memcpy(places, sums, sizeof places);
    assert_int_equal(el_shard_open(&shard, &spec), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    el_shard_issue_optimizer(&shard, program, shard.params);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_OK);
    el_program_destroy(program);
    for (struct el_state_item item = {0}; el_shard_next(&shard, &item);) {
        int64_t n = el_shape_count(&item.array->shape);
        double *values = calloc((size_t)n, WIDTH);
        assert_int_equal(el_shard_read_item(&shard, &item, values), EL_OK);
        for (int64_t i = 0; i < n; i++) *places[item.what]++ += values[i];
        free(values);
    }
    el_shard_close(&shard);
}

static void ranges_together_are_the_whole(void **state)
{
    static const enum el_optimizer_kind optimizers[] = {EL_OPT_SGD, EL_OPT_MOMENTUM, EL_OPT_ADAM};
    for (int o = 0; o < 3; o++) {
        struct el_train_config config = config_of(optimizers[o]);
        struct el_graph *graph;
        assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
        size_t n = (size_t)el_graph_param_count(graph);
        double *whole[EL_STATE_COUNT], *sums[EL_STATE_COUNT];
        for (int what = 0; what < EL_STATE_COUNT; what++) {
            whole[what] = calloc(n, WIDTH);
            sums[what] = calloc(n, WIDTH);
        }
        step_by_ranges(&config, graph, 0, 1, whole);
        for (int piece = 0; piece < PIECES; piece++) step_by_ranges(&config, graph, piece, PIECES, sums);
        for (int what = 0; what < EL_STATE_COUNT; what++) {
            assert_memory_equal(sums[what], whole[what], n * WIDTH);
            free(whole[what]);
            free(sums[what]);
        }
        el_graph_destroy(graph);
    }
}

/* Parts of a unit are equal, one behind another, and rows with a limit stay whole. */
static void parts_are_equal_and_keep_rows_together(void **state)
{
    enum { PIECES_HERE = 4 };
    struct el_graph *graph;
    struct el_units *units;
    struct el_train_config config = config_of(EL_OPT_SGD);
    config.model.max_norm = 1;
    assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
    for (int kind = EL_UNIT_BLOCK; kind <= EL_UNIT_MODEL; kind++) {
        assert_int_equal(el_units_open(graph, (enum el_unit_kind)kind, PIECES_HERE, &units), EL_OK);
        int64_t all = 0, stored = 0;
        for (int u = 0; u < units->n; u++) {
            all += units->units[u].count - units->units[u].padding;
            stored += units->units[u].count;
            assert_int_equal(units->units[u].count % PIECES_HERE, 0);
            assert_true(units->units[u].trained && units->units[u].forward_open >= 0);
        }
        assert_int_equal(all, el_graph_param_count(graph));
        assert_true(stored >= all);
        for (int p = 0; p < graph->n_params; p++) {
            const struct el_param *param = &graph->params[p];
            int64_t n = el_param_count(graph, p), at = 0, first, count;
            for (int piece = 0; piece < PIECES_HERE; piece++) {
                el_units_own(units, p, n, piece, &first, &count);
                if (count > 0) assert_int_equal(first, at);
                if (param->max_norm > 0) assert_int_equal(count % (n / param->shape.d[0]), 0);
                at += count;
            }
            assert_int_equal(at, n);
        }
        el_units_close(units);
    }
    el_graph_destroy(graph);
}

static void slots_have_pytorchs_names(void **state)
{
    static const char *const names[][EL_SLOTS_MAX] = {[EL_OPT_SGD] = {NULL},
                                                      [EL_OPT_MOMENTUM] = {"momentum_buffer"},
                                                      [EL_OPT_ADAM] = {"exp_avg", "exp_avg_sq"},
                                                      [EL_OPT_ADAMW] = {"exp_avg", "exp_avg_sq"}};
    for (enum el_optimizer_kind optimizer = EL_OPT_SGD; optimizer <= EL_OPT_ADAMW; optimizer++)
        for (int slot = 0; slot < EL_SLOTS_MAX; slot++) {
            struct el_train_config config = {.optimizer = optimizer};
            struct el_state_row row;
            bool there = el_state_row(&config, (enum el_state)(EL_STATE_SLOT + slot), &row);
            assert_true(there == (names[optimizer][slot] != NULL));
            if (there) assert_string_equal(row.name, names[optimizer][slot]);
        }
}

RUN_TESTS(open_device, close_device, a_slice_begins_with_its_origins_values, a_slice_drops_its_origins_elements,
          ranges_together_are_the_whole, parts_are_equal_and_keep_rows_together, slots_have_pytorchs_names)
