/* Processes seen from outside, on a made-up /proc whose truth is known: what is read of each, and who belongs to a
 * tree. */
#include "tests/test.h"

#include <stdio.h>

#include "tests/unit/fake_proc.h"

static void one_process(void **state)
{
    struct el_process process;
    struct el_process_look look;
    struct el_process_identity identity;
    static const char environment[] = "HOME=/\0RANK=3\0WORLD_SIZE=4\0MASTER_ADDR=a\0MASTER_PORT=29500";
    PUT(.pid = 101, .parent = 7, .name = "a (b) c)", .ticks = 50, .threads = 9, .resident_kib = 2000, .peak_kib = 3000,
        .private_kib = 900, .shared_kib = 80);
    put(101, "cmdline", "python\0-c\0x\ny", 14);
    put(101, "environ", environment, sizeof environment);
    put(101, "smaps_rollup", "0-1 ---p 0 0 0 [rollup]\nRss: 2000 kB\nPss:   1500 kB\nPss_Anon: 9 kB\n", 68);
    assert_true(el_process_open(folder, 101, &process));
    assert_true(el_process_look(&process, &look));
    assert_string_equal(look.name, "a (b) c)");
    assert_int_equal(look.parent, 7);
    assert_int_equal(look.n_threads, 9);
    assert_int_equal(look.cpu_ns, 1000000000); /* 50 ticks of user, 50 of system */
    assert_int_equal(look.resident_bytes, 2000 * 1024);
    assert_int_equal(look.peak_bytes, 3000 * 1024);
    assert_int_equal(look.own_bytes, 980 * 1024);
    assert_int_equal(el_process_pss_bytes(&process), 1500 * 1024);
    el_process_identify(&process, &identity);
    assert_string_equal(identity.command, "python -c x y");
    assert_string_equal(identity.cpus, "0-3,8");
    assert_int_equal(identity.rank, 3);
    assert_string_equal(identity.launcher, "torchrun");
    el_process_close(&process);
}

static void what_is_no_process(void **state)
{
    struct el_process process;
    struct el_process_look look;
    PUT(.pid = 102, .parent = 7, .group = 101, .name = "thread", .resident_kib = 1);
    assert_false(el_process_open(folder, 102, &process));
    assert_false(el_process_open(folder, 399, &process));
    assert_int_equal(el_process_parent(folder, 399), -1);
    PUT(.pid = 103, .parent = 7, .name = "x");
    put(103, "stat", "103 (x", 6); /* cut off */
    assert_true(el_process_open(folder, 103, &process));
    assert_false(el_process_look(&process, &look));
    assert_int_equal(el_process_pss_bytes(&process), -1);
    el_process_close(&process);
}

/* A user of many groups, a machine of many CPUs: both stand before or among what is looked for. */
static void a_long_status(void **state)
{
    static char text[65536];
    struct el_process process;
    struct el_process_look look;
    struct el_process_identity identity;
    PUT(.pid = 101, .parent = 7, .name = "many", .resident_kib = 2000, .peak_kib = 3000);
    size_t n = (size_t)snprintf(text, sizeof text, "Name:\tmany\nTgid:\t101\nGroups:\t");
    for (int group = 0; group < 2000; group++) n += (size_t)snprintf(text + n, sizeof text - n, "%d ", 100000 + group);
    n += (size_t)snprintf(text + n, sizeof text - n, "\nVmHWM:\t3000 kB\nVmRSS:\t2000 kB\nCpus_allowed_list:\t");
    for (int cpu = 0; cpu < 100; cpu++) n += (size_t)snprintf(text + n, sizeof text - n, "%d,", 2 * cpu);
    n += (size_t)snprintf(text + n, sizeof text - n, "300-309\nMems_allowed:\t1\n");
    put(101, "status", text, n);
    assert_true(el_process_open(folder, 101, &process));
    assert_true(el_process_look(&process, &look));
    assert_int_equal(look.resident_bytes, 2000 * 1024);
    assert_int_equal(look.peak_bytes, 3000 * 1024);
    el_process_identify(&process, &identity);
    assert_int_equal(identity.n_cpus, 110);
    assert_string_equal(identity.cpus + strlen(identity.cpus) - 3, "...");
    put(101, "status", "Tgid:\t101\n", 11); /* on its way out */
    assert_true(el_process_look(&process, &look));
    assert_int_equal(look.resident_bytes, -1);
    el_process_close(&process);
}

static void who_belongs_to_a_tree(void **state)
{
    PUT(.pid = 90, .name = "older"); /* of before: not of the command */
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "command", .resident_kib = 10);
    PUT(.pid = 102, .parent = 101, .group = 101, .name = "thread", .resident_kib = 10);
    PUT(.pid = 103, .parent = 101, .name = "child", .resident_kib = 10);
    PUT(.pid = 104, .parent = 1, .name = "stranger", .resident_kib = 10);
    PUT(.pid = 105, .parent = 104, .name = "strangers", .resident_kib = 10);
    PUT(.pid = 106, .parent = 103, .name = "grandchild", .resident_kib = 10);
    discover(tree, 106);
    assert_int_equal(tree->n, 3);
    assert_int_equal(tree->list[2]->process.pid, 106);
    assert_int_equal(tree->list[2]->above, 1);
    /* A number that is given out before its process can be seen. */
    discover(tree, 107);
    assert_int_equal(tree->n, 3);
    PUT(.pid = 107, .parent = 106, .name = "late", .resident_kib = 10);
    discover(tree, 107);
    assert_int_equal(el_process_tree_find(tree, 107), 3);
    /* The child ends; what it started comes to the ancestor, and stays of the tree. */
    PUT(.pid = 103, .parent = 101, .state = 'Z', .ticks = 5, .name = "child");
    el_process_tree_look(tree);
    assert_int_equal(el_process_tree_find(tree, 103), 0 - 1);
    PUT(.pid = 108, .parent = 106, .name = "more", .resident_kib = 10);
    discover(tree, 108);
    assert_int_equal(tree->n, 5);
    el_process_tree_close(tree);
}

static void numbers_that_begin_anew(void **state)
{
    put_last(30000);
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "command", .resident_kib = 10);
    PUT(.pid = 50, .parent = 101, .name = "child", .resident_kib = 10);
    discover(tree, 102); /* lower than before: everyone is gone through, a child may stand before its parent */
    assert_int_equal(tree->n, 2);
    el_process_tree_close(tree);
}

static void a_last_number_of_another_system(void **state)
{
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "command", .resident_kib = 10);
    put_last(31000);
    el_process_tree_expect(tree, 101); /* does not agree: believed no more */
    assert_int_equal(el_process_tree_discover(tree), EL_OK);
    assert_int_equal(tree->n, 1);
    PUT(.pid = 102, .parent = 101, .name = "child", .resident_kib = 10);
    assert_int_equal(el_process_tree_discover(tree), EL_OK);
    assert_int_equal(tree->n, 2);
    el_process_tree_close(tree);
}

static void figures_of_a_process(void **state)
{
    struct el_process_tree *tree = open_tree();
    /* Between fork and exec: it shows its parent's gigabyte. */
    PUT(.pid = 101, .name = "sh", .resident_kib = 1 << 20, .peak_kib = 1 << 20, .program = 5);
    discover(tree, 101);
    const struct el_tree_process *p = tree->list[0];
    assert_int_equal(p->peak_bytes, 1 << 30);
    put(101, "cmdline", "tool\0x", 6);
    PUT(.pid = 101, .name = "sh", .resident_kib = 100, .peak_kib = 200, .ticks = 1, .program = 6);
    el_process_tree_look(tree);
    assert_int_equal(p->peak_bytes, 200 * 1024);
    assert_string_equal(p->identity.command, "tool x");
    PUT(.pid = 101, .name = "sh", .resident_kib = 300, .peak_kib = 300, .ticks = 2, .threads = 4, .program = 6);
    set_life(tree, 101, p->begin_ns, p->end_ns - 20000000);
    el_process_tree_look(tree);
    assert_int_equal(p->peak_bytes, 300 * 1024);
    assert_true(p->resident_byte_s / p->looked_s > 200 * 1024 && p->resident_byte_s / p->looked_s <= 300 * 1024);
    assert_int_equal(p->own_peak_bytes, -1);
    PUT(.pid = 101, .name = "sh", .resident_kib = 290, .peak_kib = 300, .program = 6, .private_kib = 100,
        .shared_kib = 20);
    el_process_tree_look(tree);
    assert_int_equal(p->own_peak_bytes, 120 * 1024);
    /* On its way out: no memory, no program, and its last CPU time. */
    PUT(.pid = 101, .name = "sh", .state = 'Z', .ticks = 9);
    el_process_tree_look_at(tree, 101);
    assert_false(p->alive);
    assert_int_equal(p->peak_bytes, 300 * 1024);
    assert_int_equal(p->look.cpu_ns, 180000000);
    assert_int_equal(p->n_threads, 4);
    assert_string_equal(p->identity.command, "tool x");
    el_process_tree_close(tree);
}

/* Looks at a process of that age, if it is time. */
static bool look_at_age(struct el_process_tree *tree, int64_t age_ns)
{
    struct el_tree_process *p = tree->list[0];
    int64_t begin_ns = el_clock_ns() - age_ns;
    if (p->again_ns != INT64_MAX) p->again_ns += begin_ns - p->begin_ns;
    p->begin_ns = begin_ns;
    return el_process_tree_look_young(tree);
}

/* Another look each time that it has doubled its age, up to a tenth of a second: then it is one of all. */
static void the_young_are_looked_at_more_often(void **state)
{
    const int64_t ms = 1000000;
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "command", .resident_kib = 10, .peak_kib = 10);
    discover(tree, 101);
    PUT(.pid = 101, .name = "command", .resident_kib = 10, .peak_kib = 99);
    assert_false(look_at_age(tree, 0));
    assert_int_equal(tree->list[0]->peak_bytes, 10 * 1024);
    static const int ages_ms[] = {15, 35, 75, 155};
    for (size_t i = 0; i < sizeof ages_ms / sizeof ages_ms[0]; i++) assert_true(look_at_age(tree, ages_ms[i] * ms));
    assert_int_equal(tree->list[0]->peak_bytes, 99 * 1024);
    assert_false(look_at_age(tree, 190 * ms));
    el_process_tree_close(tree);
}

/* A process that has lived for a second; pss_kib = 0: its Pss cannot be read. */
static void put_sharer(struct el_process_tree *tree, int pid, int kib, int pss_kib)
{
    char text[64];
    int n = snprintf(text, sizeof text, "[rollup]\nRss: %d kB\nPss: %d kB\n", kib, pss_kib);
    PUT(.pid = pid, .resident_kib = kib, .peak_kib = kib);
    if (pss_kib) put(pid, "smaps_rollup", text, (size_t)n);
    if (el_process_tree_find(tree, pid) < 0) discover(tree, pid);
    set_life(tree, pid, el_clock_ns() - 1000000000, el_clock_ns());
    el_process_tree_look(tree);
}

static int64_t pss_kib(const struct el_process_tree *tree, int i)
{
    return tree->list[i]->pss_bytes / 1024;
}

/* Each once; then the one that grew most, at once; one that stays as it is only after a while. */
static void pss_is_read_of_who_grew(void **state)
{
    struct el_process_tree *tree = open_tree();
    put_sharer(tree, 101, 400000, 200000);
    put_sharer(tree, 102, 5000, 2500);
    put_sharer(tree, 103, 6000, 0); /* another user's: not readable */
    put_sharer(tree, 104, 7000, 3500);
    for (int i = 0; i < 4; i++) el_process_tree_look_shared(tree);
    assert_int_equal(pss_kib(tree, 0), 200000);
    assert_int_equal(pss_kib(tree, 1), 2500);
    assert_int_equal(tree->list[2]->pss_bytes, -1);
    assert_int_equal(pss_kib(tree, 3), 3500);
    assert_int_equal(tree->list[0]->pss_resident_bytes, 400000 * 1024);
    put_sharer(tree, 104, 8000, 4000);
    put_sharer(tree, 101, 685000, 342500);
    el_process_tree_look_shared(tree);
    assert_int_equal(pss_kib(tree, 0), 342500);
    assert_int_equal(pss_kib(tree, 3), 3500);
    el_process_tree_look_shared(tree);
    assert_int_equal(pss_kib(tree, 3), 4000);
    put_sharer(tree, 102, 5000, 5000); /* who shared with it has ended */
    el_process_tree_look_shared(tree);
    assert_int_equal(pss_kib(tree, 1), 2500);
    (tree->list[1])->pss_ns -= 3000000000;
    el_process_tree_look_shared(tree);
    assert_int_equal(pss_kib(tree, 1), 5000);
    el_process_tree_close(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_process),
        TEST(what_is_no_process),
        TEST(a_long_status),
        TEST(who_belongs_to_a_tree),
        TEST(numbers_that_begin_anew),
        TEST(a_last_number_of_another_system),
        TEST(figures_of_a_process),
        TEST(the_young_are_looked_at_more_often),
        TEST(pss_is_read_of_who_grew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
