/* Device conformance, what streams must do: order and waits, work at the same time, copies, and the times of spans.
 * Cases of test_device.c. */
#pragma once

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/device_checks.h"

enum { COPY_BYTES = 1000 };

/* A block whose copy takes a while, and of a GPU, eight times as large, a long one. */
static size_t large_bytes(const struct el_device *device)
{
    return (size_t)(el_device_is_asynchronous(device) ? 8 << 20 : 512 << 10);
}

static void streams_keep_order_and_waits(void **state)
{
    enum { EACH = 50 };
    struct note notes[2 * EACH];
    int last = -1;
    for (int i = 0; i < 2 * EACH; i++) { /* a chain over two devices and two streams each */
        struct el_device *device = devices[i & 1];
        el_program_wait(program, device, i / 2 & 1, last);
        last = add_note(device, i / 2 & 1, &notes[i]);
    }
    assert_int_equal(el_program_end(program), EL_OK);
    for (uint64_t step = 5; step < 25; step++) {
        atomic_store(&clock_now, 0);
        assert_int_equal(el_program_run(program, step, NULL), EL_OK);
        for (int i = 0; i < 2 * EACH; i++) {
            assert_int_equal(notes[i].order, i);
            assert_int_equal(notes[i].step, step);
        }
    }
}

/* Work of the devices themselves: large blocks go round over two devices and three streams, each copy behind an event
 * of the one before. Where an event does not hold, a copy begins before the block has come. */
static void device_work_keeps_order_and_waits(void **state)
{
    enum { HOPS = 12, STEPS = 5 };
    struct el_buffer *blocks[HOPS + 1];
    size_t bytes = large_bytes(devices[0]);
    unsigned char *host = malloc(bytes);
    assert_non_null(host);
    int last = -1;
    for (int i = 0; i <= HOPS; i++) blocks[i] = alloc(devices[i & 1], bytes);
    for (int i = 0; i < HOPS; i++) {
        struct el_op_head head = {.label = "hop", .phase = EL_PHASE_SCATTER};
        struct el_device *device = devices[(i + 1) & 1];
        el_program_wait(program, device, i % 3, last);
        el_program_copy(program, device, i % 3, &head, el_view_of(blocks[i + 1], 0), el_view_of(blocks[i], 0), bytes,
                        &last);
    }
    must(el_program_end(program));
    for (int step = 0; step < STEPS; step++) {
        memset(host, step + 1, bytes);
        assert_int_equal(el_device_write(el_view_of(blocks[0], 0), host, bytes), EL_OK);
        must(el_program_run(program, (uint64_t)step, NULL));
        assert_int_equal(el_device_read(el_view_of(blocks[HOPS], 0), host, bytes), EL_OK);
        for (size_t i = 0; i < bytes; i += 509) assert_int_equal(host[i], step + 1);
    }
    free(host);
}

/* Two calls that can only end if both run at the same time. */
struct meeting {
    _Atomic int mine, *other;
};

static enum el_status meet(const struct el_call_args *args)
{
    struct meeting *meeting = args->context;
    atomic_store(&meeting->mine, 1);
    while (!atomic_load(meeting->other)) sched_yield();
    return EL_OK;
}

static void calls_meet(struct el_device *device)
{
    struct meeting meetings[2] = {{.mine = 0}, {.mine = 0}};
    for (int s = 0; s < 2; s++) {
        meetings[s].other = &meetings[1 - s].mine;
        struct el_call_op op = {
            .head = {.label = "meet"}, .op_class = EL_CLASS_HOST, .run = meet, .context = &meetings[s]};
        el_program_call(program, device, s, &op, NULL);
    }
    run(0, NULL);
}

static void keep_event(void *context, const struct el_step_event *event)
{
    struct el_span *spans = context;
    assert_non_null(event->spans);
    memcpy(spans, event->spans, (size_t)event->n_ops * sizeof *spans);
    for (int i = 0; i < event->n_ops; i++) {
        assert_true(spans[i].begin_ns >= event->whole.begin_ns && spans[i].end_ns <= event->whole.end_ns);
        assert_true(spans[i].end_ns >= spans[i].begin_ns);
    }
}

/* A long copy on one stream and a short one on another, issued behind it: it begins before the long one has ended. */
static void copies_overlap(struct el_device *device)
{
    enum { COPIES = 32 };
    struct el_span spans[COPIES + 1];
    size_t bytes = 8 * large_bytes(device);
    struct el_buffer *from = alloc(device, bytes), *to = alloc(device, bytes + 64);
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_SCATTER};
    for (int i = 0; i < COPIES; i++)
        el_program_copy(program, device, 0, &head, el_view_of(to, 0), el_view_of(from, 0), bytes, NULL);
    el_program_copy(program, device, 1, &head, el_view_of(to, bytes), el_view_of(from, 0), 64, NULL);
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_event};
    run(0, NULL); /* what is made at the first use is made */
    must(el_program_run(program, 1, &probe));
    assert_true(spans[COPIES].begin_ns < spans[COPIES - 1].end_ns);
}

static void streams_run_at_the_same_time(void **state)
{
    if (el_device_is_asynchronous(devices[0]))
        copies_overlap(devices[0]);
    else
        calls_meet(devices[0]);
}

static void copies_move_bytes_and_are_booked(void **state)
{
    struct el_device *a = devices[0], *b = devices[1];
    struct el_buffer *on_a = alloc(a, COPY_BYTES), *on_b = alloc(b, COPY_BYTES);
    char in[COPY_BYTES], out[COPY_BYTES];
    for (int i = 0; i < COPY_BYTES; i++) in[i] = (char)(i * 7);
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    int id;
    el_program_copy(program, a, 0, &head, el_view_of(on_a, 0), el_view_host(in), COPY_BYTES, &id);
    el_program_wait(program, b, 0, id);
    head.phase = EL_PHASE_SCATTER;
    el_program_copy(program, b, 0, &head, el_view_of(on_b, 0), el_view_of(on_a, 0), COPY_BYTES, NULL);
    run(0, NULL);
    assert_int_equal(el_device_read(el_view_of(on_b, 0), out, COPY_BYTES), EL_OK);
    assert_memory_equal(in, out, COPY_BYTES);
    const struct el_op_info *ops = el_program_ops(program);
    assert_int_equal(ops[0].received_bytes, COPY_BYTES);
    assert_int_equal(ops[0].peer, -1);
    assert_int_equal(ops[1].received_bytes, COPY_BYTES);
    assert_int_equal(ops[1].device, 1);
    assert_int_equal(ops[1].peer, 0);
}

static void spans_follow_the_waits(void **state)
{
    struct el_device *device = devices[0];
    struct note notes[4];
    struct el_span spans[4];
    for (int i = 0; i < 4; i++) {
        el_program_wait(program, device, i & 1, i - 1);
        add_note(device, i & 1, &notes[i]);
    }
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_event};
    run(0, &probe);
    for (int i = 1; i < 4; i++) assert_true(spans[i].begin_ns >= spans[i - 1].end_ns);
}

/* Events carry times: a chain of copies has spans one behind the other, each longer than nothing, within what the host
 * saw; and the host's clock does not contradict them. */
static void spans_of_device_work(void **state)
{
    enum { HOPS = 6 };
    struct el_device *device = devices[0];
    struct el_span spans[HOPS];
    size_t bytes = 8 * large_bytes(device);
    struct el_buffer *a = alloc(device, bytes), *b = alloc(device, bytes);
    int id = -1;
    for (int i = 0; i < HOPS; i++) {
        struct el_op_head head = {.label = "copy", .phase = EL_PHASE_SCATTER};
        el_program_wait(program, device, i & 1, id);
        el_program_copy(program, device, i & 1, &head, el_view_of(i & 1 ? a : b, 0), el_view_of(i & 1 ? b : a, 0),
                        bytes, &id);
    }
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_event};
    run(0, &probe);
    for (uint64_t step = 1; step < 3; step++) {
        must(el_program_run(program, step, &probe));
        for (int i = 0; i < HOPS; i++) {
            assert_true(spans[i].end_ns > spans[i].begin_ns);
            if (i) assert_true(spans[i].begin_ns >= spans[i - 1].end_ns);
        }
    }
}
