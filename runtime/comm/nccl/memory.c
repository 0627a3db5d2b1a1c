/* Memory that NCCL gives and knows: it is worked on in place, without a copy through NCCL's own buffers. Libraries
 * before 2.19 have none, and plain memory serves. */
#include <stdlib.h>

#include "runtime/comm/nccl/comm_nccl.h"

/* Memory may outlive its communicator, which has forgotten it then. */
static void release(void *owner)
{
    struct el_nccl_memory *gone = owner;
    struct el_nccl_memory **link = gone->member ? &gone->member->memories : NULL;
    while (link && *link != gone) link = &(*link)->next;
    if (link) *link = gone->next;
    if (gone->member && gone->member->comm && gone->handle)
        gone->api->memory_deregister(gone->member->comm, gone->handle);
    gone->api->memory_free(gone->memory, gone->device);
    free(gone);
}

enum el_status el_nccl_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p)
{
    struct el_nccl_member *member = state;
    const struct el_nccl_api *api = member->group->api;
    if (mine != EL_OK) return mine;
    if (!api->memory_take)
        return el_fail(EL_ERR_ABSENT, "nccl communicator: memory of its own needs NCCL 2.19 or newer");
    struct el_nccl_memory *made = calloc(1, sizeof *made);
    if (!made) return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no memory");
    *made = (struct el_nccl_memory){.api = api, .device = el_device_index(member->device)};
    if (api->memory_take(&made->memory, bytes, made->device) != 0) {
        free(made);
        return el_fail(EL_ERR_ABSENT, "nccl communicator: no memory of its own: %s", api->last_error());
    }
    made->member = member;
    made->next = member->memories;
    member->memories = made;
    /* It serves as plain memory where NCCL cannot make more of it. */
    if (api->memory_register(member->comm, made->memory, bytes, &made->handle) != 0) made->handle = NULL;
    *memory_p = (struct el_lent_memory){.address = (uintptr_t)made->memory, .release = release, .owner = made};
    return EL_OK;
}

void el_nccl_memory_close(struct el_nccl_member *member)
{
    for (struct el_nccl_memory *one = member->memories; one; one = one->next) {
        if (member->comm && one->handle) one->api->memory_deregister(member->comm, one->handle);
        one->member = NULL;
    }
    member->memories = NULL;
}
