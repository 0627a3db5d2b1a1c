/* FNV-1a, 64 bits: quick, the same on every machine, and no protection from who wants two texts to be one. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EL_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define EL_HASH_PRIME UINT64_C(0x100000001b3)

/* Goes on with a hash over more bytes; begin with EL_HASH_BEGIN. */
static inline uint64_t el_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ at[i]) * EL_HASH_PRIME;
    return hash;
}

/* By words: eight bytes at a time, the last ones filled up with zeros. Goes on over pieces of whole words. */
static inline uint64_t el_hash_words(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)bytes + i, n - i < 8 ? n - i : 8);
        hash = (hash ^ word) * EL_HASH_PRIME;
        hash = hash << 29 | hash >> 35;
    }
    return hash;
}
