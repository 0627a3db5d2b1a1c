/* Hand-made traces of two and three ranks with known answers: which calls are one operation, on which clock, and who
 * waits. */
#include "tests/unit/traces_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiles/relate.h"

static void begin(struct text *t, int rank, int world)
{
    t->n = 0;
    ADD(t,
        "{\"distributedInfo\": {\"rank\": %d, \"world_size\": %d}, \"baseTimeNanoseconds\": %d, \"traceEvents\": [{}",
        rank, world, rank == 1 ? 2000000 : 1000000); /* rank 1's times begin 1 ms later */
}

static void event(struct text *t, const char *cat, const char *name, double ts_us, double dur_us, const char *args)
{
    ADD(t, ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}", cat,
        name, ts_us, dur_us, args);
}

static void near(double got, double wanted, const char *what)
{
    if (!(fabs(got - wanted) < 1e-9)) fail_msg("%s: got %.12g, wanted %.12g", what, got, wanted);
}

static struct el_relation relate(struct el_kineto_trace *traces, size_t n)
{
    struct el_relation relation;
    if (el_relate(traces, n, &relation) != EL_OK) fail_msg("%s", el_error_message());
    for (size_t i = 0; i < n; i++) el_kineto_free(&traces[i]);
    return relation;
}

#define ALL_REDUCE(seq)                                                                                                \
    "\"Collective name\": \"allreduce\", \"Process Group Name\": \"0\", \"Process Group Ranks\": \"[0, 1]\", "         \
    "\"Group size\": 2, \"In msg nelems\": 1000, \"Out msg nelems\": 1000, \"dtype\": \"Float\", \"Seq\": " #seq

/* Two steps of 100 us. Rank 1 comes 30 us late in the first and 10 in the second one; transfers take 20 and 40 us, and
 * 5 us of rank 0's first wait are hidden. Rank 1 begins with an operation that rank 0's trace does not have, so Seq
 * alone tells which is which; another has no partner. Rank 1's base is 1 ms later: its own times are 1000 us less. */
static void test_sequence(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    begin(&text, 0, 2);
    event(&text, "user_annotation", "ProfilerStep#4", 10000, 100, "");
    event(&text, "user_annotation", "ProfilerStep#5", 10100, 100, "");
    event(&text, "kernel", "gemm", 10000, 25, "");
    event(&text, "kernel", "ncclDevKernel_AllReduce", 10020, 50, ALL_REDUCE(7));
    event(&text, "kernel", "ncclDevKernel_AllReduce", 10150, 50, ALL_REDUCE(8));
    traces[0] = read_trace(&text, NULL);
    begin(&text, 1, 2);
    event(&text, "user_annotation", "ProfilerStep#4", 9000, 100, "");
    event(&text, "user_annotation", "ProfilerStep#5", 9100, 100, "");
    event(&text, "kernel", "gemm", 9020, 30, "");
    event(&text, "kernel", "ncclDevKernel_AllReduce", 9010, 5, ALL_REDUCE(6));
    event(&text, "kernel", "ncclDevKernel_AllReduce", 9050, 20, ALL_REDUCE(7));
    event(&text, "kernel", "ncclDevKernel_AllReduce", 9160, 40, ALL_REDUCE(8));
    event(&text, "kernel", "ncclDevKernel_SendRecv", 9205, 1, "");
    traces[1] = read_trace(&text, NULL);
    struct el_relation r = relate(traces, 2);
    assert_int_equal(r.n_members, 2);
    assert_int_equal(r.n_steps, 2);
    assert_int_equal(r.n_collectives, 2);
    assert_int_equal(r.members[0].n_alone, 0);
    assert_int_equal(r.members[1].n_alone, 2);
    near(r.clocks[1].offset_s, 0, "offset");
    near(r.step_s, 100e-6, "step");
    near(r.members[1].row.late_s, 20e-6, "late");
    near(r.members[0].row.late_s, -20e-6, "late of the other");
    near(r.members[1].row.last_pct, 100, "last");
    near(r.members[1].row.caused_s, 20e-6, "caused");
    near(r.members[0].row.wait_s, 20e-6, "wait");
    near(r.members[0].row.wait_exposed_s, 17.5e-6, "exposed wait");
    near(r.members[0].row.exposed_s, (45 + 50) / 2.0 * 1e-6, "exposed");
    near(r.members[0].row.transfer_s, 30e-6, "transfer");
    near(r.members[1].row.wait_s, 0, "wait of the late one");
    near(r.members[1].row.compute_s, 15e-6, "compute");
    near(r.members[1].parts_s[EL_RELATION_PARTS + EL_RELATION_EXPOSED], 40e-6, "exposed in step 5");
    assert_int_equal(r.n_sizes, 1);
    near(r.sizes[0].bytes, 4000, "bytes");
    near(r.sizes[0].transfer_s, 30e-6, "transfer by size");
    el_relation_free(&r);
}

/* Rank 1's clock is 5 s ahead and gains 100 us in a second: ten all-reduces, one each 100 ms. */
static void test_clocks(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    for (int rank = 0; rank < 2; rank++) {
        begin(&text, rank, 2);
        for (int i = 0; i < 20; i++) {
            double begin_us = 1e5 * i + (rank == 0 ? 1000 : 4000), end_us = 1e5 * i + 5000;
            char step[32];
            if (rank == 1) begin_us += 5e6 + begin_us * 1e-4 - 1000;
            if (rank == 1) end_us += 5e6 + end_us * 1e-4 - 1000;
            snprintf(step, sizeof step, "ProfilerStep#%d", i);
            event(&text, "user_annotation", step, begin_us - 500, 9e4, "");
            event(&text, "user_annotation", "gloo:all_reduce", begin_us, end_us - begin_us,
                  "\"Input Dims\": [[30, 10], [5]], \"Input type\": [\"float\"]");
            event(&text, "cpu_op", "aten::mm", begin_us - 400, 100, "");
        }
        traces[rank] = read_trace(&text, NULL);
    }
    struct el_relation r = relate(traces, 2);
    assert_int_equal(r.n_collectives, 20);
    if (fabs(r.clocks[1].drift_ppm + 100) > 0.1) fail_msg("drift of %g ppm", r.clocks[1].drift_ppm);
    if (fabs(r.clocks[1].offset_s + 5) > 1e-3) fail_msg("offset of %g s", r.clocks[1].offset_s);
    if (!(r.clocks[1].error_s < 1e-7)) fail_msg("error of %g s", r.clocks[1].error_s);
    if (fabs(r.members[1].row.late_s - 3e-3) > 1e-6) fail_msg("late by %g s", r.members[1].row.late_s);
    near(r.sizes[0].bytes, 305 * 4, "bytes");
    el_relation_free(&r);
}

/* Without Seq, and not as many on each: rank 0's trace begins a step earlier. The receiver's wait for a message is no
 * communication; two sub-groups of names of their own are apart. */
static void test_steps_and_messages(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    static const char message[] =
        "\"Collective name\": \"%s\", \"Process Group Name\": \"p\", \"Src Rank\": 0, \"Dst Rank\": 1";
    char args[160];
    for (int rank = 0; rank < 2; rank++) {
        double shift = rank == 1 ? -1000 : 0;
        begin(&text, rank, 3);
        if (rank == 0) {
            event(&text, "user_annotation", "ProfilerStep#1", 9900, 100, "");
            event(&text, "kernel", "ncclKernel_AllGather_RING_LL", 9950, 10, "");
        }
        event(&text, "user_annotation", "ProfilerStep#2", 10000 + shift, 100, "");
        event(&text, "kernel", "ncclKernel_AllGather_RING_LL", 10010 + shift, 20, "");
        snprintf(args, sizeof args, message, rank ? "recv" : "send");
        event(&text, "kernel", "ncclDevKernel_SendRecv", (rank ? 10040 : 10060) + shift, rank ? 30 : 10, args);
        snprintf(args, sizeof args, "\"Collective name\": \"allreduce\", \"Process Group Name\": \"own %d\"", rank);
        event(&text, "kernel", "ncclDevKernel_AllReduce", 10080 + shift, 5, args);
        traces[rank] = read_trace(&text, NULL);
    }
    struct el_relation r = relate(traces, 2);
    assert_int_equal(r.n_collectives, 1);
    assert_int_equal(r.n_steps, 1); /* rank 1 has no earlier step */
    assert_int_equal(r.n_left_out, 1);
    assert_int_equal(r.steps[0], 2);
    assert_int_equal(r.members[0].n_alone, 2); /* the earlier one, and that of its own group */
    assert_int_equal(r.members[1].n_alone, 1);
    near(r.members[0].row.late_s, 0, "late");
    near(r.members[1].row.wait_s, 0, "wait");
    near(r.members[1].row.exposed_s, 30e-6, "exposed of the receiver");
    near(r.members[0].row.exposed_s, 30e-6, "exposed of the sender");
    el_relation_free(&r);
}

/* A kernel that only has the id of what announced it; record_param_comms is itself no work. */
static void test_announced(void **state)
{
    static struct text text;
    begin(&text, 0, 2);
    event(&text, "cpu_op", "record_param_comms", 10, 1, "\"External id\": 5, " ALL_REDUCE(3));
    event(&text, "cpu_op", "record_param_comms", 5, 1, "\"External id\": 4, \"Collective name\": \"broadcast\"");
    event(&text, "kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", 20, 4, "\"External id\": 5, \"device\": 1");
    struct el_kineto_trace trace = read_trace(&text, NULL);
    assert_int_equal(trace.n_calls, 1);
    assert_int_equal(trace.calls[0].verb, EL_COMM_ALL_REDUCE);
    assert_int_equal(trace.calls[0].sequence, 3);
    assert_int_equal(trace.calls[0].device, 1);
    assert_int_equal(trace.calls[0].span.begin_ns, 20000);
    near(trace.calls[0].bytes, 4000, "bytes");
    el_kineto_free(&trace);
}

/* Without steps all is one; times 40 years apart, and a single trace, have nothing to do with one another. */
static void test_nothing_in_common(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    for (int rank = 0; rank < 2; rank++) {
        begin(&text, rank, 2);
        event(&text, "kernel", "ncclDevKernel_AllReduce", rank ? 2e15 : 100, 10, ALL_REDUCE(1));
        traces[rank] = read_trace(&text, NULL);
    }
    struct el_relation r = relate(traces, 2);
    assert_int_equal(r.n_collectives, 0);
    assert_false(r.has_steps);
    near(r.step_s, 10e-6, "step");
    el_relation_free(&r);
}

RUN_TESTS(NULL, NULL, test_sequence, test_clocks, test_steps_and_messages, test_announced, test_nothing_in_common)
