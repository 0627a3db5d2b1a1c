/* A backend to start from: copy, rename, fill in, and add a row to el_backends in device.c. Compiled but not
 * registered. Contracts: device_ops.h. Its memory is the heap; its streams run work at once on the caller's thread,
 * which is legal, as submit must only keep the order. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device_ops.h"

extern const struct el_device_ops el_device_skeleton;

/* Before open, and for `evenload devices`. */
static enum el_status usable(int *n_devices_p)
{
    *n_devices_p = 1;
    return EL_OK; /* or el_fail(EL_ERR_ABSENT, "skeleton: no driver found; install ...") */
}

/* Once per device. `spec` is valid during the call only. */
static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    (void)spec;
    *state_p = NULL;
    return EL_OK;
}

/* Last: streams are closed, memory is unmapped. */
static void close_device(void *state)
{
    (void)state;
}

/* Per persistent allocation, and once per program's arena; never in a step. */
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

/* Only between steps. */
static enum el_status move(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device)
{
    (void)state;
    void *memory = (void *)address;
    memcpy(host_to_device ? memory : host, host_to_device ? host : memory, bytes);
    return EL_OK;
}

/* At a stream's first use. */
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

/* Once per stream for preparing, and once per step. Streams that wait for each other's ops need threads; this one
 * would hang. */
static void submit(void *stream, void (*run)(void *argument), void *argument)
{
    (void)stream;
    run(argument);
}

/* In a step, on the stream's thread. Either side may be host memory. */
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
