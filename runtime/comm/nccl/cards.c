/* Who computes on which card: NCCL refuses two members that it finds on one. It tells hosts apart by their name and
 * boot, or by NCCL_HOSTID where that is set: ranks that give it different ones count as being on different hosts, and
 * reach each other through the network even when they share a card. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/nccl/comm_nccl.h"
#include "runtime/comm/share.h"

/* "uuid host-id": without a UUID nothing is known. */
enum { TEXT_BYTES = 192 };

static enum el_status compare(const char *texts, int size)
{
    for (int r = 0; r < size; r++) {
        for (int other = 0; other < r; other++) {
            const char *one = texts + (size_t)other * TEXT_BYTES, *two = texts + (size_t)r * TEXT_BYTES;
            if (*two == ' ' || strcmp(one, two) != 0) continue;
            return el_fail(EL_ERR_INVALID,
                           "nccl communicator: ranks %d and %d share one GPU (%.*s), and NCCL takes one rank a GPU: "
                           "give each of them an NCCL_HOSTID of its own, or choose another --comm",
                           other, r, (int)strcspn(two, " "), two);
        }
    }
    return EL_OK;
}

enum el_status el_nccl_check_cards(const struct el_nccl_api *api, struct el_bootstrap *bootstrap, const char *uuid)
{
    int size = el_bootstrap_size(bootstrap);
    char mine[TEXT_BYTES], *texts = calloc((size_t)size, TEXT_BYTES);
    enum el_status made = texts ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no memory");
    enum el_status status = el_bootstrap_agree(bootstrap, made);
    snprintf(mine, sizeof mine, "%.60s %.100s", uuid, api->host_id());
    if (status == EL_OK) status = el_share_texts(bootstrap, mine, TEXT_BYTES, texts);
    if (status == EL_OK) status = compare(texts, size);
    free(texts);
    return status;
}
