/* Byte pair encoding as GPT-2 and Hugging Face's tokenizers do it. */
#include "runtime/data/bpe.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/data/samples.h"
#include "runtime/data/unicode.h"

enum { BYTES = 256, SPELLED = BYTES + 68, TOKENS_MAX = 1 << 24, NOT_A_TOKEN = -1, NO_MERGE = INT32_MAX, CHANGED = -1 };
enum kind { OTHER, LETTER, NUMBER, BLANK }; /* of a character */

struct place {
    uint64_t pair; /* left << 32 | right */
    int32_t rank;  /* NO_MERGE: it is free */
};

struct el_bpe {
    int32_t n, n_merges;
    int32_t *token_bytes;   /* [n] */
    int32_t of_byte[BYTES]; /* ids */
    int32_t *merged;        /* [n_merges]: what a pair becomes, by its rank */
    struct place *places;   /* open addressing, at most half full */
    uint64_t mask;          /* places - 1 */
    uint8_t kinds[EL_UNICODE_END];
};

static void mark(uint8_t *kinds, const uint16_t *ranges, size_t n, enum kind kind)
{
    for (size_t i = 0, at = 0; i < n; at += ranges[i + 1], i += 2)
        memset(kinds + (at += ranges[i]), kind, ranges[i + 1]);
}

/* ---- vocab.json ---- */

/* In GPT-2's files bytes are characters that can be seen: Latin-1's are themselves, and what is not seen there follows
 * from U+0100 on. byte_of: [SPELLED], by character, or NOT_A_TOKEN. */
static void spell_bytes(int32_t *byte_of)
{
    int next = BYTES;
    memset(byte_of, 0xFF, SPELLED * sizeof *byte_of);
    for (int b = 0; b < BYTES; b++) {
        const bool seen = (b > ' ' && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        byte_of[seen ? b : next++] = b;
    }
}

static void take_token(struct el_bpe *bpe, const int32_t *byte_of, const char *token, int32_t id)
{
    const size_t length = strlen(token);
    int32_t bytes = 0, byte = NOT_A_TOKEN;
    uint32_t code = 0;
    for (size_t at = 0, step; at < length; at += step) {
        step = (size_t)el_utf8_next(token + at, length - at, &code); /* not 0: jansson has checked it */
        byte = code < SPELLED ? byte_of[code] : NOT_A_TOKEN;
        bytes += byte == NOT_A_TOKEN ? (int32_t)step : 1;
    }
    bpe->token_bytes[id] = bytes;
    if (bytes == 1 && byte != NOT_A_TOKEN) bpe->of_byte[byte] = id;
}

static enum el_status take_vocabulary(const char *shown, const json_t *vocabulary, struct el_bpe *bpe)
{
    int32_t byte_of[SPELLED];
    const char *token;
    json_t *number;
    spell_bytes(byte_of);
    memset(bpe->of_byte, 0xFF, sizeof bpe->of_byte);
    json_object_foreach((json_t *)(uintptr_t)vocabulary, token, number)
    {
        const json_int_t id = json_integer_value(number);
        if (!*token || !json_is_integer(number) || id < 0 || id >= bpe->n || bpe->token_bytes[id])
            return el_fail(EL_ERR_INVALID, "%s: its %d tokens must have the ids 0 to %d, each once", shown, bpe->n,
                           bpe->n - 1);
        take_token(bpe, byte_of, token, (int32_t)id);
    }
    for (int b = 0; b < BYTES; b++)
        if (bpe->of_byte[b] == NOT_A_TOKEN)
            return el_fail(EL_ERR_INVALID,
                           "%s: no token for the byte 0x%02X: train the vocabulary with all 256 bytes as its alphabet",
                           shown, (unsigned)b);
    return EL_OK;
}

static enum el_status load_vocabulary(const char *path, json_t **vocabulary_p)
{
    struct el_text text;
    json_error_t error;
    EL_TRY(el_bytes_load(path, &text));
    json_t *vocabulary = json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES, &error);
    const size_t n = json_object_size(vocabulary);
    free(text.bytes);
    if (n > 0 && n <= TOKENS_MAX) {
        *vocabulary_p = vocabulary;
        return EL_OK;
    }
    json_decref(vocabulary);
    if (n) return el_fail(EL_ERR_INVALID, "%s: %zu tokens: %d can be read", el_path_tail(path), n, TOKENS_MAX);
    return el_fail(EL_ERR_INVALID, "%s, line %d: no JSON object of tokens and their ids, as GPT-2's vocab.json",
                   el_path_tail(path), error.line > 0 ? error.line : 1);
}

/* ---- merges.txt ---- */

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The pair's, or the free one where it would be. */
static struct place *place_of(const struct el_bpe *bpe, int32_t left, int32_t right)
{
    const uint64_t pair = pair_of(left, right);
    uint64_t at = (pair * 0x9E3779B97F4A7C15U) >> 32 & bpe->mask;
    while (bpe->places[at].rank != NO_MERGE && bpe->places[at].pair != pair) at = (at + 1) & bpe->mask;
    return &bpe->places[at];
}

static int32_t id_of(const json_t *vocabulary, const char *token)
{
    const json_t *id = json_object_get(vocabulary, token);
    return id ? (int32_t)json_integer_value(id) : NOT_A_TOKEN;
}

/* "left right", the next by rank; it is changed. */
static bool take_merge(struct el_bpe *bpe, const json_t *vocabulary, char *line, size_t length)
{
    char *blank = memchr(line, ' ', length);
    if (!blank || strlen(line) != length) return false;
    const int32_t right = id_of(vocabulary, blank + 1);
    *blank = 0;
    const int32_t left = id_of(vocabulary, line);
    memmove(blank, blank + 1, strlen(blank + 1) + 1);
    const int32_t both = id_of(vocabulary, line);
    if (left == NOT_A_TOKEN || right == NOT_A_TOKEN || both == NOT_A_TOKEN) return false;
    struct place *place = place_of(bpe, left, right);
    if (place->rank != NO_MERGE) return false;
    bpe->merged[bpe->n_merges] = both;
    *place = (struct place){.pair = pair_of(left, right), .rank = bpe->n_merges++};
    return true;
}

static enum el_status take_merges(const char *shown, const json_t *vocabulary, struct el_text *text, struct el_bpe *bpe)
{
    size_t lines = 1;
    for (size_t i = 0; i < text->length; i++) lines += text->bytes[i] == '\n';
    for (bpe->mask = 1; bpe->mask < 2 * lines; bpe->mask *= 2) {
    }
    bpe->merged = malloc(lines * sizeof *bpe->merged);
    bpe->places = malloc(bpe->mask * sizeof *bpe->places);
    if (!bpe->merged || !bpe->places) return el_fail_errno("%s", shown);
    for (uint64_t i = 0; i < bpe->mask; i++) bpe->places[i] = (struct place){.rank = NO_MERGE};
    bpe->mask--;
    char *line = text->bytes, *const end = text->bytes + text->length;
    for (long long number = 1; line < end; number++) {
        char *stop = memchr(line, '\n', (size_t)(end - line)), *const next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > line && stop[-1] == '\r') stop--;
        *stop = 0;
        const bool skipped = stop == line || (number == 1 && strncmp(line, "#version", 8) == 0);
        if (!skipped && !take_merge(bpe, vocabulary, line, (size_t)(stop - line)))
            return el_fail(
                EL_ERR_INVALID,
                "%s, line %lld: no pair of tokens that together are a token of vocab.json, or for the second time",
                shown, number);
        line = next;
    }
    return EL_OK;
}

/* "merges.txt" for "vocab.json", and whatever stands before it. */
static enum el_status load_merges(const char *path, const json_t *vocabulary, struct el_bpe *bpe)
{
    static const char own[] = "vocab.json", other[] = "merges.txt"; /* as long */
    const size_t length = strlen(path), tail = sizeof own - 1;
    char beside[EL_PATH_BYTES];
    struct el_text text;
    if (length < tail || length >= sizeof beside || strcmp(path + length - tail, own) != 0)
        return el_fail(EL_ERR_INVALID,
                       "--vocab-file %s: a file vocab.json, with its merges.txt beside it, as Hugging Face has them",
                       el_path_tail(path));
    snprintf(beside, sizeof beside, "%.*s%s", (int)(length - tail), path, other);
    EL_TRY(el_bytes_load(beside, &text));
    enum el_status status = take_merges(el_path_tail(beside), vocabulary, &text, bpe);
    free(text.bytes);
    return status;
}

enum el_status el_bpe_open(const char *path, struct el_bpe **bpe_p)
{
    json_t *vocabulary = NULL;
    struct el_bpe *bpe = calloc(1, sizeof *bpe);
    if (!bpe) return el_fail_errno("a vocabulary");
    enum el_status status;
    EL_TRY_GOTO(load_vocabulary(path, &vocabulary), done);
    bpe->n = (int32_t)json_object_size(vocabulary);
    bpe->token_bytes = calloc((size_t)bpe->n, sizeof *bpe->token_bytes);
    if (!bpe->token_bytes) {
        status = el_fail_errno("a vocabulary");
        goto done;
    }
    mark(bpe->kinds, el_unicode_letters, sizeof el_unicode_letters / sizeof *el_unicode_letters, LETTER);
    mark(bpe->kinds, el_unicode_numbers, sizeof el_unicode_numbers / sizeof *el_unicode_numbers, NUMBER);
    mark(bpe->kinds, el_unicode_blanks, sizeof el_unicode_blanks / sizeof *el_unicode_blanks, BLANK);
    EL_TRY_GOTO(take_vocabulary(el_path_tail(path), vocabulary, bpe), done);
    status = load_merges(path, vocabulary, bpe);
done:
    json_decref(vocabulary);
    if (status == EL_OK)
        *bpe_p = bpe;
    else
        el_bpe_close(bpe);
    return status;
}

void el_bpe_close(struct el_bpe *bpe)
{
    if (!bpe) return;
    free(bpe->token_bytes);
    free(bpe->merged);
    free(bpe->places);
    free(bpe);
}

int32_t el_bpe_size(const struct el_bpe *bpe)
{
    return bpe->n;
}

int32_t *el_bpe_take_token_bytes(struct el_bpe *bpe)
{
    int32_t *token_bytes = bpe->token_bytes;
    bpe->token_bytes = NULL;
    return token_bytes;
}

/* ---- a text ---- */

/* Its bytes; a byte of no character counts as one. */
static size_t character(const struct el_bpe *bpe, const char *at, const char *end, enum kind *kind_p)
{
    uint32_t code;
    const size_t length = (size_t)el_utf8_next(at, (size_t)(end - at), &code);
    *kind_p = length && code < EL_UNICODE_END ? (enum kind)bpe->kinds[code] : OTHER;
    return length ? length : 1;
}

static size_t contraction(const char *at, size_t left)
{
    static const char *const forms[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; *at == '\'' && i < sizeof forms / sizeof *forms; i++)
        if (left >= strlen(forms[i]) && memcmp(at, forms[i], strlen(forms[i])) == 0) return strlen(forms[i]);
    return 0;
}

/* Where characters of this kind end. *last_p: where the last of them begins, if there are any. */
static const char *run_of(const struct el_bpe *bpe, enum kind kind, const char *at, const char *end,
                          const char **last_p)
{
    enum kind next;
    for (size_t step; at < end; at += step) {
        step = character(bpe, at, end, &next);
        if (next != kind) break;
        *last_p = at;
    }
    return at;
}

/* The pattern's first match, which is never empty. The last of several blanks is left to what follows. */
static const char *piece(const struct el_bpe *bpe, const char *at, const char *end)
{
    enum kind kind, behind = BLANK;
    const size_t form = contraction(at, (size_t)(end - at));
    if (form) return at + form;
    character(bpe, at, end, &kind);
    if (*at == ' ' && at + 1 < end) character(bpe, at + 1, end, &behind);
    const char *last = at,
               *stop = behind == BLANK ? run_of(bpe, kind, at, end, &last) : run_of(bpe, behind, at + 1, end, &last);
    return kind == BLANK && behind == BLANK && stop < end && last > at ? last : stop;
}

static int32_t rank_of(const struct el_bpe *bpe, int32_t left, int32_t right)
{
    return place_of(bpe, left, right)->rank;
}

/* Merges the pair of rank `best` wherever it is; returns how many ids there are then. */
static int64_t merge(const struct el_bpe *bpe, int32_t best, int64_t n, int32_t *ids, int32_t *ranks)
{
    int64_t to = 0;
    for (int64_t i = 0; i < n; i++, to++) {
        const bool merges = i + 1 < n && ranks[i] == best;
        ids[to] = merges ? bpe->merged[best] : ids[i];
        ranks[to] = merges ? CHANGED : ranks[i];
        if (merges && to > 0) ranks[to - 1] = CHANGED;
        i += merges;
    }
    for (int64_t i = 0; i < to; i++)
        if (ranks[i] == CHANGED) ranks[i] = i + 1 < to ? rank_of(bpe, ids[i], ids[i + 1]) : NO_MERGE;
    return to;
}

/* The ids of a piece: [n] at most. ranks: [n], of the pair that begins there. */
static int64_t encode(const struct el_bpe *bpe, const char *bytes, int64_t n, int32_t *ids, int32_t *ranks)
{
    for (int64_t i = 0; i < n; i++) ids[i] = bpe->of_byte[(unsigned char)bytes[i]];
    for (int64_t i = 0; i < n; i++) ranks[i] = i + 1 < n ? rank_of(bpe, ids[i], ids[i + 1]) : NO_MERGE;
    for (;;) {
        int32_t best = NO_MERGE;
        for (int64_t i = 0; i < n; i++)
            if (ranks[i] < best) best = ranks[i];
        if (best == NO_MERGE) return n;
        n = merge(bpe, best, n, ids, ranks);
    }
}

enum el_status el_bpe_encode(const struct el_bpe *bpe, const char *bytes, size_t length, int32_t **ids_p, int64_t *n_p)
{
    int32_t *ids = malloc((length + 1) * sizeof *ids), *ranks = malloc((length + 1) * sizeof *ranks);
    int64_t n = 0;
    for (const char *at = bytes, *const end = bytes + length; ids && ranks && at < end;) {
        const char *const stop = piece(bpe, at, end);
        n += encode(bpe, at, stop - at, ids + n, ranks);
        at = stop;
    }
    free(ranks);
    if (!ids || !ranks) {
        free(ids);
        return el_fail_errno("the tokens of a text");
    }
    *ids_p = ids;
    *n_p = n;
    return EL_OK;
}
