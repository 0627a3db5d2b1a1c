/* FNV-1a, 64 bits: fast, portable, not cryptographic. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EL_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define EL_HASH_PRIME UINT64_C(0x100000001b3)

/* Continues a hash; begin with EL_HASH_BEGIN. */
static inline uint64_t el_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ at[i]) * EL_HASH_PRIME;
    return hash;
}

/* For large files: four lanes of 8-byte words, so that four products are in flight; the end is zero-padded. */
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

/* Continues over whole blocks; only the last piece may end within one. */
static inline uint64_t el_hash_blocks(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += EL_HASH_BLOCK) {
        const size_t left = n - at;
        const uint64_t block = el_hash_block((const char *)bytes + at, left < EL_HASH_BLOCK ? left : EL_HASH_BLOCK);
        hash = el_hash(hash, &block, sizeof block);
    }
    return hash;
}
