/* A CUDA run time in host memory, with nothing but what the backend `cuda` uses: cards with a capacity, streams that
 * do nothing until somebody waits, handles that are counted. It notes what CUDA would refuse or what would go wrong
 * quietly: no such card, an event of another one, a peer copy within one. */
#ifndef EL_TESTS_FAKE_CUDA_H
#define EL_TESTS_FAKE_CUDA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda.h"

enum { FAKE_CARDS = 3, FAKE_ALLOCATIONS_MAX = 4096 };

struct fake_job {
    void *destination; /* NULL: an event's record */
    const void *source;
    size_t bytes;
    struct fake_mark *mark;
    struct fake_job *next;
};

struct fake_queue {
    int card;
    struct fake_job *first, **last;
};

struct fake_mark {
    int card;
    bool timed, pending;
    double at_ms;
    struct fake_queue *queue;
};

static struct {
    int n_cards, current, count_code, driver, runtime;
    size_t capacity, used[FAKE_CARDS];
    void *address[FAKE_ALLOCATIONS_MAX];
    size_t bytes[FAKE_ALLOCATIONS_MAX];
    int card_of[FAKE_ALLOCATIONS_MAX];
    int n_mallocs, n_pinned, n_streams, n_events, n_events_made, n_enabled, n_peer_copies, n_handles;
    bool reach;      /* cards reach each other */
    int enable_code; /* of DeviceEnablePeerAccess */
    int copy_code;   /* of MemcpyAsync */
    int last_error;
    int n_wrong, capability;
    double now_ms;
    bool no_nvml;
    bool eager;    /* streams do at once what they are given: for kernels that do */
    bool one_uuid; /* all cards have it: nobody thinks of NCCL */
} cuda;

static void cuda_breach(const char *what)
{
    fprintf(stderr, "# cuda: %s\n", what);
    cuda.n_wrong++;
}

static int cuda_error(int code)
{
    if (code != EL_CUDA_SUCCESS) cuda.last_error = code; /* "not ready" too */
    return code;
}

static void cuda_reset(void)
{
    memset(&cuda, 0, sizeof cuda);
    cuda.n_cards = FAKE_CARDS;
    cuda.capacity = (size_t)256 << 20;
    cuda.driver = 13000;
    cuda.runtime = 13000;
    cuda.reach = true;
    cuda.capability = 80;
}

static int cuda_DriverGetVersion(int *version_p)
{
    *version_p = cuda.driver;
    return 0;
}

static int cuda_RuntimeGetVersion(int *version_p)
{
    *version_p = cuda.runtime;
    return 0;
}

static int cuda_GetDeviceCount(int *n_p)
{
    *n_p = cuda.n_cards;
    return cuda_error(cuda.count_code);
}

static int cuda_GetDeviceProperties(struct el_device_identity *identity_p, int device)
{
    *identity_p = (struct el_device_identity){.model = "Fake GPU", .capability = cuda.capability};
    snprintf(identity_p->uuid, sizeof identity_p->uuid, "GPU-%d", cuda.one_uuid ? 0 : device);
    return 0;
}

static int cuda_SetDevice(int device)
{
    if (device < 0 || device >= cuda.n_cards) cuda_breach("no such card");
    cuda.current = device;
    return 0;
}

static int cuda_InitContext(void)
{
    if (cuda.used[cuda.current] == 0) cuda.used[cuda.current] = 10 << 20;
    return 0;
}

static int cuda_MemGetInfo(size_t *free_p, size_t *total_p)
{
    *free_p = cuda.capacity - cuda.used[cuda.current];
    *total_p = cuda.capacity;
    return 0;
}

static int cuda_Malloc(void **address_p, size_t bytes)
{
    int slot = 0;
    if (bytes > cuda.capacity - cuda.used[cuda.current]) return cuda_error(EL_CUDA_ERROR_MEMORY);
    while (slot < FAKE_ALLOCATIONS_MAX && cuda.address[slot]) slot++;
    if (slot == FAKE_ALLOCATIONS_MAX || !(*address_p = aligned_alloc(512, (bytes + 511) / 512 * 512))) abort();
    cuda.address[slot] = *address_p;
    cuda.bytes[slot] = bytes;
    cuda.card_of[slot] = cuda.current;
    cuda.used[cuda.current] += bytes;
    cuda.n_mallocs++;
    return 0;
}

static int cuda_Free(void *address)
{
    int slot = 0;
    while (slot < FAKE_ALLOCATIONS_MAX && cuda.address[slot] != address) slot++;
    if (slot == FAKE_ALLOCATIONS_MAX) {
        cuda_breach("free of what was never allocated");
        return cuda_error(1);
    }
    cuda.used[cuda.card_of[slot]] -= cuda.bytes[slot];
    cuda.address[slot] = NULL;
    free(address);
    return 0;
}

static int cuda_n_allocations(void)
{
    int n = 0;
    for (int slot = 0; slot < FAKE_ALLOCATIONS_MAX; slot++) n += cuda.address[slot] != NULL;
    return n;
}

static int cuda_HostAlloc(void **address_p, size_t bytes)
{
    if (!(*address_p = malloc(bytes))) abort();
    cuda.n_pinned++;
    return 0;
}

static int cuda_FreeHost(void *address)
{
    cuda.n_pinned--;
    free(address);
    return 0;
}

static void cuda_drain(struct fake_queue *queue)
{
    while (queue->first) {
        struct fake_job *job = queue->first;
        cuda.now_ms += 0.25;
        if (job->destination) memcpy(job->destination, job->source, job->bytes);
        if (job->mark) job->mark->pending = false;
        if (job->mark) job->mark->at_ms = cuda.now_ms;
        queue->first = job->next;
        free(job);
    }
    queue->last = &queue->first;
}

static void cuda_push(struct fake_queue *queue, const struct fake_job *job)
{
    struct fake_job *made = malloc(sizeof *made);
    if (!made) abort();
    *made = *job;
    made->next = NULL;
    *queue->last = made;
    queue->last = &made->next;
    if (cuda.eager) cuda_drain(queue);
}

static int cuda_MemcpyAsync(void *destination, const void *source, size_t bytes, void *stream)
{
    if (cuda.copy_code) return cuda_error(cuda.copy_code);
    cuda_push(stream, &(struct fake_job){.destination = destination, .source = source, .bytes = bytes});
    return 0;
}

static int cuda_MemcpyPeerAsync(void *destination, int to, const void *source, int from, size_t bytes, void *stream)
{
    if (to == from) cuda_breach("a peer copy within one card");
    cuda.n_peer_copies++;
    return cuda_MemcpyAsync(destination, source, bytes, stream);
}

static int cuda_DeviceCanAccessPeer(int *can_p, int device, int peer)
{
    if (device == peer) cuda_breach("a card is no peer of its own");
    *can_p = cuda.reach;
    return 0;
}

static int cuda_DeviceEnablePeerAccess(int peer)
{
    if (peer == cuda.current) cuda_breach("a card is no peer of its own");
    cuda.n_enabled++;
    return cuda_error(cuda.enable_code);
}

static int cuda_StreamCreate(void **stream_p)
{
    struct fake_queue *queue = calloc(1, sizeof *queue);
    if (!queue) abort();
    queue->card = cuda.current;
    queue->last = &queue->first;
    cuda.n_streams++;
    *stream_p = queue;
    return 0;
}

static int cuda_StreamDestroy(void *stream)
{
    cuda_drain(stream);
    cuda.n_streams--;
    free(stream);
    return 0;
}

static int cuda_StreamSynchronize(void *stream)
{
    cuda_drain(stream);
    return 0;
}

static int cuda_StreamQuery(void *argument)
{
    struct fake_queue *queue = argument;
    if (!queue->first) return 0;
    cuda_drain(queue);
    return cuda_error(EL_CUDA_ERROR_NOT_READY);
}

static int cuda_StreamWaitEvent(void *stream, void *event)
{
    (void)stream;
    struct fake_mark *mark = event;
    if (mark->pending) cuda_drain(mark->queue);
    return 0;
}

static int cuda_EventCreate(void **event_p, bool timed)
{
    struct fake_mark *mark = calloc(1, sizeof *mark);
    if (!mark) abort();
    *mark = (struct fake_mark){.card = cuda.current, .timed = timed};
    cuda.n_events++;
    cuda.n_events_made++;
    *event_p = mark;
    return 0;
}

static int cuda_EventDestroy(void *event)
{
    if (((struct fake_mark *)event)->pending) cuda_drain(((struct fake_mark *)event)->queue);
    cuda.n_events--;
    free(event);
    return 0;
}

static int cuda_EventRecord(void *event, void *stream)
{
    struct fake_mark *mark = event;
    if (mark->card != ((struct fake_queue *)stream)->card) cuda_breach("an event of another card is recorded");
    mark->pending = true;
    mark->queue = stream;
    cuda_push(stream, &(struct fake_job){.mark = mark});
    return 0;
}

static int cuda_EventQuery(void *event)
{
    return cuda_error(((struct fake_mark *)event)->pending ? EL_CUDA_ERROR_NOT_READY : 0);
}

static int cuda_EventSynchronize(void *event)
{
    if (((struct fake_mark *)event)->pending) cuda_drain(((struct fake_mark *)event)->queue);
    return 0;
}

static int cuda_EventElapsedTime(float *ms_p, void *from, void *to)
{
    struct fake_mark *a = from, *b = to;
    if (!a->timed || !b->timed || a->pending || b->pending) cuda_breach("these events have no distance");
    *ms_p = (float)(b->at_ms - a->at_ms);
    return 0;
}

static int cuda_GetLastError(void)
{
    int code = cuda.last_error;
    cuda.last_error = 0;
    return code;
}

static const char *cuda_GetErrorName(int code)
{
    return code == EL_CUDA_ERROR_MEMORY ? "cudaErrorMemoryAllocation" : "cudaErrorFake";
}

static const char *cuda_GetErrorString(int code)
{
    return code == EL_CUDA_ERROR_MEMORY ? "out of memory" : "a planted error";
}

#define CUDA_CALL(name) .name = cuda_##name
static const struct el_cuda_api fake_api = {CUDA_CALL(DriverGetVersion),
                                            CUDA_CALL(RuntimeGetVersion),
                                            CUDA_CALL(GetDeviceCount),
                                            CUDA_CALL(GetDeviceProperties),
                                            CUDA_CALL(SetDevice),
                                            CUDA_CALL(InitContext),
                                            CUDA_CALL(MemGetInfo),
                                            CUDA_CALL(Malloc),
                                            CUDA_CALL(Free),
                                            CUDA_CALL(HostAlloc),
                                            CUDA_CALL(FreeHost),
                                            CUDA_CALL(MemcpyAsync),
                                            CUDA_CALL(MemcpyPeerAsync),
                                            CUDA_CALL(DeviceCanAccessPeer),
                                            CUDA_CALL(DeviceEnablePeerAccess),
                                            CUDA_CALL(StreamCreate),
                                            CUDA_CALL(StreamDestroy),
                                            CUDA_CALL(StreamSynchronize),
                                            CUDA_CALL(StreamQuery),
                                            CUDA_CALL(StreamWaitEvent),
                                            CUDA_CALL(EventCreate),
                                            CUDA_CALL(EventDestroy),
                                            CUDA_CALL(EventRecord),
                                            CUDA_CALL(EventQuery),
                                            CUDA_CALL(EventSynchronize),
                                            CUDA_CALL(EventElapsedTime),
                                            CUDA_CALL(GetLastError),
                                            CUDA_CALL(GetErrorName),
                                            CUDA_CALL(GetErrorString)};

static const struct el_kernel_table *cuda_kernels(void)
{
    return el_kernels_reference();
}

static enum el_status cuda_open_cublas(struct el_cuda_native *native)
{
    if (native->device != cuda.current) cuda_breach("a handle for another card");
    cuda.used[cuda.current] += 32 << 20;
    cuda.n_handles++;
    native->cublas = &cuda;
    return EL_OK;
}

static enum el_status cuda_open_cudnn(struct el_cuda_native *native)
{
    cuda.used[cuda.current] += 4 << 20;
    cuda.n_handles++;
    native->cudnn = &cuda;
    return EL_OK;
}

static void cuda_close_native(struct el_cuda_native *native)
{
    cuda.n_handles -= (native->cublas != NULL) + (native->cudnn != NULL);
}

static const char *cuda_libraries(void)
{
    return "CUDA 13.0";
}

static const char *cuda_cudnn_missing(void)
{
    return NULL;
}

/* NVML counts the driver's own reserve as used; CUDA's total leaves it out. */
static int64_t cuda_used_bytes(const char *uuid)
{
    const int64_t reserve_bytes = 600 << 20;
    return cuda.no_nvml ? -1 : (int64_t)cuda.used[atoi(uuid + 4)] + reserve_bytes;
}

static const struct el_cuda_module fake_module = {.api = &fake_api,
                                                  .kernels = cuda_kernels,
                                                  .capability_min = 75,
                                                  .open_cublas = cuda_open_cublas,
                                                  .open_cudnn = cuda_open_cudnn,
                                                  .close_native = cuda_close_native,
                                                  .libraries = cuda_libraries,
                                                  .cudnn_missing = cuda_cudnn_missing,
                                                  .used_bytes = cuda_used_bytes};

static enum el_status cuda_open_fake(const struct el_device_spec *spec, void **state_p)
{
    return el_cuda_open_on(&fake_module, spec, state_p);
}

/* The backend itself, over the fake. */
static enum el_status cuda_device(int index, struct el_device **device_p)
{
    static struct el_device_ops ops;
    struct el_device_spec spec = {.backend = "cuda", .index = index, .position = index};
    ops = el_device_cuda;
    ops.usable = NULL;
    ops.open = cuda_open_fake;
    return el_device_open_with(&ops, &spec, device_p);
}

#endif
