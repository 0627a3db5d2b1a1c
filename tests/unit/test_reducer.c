/* How a reducer ends: every member has all sums, a range of its own, or the first has all and the others none. */
#include "tests/test.h"

#include "runtime/gradients/reducer.h"

enum { MEMBERS = 3, PARAMS_MAX = 8, ELEMENTS_MAX = 256, WIDTH = sizeof(double) };

struct job {
    struct el_train_config config;
    struct el_graph *graph;
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    struct el_shard shards[MEMBERS];
    struct el_reducer *reducers[MEMBERS];
};

static double gradient(int member, int p, int64_t i)
{
    return 100.0 * member + 10 * p + (double)i;
}

static void open_job(struct job *job, enum el_reducer_end end, bool average)
{
    static const size_t limits[] = {600}; /* bytes: several buckets, of which some hold parts of two members */
    *job = (struct job){
        .config = {.mode = "single",
                   .dtype = EL_F64,
                   .n_accumulate = 1,
                   .keep_grads = true,
                   .n_devices = 1,
                   .global_batch = 1,
                   .model = {.name = "mlp", .classes = 4, .sizes = {{"features", 1, {5}}, {"hidden", 2, {7, 3}}}}}};
    if (el_model_resolve(&job->config.model) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(el_model_build(&job->config.model, &job->graph), EL_OK);
    assert_true(job->graph->n_params <= PARAMS_MAX);
    for (int m = 0; m < MEMBERS; m++) {
        struct el_device_spec spec = {.backend = "cpu", .position = m, .kernels = el_kernels_reference()};
        assert_int_equal(el_device_open(&spec, &job->devices[m]), EL_OK);
    }
    assert_int_equal(el_comm_open_together(job->devices, MEMBERS, job->comms), EL_OK);
    for (int m = 0; m < MEMBERS; m++) {
        struct el_shard_spec shard = {
            .config = &job->config, .graph = job->graph, .device = job->devices[m], .owns = true};
        assert_int_equal(el_shard_open(&job->shards[m], &shard), EL_OK);
        struct el_reducer_spec spec = {.shard = &job->shards[m], .comm = job->comms[m], .end = end, .average = average};
        assert_int_equal(el_reducer_open(&spec, &job->reducers[m]), EL_OK);
        assert_int_equal(el_reducer_group(job->reducers[m], limits, 1), EL_OK);
        for (int p = 0; p < job->graph->n_params; p++) {
            double values[ELEMENTS_MAX];
            int64_t n = el_param_count(job->graph, p);
            assert_true(n <= ELEMENTS_MAX);
            for (int64_t i = 0; i < n; i++) values[i] = gradient(m, p, i);
            assert_int_equal(el_device_write(job->shards[m].grads[p], values, (size_t)n * WIDTH), EL_OK);
        }
    }
}

static void reduce(struct job *job)
{
    struct el_program *program;
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int m = 0; m < MEMBERS; m++) el_reducer_begin(job->reducers[m], program, job->shards[m].grads);
    for (int m = 0; m < MEMBERS; m++)
        for (int p = job->graph->n_params - 1; p >= 0; p--) el_reducer_ready(job->reducers[m], p);
    for (int m = 0; m < MEMBERS; m++) el_reducer_finish(job->reducers[m]);
    if (el_program_end(program) != EL_OK || el_program_run(program, 0, NULL) != EL_OK)
        fail_msg("%s", el_error_message());
    el_program_destroy(program);
}

static void close_job(struct job *job)
{
    for (int m = 0; m < MEMBERS; m++) {
        el_reducer_close(job->reducers[m]);
        el_shard_close(&job->shards[m]);
        el_comm_close(job->comms[m]);
        el_device_close(job->devices[m]);
    }
    el_graph_destroy(job->graph);
}

/* Its own are sums, the others are as they were; returns how many are its own. */
static int64_t check_gradient(const struct job *job, int m, int p, double divisor)
{
    double values[ELEMENTS_MAX];
    int64_t n = el_param_count(job->graph, p), first, count;
    assert_int_equal(el_device_read(job->shards[m].grads[p], values, (size_t)n * WIDTH), EL_OK);
    el_reducer_own(job->reducers[m], p, &first, &count);
    assert_true(first >= 0 && count >= 0 && first + count <= n);
    for (int64_t i = 0; i < n; i++) {
        bool own = i >= first && i < first + count;
        double sum = 0;
        for (int other = 0; other < MEMBERS; other++) sum += gradient(other, p, i);
        assert_true(values[i] == (own ? sum / divisor : gradient(m, p, i)));
    }
    return count;
}

static void every_member_has_what_the_end_says(void **state)
{
    static const struct {
        enum el_reducer_end end;
        int copies; /* of each sum, over all members */
    } ends[] = {{EL_REDUCER_ALL, MEMBERS}, {EL_REDUCER_OWN, 1}, {EL_REDUCER_FIRST, 1}};
    for (int e = 0; e < 3; e++)
        for (int average = 0; average < (ends[e].end == EL_REDUCER_FIRST ? 1 : 2); average++) {
            struct job job;
            open_job(&job, ends[e].end, average);
            reduce(&job);
            for (int p = 0; p < job.graph->n_params; p++) {
                int64_t own = 0;
                for (int m = 0; m < MEMBERS; m++) own += check_gradient(&job, m, p, average ? MEMBERS : 1);
                assert_int_equal(own, ends[e].copies * el_param_count(job.graph, p));
            }
            close_job(&job);
        }
}

RUN_TESTS(NULL, NULL, every_member_has_what_the_end_says)
