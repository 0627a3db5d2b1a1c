/* Races between a launch's threads, whichever way they run: the compiler calls before each load and store of a kernel
 * what it calls for the thread sanitizer, and races.cc has those functions. Blocks run one after the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For a test that runs the same again: whether this thread's next launches are watched. They are if it says nothing. */
void el_races_watch(bool on);

/* Of planted.cc: kernels whose blocks race, whose threads do, that shuffle where no lane is named, without lanes that
 * are, and whose operand is another's though __restrict__. */
enum el_planted {
    EL_PLANTED_BLOCKS,
    EL_PLANTED_THREADS,
    EL_PLANTED_MASK,
    EL_PLANTED_PART,
    EL_PLANTED_RESTRICT,
    EL_PLANTED
};
void el_planted_run(enum el_planted planted);

/* Of loops.cc: the macro of a loop that goes wrong beyond 2^31 items; NULL. */
const char *el_loops_wrong(void);

#ifdef __cplusplus
}

/* From here on, in this thread, the kernel that runs is watched; no longer. */
void el_races_begin(void);
void el_races_end(void);

/* A block begins; all its threads that still run have come to a barrier. */
void el_races_block(void);
void el_races_barrier(void);

/* Of the emulator: ends the program; and the stack of the thread that runs, which nobody else may know. */
[[noreturn]] void el_races_found(const char *words);
extern __thread uintptr_t el_races_stack, el_races_stack_bytes __attribute__((tls_model("initial-exec")));
#endif
