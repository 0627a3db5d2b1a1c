/* How much memory the host has free, by its files and its limits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/machine/host.h"
#include "tests/test.h"
#include "tests/unit/whole_files.h"

static void put_text(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    put_file(root, name, text, strlen(text));
}

static void memory_that_is_free(void **state)
{
    char root[] = "/tmp/el-memory-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_true(isnan(el_host_free_bytes(root)));
    put_text(root, "/proc/meminfo", "MemTotal:  100 kB\nMemFree:   10 kB\nMemAvailable:   50 kB\n");
    assert_true(el_host_free_bytes(root) == 50 * 1024);
    put_text(root, "/sys/fs/cgroup/memory.max", "max\n");
    put_text(root, "/sys/fs/cgroup/memory.current", "30000\n");
    assert_true(el_host_free_bytes(root) == 50 * 1024);
    put_text(root, "/sys/fs/cgroup/memory.max", "40000\n");
    put_text(root, "/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 5000\nactive_file 7\n");
    assert_true(el_host_free_bytes(root) == 15000);
    put_text(root, "/sys/fs/cgroup/memory.max", "90000000\n");
    assert_true(el_host_free_bytes(root) == 50 * 1024);
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of the test's own */
}

RUN_TESTS(NULL, NULL, memory_that_is_free)
