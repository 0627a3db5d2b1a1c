/* The communicator `hierarchical` between processes made by fork, whose nodes are said, not found: all on one host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/hierarchical.h"
#include "tests/conformance/comm_product.h"
#include "tests/conformance/comm_scenes.h"
#include "tests/conformance/comm_sequences.h"
#include "tests/conformance/comm_splits.h"
#include "tests/sanitized.h"
#include "tests/unit/tcp_processes.h"

enum { COUNT_MAX = 150001 };

/* A digit a rank: its node. */
static const char *const layouts[] = {"0011", "0101", "001", "01", "01022"};

struct member {
    const struct el_comm_ops *ops;
    void *state;
    int rank, size;
    float *data, *result;
};

typedef enum el_status (*act_of_rank)(struct el_bootstrap *bootstrap, struct member *member);

struct scene {
    const char *layout;
    act_of_rank act;
};

static int play(const struct el_rendezvous *place, const void *context)
{
    const struct scene *scene = context;
    const char node[] = {scene->layout[place->rank], 0};
    struct el_bootstrap *bootstrap = NULL;
    struct member m = {.ops = el_comm_hierarchical_backend.ops,
                       .rank = place->rank,
                       .size = place->size,
                       .data = calloc(COUNT_MAX, sizeof *m.data),
                       .result = calloc(COUNT_MAX, sizeof *m.result)};
    enum el_status status = m.data && m.result ? el_bootstrap_open_tcp(place, &bootstrap) : el_fail_errno("test");
    if (status == EL_OK) status = el_hierarchical_open(bootstrap, node, &m.state);
    if (status == EL_OK) status = scene->act(bootstrap, &m);
    if (status != EL_OK) fprintf(stderr, "rank %d of %s: %s\n", m.rank, scene->layout, el_error_message());
    m.ops->close(m.state);
    el_bootstrap_close(bootstrap);
    free(m.data);
    free(m.result);
    return status == EL_OK ? 0 : 1;
}

/* Returns how many ranks did not end well. */
static int run_ranks(const char *layout, act_of_rank act)
{
    int n_failed = 0, wait_statuses[TCP_PROCESSES_MAX], size = (int)strlen(layout);
    const struct scene scene = {layout, act};
    tcp_processes(size, play, &scene, wait_statuses);
    for (int rank = 0; rank < size; rank++) n_failed += wait_statuses[rank] != 0;
    return n_failed;
}

/* ---- what comes out ---- */

static float value(int rank, size_t i)
{
    return (float)((rank + 1) * (int)(i % 31 + 1));
}

static float expected(const struct el_comm_task *task, int size, size_t i)
{
    float sum = 0;
    if (task->verb == EL_COMM_BROADCAST) return value(task->root, i);
    if (task->reduction == EL_COMM_MAX) return value(size - 1, i);
    for (int rank = 0; rank < size; rank++) sum += value(rank, i);
    return task->reduction == EL_COMM_AVERAGE ? sum / (float)size : sum;
}

static enum el_status check(struct member *m, enum el_comm_verb verb, enum el_comm_reduction reduction, int root,
                            size_t count, bool in_place)
{
    struct el_comm_task task = {.verb = verb,
                                .reduction = reduction,
                                .dtype = EL_F32,
                                .algorithm = EL_COMM_RING,
                                .root = root,
                                .number = 1,
                                .count = count,
                                .data = m->data,
                                .result = in_place ? m->data : m->result};
    for (size_t i = 0; i < count; i++) m->data[i] = value(m->rank, i);
    memset(m->result, 0xff, count * sizeof *m->result);
    EL_TRY(m->ops->run(m->state, &task));
    for (size_t i = 0; i < count; i++) {
        float got = ((const float *)task.result)[i], wanted = expected(&task, m->size, i);
        if (got != wanted)
            return el_fail(EL_ERR_INTERNAL, "%s of %zu, root %d: [%zu] is %g, not %g", el_comm_verb_row(verb)->name,
                           count, root, i, (double)got, (double)wanted);
        if (!in_place && m->data[i] != value(m->rank, i)) return el_fail(EL_ERR_INTERNAL, "the data changed");
    }
    return EL_OK;
}

static enum el_status both_verbs(struct el_bootstrap *bootstrap, struct member *m)
{
    const size_t counts[] = {1, 1031, is_sanitized() ? COUNT_MAX / 4 : COUNT_MAX};
    static const enum el_comm_reduction reductions[] = {EL_COMM_SUM, EL_COMM_MAX, EL_COMM_AVERAGE};
    enum el_status status = EL_OK;
    for (int i = 0; i < 18 && status == EL_OK; i++)
        status = check(m, EL_COMM_ALL_REDUCE, reductions[i / 2 % 3], 0, counts[i / 6], i % 2);
    for (int i = 0; i < 6 * m->size && status == EL_OK; i++)
        status = check(m, EL_COMM_BROADCAST, EL_COMM_SUM, i / 6, counts[i % 6 / 2], i % 2);
    return el_bootstrap_agree(bootstrap, status);
}

static void test_sums_and_broadcasts_of_nodes(void **state)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        assert_int_equal(run_ranks(layouts[i], both_verbs), 0);
}

/* ---- sub-groups ---- */

/* Groups across the nodes, within them, and of all in reverse order, each with nodes of its own. */
static enum el_status sums_of_parts(struct el_bootstrap *bootstrap, struct member *m)
{
    const int colors[] = {m->rank % 2, m->rank / 2, m->rank == 0 ? -1 : 0, 0};
    enum el_status status = EL_OK;
    for (int i = 0; i < 4 && status == EL_OK; i++) {
        struct el_comm_split split = {.color = colors[i], .key = -m->rank, .backend = &el_comm_hierarchical_backend};
        status = m->ops->split(m->state, EL_OK, &split);
        if (status != EL_OK || !split.state) continue;
        struct member part = {m->ops, split.state, split.rank, split.size, m->data, m->result};
        status = check(&part, EL_COMM_ALL_REDUCE, EL_COMM_SUM, 0, 1031, i % 2);
        for (int root = 0; root < part.size && status == EL_OK; root++)
            status = check(&part, EL_COMM_BROADCAST, EL_COMM_SUM, root, 1031, i % 2);
        m->ops->close(split.state);
    }
    return el_bootstrap_agree(bootstrap, status);
}

static void test_parts_have_nodes_too(void **state)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        assert_int_equal(run_ranks(layouts[i], sums_of_parts), 0);
}

/* A member that has no room for its part. */
static enum el_status one_cannot(struct el_bootstrap *bootstrap, struct member *m)
{
    struct el_comm_split split = {.color = m->rank % 2, .backend = &el_comm_hierarchical_backend};
    enum el_status mine = m->rank == 1 ? el_fail(EL_ERR_OOM, "no room") : EL_OK;
    enum el_status status = m->ops->split(m->state, mine, &split);
    if (status == (m->rank == 1 ? EL_ERR_OOM : EL_ERR_PEER) && !split.state) status = EL_OK;
    if (status == EL_OK) status = check(m, EL_COMM_ALL_REDUCE, EL_COMM_SUM, 0, 1031, false);
    return el_bootstrap_agree(bootstrap, status);
}

static void test_a_split_that_one_cannot_do_fails_for_all(void **state)
{
    assert_int_equal(run_ranks("0011", one_cannot), 0);
}

/* ---- what is booked ---- */

static enum el_status count_bytes(struct el_bootstrap *bootstrap, struct member *m)
{
    enum { COUNT = 100000 };
    static const enum el_comm_verb verbs[] = {EL_COMM_ALL_REDUCE, EL_COMM_BROADCAST, EL_COMM_ALL_GATHER};
    enum el_status status = EL_OK;
    for (int v = 0; v < 3 && status == EL_OK; v++) {
        struct el_comm_shape shape = {.verb = verbs[v],
                                      .algorithm = EL_COMM_RING,
                                      .rank = m->rank,
                                      .size = m->size,
                                      .root = v == 1 ? m->size - 1 : 0,
                                      .count = COUNT,
                                      .element_bytes = sizeof(float)};
        struct el_comm_traffic mine = m->ops->traffic(m->state, &shape);
        double bytes[2] = {(double)mine.sent_bytes, (double)mine.received_bytes}, sums[2];
        struct el_comm_task task = {.verb = EL_COMM_ALL_REDUCE,
                                    .dtype = EL_F64,
                                    .algorithm = EL_COMM_DIRECT,
                                    .count = 2,
                                    .data = bytes,
                                    .result = sums};
        status = m->ops->run(m->state, &task);
        if (status == EL_OK && (sums[0] != sums[1] || sums[0] == 0))
            status = el_fail(EL_ERR_INTERNAL, "verb %d: %g bytes were sent, %g received", v, sums[0], sums[1]);
    }
    return el_bootstrap_agree(bootstrap, status);
}

static void test_what_all_send_is_what_all_receive(void **state)
{
    for (size_t i = 0; i < 3; i++) assert_int_equal(run_ranks(layouts[i], count_bytes), 0);
}

/* ---- failures ---- */

static enum el_status one_dies(struct el_bootstrap *bootstrap, struct member *m)
{
    enum el_status status = check(m, EL_COMM_ALL_REDUCE, EL_COMM_SUM, 0, COUNT_MAX, false);
    (void)bootstrap;
    if (m->rank == m->size - 1) raise(SIGKILL);
    while (status == EL_OK) status = check(m, EL_COMM_ALL_REDUCE, EL_COMM_SUM, 0, COUNT_MAX, false);
    m->ops->abort(m->state); /* as the wrapper does */
    return status == EL_ERR_PEER ? EL_OK : status;
}

static void test_a_rank_that_dies_fails_all_nodes(void **state)
{
    assert_int_equal(run_ranks("0011", one_dies), 1);
}

/* ---- by its name ---- */

static enum el_status everything_and_parts(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(scene_everything(bootstrap, comm));
    EL_TRY(check_splits(comm));
    return check_sequences(comm, 10);
}

static int play_by_name(const struct el_rendezvous *place, const void *context)
{
    struct el_bootstrap *bootstrap = NULL;
    (void)context;
    if (el_bootstrap_open_tcp(place, &bootstrap) != EL_OK) return 1;
    int exit_status = scene_play("hierarchical", bootstrap, everything_and_parts);
    el_bootstrap_close(bootstrap);
    return exit_status;
}

static void test_every_verb_on_one_host(void **state)
{
    int wait_statuses[TCP_PROCESSES_MAX];
    tcp_processes(3, play_by_name, NULL, wait_statuses);
    for (int rank = 0; rank < 3; rank++) assert_int_equal(wait_statuses[rank], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_and_broadcasts_of_nodes),
        cmocka_unit_test(test_parts_have_nodes_too),
        cmocka_unit_test(test_a_split_that_one_cannot_do_fails_for_all),
        cmocka_unit_test(test_what_all_send_is_what_all_receive),
        cmocka_unit_test(test_a_rank_that_dies_fails_all_nodes),
        cmocka_unit_test(test_every_verb_on_one_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
