/* A counter that only grows, which one thread raises and others wait for; works between threads and, in shared memory,
 * between processes. Bit 0 of the word says "aborted", the rest counts, so that an abort both changes the word (a
 * sleeper wakes) and survives every later raise.
 *
 * Waiting spins for microseconds, then gives way to others on its core for as long as a sleeper takes to wake, and then
 * sleeps in the kernel: on few cores a polling wait takes the core from the compute thread it waits for. Raising costs
 * a system call only if somebody sleeps.
 *
 * All zeros is a flag at 0. What was written before a raise is seen by whoever saw the count (release, acquire).
 * Threads: one raises, any wait and abort. Units: nanoseconds. Errors: none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct el_flag {
    _Alignas(64) _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
};

enum el_flag_result { EL_FLAG_REACHED, EL_FLAG_ABORTED, EL_FLAG_LATE };

/* Raises to `count`. Only the flag's owner calls it. Counts wrap at 2^31: distances matter, not values. */
void el_flag_raise(struct el_flag *flag, uint32_t count);
/* How far it is, modulo 2^31; and the count behind one. */
uint32_t el_flag_count(const struct el_flag *flag);
static inline uint32_t el_flag_next(uint32_t count)
{
    return (count + 1) & (UINT32_MAX >> 1);
}
/* Threads, processes: any. */
void el_flag_abort(struct el_flag *flag);
/* Returns when the count has been reached, after an abort, or (LATE) after `patience_ns`; below 0 there is no limit. */
enum el_flag_result el_flag_wait(struct el_flag *flag, uint32_t count, int64_t patience_ns);
