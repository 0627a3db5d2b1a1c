/* What the program ends with.
 *
 * Exit status: 0 success; 1 a trial did not finish (its row says why) or is not valid under --strict, or a self-check
 * misses what was injected; 2 wrong usage, or something is missing on this machine; 130
 * interrupted. `regress` has two more: 3 inconclusive, 4 no baseline that fits. `watch` has the exit status of its
 * command.
 */
#ifndef EL_BENCH_EXIT_H
#define EL_BENCH_EXIT_H

enum { EL_EXIT_TRIAL = 1, EL_EXIT_USE = 2, EL_EXIT_INTERRUPTED = 130 };

#endif
