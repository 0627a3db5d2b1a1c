/* Flags over futexes. The futexes are always shared: a flag in shared memory is the same code. */
#include "runtime/comm/shared/flag.h"

#include <sched.h>
#include <stdatomic.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"

/* To wake a sleeper on another core takes 40 to 100 us in some virtual machines: so long a wait lets whoever else wants
 * the core go first, but does not sleep. There all-reduces of 1 KiB took 50 to 100 us when every wait slept after 3 us,
 * now 1.5; a step with 62 small ones 2.1 ms in place of 5.3, and of four ranks on two cores 6.9 in place of 13.3. To
 * spin for 60 us without giving way took 21.6. */
enum { SPIN_NS = 3000, YIELD_NS = 100000, ABORTED = 1 };

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* The word is changed before the sleepers are counted, and a sleeper counts itself before the kernel compares the word:
 * one of the two sees the other. */
void el_flag_raise(struct el_flag *flag, uint32_t count)
{
    uint32_t now = atomic_load_explicit(&flag->word, memory_order_relaxed) & ~(uint32_t)ABORTED;
    atomic_fetch_add(&flag->word, (count << 1) - now);
    if (atomic_load(&flag->sleepers)) el_futex_wake(&flag->word, true);
}

uint32_t el_flag_count(const struct el_flag *flag)
{
    return atomic_load(&flag->word) >> 1;
}

void el_flag_abort(struct el_flag *flag)
{
    atomic_fetch_or(&flag->word, ABORTED);
    el_futex_wake(&flag->word, true);
}

static bool has_ended(struct el_flag *flag, uint32_t count, uint32_t *seen_p, enum el_flag_result *result_p)
{
    *seen_p = atomic_load(&flag->word);
    if (*seen_p & ABORTED)
        *result_p = EL_FLAG_ABORTED;
    else if ((int32_t)(*seen_p - (count << 1)) >= 0)
        *result_p = EL_FLAG_REACHED;
    else
        return false;
    return true;
}

static enum el_flag_result sleep_on(struct el_flag *flag, uint32_t count, int64_t deadline_ns)
{
    enum el_flag_result result;
    uint32_t seen;
    while (!has_ended(flag, count, &seen, &result)) {
        int64_t left_ns = deadline_ns < 0 ? -1 : deadline_ns - el_clock_ns();
        if (deadline_ns >= 0 && left_ns <= 0) return EL_FLAG_LATE;
        el_futex_wait(&flag->word, seen, true, left_ns);
    }
    return result;
}

enum el_flag_result el_flag_wait(struct el_flag *flag, uint32_t count, int64_t patience_ns)
{
    enum el_flag_result result;
    uint32_t seen;
    if (has_ended(flag, count, &seen, &result)) return result;
    int64_t begin_ns = el_clock_ns();
    do {
        pause_briefly();
        if (has_ended(flag, count, &seen, &result)) return result;
    } while (el_clock_ns() - begin_ns < SPIN_NS);
    do {
        sched_yield();
        if (has_ended(flag, count, &seen, &result)) return result;
    } while (el_clock_ns() - begin_ns < YIELD_NS);
    atomic_fetch_add(&flag->sleepers, 1);
    result = sleep_on(flag, count, patience_ns < 0 ? -1 : begin_ns + patience_ns);
    atomic_fetch_sub(&flag->sleepers, 1);
    return result;
}
