/* Hand-made traces of two ranks: the step without each cause, by hand. */
#include "tests/unit/traces_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiles/replay.h"

static void begin(struct text *t, int rank)
{
    t->n = 0;
    ADD(t, "{\"distributedInfo\": {\"rank\": %d, \"world_size\": 2}, \"traceEvents\": [{}", rank);
    for (int step = 0; step < 2; step++)
        ADD(t,
            ",\n{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%d\", \"ts\": %d, \"dur\": 100}",
            step, 100 * step);
}

/* On the device, but for the loader's. */
static void event(struct text *t, const char *name, double ts_us, double end_us)
{
    const bool calls = !strncmp(name, "nccl", 4), loads = !strncmp(name, "enum", 4);
    ADD(t, ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}",
        loads ? "user_annotation" : "kernel", name, ts_us, end_us - ts_us,
        calls ? "\"Collective name\": \"allreduce\", \"Process Group Name\": \"0\", \"Group size\": 2" : "");
}

#define ALL_REDUCE "ncclDevKernel_AllReduce"

static void asks(struct el_replay *replay, enum el_replay_kind kind, const bool *members, double wanted_us)
{
    double step_s;
    assert_int_equal(el_replay_step(replay, &(struct el_replay_cause){kind, members}, &step_s), EL_OK);
    if (!(fabs(step_s * 1e6 - wanted_us) < 1e-6))
        fail_msg("cause %d: %.6f us, wanted %g", kind, step_s * 1e6, wanted_us);
}

static struct el_replay *replay_of(struct el_kineto_trace *traces, struct el_relation *relation)
{
    struct el_replay *replay;
    assert_int_equal(el_relate(traces, 2, relation), EL_OK);
    assert_int_equal(el_replay_begin(traces, relation, &replay), EL_OK);
    return replay;
}

static void end(struct el_kineto_trace *traces, struct el_relation *relation, struct el_replay *replay)
{
    el_replay_free(replay);
    el_relation_free(relation);
    for (int t = 0; t < 2; t++) el_kineto_free(&traces[t]);
}

static const bool first[] = {true, false}, second[] = {false, true};

/* Two steps of 100 us. Rank 1 comes 30 us late in the first and 10 in the second one; transfers take 20 and 40 us. */
static void test_causes(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    struct el_relation relation;
    begin(&text, 0);
    event(&text, "gemm", 0, 25);
    event(&text, ALL_REDUCE, 20, 70);
    event(&text, ALL_REDUCE, 150, 200);
    traces[0] = read_trace(&text, "gemm");
    begin(&text, 1);
    event(&text, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 22);
    event(&text, "gemm", 20, 50);
    event(&text, ALL_REDUCE, 50, 70);
    event(&text, ALL_REDUCE, 160, 200);
    traces[1] = read_trace(&text, "gemm");
    struct el_replay *replay = replay_of(traces, &relation);
    assert_int_equal(relation.n_operations, 2);
    asks(replay, EL_REPLAY_NOTHING, NULL, 100);
    asks(replay, EL_REPLAY_RANK, second, 80);    /* arrivals 20 and 120, ends 40 and 160 */
    asks(replay, EL_REPLAY_RANK, first, 100);    /* it is never the last one */
    asks(replay, EL_REPLAY_WAITS, NULL, 90);     /* arrivals 35 and 140, ends 55 and 180 */
    asks(replay, EL_REPLAY_TRANSFERS, NULL, 70); /* arrivals 50 and 140 */
    asks(replay, EL_REPLAY_DATA, NULL, 90);      /* rank 1's device is idle for 20 us before its gemm */
    asks(replay, EL_REPLAY_NAMED, NULL, 85);     /* arrivals 20 and 130, ends 40 and 170 */
    asks(replay, EL_REPLAY_NOTHING, NULL, 100);  /* what was asked before is forgotten */
    end(traces, &relation, replay);
}

/* Rank 0's second all-reduce was ready long before, and queued behind the first one: without rank 1 it begins as early
 * as that one ends. In the second step the all-reduce is hidden, and what follows does not wait for it. */
static void test_queue(void **state)
{
    static struct text text;
    struct el_kineto_trace traces[2];
    struct el_relation relation;
    for (int rank = 0; rank < 2; rank++) {
        begin(&text, rank);
        event(&text, "gemm", 0, rank ? 50 : 20);
        event(&text, ALL_REDUCE, rank ? 50 : 20, 70);
        event(&text, ALL_REDUCE, 70.5, 90);
        event(&text, "relu", 91, 95); /* after both */
        event(&text, "relu", 100, 180);
        event(&text, ALL_REDUCE, 110, 150);
        traces[rank] = read_trace(&text, "gemm");
    }
    struct el_replay *replay = replay_of(traces, &relation);
    assert_int_equal(relation.n_operations, 3);
    asks(replay, EL_REPLAY_NOTHING, NULL, 100);
    asks(replay, EL_REPLAY_RANK, second, 85); /* ends 40 and 60, all else 30 earlier; the hidden one changes nothing */
    end(traces, &relation, replay);
}

RUN_TESTS(NULL, NULL, test_causes, test_queue)
