/* How much memory the host has free, by its files and its limits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/machine/host.h"
#include "tests/test.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

static void put_text(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", folder, path);
    put_file(folder, name, text, strlen(text));
}

static void memory_that_is_free(void **state)
{
    assert_true(isnan(el_host_free_bytes(folder)));
    put_text("/proc/meminfo", "MemTotal:  100 kB\nMemFree:   10 kB\nMemAvailable:   50 kB\n");
    assert_true(el_host_free_bytes(folder) == 50 * 1024);
    put_text("/sys/fs/cgroup/memory.max", "max\n");
    put_text("/sys/fs/cgroup/memory.current", "30000\n");
    assert_true(el_host_free_bytes(folder) == 50 * 1024);
    put_text("/sys/fs/cgroup/memory.max", "40000\n");
    put_text("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 5000\nactive_file 7\n");
    assert_true(el_host_free_bytes(folder) == 15000);
    put_text("/sys/fs/cgroup/memory.max", "90000000\n");
    assert_true(el_host_free_bytes(folder) == 50 * 1024);
}

RUN_TESTS(make_folder, remove_folder, memory_that_is_free)
