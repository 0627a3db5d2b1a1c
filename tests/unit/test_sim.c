/* The simulated backend: virtual time from constant costs, the same every time, along the longest path, and through the
 * collectives of members that are resolved together. Known costs (sim.c): a host call 10 us, a collective 20 us and
 * half its bytes at 20 a nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/device/joint.h"
#include "tests/sanitized.h"

enum { MEMBERS = 3, MANY = 64, HOST_NS = 10000, COLLECTIVE_NS = 20000 + 2000 / 20, OPS_MAX = 64 };

static enum el_status never(const struct el_call_args *args)
{
    (void)args;
    fail_msg("a simulated device ran a call");
    return EL_OK;
}

static int group_members = MEMBERS;

static int collective(struct el_program *program, struct el_device *device, const void *of, uint64_t number)
{
    int id = -1;
    struct el_call_op op = {
        .head = {.label = "collective", .phase = EL_PHASE_COMM, .sent_bytes = 2000, .received_bytes = 2000},
        .op_class = EL_CLASS_COMM,
        .run = never,
        .bytes = 1 << 20,
        .group = {.of = of, .number = number, .n_members = group_members}};
    assert_int_equal(el_program_call(program, device, EL_STREAM_COMM, &op, &id), EL_OK);
    return id;
}

static int host_calls(struct el_program *program, struct el_device *device, int n)
{
    int id = -1;
    struct el_call_op op = {.head.phase = EL_PHASE_DATA, .op_class = EL_CLASS_HOST, .run = never};
    for (int i = 0; i < n; i++) assert_int_equal(el_program_call(program, device, EL_STREAM_COMPUTE, &op, &id), EL_OK);
    return id;
}

static int work(struct el_program *program, struct el_device *device, int64_t n)
{
    int id;
    struct el_kernel_op op = {.op = EL_OP_ADD, .dtype = EL_F32, .args.d = {n}};
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, &id), EL_OK);
    return id;
}

/* What a member saw of its last step. */
struct seen {
    struct el_span whole, spans[OPS_MAX];
};

static void keep(void *context, const struct el_step_event *event)
{
    struct seen *seen = context;
    assert_true(event->simulated);
    assert_true(event->n_ops <= OPS_MAX);
    seen->whole = event->whole;
    memcpy(seen->spans, event->spans, (size_t)event->n_ops * sizeof *event->spans);
}

static void open_devices(struct el_device **devices, int n, const struct el_inject *injects)
{
    for (int i = 0; i < n; i++) {
        struct el_device_spec spec = {.backend = "sim", .index = i, .position = i};
        if (injects) spec.inject = injects[i];
        assert_int_equal(el_device_open(&spec, &devices[i]), EL_OK);
    }
}

static void close_devices(struct el_device **devices, int n)
{
    for (int i = 0; i < n; i++) el_device_close(devices[i]);
}

static void ops_follow_waits_and_groups(void **state)
{
    (void)state;
    struct el_device *devices[2];
    struct el_program *program;
    struct seen seen;
    open_devices(devices, 2, NULL);
    assert_int_equal(el_program_create(&program), EL_OK);
    int a = work(program, devices[0], 1000000), b = work(program, devices[1], 10);
    el_program_wait(program, devices[0], EL_STREAM_COMM, a);
    int first = collective(program, devices[0], program, 1);
    el_program_wait(program, devices[1], EL_STREAM_COMM, b);
    int second = collective(program, devices[1], program, 1);
    int beside = work(program, devices[1], 10);
    assert_int_equal(el_program_end(program), EL_OK);
    struct el_probe probe = {.context = &seen, .spans = true, .step = keep};
    for (uint64_t step = 0; step < 2; step++) {
        assert_int_equal(el_program_run(program, step, &probe), EL_OK);
        const struct el_span *spans = seen.spans;
        assert_int_equal(spans[a].begin_ns, 0);
        assert_int_equal(spans[first].begin_ns, spans[a].end_ns);
        assert_int_equal(spans[second].begin_ns, spans[b].end_ns); /* it has come, and waits for the later one */
        assert_int_equal(spans[first].end_ns, spans[a].end_ns + COLLECTIVE_NS);
        assert_int_equal(spans[second].end_ns, spans[first].end_ns);
        assert_int_equal(spans[beside].begin_ns, spans[b].end_ns); /* another stream does not wait */
        assert_int_equal(el_program_elapsed_ns(program), spans[second].end_ns);
    }
    el_program_destroy(program);
    close_devices(devices, 2);
}

static int message(struct el_program *program, struct el_device *device, const void *of, bool sends)
{
    int id = -1;
    struct el_call_op op = {.head = {.phase = EL_PHASE_COMM, .sent_bytes = sends ? 4000 : 0},
                            .op_class = EL_CLASS_COMM,
                            .run = never,
                            .message = {.of = of, .from = 0, .to = 1, .sends = sends}};
    assert_int_equal(el_program_call(program, device, EL_STREAM_COMM, &op, &id), EL_OK);
    return id;
}

/* ---- members that are resolved together, each in a thread ---- */

struct member {
    pthread_t thread;
    struct el_joint *joint;
    struct el_device *device;
    int number, steps;
    int before, after, collectives; /* host calls before and behind the collectives */
    int messages;                   /* behind them: member 0 sends, 1 receives */
    bool capture;
    struct seen seen[4]; /* of each step */
    enum el_status status;
    char message[128];
};

static enum el_status issue(const struct member *member, struct el_program **program_p)
{
    EL_TRY(el_program_create(program_p));
    struct el_program *program = *program_p;
    el_program_join(program, member->joint, member->number);
    int last = host_calls(program, member->device, member->before);
    el_program_wait(program, member->device, EL_STREAM_COMM, last);
    for (int c = 0; c < member->collectives; c++)
        last = collective(program, member->device, member->joint, (uint64_t)c);
    for (int i = 0; i < member->messages; i++)
        last = message(program, member->device, member->joint, member->number == 0);
    el_program_wait(program, member->device, EL_STREAM_COMPUTE, last);
    host_calls(program, member->device, member->after);
    return el_program_end(program);
}

static void *be_member(void *argument)
{
    struct member *member = argument;
    struct el_program *program = NULL;
    for (int s = 0; s < member->steps && member->status == EL_OK; s++) {
        struct el_probe probe = {.context = &member->seen[s], .spans = true, .step = keep};
        if (!program) member->status = issue(member, &program);
        if (member->status == EL_OK) member->status = el_program_run(program, (uint64_t)s, &probe);
        if (member->capture) continue;
        el_program_destroy(program);
        program = NULL;
    }
    if (member->status != EL_OK) {
        snprintf(member->message, sizeof member->message, "%s", el_error_message());
        el_joint_abort(member->joint);
    }
    el_program_destroy(program);
    return NULL;
}

static void run_members(struct member *members, const struct el_inject *injects)
{
    struct el_device *devices[MEMBERS];
    struct el_joint *joint;
    open_devices(devices, MEMBERS, injects);
    assert_int_equal(el_joint_create(MEMBERS, &joint), EL_OK);
    for (int m = 0; m < MEMBERS; m++) {
        members[m].joint = joint;
        members[m].number = m;
        members[m].device = devices[m];
        assert_int_equal(pthread_create(&members[m].thread, NULL, be_member, &members[m]), 0);
    }
    for (int m = 0; m < MEMBERS; m++) pthread_join(members[m].thread, NULL);
    el_joint_destroy(joint);
    close_devices(devices, MEMBERS);
}

/* Member m comes after m + 1 calls, and has m more to do behind the collective: with these it begins the next step
 * later, and the others wait for it there. From then on all have one step time, as in life. */
static void members_wait_for_the_last(void **state)
{
    (void)state;
    for (int capture = 0; capture < 2; capture++) {
        struct member members[MEMBERS] = {0};
        for (int m = 0; m < MEMBERS; m++)
            members[m] = (struct member){.steps = 4, .before = m + 1, .collectives = 1, .after = m, .capture = capture};
        run_members(members, NULL);
        for (int m = 0; m < MEMBERS; m++) {
            assert_int_equal(members[m].status, EL_OK);
            for (int s = 0; s < 4; s++) {
                const struct seen *seen = &members[m].seen[s];
                int64_t begin = s ? m * HOST_NS : 0, latest = (MEMBERS + (s ? MEMBERS - 1 : 0)) * HOST_NS;
                const struct el_span *together = &seen->spans[members[m].before];
                assert_int_equal(seen->whole.begin_ns, begin);
                assert_int_equal(together->begin_ns, begin + (m + 1) * HOST_NS);
                assert_int_equal(together->end_ns, latest + COLLECTIVE_NS);
                assert_int_equal(seen->whole.end_ns, latest + COLLECTIVE_NS + m * HOST_NS);
            }
        }
    }
}

/* Every disturbance has its known answer; a delay of one member is exactly the wait of the others. */
static void what_is_injected_is_seen(void **state)
{
    (void)state;
    static const struct {
        struct el_inject inject; /* of member 1 */
        int64_t late_ns, longer_ns;
    } cases[] = {{.late_ns = 0},
                 {.inject.delay_ms = 2, .late_ns = 2000000},
                 {.inject.wire_ms_per_mib = 3, .longer_ns = 3000000}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct member members[MEMBERS] = {0};
        const struct el_inject injects[MEMBERS] = {[1] = cases[c].inject};
        for (int m = 0; m < MEMBERS; m++)
            members[m] = (struct member){.steps = 3, .before = 1, .collectives = 1, .after = 1, .capture = true};
        run_members(members, injects);
        for (int m = 0; m < MEMBERS; m++) {
            for (int s = 0; s < 3; s++) {
                struct el_span together = members[m].seen[s].spans[1];
                int64_t arrival = HOST_NS + (m == 1 ? cases[c].late_ns : 0), latest = HOST_NS + cases[c].late_ns;
                assert_int_equal(together.begin_ns, arrival);
                assert_int_equal(together.end_ns, latest + COLLECTIVE_NS + cases[c].longer_ns);
                assert_int_equal(members[m].seen[s].whole.end_ns, together.end_ns + HOST_NS);
            }
        }
    }
}

/* What is received ends when it has been sent, in order; who sends waits for nobody. */
static void messages_come_when_they_were_sent(void **state)
{
    (void)state;
    static const int calls[][2] = {
        {3, 1}, {1, 9}, {2, 2}}; /* before the first message: of the sender, of the receiver */
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        struct member members[MEMBERS] = {0};
        for (int m = 0; m < MEMBERS; m++)
            members[m] = (struct member){.steps = 1, .before = m < 2 ? calls[c][m] : 1, .messages = m < 2 ? 2 : 0};
        run_members(members, NULL);
        const struct el_span *sent = &members[0].seen[0].spans[calls[c][0]];
        const struct el_span *received = &members[1].seen[0].spans[calls[c][1]];
        int64_t ready = calls[c][1] * HOST_NS;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(sent[i].begin_ns, calls[c][0] * HOST_NS + i * COLLECTIVE_NS);
            assert_int_equal(sent[i].end_ns, sent[i].begin_ns + COLLECTIVE_NS);
            assert_int_equal(received[i].begin_ns, ready);
            if (sent[i].end_ns > ready) ready = sent[i].end_ns;
            assert_int_equal(received[i].end_ns, ready);
        }
    }
}

static void kernels_are_stretched_and_paused(void **state)
{
    (void)state;
    struct seen plain, disturbed;
    for (int i = 0; i < 2; i++) {
        struct el_device *device;
        struct el_program *program;
        struct el_inject inject = {.stretch = 3, .pause = "add", .pause_ms = 1};
        open_devices(&device, 1, i ? &inject : NULL);
        assert_int_equal(el_program_create(&program), EL_OK);
        work(program, device, 1000);
        assert_int_equal(el_program_end(program), EL_OK);
        struct el_probe probe = {.context = i ? &disturbed : &plain, .spans = true, .step = keep};
        assert_int_equal(el_program_run(program, 0, &probe), EL_OK);
        el_program_destroy(program);
        el_device_close(device);
    }
    assert_int_equal(disturbed.whole.end_ns, 3 * plain.whole.end_ns + 1000000);
}

/* ---- what cannot be resolved is said, to all and at once ---- */

static void expect_failure(struct member *members, enum el_status expected, const char *message)
{
    int n_told = 0;
    run_members(members, NULL);
    for (int m = 0; m < MEMBERS; m++) {
        if (members[m].steps == 0) continue;
        if (members[m].status != expected && members[m].status != EL_ERR_PEER)
            fail_msg("member %d: %d: %s", m, members[m].status, members[m].message);
        n_told += strstr(members[m].message, message) != NULL;
    }
    assert_true(n_told > 0);
}

static void a_member_that_differs(void **state)
{
    (void)state;
    struct member members[MEMBERS] = {0};
    for (int m = 0; m < MEMBERS; m++) members[m] = (struct member){.steps = 1, .collectives = m == 2 ? 1 : 2};
    expect_failure(members, EL_ERR_INTERNAL, "collective: issued by 2 of 3 members");
}

static void a_message_that_nobody_sends(void **state)
{
    (void)state;
    struct member members[MEMBERS] = {0};
    for (int m = 0; m < MEMBERS; m++) members[m] = (struct member){.steps = 1, .messages = m == 1};
    expect_failure(members, EL_ERR_INTERNAL, "call: nobody sends what member 1 receives");
}

static void *give_up(void *joint)
{
    const struct timespec soon = {.tv_nsec = 20000000};
    nanosleep(&soon, NULL);
    el_joint_abort(joint);
    return NULL;
}

/* One member gives up without a step; nobody waits for it, now or later. */
static void a_member_that_never_comes(void **state)
{
    (void)state;
    struct el_device *device;
    struct el_joint *joint;
    struct el_program *program;
    pthread_t thread;
    open_devices(&device, 1, NULL);
    assert_int_equal(el_joint_create(2, &joint), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    el_program_join(program, joint, 0);
    host_calls(program, device, 1);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(pthread_create(&thread, NULL, give_up, joint), 0);
    assert_int_equal(el_program_run(program, 0, NULL), EL_ERR_PEER);
    pthread_join(thread, NULL);
    assert_int_equal(el_program_run(program, 1, NULL), EL_ERR_PEER);
    el_program_destroy(program);
    el_joint_destroy(joint);
    el_device_close(device);
}

static void crossed_collectives(void **state)
{
    (void)state;
    struct el_device *devices[2];
    struct el_program *program;
    open_devices(devices, 2, NULL);
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 2; i++) collective(program, devices[d], program, (uint64_t)(d ^ i));
    assert_int_equal(el_program_end(program), EL_ERR_INTERNAL);
    assert_non_null(strstr(el_error_message(), "wait for one another"));
    el_program_destroy(program);
    close_devices(devices, 2);
}

/* ---- many ops ---- */

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A member's ops: kernels with buffers, and an all-reduce after every twenty. */
static void issue_rounds(struct el_program *program, struct el_device *device, const void *of, int begin, int end)
{
    enum { PER_ROUND = 20 };
    for (int r = begin; r < end; r++) {
        struct el_buffer *buffer;
        for (int i = 0; i < PER_ROUND; i++) {
            el_program_alloc(program, device, EL_TAG_ACTIVATION, (size_t)(1 + i) << 10, "x", &buffer);
            work(program, device, 100 * (r % 3 + 1));
            if (i % 2) el_program_free(program, buffer);
        }
        el_program_wait(program, device, EL_STREAM_COMM, el_program_last(program, device, EL_STREAM_COMPUTE));
        collective(program, device, of, (uint64_t)r);
    }
}

/* Members of a controller: one program. Returns the CPU time from its first op until it has been resolved. */
static double plan_and_resolve(int n, int rounds)
{
    struct el_device *devices[MANY];
    struct el_program *program;
    open_devices(devices, n, NULL);
    double begin_s = cpu_s();
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int r = 0; r < rounds; r++)
        for (int m = 0; m < n; m++) issue_rounds(program, devices[m], program, r, r + 1);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_OK);
    double s = cpu_s() - begin_s;
    el_program_destroy(program);
    close_devices(devices, n);
    return s;
}

struct one_of_many {
    pthread_t thread;
    struct el_joint *joint;
    struct el_device *device;
    int number, rounds;
    enum el_status status;
};

static void *be_one_of_many(void *argument)
{
    struct one_of_many *one = argument;
    struct el_program *program;
    assert_int_equal(el_program_create(&program), EL_OK);
    el_program_join(program, one->joint, one->number);
    issue_rounds(program, one->device, one->joint, 0, one->rounds);
    one->status = el_program_end(program);
    if (one->status == EL_OK) one->status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return NULL;
}

/* The same for members with a thread and a program each. */
static double plan_and_resolve_jointly(int n, int rounds)
{
    struct el_device *devices[MANY];
    struct one_of_many all[MANY];
    struct el_joint *joint;
    open_devices(devices, n, NULL);
    double begin_s = cpu_s();
    assert_int_equal(el_joint_create(n, &joint), EL_OK);
    for (int m = 0; m < n; m++) {
        all[m] = (struct one_of_many){.joint = joint, .device = devices[m], .number = m, .rounds = rounds};
        assert_int_equal(pthread_create(&all[m].thread, NULL, be_one_of_many, &all[m]), 0);
    }
    for (int m = 0; m < n; m++) {
        pthread_join(all[m].thread, NULL);
        assert_int_equal(all[m].status, EL_OK);
    }
    el_joint_destroy(joint);
    double s = cpu_s() - begin_s;
    close_devices(devices, n);
    return s;
}

static void show_and_hold(const char *what, double (*measure)(int n, int rounds))
{
    enum { FEW = 4, FACTOR = 17 };
    int factor = is_sanitized() ? 2 : FACTOR; /* where nothing is measured */
    double few_s = 1, many_s = 1;
    group_members = MANY;
    for (int i = 0; i < (is_sanitized() ? 1 : 3); i++) {
        double s = measure(MANY, FEW);
        if (s < few_s) few_s = s;
        s = measure(MANY, factor * FEW);
        if (s < many_s) many_s = s;
    }
    group_members = MEMBERS;
    print_message("# %s: %d ops in %.3f s, %d in %.3f s\n", what, MANY * FEW * 21, few_s, MANY * factor * FEW * 21,
                  many_s);
    assert_true(is_sanitized() || many_s < 4 * FACTOR * few_s);
}

/* Nothing is quadratic: seventeen times the ops take seventeen times the time, not 289 times. */
static void many_ops_take_their_share_of_time(void **state)
{
    (void)state;
    show_and_hold("one program", plan_and_resolve);
    show_and_hold("a program a member", plan_and_resolve_jointly);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_follow_waits_and_groups),
        cmocka_unit_test(members_wait_for_the_last),
        cmocka_unit_test(what_is_injected_is_seen),
        cmocka_unit_test(kernels_are_stretched_and_paused),
        cmocka_unit_test(messages_come_when_they_were_sent),
        cmocka_unit_test(a_message_that_nobody_sends),
        cmocka_unit_test(a_member_that_differs),
        cmocka_unit_test(a_member_that_never_comes),
        cmocka_unit_test(crossed_collectives),
        cmocka_unit_test(many_ops_take_their_share_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
