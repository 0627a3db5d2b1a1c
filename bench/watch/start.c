/* Starting the command. Its environment, streams, process group, signals and terminal are as without evenload. It is
 * our child; so becomes every descendant that loses its parent. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/watch/watch.h"

static const int taken[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* In the child. Returns only on failure. */
static void become(char *const *command, const sigset_t *mask, const struct sigaction *on_child)
{
    sigaction(SIGCHLD, on_child, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
}

/* The errno of exec; 0 if it succeeded: the pipe closes. */
static int read_failure(int end)
{
    int number = 0;
    ssize_t got;
    do got = read(end, &number, sizeof number);
    while (got < 0 && errno == EINTR);
    return got == sizeof number ? number : 0;
}

static enum el_status fork_command(char *const *command, const sigset_t *mask, const struct sigaction *on_child,
                                   pid_t *pid_p, int *exit_status_p)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return el_fail_errno("%s: pipe", command[0]);
    pid_t pid = fork();
    if (pid == 0) {
        become(command, mask, on_child);
        int number = errno;
        ssize_t ignored = write(ends[1], &number, sizeof number);
        _exit(ignored == sizeof number ? EL_WATCH_NOT_FOUND : EL_WATCH_NOT_STARTED);
    }
    int number = errno;
    close(ends[1]);
    if (pid > 0) number = read_failure(ends[0]);
    close(ends[0]);
    if (pid > 0 && number == 0) {
        *pid_p = pid;
        return EL_OK;
    }
    if (pid > 0) waitpid(pid, NULL, 0);
    *exit_status_p = number == ENOENT ? EL_WATCH_NOT_FOUND : EL_WATCH_NOT_STARTED;
    return el_fail(EL_ERR_ABSENT, "%s: cannot be started: %s; write the command after '--'", command[0],
                   strerror(number));
}

enum el_status el_watch_start(char *const *command, sigset_t *taken_p, sigset_t *before_p, pid_t *pid_p,
                              int *exit_status_p)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, on_child;
    sigemptyset(taken_p);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) sigaddset(taken_p, taken[i]);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return el_fail_errno("%s: cannot adopt its processes", command[0]);
    sigaction(SIGCHLD, &plain, &on_child); /* ignored, the kernel would throw away what ended children were */
    sigprocmask(SIG_BLOCK, taken_p, before_p);
    enum el_status status = fork_command(command, before_p, &on_child, pid_p, exit_status_p);
    if (status != EL_OK) sigprocmask(SIG_SETMASK, before_p, NULL);
    return status;
}

void el_watch_release_signals(const struct el_watching *watch)
{
    const struct timespec at_once = {.tv_sec = 0};
    struct sigaction dropped = {.sa_handler = SIG_IGN};
    while (sigtimedwait(&watch->signals, NULL, &at_once) > 0) continue;
    sigaction(SIGPIPE, &dropped, NULL);
    sigprocmask(SIG_SETMASK, &watch->signals_before, NULL);
}
