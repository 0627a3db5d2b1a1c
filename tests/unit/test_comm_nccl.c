/* The communicator `nccl` on a table of functions that is not NCCL: who is called when and with what, errors from calls
 * and errors that no call returned, peers that die or stop, and a card that two ranks share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/comm/nccl_group.h"
#include "tests/conformance/comm_checks.h"
#include "tests/unit/fake_async.h"
#include "tests/unit/star_bootstrap.h"

enum { MEMBERS = 3, CALLS_MAX = 64 };

/* ---- a library that notes what it is asked, and sums where the streams allow ---- */

struct fake_comm {
    int rank, n, device;
};

struct fake_call {
    char what[16];
    const struct fake_comm *comm;
    int depth; /* of groups */
    enum el_comm_verb verb;
    const void *data;
    void *result, *stream;
    size_t count;
    int root;
};

static struct {
    struct fake_call calls[CALLS_MAX];
    int n_calls, depth, n_open, n_aborted, n_destroyed;
    int fail_verb, fail_open_rank, fail_end; /* results of the next such call; -1: of no rank */
    int async_error;
    struct el_nccl_id last_id;
    const char *host_id;
} nccl;

static void note(const char *what, const void *comm)
{
    struct fake_call *call = &nccl.calls[nccl.n_calls++ % CALLS_MAX];
    *call = (struct fake_call){.comm = comm, .depth = nccl.depth};
    snprintf(call->what, sizeof call->what, "%s", what);
}

static int nccl_get_version(int *version_p)
{
    *version_p = 22809;
    return 0;
}

static int nccl_get_unique_id(struct el_nccl_id *id_p)
{
    memset(id_p, 0, sizeof *id_p);
    snprintf(id_p->bytes, sizeof id_p->bytes, "id of process %d", (int)getpid());
    return 0;
}

static int nccl_comm_open(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device)
{
    struct fake_comm *comm = calloc(1, sizeof *comm);
    note("open", comm);
    nccl.last_id = *id;
    if (nccl.fail_open_rank == rank) {
        free(comm);
        return EL_NCCL_BAD_USE;
    }
    *comm = (struct fake_comm){.rank = rank, .n = n, .device = device};
    nccl.n_open++;
    *comm_p = comm;
    return 0;
}

static int nccl_end(const char *what, void *comm, int *count)
{
    note(what, comm);
    ++*count;
    nccl.n_open--;
    free(comm);
    return 0;
}

static int nccl_comm_abort(void *comm)
{
    fake.stuck = false;
    return nccl_end("abort", comm, &nccl.n_aborted);
}

static int nccl_comm_destroy(void *comm)
{
    return nccl_end("destroy", comm, &nccl.n_destroyed);
}

static int nccl_async_error(void *comm, int *error_p)
{
    (void)comm;
    *error_p = nccl.async_error;
    return 0;
}

static int nccl_group_start(void)
{
    note("start", NULL);
    nccl.depth++;
    return 0;
}

static int nccl_group_end(void)
{
    nccl.depth--;
    note("end", NULL);
    return nccl.fail_end;
}

static int nccl_collective(enum el_comm_verb verb, const void *data, void *result, size_t count, int root, void *comm,
                           void *stream)
{
    note("collective", comm);
    struct fake_call *call = &nccl.calls[(nccl.n_calls - 1) % CALLS_MAX];
    call->verb = verb;
    call->data = data;
    call->result = result;
    call->count = count;
    call->root = root;
    call->stream = stream;
    return nccl.fail_verb;
}

static int nccl_all_reduce(void *data, size_t count, enum el_dtype dtype, void *comm, void *stream)
{
    (void)dtype;
    return nccl_collective(EL_COMM_ALL_REDUCE, data, data, count, 0, comm, stream);
}

static int nccl_broadcast(void *data, size_t count, enum el_dtype dtype, int root, void *comm, void *stream)
{
    (void)dtype;
    return nccl_collective(EL_COMM_BROADCAST, data, data, count, root, comm, stream);
}

static int nccl_reduce(const void *data, void *result, size_t count, enum el_dtype dtype, int root, void *comm,
                       void *stream)
{
    (void)dtype;
    return nccl_collective(EL_COMM_REDUCE, data, result, count, root, comm, stream);
}

static const char *nccl_result_text(int result)
{
    return result == EL_NCCL_REMOTE ? "remote process exited" : "bad";
}

static const char *nccl_last_error(void)
{
    return "words of the library";
}

static const char *nccl_host_id(void)
{
    return nccl.host_id ? nccl.host_id : "";
}

static const struct el_nccl_api api = {.get_version = nccl_get_version,
                                       .get_unique_id = nccl_get_unique_id,
                                       .comm_open = nccl_comm_open,
                                       .comm_abort = nccl_comm_abort,
                                       .comm_destroy = nccl_comm_destroy,
                                       .async_error = nccl_async_error,
                                       .group_start = nccl_group_start,
                                       .group_end = nccl_group_end,
                                       .all_reduce = nccl_all_reduce,
                                       .broadcast = nccl_broadcast,
                                       .reduce = nccl_reduce,
                                       .result_text = nccl_result_text,
                                       .last_error = nccl_last_error,
                                       .host_id = nccl_host_id};

static void reset(void)
{
    fake_reset(FAKE_LAZY);
    memset(&nccl, 0, sizeof nccl);
    nccl.fail_open_rank = -1;
}

/* ---- several GPUs in one process ---- */

static struct el_nccl_group *last_group;

static enum el_status open_members(struct el_device *const *devices, int n, void **states)
{
    int numbers[MEMBERS];
    for (int i = 0; i < n; i++) numbers[i] = el_device_index(devices[i]);
    EL_TRY(el_nccl_open_members(&api, numbers, n, states));
    last_group = ((struct el_nccl_member *)states[0])->group;
    return EL_OK;
}

static const struct el_comm_backend backend = {.name = "nccl", .ops = &el_nccl_ops, .open_members = open_members};

struct bench {
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    struct el_buffer *data[MEMBERS];
    struct el_program *program;
};

static void open_bench(struct bench *bench)
{
    reset();
    for (int m = 0; m < MEMBERS; m++) {
        bench->devices[m] = fake_device(m);
        assert_int_equal(el_device_alloc(bench->devices[m], EL_TAG_GRAD, 64, "x", &bench->data[m]), EL_OK);
    }
    assert_int_equal(el_comm_open_with(&backend, bench->devices, MEMBERS, bench->comms), EL_OK);
    assert_int_equal(el_program_create(&bench->program), EL_OK);
}

static void close_bench(struct bench *bench)
{
    el_program_destroy(bench->program);
    for (int m = 0; m < MEMBERS; m++) el_comm_close(bench->comms[m]);
    for (int m = 0; m < MEMBERS; m++) el_device_close(bench->devices[m]);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(nccl.depth, 0);
    assert_int_equal(fake.n_wrong, 0);
}

static void abort_all(void *context)
{
    el_comm_abort(((struct bench *)context)->comms[0]);
}

/* One reduce to member 1; something lies between the members' calls. */
static void issue_reduce(struct bench *bench)
{
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    for (int m = 0; m < MEMBERS; m++) {
        int id;
        struct el_view data = el_view_of(bench->data[m], 0);
        el_program_copy(bench->program, bench->devices[m], EL_STREAM_COMPUTE, &head, el_view_of(bench->data[m], 32),
                        data, 16, &id);
        el_program_wait(bench->program, bench->devices[m], EL_STREAM_COMM, id);
        el_comm_reduce(bench->comms[m], bench->program, &head, data, data, 4, EL_F32, 1, NULL);
    }
    el_program_on_failure(bench->program, abort_all, bench);
    assert_int_equal(el_program_end(bench->program), EL_OK);
    nccl.n_calls = 0;
}

static void members_are_opened_in_a_group(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    assert_int_equal(nccl.n_calls, 2 + MEMBERS);
    assert_string_equal(nccl.calls[0].what, "start");
    for (int m = 0; m < MEMBERS; m++) {
        assert_string_equal(nccl.calls[1 + m].what, "open");
        assert_int_equal(nccl.calls[1 + m].depth, 1);
        assert_int_equal(nccl.calls[1 + m].comm->device, m);
        assert_int_equal(nccl.calls[1 + m].comm->n, MEMBERS);
    }
    assert_string_equal(el_comm_backend(bench.comms[0]), "nccl");
    close_bench(&bench);
    assert_int_equal(nccl.n_destroyed, MEMBERS);
}

static void a_member_that_cannot_be_opened(void **state)
{
    (void)state;
    struct bench bench;
    reset();
    nccl.fail_open_rank = 1;
    for (int m = 0; m < MEMBERS; m++) bench.devices[m] = fake_device(m);
    assert_int_equal(el_comm_open_with(&backend, bench.devices, MEMBERS, bench.comms), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "words of the library"));
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(nccl.depth, 0);
    for (int m = 0; m < MEMBERS; m++) el_device_close(bench.devices[m]);
}

static void one_thread_calls_for_all_in_a_group(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_OK);
    assert_int_equal(nccl.n_calls, 2 + MEMBERS);
    assert_string_equal(nccl.calls[0].what, "start");
    assert_string_equal(nccl.calls[1 + MEMBERS].what, "end");
    for (int m = 0; m < MEMBERS; m++) {
        const struct fake_call *call = &nccl.calls[1 + m];
        void *native;
        assert_int_equal(el_device_native_stream(bench.devices[m], EL_STREAM_COMM, &native), EL_OK);
        assert_int_equal(call->comm->rank, m);
        assert_int_equal(call->depth, 1);
        assert_int_equal(call->verb, EL_COMM_REDUCE);
        assert_int_equal(call->count, 4);
        assert_int_equal(call->root, 1);
        assert_ptr_equal(call->stream, native);
        assert_ptr_equal(call->data, (void *)bench.data[m]->address);
        assert_ptr_equal(call->result, m == 1 ? (void *)bench.data[m]->address : NULL);
    }
    close_bench(&bench);
}

static void a_thread_a_member_needs_no_group(void **state)
{
    (void)state;
    struct bench bench;
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    open_bench(&bench);
    el_comm_all_reduce(bench.comms[2], bench.program, &head, el_view_of(bench.data[2], 0), 4, EL_F32, NULL);
    assert_int_equal(el_program_end(bench.program), EL_OK);
    nccl.n_calls = 0;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_OK);
    assert_int_equal(nccl.n_calls, 1);
    assert_int_equal(nccl.calls[0].comm->rank, 2);
    el_comm_mute(bench.comms[2], true);
    assert_int_equal(el_program_run(bench.program, 1, NULL), EL_OK);
    assert_int_equal(nccl.n_calls, 1);
    close_bench(&bench);
}

/* All are aborted, in a group, once; nothing is called on them after that. */
static void check_aborted(struct bench *bench)
{
    assert_int_equal(nccl.n_aborted, MEMBERS);
    for (int i = 0; i < nccl.n_calls; i++)
        if (strcmp(nccl.calls[i].what, "abort") == 0) assert_int_equal(nccl.calls[i].depth, 1);
    struct el_comm_part part = {.state = &last_group->members[0],
                                .task = {.verb = EL_COMM_ALL_REDUCE, .count = 1, .data = bench}};
    int before = nccl.n_calls;
    assert_int_equal(el_nccl_ops.enqueue(&part, 1), EL_ERR_PEER);
    assert_int_equal(el_nccl_ops.poll(&last_group->members[0]), EL_ERR_PEER);
    el_comm_abort(bench->comms[1]);
    assert_int_equal(nccl.n_calls, before);
    close_bench(bench);
    assert_int_equal(nccl.n_destroyed, 0);
}

static void a_call_that_fails_ends_its_group(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    nccl.fail_verb = EL_NCCL_BAD_ARGUMENT;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "nccl reduce: bad: words of the library"));
    assert_string_equal(nccl.calls[1].what, "collective");
    assert_string_equal(nccl.calls[2].what, "end");
    check_aborted(&bench);
}

static void a_group_that_fails_at_its_end(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    nccl.fail_end = EL_NCCL_REMOTE;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_PEER);
    nccl.fail_end = 0;
    check_aborted(&bench);
}

/* The streams stand still, as behind a collective that never ends, until an abort. */
static void an_error_that_no_call_returned(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    fake.stuck = true;
    nccl.async_error = EL_NCCL_REMOTE;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_PEER);
    assert_non_null(strstr(el_error_message(), "remote process exited"));
    check_aborted(&bench);
}

static void a_collective_that_never_ends(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    fake.stuck = true;
    last_group->patience_ns = 30000000;
    int64_t begin_ns = el_clock_ns();
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_PEER);
    assert_true(el_clock_ns() - begin_ns >= 30000000);
    assert_non_null(strstr(el_error_message(), "no end after"));
    check_aborted(&bench);
}

static void steps_that_do_end_are_not_late(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    last_group->patience_ns = 20000000;
    for (uint64_t step = 0; step < 6; step++) {
        assert_int_equal(el_program_run(bench.program, step, NULL), EL_OK);
        for (int m = 0; m < MEMBERS; m++) assert_int_equal(el_nccl_ops.poll(&last_group->members[m]), EL_OK);
        usleep(10000);
    }
    close_bench(&bench);
}

static void a_ring_books_what_goes_round(void **state)
{
    (void)state;
    struct bench bench;
    open_bench(&bench);
    for (size_t count = 1; count < 100; count += 7) {
        for (int verb = 0; verb < EL_COMM_VERB_COUNT; verb++) {
            uint64_t sent, received, all_sent = 0, all_received = 0, bytes = count * sizeof(float);
            for (int m = 0; m < MEMBERS; m++) {
                el_comm_traffic(bench.comms[m], (enum el_comm_verb)verb, count, EL_F32, verb ? 2 : 0, &sent, &received);
                all_sent += sent;
                all_received += received;
                if (verb == EL_COMM_BROADCAST) assert_int_equal(received, m == 2 ? 0 : bytes);
                if (verb == EL_COMM_REDUCE) assert_int_equal(received, m == 0 ? 0 : bytes);
            }
            assert_int_equal(all_sent, all_received);
            assert_int_equal(all_sent, bytes * (MEMBERS - 1) * (verb == EL_COMM_ALL_REDUCE ? 2 : 1));
        }
    }
    close_bench(&bench);
}

/* ---- one rank a GPU ---- */

static int done(const struct star *star, enum el_status status)
{
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", star->base.rank, el_error_message());
    return status == EL_OK ? 0 : 1;
}

static enum el_status open_rank(struct star *star, void **state_p)
{
    char uuid[32];
    snprintf(uuid, sizeof uuid, "GPU-%d", star->base.rank);
    return el_nccl_open_rank(&api, &star->base, uuid, 0, state_p);
}

static int be_opened(struct star *star, void *context)
{
    (void)context;
    void *state;
    char id[sizeof nccl.last_id.bytes] = "";
    reset();
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
    reset();
    nccl.fail_open_rank = 1;
    enum el_status status = open_rank(star, &state);
    return status == (star->base.rank == 1 ? EL_ERR_INVALID : EL_ERR_PEER) && nccl.n_open == 0 ? 0 : 1;
}

static void ranks_get_the_id_of_the_first(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) {
        assert_int_equal(star_ranks(size, be_opened, NULL), 0);
        assert_int_equal(star_ranks(size, be_one_of_whom_one_fails, NULL), 0);
    }
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
    reset();
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
    reset();
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
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) {
        assert_int_equal(star_ranks(size, be_one_of_whom_one_dies, NULL), 1); /* the dead one */
        assert_int_equal(star_ranks(size, be_one_of_whom_one_stops, NULL), 0);
    }
}

/* `context`: a host id a rank, or NULL. */
static int be_on_a_shared_card(struct star *star, void *context)
{
    void *state;
    const char *const *host_ids = context;
    reset();
    nccl.host_id = host_ids ? host_ids[star->base.rank] : NULL;
    enum el_status status = el_nccl_open_rank(&api, &star->base, star->base.rank == 0 ? "GPU-a" : "GPU-b", 0, &state);
    if (status == EL_OK) el_nccl_ops.close(state);
    bool said =
        strstr(el_error_message(), "ranks 1 and 2 share one GPU (GPU-b)") && strstr(el_error_message(), "NCCL_HOSTID");
    return host_ids ? status != EL_OK : status != EL_ERR_INVALID || !said || nccl.n_calls != 0;
}

static void ranks_that_share_a_card_are_told(void **state)
{
    (void)state;
    const char *host_ids[] = {"", "one", "two"};
    assert_int_equal(star_ranks(3, be_on_a_shared_card, NULL), 0);
    assert_int_equal(star_ranks(3, be_on_a_shared_card, (void *)host_ids), 0);
}

/* CPU devices never open the module. */
static void cpu_devices_are_refused(void **state)
{
    (void)state;
    struct el_bootstrap bootstrap = {.ops = &star_ops, .size = 1};
    struct el_device_spec spec = {.backend = "cpu"};
    struct el_device *device;
    void *opened;
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    assert_int_equal(el_comm_nccl_backend.open_on(&bootstrap, device, &opened), EL_ERR_INVALID);
    assert_ptr_equal(el_comm_choose_members(&device, 1, true), &el_comm_local_backend);
    el_device_close(device);
}

/* Where the module is built it opens and tells its version, also without a GPU. */
static void the_module_tells_its_version(void **state)
{
    (void)state;
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
        cmocka_unit_test(members_are_opened_in_a_group),       cmocka_unit_test(a_member_that_cannot_be_opened),
        cmocka_unit_test(one_thread_calls_for_all_in_a_group), cmocka_unit_test(a_thread_a_member_needs_no_group),
        cmocka_unit_test(a_call_that_fails_ends_its_group),    cmocka_unit_test(a_group_that_fails_at_its_end),
        cmocka_unit_test(an_error_that_no_call_returned),      cmocka_unit_test(a_collective_that_never_ends),
        cmocka_unit_test(steps_that_do_end_are_not_late),      cmocka_unit_test(a_ring_books_what_goes_round),
        cmocka_unit_test(ranks_get_the_id_of_the_first),       cmocka_unit_test(a_rank_that_dies_or_stops_is_noticed),
        cmocka_unit_test(ranks_that_share_a_card_are_told),    cmocka_unit_test(cpu_devices_are_refused),
        cmocka_unit_test(the_module_tells_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
