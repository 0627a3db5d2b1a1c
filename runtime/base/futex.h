/* Sleeping until a word changes, and waking those who do: the kernel's futex, of which everything that waits for other
 * threads or processes is made. `shared`: others than this process's threads wait there, too (the word lies in shared
 * memory); a word is one or the other for good. Timing: wait blocks, also sometimes for no reason: look again. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps if the word is still `seen`, until a wake or for `patience_ns`; below 0 there is no limit. */
static inline void el_futex_wait(_Atomic uint32_t *word, uint32_t seen, bool shared, int64_t patience_ns)
{
    struct timespec patience = {.tv_sec = patience_ns / 1000000000, .tv_nsec = patience_ns % 1000000000};
    syscall(SYS_futex, (uint32_t *)word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, seen,
            patience_ns < 0 ? NULL : &patience, NULL, 0);
}

/* Wakes all who sleep on the word. */
static inline void el_futex_wake(_Atomic uint32_t *word, bool shared)
{
    syscall(SYS_futex, (uint32_t *)word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
