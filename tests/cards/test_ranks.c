/* Ranks with a card each, in processes of their own: `nccl`, how they open it and split it, peers that die or stop, a
 * card that two of them share; and the whole check of communicators staged through shared memory, on streams that run
 * out of step. */
#include <stdatomic.h>

#include "runtime/base/clock.h"
#include "runtime/comm/nccl/comm_nccl.h"
#include "runtime/comm/share.h"
#include "tests/cards/cards_cases.h"
#include "tests/conformance/comm_product.h"
#include "tests/conformance/comm_splits.h"
#include "tests/unit/star_bootstrap.h"

static struct el_nccl_api api; /* the library's own, with what a test puts in its place */

static void load_api(void)
{
    const struct el_nccl_api *library;
    with_nccl = true;
    if (el_nccl_api_open(&library) != EL_OK) fail_msg("%s", el_error_message());
    api = *library;
}

static int done(const struct star *star, enum el_status status)
{
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", star->base.rank, el_error_message());
    return status == EL_OK ? 0 : 1;
}

/* For a rank's own process, whose device ends with it. */
static enum el_status open_rank(struct star *star, void **state_p)
{
    char uuid[32];
    snprintf(uuid, sizeof uuid, "GPU-%d", star->base.rank);
    return el_nccl_open_rank(&api, &star->base, uuid, open_card(star->base.rank), state_p);
}

static int be_one_of_whom_one_fails(struct star *star, void *context)
{
    (void)context;
    void *state;
    if (star->base.rank == 1) cards_set_failures("ncclCommInitRankConfig:*:1=5");
    enum el_status status = open_rank(star, &state);
    return status == (star->base.rank == 1 ? EL_ERR_INVALID : EL_ERR_PEER) ? 0 : 1;
}

static void a_rank_that_cannot_open_it_ends_the_others(void **state)
{
    for (int size = 2; size <= RANKS_MAX; size++) assert_int_equal(star_ranks(size, be_one_of_whom_one_fails, NULL), 0);
}

static int be_split_by_an_old_library(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_nccl_api old = api;
    struct el_comm_split split = {.color = 0};
    old.comm_split = NULL;
    if (done(star, el_nccl_open_rank(&old, &star->base, "", open_card(star->base.rank), &state))) return 1;
    bool right = el_nccl_ops.split(state, EL_OK, &split) == EL_ERR_ABSENT && strstr(el_error_message(), "2.26");
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

/* A rank without room for its part ends the whole, for the others are in NCCL already. */
static int be_split_without_room(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_comm_split split = {.color = 0};
    if (done(star, open_rank(star, &state))) return 1;
    enum el_status mine = el_fail(EL_ERR_INVALID, "no stream is free");
    bool right = el_nccl_ops.split(state, mine, &split) == EL_ERR_INVALID;
    right &= strcmp(el_error_message(), "no stream is free") == 0;
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

static void ranks_that_cannot_split_say_so(void **state)
{
    assert_int_equal(star_ranks(2, be_split_by_an_old_library, NULL), 0);
    assert_int_equal(star_ranks(2, be_split_without_room, NULL), 0);
}

/* Polls as the host does at a step's end. Returns what it came to, within two seconds. */
static enum el_status wait_for_trouble(void *state)
{
    for (int64_t end_ns = el_clock_ns() + 2000000000; el_clock_ns() < end_ns; usleep(1000)) {
        enum el_status status = el_nccl_ops.poll(state);
        if (status != EL_OK) return status;
    }
    return EL_OK;
}

static int be_one_of_whom_one_dies(struct star *star, void *context)
{
    (void)context;
    void *state;
    if (done(star, open_rank(star, &state))) return 1;
    if (star->base.rank == star->base.size - 1) raise(SIGKILL);
    enum el_status status = wait_for_trouble(state);
    bool right = status == EL_ERR_PEER && strstr(el_error_message(), "is gone");
    el_nccl_ops.abort(state);
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

static int be_one_of_whom_one_stops(struct star *star, void *context)
{
    (void)context;
    void *state;
    bool right = true;
    if (done(star, open_rank(star, &state))) return 1;
    if (star->base.rank == star->base.size - 1)
        usleep(30000);
    else
        right = wait_for_trouble(state) == EL_ERR_PEER && strstr(el_error_message(), "has failed");
    el_nccl_ops.abort(state);
    el_bootstrap_barrier(&star->base);
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

static void a_rank_that_dies_or_stops_is_noticed(void **state)
{
    for (int size = 2; size <= RANKS_MAX; size++) {
        assert_int_equal(star_ranks(size, be_one_of_whom_one_dies, NULL), 1); /* the dead one */
        assert_int_equal(star_ranks(size, be_one_of_whom_one_stops, NULL), 0);
    }
}

/* NCCL itself waits for ever for a rank that died on its way there. */
static int open_until_killed(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device)
{
    (void)comm_p, (void)id, (void)device;
    if (rank == n - 1) raise(SIGKILL);
    while (getppid() >= 0) pause();
    return 0;
}

static int be_opened_with_one_that_dies(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_nccl_api waiting = api;
    waiting.comm_open = open_until_killed;
    int64_t begin_ns = el_clock_ns();
    enum el_status status = el_nccl_open_rank(&waiting, &star->base, "", open_card(star->base.rank), &state);
    bool right = status == EL_ERR_PEER && strstr(el_error_message(), "is gone");
    return right && el_clock_ns() - begin_ns < 2000000000 ? 0 : 1;
}

static atomic_bool ended;

static int split_until_aborted(void *comm, int color, int key, void **comm_p)
{
    (void)comm, (void)color, (void)key, (void)comm_p;
    while (!atomic_load(&ended)) usleep(1000);
    return EL_NCCL_REMOTE;
}

static int (*library_abort)(void *comm);

static int abort_and_end(void *comm)
{
    int result = library_abort(comm);
    atomic_store(&ended, true);
    return result;
}

static int be_split_with_one_that_dies(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_nccl_api waiting = api;
    struct el_comm_split split = {.color = 0};
    waiting.comm_split = split_until_aborted;
    library_abort = api.comm_abort;
    waiting.comm_abort = abort_and_end;
    if (done(star, el_nccl_open_rank(&waiting, &star->base, "", open_card(star->base.rank), &state))) return 1;
    if (star->base.rank == star->base.size - 1) raise(SIGKILL);
    enum el_status status = el_nccl_ops.split(state, EL_OK, &split);
    bool right = status == EL_ERR_PEER && strstr(el_error_message(), "is gone");
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

static void a_call_that_waits_for_a_dead_rank_is_ended(void **state)
{
    assert_int_equal(star_ranks(3, be_opened_with_one_that_dies, NULL), 1);
    /* Who sees first that it is gone says so to the others. */
    assert_int_equal(star_ranks(2, be_split_with_one_that_dies, NULL), 1);
}

/* The last rank is stopped until the first has named it. */
static int be_one_of_whom_one_is_stopped(struct star *star, void *context)
{
    (void)context;
    void *state;
    if (done(star, open_rank(star, &state))) return 1;
    el_nccl_ops.set_timeout(state, 300000000);
    if (star->base.rank == 1) raise(SIGSTOP);
    enum el_status status = star->base.rank == 0 ? wait_for_trouble(state) : EL_ERR_PEER;
    bool named = strstr(el_error_message(), "not finished after 0.3 s: rank 1 (process ") &&
                 strstr(el_error_message(), ") is stopped");
    kill(0, SIGCONT);
    el_nccl_ops.abort(state);
    el_nccl_ops.close(state);
    return status == EL_ERR_PEER && (star->base.rank == 1 || named) ? 0 : 1;
}

static void a_rank_that_is_stopped_is_named(void **state)
{
    assert_int_equal(star_ranks(2, be_one_of_whom_one_is_stopped, NULL), 0);
}

/* `context`: a host id a rank, or NULL. */
static int be_on_a_shared_card(struct star *star, void *context)
{
    void *state;
    const char *const *host_ids = context;
    setenv("NCCL_HOSTID", host_ids ? host_ids[star->base.rank] : "", 1);
    enum el_status status = el_nccl_open_rank(&api, &star->base, star->base.rank == 0 ? "GPU-a" : "GPU-b",
                                              open_card(star->base.rank), &state);
    if (status == EL_OK) el_nccl_ops.close(state);
    bool said =
        strstr(el_error_message(), "ranks 1 and 2 share one GPU (GPU-b)") && strstr(el_error_message(), "NCCL_HOSTID");
    return host_ids ? status != EL_OK : status != EL_ERR_INVALID || !said;
}

static bool cards_may_be_shared(void)
{
    return true;
}

static void ranks_that_share_a_card_are_told(void **state)
{
    const char *host_ids[] = {"", "one", "two"}, *none[] = {"", "", ""};
    assert_int_equal(star_ranks(3, be_on_a_shared_card, NULL), 0);
    assert_int_equal(star_ranks(3, be_on_a_shared_card, (void *)host_ids), 0);
    api.shares_cards = cards_may_be_shared;
    assert_int_equal(star_ranks(3, be_on_a_shared_card, (void *)none), 0);
    load_api();
}

/* CPU devices never open the module. */
static void cpu_devices_are_refused(void **state)
{
    struct el_bootstrap bootstrap = {.ops = &star_ops, .size = 1};
    struct el_device_spec spec = {.backend = "cpu"};
    struct el_device *device;
    void *opened;
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    assert_int_equal(el_comm_nccl_backend.open_on(&bootstrap, &(struct el_comm_place){.device = device}, &opened),
                     EL_ERR_INVALID);
    assert_ptr_equal(el_comm_choose_members(&device, 1, true), &el_comm_local_backend);
    el_device_close(device);
}

/* Ranks of one host, each on streams with a policy of its own. */
static int be_staged_rank(struct star *star, void *context)
{
    (void)context;
    struct el_comm *comm = NULL;
    cards_set_policy((enum cards_policy)(CARDS_LAZY + star->base.rank % 3), 5);
    struct el_device *device = open_card(star->base.rank);
    enum el_status status = el_comm_open_ranks("shm", &star->base, device, &comm);
    if (status == EL_OK) status = check_product(comm);
    if (status == EL_OK && el_comm_size(comm) > 1) status = check_splits(comm);
    el_comm_close(comm);
    el_device_close(device);
    return done(star, status);
}

static void ranks_stage_through_shm(void **state)
{
    for (int size = 1; size <= 3; size++) assert_int_equal(star_ranks(size, be_staged_rank, NULL), 0);
}

int main(void)
{
    set_up_cards();
    load_api();
    return RUN(NULL, NULL, a_rank_that_cannot_open_it_ends_the_others, a_rank_that_dies_or_stops_is_noticed,
               ranks_that_share_a_card_are_told, cpu_devices_are_refused, ranks_that_cannot_split_say_so,
               a_rank_that_is_stopped_is_named, a_call_that_waits_for_a_dead_rank_is_ended, ranks_stage_through_shm);
}
