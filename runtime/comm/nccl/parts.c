/* Groups of some members of the communicator `nccl`, by NCCL's own split, which older libraries do not have: each
 * member splits in its own thread or process, and is a group of one member here, whoever else is of it. */
#include "runtime/comm/nccl/comm_nccl.h"

/* A member that cannot take part ends the group: the others would wait for it in NCCL. */
static enum el_status cannot(void *state, enum el_status mine)
{
    struct el_error cause;
    el_error_take(mine, &cause);
    el_nccl_ops.abort(state);
    return el_error_give(&cause);
}

static void join_whole(struct el_nccl_group *whole, struct el_nccl_group *part)
{
    part->whole = whole;
    pthread_mutex_lock(&whole->lock);
    part->part = whole->part;
    whole->part = part;
    pthread_mutex_unlock(&whole->lock);
}

static enum el_status take_place(struct el_nccl_member *member, struct el_comm_split *split, void *comm)
{
    struct el_nccl_group *whole = member->group, *part;
    enum el_status status =
        el_nccl_check(whole->api, whole->api->comm_place(comm, &split->rank, &split->size), "nccl comm_place");
    if (status == EL_OK && split->size > 1)
        status = el_nccl_group_create(whole->api, 1, split->rank, split->size, &part);
    if (status != EL_OK || split->size <= 1) {
        whole->api->comm_destroy(comm);
        return status;
    }
    part->presence = whole->presence;
    part->patience_ns = whole->patience_ns;
    part->members[0].device = split->place.device;
    part->members[0].stream = split->place.stream;
    part->members[0].comm = comm;
    join_whole(whole->whole, part);
    split->state = &part->members[0];
    return EL_OK;
}

enum el_status el_nccl_split(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct el_nccl_member *member = state;
    const struct el_nccl_api *api = member->group->api;
    void *comm = NULL;
    split->state = NULL;
    split->rank = split->size = 0;
    if (!api->comm_split) return el_fail(EL_ERR_ABSENT, "nccl communicator: a split needs NCCL 2.18 or newer");
    if (mine != EL_OK) return cannot(state, mine);
    EL_TRY(el_nccl_enter(member->group));
    int result = api->comm_split(el_nccl_comm(member), split->color, split->key, &comm);
    el_nccl_leave(member->group);
    if (result != EL_NCCL_OK && el_nccl_is_aborted(member->group)) return el_nccl_say_aborted(member->group);
    EL_TRY(el_nccl_check(api, result, "nccl comm_split"));
    return split->color < 0 ? EL_OK : take_place(member, split, comm);
}
