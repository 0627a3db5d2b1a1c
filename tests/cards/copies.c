/* Copies, in stream order; which memory an address is in decides how. Pinned memory is read when the stream comes to
 * it, and memory of the host's is written then, pinned or not. Pageable memory is read before the call returns, or,
 * where there is a seed, that late too: CUDA promises neither ("API synchronization behavior"). */
#include <stdlib.h>
#include <string.h>

#include "tests/cards/machine.h"

struct copy {
    cudaStream_t stream;
    void *to, *staged; /* `staged` is the copy's own */
    const void *from;
    int value; /* without `from`: what `to` is filled with */
    size_t bytes;
};

static int run_copy(void *argument)
{
    struct copy *copy = argument;
    if (!cards_is_ending(copy->stream)) {
        if (copy->from)
            memcpy(copy->to, copy->from, copy->bytes);
        else
            memset(copy->to, copy->value, copy->bytes);
    }
    return cudaSuccess;
}

static void drop(void *argument)
{
    struct copy *copy = argument;
    free(copy->staged);
    free(copy);
}

static cudaError_t enqueue(const struct copy *wanted)
{
    struct copy *copy = malloc(sizeof *copy);
    if (!copy) abort();
    *copy = *wanted;
    atomic_fetch_add(&cards_machine()->cards[copy->stream->device].n_copies, !copy->stream->capture);
    int code = cards_enqueue_item(copy->stream, false, run_copy, drop, copy);
    if (code != cudaSuccess) drop(copy);
    return cards_error(code);
}

static void *staged(const void *from, size_t bytes)
{
    void *own = malloc(bytes);
    if (!own) abort();
    return memcpy(own, from, bytes);
}

/* Where there is a seed, of four copies to or from pageable memory one is synchronous, and two read it late. */
enum how { STAGED, SYNCHRONOUS, LATE };
static enum how choose_how(void)
{
    static const enum how each[] = {SYNCHRONOUS, LATE, STAGED, LATE};
    static atomic_uint turn;
    uint64_t state = cards_seed() + atomic_fetch_add(&turn, 1);
    return cards_seed() ? each[cards_random(&state) % 4] : STAGED;
}

static int begin(cudaStream_t stream)
{
    int code = stream ? cards_begin(stream->device) : cudaSuccess;
    return code == cudaSuccess ? cards_not_joined(stream) : code;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    size_t left_to = bytes, left_from = bytes;
    int code = begin(stream);
    int to_device = cards_device_of(to, &left_to), from_device = cards_device_of(from, &left_from);
    if (code == cudaSuccess && (kind != cudaMemcpyDefault || bytes > left_to || bytes > left_from))
        code = cudaErrorInvalidValue;
    if (code != cudaSuccess || bytes == 0) return cards_error(code);
    struct copy copy = {.stream = stream, .to = to, .from = from, .bytes = bytes};
    bool pageable = (to_device < 0 && !cards_is_pinned(to)) || (from_device < 0 && !cards_is_pinned(from));
    if (stream->capture && pageable) return (cudaError_t)cards_not_captured(stream, NULL);
    if (to_device < 0 && from_device < 0) cards_wait_stream(stream);
    enum how how = pageable ? choose_how() : STAGED;
    if (how == SYNCHRONOUS) cards_wait_stream(stream);
    if (from_device < 0 && !cards_is_pinned(from) && how != LATE) copy.from = copy.staged = staged(from, bytes);
    return enqueue(&copy);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    size_t left_to = 0, left_from = 0;
    int code = begin(stream);
    if (code == cudaSuccess &&
        (cards_device_of(to, &left_to) != to_device || cards_device_of(from, &left_from) != from_device ||
         bytes > left_to || bytes > left_from))
        code = cudaErrorInvalidValue;
    if (code != cudaSuccess || bytes == 0) return cards_error(code);
    return enqueue(&(struct copy){.stream = stream, .to = to, .from = from, .bytes = bytes});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    size_t left = 0;
    if (!cards_are_there()) {
        memset(to, value, bytes);
        return cudaSuccess;
    }
    int code = begin(stream);
    if (code == cudaSuccess && (cards_device_of(to, &left) < 0 || bytes > left)) code = cudaErrorInvalidValue;
    if (code != cudaSuccess || bytes == 0) return cards_error(code);
    return enqueue(&(struct copy){.stream = stream, .to = to, .value = value, .bytes = bytes});
}

cudaError_t cudaDeviceCanAccessPeer(int *can_p, int device, int peer)
{
    int n = cards_machine()->n_cards;
    if (device < 0 || device >= n || peer < 0 || peer >= n) return cards_error(cudaErrorInvalidDevice);
    *can_p = cards_machine()->peer && device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    struct cards_machine *machine = cards_machine();
    int device = cards_thread_device(), code = cards_begin(device);
    if (code == cudaSuccess && (peer < 0 || peer >= machine->n_cards || peer == device)) code = cudaErrorInvalidDevice;
    if (code == cudaSuccess && flags) code = cudaErrorInvalidValue;
    if (code == cudaSuccess && !machine->peer) code = cudaErrorPeerAccessUnsupported;
    if (code != cudaSuccess) return cards_error(code);
    unsigned seen = atomic_fetch_or(&machine->cards[device].peers, 1u << peer);
    return cards_error(seen >> peer & 1 ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}
