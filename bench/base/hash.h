/* Hashes: of bytes, and of what was built, so that a resumed run never mixes two builds. */
#ifndef EL_BENCH_HASH_H
#define EL_BENCH_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a. Goes on with a hash over more bytes; begin with EL_HASH_BEGIN. */
#define EL_HASH_BEGIN 0xcbf29ce484222325u
uint64_t el_hash(uint64_t hash, const void *bytes, size_t n);
/* Over this program's file and its modules, once a process. Threads: the first call by one of them alone. */
uint64_t el_build_hash(void);

#endif
