/* The communicator `tcp` between processes made by fork, over the bootstrap `tcp`: no launcher, no MPI. */
#include "tests/test.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "runtime/comm/rounds.h"
#include "runtime/comm/tcp/comm_tcp.h"
#include "tests/conformance/comm_scenes.h"
#include "tests/unit/tcp_processes.h"

enum { RANKS_MAX = 4 };

static int play(const struct el_rendezvous *place, const void *context)
{
    const el_scene *scene = context;
    struct el_bootstrap *bootstrap = NULL;
    if (el_bootstrap_open_tcp(place, &bootstrap) != EL_OK) {
        fprintf(stderr, "rank %d: %s\n", place->rank, el_error_message());
        return 1;
    }
    int exit_status = scene_play("tcp", bootstrap, *scene);
    el_bootstrap_close(bootstrap);
    return exit_status;
}

/* Returns how many ranks failed. */
static int run_ranks(int size, el_scene scene)
{
    int n_failed = 0, wait_statuses[TCP_PROCESSES_MAX];
    tcp_processes(size, play, &scene, wait_statuses);
    for (int rank = 0; rank < size; rank++)
        if (!WIFEXITED(wait_statuses[rank]) || WEXITSTATUS(wait_statuses[rank]) != 0) n_failed++;
    return n_failed;
}

static void test_operations(void **state)
{
    for (int i = 0; i < count_product_sizes(); i++) assert_int_equal(run_ranks(product_sizes[i], scene_everything), 0);
}

static enum el_status large(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)bootstrap;
    size_t mib = is_sanitized() ? 8 : 64; /* more than a socket's buffers, either way */
    return check_operations(comm, (mib << 20) / 4 + 3, EL_F32, el_comm_size(comm) - 1);
}

/* ---- the same bits ---- */

/* Sums that depend on their order. */
static double awkward(int rank, size_t i)
{
    return (rank % 2 ? -1 : 1) * (1.0 / (double)(i % 1013 + 1) + rank * 1e-3) * (i % 7 == 0 ? 1e6 : 1);
}

/* As rounds.h says: chunk c is combined from rank c upwards. */
static float expected_sum(int size, size_t count, size_t i)
{
    int c = 0;
    while (i >= el_comm_chunk(count, size, c + 1)) c++;
    float sum = (float)awkward(c, i);
    for (int k = 1; k < size; k++) sum += (float)awkward((c + k) % size, i);
    return sum;
}

static enum el_status in_ring_order(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)bootstrap;
    enum { COUNT = 300007 }; /* the chunks of four ranks are more than an inbox */
    float *data = malloc(COUNT * sizeof *data);
    EL_TRY(el_comm_set_algorithm(comm, EL_COMM_RING));
    for (size_t i = 0; data && i < COUNT; i++) data[i] = (float)awkward(el_comm_rank(comm), i);
    enum el_status status = data ? bits_all_reduce(comm, EL_COMM_SUM, EL_F32, data, COUNT) : el_fail_errno("test");
    for (size_t i = 0; status == EL_OK && i < COUNT; i++) {
        float expected = expected_sum(el_comm_size(comm), COUNT, i);
        if (memcmp(&data[i], &expected, sizeof expected) != 0)
            status = el_fail(EL_ERR_INTERNAL, "[%zu] is %.9g, not %.9g", i, (double)data[i], (double)expected);
    }
    free(data);
    return status;
}

/* ---- what is booked is what moves ---- */

static uint64_t sent_bytes(const struct el_tcp_group *group)
{
    uint64_t sum = 0;
    for (int i = 0; i < group->size; i++) {
        struct tcp_info info = {0};
        socklen_t length = sizeof info;
        int socket = atomic_load(&group->peers[i].to[EL_TCP_LANE_DATA]);
        if (socket >= 0 && getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
            sum += info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    }
    return sum;
}

/* How many ranks this one sends anything to: each gets a header first. */
static int partners(const struct el_comm_shape *shape)
{
    bool sends_to[RANKS_MAX] = {false};
    int n = 0;
    for (int i = 0; i < el_comm_rounds(shape); i++) {
        struct el_comm_round round = el_comm_round(shape, i);
        if (round.send.peer >= 0 && round.send.count > 0) sends_to[round.send.peer] = true;
    }
    for (int i = 0; i < shape->size; i++) n += sends_to[i];
    return n;
}

static enum el_status check_traffic(struct el_bootstrap *bootstrap, struct el_tcp_group *group,
                                    const struct el_comm_shape *shape)
{
    enum { HEADER_BYTES = 32 };
    size_t all = shape->count * (size_t)shape->size;
    double *data = calloc(all, sizeof *data), *result = calloc(all, sizeof *result);
    struct el_comm_task task = {.verb = shape->verb,
                                .algorithm = shape->algorithm,
                                .dtype = EL_F64,
                                .root = shape->root,
                                .count = shape->count,
                                .data = data,
                                .result = result};
    uint64_t expected = el_comm_rounds_traffic(shape).sent_bytes + (uint64_t)(partners(shape) * HEADER_BYTES);
    enum el_status status = data && result ? el_tcp_run(group, &task) : el_fail_errno("test"); /* connects, too */
    EL_TRY(el_bootstrap_agree(bootstrap, status));
    uint64_t begin = sent_bytes(group);
    status = el_bootstrap_agree(bootstrap, el_tcp_run(group, &task)); /* now all of it has left the buffers */
    uint64_t moved = sent_bytes(group) - begin;
    if (status == EL_OK && moved != expected)
        status = el_fail(EL_ERR_INTERNAL, "%s by %s of %zu: %llu bytes went, not %llu",
                         el_comm_verb_row(shape->verb)->name, el_comm_algorithm_name(shape->algorithm), shape->count,
                         (unsigned long long)moved, (unsigned long long)expected);
    free(data);
    free(result);
    return status;
}

static enum el_status counted(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    static const size_t counts[] = {1, 70001};
    struct el_comm_shape shape = {
        .rank = el_comm_rank(comm), .size = el_comm_size(comm), .root = 1, .element_bytes = sizeof(double)};
    void *group;
    EL_TRY(el_comm_tcp_backend.open_ranks(bootstrap, &group));
    enum el_status status = EL_OK;
    for (int i = 0; i < 2 * EL_COMM_SEND * EL_COMM_ALGORITHM_COUNT && status == EL_OK; i++) {
        shape.count = counts[i % 2];
        shape.verb = (enum el_comm_verb)(i / 2 % EL_COMM_SEND);
        shape.algorithm = (enum el_comm_algorithm)(i / 2 / EL_COMM_SEND);
        if (el_comm_has_algorithm(shape.verb, shape.algorithm)) status = check_traffic(bootstrap, group, &shape);
    }
    el_comm_tcp_backend.ops->close(group);
    return status;
}

/* ---- failures ---- */

static enum el_status last_rank_dies(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    int last = el_bootstrap_size(bootstrap) - 1;
    char expected[32];
    EL_TRY(check_operations(comm, 1000, EL_F32, 0));
    if (el_bootstrap_rank(bootstrap) == last) {
        usleep(100000); /* the others are in the middle of it */
        raise(SIGKILL);
    }
    EL_TRY(scene_expect_peer_error(comm));
    if (el_bootstrap_barrier(bootstrap) != EL_ERR_PEER) return el_fail(EL_ERR_INTERNAL, "the barrier did not fail");
    snprintf(expected, sizeof expected, "rank %d is gone", last);
    return strstr(el_error_message(), expected) ? EL_OK : EL_ERR_INTERNAL;
}

static void *abort_soon(void *comm)
{
    usleep(50000);
    el_comm_abort(comm);
    return NULL;
}

/* Another thread wakes a rank that waits for one that does not come. */
static enum el_status a_thread_aborts(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    pthread_t thread;
    enum el_status status = EL_OK;
    if (el_bootstrap_rank(bootstrap) == 0) {
        pthread_create(&thread, NULL, abort_soon, comm);
        status = scene_expect_peer_error(comm);
        pthread_join(thread, NULL);
    }
    return el_bootstrap_agree(bootstrap, status);
}

/* Who waits sleeps: of the time that the others take, this process uses a small part. */
static enum el_status wait_for_the_last(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    struct timespec begin, end;
    bool last = el_bootstrap_rank(bootstrap) == el_bootstrap_size(bootstrap) - 1;
    EL_TRY(el_bootstrap_barrier(bootstrap));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    if (last) usleep(600000);
    EL_TRY(check_operations(comm, 1000, EL_F32, 0));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double used_s = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    return last || used_s < 0.3 ? EL_OK : el_fail(EL_ERR_INTERNAL, "waiting used %g s of a core", used_s);
}

static void test_scenes(void **state)
{
    static const struct scene_row rows[] = {
        {"ranks send and receive", scene_mail, 2, RANKS_MAX, 0},
        {"groups split", scene_splits, 2, 5, 0},
        {"random sequences over random groups", scene_sequences, RANKS_MAX, RANKS_MAX, 0},
        {"many MiB", large, 3, 3, 0},
        {"sums have the order of the ring", in_ring_order, 2, RANKS_MAX, 0},
        {"what is booked is what moves", counted, 2, RANKS_MAX, 0},
        {"a dead rank fails the others", last_rank_dies, 2, RANKS_MAX, 1},
        {"an abort fails all", scene_last_rank_aborts, 2, RANKS_MAX, 0},
        {"any thread may abort", a_thread_aborts, 3, 3, 0},
        {"different operations are noticed", scene_ranks_differ, 2, 3, 0},
        {"waiting sleeps", wait_for_the_last, 3, 3, 0},
    };
    assert_int_equal(scene_play_rows(rows, sizeof rows / sizeof *rows, run_ranks), 0);
}

static void test_the_algorithm_follows_ranks_and_bytes(void **state)
{
    static const struct {
        enum el_comm_verb verb;
        int size;
        size_t bytes;
        enum el_comm_algorithm chosen;
    } rows[] = {
        {EL_COMM_ALL_REDUCE, 3, 2048, EL_COMM_PS},        {EL_COMM_ALL_REDUCE, 3, 2049, EL_COMM_DIRECT},
        {EL_COMM_ALL_REDUCE, 2, 8, EL_COMM_DIRECT},       {EL_COMM_BROADCAST, 3, 8, EL_COMM_DIRECT},
        {EL_COMM_ALL_REDUCE, 3, 1 << 20, EL_COMM_RING},   {EL_COMM_ALL_REDUCE, 2, 1 << 20, EL_COMM_DIRECT},
        {EL_COMM_ALL_TO_ALL, 4, 1 << 20, EL_COMM_DIRECT}, {EL_COMM_BROADCAST, 4, 1 << 20, EL_COMM_RING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct el_comm_shape shape = {
            .verb = rows[i].verb, .size = rows[i].size, .count = rows[i].bytes, .element_bytes = 1};
        assert_int_equal(el_comm_tcp_backend.ops->choose(&shape), rows[i].chosen);
    }
}

/* ---- strangers ---- */

static void *join(void *group)
{
    return el_tcp_join(group) == EL_OK ? group : NULL;
}

/* More of them than places for guests; a few say something. */
static void test_strangers_keep_nobody_waiting(void **state)
{
    enum { STRANGERS = EL_TCP_GUESTS + 10 };
    struct el_tcp_group *groups[2];
    char rows[2][EL_TCP_ROW_BYTES], why[EL_TCP_WHY_BYTES];
    int sockets[2][STRANGERS];
    bool hopeless;
    void *joined;
    pthread_t other;
    for (int r = 0; r < 2; r++) {
        groups[r] = el_tcp_create("test", r, 2);
        assert_int_equal(el_tcp_mesh_listen(groups[r], "127.0.0.1", rows[r]), EL_OK);
        groups[r]->key = 7;
    }
    for (int r = 0; r < 2; r++) {
        for (int k = 0; k < 2; k++) assert_int_equal(el_tcp_mesh_learn(groups[r], k, rows[k]), EL_OK);
        const struct el_tcp_peer *own = &groups[r]->peers[r];
        for (int i = 0; i < STRANGERS; i++) {
            assert_true(el_tcp_connect(own->address, own->port, -1, &sockets[r][i], why, &hopeless));
            assert_int_equal(el_tcp_write(sockets[r][i], "el-mesh\0and no key of ours", i % 8 * 3), 0);
        }
    }
    pthread_create(&other, NULL, join, groups[1]);
    assert_non_null(join(groups[0]));
    pthread_join(other, &joined);
    assert_non_null(joined);
    for (int r = 0; r < 2; r++) {
        el_tcp_close(groups[r]);
        for (int i = 0; i < STRANGERS; i++) close(sockets[r][i]);
    }
}

int main(void)
{
    product_announce();
    return RUN(NULL, NULL, test_strangers_keep_nobody_waiting, test_the_algorithm_follows_ranks_and_bytes,
               test_operations, test_scenes);
}
