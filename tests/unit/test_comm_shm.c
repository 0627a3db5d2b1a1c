/* The shm communicator between processes made by fork, over a bootstrap of pipes that exists only here: no MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <unistd.h>

#include "tests/conformance/comm_scenes.h"
#include "tests/unit/star_bootstrap.h"

static int play(struct star *star, void *context)
{
    const el_scene *scene = context;
    return scene_play("shm", &star->base, *scene);
}

/* Returns how many ranks failed. */
static int run_ranks(int size, el_scene scene)
{
    return star_ranks(size, play, &scene);
}

static void test_operations(void **state)
{
    (void)state;
    for (int i = 0; i < SCENE_SIZES; i++) assert_int_equal(run_ranks(scene_sizes[i], scene_everything), 0);
}

static enum el_status last_rank_dies(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    if (bootstrap->rank == bootstrap->size - 1) raise(SIGKILL);
    return scene_expect_peer_error(comm);
}

static void test_a_dead_rank_fails_the_others(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) assert_int_equal(run_ranks(size, last_rank_dies), 1);
}

static void test_an_abort_fails_all(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) assert_int_equal(run_ranks(size, scene_last_rank_aborts), 0);
}

static void test_different_operations_are_noticed(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, scene_ranks_differ), 0);
    assert_int_equal(run_ranks(3, scene_ranks_differ), 0);
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
