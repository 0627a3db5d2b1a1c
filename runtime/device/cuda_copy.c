/* Copies of the backend `cuda`. Between devices: direct with peer access, else staged by the driver. From the host:
 * through our pinned stages, so that the host continues at once and the copy engine works by itself, or directly if
 * the copy says how. To the host: synchronous. */
#include <string.h>

#include "runtime/device/cuda.h"

enum { STAGE_BYTES_MIN = 64 << 10, STAGE_BYTES_MAX = 16 << 20 };

static size_t stage_size(size_t bytes)
{
    size_t size = STAGE_BYTES_MIN;
    while (size < bytes && size < STAGE_BYTES_MAX) size *= 2;
    return size;
}

static bool is_idle(const struct el_cuda_device *device, struct el_cuda_stage *stage)
{
    if (!stage->in_flight) return true;
    stage->in_flight = !EL_CUDART_LET(device->api, EventQuery, stage->sent); /* clears "not ready" */
    return !stage->in_flight;
}

static enum el_status add_stage(struct el_cuda_device *device, size_t bytes, struct el_cuda_stage **stage_p)
{
    struct el_cuda_stage *stage = &device->stages[device->n_stages];
    *stage = (struct el_cuda_stage){.bytes = stage_size(bytes)};
    EL_CUDART_TRY(device->api, device->name, HostAlloc, &stage->pinned, stage->bytes);
    enum el_status status = EL_CUDART_CALL(device->api, device->name, EventCreate, &stage->sent, false);
    if (status != EL_OK) {
        EL_CUDART_LET(device->api, FreeHost, stage->pinned);
        return status;
    }
    device->n_stages++;
    *stage_p = stage;
    return EL_OK;
}

/* An idle stage of the size, else a new one, else waits for the first. A repeated step reuses its stages. */
static enum el_status take_stage(struct el_cuda_device *device, size_t bytes, struct el_cuda_stage **stage_p)
{
    struct el_cuda_stage *busy = NULL;
    size_t wanted = stage_size(bytes);
    for (int i = 0; i < device->n_stages; i++) {
        struct el_cuda_stage *stage = &device->stages[i];
        if (stage->bytes != wanted) continue;
        *stage_p = stage;
        if (is_idle(device, stage)) return EL_OK;
        if (!busy) busy = stage;
    }
    if (device->n_stages < EL_CUDA_STAGES_MAX / 2 || (!busy && device->n_stages < EL_CUDA_STAGES_MAX))
        return add_stage(device, bytes, stage_p);
    if (!busy) return el_fail(EL_ERR_INTERNAL, "%s: too many sizes of copies from the host", device->name);
    EL_CUDART_TRY(device->api, device->name, EventSynchronize, busy->sent);
    busy->in_flight = false;
    *stage_p = busy;
    return EL_OK;
}

static int count_stages(const struct el_cuda_device *device, size_t size)
{
    int n = 0;
    for (int i = 0; i < device->n_stages; i++) n += device->stages[i].bytes == size;
    return n;
}

/* Allocating pinned memory may wait for all cards, and so for a collective that waits for this thread: a step's stages
 * are allocated beforehand. */
enum el_status el_cuda_prepare_copies(void *state, const size_t *bytes, int n)
{
    struct el_cuda_device *device = state;
    for (size_t size = STAGE_BYTES_MIN; size <= STAGE_BYTES_MAX; size *= 2) {
        size_t pieces = 0;
        for (int i = 0; i < n; i++) {
            if (size == STAGE_BYTES_MAX) pieces += bytes[i] / STAGE_BYTES_MAX;
            size_t rest = bytes[i] % STAGE_BYTES_MAX;
            pieces += rest > 0 && stage_size(rest) == size;
        }
        for (size_t have = (size_t)count_stages(device, size); have < pieces; have++) {
            struct el_cuda_stage *stage;
            if (device->n_stages >= EL_CUDA_STAGES_MAX / 2 && have > 0) break;
            if (device->n_stages == EL_CUDA_STAGES_MAX) break;
            EL_TRY(add_stage(device, size, &stage));
        }
    }
    return EL_OK;
}

static enum el_status send_piece(struct el_cuda_device *device, void *stream, char *destination, const char *source,
                                 size_t bytes)
{
    struct el_cuda_stage *stage = NULL;
    EL_TRY(take_stage(device, bytes, &stage));
    memcpy(stage->pinned, source, bytes);
    EL_CUDART_TRY(device->api, device->name, MemcpyAsync, destination, stage->pinned, bytes, stream);
    stage->in_flight = true; /* even if a later call fails, the copy may be under way */
    return EL_CUDART_CALL(device->api, device->name, EventRecord, stage->sent, stream);
}

/* Until it ends, the copy may write memory that the caller reuses: a wait that failed transiently is repeated; a
 * permanent failure fails at once. */
static enum el_status await_copy(struct el_cuda_device *device, void *stream)
{
    enum el_status status = EL_CUDART_CALL(device->api, device->name, StreamSynchronize, stream);
    if (status != EL_OK) EL_CUDART_LET(device->api, StreamSynchronize, stream);
    return status;
}

/* The card reads pinned memory, and other memory too unless the driver stages it: the caller keeps either as it is
 * until the step's end. */
static enum el_status send_directly(struct el_cuda_device *device, void *stream, const struct el_copy *copy)
{
    EL_CUDART_TRY(device->api, device->name, MemcpyAsync, copy->destination, copy->source, copy->bytes, stream);
    if (!(copy->how & EL_COPY_WAITS)) return EL_OK;
    return await_copy(device, stream);
}

static enum el_status send(struct el_cuda_device *device, void *stream, const struct el_copy *copy)
{
    if (copy->how) return send_directly(device, stream, copy);
    for (size_t at = 0; at < copy->bytes; at += STAGE_BYTES_MAX) {
        size_t left = copy->bytes - at, bytes = left < STAGE_BYTES_MAX ? left : STAGE_BYTES_MAX;
        EL_TRY(send_piece(device, stream, (char *)copy->destination + at, (const char *)copy->source + at, bytes));
    }
    return EL_OK;
}

static enum el_status fetch(struct el_cuda_device *device, void *stream, const struct el_copy *copy)
{
    EL_CUDART_TRY(device->api, device->name, MemcpyAsync, copy->destination, copy->source, copy->bytes, stream);
    return await_copy(device, stream);
}

static enum el_status enable(struct el_cuda_device *device, const struct el_cuda_device *other)
{
    int can = 0;
    EL_CUDART_TRY(device->api, device->name, DeviceCanAccessPeer, &can, device->ordinal, other->ordinal);
    device->reaches[other->ordinal] = can ? 1 : -1;
    if (!can) return EL_OK;
    EL_CUDART_TRY(device->api, device->name, SetDevice, device->ordinal);
    int code = device->api->DeviceEnablePeerAccess(other->ordinal);
    if (code == EL_CUDA_SUCCESS) return EL_OK;
    if (code != EL_CUDA_ERROR_PEER_ALREADY) device->reaches[other->ordinal] = -1; /* the driver stages */
    device->api->GetLastError();
    return EL_OK;
}

/* Once per pair, both ways: the driver chooses which card copies. */
static enum el_status meet(struct el_cuda_device *to, struct el_cuda_device *from, const struct el_cuda_device *current)
{
    if (to->ordinal >= EL_CUDA_CARDS_MAX || from->ordinal >= EL_CUDA_CARDS_MAX) return EL_OK;
    if (to->reaches[from->ordinal] && from->reaches[to->ordinal]) return EL_OK;
    EL_TRY(enable(to, from));
    EL_TRY(enable(from, to));
    return EL_CUDART_CALL(current->api, current->name, SetDevice, current->ordinal);
}

enum el_status el_cuda_copy(void *argument, const struct el_copy *copy)
{
    struct el_cuda_stream *stream = argument;
    struct el_cuda_device *device = stream->device, *to = copy->to, *from = copy->from;
    void *queue = stream->native.stream;
    if (copy->bytes == 0) return EL_OK;
    if (!from && to) return send(device, queue, copy);
    if (!to) return fetch(device, queue, copy);
    if (to->ordinal == from->ordinal) {
        EL_CUDART_TRY(device->api, device->name, MemcpyAsync, copy->destination, copy->source, copy->bytes, queue);
        return EL_OK;
    }
    EL_TRY(meet(to, from, device));
    EL_CUDART_TRY(device->api, device->name, MemcpyPeerAsync, copy->destination, to->ordinal, copy->source,
                  from->ordinal, copy->bytes, queue);
    return EL_OK;
}

enum el_status el_cuda_host_map(void *state, size_t bytes, void **memory_p)
{
    struct el_cuda_device *device = state;
    return EL_CUDART_CALL(device->api, device->name, HostAlloc, memory_p, bytes);
}

void el_cuda_host_unmap(void *state, void *memory)
{
    EL_CUDART_LET(((struct el_cuda_device *)state)->api, FreeHost, memory);
}

enum el_status el_cuda_move(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device)
{
    struct el_cuda_device *device = state;
    void *memory = (void *)address;
    if (bytes == 0) return EL_OK;
    EL_CUDART_TRY(device->api, device->name, SetDevice, device->ordinal);
    EL_CUDART_TRY(device->api, device->name, MemcpyAsync, host_to_device ? memory : host,
                  host_to_device ? host : memory, bytes, device->mover);
    return await_copy(device, device->mover);
}

void el_cuda_stages_close(struct el_cuda_device *device)
{
    for (int i = 0; i < device->n_stages; i++) {
        EL_CUDART_LET(device->api, EventDestroy, device->stages[i].sent);
        EL_CUDART_LET(device->api, FreeHost, device->stages[i].pinned);
    }
    device->n_stages = 0;
}
