/* Steps of simulated devices, for the tests of them: ops of known costs, and what was seen of a step. Known costs
 * (sim.c): a host call 10 us, a collective 20 us and half its bytes at 20 a nanosecond. */
#pragma once

#include <string.h>

#include "runtime/device/device.h"
#include "runtime/device/program.h"

enum { MEMBERS = 3, HOST_NS = 10000, COLLECTIVE_NS = 20000 + 2000 / 20, OPS_MAX = 64 };

static inline enum el_status never(const struct el_call_args *args)
{
    (void)args;
    fail_msg("a simulated device ran a call");
    return EL_OK;
}

static inline int collective(struct el_program *program, struct el_device *device, const void *of, uint64_t number,
                             int n_members)
{
    int id = -1;
    struct el_call_op op = {
        .head = {.label = "collective", .phase = EL_PHASE_COMM, .sent_bytes = 2000, .received_bytes = 2000},
        .op_class = EL_CLASS_COMM,
        .run = never,
        .bytes = 1 << 20,
        .group = {.of = of, .number = number, .n_members = n_members}};
    assert_int_equal(el_program_call(program, device, EL_STREAM_COMM, &op, &id), EL_OK);
    return id;
}

/* What a member saw of its last step. */
struct seen {
    struct el_span whole, spans[OPS_MAX];
};

static inline void keep(void *context, const struct el_step_event *event)
{
    struct seen *seen = context;
    assert_true(event->simulated);
    assert_true(event->n_ops <= OPS_MAX);
    seen->whole = event->whole;
    memcpy(seen->spans, event->spans, (size_t)event->n_ops * sizeof *event->spans);
}

static inline void open_devices(struct el_device **devices, int n, const struct el_inject *injects)
{
    for (int i = 0; i < n; i++) {
        struct el_device_spec spec = {.backend = "sim", .index = i, .position = i};
        if (injects) spec.inject = injects[i];
        assert_int_equal(el_device_open(&spec, &devices[i]), EL_OK);
    }
}

static inline void close_devices(struct el_device **devices, int n)
{
    for (int i = 0; i < n; i++) el_device_close(devices[i]);
}

/* A program on simulated devices, and the end of both. */
static inline struct el_program *begin_program(struct el_device **devices, int n, const struct el_inject *injects)
{
    struct el_program *program;
    open_devices(devices, n, injects);
    assert_int_equal(el_program_create(&program), EL_OK);
    return program;
}

static inline void end_program(struct el_program *program, struct el_device **devices, int n)
{
    el_program_destroy(program);
    close_devices(devices, n);
}
