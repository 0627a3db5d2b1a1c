/* What losses do not show of training: in which order ddp launches its buckets, how simulated members wait for one
 * another, when warm-up ends, which epoch is best. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/gradients/reducer.h"
#include "runtime/train/session.h"
#include "tests/equivalence/cases.h"

enum { DEVICES = 2, EPOCHS = 8 };

static struct el_dataset *dataset;

static int open_data(void **state)
{
    struct el_dataset_spec spec = {.source = "dummy", .vocab = 60, .seq = 9, .classes = 4, .seed = 7, .held_out = 0.2};
    return el_dataset_open(&spec, &dataset) == EL_OK ? 0 : -1;
}

static int close_data(void **state)
{
    el_dataset_close(dataset);
    return 0;
}

static void train_on(const char *backend, const struct el_inject *injects, const struct el_train_config *config,
                     struct el_probe *probes, struct el_train_result *result)
{
    struct el_device *devices[DEVICES];
    struct el_bootstrap *self;
    struct el_train_hooks hooks = {.probes = probes};
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    for (int d = 0; d < config->n_devices; d++) {
        struct el_device_spec spec = {.backend = backend, .index = d, .position = d, .kernels = el_kernels_reference()};
        if (injects) spec.inject = injects[d];
        assert_int_equal(el_device_open(&spec, &devices[d]), EL_OK);
    }
    struct el_train_place place = {
        .devices = devices, .n_devices = config->n_devices, .bootstrap = self, .dataset = dataset};
    if (el_train(config, &place, &hooks, result) != EL_OK) fail_msg("%s", el_error_message());
    for (int d = 0; d < config->n_devices; d++) el_device_close(devices[d]);
    el_bootstrap_close(self);
}

/* Of one device's step, by the list of its ops. */
struct order {
    int steps, buckets;
    bool in_order, amid_backward; /* in every step; in the last one the first bucket before backward's last op */
};

static void look_at_order(void *context, const struct el_step_event *event)
{
    struct order *order = context;
    int buckets = 0, first = event->n_ops, last_backward = 0;
    for (int i = 0; i < event->n_ops; i++) {
        int number;
        if (event->ops[i].phase == EL_PHASE_BACKWARD) last_backward = i;
        if (sscanf(event->ops[i].label, "all_reduce bucket %d", &number) != 1) continue;
        if (number != buckets++) order->in_order = false;
        if (i < first) first = i;
    }
    order->steps++;
    order->amid_backward = first < last_backward;
    order->buckets = buckets;
}

/* Collectives of one order on all ranks, launched while backward goes on; without overlap all after it. */
static void buckets_are_launched_in_order(void **state)
{
    for (int overlap = 0; overlap < 2; overlap++) {
        struct el_train_config config;
        struct el_train_result result;
        struct order orders[DEVICES];
        struct el_probe probes[DEVICES];
        assert_int_equal(el_case_config(&el_cases[0], "ddp", DEVICES, &config), EL_OK);
        config.steps = 4;
        config.overlap = overlap;
        config.bucket_cap_bytes = config.bucket_first_bytes;
        for (int d = 0; d < DEVICES; d++) {
            orders[d] = (struct order){.in_order = true};
            probes[d] = (struct el_probe){.context = &orders[d], .spans = true, .step = look_at_order};
        }
        train_on("cpu", NULL, &config, probes, &result);
        el_train_result_free(&result);
        for (int d = 0; d < DEVICES; d++) {
            assert_true(orders[d].in_order);
            assert_in_range(orders[d].buckets, 3, 100);
            assert_int_equal(orders[d].steps, 4);
            assert_int_equal(orders[d].amid_backward, overlap);
        }
    }
}

/* The last of a simulated member's steps. */
struct virtual
{
    int64_t step_ns, first_collective_ns, end_ns;
};

static void look_at_times(void *context, const struct el_step_event *event)
{
    struct virtual *seen = context;
    seen->step_ns = event->whole.end_ns - event->whole.begin_ns;
    seen->first_collective_ns = -1;
    for (int i = 0; i < event->n_ops; i++) {
        if (event->ops[i].op_class != EL_CLASS_COMM) continue;
        if (seen->first_collective_ns < 0) seen->first_collective_ns = event->spans[i].begin_ns;
        seen->end_ns = event->spans[i].end_ns;
    }
}

/* Simulated members of unequal shares are coupled by their collectives: one step time, one end, as many steps; and a
 * delay of one is exactly what the other waits longer. */
static void simulated_members_have_one_step_time(void **state)
{
    enum { DELAY_NS = 5000000 };
    struct virtual seen[2][DEVICES];
    for (int late = 0; late < 2; late++) {
        struct el_train_config config;
        struct el_train_result result;
        struct el_probe probes[DEVICES];
        const struct el_inject injects[DEVICES] = {[1].delay_ms = late ? DELAY_NS * 1e-6 : 0};
        assert_int_equal(el_case_config(&el_cases[0], "ddp", DEVICES, &config), EL_OK);
        config.global_batch += (config.global_batch + 1) % 2; /* an odd number */
        config.min_time_s = 0.002;                            /* steps are added: both members add as many */
        config.control = EL_CONTROL_NONE;
        for (int d = 0; d < DEVICES; d++)
            probes[d] = (struct el_probe){.context = &seen[late][d], .spans = true, .step = look_at_times};
        train_on("sim", injects, &config, probes, &result);
        assert_true(result.simulated);
        assert_int_equal(result.step_ns[result.n_steps - 1], seen[late][0].step_ns);
        el_train_result_free(&result);
        assert_int_equal(seen[late][0].step_ns, seen[late][1].step_ns);
        assert_int_equal(seen[late][0].end_ns, seen[late][1].end_ns);
        assert_true(seen[late][0].first_collective_ns != seen[late][1].first_collective_ns);
    }
    assert_int_equal(seen[1][0].first_collective_ns, seen[0][0].first_collective_ns);
    assert_int_equal(seen[1][1].first_collective_ns, seen[0][1].first_collective_ns + DELAY_NS);
}

/* Which of a program's ops are all-reduces, and that their numbers go up. */
static int count_reductions(const struct el_program *program)
{
    const struct el_op_info *ops = el_program_ops(program);
    int n = 0, number;
    for (int i = 0; i < el_program_op_count(program); i++)
        if (sscanf(ops[i].label, "all_reduce bucket %d", &number) == 1) assert_int_equal(number, n++);
    return n;
}

/* A step that only reduces; gradients become ready from the last one to the first. */
static int reductions_of(struct el_reducer *reducer, const struct el_shard *shard)
{
    struct el_program *program;
    int n_params = shard->graph->n_params;
    assert_int_equal(el_program_create(&program), EL_OK);
    el_reducer_begin(reducer, program, shard->grads);
    for (int p = n_params - 1; p >= 0; p--) el_reducer_ready(reducer, p);
    el_reducer_finish(reducer);
    assert_int_equal(el_program_end(program), EL_OK);
    int n = count_reductions(program);
    el_program_destroy(program);
    return n;
}

/* Two backwards in one step, say: the failure is the program's. */
static void twice_is_refused(struct el_reducer *reducer, const struct el_shard *shard)
{
    struct el_program *program;
    assert_int_equal(el_program_create(&program), EL_OK);
    el_reducer_begin(reducer, program, shard->grads);
    el_reducer_ready(reducer, 1);
    el_reducer_ready(reducer, 1);
    el_reducer_finish(reducer);
    assert_int_equal(el_program_end(program), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "single: expected to mark a variable ready only once: 'hidden1.bias' got a "
                                            "second gradient in one step of rank 0");
    el_program_destroy(program);
}

static void a_reducer_groups_by_any_limits(void **state)
{
    const size_t each[] = {0}, all[] = {SIZE_MAX};
    struct el_train_config config;
    struct el_graph *graph;
    struct el_device *device;
    struct el_comm *comm;
    struct el_shard shard;
    struct el_reducer *reducer;
    struct el_device_spec sim = {.backend = "sim"};
    assert_int_equal(el_case_config(&el_cases[6], "single", 1, &config), EL_OK);
    assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
    assert_int_equal(el_device_open(&sim, &device), EL_OK);
    assert_int_equal(el_comm_open_self(device, &comm), EL_OK);
    const struct el_shard_spec owner = {.config = &config, .graph = graph, .device = device, .owns = true};
    assert_int_equal(el_shard_open(&shard, &owner), EL_OK);
    struct el_reducer_spec spec = {.shard = &shard, .comm = comm, .overlap = true};
    assert_int_equal(el_reducer_open(&spec, &reducer), EL_OK);
    assert_int_equal(el_reducer_group(reducer, each, 1), EL_OK);
    assert_int_equal(reductions_of(reducer, &shard), graph->n_params);
    size_t bytes = el_device_ledger(device)->live_by_tag[EL_TAG_BUCKET];
    assert_int_equal(bytes, el_device_ledger(device)->live_by_tag[EL_TAG_PARAM]);
    assert_int_equal(el_reducer_group(reducer, all, 1), EL_OK);
    assert_int_equal(reductions_of(reducer, &shard), 1);
    assert_int_equal(el_device_ledger(device)->live_by_tag[EL_TAG_BUCKET], bytes);
    twice_is_refused(reducer, &shard);
    el_reducer_close(reducer);
    assert_int_equal(el_device_ledger(device)->live_by_tag[EL_TAG_BUCKET], 0);
    el_shard_close(&shard);
    el_comm_close(comm);
    el_device_close(device);
    el_graph_destroy(graph);
}

/* Eight steps done; how many more of warm-up are asked for, and whether they had settled. */
static int64_t more_of(const int64_t *step_ns, double min_time_s, bool *settled_p)
{
    enum { DONE = 8 };
    struct el_train_config config = {.warmup = DONE, .min_time_s = min_time_s};
    struct el_session session = {.config = &config, .mode = el_mode_ops_find("dp")};
    struct el_run run = {.session = &session, .n_warmup = DONE, .n_done = DONE, .n_steps = 1};
    struct el_layout alone = {.n_workers = 1};
    run.worker.layout = &alone;
    run.step_ns = malloc(DONE * sizeof *run.step_ns);
    memcpy(run.step_ns, step_ns, DONE * sizeof *run.step_ns);
    assert_int_equal(el_run_settle(&run), EL_OK);
    *settled_p = run.result.settled;
    free(run.step_ns);
    free(run.result.wall_ns);
    free(run.result.loss);
    return run.n_warmup - DONE;
}

static void warm_up_ends_when_steps_have_settled(void **state)
{
    static const struct {
        int64_t step_ns[8];
        bool settled;
    } cases[] = {{{900, 800, 104, 100, 99, 98, 700, 101}, true}, /* by medians: one slow step is no trend */
                 {{900, 800, 200, 198, 199, 101, 100, 102}, false},
                 {{100, 100, 100, 100, 100, 106, 106, 106}, false},
                 {{100, 100, 100, 100, 100, 104, 104, 104}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool settled;
        assert_int_equal(more_of(cases[i].step_ns, 10, &settled), cases[i].settled ? 0 : 2);
        assert_int_equal(settled, cases[i].settled);
        assert_int_equal(more_of(cases[i].step_ns, 0, &settled), 0); /* nobody measures */
    }
}

static void the_best_epoch_has_the_highest_accuracy(void **state)
{
    struct el_train_config config;
    struct el_train_result result;
    int best = 0;
    assert_int_equal(el_case_config(&el_cases[6], "single", 1, &config), EL_OK);
    config.epochs = EPOCHS;
    train_on("cpu", NULL, &config, NULL, &result);
    assert_int_equal(result.n_epochs, EPOCHS);
    for (int e = 1; e < EPOCHS; e++)
        if (result.epochs[e].held_out.accuracy > result.epochs[best].held_out.accuracy) best = e;
    assert_in_range(best, 1, EPOCHS - 2); /* else the first or the last would do */
    assert_int_equal(result.best_epoch, best);
    el_train_result_free(&result);
}

RUN_TESTS(open_data, close_data, buckets_are_launched_in_order, simulated_members_have_one_step_time,
          a_reducer_groups_by_any_limits, warm_up_ends_when_steps_have_settled, the_best_epoch_has_the_highest_accuracy)
