/* The simulated backend: virtual time from constant costs, the same every time, along the longest path of a program;
 * and the time that it takes itself for many ops. */
#include "tests/test.h"

#include <pthread.h>
#include <time.h>

#include "runtime/device/joint.h"
#include "tests/sanitized.h"
#include "tests/unit/sim_steps.h"

enum { MANY = 64 };

static int work(struct el_program *program, struct el_device *device, int64_t n)
{
    int id;
    struct el_kernel_op op = {.op = EL_OP_ADD, .dtype = EL_F32, .args.d = {n}};
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, &id), EL_OK);
    return id;
}

static void ops_follow_waits_and_groups(void **state)
{
    struct el_device *devices[2];
    struct el_program *program = begin_program(devices, 2, NULL);
    struct seen seen;
    int a = work(program, devices[0], 1000000), b = work(program, devices[1], 10);
    el_program_wait(program, devices[0], EL_STREAM_COMM, a);
    int first = collective(program, devices[0], program, 1, MEMBERS);
    el_program_wait(program, devices[1], EL_STREAM_COMM, b);
    int second = collective(program, devices[1], program, 1, MEMBERS);
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
    end_program(program, devices, 2);
}

static void kernels_are_stretched_and_paused(void **state)
{
    struct seen plain, disturbed;
    for (int i = 0; i < 2; i++) {
        struct el_device *device;
        struct el_inject inject = {.stretch = 3, .pause = "add", .pause_ms = 1};
        struct el_program *program = begin_program(&device, 1, i ? &inject : NULL);
        work(program, device, 1000);
        assert_int_equal(el_program_end(program), EL_OK);
        struct el_probe probe = {.context = i ? &disturbed : &plain, .spans = true, .step = keep};
        assert_int_equal(el_program_run(program, 0, &probe), EL_OK);
        end_program(program, &device, 1);
    }
    assert_int_equal(disturbed.whole.end_ns, 3 * plain.whole.end_ns + 1000000);
}

static void crossed_collectives(void **state)
{
    struct el_device *devices[2];
    struct el_program *program = begin_program(devices, 2, NULL);
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 2; i++) collective(program, devices[d], program, (uint64_t)(d ^ i), MEMBERS);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_ERR_INTERNAL);
    assert_non_null(strstr(el_error_message(), "wait for one another"));
    end_program(program, devices, 2);
}

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
        collective(program, device, of, (uint64_t)r, MANY);
    }
}

/* Members of a controller: one program. Returns the CPU time from its first op until it has been resolved. */
static double plan_and_resolve(int n, int rounds)
{
    struct el_device *devices[MANY];
    struct el_program *program = begin_program(devices, n, NULL);
    double begin_s = cpu_s();
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
    double few_s = 1, many_s = 4 * FACTOR;
    for (int i = 0; i < (is_sanitized() ? 1 : 9) && many_s >= 4 * FACTOR * few_s; i++) { /* the least of each */
        double s = measure(MANY, FEW);
        if (s < few_s) few_s = s;
        s = measure(MANY, factor * FEW);
        if (s < many_s) many_s = s;
    }
    print_message("# %s: %d ops in %.3f s, %d in %.3f s\n", what, MANY * FEW * 21, few_s, MANY * factor * FEW * 21,
                  many_s);
    assert_true(is_sanitized() || many_s < 4 * FACTOR * few_s);
}

/* Nothing is quadratic: seventeen times the ops take seventeen times the time, not 289 times. */
static void many_ops_take_their_share_of_time(void **state)
{
    show_and_hold("one program", plan_and_resolve);
    show_and_hold("a program a member", plan_and_resolve_jointly);
}

RUN_TESTS(NULL, NULL, ops_follow_waits_and_groups, kernels_are_stretched_and_paused, crossed_collectives,
          many_ops_take_their_share_of_time)
