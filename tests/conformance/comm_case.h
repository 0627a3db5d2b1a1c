/* One operation of a communicator, of any verb, on data whose outcome is known exactly, as one member sees it: in place
 * or not, at any place of its buffers, which must stay as they are around it. Used by comm_product.h. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/comm_values.h"

/* Of a buffer's bytes, before and behind what the operation may touch. */
enum { CASE_MARGIN_BYTES = 64, CASE_GUARD = 0xa5 };

/* What a member has for it. */
struct case_memory {
    struct el_buffer *buffers[2]; /* data; result, where that is not in the first one */
    unsigned char *host, *wanted; /* room for the larger one; the same, as it must be */
    size_t bytes[2], begin[2];    /* of data and result: how many, where in their buffer */
    int buffer_of[2];
};

static inline bool case_gives(const struct comm_case *c, int rank)
{
    return !el_comm_verb_row(c->verb)->data_on_root || rank == c->root;
}

static inline bool case_gets(const struct comm_case *c, int rank)
{
    return !el_comm_verb_row(c->verb)->result_on_root || rank == c->root;
}

/* Where data and result are; in place as comm.h says. A broadcast in place has one buffer on all members. */
static inline void case_lay_out(const struct comm_case *c, int size, int rank, struct case_memory *m)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(c->verb);
    size_t width = el_dtype_bytes(c->dtype), begin = CASE_MARGIN_BYTES + c->shift * width, part = c->count * width;
    bool together = c->in_place && ((case_gives(c, rank) && case_gets(c, rank)) || c->verb == EL_COMM_BROADCAST);
    m->bytes[0] = part * (row->all_data ? (size_t)size : 1);
    m->bytes[1] = part * (row->all_result ? (size_t)size : 1);
    m->begin[0] = m->begin[1] = begin;
    m->buffer_of[0] = 0;
    m->buffer_of[1] = together ? 0 : 1;
    if (together && row->all_data && !row->all_result) m->begin[1] += (size_t)rank * part;
    if (together && row->all_result && !row->all_data) m->begin[0] += (size_t)rank * part;
}

static inline size_t case_buffer_bytes(const struct case_memory *m, int buffer)
{
    size_t end = 0;
    for (int side = 0; side < 2; side++)
        if (m->buffer_of[side] == buffer && m->begin[side] + m->bytes[side] > end)
            end = m->begin[side] + m->bytes[side];
    return end + CASE_MARGIN_BYTES;
}

/* Guards everywhere, and the member's values where it gives any. */
static inline enum el_status case_fill(const struct comm_case *c, const struct el_comm *comm, struct case_memory *m)
{
    int size = el_comm_size(comm), rank = el_comm_rank(comm);
    for (int b = 1; b >= 0; b--) {
        size_t bytes = case_buffer_bytes(m, b), width = el_dtype_bytes(c->dtype);
        memset(m->host, CASE_GUARD, bytes);
        if (b == 0 && case_gives(c, rank)) case_store_data(c, size, rank, m->host + m->begin[0], m->bytes[0] / width);
        EL_TRY(el_device_write(el_view_of(m->buffers[b], 0), m->host, bytes));
    }
    return EL_OK;
}

static inline void case_words(const struct comm_case *c, const struct el_comm *comm, char words[160])
{
    snprintf(words, 160, "%s %s of %zu %s, %s, root %d, shift %zu%s%s%s, rank %d of %d", el_comm_backend(comm),
             el_comm_verb_row(c->verb)->name, c->count, el_dtype_name(c->dtype), el_comm_reduction_name(c->reduction),
             c->root, c->shift, c->in_place ? ", in place" : "", c->registered ? ", registered" : "",
             c->at_once ? ", at once" : "", el_comm_rank(comm), el_comm_size(comm));
}

static inline enum el_status case_wrong(const struct comm_case *c, const struct el_comm *comm, const char *what,
                                        size_t i, double got, double expected)
{
    char words[160];
    case_words(c, comm, words);
    return el_fail(EL_ERR_INTERNAL, "%s (%s): %s[%zu] is %g, not %g", words, el_comm_algorithm_name(c->algorithm), what,
                   i, got, expected);
}

/* The first byte of a buffer that is not as wanted, by its element where it is in one. */
static inline enum el_status case_differs(const struct comm_case *c, const struct el_comm *comm,
                                          const struct case_memory *m, int side)
{
    size_t i = 0, begin = m->begin[side];
    while (m->host[i] == m->wanted[i]) i++;
    if (i < begin || i >= begin + m->bytes[side]) return case_wrong(c, comm, "the byte", i, m->host[i], m->wanted[i]);
    i = (i - begin) / el_dtype_bytes(c->dtype);
    return case_wrong(c, comm, side ? "result" : "data", i, case_load(m->host + begin, c->dtype, i),
                      case_load(m->wanted + begin, c->dtype, i));
}

/* The result is what it must be; data that it did not take the place of, and all around, is as it was. */
static inline enum el_status case_compare(const struct comm_case *c, const struct el_comm *comm, struct case_memory *m)
{
    int size = el_comm_size(comm), rank = el_comm_rank(comm);
    bool gives = case_gives(c, rank), gets = case_gets(c, rank), together = m->buffer_of[1] == 0;
    size_t width = el_dtype_bytes(c->dtype);
    for (int b = 0; b < 2; b++) {
        size_t bytes = case_buffer_bytes(m, b);
        int side = together && m->bytes[1] > m->bytes[0] ? 1 : b; /* the larger one, in place */
        EL_TRY(el_device_read(el_view_of(m->buffers[b], 0), m->host, bytes));
        memset(m->wanted, CASE_GUARD, bytes);
        if (b == 0 || gets) /* what else an operation does there is its own affair */
            memcpy(m->wanted + m->begin[side], m->host + m->begin[side], m->bytes[side]);
        if (b == 0 && gives && !together) case_store_data(c, size, rank, m->wanted + m->begin[0], m->bytes[0] / width);
        if (gets && m->buffer_of[1] == b)
            case_store_result(c, size, rank, m->wanted + m->begin[1], m->bytes[1] / width);
        if (memcmp(m->host, m->wanted, bytes) != 0)
            return case_differs(c, comm, m, gets && m->buffer_of[1] == b ? 1 : side);
    }
    return EL_OK;
}

static inline struct el_comm_op case_op(const struct comm_case *c, const struct el_comm *comm,
                                        const struct case_memory *m)
{
    int rank = el_comm_rank(comm);
    const struct el_comm_verb_row *row = el_comm_verb_row(c->verb);
    bool same = m->buffer_of[1] == 0 && row->all_data == row->all_result; /* the result is left out */
    struct el_comm_op op = {.verb = c->verb,
                            .reduction = c->reduction,
                            .dtype = c->dtype,
                            .count = c->count,
                            .root = c->root,
                            .phase = EL_PHASE_COMM};
    if (case_gives(c, rank) || same) op.data = el_view_of(m->buffers[0], m->begin[0]);
    if (case_gets(c, rank) && !same) op.result = el_view_of(m->buffers[m->buffer_of[1]], m->begin[1]);
    return op;
}

/* To the next one and from the one before. A long message may wait for its receiver: every other one receives first. */
static inline enum el_status case_issue_links(const struct comm_case *c, struct el_comm *comm,
                                              struct el_program *program, const struct el_comm_op *op)
{
    int size = el_comm_size(comm), rank = el_comm_rank(comm);
    bool receive_first = c->count > 1024 && rank % 2 == 1;
    for (int i = 0; i < 2; i++) {
        bool receives = (i == 0) == receive_first;
        struct el_comm_op link = *op;
        link.verb = receives ? EL_COMM_RECV : EL_COMM_SEND;
        link.root = receives ? (rank + size - 1) % size : (rank + 1) % size;
        link.tag = (int)(c->count % 3);
        if (receives) link.data = (struct el_view){NULL, 0};
        if (!receives) link.result = (struct el_view){NULL, 0};
        EL_TRY(el_comm_issue(comm, program, &link, NULL));
    }
    return EL_OK;
}

/* A case that a member takes part in. */
struct case_play {
    struct comm_case c;
    struct el_comm *comm;
    struct case_memory memory;
};

/* Registered memory is as large on all members. */
static inline enum el_status case_alloc(const struct comm_case *c, struct el_comm *comm, size_t bytes, const char *name,
                                        struct el_buffer **buffer_p)
{
    size_t most = (c->shift + c->count * (size_t)el_comm_size(comm)) * el_dtype_bytes(c->dtype);
    if (!c->registered) return el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, bytes, name, buffer_p);
    return el_comm_alloc(comm, EL_TAG_GRAD, 2 * (size_t)CASE_MARGIN_BYTES + most, name, buffer_p);
}

static inline enum el_status case_open(struct case_play *play)
{
    struct case_memory *m = &play->memory;
    size_t most = 0;
    *m = (struct case_memory){.host = NULL};
    case_lay_out(&play->c, el_comm_size(play->comm), el_comm_rank(play->comm), m);
    for (int b = 0; b < 2; b++) {
        size_t bytes = case_buffer_bytes(m, b);
        if (bytes > most) most = bytes;
        EL_TRY(case_alloc(&play->c, play->comm, bytes, b ? "result" : "data", &m->buffers[b]));
    }
    m->host = malloc(most + 1);
    m->wanted = malloc(most + 1);
    if (!m->host || !m->wanted) return el_fail(EL_ERR_HOST_MEMORY, "a case: no memory");
    return case_fill(&play->c, play->comm, m);
}

static inline void case_close(struct case_play *play)
{
    for (int b = 0; b < 2; b++) el_device_free(play->memory.buffers[b]);
    free(play->memory.host);
    free(play->memory.wanted);
}

/* On memory of a device that is the host's. */
static inline enum el_status case_exchange(const struct case_play *play)
{
    struct el_comm_op op = case_op(&play->c, play->comm, &play->memory);
    if (op.data.buffer) op.data = el_view_host((char *)op.data.buffer->address + op.data.offset);
    if (op.result.buffer) op.result = el_view_host((char *)op.result.buffer->address + op.result.offset);
    return el_comm_exchange(play->comm, &op);
}

static inline enum el_status case_run(const struct case_play *plays, int n)
{
    struct el_program *program;
    if (n == 1 && plays[0].c.at_once) return case_exchange(&plays[0]);
    enum el_status status = EL_OK;
    EL_TRY(el_program_create(&program));
    for (int i = 0; i < n && status == EL_OK; i++) {
        const struct case_play *play = &plays[i];
        struct el_comm_op op = case_op(&play->c, play->comm, &play->memory);
        status = play->c.verb == EL_COMM_SEND ? case_issue_links(&play->c, play->comm, program, &op)
                                              : el_comm_issue(play->comm, program, &op, NULL);
    }
    if (status == EL_OK) status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}

/* Several in one program, each on its own data, of one device. Collective. EL_ERR_INTERNAL says what is wrong where. */
static inline enum el_status case_check_all(struct case_play *plays, int n)
{
    enum el_status status = EL_OK;
    int n_open = 0;
    while (n_open < n && status == EL_OK) status = case_open(&plays[n_open++]);
    if (status == EL_OK) status = case_run(plays, n);
    for (int i = 0; i < n && status == EL_OK; i++) status = case_compare(&plays[i].c, plays[i].comm, &plays[i].memory);
    for (int i = 0; i < n_open; i++) case_close(&plays[i]);
    return status;
}

static inline enum el_status case_check(const struct comm_case *c, struct el_comm *comm)
{
    struct case_play play = {.c = *c, .comm = comm};
    return case_check_all(&play, 1);
}
