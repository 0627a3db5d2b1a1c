/* What every communicator must do, as one rank of a group sees it: exact sums of data whose answer is known, on a real
 * device and through programs. Included by the tests that start ranks, each in its own way. */
#pragma once

#include "tests/conformance/comm_case.h"

/* Integer-valued, so that sums are exact in every type and order. */
static inline double check_value(int rank, size_t i)
{
    return (double)((rank + 1) * (int)(i % 97 + 1));
}

static inline double check_sum(int size, size_t i)
{
    return (double)(size * (size + 1) / 2 * (int)(i % 97 + 1)); /* NOLINT(bugprone-integer-division): always even */
}

/* All three first verbs for one length, type and root, in one program. Collective. EL_ERR_INTERNAL names the first
 * element that is wrong. */
static inline enum el_status check_operations(struct el_comm *comm, size_t count, enum el_dtype dtype, int root)
{
    static const enum el_comm_verb verbs[] = {EL_COMM_ALL_REDUCE, EL_COMM_BROADCAST, EL_COMM_REDUCE};
    struct case_play plays[3];
    for (int i = 0; i < 3; i++)
        plays[i] = (struct case_play){.c = {.verb = verbs[i],
                                            .dtype = dtype,
                                            .count = count,
                                            .root = el_comm_verb_row(verbs[i])->has_root ? root : 0,
                                            .in_place = verbs[i] != EL_COMM_REDUCE},
                                      .comm = comm};
    return case_check_all(plays, 3);
}
