/* Opening, closing, settings and queries. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/comm/member.h"
#include "runtime/comm/mpi/module.h"

static const struct el_comm_backend self_backend = {.name = "self"};
/* Replaced by the module's own row when a group of more than one opens the module. */
static const struct el_comm_backend mpi_backend = {.name = "mpi"};

static const struct el_comm_backend *const between_ranks[] = {&mpi_backend, &el_comm_shm_backend, &el_comm_tcp_backend,
                                                              &el_comm_nccl_backend};

static void release(struct el_comm *comm)
{
    if (!comm) return;
    if (comm->place.stream != EL_COMM_NO_STREAM) el_device_give_back_stream(comm->place.device, comm->place.stream);
    free(comm->known);
    free(comm->headers);
    free(comm->partners);
    free(comm->parts);
    free(comm);
}

static enum el_status create(const struct el_comm_backend *backend, struct el_device *device, int rank, int size,
                             struct el_comm **comm_p)
{
    struct el_comm *comm = calloc(1, sizeof *comm);
    if (!comm) return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", backend->name);
    *comm = (struct el_comm){.backend = backend,
                             .place.device = device,
                             .rank = rank,
                             .size = size,
                             .first = comm,
                             .group = comm,
                             .number = 1,
                             .n_parts = 1};
    enum el_status status = size > 1 ? el_device_take_stream(device, &comm->place.stream) : EL_OK;
    if (status == EL_OK)
        *comm_p = comm;
    else
        free(comm);
    return status;
}

enum el_status el_comm_open_self(struct el_device *device, struct el_comm **comm_p)
{
    return create(&self_backend, device, 0, 1, comm_p);
}

static enum el_status open_members(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                   struct el_comm **made, struct el_comm_place *places, void **states)
{
    for (int i = 0; i < n; i++) {
        EL_TRY(create(backend, devices[i], i, n, &made[i]));
        made[i]->group = made[i]->first = made[0];
        made[i]->n_parts = n;
        places[i] = made[i]->place;
    }
    made[0]->parts = calloc((size_t)n, sizeof *made[0]->parts);
    if (!made[0]->parts) return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", backend->name);
    if (n > 1) EL_TRY(backend->open_members(places, n, states));
    for (int i = 0; i < n; i++) made[i]->state = states[i];
    return EL_OK;
}

enum el_status el_comm_open_with(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                 struct el_comm **comms)
{
    if (n < 1) return el_fail(EL_ERR_INVALID, "local communicator: %d members", n);
    void **states = calloc((size_t)n, sizeof *states);
    struct el_comm **made = calloc((size_t)n, sizeof(struct el_comm *));
    struct el_comm_place *places = calloc((size_t)n, sizeof *places);
    enum el_status status = states && made && places ? open_members(backend, devices, n, made, places, states)
                                                     : el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory");
    for (int i = 0; made && i < n; i++) {
        if (status == EL_OK)
            comms[i] = made[i];
        else
            release(made[i]);
    }
    free(places);
    free(made);
    free(states);
    return status;
}

enum el_status el_comm_open_local(struct el_device *const *devices, int n, struct el_comm **comms)
{
    return el_comm_open_with(el_comm_choose_members(devices, n, false), devices, n, comms);
}

enum el_status el_comm_open_together(struct el_device *const *devices, int n, struct el_comm **comms)
{
    EL_TRY(el_comm_open_with(el_comm_choose_members(devices, n, true), devices, n, comms));
    for (int i = 0; i < n; i++) comms[i]->together = n > 1;
    return EL_OK;
}

static enum el_status open_group(const struct el_comm_backend **backend, struct el_bootstrap *bootstrap,
                                 const struct el_comm_place *place, void **state_p)
{
    int rank = el_bootstrap_rank(bootstrap), size = el_bootstrap_size(bootstrap);
    if ((*backend)->open_on) return (*backend)->open_on(bootstrap, place, state_p);
    if (*backend == &mpi_backend) {
        const struct el_mpi_module *module;
        if (strcmp(el_bootstrap_kind(bootstrap), "mpi") != 0)
            return el_fail(EL_ERR_INVALID, "communicator mpi: needs the bootstrap mpi");
        EL_TRY(el_mpi_module_open(&module));
        *backend = module->comm;
    }
    EL_TRY((*backend)->open_ranks(bootstrap, state_p));
    return el_device_is_asynchronous(place->device) ? el_staged_wrap(place, rank, size, backend, state_p) : EL_OK;
}

enum el_status el_comm_open_ranks(const char *kind, struct el_bootstrap *bootstrap, struct el_device *device,
                                  struct el_comm **comm_p)
{
    const struct el_comm_backend *backend = NULL;
    for (size_t i = 0; i < sizeof between_ranks / sizeof between_ranks[0]; i++)
        if (strcmp(kind, between_ranks[i]->name) == 0) backend = between_ranks[i];
    if (!backend)
        return el_fail(EL_ERR_ABSENT, "communicator %s: not available between ranks (these are: mpi, shm, tcp, nccl)",
                       kind);
    int rank = el_bootstrap_rank(bootstrap), size = el_bootstrap_size(bootstrap);
    struct el_comm *comm;
    EL_TRY(create(backend, device, rank, size, &comm));
    enum el_status status = size > 1 ? open_group(&comm->backend, bootstrap, &comm->place, &comm->state) : EL_OK;
    if (status != EL_OK) {
        release(comm);
        return status;
    }
    *comm_p = comm;
    return EL_OK;
}

void el_comm_close(struct el_comm *comm)
{
    if (comm && comm->state) comm->backend->ops->close(comm->state);
    if (comm) el_device_free(comm->mailboxes);
    release(comm);
}

void el_comm_name(struct el_comm *comm, const char *name, int index)
{
    comm->name = name;
    comm->number = el_hash(el_hash(EL_HASH_BEGIN, name, strlen(name)), &index, sizeof index);
}

int el_comm_rank(const struct el_comm *comm)
{
    return comm->rank;
}

int el_comm_size(const struct el_comm *comm)
{
    return comm->size;
}

const char *el_comm_backend(const struct el_comm *comm)
{
    return comm->backend->name;
}

struct el_device *el_comm_device(const struct el_comm *comm)
{
    return comm->place.device;
}

bool el_comm_has_verb(const struct el_comm *comm, enum el_comm_verb verb)
{
    if (el_comm_verb_row(verb)->is_link && !comm->partners) return false;
    return comm->state ? comm->backend->ops->verbs >> verb & 1 : !el_comm_verb_row(verb)->is_link;
}

bool el_comm_has_reduction(const struct el_comm *comm, enum el_comm_reduction reduction, enum el_dtype dtype)
{
    bool (*reduces)(enum el_comm_reduction, enum el_dtype) = comm->state ? comm->backend->ops->reduces : NULL;
    return el_comm_reduces(reduction, dtype) && (!reduces || reduces(reduction, dtype));
}

enum el_status el_comm_set_algorithm(struct el_comm *comm, enum el_comm_algorithm algorithm)
{
    if (algorithm != EL_COMM_AUTO && comm->state && !comm->backend->ops->choose)
        return el_fail(EL_ERR_ABSENT, "communicator %s: its library chooses the algorithm, not '%s'",
                       comm->backend->name, el_comm_algorithm_name(algorithm));
    comm->forced = algorithm;
    return EL_OK;
}

enum el_status el_comm_alloc(struct el_comm *comm, enum el_tag tag, size_t bytes, const char *name,
                             struct el_buffer **buffer_p)
{
    struct el_device *device = comm->place.device;
    struct el_lent_memory memory;
    if (!comm->state || !comm->backend->ops->alloc || el_device_is_simulated(device))
        return el_device_alloc(device, tag, bytes, name, buffer_p);
    enum el_status mine = el_device_has_room(device, tag, bytes, name);
    enum el_status status = comm->backend->ops->alloc(comm->state, bytes, mine, &memory);
    if (status == EL_ERR_ABSENT) return el_device_alloc(device, tag, bytes, name, buffer_p);
    EL_TRY(status);
    status = el_device_adopt(device, tag, bytes, name, &memory, buffer_p);
    if (status != EL_OK) memory.release(memory.owner);
    return status;
}

static enum el_status check_opening(const struct el_comm *comm)
{
    const char *name = comm->backend->name;
    if (!(comm->backend->ops->verbs >> EL_COMM_SEND & 1))
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no send", name);
    if (comm->together)
        return el_fail(EL_ERR_INVALID, "communicator %s: no mailboxes between members of one thread", name);
    if (comm->partners) return el_fail(EL_ERR_INVALID, "communicator %s: mailboxes are open already", name);
    return EL_OK;
}

static enum el_status open_mailboxes(struct el_comm *comm, bool *partners, int n, size_t bytes)
{
    const struct el_comm_ops *ops = comm->backend->ops;
    enum el_status mine = EL_OK;
    bool all_ask = ops->alloc && !ops->asynchronous;
    if (!ops->brings_boxes && (n > 0 || all_ask))
        mine = el_comm_alloc(comm, EL_TAG_MAILBOX, bytes * (size_t)n, "mailboxes", &comm->mailboxes);
    if (mine == EL_OK && !partners)
        mine = el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", comm->backend->name);
    if (el_device_is_simulated(comm->place.device)) return mine;
    void *boxes = comm->mailboxes ? (void *)comm->mailboxes->address : NULL; /* NOLINT(performance-no-int-to-ptr) */
    return ops->open_mailboxes(comm->state, mine, partners, boxes, bytes);
}

enum el_status el_comm_open_mailboxes(struct el_comm *comm, const bool *partners, size_t bytes)
{
    int n = 0;
    if (!comm->state) return EL_OK;
    EL_TRY(check_opening(comm));
    bool *kept = calloc((size_t)comm->size, sizeof *kept);
    for (int r = 0; kept && r < comm->size; r++) {
        kept[r] = r != comm->rank && (!partners || partners[r]);
        n += kept[r];
    }
    enum el_status status = open_mailboxes(comm, kept, n, bytes);
    if (status == EL_OK) {
        comm->partners = kept;
        comm->mailbox_bytes = bytes;
        return EL_OK;
    }
    el_device_free(comm->mailboxes);
    comm->mailboxes = NULL;
    free(kept);
    return status;
}

static void settle_part(struct el_comm *part, const struct el_comm_split *split)
{
    part->backend = split->backend;
    part->rank = split->rank;
    part->size = split->size;
    part->state = split->state;
    if (!split->group) return;
    part->group = split->group;
    part->n_parts = split->size;
}

enum el_status el_comm_split(struct el_comm *comm, int color, int key, struct el_comm **part_p)
{
    struct el_comm *part = NULL;
    struct el_comm_split split = {.color = color, .key = key, .backend = comm->backend, .size = 1};
    enum el_status status = EL_OK;
    if (comm->together)
        return el_fail(EL_ERR_INVALID, "communicator %s: members that one thread issues for cannot be split",
                       comm->backend->name);
    if (comm->state && !comm->backend->ops->split)
        return el_fail(EL_ERR_ABSENT, "communicator %s: cannot be split", comm->backend->name);
    if (color >= 0) status = create(comm->backend, comm->place.device, 0, 2, &part);
    if (part) split.place = part->place;
    if (comm->state) status = comm->backend->ops->split(comm->state, status, &split);
    if (status != EL_OK) {
        release(part);
        return status;
    }
    if (part) settle_part(part, &split);
    const uint64_t words[] = {comm->number, comm->n_split++, (unsigned)color};
    if (part) part->number = el_hash(EL_HASH_BEGIN, words, sizeof words);
    *part_p = part;
    return EL_OK;
}

void el_comm_abort(struct el_comm *comm)
{
    if (comm->state) comm->backend->ops->abort(comm->state);
}

void el_comm_begin_program(struct el_comm *comm, bool again)
{
    comm->kept = comm->issued;
    if (again)
        comm->issued = comm->first_issued;
    else
        comm->first_issued = comm->issued;
}

void el_comm_end_program(struct el_comm *comm)
{
    if (comm->issued < comm->kept) comm->issued = comm->kept;
}

void el_comm_mute(struct el_comm *comm, bool muted)
{
    comm->muted = muted;
}

enum el_status el_comm_set_timeout(struct el_comm *comm, double seconds)
{
    if (seconds < 0)
        return el_fail(EL_ERR_INVALID, "communicator %s: a time-out of %g s", comm->backend->name, seconds);
    if (!comm->state) return EL_OK;
    if (comm->backend->ops->set_timeout)
        comm->backend->ops->set_timeout(comm->state, (int64_t)(seconds * 1e9));
    else if (seconds > 0)
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no time-out", comm->backend->name);
    return EL_OK;
}
