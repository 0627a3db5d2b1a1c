/* Fork, exec and wait. What the processes are to each other is launch.c's. */
#include "runtime/launch/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
    int in = open("/dev/null", O_RDONLY), log = spec->log ? open(spec->log, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
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

/* Waits until the pipe speaks or closes. A child that somebody stops before its exec would keep us here for ever,
 * before any time-out counts: it is killed, and found as a child that a signal ended. */
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

/* A pipe that closes at exec, or brings the reason why there was none. */
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

/* Until one of the children may have ended: an event where the kernel has pidfds (Linux 5.3), else a nap. */
static void wait_for_end(const struct el_child *children, int n, int64_t patience_ns)
{
    struct pollfd polls[CHILDREN_MAX];
    struct timespec patience = {.tv_sec = patience_ns / 1000000000, .tv_nsec = patience_ns % 1000000000};
    int n_polls = 0;
    bool old = false;
    for (int i = 0; i < n && n_polls < CHILDREN_MAX; i++) {
        int file = children[i].ended ? -1 : (int)syscall(SYS_pidfd_open, children[i].pid, 0);
        if (!children[i].ended && file < 0) old = true;
        if (file >= 0) polls[n_polls++] = (struct pollfd){.fd = file, .events = POLLIN};
    }
    if (old && patience_ns > OLD_KERNEL_NS) patience = (struct timespec){.tv_nsec = OLD_KERNEL_NS};
    ppoll(polls, (nfds_t)n_polls, &patience, NULL);
    for (int i = 0; i < n_polls; i++) close(polls[i].fd);
}

static bool reap(struct el_child *children, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++) {
        pid_t got = children[i].ended ? 0 : waitpid(children[i].pid, &children[i].wait_status, WNOHANG);
        if (got == children[i].pid || (got < 0 && errno == ECHILD)) children[i].ended = true;
        all = all && children[i].ended;
    }
    return all;
}

bool el_children_wait(struct el_child *children, int n, int64_t patience_ns)
{
    wait_for_end(children, n, patience_ns);
    return reap(children, n);
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
