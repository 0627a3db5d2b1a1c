/* The communicator `nccl` with one rank a GPU, on a table of functions that is not NCCL: how ranks open it, peers that
 * die or stop, a card that two ranks share; and what stands where NCCL cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/comm/choose.h"
#include "tests/unit/fake_nccl.h"
#include "tests/unit/star_bootstrap.h"

static int done(const struct star *star, enum el_status status)
{
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", star->base.rank, el_error_message());
    return status == EL_OK ? 0 : 1;
}

static enum el_status open_rank(struct star *star, void **state_p)
{
    char uuid[32];
    snprintf(uuid, sizeof uuid, "GPU-%d", star->base.rank);
    return el_nccl_open_rank(&api, &star->base, uuid, fake_device(0), state_p);
}

static int be_opened(struct star *star, void *context)
{
    (void)context;
    void *state;
    char id[sizeof nccl.last_id.bytes] = "";
    reset(FAKE_LAZY);
    if (done(star, open_rank(star, &state))) return 1;
    if (star->base.rank == 0) memcpy(id, nccl.last_id.bytes, sizeof id);
    if (el_bootstrap_broadcast(&star->base, id, sizeof id) != EL_OK) return 1;
    bool right = memcmp(id, nccl.last_id.bytes, sizeof id) == 0 && strstr(id, "id of process") && nccl.n_calls == 1 &&
                 nccl.calls[0].comm->rank == star->base.rank && nccl.calls[0].comm->n == star->base.size;
    el_nccl_ops.close(state);
    return right && nccl.n_open == 0 ? 0 : 1;
}

static int be_one_of_whom_one_fails(struct star *star, void *context)
{
    (void)context;
    void *state;
    reset(FAKE_LAZY);
    nccl.fail_open_rank = 1;
    enum el_status status = open_rank(star, &state);
    return status == (star->base.rank == 1 ? EL_ERR_INVALID : EL_ERR_PEER) && nccl.n_open == 0 ? 0 : 1;
}

static void ranks_get_the_id_of_the_first(void **state)
{
    for (int size = 2; size <= RANKS_MAX; size++) {
        assert_int_equal(star_ranks(size, be_opened, NULL), 0);
        assert_int_equal(star_ranks(size, be_one_of_whom_one_fails, NULL), 0);
    }
}

/* Ranks 0 and 1 in one group, in reverse; rank 2 alone; rank 3 in none. */
static int be_split(struct star *star, void *context)
{
    (void)context;
    int rank = star->base.rank;
    void *state;
    struct el_comm_split split = {.color = rank == 3 ? -1 : rank / 2, .key = 10 - rank};
    reset(FAKE_LAZY);
    if (done(star, open_rank(star, &state))) return 1;
    split.place.device = ((struct el_nccl_member *)state)->device;
    nccl.split_rank = rank == 0 ? 1 : 0;
    nccl.split_size = rank < 2 ? 2 : 1;
    if (done(star, el_nccl_ops.split(state, EL_OK, &split))) return 1;
    bool right = nccl.split_color == split.color && nccl.split_key == 10 - rank;
    if (rank < 2) {
        struct el_nccl_member *part = split.state;
        right &= part->rank == 1 - rank && part->group->size == 2 && split.rank == 1 - rank && split.size == 2;
        right &= nccl.n_open == 2 && el_nccl_ops.poll(part) == EL_OK;
        el_nccl_ops.close(part);
    } else
        right &= !split.state && nccl.n_open == 1 && split.size == (rank == 2 ? 1 : 0);
    right &= el_nccl_ops.poll(state) == EL_OK; /* a part takes nothing of the whole along */
    el_bootstrap_barrier(&star->base);
    el_nccl_ops.close(state);
    return right && nccl.n_open == 0 ? 0 : 1;
}

static int be_split_by_an_old_library(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_nccl_api old = api;
    struct el_comm_split split = {.color = 0};
    old.comm_split = NULL;
    reset(FAKE_LAZY);
    if (done(star, el_nccl_open_rank(&old, &star->base, "", fake_device(0), &state))) return 1;
    bool right = el_nccl_ops.split(state, EL_OK, &split) == EL_ERR_ABSENT && strstr(el_error_message(), "2.18");
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

/* A rank without room for its part ends the whole, for the others are in NCCL already. */
static int be_split_without_room(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_comm_split split = {.color = 0};
    reset(FAKE_LAZY);
    if (done(star, open_rank(star, &state))) return 1;
    enum el_status mine = el_fail(EL_ERR_INVALID, "no stream is free");
    bool right = el_nccl_ops.split(state, mine, &split) == EL_ERR_INVALID && nccl.n_aborted == 1;
    right &= strcmp(el_error_message(), "no stream is free") == 0;
    el_nccl_ops.close(state);
    return right ? 0 : 1;
}

static void ranks_split_as_nccl_does(void **state)
{
    assert_int_equal(star_ranks(4, be_split, NULL), 0);
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
    reset(FAKE_LAZY);
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
    reset(FAKE_LAZY);
    if (done(star, open_rank(star, &state))) return 1;
    if (star->base.rank == star->base.size - 1)
        usleep(30000);
    else
        right = wait_for_trouble(state) == EL_ERR_PEER && strstr(el_error_message(), "has failed");
    el_nccl_ops.abort(state);
    el_bootstrap_barrier(&star->base);
    el_nccl_ops.close(state);
    return right && nccl.n_aborted == 1 ? 0 : 1;
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
    while (n > 0) pause();
    return 0;
}

static int be_opened_with_one_that_dies(struct star *star, void *context)
{
    (void)context;
    void *state;
    struct el_nccl_api waiting = api;
    waiting.comm_open = open_until_killed;
    reset(FAKE_LAZY);
    int64_t begin_ns = el_clock_ns();
    enum el_status status = el_nccl_open_rank(&waiting, &star->base, "", fake_device(0), &state);
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

static int abort_and_end(void *comm)
{
    int result = nccl_comm_abort(comm);
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
    waiting.comm_abort = abort_and_end;
    reset(FAKE_LAZY);
    if (done(star, el_nccl_open_rank(&waiting, &star->base, "", fake_device(0), &state))) return 1;
    if (star->base.rank == star->base.size - 1) raise(SIGKILL);
    enum el_status status = el_nccl_ops.split(state, EL_OK, &split);
    bool right = status == EL_ERR_PEER && strstr(el_error_message(), "is gone") && nccl.n_aborted == 1;
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
    reset(FAKE_LAZY);
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
    reset(FAKE_LAZY);
    nccl.host_id = host_ids ? host_ids[star->base.rank] : NULL;
    enum el_status status =
        el_nccl_open_rank(&api, &star->base, star->base.rank == 0 ? "GPU-a" : "GPU-b", fake_device(0), &state);
    if (status == EL_OK) el_nccl_ops.close(state);
    bool said =
        strstr(el_error_message(), "ranks 1 and 2 share one GPU (GPU-b)") && strstr(el_error_message(), "NCCL_HOSTID");
    return host_ids ? status != EL_OK : status != EL_ERR_INVALID || !said || nccl.n_calls != 0;
}

static void ranks_that_share_a_card_are_told(void **state)
{
    const char *host_ids[] = {"", "one", "two"};
    assert_int_equal(star_ranks(3, be_on_a_shared_card, NULL), 0);
    assert_int_equal(star_ranks(3, be_on_a_shared_card, (void *)host_ids), 0);
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

/* Where the module is built it opens and tells its version, also without a GPU. */
static void the_module_tells_its_version(void **state)
{
    char version[32];
    if (el_nccl_version(version, sizeof version) != EL_OK) {
        print_message("# skip: %s\n", el_error_message());
        skip();
    }
    int major, minor, patch;
    assert_int_equal(sscanf(version, "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(major, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_get_the_id_of_the_first),
        cmocka_unit_test(a_rank_that_dies_or_stops_is_noticed),
        cmocka_unit_test(ranks_that_share_a_card_are_told),
        cmocka_unit_test(cpu_devices_are_refused),
        cmocka_unit_test(the_module_tells_its_version),
        cmocka_unit_test(ranks_split_as_nccl_does),
        cmocka_unit_test(a_rank_that_is_stopped_is_named),
        cmocka_unit_test(a_call_that_waits_for_a_dead_rank_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
