/* What the cases of device conformance share: two devices of the backend under test, a program, calls that note their
 * order. */
#pragma once

#include <stdatomic.h>

#include "runtime/device/program.h"

static const char *backend = "cpu";
static int n_cards; /* that the backend has; 0: any number of devices */

static struct el_device *devices[2];
static struct el_program *program;
static _Atomic int clock_now; /* that notes are taken by, from 0 in each case */

static void must(enum el_status status)
{
    if (status != EL_OK) fail_msg("%s", el_error_message());
}

static struct el_device *open_device(int index, size_t limit)
{
    struct el_device *device = NULL;
    struct el_device_spec spec = {
        .backend = backend, .index = n_cards ? index % n_cards : index, .position = index, .memory_limit_bytes = limit};
    must(el_device_open(&spec, &device));
    return device;
}

/* Round each case. */
static int begin(void **state)
{
    atomic_store(&clock_now, 0);
    for (int d = 0; d < 2; d++) devices[d] = open_device(d, 0);
    return el_program_create(&program) == EL_OK ? 0 : -1;
}

static int end(void **state)
{
    el_program_destroy(program);
    for (int d = 0; d < 2; d++) el_device_close(devices[d]);
    return 0;
}

static struct el_buffer *alloc(struct el_device *device, size_t bytes)
{
    struct el_buffer *buffer = NULL;
    must(el_device_alloc(device, EL_TAG_INPUT, bytes, "block", &buffer));
    return buffer;
}

static void run(uint64_t step, const struct el_probe *probe)
{
    must(el_program_end(program));
    must(el_program_run(program, step, probe));
}

/* Calls that note their order. */
struct note {
    int order;
    uint64_t step;
};

static enum el_status take_note(const struct el_call_args *args)
{
    struct note *note = args->context;
    note->order = atomic_fetch_add(&clock_now, 1);
    note->step = args->step;
    return EL_OK;
}

static int add_note(struct el_device *device, int stream, struct note *note)
{
    struct el_call_op op = {.head = {.label = "note", .phase = EL_PHASE_DATA},
                            .op_class = EL_CLASS_HOST,
                            .run = take_note,
                            .context = note};
    int id = -1;
    must(el_program_call(program, device, stream, &op, &id));
    return id;
}
