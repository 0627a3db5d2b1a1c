/* A communicator that works on host memory, for devices whose memory the host cannot read: device, host, collective,
 * host, device. The fall-back that always works. The host thread waits for the stream and for the other members, so
 * nothing overlaps.
 *
 * Copies go through the member's communication stream, behind what the collective waits for; one to the host has ended
 * when it returns, and what one from the host reads may be overwritten then (device.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/comm_ops.h"

struct staged {
    struct el_comm_backend backend; /* the inner one's name over our operations */
    struct el_comm_ops ops;
    const struct el_comm_backend *inner;
    void *inner_state;
    struct el_comm_place place;
    void *host; /* [bytes] */
    size_t bytes;
};

/* Grows between steps, never within one. */
static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    struct staged *staged = state;
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    if (bytes <= staged->bytes) return EL_OK;
    void *larger = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!larger) return el_fail_errno("communicator %s: %zu bytes to stage", staged->backend.name, bytes);
    free(staged->host);
    staged->host = larger;
    staged->bytes = bytes;
    return EL_OK;
}

/* A reduce's sum takes the place of the member's own data in host memory: on the device both stay apart. */
static enum el_status run(void *state, const struct el_comm_task *task)
{
    struct staged *staged = state;
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    struct el_comm_task inner = *task;
    struct el_device *device = staged->place.device;
    void *destination = task->verb == EL_COMM_REDUCE ? task->result : task->data;
    if (bytes > staged->bytes)
        return el_fail(EL_ERR_INTERNAL, "communicator %s: %zu bytes were not reserved", staged->backend.name, bytes);
    inner.data = staged->host;
    inner.result = task->result ? staged->host : NULL;
    inner.stream = NULL;
    EL_TRY(el_device_enqueue_copy(device, staged->place.stream, staged->host, NULL, task->data, device, bytes));
    EL_TRY(staged->inner->ops->run(staged->inner_state, &inner));
    if (!destination) return EL_OK;
    return el_device_enqueue_copy(device, staged->place.stream, destination, device, staged->host, NULL, bytes);
}

static void abort_inner(void *state)
{
    struct staged *staged = state;
    staged->inner->ops->abort(staged->inner_state);
}

static void close_staged(void *state)
{
    struct staged *staged = state;
    staged->inner->ops->close(staged->inner_state);
    free(staged->host);
    free(staged);
}

enum el_status el_staged_wrap(const struct el_comm_place *place, const struct el_comm_backend **backend, void **state_p)
{
    struct staged *staged = calloc(1, sizeof *staged);
    if (!staged) {
        (*backend)->ops->close(*state_p);
        return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", (*backend)->name);
    }
    staged->inner = *backend;
    staged->inner_state = *state_p;
    staged->place = *place;
    staged->backend = (struct el_comm_backend){.name = (*backend)->name, .ops = &staged->ops};
    staged->ops = (struct el_comm_ops){.verbs = (*backend)->ops->verbs,
                                       .run = run,
                                       .reserve = reserve,
                                       .traffic = (*backend)->ops->traffic,
                                       .abort = abort_inner,
                                       .close = close_staged};
    *backend = &staged->backend;
    *state_p = staged;
    return EL_OK;
}

/* Members of one process, each with a thread: `local` behind the devices' memories. */
static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    const struct el_comm_backend *inner = &el_comm_local_backend;
    EL_TRY(inner->open_members(places, n, states));
    enum el_status status = EL_OK;
    int n_wrapped = 0;
    while (status == EL_OK && n_wrapped < n) {
        const struct el_comm_backend *backend = inner;
        status = el_staged_wrap(&places[n_wrapped], &backend, &states[n_wrapped]); /* which closes it if it fails */
        n_wrapped++;
    }
    if (status == EL_OK) return EL_OK;
    for (int i = 0; i < n_wrapped - 1; i++) close_staged(states[i]);
    for (int i = n_wrapped; i < n; i++) inner->ops->close(states[i]);
    return status;
}

static const struct el_comm_ops local_ops = {
    .verbs = EL_COMM_FIRST_VERBS, .run = run, .reserve = reserve, .abort = abort_inner, .close = close_staged};

const struct el_comm_backend el_comm_staged_local_backend = {
    .name = "local", .ops = &local_ops, .open_members = open_members};
