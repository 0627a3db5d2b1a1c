/* Uneven ends: one rank has fewer batches in each epoch than the others, and what is made of that. From `--uneven`:
 * "off", "stop", "join", "hang", or with which rank and how many batches: "stop:rank=1,batches=3"; else the last rank
 * has one batch fewer.
 *
 * Ownership: plain values. Threads: any.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/status.h"

enum el_uneven_how {
    EL_UNEVEN_OFF,
    EL_UNEVEN_STOP, /* ranks agree before each step: all end the epoch when the first one has run out */
    /* Ranks agree as well, but go on until the last one has run out; who has before takes part in what the others send,
     * with zeros for gradients, and has the weights of the last ones in the end: PyTorch's Join of a DDP module. */
    EL_UNEVEN_JOIN,
    EL_UNEVEN_HANG /* nobody asks: the others wait in their all-reduce until the time-out */
};

struct el_uneven {
    enum el_uneven_how how;
    int rank;      /* that has fewer */
    int64_t fewer; /* batches of an epoch */
};

/* How long the others wait where no time-out was given. */
static const double EL_UNEVEN_TIMEOUT_S = 5;

struct el_train_config;

/* Errors: EL_ERR_INVALID: no such way, rank or number. */
enum el_status el_uneven_read(const struct el_train_config *config, struct el_uneven *uneven_p);
/* The highest rank that has a batch at this place of an epoch: whose buffers and weights count in a join. */
int el_uneven_last(const struct el_uneven *uneven, int n_ranks, int64_t place, int64_t steps);
/* Of an epoch of `steps` batches of all ranks. */
int64_t el_uneven_batches(const struct el_uneven *uneven, int rank, int64_t steps);
