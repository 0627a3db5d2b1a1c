/* Whether another process lives. A pidfd (Linux 5.3) works even for unreaped processes and reused PIDs; without one
 * the PID must do. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Exit status after a library ended the process for lack of memory, with a message. */
enum { EL_PROCESS_NO_MEMORY = 76 };

/* A pidfd, to be closed. -1: none. */
static inline int el_process_file(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* `file`: its pidfd, or -1. Cost: a system call. */
static inline bool el_process_is_gone(pid_t pid, int file)
{
    struct pollfd one = {.fd = file, .events = POLLIN};
    return file >= 0 ? poll(&one, 1, 0) > 0 : kill(pid, 0) != 0 && errno == ESRCH;
}
