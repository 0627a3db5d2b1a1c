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

/* Of large files: by blocks, in each of which four lanes take a word of eight bytes in turn, so that a processor has
 * four products on their way. What is missing at the end is zeros. */
enum { EL_HASH_LANES = 4, EL_HASH_BLOCK = 1 << 18 };

static inline uint64_t el_hash_block(const char *bytes, size_t n)
{
    uint64_t lanes[EL_HASH_LANES] = {1, 2, 3, 4}, hash = EL_HASH_BEGIN ^ n;
    for (size_t i = 0; i < n; i += sizeof lanes) {
        uint64_t words[EL_HASH_LANES] = {0};
        memcpy(words, bytes + i, n - i < sizeof words ? n - i : sizeof words);
        for (int k = 0; k < EL_HASH_LANES; k++) {
            lanes[k] = (lanes[k] ^ words[k]) * EL_HASH_PRIME;
            lanes[k] = lanes[k] << 29 | lanes[k] >> 35;
        }
    }
    return el_hash(hash, lanes, sizeof lanes);
}

/* Goes on over pieces of whole blocks; only the last one may end within one. */
static inline uint64_t el_hash_blocks(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += EL_HASH_BLOCK) {
        const size_t left = n - at;
        const uint64_t block = el_hash_block((const char *)bytes + at, left < EL_HASH_BLOCK ? left : EL_HASH_BLOCK);
        hash = el_hash(hash, &block, sizeof block);
    }
    return hash;
}
