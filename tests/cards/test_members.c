/* Communicators for which one thread issues for all members, `nccl` and `peer`, on cards whose streams run out of step:
 * each verb, on the data of comm_case.h. Data comes and goes on the compute streams right before and behind an
 * operation, so that one that waits too little reads or leaves rubbish. And what is refused, what fails, what is late.
 */
#include "runtime/comm/nccl/comm_nccl.h"
#include "tests/cards/cards_cases.h"
#include "tests/conformance/comm_case.h"

enum { MEMBERS = 3, COUNT_MAX = 1000 };

static struct el_nccl_group *last_group;

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    EL_TRY(el_comm_nccl_backend.open_members(places, n, states));
    last_group = ((struct el_nccl_member *)states[0])->group;
    return EL_OK;
}

static const struct el_comm_backend nccl = {.name = "nccl", .ops = &el_nccl_ops, .open_members = open_members};
static const struct el_comm_backend *const backends[] = {&nccl, &el_comm_peer_backend};

/* ---- right numbers ---- */

/* A communicator's members, and what the operation works on: images of its buffers that come before it and are kept
 * behind it, and rubbish that takes their place then. */
struct lane {
    struct el_comm *comms[MEMBERS];
    struct case_play plays[MEMBERS];
    struct el_buffer *before[MEMBERS][2], *behind[MEMBERS][2], *rubbish[MEMBERS][2];
};

static void must(enum el_status status)
{
    if (status != EL_OK) fail_msg("%s", el_error_message());
}

static void open_devices(struct el_device **devices)
{
    for (int m = 0; m < MEMBERS; m++) devices[m] = open_card(m);
}

static void close_devices(struct el_device **devices)
{
    for (int m = 0; m < MEMBERS; m++) el_device_close(devices[m]);
    assert_nothing_left();
    cards_set_policy(CARDS_FREE, 0);
}

static void close_comms(struct el_comm **comms)
{
    for (int m = 0; m < MEMBERS; m++) el_comm_close(comms[m]);
}

static void begin_case(struct lane *lane, const struct comm_case *c)
{
    for (int m = 0; m < MEMBERS; m++) {
        struct case_memory *memory = &lane->plays[m].memory;
        lane->plays[m] = (struct case_play){.c = *c, .comm = lane->comms[m]};
        if (c->verb == EL_COMM_ALL_TO_ALL) lane->plays[m].c.in_place = false; /* it has none */
        must(case_open(&lane->plays[m]));
        for (int b = 0; b < 2; b++) {
            struct el_buffer **sets[] = {&lane->before[m][b], &lane->behind[m][b], &lane->rubbish[m][b]};
            for (int i = 0; i < 3; i++)
                must(el_device_alloc(el_comm_device(lane->comms[m]), EL_TAG_GRAD, memory->buffers[b]->bytes, "image",
                                     sets[i]));
            memset(memory->host, 1, memory->buffers[b]->bytes);
            must(el_device_write(el_view_of(lane->rubbish[m][b], 0), memory->host, memory->buffers[b]->bytes));
        }
    }
}

static void end_case(struct lane *lane)
{
    for (int m = 0; m < MEMBERS; m++) {
        case_close(&lane->plays[m]);
        for (int b = 0; b < 2; b++) {
            el_device_free(lane->before[m][b]);
            el_device_free(lane->behind[m][b]);
            el_device_free(lane->rubbish[m][b]);
        }
    }
}

static void copy_images(struct el_program *program, struct el_buffer *const *to, struct el_buffer *const *from)
{
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    for (int b = 0; b < 2; b++)
        must(el_program_copy(program, to[b]->device, EL_STREAM_COMPUTE, &head, el_view_of(to[b], 0),
                             el_view_of(from[b], 0), from[b]->bytes, NULL));
}

static void issue_member(struct lane *lane, struct el_program *program, int m)
{
    const struct case_memory *memory = &lane->plays[m].memory;
    struct el_comm_op op = case_op(&lane->plays[m].c, lane->comms[m], memory);
    op.join = true;
    copy_images(program, memory->buffers, lane->before[m]);
    must(el_comm_issue(lane->comms[m], program, &op, NULL));
    copy_images(program, lane->behind[m], memory->buffers);
    copy_images(program, memory->buffers, lane->rubbish[m]);
}

/* case_fill() or case_compare() on one set of images. */
static void each_image(struct lane *lane, struct el_buffer *set[MEMBERS][2],
                       enum el_status (*act)(const struct comm_case *c, const struct el_comm *comm,
                                             struct case_memory *memory))
{
    for (int m = 0; m < MEMBERS; m++) {
        struct case_memory memory = lane->plays[m].memory;
        memcpy(memory.buffers, set[m], sizeof memory.buffers);
        must(act(&lane->plays[m].c, lane->comms[m], &memory));
    }
}

/* One program with one operation of each lane, issued by turns; run twice. */
static void run_lanes(struct lane *lanes, int n_lanes)
{
    struct el_program *program;
    must(el_program_create(&program));
    for (int m = 0; m < MEMBERS; m++)
        for (int l = 0; l < n_lanes; l++) issue_member(&lanes[l], program, m);
    must(el_program_end(program));
    for (uint64_t step = 0; step < 2; step++) {
        for (int l = 0; l < n_lanes; l++) each_image(&lanes[l], lanes[l].before, case_fill);
        must(el_program_run(program, step, NULL));
        for (int l = 0; l < n_lanes; l++) each_image(&lanes[l], lanes[l].behind, case_compare);
    }
    el_program_destroy(program);
    for (int l = 0; l < n_lanes; l++) end_case(&lanes[l]);
}

static void check_both_places(struct lane *lane, struct comm_case *c)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        c->in_place = in_place;
        begin_case(lane, c);
        run_lanes(lane, 1);
    }
}

/* Every collective, with each reduction and type that the backend has; a sum of more than `peer` adds at once. */
static void check_verbs(const struct el_comm_backend *backend, enum cards_policy policy)
{
    static const size_t counts[] = {1, 17, COUNT_MAX};
    struct el_device *devices[MEMBERS];
    struct lane lane;
    int number = 0;
    cards_set_policy(policy, 5);
    open_devices(devices);
    must(el_comm_open_with(backend, devices, MEMBERS, lane.comms));
    for (int verb = 0; verb < EL_COMM_SEND; verb++)
        for (int reduction = 0; reduction < (el_comm_verb_row(verb)->reduces ? EL_COMM_AND : 1); reduction++)
            for (int dtype = 0; dtype < EL_DTYPE_COUNT; dtype++, number++) {
                if (el_comm_verb_row(verb)->reduces && !backend->ops->reduces(reduction, dtype)) continue;
                struct comm_case c = {.verb = verb,
                                      .reduction = reduction,
                                      .dtype = dtype,
                                      .count = counts[number % 3],
                                      .root = el_comm_verb_row(verb)->has_root ? number / 3 % MEMBERS : 0};
                if (number % (CARDS_POLICIES - 1) == (int)policy - 1) check_both_places(&lane, &c);
            }
    struct comm_case large = {.verb = EL_COMM_REDUCE, .dtype = EL_F32, .count = 1100000};
    if (policy == CARDS_OTHERS_FIRST && !is_sanitized()) check_both_places(&lane, &large);
    close_comms(lane.comms);
    close_devices(devices);
}

static void every_verb_gives_what_it_is_to_give(void **state)
{
    for (int b = 0; b < 2; b++)
        for (int policy = CARDS_LAZY; policy < CARDS_POLICIES; policy++)
            check_verbs(backends[b], (enum cards_policy)policy);
}

/* Two communicators over the same devices, what they do drawn at random: each on a stream of its own, and neither
 * counts on what only the other's orders. */
static void two_at_once(void **state)
{
    uint64_t random = 7;
    for (int i = 0; i < 2 * (CARDS_POLICIES - 1); i++) {
        struct el_device *devices[MEMBERS];
        struct lane lanes[2];
        cards_set_policy((enum cards_policy)(CARDS_LAZY + i / 2), 5);
        open_devices(devices);
        for (int l = 0; l < 2; l++) must(el_comm_open_with(backends[i % 2], devices, MEMBERS, lanes[l].comms));
        for (int p = 0; p < (is_sanitized() ? 2 : 8); p++) {
            for (int l = 0; l < 2; l++) {
                enum el_comm_verb verb = (enum el_comm_verb)draw(&random, EL_COMM_SEND);
                struct comm_case c = {.verb = verb,
                                      .dtype = EL_F32,
                                      .count = (size_t)(draw(&random, COUNT_MAX) + 1),
                                      .root = el_comm_verb_row(verb)->has_root ? draw(&random, MEMBERS) : 0,
                                      .in_place = draw(&random, 2)};
                begin_case(&lanes[l], &c);
            }
            run_lanes(lanes, 2);
        }
        for (int l = 0; l < 2; l++) close_comms(lanes[l].comms);
        close_devices(devices);
    }
}

/* ---- one reduce to member 1 ---- */

struct bench {
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    struct el_buffer *data[MEMBERS];
    struct el_program *program;
};

static void open_bench(struct bench *bench, const struct el_comm_backend *backend)
{
    open_devices(bench->devices);
    for (int m = 0; m < MEMBERS; m++) {
        must(el_device_alloc(bench->devices[m], EL_TAG_GRAD, 64, "x", &bench->data[m]));
        must(el_device_write(el_view_of(bench->data[m], 0), (float[16]){(float)(m + 1)}, 64));
    }
    must(el_comm_open_with(backend, bench->devices, MEMBERS, bench->comms));
    must(el_program_create(&bench->program));
}

static void close_bench(struct bench *bench)
{
    el_program_destroy(bench->program);
    close_comms(bench->comms);
    close_devices(bench->devices);
}

static void abort_all(void *context)
{
    el_comm_abort(((struct bench *)context)->comms[0]);
}

static struct el_comm_op reduce_of(const struct bench *bench, int m)
{
    struct el_view data = el_view_of(bench->data[m], 0);
    return (struct el_comm_op){.verb = EL_COMM_REDUCE,
                               .dtype = EL_F32,
                               .count = 4,
                               .root = 1,
                               .data = data,
                               .result = data,
                               .phase = EL_PHASE_COMM};
}

static void issue_reduce(struct bench *bench)
{
    for (int m = 0; m < MEMBERS; m++) {
        const struct el_comm_op op = reduce_of(bench, m);
        must(el_comm_issue(bench->comms[m], bench->program, &op, NULL));
    }
    el_program_on_failure(bench->program, abort_all, bench);
    must(el_program_end(bench->program));
}

static void a_muted_member_calls_nothing(void **state)
{
    for (int b = 0; b < 2; b++) {
        struct bench bench;
        float got[16];
        open_bench(&bench, backends[b]);
        issue_reduce(&bench);
        for (int muted = 1; muted >= 0; muted--) {
            for (int m = 0; m < MEMBERS; m++) el_comm_mute(bench.comms[m], muted);
            must(el_program_run(bench.program, 0, NULL));
            must(el_device_read(el_view_of(bench.data[1], 0), got, sizeof got));
            assert_true(got[0] == (muted ? 2 : 6));
        }
        close_bench(&bench);
    }
}

static void what_a_backend_does_not_have_is_refused(void **state)
{
    static const struct {
        int backend;
        enum el_comm_reduction reduction;
        enum el_dtype dtype;
        const char *words;
    } refusals[] = {{0, EL_COMM_XOR, EL_I32, "communicator nccl: has no xor of i32 values"},
                    {1, EL_COMM_MAX, EL_F32, "communicator peer: has no max of f32 values"},
                    {1, EL_COMM_SUM, EL_I32, "communicator peer: has no sum of i32 values"}};
    for (int i = 0; i < 3; i++) {
        struct bench bench;
        open_bench(&bench, backends[refusals[i].backend]);
        struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                .reduction = refusals[i].reduction,
                                .dtype = refusals[i].dtype,
                                .count = 4,
                                .data = el_view_of(bench.data[0], 0)};
        assert_int_equal(el_comm_issue(bench.comms[0], bench.program, &op, NULL), EL_ERR_ABSENT);
        assert_string_equal(el_error_message(), refusals[i].words);
        close_bench(&bench);
    }
}

/* In a ring and with `peer` alike. */
static void what_moves_is_booked(void **state)
{
    for (int b = 0; b < 2; b++) {
        struct bench bench;
        open_bench(&bench, backends[b]);
        for (size_t count = 1; count < 100; count += 7)
            for (int verb = 0; verb <= EL_COMM_REDUCE; verb++) {
                const struct el_comm_op op = {
                    .verb = (enum el_comm_verb)verb, .dtype = EL_F32, .count = count, .root = verb ? 1 : 0};
                uint64_t all_sent = 0, all_received = 0;
                for (int m = 0; m < MEMBERS; m++) {
                    struct el_comm_traffic traffic = el_comm_traffic(bench.comms[m], &op);
                    all_sent += traffic.sent_bytes;
                    all_received += traffic.received_bytes;
                }
                assert_int_equal(all_sent, all_received);
                assert_int_equal(all_sent,
                                 count * sizeof(float) * (MEMBERS - 1) * (verb == EL_COMM_ALL_REDUCE ? 2 : 1));
            }
        close_bench(&bench);
    }
}

static void peer_wants_all_members_in_the_order_of_their_ranks(void **state)
{
    for (int all = 0; all < 2; all++) {
        struct bench bench;
        open_bench(&bench, &el_comm_peer_backend);
        for (int m = MEMBERS - 1; m >= (all ? 0 : MEMBERS - 1); m--) {
            const struct el_comm_op op = reduce_of(&bench, m);
            must(el_comm_issue(bench.comms[m], bench.program, &op, NULL));
        }
        must(el_program_end(bench.program));
        assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_INTERNAL);
        if (all) assert_non_null(strstr(el_error_message(), "member 2 was issued as number 0"));
        close_bench(&bench);
    }
}

/* ---- failures of NCCL ---- */

static const struct {
    const char *rule;
    enum el_status status;
    const char *words;
} failures[] = {
    {"ncclReduce:*:1=4", EL_ERR_INVALID, "nccl reduce: invalid argument"},
    {"ncclReduce:*:2=6", EL_ERR_PEER, "nccl reduce: remote process exited"},
    {"ncclAsync:1:1=6", EL_ERR_PEER, "an operation failed: remote process exited"},
    /* NCCL meets what a kernel before it left on the card. */
    {"ncclReduce:*:2=1,cudaStreamQuery:*:1/1=700", EL_ERR_INTERNAL,
     "an illegal memory access was encountered (cudaErrorIllegalAddress); cuda:1: nccl reduce: unhandled cuda error"}};

/* All are aborted, once; nothing is called on them after that. */
static void a_call_that_fails_ends_its_group(void **state)
{
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        struct bench bench;
        open_bench(&bench, &nccl);
        issue_reduce(&bench);
        cards_set_failures(failures[i].rule);
        assert_int_equal(el_program_run(bench.program, 0, NULL), failures[i].status);
        if (!strstr(el_error_message(), failures[i].words)) fail_msg("%s: %s", failures[i].rule, el_error_message());
        cards_set_failures(NULL);
        struct el_comm_part part = {.state = &last_group->members[0],
                                    .task = {.verb = EL_COMM_ALL_REDUCE, .count = 1, .data = &part, .result = &part}};
        assert_int_equal(el_nccl_ops.enqueue(&part, 1), EL_ERR_PEER);
        assert_int_equal(el_nccl_ops.poll(&last_group->members[0]), EL_ERR_PEER);
        el_comm_abort(bench.comms[1]);
        close_bench(&bench);
    }
}

/* And of launches that block: CUDA's own wait for each kernel would be one for the other members', which are not queued
 * yet; alone a member waits for nobody. */
static void members_that_cannot_be_opened(void **state)
{
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    void *one;
    open_devices(devices);
    const struct el_comm_place place = {.device = devices[0]};
    cards_set_failures("ncclCommInitRankConfig:1:1=5");
    assert_int_equal(el_comm_open_with(&nccl, devices, MEMBERS, comms), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "nccl comm_open: invalid usage"));
    cards_set_failures(NULL);
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    assert_int_equal(el_comm_open_with(&nccl, devices, MEMBERS, comms), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "CUDA_LAUNCH_BLOCKING is set"));
    must(open_members(&place, 1, &one));
    el_nccl_ops.close(one);
    unsetenv("CUDA_LAUNCH_BLOCKING");
    close_devices(devices);
}

/* Each step is as if waited for during two thirds of the patience: three would exceed it if they were added up. No real
 * time passes, so that no load makes one late. */
static void steps_that_do_end_are_not_late(void **state)
{
    struct bench bench;
    open_bench(&bench, &nccl);
    issue_reduce(&bench);
    const int64_t most_ns = last_group->patience_ns / 3 * 2;
    for (uint64_t step = 0; step < 6; step++) {
        must(el_program_run(bench.program, step, NULL));
        for (int m = 0; m < MEMBERS; m++) {
            assert_int_equal(el_nccl_ops.poll(&last_group->members[m]), EL_OK);
            last_group->members[m].waiting_since_ns -= most_ns;
            assert_int_equal(el_nccl_ops.poll(&last_group->members[m]), EL_OK);
        }
    }
    last_group->members[1].waiting_since_ns -= most_ns; /* a second time, and no step between */
    assert_int_equal(el_nccl_ops.poll(&last_group->members[1]), EL_ERR_PEER);
    assert_non_null(strstr(el_error_message(), "not finished after"));
    close_bench(&bench);
}

int main(void)
{
    set_up_cards();
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch would wait for the card, and hide what does not */
    with_nccl = true;
    return RUN(NULL, NULL, every_verb_gives_what_it_is_to_give, two_at_once, a_muted_member_calls_nothing,
               what_a_backend_does_not_have_is_refused, what_moves_is_booked,
               peer_wants_all_members_in_the_order_of_their_ranks, a_call_that_fails_ends_its_group,
               members_that_cannot_be_opened, steps_that_do_end_are_not_late);
}
