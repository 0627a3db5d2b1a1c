/* Who is compared with whom: ranks, siblings, or nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/fake_proc.h"

static struct el_watch_peers peers_of(const struct el_watching *watch)
{
    struct el_watch_peers peers;
    assert_int_equal(el_watch_peers(watch, &peers), EL_OK);
    return peers;
}

static int pid_of(const struct el_watching *watch, const struct el_watch_peers *peers, int i)
{
    return watch->tree->list[peers->list[i].process]->process.pid;
}

static void peers_are_ranks(void **state)
{
    struct el_process_tree *tree = open_tree();
    static const struct {
        int pid, parent, rank, kib;
    } processes[] = {{101, ANCESTOR, -1, 9000}, {102, 101, 1, 10},  {103, 102, 1, 500},
                     {104, 101, 0, 900},        {105, 104, 0, 100}, {106, 101, 2, 300}};
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++) {
        int kib = processes[i].kib;
        if (processes[i].rank >= 0) put_rank(processes[i].pid, processes[i].rank);
        if (processes[i].rank < 0) put(processes[i].pid, "environ", "RANK=5", 6); /* anybody may use that name */
        put_process((struct fake){.pid = processes[i].pid,
                                  .parent = processes[i].parent,
                                  .name = "p",
                                  .ticks = 1,
                                  .resident_kib = kib,
                                  .peak_kib = kib});
    }
    discover(tree, 106);
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_string_equal(peers.what, "ranks");
    assert_int_equal(peers.n, 3);
    assert_int_equal(pid_of(watch, &peers, 0), 104);
    assert_int_equal(pid_of(watch, &peers, 1), 103); /* what the script of rank 1 started */
    assert_int_equal(pid_of(watch, &peers, 2), 106);
    assert_true(peers.list[1].memory_bytes == 500 * 1024);
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

static void peers_are_siblings(void **state)
{
    struct el_process_tree *tree = open_tree();
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "main", .resident_kib = 99999});
    put_process((struct fake){.pid = 102, .parent = 101, .name = "worker", .ticks = 40, .resident_kib = 800});
    put_process((struct fake){.pid = 103, .parent = 101, .name = "worker", .ticks = 50, .resident_kib = 900});
    put_process((struct fake){.pid = 104, .parent = 101, .name = "worker", .ticks = 1, .resident_kib = 20}); /* helps */
    put_process((struct fake){.pid = 105, .parent = 103, .name = "loader", .ticks = 2, .resident_kib = 100});
    put_process((struct fake){.pid = 106, .parent = 103, .name = "loader", .ticks = 2, .resident_kib = 100});
    put_process((struct fake){.pid = 107, .parent = 101, .name = "worker", .ticks = 50, .resident_kib = 900});
    discover(tree, 107);
    for (int pid = 101; pid < 107; pid++) set_life(tree, pid, 1000, 41000);
    set_life(tree, 107, 25000, 45000); /* together for 16 of 40: not side by side */
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_int_equal(peers.n, 2);
    assert_int_equal(pid_of(watch, &peers, 0), 102);
    assert_int_equal(pid_of(watch, &peers, 1), 103);
    el_watch_peers_free(&peers);
    set_life(tree, 107, 19000, 45000); /* for 22 of them */
    peers = peers_of(watch);
    assert_int_equal(peers.n, 3);
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

static void nothing_to_compare(void **state)
{
    struct el_process_tree *tree = open_tree();
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "alone", .resident_kib = 1});
    discover(tree, 101);
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_int_equal(peers.n, 0);
    assert_non_null(strstr(peers.rule, "no two processes"));
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(peers_are_ranks),
        TEST(peers_are_siblings),
        TEST(nothing_to_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
