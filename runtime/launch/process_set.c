/* Finds the processes of a job through /proc/PID/environ. A process that has ended keeps no environment and is not
 * counted; one that cleared its environment is not found (nothing of ours does). */
#include "runtime/launch/process_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 65536, FOUND_MAX = 1024, ROUNDS = 20, KILL_NS = 500000000, OLD_KERNEL_NS = 20000000 };

/* The token is one of the last variables or one of the first; environments may be larger than one read. */
static bool has_token(int pid, const char *token)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char *text = malloc(CHUNK_BYTES);
    size_t length = strlen(token), kept = 0;
    bool found = false;
    while (text && !found) {
        ssize_t got = read(file, text + kept, CHUNK_BYTES - kept);
        if (got <= 0) break;
        size_t have = kept + (size_t)got;
        found = memmem(text, have, token, length) != NULL;
        kept = have < length ? have : length;
        memmove(text, text + have - kept, kept);
    }
    free(text);
    close(file);
    return found;
}

static int find(const char *token, pid_t *pids, int capacity)
{
    int n = 0;
    DIR *folder = opendir("/proc");
    if (!folder) return 0;
    for (struct dirent *entry; n < capacity && (entry = readdir(folder));) {
        int pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid() && has_token(pid, token)) pids[n++] = pid;
    }
    closedir(folder);
    return n;
}

/* Until the process has ended or `patience_ns` has passed; an event, not a poll, where the kernel has pidfds. */
static void wait_for_end(pid_t pid, int64_t patience_ns)
{
    struct timespec patience = {.tv_sec = patience_ns / 1000000000, .tv_nsec = patience_ns % 1000000000};
    int file = (int)syscall(SYS_pidfd_open, pid, 0);
    if (file >= 0) {
        struct pollfd poll = {.fd = file, .events = POLLIN};
        ppoll(&poll, 1, &patience, NULL);
        close(file);
    } else if (errno != ESRCH) { /* before Linux 5.3: a nap */
        if (patience_ns > OLD_KERNEL_NS) patience = (struct timespec){.tv_nsec = OLD_KERNEL_NS};
        nanosleep(&patience, NULL);
    }
}

int el_process_set_kill(const char *token)
{
    pid_t pids[FOUND_MAX];
    int n_killed = 0;
    for (int round = 0; round < ROUNDS; round++) { /* a process may be making another one just now */
        int n = find(token, pids, FOUND_MAX);
        if (n == 0) break;
        for (int i = 0; i < n; i++) kill(pids[i], SIGKILL);
        for (int i = 0; i < n; i++) {
            wait_for_end(pids[i], KILL_NS);
            waitpid(pids[i], NULL, WNOHANG);
        }
        n_killed += n;
    }
    return n_killed;
}
