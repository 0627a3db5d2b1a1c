/* GPT-2's tokens: pairs of bytes that are often beside each other, merged again and again (byte pair encoding).
 *
 * Any bytes can be encoded, and the ids stand for all of them. A text is cut into pieces by GPT-2's pattern first:
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * and in each piece the pair that merges.txt has first is merged, until no pair is in it. A byte that belongs to no
 * UTF-8 character counts as one that is neither letter nor number nor blank. Tokens like <|endoftext|> are not looked
 * for: in a text they are their characters.
 *
 * Threads: several may encode at once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct el_bpe;

/* `path`: vocab.json, an object of tokens and their ids from 0 on, in GPT-2's spelling of bytes by characters;
 * merges.txt is beside it, or *-merges.txt beside *-vocab.json. Errors: EL_ERR_IO; EL_ERR_INVALID with file and line.
 */
enum el_status el_bpe_open(const char *path, struct el_bpe **bpe_p);
void el_bpe_close(struct el_bpe *bpe); /* NULL is legal */

int32_t el_bpe_size(const struct el_bpe *bpe);
/* How many bytes of a text each id stands for: [size]. It is there once. Ownership: free. */
int32_t *el_bpe_take_token_bytes(struct el_bpe *bpe);
/* Ownership: free(*ids_p), which has *n_p of them. */
enum el_status el_bpe_encode(const struct el_bpe *bpe, const char *bytes, size_t length, int32_t **ids_p, int64_t *n_p);
