/* Watching from outside, on a recorded /proc whose truth is known: who belongs to a tree, what is read of each, figures
 * over time in bounded room, who is compared with whom, and GPUs by a library that is not NVML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/record/jvalue.h"
#include "bench/watch/watch.h"
#include "runtime/base/clock.h"

enum { ANCESTOR = 100 };

static char root[64];

static void put(int pid, const char *name, const char *text, size_t bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/proc/%d", root, pid);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/proc/%d/%s", root, pid, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

struct fake {
    int pid, parent, group; /* group: the process that it is a thread of; 0: itself */
    const char *name;
    char state;
    int ticks, threads, resident_kib, peak_kib;
    unsigned program;
    int private_kib, shared_kib; /* both 0: a kernel that does not tell */
};

static void put_process(struct fake f)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "%d (%s) %c %d 1 1 0 -1 4194304 5 0 0 0 %d %d 7 8 20 0 %d 0 999 1000000 50 18446744073709551615 "
                     "4096 8192 %u 0 0 0 0 0\n",
                     f.pid, f.name, f.state ? f.state : 'S', f.parent, f.ticks, f.ticks, f.threads ? f.threads : 1,
                     f.program        ? f.program
                     : f.state == 'Z' ? 0
                                      : 77);
    put(f.pid, "stat", text, (size_t)n);
    n = snprintf(text, sizeof text, "Name:\t%s\nTgid:\t%d\nPid:\t%d\n", f.name, f.group ? f.group : f.pid, f.pid);
    if (f.resident_kib)
        n += snprintf(text + n, sizeof text - (size_t)n, "VmHWM:\t%d kB\nVmRSS:\t%d kB\n", f.peak_kib, f.resident_kib);
    if (f.private_kib + f.shared_kib)
        n += snprintf(text + n, sizeof text - (size_t)n, "RssAnon:\t%d kB\nRssFile:\t9 kB\nRssShmem:\t%d kB\n",
                      f.private_kib, f.shared_kib);
    n += snprintf(text + n, sizeof text - (size_t)n, "Threads:\t1\nCpus_allowed_list:\t0-3,8\n");
    put(f.pid, "status", text, (size_t)n);
}

static void put_last(int pid)
{
    char path[160];
    snprintf(path, sizeof path, "%s/proc/loadavg", root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "0.10 0.20 0.30 1/200 %d\n", pid);
    fclose(file);
}

static void remove_process(int pid)
{
    static const char *const names[] = {"stat", "status", "cmdline", "environ", "smaps_rollup", "exe"};
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/proc/%d/%s", root, pid, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/proc/%d", root, pid);
    rmdir(path);
}

static int make_root(void **state)
{
    char path[96];
    (void)state;
    snprintf(root, sizeof root, "/tmp/el-watch-XXXXXX");
    if (!mkdtemp(root)) return -1;
    snprintf(path, sizeof path, "%s/proc", root);
    mkdir(path, 0777);
    put_last(ANCESTOR);
    return 0;
}

static int remove_root(void **state)
{
    char path[96];
    (void)state;
    for (int pid = 1; pid < 400; pid++) remove_process(pid);
    snprintf(path, sizeof path, "%s/proc/loadavg", root);
    unlink(path);
    snprintf(path, sizeof path, "%s/proc", root);
    rmdir(path);
    return rmdir(root);
}

static void one_process(void **state)
{
    (void)state;
    struct el_process process;
    struct el_process_look look;
    struct el_process_identity identity;
    static const char environment[] = "HOME=/\0RANK=3\0WORLD_SIZE=4\0MASTER_ADDR=a\0MASTER_PORT=29500";
    put_process((struct fake){.pid = 101,
                              .parent = 7,
                              .name = "a (b) c)",
                              .ticks = 50,
                              .threads = 9,
                              .resident_kib = 2000,
                              .peak_kib = 3000,
                              .private_kib = 900,
                              .shared_kib = 80});
    put(101, "cmdline", "python\0-c\0x\ny", 14);
    put(101, "environ", environment, sizeof environment);
    put(101, "smaps_rollup", "0-1 ---p 0 0 0 [rollup]\nRss: 2000 kB\nPss:   1500 kB\nPss_Anon: 9 kB\n", 68);
    assert_true(el_process_open(root, 101, &process));
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
    (void)state;
    struct el_process process;
    struct el_process_look look;
    put_process((struct fake){.pid = 102, .parent = 7, .group = 101, .name = "thread", .resident_kib = 1});
    assert_false(el_process_open(root, 102, &process));
    assert_false(el_process_open(root, 399, &process));
    assert_int_equal(el_process_parent(root, 399), -1);
    put_process((struct fake){.pid = 103, .parent = 7, .name = "x"});
    put(103, "stat", "103 (x", 6); /* cut off */
    assert_true(el_process_open(root, 103, &process));
    assert_false(el_process_look(&process, &look));
    assert_int_equal(el_process_pss_bytes(&process), -1);
    el_process_close(&process);
}

static struct el_process_tree *open_tree(void)
{
    struct el_process_tree *tree;
    assert_int_equal(el_process_tree_open(root, ANCESTOR, &tree), EL_OK);
    return tree;
}

static void discover(struct el_process_tree *tree, int last)
{
    put_last(last);
    assert_int_equal(el_process_tree_discover(tree), EL_OK);
}

static void who_belongs_to_a_tree(void **state)
{
    (void)state;
    put_process((struct fake){.pid = 90, .parent = ANCESTOR, .name = "older"}); /* of before: not of the command */
    struct el_process_tree *tree = open_tree();
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "command", .resident_kib = 10});
    put_process((struct fake){.pid = 102, .parent = 101, .group = 101, .name = "thread", .resident_kib = 10});
    put_process((struct fake){.pid = 103, .parent = 101, .name = "child", .resident_kib = 10});
    put_process((struct fake){.pid = 104, .parent = 1, .name = "stranger", .resident_kib = 10});
    put_process((struct fake){.pid = 105, .parent = 104, .name = "strangers", .resident_kib = 10});
    put_process((struct fake){.pid = 106, .parent = 103, .name = "grandchild", .resident_kib = 10});
    discover(tree, 106);
    assert_int_equal(el_process_tree_count(tree), 3);
    assert_int_equal(el_process_tree_at(tree, 2)->process.pid, 106);
    assert_int_equal(el_process_tree_at(tree, 2)->above, 1);
    /* A number that is given out before its process can be seen. */
    discover(tree, 107);
    assert_int_equal(el_process_tree_count(tree), 3);
    put_process((struct fake){.pid = 107, .parent = 106, .name = "late", .resident_kib = 10});
    discover(tree, 107);
    assert_int_equal(el_process_tree_find(tree, 107), 3);
    /* The child ends; what it started comes to the ancestor, and stays of the tree. */
    put_process((struct fake){.pid = 103, .parent = 101, .state = 'Z', .ticks = 5, .name = "child"});
    el_process_tree_look(tree);
    assert_int_equal(el_process_tree_find(tree, 103), 0 - 1);
    put_process((struct fake){.pid = 108, .parent = 106, .name = "more", .resident_kib = 10});
    discover(tree, 108);
    assert_int_equal(el_process_tree_count(tree), 5);
    el_process_tree_close(tree);
}

static void numbers_that_begin_anew(void **state)
{
    (void)state;
    put_last(30000);
    struct el_process_tree *tree = open_tree();
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "command", .resident_kib = 10});
    put_process((struct fake){.pid = 50, .parent = 101, .name = "child", .resident_kib = 10});
    discover(tree, 102); /* lower than before: everyone is gone through, a child may stand before its parent */
    assert_int_equal(el_process_tree_count(tree), 2);
    el_process_tree_close(tree);
}

static void a_last_number_of_another_system(void **state)
{
    (void)state;
    struct el_process_tree *tree = open_tree();
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "command", .resident_kib = 10});
    put_last(31000);
    el_process_tree_expect(tree, 101); /* does not agree: believed no more */
    assert_int_equal(el_process_tree_discover(tree), EL_OK);
    assert_int_equal(el_process_tree_count(tree), 1);
    put_process((struct fake){.pid = 102, .parent = 101, .name = "child", .resident_kib = 10});
    assert_int_equal(el_process_tree_discover(tree), EL_OK);
    assert_int_equal(el_process_tree_count(tree), 2);
    el_process_tree_close(tree);
}

/* Lives are set by hand: the machine's load has no say. */
static void set_life(struct el_process_tree *tree, int pid, int64_t begin_ns, int64_t end_ns)
{
    struct el_tree_process *p =
        (struct el_tree_process *)(uintptr_t)el_process_tree_at(tree, el_process_tree_find(tree, pid));
    p->begin_ns = begin_ns;
    p->end_ns = end_ns;
}

static void figures_of_a_process(void **state)
{
    (void)state;
    struct el_process_tree *tree = open_tree();
    /* Between fork and exec: it shows its parent's gigabyte. */
    put_process((struct fake){
        .pid = 101, .parent = ANCESTOR, .name = "sh", .resident_kib = 1 << 20, .peak_kib = 1 << 20, .program = 5});
    discover(tree, 101);
    const struct el_tree_process *p = el_process_tree_at(tree, 0);
    assert_int_equal(p->peak_bytes, 1 << 30);
    put(101, "cmdline", "tool\0x", 6);
    put_process((struct fake){
        .pid = 101, .parent = ANCESTOR, .name = "sh", .resident_kib = 100, .peak_kib = 200, .ticks = 1, .program = 6});
    el_process_tree_look(tree);
    assert_int_equal(p->peak_bytes, 200 * 1024);
    assert_string_equal(p->identity.command, "tool x");
    put_process((struct fake){.pid = 101,
                              .parent = ANCESTOR,
                              .name = "sh",
                              .resident_kib = 300,
                              .peak_kib = 300,
                              .ticks = 2,
                              .threads = 4,
                              .program = 6});
    set_life(tree, 101, p->begin_ns, p->end_ns - 20000000);
    el_process_tree_look(tree);
    assert_int_equal(p->peak_bytes, 300 * 1024);
    assert_true(p->resident_byte_s / p->looked_s > 200 * 1024 && p->resident_byte_s / p->looked_s <= 300 * 1024);
    assert_int_equal(p->own_peak_bytes, -1);
    put_process((struct fake){.pid = 101,
                              .parent = ANCESTOR,
                              .name = "sh",
                              .resident_kib = 290,
                              .peak_kib = 300,
                              .program = 6,
                              .private_kib = 100,
                              .shared_kib = 20});
    el_process_tree_look(tree);
    assert_int_equal(p->own_peak_bytes, 120 * 1024);
    /* On its way out: no memory, no program, and its last CPU time. */
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "sh", .state = 'Z', .ticks = 9});
    el_process_tree_look_at(tree, 101);
    assert_false(p->alive);
    assert_int_equal(p->peak_bytes, 300 * 1024);
    assert_int_equal(p->look.cpu_ns, 180000000);
    assert_int_equal(p->n_threads, 4);
    assert_string_equal(p->identity.command, "tool x");
    el_process_tree_close(tree);
}

static void figures_over_time(void **state)
{
    (void)state;
    static struct el_frames frames;
    struct el_series whole = {0}, late = {0};
    memset(&frames, 0, sizeof frames);
    const int n = 10 * EL_FRAMES_MAX + 37, high = 7777;
    for (int i = 0; i < n; i++) {
        if (el_frames_are_many(&frames)) {
            el_frames_halve(&frames);
            el_series_halve(&whole);
            el_series_halve(&late);
        }
        el_frames_begin(&frames, 1000 + i);
        el_series_put(&frames, &whole, i == high ? 999 : 5, i);
        if (i >= 5003) el_series_put(&frames, &late, 6, i);
    }
    assert_true(frames.n <= EL_FRAMES_MAX && frames.n > EL_FRAMES_MAX / 2);
    assert_int_equal(whole.n, frames.n);
    assert_int_equal(frames.ns[frames.n - 1], 1000 + n - 1);
    assert_int_equal(late.first + late.n, frames.n);
    assert_true(frames.ns[late.first] >= 1000 + 5003 && (late.first == 0 || frames.ns[late.first - 1] < 1000 + 5003));
    int n_high = 0;
    for (int i = 0; i < whole.n; i++) {
        int64_t before_ns = i > 0 ? frames.ns[i - 1] : 0;
        bool holds = before_ns < 1000 + high && frames.ns[i] >= 1000 + high;
        assert_int_equal(whole.points[i].bytes, holds ? 999 : 5);
        assert_int_equal(whole.points[i].cpu_ns, frames.ns[i] - 1000); /* as of the frame's last look */
        n_high += holds;
    }
    assert_int_equal(n_high, 1);
    el_series_free(&whole);
    el_series_free(&late);
}

/* What is not seen for a while, as GPU memory is when the driver fails once, is there again afterwards. */
static void a_gap_over_time(void **state)
{
    (void)state;
    static struct el_frames frames;
    struct el_series series = {0};
    memset(&frames, 0, sizeof frames);
    for (int i = 0; i < 10; i++) {
        el_frames_begin(&frames, i);
        if (i < 3 || i > 6) el_series_put(&frames, &series, 100 + i, i);
    }
    assert_int_equal(series.n, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(series.points[i].bytes, i < 3 || i > 6 ? 100 + i : 102);
    el_series_free(&series);
}

/* A user of many groups, a machine of many CPUs: both stand before or among what is looked for. */
static void a_long_status(void **state)
{
    (void)state;
    static char text[65536];
    struct el_process process;
    struct el_process_look look;
    struct el_process_identity identity;
    put_process((struct fake){.pid = 101, .parent = 7, .name = "many", .resident_kib = 2000, .peak_kib = 3000});
    size_t n = (size_t)snprintf(text, sizeof text, "Name:\tmany\nTgid:\t101\nGroups:\t");
    for (int group = 0; group < 2000; group++) n += (size_t)snprintf(text + n, sizeof text - n, "%d ", 100000 + group);
    n += (size_t)snprintf(text + n, sizeof text - n, "\nVmHWM:\t3000 kB\nVmRSS:\t2000 kB\nCpus_allowed_list:\t");
    for (int cpu = 0; cpu < 100; cpu++) n += (size_t)snprintf(text + n, sizeof text - n, "%d,", 2 * cpu);
    n += (size_t)snprintf(text + n, sizeof text - n, "300-309\nMems_allowed:\t1\n");
    put(101, "status", text, n);
    assert_true(el_process_open(root, 101, &process));
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

/* A watch of a tree on the recorded /proc. */
static struct el_watching *watch_tree(struct el_process_tree *tree)
{
    static char *const command[] = {"job", NULL};
    struct el_watching *watch = calloc(1, sizeof *watch);
    assert_non_null(watch);
    watch->command = command;
    watch->tree = tree;
    watch->begin_ns = el_clock_ns();
    watch->end_ns = INT64_MAX; /* set where it matters */
    return watch;
}

static struct el_watch_peers peers_of(const struct el_watching *watch)
{
    struct el_watch_peers peers;
    assert_int_equal(el_watch_peers(watch, &peers), EL_OK);
    return peers;
}

static int pid_of(const struct el_watching *watch, const struct el_watch_peers *peers, int i)
{
    return el_process_tree_at(watch->tree, peers->list[i].process)->process.pid;
}

static void put_rank(int pid, int rank)
{
    char text[128];
    int n = snprintf(text, sizeof text, "A=1%cOMPI_COMM_WORLD_RANK=%d%cOMPI_COMM_WORLD_SIZE=8", 0, rank, 0);
    put(pid, "environ", text, (size_t)n + 1);
}

static void peers_are_ranks(void **state)
{
    (void)state;
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
    (void)state;
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
    set_life(tree, 107, 40000, 45000); /* when the others had nearly ended: not side by side */
    struct el_watching *watch = watch_tree(tree);
    struct el_watch_peers peers = peers_of(watch);
    assert_int_equal(peers.n, 2);
    assert_int_equal(pid_of(watch, &peers, 0), 102);
    assert_int_equal(pid_of(watch, &peers, 1), 103);
    el_watch_peers_free(&peers);
    el_watch_end(watch);
}

static void nothing_to_compare(void **state)
{
    (void)state;
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

static struct {
    int n_init, n_shutdown, processes_result;
    unsigned long long since_us;
} fake;

static int handles[2];

static int fake_init(void)
{
    fake.n_init++;
    return 0;
}

static int fake_shutdown(void)
{
    fake.n_shutdown++;
    return 0;
}

static int fake_count(unsigned *n_p)
{
    *n_p = 3; /* the third cannot be opened */
    return 0;
}

static int fake_handle(unsigned index, void **device_p)
{
    if (index > 1) return 4;
    *device_p = &handles[index];
    return 0;
}

static int fake_uuid(void *device, char *text, unsigned bytes)
{
    snprintf(text, bytes, "GPU-%d", device == &handles[1]);
    return 0;
}

static int fake_name(void *device, char *text, unsigned bytes)
{
    (void)device;
    snprintf(text, bytes, "Fake 100");
    return 0;
}

static int fake_utilization(void *device, struct el_nvml_utilization *utilization_p)
{
    utilization_p->gpu_pct = device == &handles[0] ? 90 : 30;
    return 0;
}

static int fake_memory(void *device, struct el_nvml_memory *memory_p)
{
    (void)device;
    *memory_p = (struct el_nvml_memory){.total_bytes = 1000LL << 20, .used_bytes = 700LL << 20};
    return 0;
}

/* Both ranks have a context on the first GPU, rank 1 works on the second; somebody else's process is there too. */
static int fake_processes(void *device, unsigned *n_p, struct el_nvml_process *list)
{
    bool first = device == &handles[0];
    assert_true(*n_p >= 3);
    if (fake.processes_result) return fake.processes_result;
    list[0] = (struct el_nvml_process){.pid = first ? 102 : 103, .used_bytes = (first ? 400ULL : 300ULL) << 20};
    list[1] = (struct el_nvml_process){.pid = first ? 103 : 5000, .used_bytes = first ? 100ULL << 20 : 50ULL << 20};
    list[2] = (struct el_nvml_process){.pid = 5001, .used_bytes = UINT64_MAX};
    *n_p = 3;
    return 0;
}

static int fake_process_utilization(void *device, struct el_nvml_process_sample *list, unsigned *n_p,
                                    unsigned long long since_us)
{
    fake.since_us = since_us;
    if (device != &handles[0]) return EL_NVML_NOT_SUPPORTED;
    assert_true(*n_p >= 3);
    list[0] = (struct el_nvml_process_sample){.pid = 102, .time_us = 50, .sm_pct = 80};
    list[1] = (struct el_nvml_process_sample){.pid = 102, .time_us = 60, .sm_pct = 60};
    list[2] = (struct el_nvml_process_sample){.pid = 5001, .time_us = 40, .sm_pct = 1};
    *n_p = 3;
    return 0;
}

static const struct el_nvml_api fake_api = {.init = fake_init,
                                            .shutdown = fake_shutdown,
                                            .count = fake_count,
                                            .handle_by_index = fake_handle,
                                            .uuid = fake_uuid,
                                            .name = fake_name,
                                            .utilization = fake_utilization,
                                            .memory = fake_memory,
                                            .processes = fake_processes,
                                            .process_utilization = fake_process_utilization};

static void gpus_and_their_processes(void **state)
{
    (void)state;
    struct el_gpu_processes *gpus;
    memset(&fake, 0, sizeof fake);
    assert_int_equal(el_gpu_processes_open(&fake_api, &gpus), EL_OK);
    assert_int_equal(el_gpu_processes_count(gpus), 2);
    el_gpu_processes_look(gpus);
    assert_string_equal(el_gpu_processes_gpu(gpus, 1)->uuid, "GPU-1");
    assert_true(el_gpu_processes_gpu(gpus, 1)->busy_pct == 30);
    assert_int_equal(el_gpu_processes_gpu(gpus, 0)->used_bytes, 700LL << 20);
    assert_int_equal(el_gpu_processes_uses(gpus), 6);
    assert_true(el_gpu_processes_use(gpus, 0)->busy_pct == 70);
    assert_true(isnan(el_gpu_processes_use(gpus, 1)->busy_pct));
    assert_int_equal(el_gpu_processes_use(gpus, 2)->used_bytes, -1);
    assert_int_equal(el_gpu_processes_use(gpus, 3)->gpu, 1);
    el_gpu_processes_look(gpus); /* samples that were counted are not asked for again */
    fake.processes_result = EL_NVML_TOO_SMALL;
    el_gpu_processes_look(gpus);
    assert_int_equal(el_gpu_processes_uses(gpus), 0);
    el_gpu_processes_close(gpus);
    assert_int_equal(fake.n_shutdown, 1);
    struct el_nvml_api none = fake_api;
    none.processes = NULL;
    assert_int_equal(el_gpu_processes_open(&none, &gpus), EL_ERR_ABSENT);
    assert_int_equal(fake.n_init, 1);
}

/* What a document says, by a path in it. */
static double number(const json_t *document, const char *path)
{
    return el_json_number(document, path);
}

static char *printed(const json_t *document)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    el_watch_print(document, "DIR", file);
    fclose(file);
    int columns = 0; /* of characters, not bytes */
    for (const char *at = text; *at; at++) {
        columns = *at == '\n' ? 0 : columns + (((unsigned char)*at & 0xc0) != 0x80);
        if (columns > 110) print_message("too wide: %s\n", text);
        assert_true(columns <= 110);
    }
    return text;
}

static void ranks_on_gpus(void **state)
{
    (void)state;
    struct el_process_tree *tree = open_tree();
    put_rank(102, 0);
    put_rank(103, 1);
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "torchrun", .resident_kib = 10});
    put_process((struct fake){.pid = 102, .parent = 101, .name = "python", .resident_kib = 5 << 10});
    put_process((struct fake){.pid = 103, .parent = 101, .name = "python", .resident_kib = 7 << 10});
    struct el_watching *watch = watch_tree(tree);
    memset(&fake, 0, sizeof fake);
    assert_int_equal(el_gpu_processes_open(&fake_api, &watch->gpus), EL_OK);
    put_last(103);
    for (int round = 0; round < 3; round++)
        for (int a = 0; a < EL_WATCH_ACTIVITIES; a++)
            assert_int_equal(el_watch_do(watch, (enum el_watch_activity)a), EL_OK);
    watch->end_ns = el_clock_ns();
    json_t *document = el_watch_record(watch, "evenload watch -- job");
    assert_non_null(document);
    assert_string_equal(el_json_text(document, "watch.compared.what", ""), "GPUs");
    assert_int_equal(json_array_size(el_json_at(document, "watch.gpu_processes")), 3);
    assert_true(number(document, "watch.gpus.0.ours_peak_bytes") == 500 << 20);
    assert_true(number(document, "watch.gpus.1.ours_peak_bytes") == 300 << 20);
    assert_true(number(document, "watch.gpus.1.others_peak_bytes") == 50 << 20);
    assert_true(number(document, "watch.gpu_processes.1.rank") == 1); /* its context on a GPU that is not its own */
    assert_true(number(document, "watch.gpu_processes.0.busy_pct") == 70);
    assert_true(number(document, "trials.0.per_device.0.memory.peak_bytes") == 500 << 20);
    assert_true(number(document, "trials.0.per_device.1.utilization.busy_pct") == 30);
    assert_true(fabs(number(document, "trials.0.imbalance.memory.first_over_rest") - 5. / 3) < 1e-9);
    assert_true(fabs(number(document, "trials.0.imbalance.busy.imbalance_pct") - 200. / 3) < 1e-9);
    char *text = printed(document);
    assert_non_null(strstr(text, "gpu:0 holds 200.0 MiB more than the other, 1.67 times"));
    assert_non_null(strstr(text, "gpu:1, Fake 100: busy 30.0 %"));
    const char *save = getenv("EL_WATCH_SAVE"); /* to look at the table and the figure by eye */
    if (save) json_dump_file(document, save, 0);
    if (save) fputs(text, stderr);
    free(text);
    json_decref(document);
    el_watch_end(watch);
}

static json_t *document_of(struct el_process_tree *tree, int64_t begin_ns, int64_t end_ns, int64_t largest_bytes)
{
    struct el_watching *watch = watch_tree(tree);
    watch->begin_ns = begin_ns;
    watch->end_ns = end_ns;
    watch->own_cpu_s = 0.008;
    watch->largest_bytes = largest_bytes;
    json_t *document = el_watch_record(watch, "evenload watch -- job");
    assert_non_null(document);
    el_watch_end(watch);
    return document;
}

/* What was looked at after the command's end does not lengthen its life; shares that mean nothing are not told. */
static void a_short_life(void **state)
{
    (void)state;
    struct el_process_tree *tree = open_tree();
    put_process((struct fake){.pid = 101, .parent = ANCESTOR, .name = "short", .ticks = 1, .resident_kib = 10});
    put_process((struct fake){.pid = 102, .parent = 101, .name = "late", .resident_kib = 10});
    put_process((struct fake){.pid = 103, .parent = 101, .name = "ended", .state = 'Z', .ticks = 1});
    discover(tree, 103);
    set_life(tree, 101, 2000000000, 2900000000);
    set_life(tree, 102, 2800000000, 2900000000);
    json_t *document = document_of(tree, 1900000000, 2500000000, 0);
    assert_true(fabs(number(document, "watch.processes.0.end_s") - 0.6) < 1e-9);
    assert_true(fabs(number(document, "watch.processes.0.cpu_pct") - 4) < 1e-9); /* 20 ms of half a second */
    assert_true(fabs(number(document, "watch.processes.0.cpu_of_allowed_pct") - 0.8) < 1e-9); /* 5 CPUs */
    assert_true(number(document, "watch.processes.0.mean_bytes") == 10240); /* seen once: what it held then */
    assert_true(fabs(number(document, "watch.processes.1.begin_s") - 0.6) < 1e-9);
    assert_true(isnan(number(document, "watch.processes.1.cpu_pct")));
    assert_true(isnan(number(document, "watch.processes.2.peak_bytes"))); /* never seen alive */
    assert_true(isnan(number(document, "watch.processes.2.mean_bytes")));
    assert_true(isnan(number(document, "watch.sampler.cpu_pct_of_a_core")));
    char *text = printed(document);
    assert_non_null(strstr(text, "Watching took 0.008 s of CPU time: "));
    free(text);
    json_decref(document);
}

/* Nothing is said of who holds the most where the largest process has no row. */
static void the_largest_was_not_seen(void **state)
{
    (void)state;
    for (int unseen = 0; unseen < 2; unseen++) {
        struct el_process_tree *tree = open_tree();
        for (int rank = 0; rank < 2; rank++) {
            put_rank(101 + rank, rank);
            put_process((struct fake){
                .pid = 101 + rank, .parent = ANCESTOR, .name = "p", .ticks = 1, .resident_kib = 1024 * (1 + rank)});
        }
        discover(tree, 102);
        json_t *document = document_of(tree, 0, INT64_MAX, unseen ? 3 << 20 : 2 << 20);
        char *text = printed(document);
        assert_int_equal(strstr(text, "At its peak rank 1") == NULL, unseen);
        assert_int_equal(strstr(text, "Who holds the most is not said") != NULL, unseen);
        free(text);
        json_decref(document);
        put_last(ANCESTOR);
    }
}

/* Figures as wide as machines have them, and names of any alphabet: columns stay apart and in their places. */
static void columns_stay_apart(void **state)
{
    (void)state;
    struct el_process_tree *tree = open_tree();
    static const char name[] = "./\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9"
                               "\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9";
    put_process((struct fake){.pid = 101,
                              .parent = ANCESTOR,
                              .name = "big",
                              .resident_kib = 2000000000,
                              .peak_kib = 2000000000,
                              .private_kib = 2000000000,
                              .ticks = 200000000});
    put(101, "cmdline", name, sizeof name);
    discover(tree, 101);
    json_t *document = document_of(tree, 0, INT64_MAX, 0);
    char *text = printed(document);
    const char *row = strstr(text, "\n    101 ");
    assert_non_null(row);
    assert_non_null(strstr(row, "\xc3\xa9t... ")); /* 20 characters, whole ones */
    assert_non_null(strstr(row, " 1,953,125 1,953,125 1,953,125 "));
    free(text);
    json_decref(document);
}

/* Many and unreadable ones: the table stays short and narrow. */
static void a_table_of_many(void **state)
{
    (void)state;
    struct el_process_tree *tree = open_tree();
    char command[200];
    memset(command, 'x', sizeof command);
    command[0] = '/', command[60] = ' ';
    put_process((struct fake){.pid = 101,
                              .parent = ANCESTOR,
                              .name = "command",
                              .resident_kib = 2000000000,
                              .peak_kib = 2000000000,
                              .ticks = 2000000});
    put(101, "cmdline", command, sizeof command);
    for (int pid = 102; pid < 140; pid++)
        put_process((struct fake){.pid = pid, .parent = 101, .name = "many", .resident_kib = pid, .ticks = 1});
    discover(tree, 140);
    struct el_watching *watch = watch_tree(tree);
    watch->end_ns = el_clock_ns() + 1;
    json_t *document = el_watch_record(watch, "evenload watch");
    char *text = printed(document);
    assert_non_null(strstr(text, "39 processes"));
    assert_non_null(strstr(text, "and 23 more: none above"));
    free(text);
    json_decref(document);
    el_watch_end(watch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_process),
        TEST(what_is_no_process),
        TEST(who_belongs_to_a_tree),
        TEST(numbers_that_begin_anew),
        TEST(a_last_number_of_another_system),
        TEST(figures_of_a_process),
        TEST(figures_over_time),
        TEST(a_gap_over_time),
        TEST(a_long_status),
        TEST(peers_are_ranks),
        TEST(peers_are_siblings),
        TEST(nothing_to_compare),
        TEST(gpus_and_their_processes),
        TEST(ranks_on_gpus),
        TEST(a_short_life),
        TEST(the_largest_was_not_seen),
        TEST(columns_stay_apart),
        TEST(a_table_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
