/* Starting the command. Its environment, streams, process group, signals and terminal are as without evenload. It is
 * our child; so becomes every descendant that loses its parent. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/watch/watch.h"
#include "runtime/launch/children.h"

static const int taken[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct started {
    char *const *command;
    sigset_t mask;
    struct sigaction on_child;
};

static void become(const void *context)
{
    const struct started *started = context;
    sigaction(SIGCHLD, &started->on_child, NULL);
    sigprocmask(SIG_SETMASK, &started->mask, NULL);
    execvp(started->command[0], started->command);
}

enum el_status el_watch_start(char *const *command, sigset_t *taken_p, sigset_t *before_p, pid_t *pid_p,
                              int *exit_status_p)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    struct started started = {.command = command};
    sigemptyset(taken_p);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) sigaddset(taken_p, taken[i]);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return el_fail_errno("%s: cannot adopt its processes", command[0]);
    sigaction(SIGCHLD, &plain, &started.on_child); /* ignored, the kernel would throw away what ended children were */
    sigprocmask(SIG_BLOCK, taken_p, before_p);
    started.mask = *before_p;
    *pid_p = el_child_fork(become, &started, -1);
    if (*pid_p > 0) return EL_OK;
    int number = errno;
    sigprocmask(SIG_SETMASK, before_p, NULL);
    *exit_status_p = number == ENOENT ? EL_WATCH_NOT_FOUND : EL_WATCH_NOT_STARTED;
    return el_fail(EL_ERR_ABSENT, "%s: cannot be started: %s; write the command after '--'", command[0],
                   strerror(number));
}

void el_watch_release_signals(const struct el_watching *watch)
{
    const struct timespec at_once = {.tv_sec = 0};
    struct sigaction dropped = {.sa_handler = SIG_IGN};
    while (sigtimedwait(&watch->signals, NULL, &at_once) > 0) continue;
    sigaction(SIGPIPE, &dropped, NULL);
    sigprocmask(SIG_SETMASK, &watch->signals_before, NULL);
}
