/* Groups that split: who is with whom, and that neither the parts nor the whole ever meet another. As one member of a
 * group sees it: included by the tests that start members, each in its own way. */
#pragma once

#include "tests/conformance/comm_checks.h"

/* Every second member, in reverse order; member 0 in none. */
static inline enum el_status check_part(struct el_comm *comm, struct el_comm *part)
{
    int rank = el_comm_rank(comm), size = el_comm_size(comm), behind = (size - 1 - rank) / 2;
    int with = (size - (rank % 2 ? 1 : 2) + 1) / 2; /* of 1, 3, ... or of 2, 4, ... */
    if (rank == 0) return part ? el_fail(EL_ERR_INTERNAL, "color -1 is in a group") : EL_OK;
    if (el_comm_size(part) != with || el_comm_rank(part) != behind)
        return el_fail(EL_ERR_INTERNAL, "rank %d of %d is rank %d of %d in the part, not %d of %d", rank, size,
                       el_comm_rank(part), el_comm_size(part), behind, with);
    return check_operations(part, 1000, EL_F32, with - 1);
}

/* Operations of the part and of the whole in one program, without an order between them. */
static inline enum el_status check_both(struct el_comm *whole, struct el_comm *part)
{
    enum { COUNT = 5000, TIMES = 8 };
    struct el_comm *comms[] = {whole, part};
    struct el_buffer *buffers[2];
    struct el_program *program;
    float *host = malloc(COUNT * sizeof *host);
    enum el_status status = host ? el_program_create(&program) : el_fail(EL_ERR_HOST_MEMORY, "no memory");
    for (int c = 0; c < 2 && status == EL_OK; c++) {
        for (int i = 0; i < COUNT; i++) host[i] = 1;
        status = el_device_alloc(el_comm_device(whole), EL_TAG_GRAD, COUNT * sizeof *host, "data", &buffers[c]);
        if (status == EL_OK) status = el_device_write(el_view_of(buffers[c], 0), host, COUNT * sizeof *host);
    }
    for (int i = 0; i < TIMES * 2 && status == EL_OK; i++) {
        struct el_comm_op op = {
            .verb = EL_COMM_ALL_REDUCE, .dtype = EL_F32, .count = COUNT, .data = el_view_of(buffers[i % 2], 0)};
        status = el_comm_issue(comms[i % 2], program, &op, NULL);
    }
    if (status == EL_OK) status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    for (int c = 0; c < 2 && status == EL_OK; c++) {
        double expected = 1;
        for (int i = 0; i < TIMES; i++) expected *= el_comm_size(comms[c]);
        status = el_device_read(el_view_of(buffers[c], 0), host, COUNT * sizeof *host);
        for (int i = 0; i < COUNT && status == EL_OK; i++)
            if ((double)host[i] != expected) status = el_fail(EL_ERR_INTERNAL, "[%d] is %g", i, (double)host[i]);
        el_device_free(buffers[c]);
    }
    free(host);
    return status;
}

/* Collective. */
static inline enum el_status check_splits(struct el_comm *comm)
{
    struct el_comm *part, *again, *all;
    int rank = el_comm_rank(comm);
    EL_TRY(el_comm_split(comm, rank == 0 ? -1 : rank % 2, -rank, &part));
    EL_TRY(check_part(comm, part));
    EL_TRY(el_comm_split(comm, 7, 0, &all));
    if (el_comm_rank(all) != rank || el_comm_size(all) != el_comm_size(comm))
        return el_fail(EL_ERR_INTERNAL, "equal keys change the order");
    EL_TRY(check_both(comm, all));
    if (part) { /* a part of a part */
        EL_TRY(el_comm_split(part, el_comm_rank(part) / 2, 0, &again));
        EL_TRY(check_operations(again, 1000, EL_I32, 0));
        EL_TRY(check_both(part, again));
        el_comm_close(again);
    }
    el_comm_close(part);
    EL_TRY(check_operations(all, 1000, EL_F64, 0));
    el_comm_close(all);
    return check_operations(comm, 100000, EL_F32, el_comm_size(comm) - 1);
}
