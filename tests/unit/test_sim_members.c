/* Members on simulated devices that are resolved together, each with a program in a thread of its own: who waits for
 * whom, and what cannot be resolved is said, to all and at once. */
#include "tests/test.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "runtime/device/joint.h"
#include "tests/unit/sim_steps.h"

static int host_calls(struct el_program *program, struct el_device *device, int n)
{
    int id = -1;
    struct el_call_op op = {.head.phase = EL_PHASE_DATA, .op_class = EL_CLASS_HOST, .run = never};
    for (int i = 0; i < n; i++) assert_int_equal(el_program_call(program, device, EL_STREAM_COMPUTE, &op, &id), EL_OK);
    return id;
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
        last = collective(program, member->device, member->joint, (uint64_t)c, MEMBERS);
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

/* Each in words that one member at least is told; the others are told that a peer failed. */
static void members_that_do_not_fit_fail(void **state)
{
    static const struct {
        int collectives[MEMBERS], messages[MEMBERS];
        const char *words;
    } cases[] = {{{2, 2, 1}, {0}, "collective: issued by 2 of 3 members"},
                 {{0}, {0, 1, 0}, "call: nobody sends what member 1 receives"}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct member members[MEMBERS] = {0};
        int n_told = 0;
        for (int m = 0; m < MEMBERS; m++)
            members[m] =
                (struct member){.steps = 1, .collectives = cases[c].collectives[m], .messages = cases[c].messages[m]};
        run_members(members, NULL);
        for (int m = 0; m < MEMBERS; m++) {
            if (members[m].status != EL_ERR_INTERNAL && members[m].status != EL_ERR_PEER)
                fail_msg("member %d: %d: %s", m, members[m].status, members[m].message);
            n_told += strstr(members[m].message, cases[c].words) != NULL;
        }
        assert_true(n_told > 0);
    }
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
    struct el_device *device;
    struct el_joint *joint;
    pthread_t thread;
    struct el_program *program = begin_program(&device, 1, NULL);
    assert_int_equal(el_joint_create(2, &joint), EL_OK);
    el_program_join(program, joint, 0);
    host_calls(program, device, 1);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(pthread_create(&thread, NULL, give_up, joint), 0);
    assert_int_equal(el_program_run(program, 0, NULL), EL_ERR_PEER);
    pthread_join(thread, NULL);
    assert_int_equal(el_program_run(program, 1, NULL), EL_ERR_PEER);
    end_program(program, &device, 1);
    el_joint_destroy(joint);
}

RUN_TESTS(NULL, NULL, members_wait_for_the_last, what_is_injected_is_seen, messages_come_when_they_were_sent,
          members_that_do_not_fit_fail, a_member_that_never_comes)
