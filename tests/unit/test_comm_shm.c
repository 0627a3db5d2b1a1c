/* The shm communicator between processes made by fork, over a bootstrap of pipes that exists only here: no MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "tests/conformance/comm_checks.h"
#include "tests/unit/star_bootstrap.h"

typedef enum el_status (*el_scene)(struct el_bootstrap *bootstrap, struct el_comm *comm);

static int play(struct star *star, void *context)
{
    const el_scene *scene = context;
    struct el_device *device = NULL;
    struct el_comm *comm = NULL;
    struct el_device_spec spec = {.backend = "cpu", .index = star->base.rank, .position = star->base.rank};
    enum el_status status = el_device_open(&spec, &device);
    if (status == EL_OK) status = el_comm_open_ranks("shm", &star->base, device, &comm);
    if (status == EL_OK) status = (*scene)(&star->base, comm);
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", star->base.rank, el_error_message());
    el_comm_close(comm);
    el_device_close(device);
    return status == EL_OK ? 0 : 1;
}

/* Returns how many ranks failed. */
static int run_ranks(int size, el_scene scene)
{
    return star_ranks(size, play, &scene);
}

static enum el_status everything(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)bootstrap;
    return check_everything(comm);
}

static void test_operations(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++) assert_int_equal(run_ranks(size, everything), 0);
}

static enum el_status expect_peer_error(struct el_comm *comm)
{
    int64_t begin_ns = el_clock_ns();
    if (check_operations(comm, 1000000, EL_F32, 0) != EL_ERR_PEER)
        return el_fail(EL_ERR_INTERNAL, "the operation did not fail");
    if (el_clock_ns() - begin_ns > 2000000000) return el_fail(EL_ERR_INTERNAL, "the operation failed late");
    return EL_OK;
}

static enum el_status last_rank_dies(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    if (bootstrap->rank == bootstrap->size - 1) raise(SIGKILL);
    return expect_peer_error(comm);
}

static void test_a_dead_rank_fails_the_others(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) assert_int_equal(run_ranks(size, last_rank_dies), 1);
}

static enum el_status last_rank_aborts(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    if (bootstrap->rank == bootstrap->size - 1) {
        usleep(50000);
        el_comm_abort(comm);
    }
    return expect_peer_error(comm);
}

static void test_an_abort_fails_all(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) assert_int_equal(run_ranks(size, last_rank_aborts), 0);
}

static enum el_status ranks_differ(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    enum el_status status = check_operations(comm, bootstrap->rank == 0 ? 1000 : 1001, EL_F32, 0);
    return status == EL_OK ? el_fail(EL_ERR_INTERNAL, "nobody noticed") : EL_OK;
}

static void test_different_operations_are_noticed(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, ranks_differ), 0);
    assert_int_equal(run_ranks(3, ranks_differ), 0);
}

static enum el_status choose(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)comm;
    const char *kind = el_comm_choose(bootstrap, NULL);
    return strcmp(kind, "shm") == 0 ? EL_OK : el_fail(EL_ERR_INTERNAL, "chose %s", kind);
}

static enum el_status agree(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)comm;
    EL_TRY(el_bootstrap_agree(bootstrap, EL_OK));
    enum el_status mine = bootstrap->rank == 0 ? EL_OK : el_fail(EL_ERR_OOM, "reason %d", bootstrap->rank);
    enum el_status status = el_bootstrap_agree(bootstrap, mine);
    if (status != (bootstrap->rank == 0 ? EL_ERR_PEER : EL_ERR_OOM)) return el_fail(EL_ERR_INTERNAL, "wrong status");
    if (bootstrap->rank == 0 && strcmp(el_error_message(), "rank 1: reason 1") != 0) return EL_ERR_INTERNAL;
    return el_bootstrap_barrier(bootstrap);
}

static void test_bootstrap_agrees_and_chooses(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(3, agree), 0);
    assert_int_equal(run_ranks(3, choose), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_a_dead_rank_fails_the_others),
        cmocka_unit_test(test_an_abort_fails_all),
        cmocka_unit_test(test_different_operations_are_noticed),
        cmocka_unit_test(test_bootstrap_agrees_and_chooses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
