/* Operations where not all memory is reachable: in pieces, through a staging area of each member.
 *
 * Data that others only read take `flow`: a member stages a piece in a slot and takes what it needs of all members'
 * previous piece into its result. Each staged piece is a step. Before taking piece p a member waits until all have
 * staged p, and it has staged p + 1 by then; so whoever made step p + 2 has taken p, and the EL_SHARED_SLOTS = 4 slots
 * are safe to reuse.
 *
 * Data that members also write (an all-reduce of more than two, a ring, a parameter server) are copied into the
 * staging areas, processed there in place, and copied out (`through`). */
#include <string.h>

#include "runtime/comm/shared/engine.h"

enum { AREA_BYTES = EL_SHARED_STAGING_BYTES / 4 };

static char *own_staging(const struct el_shared *shared)
{
    return shared->staging[shared->rank];
}

static void copy_rows(char *to, size_t to_stride, const char *from, size_t from_stride, size_t bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, bytes);
}

/* NULL stays NULL. */
static char *at(void *base, size_t offset)
{
    return base ? (char *)base + offset : NULL;
}

/* In an all-reduce of two each takes the other's whole data: the same bytes as by halves, and one wait less. */
static bool flows(const struct el_shared *shared, const struct el_comm_task *task)
{
    if (task->algorithm != EL_COMM_DIRECT) return false;
    return task->verb != EL_COMM_ALL_REDUCE || shared->size == 2;
}

static size_t piece_most(const struct el_shared *shared, const struct el_comm_task *task)
{
    size_t n_parts = el_comm_verb_row(task->verb)->all_data ? (size_t)shared->size : 1;
    size_t most = EL_SHARED_PIECE_BYTES / el_dtype_bytes(task->dtype) / n_parts;
    return most < task->count ? most : task->count;
}

static char *slot_of(const struct el_shared *shared, int rank, uint32_t step)
{
    return shared->staging[rank] + (size_t)(step % EL_SHARED_SLOTS) * EL_SHARED_PIECE_BYTES;
}

static void stage(const struct el_shared *shared, const struct el_comm_task *task, size_t i, uint32_t step)
{
    size_t width = el_dtype_bytes(task->dtype), most = piece_most(shared, task), begin = i * most;
    size_t count = task->count - begin < most ? task->count - begin : most;
    size_t n_given = el_comm_parts_given(task->verb, shared->rank, task->root, shared->size);
    for (size_t p = 0; p < n_given; p++)
        memcpy(slot_of(shared, shared->rank, step) + p * count * width,
               (const char *)task->data + (p * task->count + begin) * width,
               el_comm_used(&task->used, (int)p, false, begin, count) * width);
}

static void take(struct el_shared *shared, const struct el_comm_task *task, size_t i, uint32_t step)
{
    size_t width = el_dtype_bytes(task->dtype), most = piece_most(shared, task), begin = i * most;
    size_t count = task->count - begin < most ? task->count - begin : most;
    bool gets = el_comm_parts_got(task->verb, shared->rank, task->root, shared->size) > 0;
    bool gives_parts = el_comm_verb_row(task->verb)->all_data;
    for (int r = 0; r < shared->size; r++) shared->data[r] = slot_of(shared, r, step);
    if (!gives_parts) shared->data[shared->rank] = at(task->data, begin * width);
    el_shared_pull(&(struct el_shared_pull){.task = task,
                                            .rank = shared->rank,
                                            .size = shared->size,
                                            .data = shared->data,
                                            .data_stride = count,
                                            .result = gets ? at(task->result, begin * width) : NULL,
                                            .result_stride = task->count,
                                            .begin = begin,
                                            .count = count});
}

/* After piece 0 was staged and all have met. */
static enum el_status flow(struct el_shared *shared, const struct el_comm_task *task)
{
    size_t most = piece_most(shared, task), n_pieces = (task->count + most - 1) / most;
    uint32_t first = shared->steps;
    for (size_t i = 0; i < n_pieces; i++) {
        if (i + 1 < n_pieces) {
            stage(shared, task, i + 1, first + (uint32_t)i + 1);
            el_shared_step(shared);
        }
        EL_TRY(el_shared_wait_all(shared, first + (uint32_t)i));
        take(shared, task, i, first + (uint32_t)i);
    }
    return EL_OK;
}

/* The largest piece that fits: data and result in a quarter of the area each, scratch in half. */
static size_t through_most(const struct el_shared *shared, const struct el_comm_task *task)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(task->verb);
    struct el_comm_shape shape = el_comm_task_shape(task, shared->rank, shared->size);
    size_t n_parts = row->all_data || row->all_result ? (size_t)shared->size : 1;
    size_t most = AREA_BYTES / shape.element_bytes / n_parts;
    shape.count = most < task->count ? most : task->count;
    while (task->algorithm != EL_COMM_DIRECT && el_comm_scratch(&shape) * shape.element_bytes > 2 * AREA_BYTES)
        shape.count = (shape.count + 1) / 2;
    return shape.count;
}

static enum el_status work(struct el_shared *shared, const struct el_comm_task *piece)
{
    for (int r = 0; r < shared->size; r++) {
        shared->data[r] = shared->staging[r];
        shared->results[r] = shared->staging[r] + AREA_BYTES;
        shared->scratches[r] = shared->staging[r] + 2 * (size_t)AREA_BYTES;
    }
    if (piece->algorithm != EL_COMM_DIRECT) return el_shared_rounds(shared, piece);
    EL_TRY(el_shared_meet(shared));
    el_shared_give_chunk(shared, piece);
    return el_shared_meet(shared);
}

static enum el_status through(struct el_shared *shared, const struct el_comm_task *task)
{
    size_t width = el_dtype_bytes(task->dtype), most = through_most(shared, task);
    size_t n_given = el_comm_parts_given(task->verb, shared->rank, task->root, shared->size);
    size_t n_got = el_comm_parts_got(task->verb, shared->rank, task->root, shared->size);
    for (size_t begin = 0; begin < task->count; begin += most) {
        struct el_comm_task piece = *task;
        piece.count = task->count - begin < most ? task->count - begin : most;
        size_t bytes = piece.count * width, stride = task->count * width;
        copy_rows(own_staging(shared), bytes, at(task->data, begin * width), stride, bytes, n_given);
        EL_TRY(work(shared, &piece));
        copy_rows(at(task->result, begin * width), stride, own_staging(shared) + AREA_BYTES, bytes, bytes, n_got);
    }
    return EL_OK;
}

void el_shared_stage_first(struct el_shared *shared, const struct el_comm_task *task)
{
    if (task->verb != EL_COMM_BARRIER && flows(shared, task)) stage(shared, task, 0, shared->steps + 1);
}

enum el_status el_shared_staged(struct el_shared *shared, const struct el_comm_task *task, bool restart)
{
    if (!flows(shared, task)) return through(shared, task);
    if (restart) {
        stage(shared, task, 0, shared->steps + 1);
        EL_TRY(el_shared_meet(shared));
    }
    return flow(shared, task);
}
