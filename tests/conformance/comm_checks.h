/* What every communicator must do, as one rank of a group sees it: exact sums of data whose answer is known, on a real
 * device and through programs. Included by the tests that start ranks, each in its own way. */
#ifndef EL_TESTS_COMM_CHECKS_H
#define EL_TESTS_COMM_CHECKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/comm.h"

/* Integer-valued, so that sums are exact in every type and order. */
static inline double check_value(int rank, size_t i)
{
    return (double)((rank + 1) * (int)(i % 97 + 1));
}

static inline double check_sum(int size, size_t i)
{
    return (double)(size * (size + 1) / 2 * (int)(i % 97 + 1)); /* NOLINT(bugprone-integer-division): always even */
}

static inline void check_store(void *data, enum el_dtype dtype, size_t i, double value)
{
    if (dtype == EL_F32) ((float *)data)[i] = (float)value;
    if (dtype == EL_F64) ((double *)data)[i] = value;
    if (dtype == EL_I32) ((int32_t *)data)[i] = (int32_t)value;
}

static inline double check_load(const void *data, enum el_dtype dtype, size_t i)
{
    return dtype == EL_F32   ? (double)((const float *)data)[i]
           : dtype == EL_F64 ? ((const double *)data)[i]
                             : (double)((const int32_t *)data)[i];
}

struct check {
    struct el_comm *comm;
    size_t count;
    enum el_dtype dtype;
    struct el_buffer *buffers[3]; /* all-reduced, broadcast, reduced */
    struct el_buffer *result;
    void *host;
};

static inline enum el_status check_fill(struct check *check)
{
    size_t bytes = check->count * el_dtype_bytes(check->dtype);
    for (size_t i = 0; i < check->count; i++)
        check_store(check->host, check->dtype, i, check_value(el_comm_rank(check->comm), i));
    for (int b = 0; b < 3; b++) EL_TRY(el_device_write(el_view_of(check->buffers[b], 0), check->host, bytes));
    return EL_OK;
}

/* One program with all three operations, twice over the broadcast so that roots differ. */
static inline enum el_status check_issue(struct check *check, struct el_program *program, int root)
{
    static const enum el_comm_verb verbs[] = {EL_COMM_ALL_REDUCE, EL_COMM_BROADCAST, EL_COMM_REDUCE};
    for (int i = 0; i < 3; i++) {
        struct el_comm_op op = {.verb = verbs[i],
                                .dtype = check->dtype,
                                .count = check->count,
                                .root = verbs[i] == EL_COMM_ALL_REDUCE ? 0 : root,
                                .data = el_view_of(check->buffers[i], 0),
                                .phase = EL_PHASE_COMM};
        if (verbs[i] == EL_COMM_REDUCE) op.result = el_view_of(check->result, 0);
        EL_TRY(el_comm_issue(check->comm, program, &op, NULL));
    }
    return el_program_end(program);
}

/* Status of the comparison: EL_ERR_INTERNAL naming the first element that is wrong. */
static inline enum el_status check_compare(struct check *check, struct el_buffer *buffer, const char *what, int root)
{
    int size = el_comm_size(check->comm);
    EL_TRY(el_device_read(el_view_of(buffer, 0), check->host, check->count * el_dtype_bytes(check->dtype)));
    for (size_t i = 0; i < check->count; i++) {
        double expected = root < 0 ? check_sum(size, i) : check_value(root, i);
        double got = check_load(check->host, check->dtype, i);
        if (got != expected)
            return el_fail(EL_ERR_INTERNAL, "%s of %zu %s: [%zu] is %g, not %g", what, check->count,
                           el_dtype_name(check->dtype), i, got, expected);
    }
    return EL_OK;
}

static inline enum el_status check_once(struct check *check, int root)
{
    struct el_program *program = NULL;
    EL_TRY(check_fill(check));
    EL_TRY(el_program_create(&program));
    enum el_status status = check_issue(check, program, root);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    if (status == EL_OK) status = check_compare(check, check->buffers[0], "all_reduce", -1);
    if (status == EL_OK) status = check_compare(check, check->buffers[1], "broadcast", root);
    if (status == EL_OK && el_comm_rank(check->comm) == root)
        status = check_compare(check, check->result, "reduce", -1);
    return status;
}

/* All operations for one length, type and root. Collective. */
static inline enum el_status check_operations(struct el_comm *comm, size_t count, enum el_dtype dtype, int root)
{
    struct check check = {.comm = comm, .count = count, .dtype = dtype};
    size_t bytes = (count ? count : 1) * el_dtype_bytes(dtype);
    enum el_status status = EL_OK;
    check.host = calloc(1, bytes);
    if (!check.host) return el_fail(EL_ERR_HOST_MEMORY, "check: no memory");
    for (int b = 0; b < 3 && status == EL_OK; b++)
        status = el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, bytes, "data", &check.buffers[b]);
    if (status == EL_OK) status = el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, bytes, "result", &check.result);
    if (status == EL_OK) status = check_once(&check, root);
    for (int b = 0; b < 3; b++) el_device_free(check.buffers[b]);
    el_device_free(check.result);
    free(check.host);
    return status;
}

#endif
