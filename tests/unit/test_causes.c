/* Hand-made traces of two ranks: in which part of the training loop the late one's time went, by hand. */
#include "tests/unit/traces_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/causes.h"

static void event(struct text *t, const char *cat, const char *name, double ts_us, double end_us)
{
    const bool calls = !strncmp(name, "nccl", 4);
    ADD(t, ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}", cat,
        name, ts_us, end_us - ts_us,
        calls ? "\"device\": 0, \"Collective name\": \"allreduce\", \"Process Group Name\": \"0\", \"Group size\": 2"
        : !strcmp(cat, "kernel") ? "\"device\": 0"
                                 : "");
}

static void begin(struct text *t, int rank, int steps)
{
    t->n = 0;
    ADD(t, "{\"distributedInfo\": {\"rank\": %d, \"world_size\": 2}, \"traceEvents\": [{}", rank);
    for (int step = 0; step < steps; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 100 * step, 100 * step + 100);
    }
}

/* Data, forward, two nodes of the graph, and the all-reduce up to 55 us after the step's begin; then the optimizer. */
static void step(struct text *t, double at, double data, double forward, double node, double pause_us)
{
    double now = at;
    event(t, "user_annotation", "enumerate(DataLoader)#_Iter.__next__", now, now + data);
    now += data;
    event(t, "cpu_op", "aten::linear", now, now + forward);
    now += forward;
    event(t, "cpu_op", "autograd::engine::evaluate_function: A", now, now + node);
    event(t, "cpu_op", "autograd::engine::evaluate_function: B", now + node + pause_us, now + 2 * node + pause_us);
    event(t, "cpu_op", "gloo:all_reduce", now + 2 * node + pause_us, at + 55);
    event(t, "cpu_op", "Optimizer.step#SGD.step", at + 60, at + 70);
}

static struct el_causes causes_of(struct el_kineto_trace *traces, size_t who, double least_us)
{
    struct el_relation relation;
    struct el_causes causes;
    assert_int_equal(el_relate(traces, 2, &relation), EL_OK);
    assert_int_equal(el_causes_find(traces, &relation, who, 1e-6 * least_us, &causes), EL_OK);
    el_relation_free(&relation);
    for (int t = 0; t < 2; t++) el_kineto_free(&traces[t]);
    return causes;
}

/* In microseconds, a part that is not named is 0. */
static void has(const struct el_causes *causes, double late, enum el_cause a, double of_a, enum el_cause b, double of_b)
{
    double sum = 0;
    if (!(fabs(1e6 * causes->late_s - late) < 1e-6)) fail_msg("late %g us, wanted %g", 1e6 * causes->late_s, late);
    for (int p = 0; p < EL_CAUSE_PARTS; p++) {
        const double wanted = p == (int)a ? of_a : p == (int)b ? of_b : 0, us = 1e6 * causes->parts_s[p];
        if (!(fabs(us - wanted) < 1e-6)) fail_msg("%s: %g us, wanted %g", el_cause_name((enum el_cause)p), us, wanted);
        sum += us;
    }
    assert_true(fabs(sum - late) < 1e-6);
}

struct step_us {
    double data, forward, pause;
};

/* Rank 0's steps are even. */
static struct el_causes of_loop(const struct step_us steps[3], double least_us)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    begin(&text, 0, 3);
    for (int s = 0; s < 3; s++) step(&text, 100 * s, 10, 10, 5, 0);
    traces[0] = read_trace(&text, NULL);
    begin(&text, 1, 3);
    for (int s = 0; s < 3; s++) step(&text, 100 * s, steps[s].data, steps[s].forward, 5, steps[s].pause);
    traces[1] = read_trace(&text, NULL);
    return causes_of(traces, 1, least_us);
}

/* The first step has no collective before it. Rank 1 is 10 us late by its data in the second step, and 6 by its forward
 * in the third one. */
static void test_loop(void **state)
{
    const struct el_causes causes = of_loop((struct step_us[]){{10, 10, 20}, {20, 10, 0}, {10, 16, 0}}, 0);
    assert_int_equal(causes.n_steps, 2);
    has(&causes, 8, EL_CAUSE_DATA, 5, EL_CAUSE_FORWARD, 3);
    (void)state;
}

/* Between two nodes of one backward pass; and only steps count in which it is late enough. */
static void test_backward(void **state)
{
    const struct el_causes causes = of_loop((struct step_us[]){{10, 10, 0}, {10, 10, 20}, {12, 10, 0}}, 3);
    assert_int_equal(causes.n_steps, 1);
    has(&causes, 20, EL_CAUSE_BACKWARD, 20, EL_CAUSE_BACKWARD, 20);
    (void)state;
}

/* A closure: forward and backward lie in Optimizer.step. Rank 1 takes 8 us longer after its backward, 4 in forward. */
static void test_closure(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    for (int rank = 0; rank < 2; rank++) {
        begin(&text, rank, 2);
        for (int s = 0; s < 2; s++) {
            const double at = 100 * s, longer = rank && s ? 4 : 0, late = rank && s ? 12 : 0;
            event(&text, "user_annotation", "enumerate(DataLoader)#_Iter.__next__", at, at + 5);
            event(&text, "cpu_op", "aten::linear", at + 6, at + 16 + longer);
            event(&text, "cpu_op", "autograd::engine::evaluate_function: A", at + 20 + longer, at + 30 + longer);
            event(&text, "cpu_op", "gloo:all_reduce", at + 40 + late, at + 55);
            event(&text, "cpu_op", "Optimizer.step#SGD.step", at + 6, at + 60);
        }
        traces[rank] = read_trace(&text, NULL);
    }
    const struct el_causes causes = causes_of(traces, 1, 0);
    has(&causes, 12, EL_CAUSE_OPTIMIZER, 8, EL_CAUSE_FORWARD, 4);
    (void)state;
}

/* On a device kernels count first; the host's parts are those in which it is idle. Rank 0 is late here. */
static void test_device(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    for (int rank = 0; rank < 2; rank++) {
        begin(&text, rank, 2);
        for (int s = 0; s < 2; s++) {
            const double at = 100 * s, load = !rank && s ? 13 : 0, longer = !rank && s ? 7 : 0;
            event(&text, "user_annotation", "enumerate(DataLoader)#_Iter.__next__", at, at + 5 + load);
            event(&text, "kernel", "gemm", at + 5 + load, at + 25 + load + longer);
            event(&text, "kernel", "ncclDevKernel_AllReduce", at + 25 + load + longer, at + 60);
        }
        traces[rank] = read_trace(&text, NULL);
    }
    const struct el_causes causes = causes_of(traces, 0, 0);
    has(&causes, 20, EL_CAUSE_COMPUTE, 7, EL_CAUSE_DATA, 13);
    (void)state;
}

/* Rank 0 waits 20 of 100 us in the second step, rank 1 in none; the other parts are those of both. */
static void test_steps(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    struct el_relation relation;
    struct el_step_parts parts[2];
    for (int rank = 0; rank < 2; rank++) {
        begin(&text, rank, 2);
        for (int s = 0; s < 2; s++) step(&text, 100 * s, 10, 10, 5, rank && s ? 20 : 0);
        traces[rank] = read_trace(&text, NULL);
    }
    assert_int_equal(el_relate(traces, 2, &relation), EL_OK);
    assert_int_equal(el_causes_steps(traces, &relation, parts), EL_OK);
    for (int rank = 0; rank < 2; rank++) {
        const double *own = parts[rank].parts_s;
        double sum = parts[rank].wait_s + parts[rank].transfer_s;
        for (int p = 0; p < EL_CAUSE_PARTS; p++) sum += own[p];
        assert_true(fabs(1e6 * parts[rank].wait_s - (rank ? 0 : 10)) < 1e-6);
        assert_true(fabs(1e6 * own[EL_CAUSE_DATA] - 10) < 1e-6 && fabs(1e6 * own[EL_CAUSE_FORWARD] - 10) < 1e-6);
        assert_true(fabs(1e6 * own[EL_CAUSE_BACKWARD] - (rank ? 20 : 10)) < 1e-6);
        assert_true(fabs(1e6 * sum - 100) < 1e-6);
        el_kineto_free(&traces[rank]);
    }
    el_relation_free(&relation);
    (void)state;
}

RUN_TESTS(NULL, NULL, test_steps, test_loop, test_backward, test_closure, test_device)
