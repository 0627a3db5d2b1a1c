/* What every bootstrap must do, as one rank of a job sees it. Included by the tests that start ranks, each in its own
 * way. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/bootstrap.h"

/* Collective. */
static inline enum el_status check_bootstrap(struct el_bootstrap *bootstrap)
{
    char mine[64], **texts = NULL;
    int rank = el_bootstrap_rank(bootstrap), size = el_bootstrap_size(bootstrap), word = rank == 0 ? 4711 : 0;
    snprintf(mine, sizeof mine, "text of %d", rank);
    EL_TRY(el_bootstrap_gather(bootstrap, mine, &texts));
    for (int i = 0; texts && i < size; i++) {
        snprintf(mine, sizeof mine, "text of %d", i);
        if (strcmp(texts[i], mine) != 0) return el_fail(EL_ERR_INTERNAL, "gather: '%s' from %d", texts[i], i);
        free(texts[i]);
    }
    if ((texts != NULL) != (rank == 0)) return el_fail(EL_ERR_INTERNAL, "gather: rank %d", rank);
    free(texts);
    EL_TRY(el_bootstrap_broadcast(bootstrap, &word, sizeof word));
    if (word != 4711) return el_fail(EL_ERR_INTERNAL, "broadcast: got %d", word);
    EL_TRY(el_bootstrap_barrier(bootstrap));
    enum el_status mine_now = rank == size - 1 ? el_fail(EL_ERR_OOM, "last") : EL_OK;
    enum el_status status = el_bootstrap_agree(bootstrap, mine_now);
    if (status != (rank == size - 1 ? EL_ERR_OOM : EL_ERR_PEER)) return el_fail(EL_ERR_INTERNAL, "agree: %d", status);
    return el_bootstrap_agree(bootstrap, EL_OK);
}
