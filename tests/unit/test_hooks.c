/* Hooks on the wire against a plain account of what they are, in f64: what each member has after each of several steps,
 * with errors that are fed back; weights that are stored in groups of filters; what is sent and held, as closed forms.
 */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/gradients/hook.h"
#include "runtime/gradients/reducer.h"

enum { MEMBERS_MAX = 3, STEPS = 7, PARAMS_MAX = 80 };

struct job {
    struct el_train_config config;
    struct el_graph *graph;
    int n;
    struct el_device *devices[MEMBERS_MAX];
    struct el_comm *comms[MEMBERS_MAX];
    struct el_shard shards[MEMBERS_MAX];
    struct el_reducer *reducers[MEMBERS_MAX];
    uint64_t sent_bytes; /* by the first member in the last step */
};

static void open_job(struct job *job, const char *model, enum el_dtype dtype, int n, struct el_hook hook)
{
    *job = (struct job){.config = {.mode = "ddp",
                                   .dtype = dtype,
                                   .hook = hook,
                                   .seed = 5,
                                   .n_accumulate = 1,
                                   .keep_grads = true,
                                   .n_devices = n,
                                   .global_batch = n,
                                   .bucket_first_bytes = 1000,
                                   .bucket_cap_bytes = 3000,
                                   .model = {.classes = 4,
                                             .sizes = {{"features", 1, {20}},
                                                       {"hidden", 3, {16, 30, 12}},
                                                       {"width", 1, {16}},
                                                       {"image", 1, {16}}}}},
                        .n = n};
    snprintf(job->config.model.name, sizeof job->config.model.name, "%s", model);
    if (el_model_resolve(&job->config.model) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(el_model_build(&job->config.model, &job->graph), EL_OK);
    assert_true(job->graph->n_params <= PARAMS_MAX);
    for (int m = 0; m < n; m++) {
        const struct el_device_spec spec = {.backend = "cpu", .position = m};
        assert_int_equal(el_device_open(&spec, &job->devices[m]), EL_OK);
    }
    assert_int_equal(el_comm_open_together(job->devices, n, job->comms), EL_OK);
    for (int m = 0; m < n; m++) {
        struct el_shard_spec shard = {
            .config = &job->config, .graph = job->graph, .device = job->devices[m], .owns = true};
        assert_int_equal(el_shard_open(&job->shards[m], &shard), EL_OK);
        struct el_reducer_spec spec = {
            .shard = &job->shards[m], .comm = job->comms[m], .average = true, .overlap = m == 0};
        assert_int_equal(el_reducer_open(&spec, &job->reducers[m]), EL_OK);
    }
}

static void close_job(struct job *job)
{
    for (int m = 0; m < job->n; m++) {
        el_reducer_close(job->reducers[m]);
        assert_int_equal(el_device_ledger(job->devices[m])->live_by_tag[EL_TAG_HOOK], 0);
        el_shard_close(&job->shards[m]);
        el_comm_close(job->comms[m]);
        el_device_close(job->devices[m]);
    }
    el_graph_destroy(job->graph);
}

static void count_sent(void *context, const struct el_step_event *event)
{
    struct job *job = context;
    job->sent_bytes = 0;
    for (int i = 0; i < event->n_ops; i++)
        if (event->ops[i].device == 0) job->sent_bytes += event->ops[i].sent_bytes;
}

/* One step, of a program of its own. */
static void reduce(struct job *job)
{
    struct el_program *program;
    const struct el_probe probe = {.context = job, .step = count_sent};
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int m = 0; m < job->n; m++) el_reducer_begin(job->reducers[m], program, job->shards[m].grads);
    for (int p = job->graph->n_params - 1; p >= 0; p--)
        for (int m = 0; m < job->n; m++)
            if (el_graph_trains_param(job->graph, p)) el_reducer_ready(job->reducers[m], p);
    for (int m = 0; m < job->n; m++) el_reducer_finish(job->reducers[m]);
    if (el_program_end(program) != EL_OK || el_program_run(program, 0, &probe) != EL_OK)
        fail_msg("%s", el_error_message());
    el_program_destroy(program);
}

static void group(struct job *job, int step)
{
    for (int m = 0; m < job->n && step <= EL_HOOK_ROUND; m++)
        assert_int_equal(el_reducer_group_round(job->reducers[m], step), EL_OK);
}

static double gradient(int step, int m, int p, int64_t i)
{
    const struct el_rng_key key = {.seed = 9, .use = EL_RNG_TEST, .id = (uint32_t)(step * MEMBERS_MAX + m)};
    return 2 * el_rng_uniform(&key, (uint64_t)p, (uint64_t)i) - 1;
}

static void write_grads(const struct job *job, int step)
{
    for (int m = 0; m < job->n; m++)
        for (int p = 0; p < job->graph->n_params; p++) {
            int64_t n = el_param_count(job->graph, p);
            double *values = calloc((size_t)n, sizeof *values);
            assert_non_null(values);
            for (int64_t i = 0; i < n; i++) values[i] = gradient(step, m, p, i);
            assert_int_equal(el_device_write(job->shards[m].grads[p], values, (size_t)n * sizeof *values), EL_OK);
            free(values);
        }
}

static void hold(const struct job *job, int step, int p, const double *wanted)
{
    int64_t n = el_param_count(job->graph, p);
    double *values = calloc((size_t)n, sizeof *values);
    assert_non_null(values);
    for (int m = 0; m < job->n; m++) {
        assert_int_equal(el_device_read(job->shards[m].grads[p], values, (size_t)n * sizeof *values), EL_OK);
        for (int64_t i = 0; i < n; i++)
            if (!(fabs(values[i] - wanted[i]) <= 1e-9))
                fail_msg("step %d, member %d, %s[%d]: %.15g, not %.15g", step, m, job->graph->params[p].name, (int)i,
                         values[i], wanted[i]);
    }
    free(values);
}

/* ---- PowerSGD ---- */

/* A gradient's account: each member's error, and Q. */
struct account {
    int64_t rows, columns, rank; /* rank 0: it is averaged as it is */
    double *error[MEMBERS_MAX], *q;
};

static void orthonormalise(double *x, int64_t n, int64_t rank)
{
    for (int64_t a = 0; a < rank; a++) {
        for (int64_t b = 0; b < a; b++) { /* what earlier columns have of it */
            double along = 0;
            for (int64_t i = 0; i < n; i++) along += x[i * rank + a] * x[i * rank + b];
            for (int64_t i = 0; i < n; i++) x[i * rank + a] -= along * x[i * rank + b];
        }
        double squares = 0;
        for (int64_t i = 0; i < n; i++) squares += x[i * rank + a] * x[i * rank + a];
        for (int64_t i = 0; i < n; i++) x[i * rank + a] /= sqrt(squares);
    }
}

static void open_account(const struct job *job, int p, struct account *account)
{
    const int64_t count = el_param_count(job->graph, p), rows = job->graph->params[p].shape.d[0];
    const int64_t columns = count / rows, least = rows < columns ? rows : columns;
    const int64_t most = (int64_t)job->config.hook.amount, rank = most < least ? most : least;
    const struct el_rng_key key = {.seed = job->config.seed, .use = EL_RNG_HOOK, .id = (uint32_t)p};
    *account = (struct account){.rows = rows, .columns = columns};
    if ((rows + columns) * rank * 2 < count) account->rank = rank;
    for (int m = 0; m < job->n; m++) account->error[m] = calloc((size_t)count, sizeof(double));
    account->q = calloc((size_t)(columns * most), sizeof(double));
    for (int64_t i = 0; i < columns * account->rank; i++)
        account->q[i] = sqrt(-2 * log(1 - el_rng_uniform(&key, (uint64_t)i, 0))) *
                        cos(2 * acos(-1) * el_rng_uniform(&key, (uint64_t)i, 1));
}

static void close_account(const struct job *job, struct account *account)
{
    for (int m = 0; m < job->n; m++) free(account->error[m]);
    free(account->q);
}

static void account_step(const struct job *job, int step, int p, struct account *a, double *result)
{
    const int64_t rows = a->rows, columns = a->columns, rank = step < EL_HOOK_ROUND ? 0 : a->rank;
    double *mean = calloc((size_t)(rows * columns), sizeof *mean),
           *left = calloc((size_t)(rows * (rank + 1)), sizeof *left);
    for (int64_t i = 0; i < rows * columns; i++)
        for (int m = 0; m < job->n; m++) mean[i] += (gradient(step, m, p, i) + (rank ? a->error[m][i] : 0)) / job->n;
    if (rank) orthonormalise(a->q, columns, rank);
    for (int64_t i = 0; i < rows * rank; i++)
        for (int64_t k = 0; k < columns; k++) left[i] += mean[i / rank * columns + k] * a->q[k * rank + i % rank];
    if (rank) orthonormalise(left, rows, rank);
    for (int64_t i = 0; i < columns * rank; i++) {
        a->q[i] = 0;
        for (int64_t k = 0; k < rows; k++) a->q[i] += mean[k * columns + i / rank] * left[k * rank + i % rank];
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        result[i] = rank ? 0 : mean[i];
        for (int64_t k = 0; k < rank; k++) result[i] += left[i / columns * rank + k] * a->q[i % columns * rank + k];
        for (int m = 0; m < job->n && rank; m++) a->error[m][i] += gradient(step, m, p, i) - result[i];
    }
    free(mean);
    free(left);
}

static void powersgd_is_its_definition(void **state)
{
    for (int rank = 1; rank <= 3; rank++) {
        struct job job;
        struct account accounts[PARAMS_MAX];
        double result[1000];
        int n_taken = 0;
        open_job(&job, "mlp", EL_F64, 1 + rank % MEMBERS_MAX, (struct el_hook){EL_HOOK_POWERSGD, rank});
        for (int p = 0; p < job.graph->n_params; p++) {
            open_account(&job, p, &accounts[p]);
            assert_true(el_param_count(job.graph, p) <= 1000);
            n_taken += accounts[p].rank > 0;
        }
        assert_true(n_taken > 1 && n_taken < job.graph->n_params);
        for (int step = 0; step < STEPS; step++) {
            group(&job, step);
            write_grads(&job, step);
            reduce(&job);
            for (int p = 0; p < job.graph->n_params; p++) {
                account_step(&job, step, p, &accounts[p], result);
                hold(&job, step, p, result);
            }
        }
        for (int p = 0; p < job.graph->n_params; p++) close_account(&job, &accounts[p]);
        close_job(&job);
    }
}

/* A mean of rank 1 is what it becomes, whatever Q begins with: so also where filters lie in groups. Rows change from
 * step to step, columns do not: where Q is far from them, roundings grow. */
static void groups_of_filters_are_rows(void **state)
{
    struct job job;
    int n_groups = 0;
    open_job(&job, "resnet18", EL_F32, 2, (struct el_hook){EL_HOOK_POWERSGD, 1});
    for (int step = 0; step < STEPS; step++) {
        group(&job, step);
        for (int pass = 0; pass < 2; pass++) {
            for (int m = 0; m < 2; m++)
                for (int p = 0; p < job.graph->n_params; p++) {
                    const struct el_param *array = &job.graph->params[p];
                    const struct el_weights_layout *layout = el_param_layout(array, job.devices[m], EL_F32);
                    int64_t n = el_param_count(job.graph, p), columns = n / array->shape.d[0];
                    float *plain = calloc((size_t)n, sizeof *plain), *stored = calloc((size_t)n, sizeof *stored);
                    assert_true(plain && stored);
                    for (int64_t i = 0; i < n; i++)
                        plain[i] = (float)(gradient(step, 0, p, i / columns) * gradient(0, 1, p, i % columns)) *
                                   (pass == 0 ? 1 + 2 * (float)m : 2);
                    if (layout && pass == 0) layout->pack(array->shape.d, plain, stored);
                    const struct el_view grad = job.shards[m].grads[p];
                    size_t bytes = (size_t)n * sizeof *plain;
                    n_groups += layout && pass;
                    if (pass == 0) {
                        assert_int_equal(el_device_write(grad, layout ? stored : plain, bytes), EL_OK);
                    } else {
                        float *got = calloc((size_t)n, sizeof *got);
                        assert_int_equal(el_device_read(grad, stored, bytes), EL_OK);
                        if (layout)
                            layout->unpack(array->shape.d, stored, got);
                        else
                            memcpy(got, stored, bytes);
                        for (int64_t i = 0; i < n; i++)
                            if (!(fabsf(got[i] - plain[i]) <= 1e-4F))
                                fail_msg("step %d, %s[%d]: %g, not %g", step, array->name, (int)i, (double)got[i],
                                         (double)plain[i]);
                        free(got);
                    }
                    free(plain);
                    free(stored);
                }
            if (pass == 0) reduce(&job);
        }
    }
    assert_true(n_groups > 0 || el_kernels_cpu_missing());
    close_job(&job);
}

/* ---- what is sent and held ---- */

static void run_steps(struct job *job)
{
    for (int step = 0; step <= EL_HOOK_ROUND; step++) {
        group(job, step);
        reduce(job);
    }
}

/* Two members: an all-reduce sends what it reduces, an all-gather a member's own part. */
static void bytes_and_memory_have_closed_forms(void **state)
{
    struct job job;
    uint64_t values = 0, factors = 0, matrices = 0;
    open_job(&job, "mlp", EL_F32, 2, (struct el_hook){EL_HOOK_NONE, 0});
    run_steps(&job);
    for (int p = 0; p < job.graph->n_params; p++) values += (uint64_t)el_param_count(job.graph, p);
    assert_int_equal(job.sent_bytes, 4 * values);
    close_job(&job);
    for (enum el_hook_kind kind = EL_HOOK_F16; kind <= EL_HOOK_BF16; kind++) {
        open_job(&job, "mlp", EL_F32, 2, (struct el_hook){kind, 0});
        run_steps(&job);
        assert_int_equal(job.sent_bytes, 2 * values);
        assert_int_equal(el_device_ledger(job.devices[0])->live_by_tag[EL_TAG_BUCKET], 2 * values);
        close_job(&job);
    }
    open_job(&job, "mlp", EL_F32, 2, (struct el_hook){EL_HOOK_POWERSGD, 2});
    run_steps(&job);
    for (int p = 0; p < job.graph->n_params; p++) {
        struct account account;
        open_account(&job, p, &account);
        factors += (uint64_t)((account.rows + account.columns) * account.rank);
        if (account.rank) matrices += (uint64_t)(account.rows * account.columns);
        close_account(&job, &account);
    }
    assert_int_equal(job.sent_bytes, 4 * (values - matrices + factors));
    assert_int_equal(el_device_ledger(job.devices[0])->live_by_tag[EL_TAG_HOOK], 4 * (matrices + factors));
    close_job(&job);
}

static void texts_are_read_and_shown(void **state)
{
    static const char *const choices = "none|f32|f16|bf16|powersgd:R",
                             *const good[] = {"none", "f16", "bf16", "powersgd:4"},
                             *const bad[] = {"",
                                             "f1",
                                             "f16:2",
                                             "powersgd",
                                             "powersgd:0",
                                             "powersgd:1.5",
                                             "powersgd:1025",
                                             "powersgd:-1",
                                             "powersgd:1x",
                                             "powersgd:nan"};
    struct el_hook hook;
    char text[32];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(el_hook_read(choices, good[i], &hook), EL_OK);
        el_hook_show(&hook, text, sizeof text);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(el_hook_read(choices, bad[i], &hook), EL_ERR_INVALID);
    assert_int_equal(el_hook_read("none|f16", "powersgd:1", &hook), EL_ERR_INVALID);
}

RUN_TESTS(NULL, NULL, powersgd_is_its_definition, groups_of_filters_are_rows, bytes_and_memory_have_closed_forms,
          texts_are_read_and_shown)
