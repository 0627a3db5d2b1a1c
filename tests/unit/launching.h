/* Jobs of shell commands, launched into a folder of logs: cmocka_run_group_tests(tests, make_folder, remove_folder). */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/launch/children.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/mpirun.h"
#include "tests/unit/own_folder.h"

static double grace_s = 0.3; /* more where what a rank does in that time is looked at */

static inline struct el_launch_result launch_by(enum el_launch_by by, const char *script, int procs, double timeout_s)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct el_launch_spec spec = {
        .argv = argv, .procs = procs, .by = by, .log_dir = folder, .timeout_s = timeout_s, .grace_s = grace_s};
    struct el_launch_result result;
    assert_int_equal(el_launch_run(&spec, &result), EL_OK);
    return result;
}

static inline struct el_launch_result launch(const char *script, int procs, double timeout_s)
{
    return launch_by(EL_LAUNCH_BY_MPIRUN, script, procs, timeout_s);
}

/* A script of ranks, whoever starts them: `r` is the rank, `n` their number. */
#define RANKS(script) "r=${OMPI_COMM_WORLD_RANK:-$RANK}; n=${OMPI_COMM_WORLD_SIZE:-$WORLD_SIZE}; " script

static inline void skip_without_mpirun(void)
{
    char *path;
    if (el_mpirun_find(&path) != EL_OK) skip();
    free(path);
}

/* Whether a process runs whose command line holds `text`. */
static inline bool runs(const char *text)
{
    bool found = false;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        FILE *file = atoi(entry->d_name) > 1 && atoi(entry->d_name) != getpid() ? fopen(path, "r") : NULL;
        size_t length = file ? fread(line, 1, sizeof line, file) : 0;
        if (file) fclose(file);
        if (memmem(line, length, text, strlen(text))) found = true;
    }
    if (proc) closedir(proc);
    return found;
}
