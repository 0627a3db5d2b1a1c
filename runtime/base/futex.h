/* The kernel's futex. `shared`: other processes wait too; fixed per word. A wait may return spuriously. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while the word is `seen`, at most `patience_ns`; < 0: no limit. */
static inline void el_futex_wait(_Atomic uint32_t *word, uint32_t seen, bool shared, int64_t patience_ns)
{
    struct timespec patience = {.tv_sec = patience_ns / 1000000000, .tv_nsec = patience_ns % 1000000000};
    syscall(SYS_futex, (uint32_t *)word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, seen,
            patience_ns < 0 ? NULL : &patience, NULL, 0);
}

/* Wakes all. */
static inline void el_futex_wake(_Atomic uint32_t *word, bool shared)
{
    syscall(SYS_futex, (uint32_t *)word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
