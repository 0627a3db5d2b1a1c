/* How fast cores compute at once, each against itself alone.
 *
 * A hypervisor may run two cores of its guest as the two threads of one physical core, for seconds, and no counter of
 * the guest tells: each then computes at about half of its rate while the other one computes too. Memory does not
 * matter here: the work is integer multiplications, in registers.
 * Cost: about half a millisecond a core, and as much again. Threads: any; nothing else of this program should compute
 * meanwhile.
 */
#pragma once

/* The least rate that one of these different CPUs has while all of them compute, in per cent of its rate alone: about
 * 100 on physical cores of their own, 50 where two are one. NAN: fewer than two, or a thread could not be bound to
 * one. */
double el_core_rate_pct(const int *cpus, int n);
