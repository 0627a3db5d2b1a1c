/* Sums that depend on their order: whatever the algorithm, every member gets the same bits, at every run. As one member
 * of a group sees it. */
#pragma once

#include "runtime/comm/rounds.h"
#include "tests/conformance/comm_case.h"

enum { BITS_COUNT = 20011 };

/* In place, by a program. */
static inline enum el_status bits_all_reduce(struct el_comm *comm, enum el_comm_reduction reduction,
                                             enum el_dtype dtype, void *host, size_t count)
{
    size_t bytes = count * el_dtype_bytes(dtype);
    struct el_buffer *buffer = NULL;
    struct el_program *program = NULL;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, bytes, "bits", &buffer));
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .reduction = reduction,
                            .dtype = dtype,
                            .count = count,
                            .data = el_view_of(buffer, 0)};
    enum el_status status = el_device_write(el_view_of(buffer, 0), host, bytes);
    if (status == EL_OK) status = el_program_create(&program);
    if (status == EL_OK) status = el_comm_issue(comm, program, &op, NULL);
    if (status == EL_OK) status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    if (status == EL_OK) status = el_device_read(el_view_of(buffer, 0), host, bytes);
    el_device_free(buffer);
    return status;
}

/* One number of all bits that the sum has. */
static inline enum el_status bits_of_sum(struct el_comm *comm, float *host, int32_t *bits_p)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < BITS_COUNT; i++)
        host[i] = (el_comm_rank(comm) % 2 ? -1.0f : 1.1f) * (i % 7 ? 1 : 1e6f) / (float)(i % 1013 + 1);
    EL_TRY(bits_all_reduce(comm, EL_COMM_SUM, EL_F32, host, BITS_COUNT));
    for (int i = 0; i < BITS_COUNT; i++) {
        uint32_t word;
        memcpy(&word, &host[i], sizeof word);
        hash = (hash ^ word) * 16777619u;
    }
    *bits_p = (int32_t)hash;
    return EL_OK;
}

/* By the comm's present algorithm. Collective. */
static inline enum el_status check_bits(struct el_comm *comm)
{
    int32_t first = 0, again = 0;
    float *host = malloc(BITS_COUNT * sizeof *host);
    enum el_status status = host ? bits_of_sum(comm, host, &first) : el_fail(EL_ERR_HOST_MEMORY, "bits: no memory");
    if (status == EL_OK) status = bits_of_sum(comm, host, &again);
    free(host);
    int32_t least = first, most = again;
    if (status == EL_OK) status = bits_all_reduce(comm, EL_COMM_MIN, EL_I32, &least, 1);
    if (status == EL_OK) status = bits_all_reduce(comm, EL_COMM_MAX, EL_I32, &most, 1);
    if (status != EL_OK || (least == first && most == first)) return status;
    return el_fail(EL_ERR_INTERNAL, "%s: a sum's bits differ between members, or between runs", el_comm_backend(comm));
}
