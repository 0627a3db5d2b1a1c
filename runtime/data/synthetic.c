/* The synthetic sets: images (shapes.c), or a made-up language as two texts in the user's format, unrelated to real
 * texts.
 * A sentence is mostly noise words of falling frequency, sometimes a word of its class, less often of another, and
 * often a phrase: two words whose order decides between two classes, so that counting words is not enough. A few labels
 * are wrong. Draws are by (seed, file, sample, position): the bytes are a pure function of the seed. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/files.h"
#include "runtime/base/rng.h"
#include "runtime/data/samples.h"

/* Change VERSION with anything that changes the bytes. */
enum { VERSION = 1, CLASSES = 6, TRAIN_SAMPLES = 4000, TEST_SAMPLES = 500, TRAIN_IMAGES = 3000, TEST_IMAGES = 500 };
enum { NOISE_WORDS = 4000, CLASS_WORDS = 30, PHRASES = 2 * CLASSES, LENGTH_MIN = 8, LENGTH_MAX = 40 };
enum { FIRST_CLASS_WORD = NOISE_WORDS, FIRST_PHRASE_WORD = NOISE_WORDS + CLASSES * CLASS_WORDS };
static const double OWN_WORD = 0.10, OTHER_WORD = 0.02, PHRASE = 0.7, WRONG_LABEL = 0.04;

static const char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
enum { CONSONANTS = sizeof consonants - 1, SYLLABLES = CONSONANTS * (sizeof vowels - 1) };
static_assert(FIRST_PHRASE_WORD + 2 * PHRASES <= SYLLABLES * SYLLABLES, "words have two syllables");

struct draws {
    const struct el_synthetic_spec *spec;
    struct el_rng_key key;
    uint64_t sample, next;
};

static double uniform(struct draws *draws)
{
    return el_rng_uniform(&draws->key, draws->sample, draws->next++);
}

static int below(struct draws *draws, int bound)
{
    return (int)(uniform(draws) * bound);
}

static void put_word(FILE *out, int word)
{
    for (int rest = word, i = 0; i < 2; i++, rest /= SYLLABLES) {
        int syllable = rest % SYLLABLES;
        if (i == 0) putc(' ', out);
        putc(consonants[syllable % CONSONANTS], out);
        putc(vowels[syllable / CONSONANTS], out);
    }
}

static int plain_word(struct draws *draws, int class)
{
    double which = uniform(draws), u = uniform(draws);
    if (which < OWN_WORD) return FIRST_CLASS_WORD + class * CLASS_WORDS + (int)(u * CLASS_WORDS);
    if (which < OWN_WORD + OTHER_WORD) return FIRST_CLASS_WORD + (int)(u * CLASSES * CLASS_WORDS);
    return (int)(u * u * NOISE_WORDS); /* density falls with the id */
}

/* Phrase k means class k % CLASSES forward; backward the next class, or the one after it for the second half. */
static void put_phrase(FILE *out, struct draws *draws, int class)
{
    int half = below(draws, 2), backward = below(draws, 2);
    int shift = backward ? 1 + half : 0;
    int phrase = half * CLASSES + (class + CLASSES - shift) % CLASSES;
    put_word(out, FIRST_PHRASE_WORD + 2 * phrase + backward);
    put_word(out, FIRST_PHRASE_WORD + 2 * phrase + !backward);
}

static void choose_length(struct draws *draws, int *length_p, int *phrase_at_p)
{
    const int shortest = (int)draws->spec->shortest, longest = (int)draws->spec->longest;
    int length = longest ? shortest + below(draws, longest - shortest + 1)
                         : LENGTH_MIN + below(draws, LENGTH_MAX - LENGTH_MIN - 1);
    bool phrase = uniform(draws) < PHRASE && (!longest || length > 2);
    if (phrase && longest) length -= 2;
    *phrase_at_p = phrase ? below(draws, length) : -1;
    *length_p = length;
}

static void put_sample(FILE *out, struct draws *draws)
{
    int class = below(draws, CLASSES), label = class;
    int length, phrase_at;
    choose_length(draws, &length, &phrase_at);
    if (uniform(draws) < WRONG_LABEL) label = below(draws, CLASSES);
    fprintf(out, "%d", label);
    for (int i = 0; i < length; i++) {
        if (i == phrase_at) put_phrase(out, draws, class);
        put_word(out, plain_word(draws, class));
    }
    putc('\n', out);
}

static enum el_status compose_sentences(const struct el_synthetic_spec *spec, uint32_t file, int samples,
                                        char **bytes_p, size_t *length_p)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, length_p);
    if (!out) return el_fail_errno("the synthetic set");
    struct draws draws = {.spec = spec, .key = {.seed = spec->seed, .use = EL_RNG_DATA, .id = file}};
    for (int i = 0; i < samples; i++, draws.sample++, draws.next = 0) put_sample(out, &draws);
    int failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(bytes);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory to make the synthetic set");
    }
    *bytes_p = bytes;
    return EL_OK;
}

static enum el_status compose(const struct el_synthetic_spec *spec, uint32_t file, char **bytes_p, size_t *length_p)
{
    if (spec->input == EL_INPUT_IMAGES)
        return el_shapes_compose(spec->seed, file, file ? TEST_IMAGES : TRAIN_IMAGES, bytes_p, length_p);
    if (spec->input == EL_INPUT_TOKENS) return el_stream_compose(spec->seed, file, bytes_p, length_p);
    return compose_sentences(spec, file, file ? TEST_SAMPLES : TRAIN_SAMPLES, bytes_p, length_p);
}

static enum el_status make_one(const struct el_synthetic_spec *spec, uint32_t file, struct el_text *text_p)
{
    struct el_text text;
    EL_TRY(compose(spec, file, &text.bytes, &text.length));
    if (spec->input != EL_INPUT_IMAGES) text.bytes[--text.length] = 0;
    *text_p = text;
    return EL_OK;
}

enum el_status el_synthetic_make(const struct el_synthetic_spec *spec, struct el_text *train_p, struct el_text *test_p)
{
    struct el_text train;
    EL_TRY(make_one(spec, 0, &train));
    enum el_status status = make_one(spec, 1, test_p);
    if (status == EL_OK)
        *train_p = train;
    else
        free(train.bytes);
    return status;
}

static bool holds(const char *path, const char *bytes, size_t length)
{
    FILE *file;
    if (el_file_stream("", path, INT64_MAX, &file) != EL_OK) return false;
    char *found = malloc(length + 1);
    bool same = found && fread(found, 1, length + 1, file) == length && memcmp(found, bytes, length) == 0;
    free(found);
    fclose(file);
    return same;
}

/* Ranks may do this at once: each has its own temporary name, and all write the same bytes. */
static enum el_status keep(const char *path, const char *bytes, size_t length)
{
    char temporary[EL_PATH_BYTES + 64];
    if (holds(path, bytes, length)) return EL_OK;
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file && fwrite(bytes, 1, length, file) == length) return el_file_end(file, temporary, path);
    enum el_status status = el_fail_errno("cannot write the synthetic set to %s", el_path_tail(path));
    el_file_drop(file, temporary);
    return status;
}

static enum el_status name_one(const char *dir, const struct el_synthetic_spec *spec, uint32_t test, char *path,
                               size_t path_bytes)
{
    const bool images = spec->input == EL_INPUT_IMAGES;
    const char *kind = images ? "images-" : spec->input == EL_INPUT_TOKENS ? "english-" : "";
    char lengths[48] = "";
    if (spec->longest)
        snprintf(lengths, sizeof lengths, "lengths-%lld-%lld-", (long long)spec->shortest, (long long)spec->longest);
    int written = snprintf(path, path_bytes, "%s/synthetic-%s%s%d-seed-%llu-%s.%s", dir, kind, lengths, VERSION,
                           (unsigned long long)spec->seed, test ? "test" : "train", images ? "bin" : "txt");
    if (written >= 0 && (size_t)written < path_bytes) return EL_OK;
    return el_fail(EL_ERR_INVALID, "the path of the synthetic set is too long: %s", el_path_tail(dir));
}

enum el_status el_synthetic_paths(const char *dir, const struct el_synthetic_spec *spec, char *train_path,
                                  char *test_path, size_t path_bytes)
{
    EL_TRY(name_one(dir, spec, 0, train_path, path_bytes));
    return name_one(dir, spec, 1, test_path, path_bytes);
}

static enum el_status write_one(const struct el_synthetic_spec *spec, uint32_t test, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    EL_TRY(compose(spec, test, &bytes, &length));
    enum el_status status = keep(path, bytes, length);
    free(bytes);
    return status;
}

enum el_status el_synthetic_write(const char *dir, const struct el_synthetic_spec *spec, char *train_path,
                                  char *test_path, size_t path_bytes)
{
    if (!dir || !*dir) return el_fail(EL_ERR_INVALID, "no folder given for the synthetic set");
    EL_TRY(el_synthetic_paths(dir, spec, train_path, test_path, path_bytes));
    EL_TRY(el_folder_make(dir, NULL));
    EL_TRY(write_one(spec, 0, train_path));
    return write_one(spec, 1, test_path);
}
