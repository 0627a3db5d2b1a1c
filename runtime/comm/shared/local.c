/* Members of one process, with direct access to each other's memory (engine.h). */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/shared/engine.h"

enum { ALIGNMENT = 64 };

struct local_group {
    _Atomic int open;
    struct el_shared_care care;
    void *links_memory; /* of all mailboxes; NULL: none */
    char *links;
    struct el_shared_face faces[];
};

struct local_member {
    struct el_shared shared;
    struct local_group *group;
};

static bool place(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p)
{
    (void)owner;
    (void)bytes;
    *place_p = (struct el_shared_place){.region = 1, .offset = (uintptr_t)address};
    return true;
}

static void *address(void *owner, const struct el_shared_place *where)
{
    (void)owner;
    return (void *)(uintptr_t)where->offset;
}

static const struct el_shared_ways ways = {.place = place, .address = address};

static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    struct el_shared *shared = &((struct local_member *)state)->shared;
    const struct el_comm_shape shape = el_comm_task_shape(task, shared->rank, shared->size);
    return el_comm_reserve_scratch("local", &shape, &shared->scratch, &shared->scratch_bytes);
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    EL_TRY(el_shared_ready(state));
    EL_TRY(reserve(state, task)); /* does something only for exchanges between steps */
    return el_shared_run(state, task);
}

/* The first member allocates the links, and the group owns them: a member may be aborted while another is closed.
 * Pages of unused links are never touched. */
static enum el_status open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct local_member *member = state;
    struct el_shared *shared = &member->shared;
    size_t own = el_shared_links_bytes(shared->size);
    if (mine == EL_OK && shared->rank == 0) {
        void *memory = member->group->links_memory = calloc(own * (size_t)shared->size + ALIGNMENT, 1);
        member->group->links = (char *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        if (!memory) mine = el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory for mailboxes");
    }
    EL_TRY(el_shared_agree(shared, mine, 0, NULL));
    return el_shared_open_mail(shared, EL_OK, partners, member->group->links + own * (size_t)shared->rank, boxes,
                               bytes);
}

static void leave_group(struct local_group *group)
{
    if (atomic_fetch_sub(&group->open, 1) != 1) return;
    free(group->links_memory);
    free(group);
}

static void close_member(void *state)
{
    struct local_member *member = state;
    if (!member) return;
    leave_group(member->group);
    free(member->shared.scratch);
    el_shared_close(&member->shared);
    free(member);
}

static enum el_status open_group(int n, struct local_group **group_p)
{
    size_t bytes = sizeof(struct local_group) + (size_t)n * sizeof(struct el_shared_face);
    if (n > EL_SHARED_MEMBERS_MAX)
        return el_fail(EL_ERR_INVALID, "local communicator: at most %d members", EL_SHARED_MEMBERS_MAX);
    struct local_group *group = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory for %d members", n);
    memset(group, 0, bytes);
    atomic_init(&group->open, n);
    *group_p = group;
    return EL_OK;
}

static enum el_status open_member(struct local_group *group, int rank, int n, void **state_p)
{
    struct local_member *member = calloc(1, sizeof *member);
    enum el_status status = member ? el_shared_open(&member->shared, "local", rank, n, group->faces)
                                   : el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory");
    if (status != EL_OK) {
        free(member);
        return status;
    }
    member->shared.care = &group->care;
    member->shared.ways = &ways;
    member->group = group;
    *state_p = member;
    return EL_OK;
}

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    (void)places;
    struct local_group *group;
    EL_TRY(open_group(n, &group));
    for (int i = 0; i < n; i++) {
        enum el_status status = open_member(group, i, n, &states[i]);
        if (status == EL_OK) continue;
        atomic_store(&group->open, i);
        if (i == 0) free(group);
        while (i-- > 0) close_member(states[i]);
        return status;
    }
    return EL_OK;
}

/* The new group's first member allocates it; the others get its pointer as a number. If not all enter, those who did
 * own the group, finally the first. */
static enum el_status split(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct el_shared *shared = &((struct local_member *)state)->shared;
    int members[EL_SHARED_MEMBERS_MAX];
    uint64_t words[EL_SHARED_MEMBERS_MAX];
    struct local_group *group = NULL;
    EL_TRY(el_shared_agree(shared, mine, el_comm_split_word(split), words));
    el_comm_split_plan(words, shared->size, shared->rank, split, members);
    if (split->size > 1 && split->rank == 0) mine = open_group(split->size, &group);
    enum el_status status = el_shared_agree(shared, mine, (uintptr_t)group, words);
    if (status != EL_OK) {
        free(group);
        return status;
    }
    if (split->size < 2) return el_shared_agree(shared, EL_OK, 0, NULL);
    group = (struct local_group *)(uintptr_t)words[members[0]];
    split->group = group;
    mine = open_member(group, split->rank, split->size, &split->state);
    if (mine != EL_OK) leave_group(group);
    status = el_shared_agree(shared, mine, 0, NULL);
    if (status == EL_OK) return EL_OK;
    close_member(split->state);
    split->state = NULL;
    return status;
}

static const struct el_comm_ops local_ops = {
    .verbs = EL_SHARED_VERBS,
    .run = run,
    .reserve = reserve,
    .choose = el_shared_choose,
    .open_mailboxes = open_mailboxes,
    .set_timeout = el_shared_set_timeout,
    .split = split,
    .abort = el_shared_abort,
    .close = close_member,
};

const struct el_comm_backend el_comm_local_backend = {.name = "local", .ops = &local_ops, .open_members = open_members};
