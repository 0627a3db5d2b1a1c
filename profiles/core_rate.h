/* Speed of cores together against alone. A hypervisor may run two guest cores as threads of one physical core, for
 * seconds and without any guest counter: each then has about half its rate while the other computes. The work is
 * integer multiplication in registers, independent of memory. Cost: about a millisecond per core. Threads: any; nothing
 * else of this program should compute meanwhile. */
#pragma once

/* The least rate of these distinct CPUs together, in per cent of alone: about 100 on separate physical cores, 50 if two
 * are one. NAN: fewer than two, or a thread could not be bound. */
double el_core_rate_pct(const int *cpus, int n);
