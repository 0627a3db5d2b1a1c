/* Events: a record is a point of its own, so that a wait means the record that was there when it was called. */
#include <stdlib.h>

#include "tests/cards/machine.h"

struct wait {
    struct CUstream_st *stream;
    struct cards_mark *mark;
};

static struct cards_mark *mark_of(struct CUevent_st *event)
{
    cards_lock(&event->lock);
    struct cards_mark *mark = event->mark;
    cards_unlock(&event->lock);
    return mark;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event_p, unsigned flags)
{
    int device = cards_thread_device(), code = cards_begin(device);
    if (code != cudaSuccess) return cards_error(code);
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (!event) return cards_error(cudaErrorMemoryAllocation);
    event->device = device;
    event->timed = !(flags & cudaEventDisableTiming);
    atomic_fetch_add(&cards_machine()->cards[device].n_events, 1);
    atomic_fetch_add(&cards_machine()->cards[device].n_events_made, 1);
    *event_p = event;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event) return cards_error(cudaErrorInvalidResourceHandle);
    atomic_fetch_sub(&cards_machine()->cards[event->device].n_events, 1);
    free(event);
    return cudaSuccess;
}

static int reach(void *argument)
{
    struct cards_mark *mark = argument;
    mark->at_ns = cards_now_ns();
    cards_release(&mark->done);
    atomic_store(&mark->done, 1);
    cards_wake(&mark->done);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (!event || !stream || event->device != stream->device) return cards_error(cudaErrorInvalidResourceHandle);
    int code = cards_begin(stream->device);
    if (code != cudaSuccess) return cards_error(code);
    if (stream->capture) return (cudaError_t)cards_note_record(event, stream);
    struct cards_mark *mark = cards_mark_new();
    mark->stream = stream;
    mark->number = cards_stream_items(stream) + 1;
    cards_lock(&event->lock);
    event->mark = mark;
    event->captured = 0;
    cards_unlock(&event->lock);
    return cards_error(cards_enqueue_item(stream, false, reach, NULL, mark));
}

static void wait_for(struct cards_mark *mark, struct CUstream_st *stream)
{
    if (!atomic_load(&mark->done)) cards_want(mark->stream, mark->number);
    while (!atomic_load(&mark->done) && !(stream && cards_is_ending(stream))) cards_sleep(&mark->done, 0);
    if (atomic_load(&mark->done)) cards_acquire(&mark->done);
}

static int wait_in_stream(void *argument)
{
    struct wait *wait = argument;
    cards_turn_block(wait->stream, true);
    wait_for(wait->mark, wait->stream);
    cards_turn_block(wait->stream, false);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    int dropped = 0;
    if (!event || !stream || flags) return cards_error(cudaErrorInvalidResourceHandle);
    int code = cards_begin(stream->device);
    if (code != cudaSuccess) return cards_error(code);
    if (stream->capture || event->captured) return (cudaError_t)cards_note_wait(stream, event);
    atomic_fetch_add(&cards_machine()->cards[stream->device].n_waits, 1);
    struct cards_mark *mark = mark_of(event);
    if (!mark) return cudaSuccess; /* never recorded: nothing to wait for */
    if (cards_fails("wait", stream->device, &dropped)) return cudaSuccess;
    struct wait *wait = malloc(sizeof *wait);
    if (!wait) abort();
    *wait = (struct wait){.stream = stream, .mark = mark};
    return cards_error(cards_enqueue_item(stream, false, wait_in_stream, free, wait));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (!event) return cards_error(cudaErrorInvalidResourceHandle);
    int code = cards_begin(event->device);
    if (code == cudaSuccess) code = cards_not_captured(NULL, event);
    if (code != cudaSuccess) return cards_error(code);
    atomic_fetch_add(&cards_machine()->cards[event->device].n_synchronisations, 1);
    struct cards_mark *mark = mark_of(event);
    if (mark) wait_for(mark, NULL);
    return cards_error(atomic_load(&cards_machine()->cards[event->device].error));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (!event) return cards_error(cudaErrorInvalidResourceHandle);
    int code = cards_begin(event->device);
    if (code == cudaSuccess) code = cards_not_captured(NULL, event);
    if (code != cudaSuccess) return cards_error(code);
    struct cards_mark *mark = mark_of(event);
    bool done = !mark || atomic_load(&mark->done);
    if (mark && done) cards_acquire(&mark->done);
    if (!done) cards_want(mark->stream, mark->number);
    if (!done) code = cudaErrorNotReady;
    return cards_error(code);
}

/* In steps of half a microsecond, as CUDA's. */
cudaError_t cudaEventElapsedTime(float *ms_p, cudaEvent_t from, cudaEvent_t to)
{
    if (!from || !to || !from->timed || !to->timed || from->device != to->device)
        return cards_error(cudaErrorInvalidResourceHandle);
    struct cards_mark *first = mark_of(from), *second = mark_of(to);
    int code = first && second ? cudaSuccess : cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && (!atomic_load(&first->done) || !atomic_load(&second->done))) code = cudaErrorNotReady;
    const int64_t ns = code == cudaSuccess ? second->at_ns - first->at_ns : 0;
    if (code == cudaSuccess) *ms_p = (float)((double)(ns - ns % 512) * 1e-6);
    return cards_error(code);
}
