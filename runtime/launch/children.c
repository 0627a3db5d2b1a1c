/* Starting and awaiting processes; finding a job's processes by their token in /proc/PID/environ (ended ones have
 * none; those that cleared it are found as adopted children); and the guard. */
#include "runtime/launch/children.h"
#include "runtime/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/files.h"
#include "runtime/base/process.h"
#include "runtime/base/scratch.h"
#include "runtime/launch/launch.h"

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

enum el_status el_launch_find_program(const char *name, char **path_p)
{
    char path[PATH_MAX];
    if (strchr(name, '/')) {
        if (!is_program(name)) return el_fail(EL_ERR_ABSENT, "%s: no such program", name);
        *path_p = strdup(name);
        return *path_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
    }
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : ""; *at;) {
        size_t length = strcspn(at, ":");
        int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (length > 0 && written > 0 && (size_t)written < sizeof path && is_program(path)) {
            *path_p = strdup(path);
            return *path_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
        }
        at += length + (at[length] == ':');
    }
    return el_fail(EL_ERR_ABSENT, "%s: not found on PATH", name);
}

enum { CHILDREN_MAX = 256, OLD_KERNEL_NS = 20000000, EXEC_MS = 5000 };

struct program {
    const struct el_child_spec *spec;
    pid_t parent;
};

static void become_program(const void *context)
{
    const struct program *program = context;
    const struct el_child_spec *spec = program->spec;
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, spec->death_signal);
    if (getppid() != program->parent) _exit(127);
    int in = open("/dev/null", O_RDONLY), log = -1;
    if (spec->log) log = open(spec->log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
    int out = spec->log ? log : spec->out, err = spec->log ? log : spec->err;
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) return;
    if (in > 2) close(in);
    if (log > 2) close(log);
    if (spec->kept_file >= 0) fcntl(spec->kept_file, F_SETFD, 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(spec->program, spec->command, spec->environment);
}

/* Waits for the pipe. A child that is stopped before its exec would block this for ever, so it is killed. */
static ssize_t hear_of_exec(int end, pid_t pid, int patience_ms, int *number_p)
{
    struct pollfd one = {.fd = end, .events = POLLIN};
    int ready;
    ssize_t got;
    do ready = poll(&one, 1, patience_ms);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) kill(pid, SIGKILL);
    do got = read(end, number_p, sizeof *number_p);
    while (got < 0 && errno == EINTR);
    return got;
}

pid_t el_child_fork(void (*become)(const void *context), const void *context, int patience_ms)
{
    int ends[2], number = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    pid_t pid = fork();
    if (pid == 0) {
        become(context);
        number = errno;
        ssize_t ignored = write(ends[1], &number, sizeof number);
        _exit(ignored == sizeof number ? 127 : 126);
    }
    int fork_error = errno;
    close(ends[1]);
    ssize_t got = pid > 0 ? hear_of_exec(ends[0], pid, patience_ms, &number) : 0;
    close(ends[0]);
    if (pid > 0 && got <= 0) return pid;
    if (pid > 0) waitpid(pid, NULL, 0);
    errno = pid > 0 ? number : fork_error;
    return -1;
}

enum el_status el_child_start(const struct el_child_spec *spec, struct el_child *child_p)
{
    const struct program program = {.spec = spec, .parent = getpid()};
    pid_t pid = el_child_fork(become_program, &program, EXEC_MS);
    if (pid < 0) return el_fail_errno("%s: cannot be started", spec->program);
    *child_p = (struct el_child){.pid = pid};
    return EL_OK;
}

/* Until a child may have ended: by pidfds (Linux 5.3), else a nap. */
static void wait_for_end(const struct el_child *children, int n, int64_t patience_ns)
{
    struct pollfd polls[CHILDREN_MAX];
    struct timespec patience = {.tv_sec = patience_ns / 1000000000, .tv_nsec = patience_ns % 1000000000};
    int n_polls = 0;
    bool old = false;
    for (int i = 0; i < n && n_polls < CHILDREN_MAX; i++) {
        int file = children[i].ended ? -1 : el_process_file(children[i].pid);
        if (!children[i].ended && file < 0) old = true;
        if (file >= 0) polls[n_polls++] = (struct pollfd){.fd = file, .events = POLLIN};
    }
    if (old && patience_ns > OLD_KERNEL_NS) patience = (struct timespec){.tv_nsec = OLD_KERNEL_NS};
    if (n_polls > 0 || old) ppoll(polls, (nfds_t)n_polls, &patience, NULL);
    for (int i = 0; i < n_polls; i++) close(polls[i].fd);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static bool reap(struct el_child *children, int n)
{
    bool all = true;
    struct rusage used = {0};
    for (int i = 0; i < n; i++) {
        struct el_child *child = &children[i];
        pid_t got = child->ended ? 0 : wait4(child->pid, &child->wait_status, WNOHANG, &used);
        if (got == child->pid) child->cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
        if (got == child->pid) child->peak_bytes = used.ru_maxrss * 1024;
        if (got == child->pid || (got < 0 && errno == ECHILD)) child->ended = true;
        all = all && children[i].ended;
    }
    return all;
}

bool el_children_wait(struct el_child *children, int n, int64_t patience_ns)
{
    wait_for_end(children, n, patience_ns);
    return reap(children, n);
}

bool el_children_await(struct el_child *children, int n, int64_t patience_ns)
{
    const int64_t until_ns = el_clock_ns() + patience_ns;
    bool all = false;
    for (int64_t left_ns = patience_ns; !all && left_ns > 0; left_ns = until_ns - el_clock_ns())
        all = el_children_wait(children, n, left_ns);
    return all;
}

void el_children_used(const struct el_child *children, int n, double *cpu_s_p, int64_t *peak_bytes_p)
{
    *cpu_s_p = 0, *peak_bytes_p = 0;
    for (int i = 0; i < n; i++) {
        *cpu_s_p += children[i].cpu_s;
        if (children[i].peak_bytes > *peak_bytes_p) *peak_bytes_p = children[i].peak_bytes;
    }
}

void el_children_signal(const struct el_child *children, int n, int signal)
{
    for (int i = 0; i < n; i++)
        if (!children[i].ended) kill(-children[i].pid, signal);
}

int el_children_failed(const struct el_child *children, int n)
{
    int first = -1;
    for (int i = n - 1; i >= 0; i--)
        if (children[i].ended && children[i].wait_status != 0 && !WIFSIGNALED(children[i].wait_status)) first = i;
    for (int i = n - 1; i >= 0; i--)
        if (children[i].ended && WIFSIGNALED(children[i].wait_status)) first = i;
    return first;
}

enum { CHUNK_BYTES = 65536, FOUND_MAX = 1024, ROUNDS = 20, KILL_NS = 500000000 };

/* Reads in chunks, since environments may be large. */
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

int el_process_set_kill(const char *token)
{
    pid_t pids[FOUND_MAX];
    int n_killed = 0;
    for (int round = 0; round < ROUNDS; round++) { /* a process may be forking */
        int n = find(token, pids, FOUND_MAX);
        if (n == 0) break;
        for (int i = 0; i < n; i++) kill(pids[i], SIGKILL);
        for (int i = 0; i < n; i++) el_children_wait(&(struct el_child){.pid = pids[i]}, 1, KILL_NS);
        n_killed += n;
    }
    return n_killed;
}

void el_children_list(char numbers[EL_NUMBERS_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (!el_file_line(path, "", numbers, EL_NUMBERS_BYTES)) *numbers = 0;
}

static bool has_number(const char *numbers, long wanted)
{
    char *at = (char *)(uintptr_t)numbers;
    for (long number; (number = strtol(at, &at, 10)) > 0;)
        if (number == wanted) return true;
    return false;
}

void el_orphans_end(const char before[EL_NUMBERS_BYTES])
{
    char numbers[EL_NUMBERS_BYTES];
    for (int round = 0, n = 1; round < ROUNDS && n > 0; round++) { /* an orphan's own children become ours in turn */
        el_children_list(numbers);
        char *at = numbers;
        n = 0;
        for (long pid; (pid = strtol(at, &at, 10)) > 0;) {
            if (has_number(before, pid)) continue;
            kill((pid_t)pid, SIGKILL);
            el_children_wait(&(struct el_child){.pid = (pid_t)pid}, 1, KILL_NS);
            n++;
        }
    }
}

/* In its own group, so that a terminal's signals do not reach it. */
static void keep_guard(int life, const char *token, const char *folder)
{
    char byte;
    ssize_t got;
    setpgid(0, 0);
    do got = read(life, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got == 0) el_process_set_kill(token);
    if (got == 0) el_scratch_remove(folder);
    _exit(0);
}

enum el_status el_guard_start(const char *token, const char *folder, struct el_guard *guard_p)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return el_fail_errno("launch: a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        keep_guard(ends[0], token, folder);
    }
    int number = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        errno = number;
        return el_fail_errno("launch: fork");
    }
    *guard_p = (struct el_guard){.pid = pid, .life = ends[1]};
    return EL_OK;
}

void el_guard_stop(struct el_guard *guard)
{
    if (!guard->pid) return;
    kill(guard->pid, SIGKILL);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) continue;
    close(guard->life);
    *guard = (struct el_guard){0};
}
