/* Streams that run as late and as much out of step as events allow: what is queued stands still until somebody waits,
 * and then only what that wait needs is done, or everything else first, or in a random order (`fake_policy`). A program
 * in which a wait is missing gives wrong numbers under one of these. Device memory is closed to the host but while an
 * item is done: who touches it ends with a signal, as on a GPU. fake_async.h makes devices of them. */
#ifndef EL_TESTS_FAKE_STREAMS_H
#define EL_TESTS_FAKE_STREAMS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/clock.h"
#include "runtime/device/internal.h"

enum fake_policy { FAKE_LAZY, FAKE_OTHERS_FIRST, FAKE_RANDOM, FAKE_POLICIES };
enum { FAKE_STREAMS_MAX = 64, FAKE_PAGE_BYTES = 4096, FAKE_MEMORY_BYTES = 1 << 30, FAKE_ITEMS_A_QUERY = 32 };

struct fake_event {
    int recorded, reached; /* counts */
    int64_t at_ns;
    bool timed;
    struct fake_device *device;
};

struct fake_stream;

/* What a stream does next; the arguments are copied, so that the host may go on. */
struct fake_item {
    enum { FAKE_WORK, FAKE_RECORD, FAKE_WAIT, FAKE_MEET } kind;
    enum el_op_kind op; /* a kernel's; copies have no `args.native` */
    enum el_dtype dtype;
    struct el_kernel_args args;
    void *destination, *host; /* copies; `host` is the staged source */
    const void *source;
    size_t bytes;
    struct fake_event *event;
    int count; /* of the event's records */
    /* FAKE_MEET: work of several streams at once, as a collective is. This one has come; returns whether all have, and
     * else in whose stream one is missing (NULL: in none yet). */
    bool (*meet)(void *context, struct fake_stream **missing_p);
    void *context;   /* from malloc; the item's */
    bool is_message; /* of FAKE_MEET: it may wait beyond the step in which it was sent */
    struct fake_item *next;
};

struct fake_stream {
    struct fake_device *device;
    struct fake_item *first, **last;
};

struct fake_device {
    int index, n_mapped, n_streams;
};

/* The one world of a test program. */
static struct {
    enum fake_policy policy;
    struct fake_stream *streams[FAKE_STREAMS_MAX];
    int n_streams, n_events, n_devices;
    char *memory;   /* all devices' */
    size_t taken;   /* of it; begins anew when all devices are closed */
    bool broken;    /* the device failed: the next wait says so */
    bool stuck;     /* no stream moves: a collective whose peer is gone */
    int n_wrong;    /* breaches of the contract */
    int fail_copy;  /* the n-th copy from now fails to be queued; 0: none */
    uint32_t seed;  /* of what is random from now on; 0: it goes on */
    bool own_cards; /* each device is a card of its own */
    int refuse;     /* kernels of this op + 1 fail to be queued; 0: none */
} fake;
static _Thread_local struct fake_device *fake_active;
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

/* The same numbers on every machine, 15 bits each. */
static int fake_random(void)
{
    static _Thread_local uint32_t seed = 1;
    if (fake.seed) seed = fake.seed;
    fake.seed = 0;
    seed = seed * 1103515245u + 12345u;
    return (int)(seed >> 17);
}

static int fake_enter(void)
{
    return pthread_mutex_lock(&fake_lock);
}

static void fake_leave(const int *guard)
{
    (void)guard;
    pthread_mutex_unlock(&fake_lock);
}

/* The first line of each hook: one at a time. */
#define FAKE_GUARD                                                                                                     \
    const int guard __attribute__((cleanup(fake_leave))) = fake_enter();                                               \
    (void)guard

/* A new world, without what the last one planted. */
static void fake_reset(enum fake_policy policy)
{
    char *memory = fake.memory;
    memset(&fake, 0, sizeof fake);
    fake.memory = memory;
    fake.policy = policy;
}

static void fake_open_memory(bool open)
{
    if (fake.taken && mprotect(fake.memory, fake.taken, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) abort();
}

static void fake_breach(const char *what)
{
    fprintf(stderr, "# contract: %s\n", what);
    fake.n_wrong++;
}

static void fake_check_active(const struct fake_device *device)
{
    if (fake_active != device) fake_breach("another device is active");
}

static void fake_push(struct fake_stream *stream, const struct fake_item *item)
{
    struct fake_item *made = malloc(sizeof *made);
    if (!made) abort();
    *made = *item;
    made->next = NULL;
    *stream->last = made;
    stream->last = &made->next;
}

static void fake_work(struct fake_item *item)
{
    fake_open_memory(true);
    if (item->args.native) {
        if (el_kernels_reference()->find(item->op, item->dtype)->run(&item->args) != EL_OK) abort();
    } else
        memcpy(item->destination, item->host ? item->host : item->source, item->bytes);
    fake_open_memory(false);
}

/* Does the stream's first item; false if it is empty or waits. */
static bool fake_advance(struct fake_stream *stream)
{
    struct fake_item *item = stream->first;
    struct fake_stream *missing;
    if (!item || fake.stuck) return false;
    if (item->kind == FAKE_WAIT && item->event->reached < item->count) return false;
    if (item->kind == FAKE_MEET && !item->meet(item->context, &missing)) return false;
    if (item->kind == FAKE_RECORD) {
        item->event->reached = item->count;
        item->event->at_ns = el_clock_ns();
    }
    if (item->kind == FAKE_WORK) fake_work(item);
    stream->first = item->next;
    if (!stream->first) stream->last = &stream->first;
    free(item->host);
    free(item->context);
    free(item);
    return true;
}

/* The stream in which the record lies, or the other member's part, that this one waits for. */
static struct fake_stream *fake_awaited_by(const struct fake_item *wait)
{
    struct fake_stream *missing = NULL;
    if (wait->kind == FAKE_MEET) return wait->meet(wait->context, &missing) ? NULL : missing;
    for (int s = 0; s < fake.n_streams; s++) {
        for (struct fake_item *item = fake.streams[s]->first; item; item = item->next)
            if (item->kind == FAKE_RECORD && item->event == wait->event && item->count == wait->count)
                return fake.streams[s];
    }
    return NULL;
}

/* One item, as late as can be: of this stream, or of the one that it waits for. */
static bool fake_pull(struct fake_stream *stream)
{
    for (int hops = 0; stream && hops <= FAKE_STREAMS_MAX; hops++) {
        if (fake_advance(stream)) return true;
        if (!stream->first || stream->first->kind == FAKE_WORK) return false;
        stream = fake_awaited_by(stream->first);
    }
    return false;
}

static void fake_run_others(const struct fake_stream *but)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = fake.n_streams - 1; s >= 0; s--)
            while (fake.streams[s] != but && fake_advance(fake.streams[s])) moved = true;
    }
}

static bool fake_drain(struct fake_stream *stream)
{
    if (fake.policy == FAKE_OTHERS_FIRST) fake_run_others(stream);
    while (stream->first) {
        if (fake.policy == FAKE_RANDOM) fake_advance(fake.streams[fake_random() % fake.n_streams]);
        if (fake.stuck) return false;
        if (fake.policy != FAKE_RANDOM && !fake_pull(stream)) return false;
    }
    return true;
}

#endif
