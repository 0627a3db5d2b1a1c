/* The planner: fixed addresses for a step's buffers, from their births and deaths. First fit over the buffers alive, in
 * order of birth: simple, deterministic, and within a few per cent of the peak on our models. It allocates nothing and
 * knows no streams: what makes reuse safe is program.h's rule that the compute stream has joined all users of a buffer
 * before it is freed. */
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

static void plan_device(struct el_program *program, struct el_step_memory *memory, struct el_step_buffer **alive)
{
    int n_alive = 0;
    for (int i = 0; i < program->n_buffers; i++) {
        struct el_step_buffer *born = program->buffers[i];
        if (born->buffer.device != memory->device) continue;
        int kept = 0;
        for (int k = 0; k < n_alive; k++) {
            if (alive[k]->died < 0 || alive[k]->died > born->born) alive[kept++] = alive[k];
        }
        n_alive = kept;
        born->offset = first_fit(alive, n_alive, round_up(born->buffer.bytes));
        alive[n_alive++] = born;
        qsort(alive, (size_t)n_alive, sizeof *alive, by_offset);
        size_t end = born->offset + round_up(born->buffer.bytes);
        if (end > memory->arena_bytes) memory->arena_bytes = end;
    }
}

enum el_status el_program_plan(struct el_program *program)
{
    struct el_step_buffer **alive = calloc((size_t)program->n_buffers + 1, sizeof(struct el_step_buffer *));
    if (!alive) return el_fail_errno("planning %d buffers", program->n_buffers);
    for (int d = 0; d < program->n_devices; d++) plan_device(program, &program->memory[d], alive);
    free(alive);
    return EL_OK;
}
