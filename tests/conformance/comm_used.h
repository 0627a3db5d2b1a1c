/* All-to-alls whose parts are used in part, by numbers that an earlier op of the same step writes: there and back, in
 * steps with other numbers of one program. As one member of a group sees it: included by the tests that start members,
 * each in its own way. */
#pragma once

#include "tests/conformance/comm_case.h"

enum { USED_EACH = 3, USED_STEPS = 4, USED_THERE = 0, USED_HOME, USED_DATA, USED_COUNTS, USED_NEXT, USED_BUFFERS };

struct used_case {
    enum el_dtype dtype;
    size_t unit, rows; /* a part is so many rows of `unit` elements */
    bool registered;
};

static const struct used_case used_cases[] = {
    {EL_F32, 1, 13, false}, {EL_I32, 5, 7, true},   {EL_F64, 3, 1031, false},  {EL_F16, 7, 1, true},
    {EL_U8, 1, 1, false},   {EL_F64, 16, 8, true},  {EL_F32, 33, 1500, false}, {EL_F32, 33, 1500, true},
    {EL_I32, 2, 1, false},  {EL_F32, 8, 40, false},
};

struct used_play {
    struct used_case c;
    struct el_comm *comm;
    size_t count, bytes, counts; /* of a part, of all parts; numbers */
    struct el_buffer *buffers[USED_BUFFERS];
    unsigned char *host, *wanted;
    int32_t *numbers;
};

/* NCCL, and GPUs alone, move whole parts: their rests are not looked at. */
static inline bool used_leaves_rests(const struct el_comm *comm)
{
    return !el_device_is_asynchronous(el_comm_device(comm)) ||
           (el_comm_size(comm) > 1 && strcmp(el_comm_backend(comm), "nccl") != 0);
}

/* Rows that go in a step from one member to another, of kind `j`: of a part all, none, or some. */
static inline size_t used_rows(const struct used_play *play, uint64_t step, int from, int to, int j)
{
    const uint64_t draw = (step * 31 + (uint64_t)(from * 7 + to) + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    const size_t all = draw % 4 == 0 ? play->c.rows : draw % 4 == 1 ? 0 : draw / 4 % (play->c.rows + 1);
    const size_t first = draw / 64 % (all + 1), second = (draw / 4096) % (all - first + 1);
    return j == 0 ? first : j == 1 ? second : all - first - second;
}

static inline size_t used_of(const struct used_play *play, uint64_t step, int from, int to)
{
    size_t rows = 0;
    for (int j = 0; j < USED_EACH; j++) rows += used_rows(play, step, from, to, j);
    return rows * play->c.unit;
}

static inline void used_store(const struct used_play *play, uint64_t step, int from, int to, unsigned char *part)
{
    const struct comm_case plain = {.verb = EL_COMM_ALL_TO_ALL, .dtype = play->c.dtype, .count = play->count};
    const size_t begin = (size_t)to * play->count, n = used_of(play, step, from, to);
    for (size_t i = 0; i < n; i++)
        case_store(part, play->c.dtype, i, case_value(&plain, el_comm_size(play->comm), from, begin + i + step));
}

static inline enum el_status used_fill(struct used_play *play, uint64_t step)
{
    const int n = el_comm_size(play->comm), rank = el_comm_rank(play->comm);
    for (int b = USED_DATA; b >= USED_THERE; b--) {
        memset(play->host, CASE_GUARD + b, play->bytes);
        for (int r = 0; b == USED_DATA && r < n; r++)
            used_store(play, step, rank, r, play->host + (size_t)r * play->bytes / (size_t)n);
        EL_TRY(el_device_write(el_view_of(play->buffers[b], 0), play->host, play->bytes));
    }
    for (int r = 0; r < n; r++)
        for (int j = 0; j < USED_EACH; j++) {
            play->numbers[r * USED_EACH + j] = (int32_t)used_rows(play, step, rank, r, j);
            play->numbers[(n + r) * USED_EACH + j] = (int32_t)used_rows(play, step, r, rank, j);
        }
    return el_device_write(el_view_of(play->buffers[USED_NEXT], 0), play->numbers, play->counts);
}

/* What came there, and what came home again; muted nothing does. */
static inline enum el_status used_compare(struct used_play *play, uint64_t step, bool muted)
{
    const int n = el_comm_size(play->comm), rank = el_comm_rank(play->comm);
    const size_t part = play->bytes / (size_t)n, width = el_dtype_bytes(play->c.dtype);
    for (int b = USED_THERE; b <= USED_HOME; b++) {
        EL_TRY(el_device_read(el_view_of(play->buffers[b], 0), play->host, play->bytes));
        for (int r = 0; r < n; r++) {
            const int from = b == USED_HOME ? rank : r, to = b == USED_HOME ? r : rank;
            const size_t whole = muted || used_leaves_rests(play->comm) ? part : used_of(play, step, from, to) * width;
            memset(play->wanted, CASE_GUARD + b, part); /* each buffer has its own */
            if (!muted) used_store(play, step, from, to, play->wanted);
            if (memcmp(play->host + (size_t)r * part, play->wanted, whole) != 0)
                return el_fail(EL_ERR_INTERNAL,
                               "%s, rank %d of %d, %zu rows of %zu %s%s, step %d: part %d %s is wrong (%zu are used)",
                               el_comm_backend(play->comm), rank, n, play->c.rows, play->c.unit,
                               el_dtype_name(play->c.dtype), play->c.registered ? ", registered" : "", (int)step, r,
                               b == USED_HOME ? "that came home" : "that came", used_of(play, step, from, to));
        }
    }
    return EL_OK;
}

static inline struct el_comm_op used_op(const struct used_play *play, bool back)
{
    return (struct el_comm_op){.verb = EL_COMM_ALL_TO_ALL,
                               .dtype = play->c.dtype,
                               .count = play->count,
                               .data = el_view_of(play->buffers[back ? USED_THERE : USED_DATA], 0),
                               .result = el_view_of(play->buffers[back ? USED_HOME : USED_THERE], 0),
                               .used = el_view_of(play->buffers[USED_COUNTS], 0),
                               .used_each = USED_EACH,
                               .unit = (int64_t)play->c.unit,
                               .back = back,
                               .expected = 0.5,
                               .phase = EL_PHASE_COMM,
                               .join = true};
}

static inline enum el_status used_open(struct used_play *play)
{
    const size_t n = (size_t)el_comm_size(play->comm);
    play->count = play->c.unit * play->c.rows;
    play->bytes = n * play->count * el_dtype_bytes(play->c.dtype);
    play->counts = 2 * n * USED_EACH * sizeof *play->numbers;
    for (int b = 0; b < USED_BUFFERS; b++) {
        const size_t bytes = b < USED_COUNTS ? play->bytes : play->counts;
        EL_TRY(play->c.registered
                   ? el_comm_alloc(play->comm, EL_TAG_GRAD, bytes, "parts", &play->buffers[b])
                   : el_device_alloc(el_comm_device(play->comm), EL_TAG_GRAD, bytes, "parts", &play->buffers[b]));
    }
    play->host = malloc(play->bytes);
    play->wanted = malloc(play->bytes);
    play->numbers = malloc(play->counts);
    bool made = play->host && play->wanted && play->numbers;
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "a case: no memory");
}

static inline void used_close(struct used_play *play)
{
    for (int b = 0; b < USED_BUFFERS; b++) el_device_free(play->buffers[b]);
    free(play->host);
    free(play->wanted);
    free(play->numbers);
}

/* The numbers are in place only when the copy before has run. */
static inline enum el_status used_issue(const struct used_play *play, struct el_program *program)
{
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    EL_TRY(el_program_copy(program, el_comm_device(play->comm), EL_STREAM_COMPUTE, &head,
                           el_view_of(play->buffers[USED_COUNTS], 0), el_view_of(play->buffers[USED_NEXT], 0),
                           play->counts, NULL));
    for (int back = 0; back < 2; back++) {
        const struct el_comm_op op = used_op(play, back);
        EL_TRY(el_comm_issue(play->comm, program, &op, NULL));
    }
    return el_program_end(program);
}

static inline enum el_status used_steps(struct used_play *play, struct el_program *program)
{
    EL_TRY(used_issue(play, program));
    for (uint64_t step = 0; step < USED_STEPS; step++) {
        const bool muted = step == 2;
        EL_TRY(used_fill(play, step));
        el_comm_mute(play->comm, muted);
        EL_TRY(el_program_run(program, step, NULL));
        el_comm_mute(play->comm, false);
        EL_TRY(used_compare(play, step, muted));
    }
    return EL_OK;
}

/* At once, between steps: on memory of a device that is the host's. */
static inline enum el_status used_exchange(struct used_play *play)
{
    const uint64_t step = USED_STEPS;
    if (el_device_is_asynchronous(el_comm_device(play->comm))) return EL_OK;
    EL_TRY(used_fill(play, step));
    for (int back = 0; back < 2; back++) {
        struct el_comm_op op = used_op(play, back);
        op.data = el_view_host((void *)op.data.buffer->address);
        op.result = el_view_host((void *)op.result.buffer->address);
        op.used = el_view_host(play->numbers);
        EL_TRY(el_comm_exchange(play->comm, &op));
    }
    return used_compare(play, step, false);
}

/* Collective. */
static inline enum el_status check_used(struct el_comm *comm)
{
    enum el_status status = EL_OK;
    struct el_program *program;
    if (!el_comm_has_verb(comm, EL_COMM_ALL_TO_ALL)) return EL_OK;
    for (size_t i = 0; i < sizeof used_cases / sizeof *used_cases && status == EL_OK; i++) {
        struct used_play play = {.c = used_cases[i], .comm = comm};
        EL_TRY(el_program_create(&program));
        status = used_open(&play);
        if (status == EL_OK) status = used_steps(&play, program);
        el_program_destroy(program);
        if (status == EL_OK) status = used_exchange(&play);
        used_close(&play);
    }
    if (status != EL_OK) el_comm_abort(comm); /* the others would wait for this one */
    return status;
}
