/* The vocabulary: a hash table from words to ids in the order of first appearance. It has no limit; the data set
 * applies one. */
#include "runtime/data/samples.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/hash.h"

enum { FIRST_CAPACITY = 1024 };

/* Spreads the high bits, because the table uses the low ones. */
static uint64_t hash_word(const char *word, size_t length)
{
    uint64_t hash = el_hash(EL_HASH_BEGIN, word, length);
    return hash ^ hash >> 29;
}

static struct el_word *place_of(const struct el_vocabulary *vocabulary, const char *word, size_t length, uint64_t hash)
{
    size_t mask = vocabulary->capacity - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct el_word *place = &vocabulary->places[at];
        if (!place->text) return place;
        if (place->hash == hash && place->length == length && memcmp(place->text, word, length) == 0) return place;
    }
}

static enum el_status grow(struct el_vocabulary *vocabulary)
{
    struct el_vocabulary bigger = *vocabulary;
    bigger.capacity = vocabulary->capacity ? vocabulary->capacity * 2 : FIRST_CAPACITY;
    bigger.places = calloc(bigger.capacity, sizeof *bigger.places);
    if (!bigger.places) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a vocabulary of %zu words", bigger.capacity);
    for (size_t i = 0; i < vocabulary->capacity; i++) {
        const struct el_word *old = &vocabulary->places[i];
        if (old->text) *place_of(&bigger, old->text, old->length, old->hash) = *old;
    }
    free(vocabulary->places);
    *vocabulary = bigger;
    return EL_OK;
}

enum el_status el_vocabulary_add(struct el_vocabulary *vocabulary, const char *word, size_t length, int32_t *id_p)
{
    if ((size_t)vocabulary->count * 2 >= vocabulary->capacity) EL_TRY(grow(vocabulary));
    uint64_t hash = hash_word(word, length);
    struct el_word *place = place_of(vocabulary, word, length, hash);
    if (!place->text) *place = (struct el_word){word, (uint32_t)length, EL_ID_FIRST_WORD + vocabulary->count++, hash};
    *id_p = place->id;
    return EL_OK;
}

int32_t el_vocabulary_find(const struct el_vocabulary *vocabulary, const char *word, size_t length)
{
    if (!vocabulary->capacity) return EL_ID_UNKNOWN;
    const struct el_word *place = place_of(vocabulary, word, length, hash_word(word, length));
    return place->text ? place->id : EL_ID_UNKNOWN;
}

enum el_status el_vocabulary_keep(struct el_vocabulary *vocabulary, char **text_p)
{
    size_t bytes = 1;
    for (size_t i = 0; i < vocabulary->capacity; i++)
        bytes += vocabulary->places[i].text ? vocabulary->places[i].length : 0;
    char *text = malloc(bytes), *at = text;
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a vocabulary of %d words", vocabulary->count);
    for (size_t i = 0; i < vocabulary->capacity; i++) {
        struct el_word *word = &vocabulary->places[i];
        if (!word->text) continue;
        memcpy(at, word->text, word->length);
        word->text = at;
        at += word->length;
    }
    *text_p = text;
    return EL_OK;
}

void el_vocabulary_free(struct el_vocabulary *vocabulary)
{
    free(vocabulary->places);
    *vocabulary = (struct el_vocabulary){0};
}
