/* A /proc in a folder of the test's, whose processes are put there one by one, and a watch of the tree that they make.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/watch/watch.h"
#include "runtime/base/clock.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/printed.h"

enum { ANCESTOR = 100 };

static inline void put(int pid, const char *name, const char *text, size_t bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/proc/%d", folder, pid);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/proc/%d/%s", folder, pid, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

struct fake {
    int pid, parent, group; /* parent: 0: the ancestor; group: the process that it is a thread of; 0: itself */
    const char *name;       /* NULL: "p" */
    char state;
    int ticks, threads, resident_kib, peak_kib;
    unsigned program;
    int private_kib, shared_kib; /* both 0: a kernel that does not tell */
};

static inline void put_process(struct fake f)
{
    char text[1024];
    if (!f.parent) f.parent = ANCESTOR;
    if (!f.name) f.name = "p";
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

#define PUT(...) put_process((struct fake){__VA_ARGS__})

static inline void put_rank(int pid, int rank)
{
    char text[128];
    int n = snprintf(text, sizeof text, "A=1%cOMPI_COMM_WORLD_RANK=%d%cOMPI_COMM_WORLD_SIZE=8", 0, rank, 0);
    put(pid, "environ", text, (size_t)n + 1);
}

static inline void put_last(int pid)
{
    char path[160];
    snprintf(path, sizeof path, "%s/proc/loadavg", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "0.10 0.20 0.30 1/200 %d\n", pid);
    fclose(file);
}

static inline int make_root(void **state)
{
    char path[96];
    if (make_folder(state) != 0) return -1;
    snprintf(path, sizeof path, "%s/proc", folder);
    mkdir(path, 0777);
    put_last(ANCESTOR);
    return 0;
}

static inline struct el_process_tree *open_tree(void)
{
    struct el_process_tree *tree;
    assert_int_equal(el_process_tree_open(folder, ANCESTOR, &tree), EL_OK);
    return tree;
}

static inline void discover(struct el_process_tree *tree, int last)
{
    put_last(last);
    assert_int_equal(el_process_tree_discover(tree), EL_OK);
}

/* Lives are set by hand: the machine's load has no say. */
static inline void set_life(struct el_process_tree *tree, int pid, int64_t begin_ns, int64_t end_ns)
{
    struct el_tree_process *p = tree->list[el_process_tree_find(tree, pid)];
    p->begin_ns = begin_ns;
    p->end_ns = end_ns;
}

/* A watch of a tree on the recorded /proc. */
static inline struct el_watching *watch_tree(struct el_process_tree *tree)
{
    static char *const command[] = {"job", NULL};
    struct el_watching *watch = calloc(1, sizeof *watch);
    assert_non_null(watch);
    watch->command = command;
    watch->tree = tree;
    watch->begin_ns = el_clock_ns();
    watch->ended = true;
    watch->end_ns = INT64_MAX; /* set where it matters */
    return watch;
}

/* What a document says, by a path in it. */
static inline double number(const json_t *document, const char *path)
{
    return el_json_number(document, path);
}

/* The tables, in the width they have to keep; to be freed. */
static inline char *tables_of(const json_t *document)
{
    char *text = printed(el_watch_print, document);
    int columns = 0; /* of characters, not bytes */
    for (const char *at = text; *at; at++) {
        columns = *at == '\n' ? 0 : columns + (((unsigned char)*at & 0xc0) != 0x80);
        if (columns > 110) fail_msg("too wide: %s", text);
    }
    return text;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_folder)
