/* The bootstrap `tcp` among processes, some of which die, leave, or end all: how every rank learns of it, whatever it
 * does. */
#include "tests/test.h"

#include <signal.h>
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/comm/tcp/meeting.h"
#include "tests/unit/tcp_processes.h"

enum { WORK_US = 8000000 };
static const int64_t LATE_NS = 7000000000;

typedef enum el_status (*el_scene)(struct el_bootstrap *bootstrap);

static int play(const struct el_rendezvous *place, const void *context)
{
    const el_scene *scene = context;
    struct el_bootstrap *bootstrap = NULL;
    enum el_status status = el_bootstrap_open_tcp(place, &bootstrap);
    if (status == EL_OK) status = (*scene)(bootstrap);
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", place->rank, el_error_message());
    el_bootstrap_close(bootstrap);
    return status == EL_OK ? 0 : 1;
}

static enum el_status expect_death(struct el_bootstrap *bootstrap, int dead)
{
    char expected[64];
    int64_t begin_ns = el_clock_ns();
    snprintf(expected, sizeof expected, "rank %d is gone", dead);
    if (el_bootstrap_barrier(bootstrap) != EL_ERR_PEER) return el_fail(EL_ERR_INTERNAL, "the barrier did not fail");
    if (!strstr(el_error_message(), expected)) return EL_ERR_INTERNAL;
    if (el_clock_ns() - begin_ns > LATE_NS) return el_fail(EL_ERR_INTERNAL, "the barrier failed late");
    return EL_OK;
}

/* Rank 0 computes for `work_us` and calls nothing meanwhile. */
static enum el_status one_dies(struct el_bootstrap *bootstrap, int dead, useconds_t work_us)
{
    EL_TRY(el_bootstrap_barrier(bootstrap));
    if (el_bootstrap_rank(bootstrap) == dead) raise(SIGKILL);
    if (el_bootstrap_rank(bootstrap) == 0) usleep(work_us);
    return expect_death(bootstrap, dead);
}

static enum el_status last_dies(struct el_bootstrap *bootstrap)
{
    return one_dies(bootstrap, el_bootstrap_size(bootstrap) - 1, 0);
}

static enum el_status first_dies(struct el_bootstrap *bootstrap)
{
    return one_dies(bootstrap, 0, 0);
}

static enum el_status last_dies_while_rank_0_works(struct el_bootstrap *bootstrap)
{
    return one_dies(bootstrap, el_bootstrap_size(bootstrap) - 1, WORK_US);
}

static void expect_one_death(el_scene scene, int least, bool first)
{
    int statuses[TCP_PROCESSES_MAX];
    for (int size = least; size <= 4; size += 2) {
        tcp_processes(size, play, &scene, statuses);
        for (int i = 0; i < size; i++) {
            if (i == (first ? 0 : size - 1))
                assert_true(WIFSIGNALED(statuses[i]));
            else
                assert_true(WIFEXITED(statuses[i]) && WEXITSTATUS(statuses[i]) == 0);
        }
    }
}

static void test_a_dead_rank_is_named_by_all(void **state)
{
    expect_one_death(last_dies, 2, false);
    expect_one_death(first_dies, 2, true);
}

static void test_a_death_reaches_ranks_that_wait_for_a_busy_one(void **state)
{
    expect_one_death(last_dies_while_rank_0_works, 4, false);
}

static enum el_status one_ends_all(struct el_bootstrap *bootstrap)
{
    EL_TRY(el_bootstrap_barrier(bootstrap));
    if (el_bootstrap_rank(bootstrap) == 1) el_bootstrap_abort(bootstrap, 7);
    if (el_bootstrap_rank(bootstrap) == 2) usleep(20000000); /* in no call at all */
    return el_bootstrap_barrier(bootstrap);
}

static void test_abort_ends_all(void **state)
{
    int statuses[TCP_PROCESSES_MAX];
    int64_t begin_ns = el_clock_ns();
    tcp_processes(4, play, &(el_scene){one_ends_all}, statuses);
    for (int i = 0; i < 4; i++) assert_true(WIFEXITED(statuses[i]) && WEXITSTATUS(statuses[i]) == 7);
    assert_true(el_clock_ns() - begin_ns < INT64_C(10000000000));
}

static enum el_status some_leave_early(struct el_bootstrap *bootstrap)
{
    EL_TRY(el_bootstrap_barrier(bootstrap));
    if (el_bootstrap_rank(bootstrap) == 1) return EL_OK; /* with a farewell: no alarm */
    usleep(300000);
    if (el_bootstrap_rank(bootstrap) != 0) return EL_OK;
    if (el_bootstrap_barrier(bootstrap) != EL_ERR_PEER) return el_fail(EL_ERR_INTERNAL, "the barrier did not fail");
    return strstr(el_error_message(), "rank 1 has left") ? EL_OK : EL_ERR_INTERNAL;
}

static void test_a_farewell_is_no_death(void **state)
{
    int statuses[TCP_PROCESSES_MAX];
    tcp_processes(3, play, &(el_scene){some_leave_early}, statuses);
    for (int i = 0; i < 3; i++) assert_int_equal(statuses[i], 0);
}

/* ---- ranks that are there and say nothing ---- */

/* Rank 0 learns the number of the process that stops, and wakes it again. */
static enum el_status one_stops(struct el_bootstrap *bootstrap)
{
    char pid[16], **pids = NULL, silent[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    EL_TRY(el_bootstrap_gather(bootstrap, pid, &pids));
    if (el_bootstrap_rank(bootstrap) == 2) raise(SIGSTOP);
    if (el_bootstrap_rank(bootstrap) != 0) return el_bootstrap_barrier(bootstrap);
    usleep(200000);
    el_bootstrap_silent(bootstrap, silent, sizeof silent);
    bool named = strcmp(silent, "2") == 0;
    kill(atoi(pids[2]), SIGCONT);
    for (int i = 0; i < el_bootstrap_size(bootstrap); i++) free(pids[i]);
    free(pids);
    usleep(200000);
    el_bootstrap_silent(bootstrap, silent, sizeof silent);
    EL_TRY(el_bootstrap_barrier(bootstrap));
    return named && !*silent ? EL_OK : el_fail(EL_ERR_INTERNAL, "silent: '%s'", silent);
}

static void test_a_stopped_rank_does_not_answer(void **state)
{
    int statuses[TCP_PROCESSES_MAX];
    tcp_processes(4, play, &(el_scene){one_stops}, statuses);
    for (int i = 0; i < 4; i++) assert_int_equal(statuses[i], 0);
}

/* ---- a stranger in a rank's place ---- */

struct stranger {
    enum el_tcp_channel channel; /* where it speaks */
    uint64_t words[32];
    size_t bytes;
    const char *answer; /* of rank 0: what it fails with; NULL: it does not come so far */
};

static int enter(const struct el_rendezvous *place, enum el_tcp_channel channel)
{
    char why[EL_TCP_WHY_BYTES];
    struct el_tcp_answer answer;
    int made;
    bool hopeless;
    struct el_tcp_hello hello = {.magic = EL_TCP_HELLO_MAGIC,
                                 .version = EL_TCP_VERSION,
                                 .rank = (uint32_t)place->rank,
                                 .size = (uint32_t)place->size,
                                 .channel = channel,
                                 .token = el_tcp_token(place)};
    if (!el_tcp_connect(place->host, place->port, -1, &made, why, &hopeless)) return -1;
    el_tcp_write(made, &hello, sizeof hello);
    return el_tcp_read(made, &answer, sizeof answer, -1) == 0 && answer.verdict == EL_TCP_NOTED ? made : -1;
}

static int play_stranger(const struct el_rendezvous *place, const void *context)
{
    const struct stranger *stranger = context;
    struct el_bootstrap *bootstrap;
    char **texts;
    if (place->rank != 0) {
        int sockets[] = {enter(place, EL_TCP_DATA), enter(place, EL_TCP_ALARM)};
        el_tcp_write(sockets[stranger->channel], stranger->words, stranger->bytes);
        return el_tcp_read(sockets[EL_TCP_DATA], &(char[4096]){0}, 4096, -1) != 0 ? 0 : 9;
    }
    if (el_bootstrap_open_tcp(place, &bootstrap) != EL_OK) return 8;
    bool right = el_bootstrap_gather(bootstrap, "", &texts) == EL_ERR_PEER && stranger->answer &&
                 strstr(el_error_message(), stranger->answer);
    return right ? 0 : 7;
}

static void test_a_peer_that_ends_the_job_with_success(void **state)
{
    int statuses[TCP_PROCESSES_MAX];
    for (uint64_t said = 0; said <= 256; said += 256) { /* 256: 0 to a parent */
        const struct stranger stranger = {
            .channel = EL_TCP_ALARM, .words = {3 | UINT64_C(1) << 32, said}, .bytes = 256}; /* END_JOB, of rank 1 */
        tcp_processes(2, play_stranger, &stranger, statuses);
        assert_true(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 1);
    }
}

static void test_a_peer_that_announces_too_much(void **state)
{
    int statuses[TCP_PROCESSES_MAX];
    const struct stranger stranger = {.channel = EL_TCP_DATA,
                                      .words = {1, UINT64_C(1) << 36}, /* a gather's text of 64 GiB */
                                      .bytes = 16,
                                      .answer = "rank 1 announces a text of 68719476736 bytes"};
    tcp_processes(2, play_stranger, &stranger, statuses);
    assert_int_equal(statuses[0], 0);
}

RUN_TESTS(NULL, NULL, test_a_dead_rank_is_named_by_all, test_a_death_reaches_ranks_that_wait_for_a_busy_one,
          test_abort_ends_all, test_a_farewell_is_no_death, test_a_stopped_rank_does_not_answer,
          test_a_peer_that_ends_the_job_with_success, test_a_peer_that_announces_too_much)
