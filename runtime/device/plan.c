/* Plans addresses of a step's buffers: each gets the lowest gap among those alive at the same time.
 *
 * First in allocation order, as an allocator would. If that leaves gaps at the peak, largest and longest-lived first
 * are tried, and the smallest arena wins; nearly always it equals the peak. Those two compare all pairs, so they are
 * skipped for thousands of buffers. Streams need no attention: the compute stream has joined all users before a free
 * (program.h). Simulated devices have no addresses. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

/* A line of the CPU's cache; what cudaMalloc gives, and cuBLAS's fastest kernels want. */
enum { CPU_ALIGNMENT = 64, CARD_ALIGNMENT = 256 };
enum { PAIRS_BUFFERS_MAX = 4096 };

static size_t room_of(const struct el_step_buffer *buffer)
{
    size_t unit = buffer->buffer.device->ops->async ? CARD_ALIGNMENT : CPU_ALIGNMENT;
    return (buffer->buffer.bytes + unit - 1) / unit * unit;
}

/* A buffer's range, or a gap below the top. */
struct stretch {
    size_t begin, end;
    int allocated, freed;
};

struct stretches {
    struct stretch *list; /* by begin */
    int n;
};

static void insert(struct stretches *s, int at, struct stretch stretch)
{
    memmove(&s->list[at + 1], &s->list[at], (size_t)(s->n - at) * sizeof *s->list);
    s->list[at] = stretch;
    s->n++;
}

static void erase(struct stretches *s, int at)
{
    s->n--;
    memmove(&s->list[at], &s->list[at + 1], (size_t)(s->n - at) * sizeof *s->list);
}

/* Number that begin at or below `begin`. */
static int count_below(const struct stretches *s, size_t begin)
{
    int low = 0, high = s->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->list[middle].begin <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The lowest gap that fits, else the top; a gap at the top grows. */
static size_t take_gap(struct stretches *gaps, size_t bytes, size_t *top)
{
    for (int i = 0; i < gaps->n; i++) {
        struct stretch *gap = &gaps->list[i];
        size_t begin = gap->begin;
        if (gap->end == *top && gap->end - begin < bytes) *top = gap->end = begin + bytes;
        if (gap->end - begin < bytes) continue;
        gap->begin += bytes;
        if (gap->begin == gap->end) erase(gaps, i);
        return begin;
    }
    *top += bytes;
    return *top - bytes;
}

static void give_gap(struct stretches *gaps, size_t begin, size_t end)
{
    int at = count_below(gaps, begin);
    bool joins_last = at > 0 && gaps->list[at - 1].end == begin,
         joins_next = at < gaps->n && gaps->list[at].begin == end;
    if (joins_last && joins_next) {
        gaps->list[at - 1].end = gaps->list[at].end;
        erase(gaps, at);
    } else if (joins_last) {
        gaps->list[at - 1].end = end;
    } else if (joins_next) {
        gaps->list[at].begin = begin;
    } else {
        insert(gaps, at, (struct stretch){.begin = begin, .end = end});
    }
}

/* `events`: the buffer allocated or freed at each mark, or NULL. Returns the arena's bytes; *least_p: the most alive
 * at once, a lower bound. */
static size_t place_as_allocated(struct el_step_buffer *const *events, int n_events, struct stretches *gaps,
                                 size_t *least_p)
{
    size_t top = 0, live = 0, least = 0;
    gaps->n = 0;
    for (int e = 0; e < n_events; e++) {
        struct el_step_buffer *buffer = events[e];
        if (!buffer) continue;
        size_t bytes = room_of(buffer);
        if (buffer->freed == e) {
            live -= bytes;
            if (bytes) give_gap(gaps, buffer->tried, buffer->tried + bytes);
            continue;
        }
        buffer->tried = bytes ? take_gap(gaps, bytes, &top) : 0;
        live += bytes;
        if (live > least) least = live;
    }
    *least_p = least;
    return top;
}

static int larger_first(const void *a, const void *b)
{
    const struct el_step_buffer *const *x = a, *const *y = b;
    size_t m = (*x)->buffer.bytes, n = (*y)->buffer.bytes;
    if (m != n) return (m < n) - (m > n);
    return ((*x)->allocated > (*y)->allocated) - ((*x)->allocated < (*y)->allocated);
}

/* freed -1 is the longest. */
static unsigned lifetime(const struct el_step_buffer *buffer)
{
    return (unsigned)buffer->freed - (unsigned)buffer->allocated;
}

static int longer_first(const void *a, const void *b)
{
    const struct el_step_buffer *const *x = a, *const *y = b;
    unsigned m = lifetime(*x), n = lifetime(*y);
    return m != n ? (m < n) - (m > n) : larger_first(a, b);
}

static bool lives_with(const struct stretch *a, const struct el_step_buffer *b)
{
    return (a->freed < 0 || a->freed > b->allocated) && (b->freed < 0 || b->freed > a->allocated);
}

/* Returns the arena's bytes. */
static size_t place_in_order(struct el_step_buffer *const *order, int n, struct stretches *placed)
{
    size_t top = 0;
    placed->n = 0;
    for (int i = 0; i < n; i++) {
        size_t at = 0, bytes = room_of(order[i]);
        for (int k = 0; k < placed->n && placed->list[k].begin < at + bytes; k++)
            if (placed->list[k].end > at && lives_with(&placed->list[k], order[i])) at = placed->list[k].end;
        insert(placed, count_below(placed, at), (struct stretch){at, at + bytes, order[i]->allocated, order[i]->freed});
        order[i]->tried = at;
        if (at + bytes > top) top = at + bytes;
    }
    return top;
}

static void keep(struct el_step_memory *memory, struct el_step_buffer *const *buffers, int n, size_t bytes)
{
    memory->arena_bytes = bytes;
    for (int i = 0; i < n; i++) buffers[i]->offset = buffers[i]->tried;
}

struct room {
    struct el_step_buffer **buffers, **events;
    struct stretches stretches;
};

static void plan_device(const struct el_program *program, struct el_step_memory *memory, struct room *room)
{
    static int (*const orders[])(const void *, const void *) = {larger_first, longer_first};
    size_t least;
    int n = 0;
    memset(room->events, 0, (size_t)program->mark_clock * sizeof *room->events);
    for (int i = 0; i < program->n_buffers; i++) {
        struct el_step_buffer *buffer = program->buffers[i];
        if (buffer->buffer.device != memory->device) continue;
        room->buffers[n++] = buffer;
        room->events[buffer->allocated] = buffer;
        if (buffer->freed >= 0) room->events[buffer->freed] = buffer;
    }
    keep(memory, room->buffers, n, place_as_allocated(room->events, program->mark_clock, &room->stretches, &least));
    for (int o = 0; o < 2 && n <= PAIRS_BUFFERS_MAX && memory->arena_bytes > least; o++) {
        qsort(room->buffers, (size_t)n, sizeof *room->buffers, orders[o]);
        size_t bytes = place_in_order(room->buffers, n, &room->stretches);
        if (bytes < memory->arena_bytes) keep(memory, room->buffers, n, bytes);
    }
}

enum el_status el_program_plan(struct el_program *program)
{
    size_t n = (size_t)program->n_buffers + 1;
    struct room room = {.buffers = calloc(n, sizeof(struct el_step_buffer *)),
                        .events = calloc((size_t)program->mark_clock + 1, sizeof(struct el_step_buffer *)),
                        .stretches.list = calloc(n, sizeof *room.stretches.list)};
    bool made = room.buffers && room.events && room.stretches.list;
    for (int d = 0; made && d < program->n_devices; d++)
        if (!program->memory[d].device->ops->simulated) plan_device(program, &program->memory[d], &room);
    free(room.buffers);
    free(room.events);
    free(room.stretches.list);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "planning %d buffers", program->n_buffers);
}
