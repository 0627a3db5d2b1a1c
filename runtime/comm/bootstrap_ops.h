/* Implementations of bootstraps; only bootstrap.c calls these hooks. `struct el_bootstrap` comes first in the
 * implementation's struct. One thread at a time, except silent and abort; gather, broadcast and barrier only with a
 * size above 1. Errors: EL_ERR_PEER, naming the rank where known; EL_ERR_HOST_MEMORY. */
#pragma once

#include "runtime/comm/bootstrap.h"

struct el_bootstrap_ops {
    const char *kind;
    /* Required where size > 1. `texts` is [size] on rank 0, NULL elsewhere; the caller frees each. */
    enum el_status (*gather)(struct el_bootstrap *bootstrap, const char *text, char **texts);
    /* Required where size > 1. */
    enum el_status (*broadcast)(struct el_bootstrap *bootstrap, void *data, size_t bytes);
    /* Optional: default is a gather and a broadcast. */
    enum el_status (*barrier)(struct el_bootstrap *bootstrap);
    /* Optional: default is "". */
    void (*address)(const struct el_bootstrap *bootstrap, char *text, size_t bytes);
    /* Optional: default is "". See el_bootstrap_silent. Threads: any. */
    void (*silent)(struct el_bootstrap *bootstrap, char *text, size_t bytes);
    /* Optional: default is to do nothing. Ends all ranks. */
    void (*abort)(struct el_bootstrap *bootstrap, int exit_status);
    /* Required. Frees the bootstrap too. */
    void (*close)(struct el_bootstrap *bootstrap);
};

struct el_bootstrap {
    const struct el_bootstrap_ops *ops;
    int rank, size;
    double timeout_s;
    char library[96];
};
