/* What an author of a bootstrap owes. Users read bootstrap.h; only bootstrap.c calls these hooks.
 *
 * An author fills a `struct el_bootstrap` of his own (as the first member of a larger struct, say) and gives it out of
 * his open function. `agree` and a missing `barrier` are built from gather and broadcast once for all in bootstrap.c.
 * Hooks are called by one thread at a time but for silent and abort; gather, broadcast and barrier with a size above 1.
 * Errors: EL_ERR_PEER, naming the rank where that is known; EL_ERR_HOST_MEMORY.
 */
#pragma once

#include "runtime/comm/bootstrap.h"

struct el_bootstrap_ops {
    const char *kind;
    /* Required where size > 1. `texts` is [size] on rank 0, NULL elsewhere; each is given back to free(). */
    enum el_status (*gather)(struct el_bootstrap *bootstrap, const char *text, char **texts);
    /* Required where size > 1. */
    enum el_status (*broadcast)(struct el_bootstrap *bootstrap, void *data, size_t bytes);
    /* Optional: default is a gather and a broadcast of nothing. */
    enum el_status (*barrier)(struct el_bootstrap *bootstrap);
    /* Optional: default is "". */
    void (*address)(const struct el_bootstrap *bootstrap, char *text, size_t bytes);
    /* Optional: default is "". The ranks that do not answer, "1, 3". Any thread. */
    void (*silent)(struct el_bootstrap *bootstrap, char *text, size_t bytes);
    /* Optional: default is to do nothing (the process ends by itself). Ends all ranks. */
    void (*abort)(struct el_bootstrap *bootstrap, int exit_status);
    /* Required. Frees the bootstrap too. */
    void (*close)(struct el_bootstrap *bootstrap);
};

struct el_bootstrap {
    const struct el_bootstrap_ops *ops;
    int rank, size;
    double timeout_s; /* as el_bootstrap_set_timeout says; 0: none */
    char library[96];
};
