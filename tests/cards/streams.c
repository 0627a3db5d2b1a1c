/* Streams: a thread each, and a queue that only its thread empties. With a seed they dawdle: every other stream much,
 * the rest little, so that what is not waited for is seen to be missing. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/cards/machine.h"

static atomic_int streams_made;

static void dawdle(struct CUstream_st *stream)
{
    enum { OFTEN = 3, RARELY = 16, LONG_NS = 400000, SHORT_NS = 60000 };
    uint64_t chance = cards_random(&stream->random);
    if (chance % (stream->slow ? OFTEN : RARELY) != 0) return;
    const struct timespec pause = {.tv_nsec = (long)((chance >> 32) % (stream->slow ? LONG_NS : SHORT_NS))};
    nanosleep(&pause, NULL);
}

static struct cards_item *next_item(struct CUstream_st *stream)
{
    cards_lock(&stream->lock);
    struct cards_item *item = stream->first;
    if (item) stream->first = item->next;
    if (!stream->first) stream->last = &stream->first;
    cards_unlock(&stream->lock);
    return item;
}

/* A kernel that does not end. Neither does a process that returns from main, as on a card: it has to _exit. */
static void stay(struct CUstream_st *stream)
{
    struct cards_machine *machine = cards_machine();
    atomic_fetch_add(&machine->stuck, 1);
    while (!atomic_load(&machine->cards[stream->device].error)) cards_sleep(&machine->ending, 0);
    atomic_fetch_sub(&machine->stuck, 1);
}

static __thread struct CUstream_st *running; /* whose item this thread runs */

cudaStream_t cards_running_stream(void)
{
    return running;
}

/* Until all that its queue was given before was done. */
static void await_queue(struct CUstream_st *stream, const struct cards_item *item)
{
    struct cards_queue *queue = stream->queue;
    for (int served; queue && (served = atomic_load(&queue->served)) - item->ticket < 0 && !cards_is_ending(stream);)
        cards_sleep(&queue->served, served);
}

static void leave_queue(struct CUstream_st *stream)
{
    if (!stream->queue) return;
    atomic_fetch_add(&stream->queue->served, 1);
    cards_wake(&stream->queue->served);
}

static void run_item(struct CUstream_st *stream, struct cards_item *item)
{
    struct cards_card *card = &cards_machine()->cards[stream->device];
    int code = cudaErrorIllegalAddress, none = cudaSuccess;
    await_queue(stream, item);
    if (cards_seed() && !cards_is_ending(stream)) dawdle(stream);
    cards_acquire(item);
    cards_open_memory(item->kernel ? 1u << stream->device | atomic_load(&card->peers) : ~0u);
    if (item->kernel && cards_fails("stuck", stream->device, &code)) stay(stream);
    if (item->kernel && !cards_is_ending(stream) && cards_fails("kernel", stream->device, &code))
        atomic_compare_exchange_strong(&card->error, &none, code);
    running = stream;
    code = item->run(item->argument);
    if (item->drop) item->drop(item->argument);
    if (code && !cards_is_ending(stream)) atomic_compare_exchange_strong(&card->error, &none, code);
    cards_open_memory(0);
    free(item);
    leave_queue(stream);
    cards_release(&stream->finished);
    atomic_fetch_add(&stream->finished, 1);
    cards_turn_end(stream);
    cards_wake(&stream->finished);
}

/* A thread, which serves one stream after another: one that ended would leave memory of its own to the next, which the
 * sanitizer takes for a race. */
struct worker {
    struct CUstream_st *stream;
    atomic_int turn;
    struct worker *next; /* of the idle ones */
};

static struct worker *idle;
static struct cards_lock idle_lock;

/* Ends when the stream was destroyed and has nothing left to do. */
static void serve(struct CUstream_st *stream)
{
    for (;;) {
        int seen = atomic_load(&stream->enqueued);
        if (seen != atomic_load(&stream->finished)) cards_turn_begin(stream);
        struct cards_item *item = next_item(stream);
        if (item)
            run_item(stream, item);
        else if (atomic_load(&stream->gone))
            return;
        else
            cards_sleep(&stream->enqueued, seen);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int turn = 0;; turn++) {
        serve(worker->stream);
        cards_lock(&idle_lock);
        worker->next = idle;
        idle = worker;
        cards_unlock(&idle_lock);
        while (atomic_load(&worker->turn) == turn) cards_sleep(&worker->turn, turn);
    }
    return NULL;
}

static void start_worker(struct CUstream_st *stream)
{
    struct worker *worker = calloc(1, sizeof *worker);
    pthread_attr_t detached;
    pthread_t thread;
    if (!worker) abort();
    worker->stream = stream;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, work, worker) != 0) abort();
    pthread_attr_destroy(&detached);
}

static void find_worker(struct CUstream_st *stream)
{
    cards_lock(&idle_lock);
    struct worker *worker = idle;
    if (worker) idle = worker->next;
    cards_unlock(&idle_lock);
    if (!worker) {
        start_worker(stream);
        return;
    }
    worker->stream = stream;
    atomic_fetch_add(&worker->turn, 1);
    cards_wake(&worker->turn);
}

bool cards_is_ending(cudaStream_t stream)
{
    struct cards_machine *machine = cards_machine();
    return atomic_load(&machine->ending) || (stream && atomic_load(&machine->cards[stream->device].error));
}

int cards_stream_device(cudaStream_t stream)
{
    return stream ? stream->device : -1;
}

/* Every other stream is slow: which of them, the seed says. */
static void give_mood(struct CUstream_st *stream)
{
    uint64_t mood = cards_seed() * 0x51ed2701u;
    stream->slow = ((uint64_t)stream->index + cards_random(&mood)) % 2 == 0;
    stream->random = cards_seed() + (uint64_t)stream->index * 0x9e3779b9u;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream_p, unsigned flags)
{
    int device = cards_thread_device(), code = cards_begin(device);
    if (code == cudaSuccess && flags != cudaStreamNonBlocking) code = cudaErrorInvalidValue;
    if (code != cudaSuccess) return cards_error(code);
    struct cards_card *card = &cards_machine()->cards[device];
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream) return cards_error(cudaErrorMemoryAllocation);
    *stream = (struct CUstream_st){.device = device, .index = atomic_fetch_add(&streams_made, 1)};
    stream->last = &stream->first;
    if (cards_queues() > 0) stream->queue = &card->queues[stream->index % cards_queues()];
    give_mood(stream);
    cards_lock(&card->lock);
    stream->next = card->streams;
    card->streams = stream;
    cards_unlock(&card->lock);
    atomic_fetch_add(&card->n_streams, 1);
    atomic_fetch_add(&card->n_streams_made, 1);
    find_worker(stream);
    *stream_p = stream;
    return cudaSuccess;
}

/* Returns at once: the stream ends what it has. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream) return cards_error(cudaErrorInvalidResourceHandle);
    int refused = cards_not_captured(stream, NULL);
    if (refused) return (cudaError_t)refused;
    atomic_fetch_sub(&cards_machine()->cards[stream->device].n_streams, 1);
    cards_want(stream, cards_stream_items(stream));
    atomic_store(&stream->gone, 1);
    cards_wake(&stream->enqueued);
    return cudaSuccess;
}

/* A stream takes so many items that have not begun; then the caller waits, as on a card. */
static void await_room(struct CUstream_st *stream)
{
    enum { ITEMS_MAX = 1024 };
    for (int done; !cards_is_ending(stream);) {
        done = atomic_load(&stream->finished);
        if (atomic_load(&stream->enqueued) - done < ITEMS_MAX) return;
        cards_want(stream, done + 1);
        cards_sleep(&stream->finished, done);
    }
}

int cards_enqueue_item(cudaStream_t stream, bool kernel, int (*run)(void *argument), void (*drop)(void *argument),
                       void *argument)
{
    if (stream->capture) return cards_note(stream, kernel, run, drop, argument);
    await_room(stream);
    struct cards_item *item = malloc(sizeof *item);
    if (!item) abort();
    *item = (struct cards_item){.run = run, .drop = drop, .argument = argument, .kernel = kernel};
    cards_release(item);
    if (stream->queue) {
        cards_lock(&stream->queue->lock);
        item->ticket = stream->queue->tickets++;
    }
    cards_lock(&stream->lock);
    *stream->last = item;
    stream->last = &item->next;
    atomic_fetch_add(&stream->enqueued, 1);
    cards_unlock(&stream->lock);
    if (stream->queue) cards_unlock(&stream->queue->lock);
    cards_turn_enqueued(stream);
    cards_wake(&stream->enqueued);
    if (cards_machine()->blocking) cards_wait_stream(stream);
    return cudaSuccess;
}

/* Without cards there are no streams: the caller's thread does it. */
static int run_here(int (*run)(void *argument), void (*drop)(void *argument), void *argument)
{
    if (cards_are_there()) return cards_not_joined(NULL);
    int code = run(argument);
    if (drop) drop(argument);
    return cards_error(code);
}

static int check_stream(cudaStream_t stream)
{
    int code = cards_begin(stream->device);
    if (code == cudaSuccess && cards_thread_device() != stream->device) code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess) code = cards_not_joined(stream);
    return cards_error(code);
}

int cards_enqueue(cudaStream_t stream, int (*run)(void *argument), void (*drop)(void *argument), void *argument)
{
    if (!stream) return run_here(run, drop, argument);
    int code = check_stream(stream);
    return code == cudaSuccess ? cards_enqueue_item(stream, false, run, drop, argument) : code;
}

/* Lazy loading: the first launch of a kernel on a card waits for all that the card does, and is no part of a capture.
 */
static int load_kernel(struct cards_card *card, const void *code)
{
    bool known = cards_machine()->eager;
    cards_lock(&card->lock);
    for (int i = 0; i < card->n_loaded && !known; i++) known = card->loaded[i] == code;
    if (!known && card->n_loaded < CARDS_KERNELS_MAX) card->loaded[card->n_loaded++] = code;
    cards_unlock(&card->lock);
    if (!known && cards_unsafe()) return cudaErrorStreamCaptureUnsupported;
    if (!known) cards_wait_idle(card);
    return cudaSuccess;
}

int cudaLaunchKernel(void)
{
    return cudaSuccess;
}

int cards_launch(cudaStream_t stream, const void *code, int capability, int (*run)(void *argument),
                 void (*drop)(void *argument), void *argument)
{
    const struct cards_model *model = cards_machine()->model;
    if (!stream) return run_here(run, drop, argument);
    int error = check_stream(stream);
    if (error == cudaSuccess && 10 * model->major + model->minor < capability)
        error = cards_error(cudaErrorNoKernelImageForDevice);
    if (error != cudaSuccess) return error;
    struct cards_card *card = &cards_machine()->cards[stream->device];
    error = load_kernel(card, code);
    if (error != cudaSuccess) return error;
    cards_dawdle("launch");
    atomic_fetch_add(&card->n_kernels, !stream->capture);
    return cards_enqueue_item(stream, true, run, drop, argument);
}

/* Does not count what comes meanwhile. The counters wrap. */
void cards_wait_stream(struct CUstream_st *stream)
{
    int wanted = cards_stream_items(stream);
    cards_want(stream, wanted);
    for (int done; (done = atomic_load(&stream->finished)), (int)((unsigned)wanted - (unsigned)done) > 0;)
        cards_sleep(&stream->finished, done);
}

void cards_wait_idle(struct cards_card *card)
{
    enum { STREAMS_MAX = 256 };
    struct CUstream_st *all[STREAMS_MAX];
    int n = 0;
    atomic_fetch_add(&card->n_blocked, 1);
    cards_lock(&card->lock);
    for (struct CUstream_st *stream = card->streams; stream && n < STREAMS_MAX; stream = stream->next)
        all[n++] = stream;
    cards_unlock(&card->lock);
    for (int i = 0; i < n; i++) cards_wait_stream(all[i]);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (!stream) return cards_error(cudaErrorInvalidResourceHandle);
    int code = cards_begin(stream->device);
    if (code == cudaSuccess) code = cards_not_captured(stream, NULL);
    if (code == cudaSuccess) {
        atomic_fetch_add(&cards_machine()->cards[stream->device].n_synchronisations, 1);
        cards_wait_stream(stream);
        cards_acquire(&stream->finished);
        code = atomic_load(&cards_machine()->cards[stream->device].error);
    }
    return cards_error(code);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    enum { ITEMS_A_QUERY = 32 };
    if (!stream) return cards_error(cudaErrorInvalidResourceHandle);
    int code = cards_begin(stream->device);
    if (code == cudaSuccess) code = cards_not_captured(stream, NULL);
    if (code != cudaSuccess) return cards_error(code);
    if (atomic_load(&stream->finished) != atomic_load(&stream->enqueued)) {
        cards_want(stream, atomic_load(&stream->finished) + ITEMS_A_QUERY);
        return cards_error(cudaErrorNotReady);
    }
    cards_acquire(&stream->finished);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    int device = cards_thread_device(), code = cards_begin(device);
    if (code == cudaSuccess) code = cards_unsafe();
    if (code != cudaSuccess) return cards_error(code);
    atomic_fetch_add(&cards_machine()->cards[device].n_synchronisations, 1);
    struct cards_card *card = &cards_machine()->cards[device];
    cards_wait_idle(card);
    cards_lock(&card->lock);
    for (struct CUstream_st *stream = card->streams; stream; stream = stream->next) cards_acquire(&stream->finished);
    cards_unlock(&card->lock);
    return cards_error(atomic_load(&card->error));
}
