/* Puts a host-memory communicator behind devices whose memory the host cannot read: device, host, collective, host,
 * device. The host thread waits, so nothing overlaps. Messages within a process go from device to device, through
 * device mailboxes; between processes they are staged. */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/shared/engine.h"

struct staged {
    struct el_comm_backend backend;
    struct el_comm_ops ops;
    const struct el_comm_backend *inner;
    void *inner_state;
    struct el_comm_place place;
    int rank, size;
    void *host; /* [bytes] */
    size_t bytes;
    struct el_device **devices; /* [size], all members': for direct messages; NULL: through the host */
    struct el_lent_memory boxes;
};

/* Both sides in host memory; in place where possible. */
struct layout {
    size_t data_bytes, result_bytes;
    size_t data_begin, result_begin;
    size_t used_bytes, used_begin;
    size_t bytes;
};

static struct layout layout_of(const struct staged *staged, const struct el_comm_task *task)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(task->verb);
    size_t part = task->count * el_dtype_bytes(task->dtype), mine = (size_t)staged->rank * part;
    struct layout layout = {.data_bytes = part * (row->all_data ? (size_t)staged->size : 1),
                            .result_bytes = part * (row->all_result ? (size_t)staged->size : 1)};
    if (row->all_data && row->all_result)
        layout.result_begin = layout.data_bytes;
    else if (row->all_data)
        layout.result_begin = mine;
    else if (row->all_result)
        layout.data_begin = mine;
    size_t data_end = layout.data_begin + layout.data_bytes, result_end = layout.result_begin + layout.result_bytes;
    layout.used_begin = ((data_end > result_end ? data_end : result_end) + 7) / 8 * 8;
    layout.used_bytes = 2 * (size_t)staged->size * (size_t)task->used.each * sizeof(int32_t);
    layout.bytes = layout.used_begin + layout.used_bytes;
    return layout;
}

static bool goes_directly(const struct staged *staged, const struct el_comm_task *task)
{
    return staged->devices && el_comm_verb_row(task->verb)->is_link;
}

static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    struct staged *staged = state;
    size_t bytes = layout_of(staged, task).bytes;
    if (goes_directly(staged, task)) return EL_OK;
    if (staged->inner->ops->reserve) EL_TRY(staged->inner->ops->reserve(staged->inner_state, task));
    if (bytes <= staged->bytes) return EL_OK;
    void *larger = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!larger) return el_fail_errno("communicator %s: %zu bytes to stage", staged->backend.name, bytes);
    free(staged->host);
    staged->host = larger;
    staged->bytes = bytes;
    return EL_OK;
}

/* Between host and device: all of it, or what is used of each part. */
static enum el_status copy(const struct staged *staged, const struct el_comm_task *inner, bool to_host, void *to,
                           const void *from, size_t bytes)
{
    struct el_device *device = staged->place.device;
    const size_t width = el_dtype_bytes(inner->dtype), part = inner->used.counts ? inner->count * width : bytes;
    for (size_t at = 0; at < bytes; at += part) {
        const size_t used = el_comm_used(&inner->used, (int)(at / part), !to_host, 0, part / width) * width;
        if (used > 0)
            EL_TRY(el_device_enqueue_copy(device, staged->place.stream, (char *)to + at, to_host ? NULL : device,
                                          (const char *)from + at, to_host ? device : NULL, used));
    }
    return EL_OK;
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    struct staged *staged = state;
    struct layout layout = layout_of(staged, task);
    struct el_comm_task inner = *task;
    struct el_device *device = staged->place.device;
    if (task->verb == EL_COMM_BARRIER || goes_directly(staged, task))
        return staged->inner->ops->run(staged->inner_state, task);
    if (layout.bytes > staged->bytes)
        return el_fail(EL_ERR_INTERNAL, "communicator %s: %zu bytes were not reserved", staged->backend.name,
                       layout.bytes);
    inner.data = (char *)staged->host + layout.data_begin;
    bool gives = task->data && el_comm_parts_given(task->verb, staged->rank, task->root, staged->size);
    bool gets = task->result && el_comm_parts_got(task->verb, staged->rank, task->root, staged->size);
    inner.result = gets ? (char *)staged->host + layout.result_begin : NULL;
    inner.stream = NULL;
    if (task->used.counts) {
        void *counts = (char *)staged->host + layout.used_begin;
        EL_TRY(el_device_enqueue_copy(device, staged->place.stream, counts, NULL, task->used.counts, device,
                                      layout.used_bytes));
        inner.used.counts = counts;
    }
    if (gives) EL_TRY(copy(staged, &inner, true, inner.data, task->data, layout.data_bytes));
    EL_TRY(staged->inner->ops->run(staged->inner_state, &inner));
    return inner.result ? copy(staged, &inner, false, task->result, inner.result, layout.result_bytes) : EL_OK;
}

static bool within_a_process(const struct staged *staged)
{
    return staged->inner == &el_comm_local_backend;
}

static enum el_status move(void *mover, int partner, bool puts, void *to, const void *from, size_t bytes)
{
    const struct staged *staged = mover;
    struct el_device *own = staged->place.device, *other = puts ? staged->devices[partner] : own;
    EL_TRY(el_device_enqueue_copy(own, staged->place.stream, to, other, from, own, bytes));
    return el_device_stream_synchronize(own, staged->place.stream);
}

/* Members exchange their devices. */
static enum el_status meet_devices(struct staged *staged, enum el_status mine)
{
    struct el_shared *shared = staged->inner_state; /* a member of `local` begins with it */
    uint64_t words[EL_SHARED_MEMBERS_MAX];
    struct el_device **devices = calloc((size_t)staged->size, sizeof(struct el_device *));
    if (mine == EL_OK && !devices) mine = el_fail(EL_ERR_HOST_MEMORY, "communicator local: no memory");
    enum el_status status = el_shared_agree(shared, mine, (uintptr_t)staged->place.device, words);
    if (status != EL_OK) {
        free(devices);
        return status;
    }
    for (int r = 0; r < staged->size; r++) devices[r] = (struct el_device *)(uintptr_t)words[r];
    staged->devices = devices;
    shared->mover = staged;
    shared->move = move;
    return EL_OK;
}

static void free_boxes(void *memory)
{
    free(memory);
}

static enum el_status find_boxes(struct staged *staged, enum el_status mine, size_t bytes)
{
    if (staged->inner->ops->alloc) return staged->inner->ops->alloc(staged->inner_state, bytes, mine, &staged->boxes);
    void *memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !memory) return el_fail_errno("communicator %s: mailboxes of %zu bytes", staged->backend.name, bytes);
    staged->boxes = (struct el_lent_memory){(uintptr_t)memory, free_boxes, memory};
    return mine;
}

static enum el_status open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct staged *staged = state;
    const struct el_comm_ops *ops = staged->inner->ops;
    size_t n = 0;
    if (within_a_process(staged)) {
        EL_TRY(meet_devices(staged, mine));
        return ops->open_mailboxes(staged->inner_state, EL_OK, partners, boxes, bytes);
    }
    for (int r = 0; partners && r < staged->size; r++) n += partners[r];
    mine = find_boxes(staged, mine, n * bytes);
    if (mine != EL_OK && ops->alloc) return mine; /* all others have failed too */
    boxes = (void *)staged->boxes.address;        /* NOLINT(performance-no-int-to-ptr): memory */
    return ops->open_mailboxes(staged->inner_state, mine, partners, boxes, bytes);
}

static void set_timeout(void *state, int64_t timeout_ns)
{
    struct staged *staged = state;
    if (staged->inner->ops->set_timeout) staged->inner->ops->set_timeout(staged->inner_state, timeout_ns);
}

static enum el_status split_inner(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct staged *staged = state;
    split->backend = staged->inner;
    EL_TRY(staged->inner->ops->split(staged->inner_state, mine, split));
    return split->state ? el_staged_wrap(&split->place, split->rank, split->size, &split->backend, &split->state)
                        : EL_OK;
}

static struct el_comm_traffic traffic(const void *state, const struct el_comm_shape *shape)
{
    const struct staged *staged = state;
    return staged->inner->ops->traffic(staged->inner_state, shape);
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
    if (staged->boxes.release) staged->boxes.release(staged->boxes.owner);
    free(staged->devices);
    free(staged->host);
    free(staged);
}

enum el_status el_staged_wrap(const struct el_comm_place *place, int rank, int size,
                              const struct el_comm_backend **backend, void **state_p)
{
    struct staged *staged = calloc(1, sizeof *staged);
    if (!staged) {
        (*backend)->ops->close(*state_p);
        return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", (*backend)->name);
    }
    staged->inner = *backend;
    staged->inner_state = *state_p;
    staged->place = *place;
    staged->rank = rank;
    staged->size = size;
    staged->backend = (struct el_comm_backend){.name = (*backend)->name, .ops = &staged->ops};
    staged->ops = *(*backend)->ops;
    staged->ops.run = run;
    staged->ops.reserve = reserve;
    staged->ops.alloc = NULL; /* the inner one's is host memory */
    if (staged->ops.open_mailboxes) staged->ops.open_mailboxes = open_mailboxes;
    staged->ops.brings_boxes = !within_a_process(staged);
    if (staged->ops.traffic) staged->ops.traffic = traffic;
    if (staged->ops.set_timeout) staged->ops.set_timeout = set_timeout;
    if (staged->ops.split) staged->ops.split = split_inner;
    staged->ops.abort = abort_inner;
    staged->ops.close = close_staged;
    *backend = &staged->backend;
    *state_p = staged;
    return EL_OK;
}

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    const struct el_comm_backend *inner = &el_comm_local_backend;
    EL_TRY(inner->open_members(places, n, states));
    enum el_status status = EL_OK;
    int n_wrapped = 0;
    while (status == EL_OK && n_wrapped < n) {
        const struct el_comm_backend *backend = inner;
        status = el_staged_wrap(&places[n_wrapped], n_wrapped, n, &backend,
                                &states[n_wrapped]); /* closes the state on failure */
        n_wrapped++;
    }
    if (status == EL_OK) return EL_OK;
    for (int i = 0; i < n_wrapped - 1; i++) close_staged(states[i]);
    for (int i = n_wrapped; i < n; i++) inner->ops->close(states[i]);
    return status;
}

static const struct el_comm_ops local_ops = {.verbs = EL_SHARED_VERBS,
                                             .run = run,
                                             .reserve = reserve,
                                             .choose = el_shared_choose,
                                             .open_mailboxes = open_mailboxes,
                                             .split = split_inner,
                                             .set_timeout = set_timeout,
                                             .abort = abort_inner,
                                             .close = close_staged};

const struct el_comm_backend el_comm_staged_local_backend = {
    .name = "local", .ops = &local_ops, .open_members = open_members};
