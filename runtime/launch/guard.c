/* Fork, and a read that returns when the other end of its pipe has closed. */
#include "runtime/launch/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/scratch.h"
#include "runtime/launch/process_set.h"

/* In a group of its own: what is sent to this process's group, from a terminal say, is not for it. */
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
