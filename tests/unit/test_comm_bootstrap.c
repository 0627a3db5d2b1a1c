/* The bootstrap `tcp` among threads: how ranks meet, and what keeps them from it. Processes that die are
 * test_comm_bootstrap_deaths.c. */
#include "tests/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/tcp/socket.h"
#include "tests/conformance/bootstrap_checks.h"

enum { RANKS_MAX = 5 };

/* A port that was free a moment ago. */
static int free_port(void)
{
    int listener, port;
    assert_int_equal(el_tcp_listen("127.0.0.1", 0, false, &listener), 0);
    port = el_tcp_port(listener);
    close(listener);
    return port;
}

struct rank {
    struct el_rendezvous place;
    int64_t delay_ns;
    pthread_t thread;
    struct el_error outcome;
};

static void *meet(void *context)
{
    struct rank *rank = context;
    struct el_bootstrap *bootstrap = NULL;
    el_clock_sleep_until(el_clock_ns() + rank->delay_ns);
    enum el_status status = el_bootstrap_open_tcp(&rank->place, &bootstrap);
    if (status == EL_OK) status = check_bootstrap(bootstrap);
    el_error_take(status, &rank->outcome);
    el_bootstrap_close(bootstrap);
    return NULL;
}

static void prepare(struct rank *ranks, int size, const char *host)
{
    int port = free_port();
    memset(ranks, 0, sizeof *ranks * (size_t)size);
    for (int i = 0; i < size; i++)
        ranks[i].place = (struct el_rendezvous){
            .rank = i, .size = size, .host = host, .port = port, .listener = -1, .token = "a job", .patience_s = 20};
}

static void start(struct rank *ranks, int n)
{
    for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&ranks[i].thread, NULL, meet, &ranks[i]), 0);
}

static void join(struct rank *ranks, int n)
{
    for (int i = 0; i < n; i++) pthread_join(ranks[i].thread, NULL);
}

static void play(struct rank *ranks, int n)
{
    start(ranks, n);
    join(ranks, n);
}

static void expect_all_well(const struct rank *ranks, int n)
{
    for (int i = 0; i < n; i++)
        if (ranks[i].outcome.status != EL_OK) fail_msg("rank %d of %d: %s", i, n, ranks[i].outcome.text);
}

static void expect_failure(const struct rank *rank, enum el_status status, const char *words)
{
    if (rank->outcome.status != status || !strstr(rank->outcome.text, words))
        fail_msg("rank %d: status %d: %s", rank->place.rank, rank->outcome.status, rank->outcome.text);
    assert_null(strchr(rank->outcome.text, '\n'));
}

static void test_ranks_meet(void **state)
{
    struct rank ranks[RANKS_MAX];
    for (int size = 1; size <= RANKS_MAX; size++) {
        prepare(ranks, size, "127.0.0.1");
        play(ranks, size);
        expect_all_well(ranks, size);
    }
}

static void test_rank_0_may_come_late(void **state)
{
    struct rank ranks[3];
    prepare(ranks, 3, "localhost");
    ranks[0].delay_ns = 300000000;
    play(ranks, 3);
    expect_all_well(ranks, 3);
}

static void test_ipv6(void **state)
{
    struct rank ranks[2];
    int listener;
    if (el_tcp_listen("::1", 0, false, &listener) != 0) skip();
    close(listener);
    prepare(ranks, 2, "::1");
    play(ranks, 2);
    expect_all_well(ranks, 2);
}

static void test_a_host_by_its_name(void **state)
{
    struct rank ranks[2];
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    prepare(ranks, 2, name);
    ranks[0].place.patience_s = ranks[1].place.patience_s = 5;
    play(ranks, 2);
    if (strstr(ranks[1].outcome.text, "cannot find the host")) skip(); /* a machine that does not know its own name */
    expect_all_well(ranks, 2);
}

static void test_a_listener_taken_over(void **state)
{
    struct rank ranks[2];
    prepare(ranks, 2, "127.0.0.1");
    assert_int_equal(el_tcp_listen("127.0.0.1", 0, false, &ranks[0].place.listener), 0);
    ranks[0].place.port = ranks[1].place.port = el_tcp_port(ranks[0].place.listener);
    play(ranks, 2);
    expect_all_well(ranks, 2);
}

/* ---- what keeps ranks from meeting ---- */

static void test_a_rank_that_does_not_come(void **state)
{
    struct rank ranks[4];
    prepare(ranks, 4, "127.0.0.1");
    for (int i = 0; i < 4; i++) ranks[i].place.patience_s = 1;
    int64_t begin_ns = el_clock_ns();
    play(ranks, 3);
    assert_true(el_clock_ns() - begin_ns < INT64_C(10000000000));
    expect_failure(&ranks[0], EL_ERR_TIMEOUT, "waited 1 s");
    expect_failure(&ranks[0], EL_ERR_TIMEOUT, "for rank 3 of 4");
    expect_failure(&ranks[1], EL_ERR_PEER, "for rank 3 of 4");
    expect_failure(&ranks[2], EL_ERR_PEER, "rank 0: ");
}

static void test_rank_0_is_not_there(void **state)
{
    struct rank ranks[2];
    prepare(ranks, 2, "127.0.0.1");
    ranks[1].place.patience_s = 0.5;
    play(ranks + 1, 1);
    expect_failure(&ranks[1], EL_ERR_TIMEOUT, "did not reach rank 0 at 127.0.0.1");
    expect_failure(&ranks[1], EL_ERR_TIMEOUT, "Connection refused");
}

static void test_a_name_that_is_none(void **state)
{
    struct rank ranks[2];
    prepare(ranks, 2, "no.such.host.invalid");
    ranks[1].place.patience_s = 1;
    play(ranks + 1, 1);
    assert_int_not_equal(ranks[1].outcome.status, EL_OK);
    assert_non_null(strstr(ranks[1].outcome.text, "no.such.host.invalid"));
}

static void test_a_place_that_is_none(void **state)
{
    struct rank ranks[2];
    prepare(ranks, 2, "127.0.0.1");
    ranks[0].place.port = 0;
    ranks[1].place.rank = 2;
    play(ranks, 2);
    expect_failure(&ranks[0], EL_ERR_INVALID, "MASTER_PORT");
    expect_failure(&ranks[1], EL_ERR_INVALID, "rank 2 of 2");
}

static void test_a_port_in_use(void **state)
{
    struct rank ranks[2];
    int other;
    prepare(ranks, 2, "127.0.0.1");
    assert_int_equal(el_tcp_listen("127.0.0.1", ranks[0].place.port, false, &other), 0);
    play(ranks, 1);
    close(other);
    expect_failure(&ranks[0], EL_ERR_IO, "give another MASTER_PORT");
}

static void test_the_next_port_where_the_first_is_taken(void **state)
{
    struct rank ranks[3];
    int other;
    prepare(ranks, 3, "127.0.0.1");
    for (int i = 0; i < 3; i++) ranks[i].place.n_ports = 8;
    assert_int_equal(el_tcp_listen("127.0.0.1", ranks[0].place.port, false, &other), 0);
    play(ranks, 3);
    close(other);
    expect_all_well(ranks, 3);
}

/* Told of another world, or of a place that is taken: they are told so, and those who belong there still meet. */
static void test_who_contradicts_is_turned_away(void **state)
{
    struct rank ranks[3], strangers[3];
    prepare(ranks, 3, "127.0.0.1");
    for (int i = 0; i < 3; i++) strangers[i] = ranks[1];
    strangers[0].place.size = 4;
    strangers[1].place.rank = 3;
    strangers[1].place.size = 4;
    start(ranks, 2);
    usleep(200000); /* rank 1 has come */
    play(strangers, 3);
    play(ranks + 2, 1);
    join(ranks, 2);
    expect_all_well(ranks, 3);
    expect_failure(&strangers[0], EL_ERR_PEER, "rank 1 (127.0.0.1) expects 4 ranks, and rank 0 expects 3");
    expect_failure(&strangers[1], EL_ERR_PEER, "rank 3 (127.0.0.1) expects 4 ranks");
    expect_failure(&strangers[2], EL_ERR_PEER, "rank 1 came twice");
}

/* Nobody else comes: then what it was told is the likely reason. */
static void test_a_rank_that_was_told_wrong(void **state)
{
    struct rank ranks[2];
    prepare(ranks, 2, "127.0.0.1");
    ranks[1].place.size = 4;
    ranks[0].place.patience_s = 0.7;
    play(ranks, 2);
    expect_failure(&ranks[0], EL_ERR_TIMEOUT, "rank 1 of 2; 1 other connection was turned away");
    expect_failure(&ranks[0], EL_ERR_TIMEOUT, "rank 1 (127.0.0.1) expects 4 ranks");
    expect_failure(&ranks[1], EL_ERR_PEER, "expects 4 ranks");
}

static void test_who_does_not_know_the_secret_is_turned_away(void **state)
{
    struct rank ranks[2], strangers[2];
    prepare(ranks, 2, "127.0.0.1");
    ranks[0].place.secret = ranks[1].place.secret = "open sesame";
    strangers[0] = strangers[1] = ranks[1];
    strangers[0].place.secret = NULL;
    strangers[1].place.secret = "open barley";
    start(ranks, 1);
    play(strangers, 2);
    play(ranks + 1, 1);
    join(ranks, 1);
    expect_all_well(ranks, 2);
    for (int i = 0; i < 2; i++) expect_failure(&strangers[i], EL_ERR_PEER, "EVENLOAD_SECRET");
}

enum { CROWD = 300 };

/* They fill every place and the queue at the port; a start beside them took 16 s. */
static void test_a_silent_crowd_does_not_keep_ranks_out(void **state)
{
    struct rank ranks[2];
    char why[EL_TCP_WHY_BYTES];
    int crowd[CROWD];
    bool hopeless;
    prepare(ranks, 2, "127.0.0.1");
    start(ranks, 1);
    for (int i = 0; i < CROWD; i++)
        while (!el_tcp_connect("127.0.0.1", ranks[0].place.port, -1, &crowd[i], why, &hopeless)) usleep(1000);
    int64_t begin_ns = el_clock_ns();
    play(ranks + 1, 1);
    join(ranks, 1);
    assert_true(el_clock_ns() - begin_ns < INT64_C(4000000000));
    expect_all_well(ranks, 2);
    for (int i = 0; i < CROWD; i++) close(crowd[i]);
}

static void test_more_ranks_than_files(void **state)
{
    struct rank ranks[1];
    prepare(ranks, 1, "127.0.0.1");
    ranks[0].place.size = 100000000;
    play(ranks, 1);
    expect_failure(&ranks[0], EL_ERR_INVALID, "100000000 ranks need 200000030 open files on rank 0");
}

static void *answer_nonsense(void *context)
{
    int listener = *(int *)context, socket;
    char nonsense[400];
    memset(nonsense, 'n', sizeof nonsense);
    while (el_tcp_accept(listener, el_clock_ns() + 800000000, &socket) == 0) {
        el_tcp_write(socket, nonsense, sizeof nonsense);
        close(socket);
    }
    return NULL;
}

static void test_what_is_there_is_not_rank_0(void **state)
{
    struct rank ranks[2];
    int other;
    pthread_t thread;
    prepare(ranks, 2, "127.0.0.1");
    ranks[1].place.patience_s = 0.5;
    assert_int_equal(el_tcp_listen("127.0.0.1", ranks[0].place.port, false, &other), 0);
    assert_int_equal(pthread_create(&thread, NULL, answer_nonsense, &other), 0);
    play(ranks + 1, 1);
    pthread_join(thread, NULL);
    close(other);
    expect_failure(&ranks[1], EL_ERR_TIMEOUT, "is not rank 0 of a job");
}

/* Rank 1 of another job, one who talks nonsense, one who says nothing, one who leaves: then the two who belong there.
 */
static void test_strays_do_not_disturb(void **state)
{
    struct rank ranks[2], foreign;
    char why[EL_TCP_WHY_BYTES];
    int strays[3];
    bool hopeless;
    prepare(ranks, 2, "127.0.0.1");
    foreign = ranks[1];
    foreign.place.token = "another job";
    start(ranks, 1);
    for (int i = 0; i < 3; i++)
        while (!el_tcp_connect("127.0.0.1", ranks[0].place.port, -1, &strays[i], why, &hopeless)) usleep(1000);
    assert_int_equal(el_tcp_write(strays[0], "GET / HTTP/1.1\r\n\r\n", 18), 0);
    assert_int_equal(el_tcp_write(strays[2], "elgue", 5), 0);
    shutdown(strays[2], SHUT_WR);
    play(&foreign, 1);
    expect_failure(&foreign, EL_ERR_PEER, "another job");
    play(ranks + 1, 1);
    join(ranks, 1);
    expect_all_well(ranks, 2);
    for (int i = 0; i < 3; i++) close(strays[i]);
}

RUN_TESTS(NULL, NULL, test_ranks_meet, test_rank_0_may_come_late, test_ipv6, test_a_host_by_its_name,
          test_a_listener_taken_over, test_a_rank_that_does_not_come, test_rank_0_is_not_there,
          test_a_name_that_is_none, test_a_place_that_is_none, test_a_port_in_use,
          test_the_next_port_where_the_first_is_taken, test_who_contradicts_is_turned_away,
          test_a_rank_that_was_told_wrong, test_who_does_not_know_the_secret_is_turned_away,
          test_a_silent_crowd_does_not_keep_ranks_out, test_more_ranks_than_files, test_what_is_there_is_not_rank_0,
          test_strays_do_not_disturb)
