/* Whether another process is still there. A file descriptor on it (a pidfd, Linux 5.3) tells at once, also of a process
 * that nobody has reaped or whose number is used again; without one its number has to do. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The exit status of a process that a library ended, since there was no memory for it; it has said so in a line. */
enum { EL_PROCESS_NO_MEMORY = 76 };

/* Ownership: close it. -1 where the kernel has none, or no such process. */
static inline int el_process_file(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* `file` is the process's, or -1. Cost: a system call. */
static inline bool el_process_is_gone(pid_t pid, int file)
{
    struct pollfd one = {.fd = file, .events = POLLIN};
    return file >= 0 ? poll(&one, 1, 0) > 0 : kill(pid, 0) != 0 && errno == ESRCH;
}
