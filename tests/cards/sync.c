/* Locks, sleeping, marks, time and chance of the fake run time. None of it is seen by the thread sanitizer, but for
 * what cards_release() and cards_acquire() say. */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cards/machine.h"

#ifdef CARDS_THREAD_SANITIZER
extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);
#endif

void cards_release(void *address)
{
#ifdef CARDS_THREAD_SANITIZER
    __tsan_release(address);
#else
    (void)address;
#endif
}

void cards_acquire(void *address)
{
#ifdef CARDS_THREAD_SANITIZER
    __tsan_acquire(address);
#else
    (void)address;
#endif
}

void cards_sleep(atomic_int *word, int value)
{
    const struct timespec most = {.tv_nsec = 5000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
}

void cards_wake(atomic_int *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

void cards_lock(struct cards_lock *lock)
{
    int expected = 0;
    if (atomic_compare_exchange_strong(&lock->word, &expected, 1)) return;
    while (atomic_exchange(&lock->word, 2) != 0) cards_sleep(&lock->word, 2);
}

void cards_unlock(struct cards_lock *lock)
{
    if (atomic_exchange(&lock->word, 0) == 2) cards_wake(&lock->word);
}

/* Never freed: a mark at an address that was another's would bring the sanitizer the other's order too. */
struct cards_mark *cards_mark_new(void)
{
    enum { SLAB = 4096 };
    static struct cards_lock lock;
    static struct cards_mark *slab;
    static int used = SLAB;
    cards_lock(&lock);
    if (used == SLAB) {
        slab = mmap(NULL, SLAB * sizeof *slab, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (slab == MAP_FAILED) abort();
        used = 0;
    }
    struct cards_mark *mark = &slab[used++];
    cards_unlock(&lock);
    return mark;
}

int64_t cards_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* splitmix64 */
uint64_t cards_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
