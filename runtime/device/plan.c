/* The planner: fixed addresses for a step's buffers, from where each is allocated and freed. Each buffer gets the
 * lowest gap beside the buffers that live at the same time. Three orders are tried (largest, earliest and longest-lived
 * first), and the smallest arena is taken: simple, deterministic, and nearly always the peak itself. It allocates
 * nothing and knows no streams: reuse is safe because the compute stream has joined all users of a buffer before it is
 * freed (program.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

enum { ALIGNMENT = 64 };

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int by_offset(const void *a, const void *b)
{
    const struct el_step_buffer *const *x = a, *const *y = b;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

/* The lowest gap that holds `bytes` among `n` buffers sorted by offset. */
static size_t first_fit(struct el_step_buffer *const *alive, int n, size_t bytes)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (alive[i]->offset >= at + bytes) break;
        size_t end = alive[i]->offset + round_up(alive[i]->buffer.bytes);
        if (end > at) at = end;
    }
    return at;
}

static int earlier_first(const void *a, const void *b)
{
    const struct el_step_buffer *const *x = a, *const *y = b;
    return ((*x)->allocated > (*y)->allocated) - ((*x)->allocated < (*y)->allocated);
}

static int larger_first(const void *a, const void *b)
{
    const struct el_step_buffer *const *x = a, *const *y = b;
    size_t m = (*x)->buffer.bytes, n = (*y)->buffer.bytes;
    return m != n ? (m < n) - (m > n) : earlier_first(a, b);
}

/* A buffer that is never freed lives to the step's end. */
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

static bool lives_with(const struct el_step_buffer *a, const struct el_step_buffer *b)
{
    return (a->freed < 0 || a->freed > b->allocated) && (b->freed < 0 || b->freed > a->allocated);
}

/* Gives each of `n` buffers its offset, one after another; returns the bytes that they take. */
static size_t place(struct el_step_buffer *const *order, int n, struct el_step_buffer **alive)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        int n_alive = 0;
        for (int k = 0; k < i; k++)
            if (lives_with(order[k], order[i])) alive[n_alive++] = order[k];
        qsort(alive, (size_t)n_alive, sizeof *alive, by_offset);
        order[i]->offset = first_fit(alive, n_alive, round_up(order[i]->buffer.bytes));
        size_t end = order[i]->offset + round_up(order[i]->buffer.bytes);
        if (end > bytes) bytes = end;
    }
    return bytes;
}

/* `order` and `alive` have room for all buffers. */
static void plan_device(struct el_program *program, struct el_step_memory *memory, struct el_step_buffer **order,
                        struct el_step_buffer **alive)
{
    static int (*const orders[])(const void *, const void *) = {larger_first, earlier_first, longer_first};
    size_t best = SIZE_MAX;
    int n = 0, chosen = 0, n_orders = sizeof orders / sizeof orders[0];
    for (int i = 0; i < program->n_buffers; i++)
        if (program->buffers[i]->buffer.device == memory->device) order[n++] = program->buffers[i];
    for (int o = 0; o < n_orders; o++) {
        qsort(order, (size_t)n, sizeof *order, orders[o]);
        size_t bytes = place(order, n, alive);
        if (bytes < best) best = bytes, chosen = o;
    }
    qsort(order, (size_t)n, sizeof *order, orders[chosen]);
    memory->arena_bytes = place(order, n, alive);
}

enum el_status el_program_plan(struct el_program *program)
{
    size_t n = (size_t)program->n_buffers + 1;
    struct el_step_buffer **order = calloc(2 * n, sizeof(struct el_step_buffer *));
    if (!order) return el_fail_errno("planning %d buffers", program->n_buffers);
    for (int d = 0; d < program->n_devices; d++) plan_device(program, &program->memory[d], order, order + n);
    free(order);
    return EL_OK;
}
