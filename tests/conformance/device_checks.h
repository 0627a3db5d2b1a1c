/* What the cases of device conformance share: a device of the backend under test, a program, calls that note their
 * order. */
#pragma once

#include <stdatomic.h>

#include "runtime/device/program.h"

static const char *backend = "cpu";
static int n_cards; /* that the backend has; 0: any number of devices */

static struct el_device *open_device(int index, size_t limit)
{
    struct el_device *device = NULL;
    struct el_device_spec spec = {
        .backend = backend, .index = n_cards ? index % n_cards : index, .position = index, .memory_limit_bytes = limit};
    if (el_device_open(&spec, &device) != EL_OK) fail_msg("%s", el_error_message());
    return device;
}

static struct el_program *begin(void)
{
    struct el_program *program = NULL;
    assert_int_equal(el_program_create(&program), EL_OK);
    return program;
}

static void run(struct el_program *program, uint64_t step, const struct el_probe *probe)
{
    if (el_program_end(program) != EL_OK) fail_msg("%s", el_error_message());
    if (el_program_run(program, step, probe) != EL_OK) fail_msg("%s", el_error_message());
}

/* Calls that note their order. */
struct note {
    _Atomic int *clock;
    int order;
    uint64_t step;
};

static enum el_status take_note(const struct el_call_args *args)
{
    struct note *note = args->context;
    note->order = atomic_fetch_add(note->clock, 1);
    note->step = args->step;
    return EL_OK;
}

static int add_note(struct el_program *program, struct el_device *device, int stream, struct note *note)
{
    struct el_call_op op = {.head = {.label = "note", .phase = EL_PHASE_DATA},
                            .op_class = EL_CLASS_HOST,
                            .run = take_note,
                            .context = note};
    int id = -1;
    assert_int_equal(el_program_call(program, device, stream, &op, &id), EL_OK);
    return id;
}
