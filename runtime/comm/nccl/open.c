/* Opens and splits the communicator `nccl`; NCCL's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/module.h"
#include "runtime/comm/nccl/comm_nccl.h"
#include "runtime/comm/share.h"

/* NCCL refuses two members on one card of one host. It tells hosts apart by name and boot, or by NCCL_HOSTID: ranks
 * with different ones count as on different hosts and communicate through the network. */

/* "uuid host-id"; no UUID: unknown, or the card may be shared. */
enum { TEXT_BYTES = 192 };

static enum el_status compare(const char *texts, int size)
{
    for (int r = 0; r < size; r++) {
        for (int other = 0; other < r; other++) {
            const char *one = texts + (size_t)other * TEXT_BYTES, *two = texts + (size_t)r * TEXT_BYTES;
            if (*two == ' ' || strcmp(one, two) != 0) continue;
            return el_fail(
                EL_ERR_INVALID,
                "nccl communicator: ranks %d and %d share one GPU (%.*s), and NCCL takes one rank per GPU: "
                "give each an NCCL_HOSTID of its own (--comm nccl --launcher own does if it is not set), set "
                "NCCL_MULTI_RANK_GPU_ENABLE=1 (NCCL 2.30 or newer), or take --comm shm",
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
    snprintf(mine, sizeof mine, "%.60s %.100s", api->shares_cards() ? "" : uuid, api->host_id());
    if (status == EL_OK) status = el_share_texts(bootstrap, mine, TEXT_BYTES, texts);
    if (status == EL_OK) status = compare(texts, size);
    free(texts);
    return status;
}

enum { MEMBERS_MAX = 64 };

/* Tests override it. */
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
    EL_NCCL_TRY(api, NULL, get_version, &version);
    snprintf(text, bytes, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return EL_OK;
}

/* In a group, since one thread opens all and each opening waits for all. */
static enum el_status open_group(struct el_nccl_group *group)
{
    const struct el_nccl_api *api = group->api;
    struct el_nccl_id id;
    struct el_error failure = {.status = EL_OK};
    EL_NCCL_TRY(api, NULL, get_unique_id, &id);
    EL_NCCL_TRY(api, NULL, group_start);
    for (int i = 0; i < group->n && failure.status == EL_OK; i++) {
        const struct el_device *device = group->members[i].device;
        int result = api->comm_open(&group->members[i].comm, group->n, &id, i, el_device_index(device));
        if (result != EL_NCCL_OK) el_error_take(el_nccl_check(api, device, result, "nccl comm_open"), &failure);
    }
    int ended = api->group_end();
    if (failure.status == EL_OK) return el_nccl_check(api, NULL, ended, "nccl comm_open, at the group's end");
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

/* No rank waits in NCCL before all have got so far. */
static enum el_status join(struct el_nccl_group *group, struct el_bootstrap *bootstrap)
{
    const struct el_nccl_api *api = group->api;
    struct el_nccl_id id;
    bool first = el_bootstrap_rank(bootstrap) == 0;
    enum el_status status = first ? el_nccl_check(api, NULL, api->get_unique_id(&id), "nccl get_unique_id") : EL_OK;
    EL_TRY(el_bootstrap_agree(bootstrap, status));
    EL_TRY(el_bootstrap_broadcast(bootstrap, &id, sizeof id));
    EL_TRY(el_presence_open(bootstrap, &group->presence));
    bool left = false;
    status = el_nccl_open_watched(group, &id, &left);
    if (left) return status; /* a rank missing there will not agree either */
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
    if (status == EL_OK && el_bootstrap_timeout(bootstrap) > 0)
        group->patience_ns = (int64_t)(1e9 * el_bootstrap_timeout(bootstrap));
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

/* ---- splits by NCCL's own; each member is a group of one here ---- */

/* The others would wait for it in NCCL: aborts the group. */
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
    enum el_status status = el_nccl_check(whole->api, split->place.device,
                                          whole->api->comm_place(comm, &split->rank, &split->size), "nccl comm_place");
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

/* Parts of a mesh use one device at the same time: only from 2.26 on NCCL starts their operations in the host's order
 * (NCCL_LAUNCH_ORDER_IMPLICIT, which el_rank_environment asks for). */
static enum el_status check_release(const struct el_nccl_api *api)
{
    enum { ENOUGH = 22600 };
    int version = 0;
    EL_NCCL_TRY(api, NULL, get_version, &version);
    if (api->comm_split && version >= ENOUGH) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "nccl communicator: a mesh needs NCCL 2.26 or newer, and this is %d.%d.%d, where operations of "
                   "several communicators may wait for each other for ever: install nvidia-nccl anew, or give "
                   "--comm tcp",
                   version / 10000, version / 100 % 100, version % 100);
}

enum el_status el_nccl_split(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct el_nccl_member *member = state;
    const struct el_nccl_api *api = member->group->api;
    void *comm = NULL;
    split->state = NULL;
    split->rank = split->size = 0;
    EL_TRY(check_release(api));
    if (mine != EL_OK) return cannot(state, mine);
    EL_TRY(el_nccl_enter(member->group));
    int result = api->comm_split(el_nccl_comm(member), split->color, split->key, &comm);
    EL_TRY(el_nccl_leave_with(member, result, "nccl comm_split"));
    return split->color < 0 ? EL_OK : take_place(member, split, comm);
}

/* Another member's abort may end the communicator meanwhile. */
static void deregister(struct el_nccl_member *member, const struct el_nccl_memory *memory)
{
    if (!memory->handle || !el_nccl_begin(member->group)) return;
    if (member->comm) memory->api->memory_deregister(member->comm, memory->handle);
    el_nccl_leave(member->group);
}

/* Memory may outlive its communicator. */
static void release(void *owner)
{
    struct el_nccl_memory *gone = owner;
    struct el_nccl_memory **link = gone->member ? &gone->member->memories : NULL;
    while (link && *link != gone) link = &(*link)->next;
    if (link) *link = gone->next;
    if (gone->member) deregister(gone->member, gone);
    gone->api->memory_free(gone->memory, gone->device);
    free(gone);
}

/* Of all members or none: where one alone has plain memory, NCCL promises nothing, so that no member falls back. */
static enum el_status register_memory(struct el_nccl_member *member, struct el_nccl_memory *made, size_t bytes)
{
    EL_TRY(el_nccl_enter(member->group));
    int result = made->api->memory_register(member->comm, made->memory, bytes, &made->handle);
    return el_nccl_leave_with(member, result, "nccl memory_register");
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
    enum el_status status =
        el_nccl_check(api, member->device, api->memory_take(&made->memory, bytes, made->device), "nccl memory_take");
    if (status != EL_OK) {
        free(made);
        return cannot(state, el_nccl_explain(member->group, status));
    }
    made->member = member;
    made->next = member->memories;
    member->memories = made;
    status = register_memory(member, made, bytes);
    if (status != EL_OK) {
        release(made);
        return cannot(state, el_nccl_explain(member->group, status));
    }
    *memory_p = (struct el_lent_memory){.address = (uintptr_t)made->memory, .release = release, .owner = made};
    return EL_OK;
}

void el_nccl_memory_close(struct el_nccl_member *member)
{
    for (struct el_nccl_memory *one = member->memories; one; one = one->next) {
        deregister(member, one);
        one->member = NULL;
    }
    member->memories = NULL;
}

const struct el_comm_backend el_comm_nccl_backend = {
    .name = "nccl", .ops = &el_nccl_ops, .open_on = open_on, .open_members = open_members};
