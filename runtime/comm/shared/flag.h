/* A growing counter that one thread raises and others wait for, also between processes. Bit 0 of the word says
 * "aborted", the rest counts, so an abort wakes sleepers and survives later raises.
 *
 * A wait spins for microseconds, yields, then sleeps: on few cores polling takes the core from the compute thread it
 * waits for. A raise costs a system call only if somebody sleeps. All zeros is a flag at 0. Raise is a release, an
 * observed count an acquire. Threads: one raises, any wait and abort. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct el_flag {
    _Alignas(64) _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
};

enum el_flag_result { EL_FLAG_REACHED, EL_FLAG_ABORTED, EL_FLAG_LATE };

/* Only by the flag's owner. Counts wrap at 2^31: differences matter. */
void el_flag_raise(struct el_flag *flag, uint32_t count);
/* The count modulo 2^31; and its successor. */
uint32_t el_flag_count(const struct el_flag *flag);
static inline uint32_t el_flag_next(uint32_t count)
{
    return (count + 1) & (UINT32_MAX >> 1);
}
void el_flag_abort(struct el_flag *flag);
/* Returns when the count is reached, after an abort, or (LATE) after `patience_ns`; < 0: no limit. */
enum el_flag_result el_flag_wait(struct el_flag *flag, uint32_t count, int64_t patience_ns);
