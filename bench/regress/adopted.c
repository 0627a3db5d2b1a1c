/* Processes that left their group and lost their parent: they are children of ours by now (PR_SET_CHILD_SUBREAPER),
 * and would disturb every later launch. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/regress/shell.h"

enum { PATIENCE_MS = 2000, PAUSE_MS = 10 };

/* By the fourth field of /proc/<pid>/stat; the second, a name in parentheses, may hold anything. -1: it is gone. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512] = "";
    long parent = -1;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[n] = 0;
    const char *name_end = strrchr(text, ')');
    if (name_end && name_end[1] == ' ' && name_end[2]) parent = strtol(name_end + 3, NULL, 10);
    return (pid_t)parent;
}

static void kill_children(void)
{
    DIR *entries = opendir("/proc");
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (!isdigit((unsigned char)entry->d_name[0]) || parent_of(entry->d_name) != getpid()) continue;
        kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    }
    if (entries) closedir(entries);
}

void el_shell_end_adopted(void)
{
    for (int waited = 0; waited < PATIENCE_MS;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno != EINTR) return; /* there are none */
        if (pid != 0) continue;
        kill_children();
        poll(NULL, 0, PAUSE_MS);
        waited += PAUSE_MS;
    }
}
