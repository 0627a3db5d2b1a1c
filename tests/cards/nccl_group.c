/* Calls on their way to the streams: what is within a group waits for its end. The first collective of a communicator
 * and the first message of a pair connect the members: the calling thread waits until the others have called too. */
#include <stdlib.h>
#include <string.h>

#include "tests/cards/cards.h"
#include "tests/cards/nccl.h"

struct opening {
    struct ncclComm *comm;
    ncclComm_t *comm_p;
    ncclUniqueId id;
};

/* Lists that grow, and end with the group: a library's memory for threads is scarce. */
static _Thread_local struct {
    int depth, n_calls, n_opens;
    ncclResult_t failure;
    struct nccl_call *calls;
    bool *issued;
    struct opening *opens;
} group;

static void *grow(void *list, int n, size_t bytes)
{
    list = realloc(list, (size_t)n * bytes);
    if (!list) abort();
    return list;
}

int nccl_group_depth(void)
{
    return group.depth;
}

ncclResult_t nccl_group_fail(ncclResult_t result)
{
    if (result != ncclSuccess && group.depth > 0) group.failure = result;
    return result;
}

/* ---- connecting ---- */

static bool all_connect(const void *context)
{
    const struct ncclComm *comm = context;
    for (int r = 0; r < comm->n; r++)
        if (!atomic_load(&comm->world->seats[r].connected)) return false;
    return true;
}

static bool peer_connects(const void *context)
{
    const struct nccl_call *call = context;
    struct nccl_seat *peer = &call->comm->world->seats[call->peer];
    int rank = call->comm->rank;
    return atomic_load(call->asked.verb == NCCL_SEND ? &peer->from[rank] : &peer->to[rank]) != 0;
}

static void begin_to_connect(const struct nccl_call *call)
{
    struct nccl_seat *mine = &call->comm->world->seats[call->comm->rank];
    if (call->asked.verb < NCCL_SEND)
        atomic_store(&mine->connected, 1);
    else
        atomic_store(call->asked.verb == NCCL_SEND ? &mine->to[call->peer] : &mine->from[call->peer], 1);
    nccl_world_changed(call->comm->world);
}

static bool connect_all(const struct nccl_call *call)
{
    struct ncclComm *comm = call->comm;
    bool *known = call->asked.verb < NCCL_SEND    ? &comm->connected
                  : call->asked.verb == NCCL_SEND ? &comm->to[call->peer]
                                                  : &comm->from[call->peer];
    if (!*known)
        *known = nccl_world_wait(comm->world, call->asked.verb < NCCL_SEND ? all_connect : peer_connects,
                                 call->asked.verb < NCCL_SEND ? (const void *)comm : call, comm, NULL);
    return *known;
}

/* ---- issuing ---- */

/* The messages of the group that have the communicator and the stream of the one at `i`, in one item. */
static ncclResult_t issue_messages(int i)
{
    struct nccl_call *some = calloc((size_t)(group.n_calls - i), sizeof *some);
    int n = 0;
    if (!some) abort();
    for (int k = i; k < group.n_calls; k++) {
        const struct nccl_call *call = &group.calls[k];
        if (call->comm != group.calls[i].comm || call->stream != group.calls[i].stream) continue;
        if (call->asked.verb < NCCL_SEND) continue;
        some[n++] = *call;
        group.issued[k] = true;
    }
    ncclResult_t result = nccl_item_issue(some, n);
    free(some);
    return result;
}

/* NCCL could do it, at the price of one that holds up the other. */
static void check_one_communicator(void)
{
    const struct nccl_world *world = NULL;
    for (int i = 0; i < group.n_calls; i++) {
        if (group.calls[i].asked.verb >= NCCL_SEND) continue;
        if (world && group.calls[i].comm->world != world) nccl_breach("collectives of two communicators in a group");
        world = group.calls[i].comm->world;
    }
}

static ncclResult_t issue_all(void)
{
    ncclResult_t result = ncclSuccess;
    check_one_communicator();
    for (int i = 0; i < group.n_calls; i++) begin_to_connect(&group.calls[i]);
    for (int i = 0; i < group.n_calls; i++)
        if (!connect_all(&group.calls[i])) return nccl_fail(ncclInternalError, "aborted while members connected");
    for (int i = 0; i < group.n_calls && result == ncclSuccess; i++) {
        if (group.issued[i]) continue;
        if (group.calls[i].asked.verb < NCCL_SEND)
            result = nccl_item_issue(&group.calls[i], 1);
        else
            result = issue_messages(i);
    }
    return result;
}

static ncclResult_t open_all(void)
{
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < group.n_opens && result == ncclSuccess; i++) result = nccl_comm_arrive(group.opens[i].comm);
    for (int i = 0; i < group.n_opens && result == ncclSuccess; i++) {
        result = nccl_comm_meet(group.opens[i].comm, &group.opens[i].id);
        if (result == ncclSuccess) *group.opens[i].comm_p = group.opens[i].comm;
    }
    return result;
}

static void give_up_opens(void)
{
    for (int i = 0; i < group.n_opens; i++) {
        nccl_comm_end(group.opens[i].comm);
        *group.opens[i].comm_p = NULL;
    }
}

/* Enters or leaves each communicator of the group. */
static void each_comm(void (*pass)(struct ncclComm *comm))
{
    for (int i = 0; i < group.n_calls; i++) {
        bool again = false;
        for (int before = 0; before < i; before++) again |= group.calls[before].comm == group.calls[i].comm;
        if (!again) pass(group.calls[i].comm);
    }
}

static ncclResult_t flush(void)
{
    ncclResult_t result = group.failure;
    each_comm(nccl_comm_enter);
    if (result == ncclSuccess) result = open_all();
    if (result != ncclSuccess) give_up_opens();
    if (result == ncclSuccess) result = issue_all();
    each_comm(nccl_comm_leave);
    free(group.calls);
    free(group.issued);
    free(group.opens);
    memset(&group, 0, sizeof group);
    return result;
}

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group.depth == 0) return nccl_fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
    return --group.depth > 0 ? ncclSuccess : flush();
}

ncclResult_t nccl_group_open(struct ncclComm *comm, ncclComm_t *comm_p, const ncclUniqueId *id)
{
    group.opens = grow(group.opens, ++group.n_opens, sizeof *group.opens);
    group.opens[group.n_opens - 1] = (struct opening){comm, comm_p, *id};
    return group.depth > 0 ? ncclSuccess : flush();
}

/* ---- calls ---- */

/* The bytes that the member reads and writes: of a collective, of both sides, as far as they mean anything. */
static void check_memory(const struct nccl_call *call)
{
    const struct nccl_asked *asked = &call->asked;
    bool is_root = call->comm->rank == asked->root;
    size_t part = asked->count * nccl_type_bytes(asked->type), all = part * (size_t)call->comm->n;
    size_t from = asked->verb == NCCL_REDUCE_SCATTER ? all : part, to = asked->verb == NCCL_ALL_GATHER ? all : part;
    if (asked->verb == NCCL_RECEIVE || (asked->verb == NCCL_BROADCAST && !is_root)) from = 0;
    if (asked->verb == NCCL_SEND || (asked->verb == NCCL_REDUCE && !is_root)) to = 0;
    size_t left = 0;
    if (from > 0 && (cards_device_of(call->data, &left) != call->comm->device || left < from))
        nccl_breach("%zu bytes to be read are not memory of card %d", from, call->comm->device);
    if (to > 0 && (cards_device_of(call->result, &left) != call->comm->device || left < to))
        nccl_breach("%zu bytes to be written are not memory of card %d", to, call->comm->device);
}

static ncclResult_t check(const struct nccl_call *call)
{
    const struct nccl_asked *asked = &call->asked;
    bool is_message = asked->verb >= NCCL_SEND;
    int peer = is_message ? call->peer : asked->root;
    if (peer < 0 || peer >= call->comm->n) return nccl_fail(ncclInvalidArgument, "rank %d of %d", peer, call->comm->n);
    if (nccl_type_bytes(asked->type) == 0)
        return nccl_fail(ncclInvalidArgument, "type %d is not of this fake", asked->type);
    if (is_message && peer == call->comm->rank && group.depth == 0)
        nccl_breach("rank %d sends to itself outside a group, and would wait for ever", peer);
    if (cards_stream_device(call->stream) != call->comm->device)
        nccl_breach("a communicator of card %d and a stream of card %d", call->comm->device,
                    cards_stream_device(call->stream));
    check_memory(call);
    return ncclSuccess;
}

static ncclResult_t take(const struct nccl_call *call)
{
    if (!call->comm) return nccl_fail(ncclInvalidArgument, "comm argument is NULL");
    nccl_comm_enter(call->comm);
    ncclResult_t result = nccl_group_fail(check(call));
    nccl_comm_leave(call->comm);
    if (result != ncclSuccess || call->asked.count == 0) return result; /* NCCL moves no nothing */
    group.calls = grow(group.calls, ++group.n_calls, sizeof *group.calls);
    group.issued = grow(group.issued, group.n_calls, sizeof *group.issued);
    group.calls[group.n_calls - 1] = *call;
    group.issued[group.n_calls - 1] = false;
    return group.depth > 0 ? ncclSuccess : flush();
}

/* NCCL's text: if one member's memory is registered, all members' is, or the result is undefined. */
static bool is_registered(const struct ncclComm *comm, const char *address)
{
    for (int i = 0; comm && i < comm->n_registered; i++)
        if (address >= comm->registered[i] && address < comm->registered[i] + comm->registered_bytes[i]) return true;
    return false;
}

static ncclResult_t collective(enum nccl_verb verb, const void *data, void *result, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, int root, ncclComm_t comm, cudaStream_t stream)
{
    struct nccl_call call = {.comm = comm, .stream = stream, .data = data, .result = result};
    call.asked = (struct nccl_asked){.verb = verb,
                                     .type = (int)type,
                                     .reduction = (int)reduction,
                                     .root = root,
                                     .registered = is_registered(comm, data),
                                     .count = count};
    return take(&call);
}

static ncclResult_t message(enum nccl_verb verb, const void *data, void *result, size_t count, ncclDataType_t type,
                            int peer, ncclComm_t comm, cudaStream_t stream)
{
    struct nccl_call call = {.comm = comm, .stream = stream, .data = data, .result = result, .peer = peer};
    call.asked = (struct nccl_asked){.verb = verb, .type = (int)type, .count = count};
    return take(&call);
}

ncclResult_t ncclAllReduce(const void *data, void *result, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream)
{
    return collective(NCCL_ALL_REDUCE, data, result, count, type, reduction, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void *data, void *result, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    return collective(NCCL_BROADCAST, data, result, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclReduce(const void *data, void *result, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    return collective(NCCL_REDUCE, data, result, count, type, reduction, root, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *data, void *result, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t comm, cudaStream_t stream)
{
    return collective(NCCL_REDUCE_SCATTER, data, result, count, type, reduction, 0, comm, stream);
}

ncclResult_t ncclAllGather(const void *data, void *result, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return collective(NCCL_ALL_GATHER, data, result, count, type, ncclSum, 0, comm, stream);
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return message(NCCL_SEND, data, NULL, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *result, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return message(NCCL_RECEIVE, NULL, result, count, type, peer, comm, stream);
}
