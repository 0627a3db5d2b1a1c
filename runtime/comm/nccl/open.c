/* Opening the communicator `nccl`: the module, NCCL's id on its way to all members, one communicator a GPU. */
#include <stdio.h>

#include "runtime/base/module.h"
#include "runtime/comm/nccl/comm_nccl.h"

enum { MEMBERS_MAX = 64 };

/* Tests have one of their own, with a table that is not NCCL's. */
__attribute__((weak)) enum el_status el_nccl_api_open(const struct el_nccl_api **api_p)
{
    const void *table;
    EL_TRY(el_module_table("nccl", "el_nccl_module", &table));
    *api_p = table;
    return EL_OK;
}

enum el_status el_nccl_version(char *text, size_t bytes)
{
    const struct el_nccl_api *api;
    int version = 0;
    EL_TRY(el_nccl_api_open(&api));
    EL_NCCL_TRY(api, get_version, &version);
    snprintf(text, bytes, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return EL_OK;
}

/* Members of one process are opened by one thread: in a group, as each opening waits for all. */
static enum el_status open_group(struct el_nccl_group *group)
{
    const struct el_nccl_api *api = group->api;
    struct el_nccl_id id;
    struct el_error failure = {.status = EL_OK};
    EL_NCCL_TRY(api, get_unique_id, &id);
    EL_NCCL_TRY(api, group_start);
    for (int i = 0; i < group->n && failure.status == EL_OK; i++) {
        int result =
            api->comm_open(&group->members[i].comm, group->n, &id, i, el_device_index(group->members[i].device));
        if (result != EL_NCCL_OK) el_error_take(el_nccl_check(api, result, "nccl comm_open"), &failure);
    }
    int ended = api->group_end();
    if (failure.status == EL_OK) return el_nccl_check(api, ended, "nccl comm_open, at the group's end");
    return el_error_give(&failure);
}

enum el_status el_nccl_open_members(const struct el_nccl_api *api, const struct el_comm_place *places, int n,
                                    void **states)
{
    struct el_nccl_group *group;
    if (n > 1 && api->launches_block())
        return el_fail(EL_ERR_INVALID,
                       "nccl communicator: CUDA_LAUNCH_BLOCKING is set, and the first of %d GPUs in one process would "
                       "wait for ever for the others: unset it",
                       n);
    EL_TRY(el_nccl_group_create(api, n, 0, n, &group));
    for (int i = 0; i < n; i++) {
        group->members[i].device = places[i].device;
        group->members[i].stream = places[i].stream;
    }
    enum el_status status = open_group(group);
    if (status != EL_OK) {
        el_nccl_group_destroy(group);
        return status;
    }
    for (int i = 0; i < n; i++) states[i] = &group->members[i];
    return EL_OK;
}

/* Rank 0 makes the id; no rank starts to wait for the others in NCCL unless all got so far. */
static enum el_status join(struct el_nccl_group *group, struct el_bootstrap *bootstrap)
{
    const struct el_nccl_api *api = group->api;
    struct el_nccl_id id;
    bool first = el_bootstrap_rank(bootstrap) == 0;
    enum el_status status = first ? el_nccl_check(api, api->get_unique_id(&id), "nccl get_unique_id") : EL_OK;
    EL_TRY(el_bootstrap_agree(bootstrap, status));
    EL_TRY(el_bootstrap_broadcast(bootstrap, &id, sizeof id));
    EL_TRY(el_presence_open(bootstrap, &group->presence));
    bool left = false;
    status = el_nccl_open_watched(group, &id, &left);
    if (left) return status; /* who does not come there does not come to agree either */
    if (status != EL_OK) el_presence_raise(group->presence);
    if (status == EL_OK) status = el_nccl_watch_start(group);
    return el_bootstrap_agree(bootstrap, status);
}

enum el_status el_nccl_open_rank(const struct el_nccl_api *api, struct el_bootstrap *bootstrap, const char *uuid,
                                 struct el_device *device, void **state_p)
{
    struct el_nccl_group *group = NULL;
    EL_TRY(el_nccl_check_cards(api, bootstrap, uuid));
    enum el_status status =
        el_nccl_group_create(api, 1, el_bootstrap_rank(bootstrap), el_bootstrap_size(bootstrap), &group);
    if (status == EL_OK) group->members[0].device = device;
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = join(group, bootstrap);
    if (status == EL_OK)
        *state_p = &group->members[0];
    else if (group)
        el_nccl_group_destroy(group);
    return status;
}

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    const struct el_nccl_api *api;
    if (n > MEMBERS_MAX)
        return el_fail(EL_ERR_INVALID, "nccl communicator: %d members in one process, at most %d", n, MEMBERS_MAX);
    EL_TRY(el_nccl_api_open(&api));
    return el_nccl_open_members(api, places, n, states);
}

static enum el_status open_on(struct el_bootstrap *bootstrap, const struct el_comm_place *place, void **state_p)
{
    struct el_device *device = place->device;
    const struct el_nccl_api *api;
    struct el_device_identity identity;
    enum el_status status =
        el_device_is_asynchronous(device)
            ? el_nccl_api_open(&api)
            : el_fail(EL_ERR_INVALID, "%s: communicator nccl is for GPUs; take --comm auto", el_device_name(device));
    EL_TRY(el_bootstrap_agree(bootstrap, status));
    el_device_identify(device, &identity);
    EL_TRY(el_nccl_open_rank(api, bootstrap, identity.uuid, device, state_p));
    ((struct el_nccl_member *)*state_p)->stream = place->stream;
    return EL_OK;
}

const struct el_comm_backend el_comm_nccl_backend = {
    .name = "nccl", .ops = &el_nccl_ops, .open_on = open_on, .open_members = open_members};
