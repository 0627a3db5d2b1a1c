/* A backend to start from: copy this file, rename, fill in, and add a row to el_backends in device.c. It is compiled,
 * so that it stays true, and not registered. What each hook owes stands in device_ops.h; this one is a device whose
 * memory is the heap and whose streams run work at once on the caller's thread, which is legal: submit must only keep
 * the order. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device_ops.h"

extern const struct el_device_ops el_device_skeleton;

/* Called before open and by `evenload devices`: say what is missing, if anything is. */
static enum el_status usable(int *n_devices_p)
{
    *n_devices_p = 1;
    return EL_OK; /* or el_fail(EL_ERR_ABSENT, "skeleton: no driver found; install ...") */
}

/* Called once per device, before all else. `spec` stays valid only during the call. */
static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    (void)spec;
    *state_p = NULL;
    return EL_OK;
}

/* Called last: streams are closed and memory is unmapped. */
static void close_device(void *state)
{
    (void)state;
}

/* Called for each allocation that lives across steps, and once for the arena of each program: never inside a step. */
static enum el_status map(void *state, size_t bytes, uintptr_t *address_p)
{
    (void)state;
    void *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!memory) return el_fail_errno("skeleton: %zu bytes", bytes);
    *address_p = (uintptr_t)memory;
    return EL_OK;
}

static void unmap(void *state, uintptr_t address, size_t bytes)
{
    (void)state;
    (void)bytes;
    free((void *)address);
}

/* Called between steps only. */
static enum el_status move(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device)
{
    (void)state;
    void *memory = (void *)address;
    memcpy(host_to_device ? memory : host, host_to_device ? host : memory, bytes);
    return EL_OK;
}

/* Called at a stream's first use. */
static enum el_status stream_open(void *state, int index, void **stream_p)
{
    (void)state;
    (void)index;
    *stream_p = NULL;
    return EL_OK;
}

static void stream_close(void *stream)
{
    (void)stream;
}

/* Called twice a program's life for preparing and at each step, once a stream. Two streams that wait for each other's
 * ops need threads; this one would hang there. */
static void submit(void *stream, void (*run)(void *argument), void *argument)
{
    (void)stream;
    run(argument);
}

/* Called inside a step, on the stream's thread. Either side may be host memory. */
static enum el_status copy(void *destination, const void *source, size_t bytes)
{
    memcpy(destination, source, bytes);
    return EL_OK;
}

const struct el_device_ops el_device_skeleton = {
    .name = "skeleton",
    .summary = "what a backend owes",
    .computes = true,
    .usable = usable,
    .open = open_device,
    .close = close_device,
    .map = map,
    .unmap = unmap,
    .move = move,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .submit = submit,
    .copy = copy,
};
