/* A hash of what was built, so that a run that is gone on with never mixes two builds. */
#ifndef EL_BENCH_HASH_H
#define EL_BENCH_HASH_H

#include "runtime/base/hash.h"

/* Over this program's file and its modules, once a process. Threads: the first call by one of them alone. */
uint64_t el_build_hash(void);

#endif
