/* Token streams for language models: a text or made-up English by bytes, or random ids. A sample is `seq` tokens and
 * the next one; consecutive samples make every token a label once. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/data/samples.h"

enum { BYTES = 256, DUMMY_SAMPLES = 16384, TRAIN_SENTENCES = 12000, TEST_SENTENCES = 1200, IDS_A_DRAW = 4 };
#define FILE_BYTES_MAX ((size_t)1 << 30) /* four bytes of memory each, in every rank */

/* Number agrees and verbs depend on subjects: more to learn than letter frequencies. */
static const char *const subjects[] = {"the cat",  "a small dog", "my old friend",  "the green bird", "one child",
                                       "the cats", "small dogs",  "my old friends", "green birds",    "two children"};
static const char *const verbs[][2] = {{"sees", "see"},   {"follows", "follow"},     {"likes", "like"},
                                       {"hears", "hear"}, {"remembers", "remember"}, {"draws", "draw"}};
static const char *const places[] = {"in the garden", "near the river", "behind the house", "on the hill"};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0], VERBS = sizeof verbs / sizeof verbs[0] };
enum { PLACES = sizeof places / sizeof places[0] };

static void put_sentence(FILE *out, const struct el_rng_key *key, uint64_t sentence)
{
    uint32_t drawn[4];
    el_rng_draw4(key, sentence, 0, drawn);
    const int who = (int)(drawn[0] % SUBJECTS), whom = (int)(drawn[1] % SUBJECTS), what = (int)(drawn[2] % VERBS);
    fprintf(out, "%s %s %s", subjects[who], verbs[what][who >= SUBJECTS / 2], subjects[whom]);
    if (drawn[3] % 2) fprintf(out, " %s", places[(who + what) % PLACES]);
    fputs(".\n", out);
}

enum el_status el_stream_compose(uint64_t seed, uint32_t file, char **bytes_p, size_t *length_p)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_DATA, .id = file};
    const int n = file ? TEST_SENTENCES : TRAIN_SENTENCES;
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, length_p);
    if (!out) return el_fail_errno("the synthetic text");
    for (int i = 0; i < n; i++) put_sentence(out, &key, (uint64_t)i);
    int failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(bytes);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory to make the synthetic text");
    }
    *bytes_p = bytes;
    return EL_OK;
}

static enum el_status alloc_samples(int64_t count, int64_t step, int64_t seq, struct el_samples *samples_p)
{
    EL_TRY(el_samples_alloc(count, (count - 1) * step + seq + 1, samples_p));
    samples_p->longest = seq;
    memset(samples_p->labels, 0, (size_t)count * sizeof *samples_p->labels);
    for (int64_t i = 0; i <= count; i++) samples_p->starts[i] = i * step;
    return EL_OK;
}

static enum el_status cut_text(const char *path, const struct el_text *text, int64_t seq, struct el_samples *samples_p)
{
    const int64_t n = (int64_t)text->length, count = (n - 1) / seq;
    if (text->length > FILE_BYTES_MAX)
        return el_fail(EL_ERR_INVALID, "%s: %zu bytes: a text may have 1 GiB: give a part of it", el_path_tail(path),
                       text->length);
    if (count < 1)
        return el_fail(EL_ERR_INVALID,
                       "%s: %lld bytes are too few for one sequence of %lld and its next byte: give more text, or "
                       "--seq less",
                       el_path_tail(path), (long long)n, (long long)seq);
    EL_TRY(alloc_samples(count, seq, seq, samples_p));
    for (int64_t i = 0; i <= count * seq; i++) samples_p->tokens[i] = (unsigned char)text->bytes[i];
    return EL_OK;
}

static enum el_status open_text(const char *path, int64_t seq, struct el_samples *samples_p)
{
    struct el_text text;
    EL_TRY(el_bytes_load(path, &text));
    enum el_status status = cut_text(path, &text, seq, samples_p);
    free(text.bytes);
    return status;
}

static enum el_status open_synthetic(const struct el_dataset_spec *spec, int64_t seq, struct el_stream *stream)
{
    const struct el_synthetic_spec made = {.input = EL_INPUT_TOKENS, .seed = spec->seed};
    struct el_text train, test;
    EL_TRY(el_synthetic_make(&made, &train, &test));
    enum el_status status = cut_text("synthetic", &train, seq, &stream->train);
    if (status == EL_OK) status = cut_text("synthetic", &test, seq, &stream->test);
    free(train.bytes);
    free(test.bytes);
    return status;
}

/* Samples overlap: there is nothing to learn. */
static enum el_status open_dummy(const struct el_dataset_spec *spec, int64_t seq, struct el_stream *stream)
{
    const struct el_rng_key key = {.seed = spec->seed, .use = EL_RNG_DATA, .id = 0};
    const int64_t step = seq < BYTES ? seq : BYTES, n = (DUMMY_SAMPLES - 1) * step + seq + 1;
    uint32_t drawn[IDS_A_DRAW];
    EL_TRY(alloc_samples(DUMMY_SAMPLES, step, seq, &stream->train));
    for (int64_t i = 0; i < n; i++) {
        if (i % IDS_A_DRAW == 0) el_rng_draw4(&key, (uint64_t)i, 0, drawn);
        stream->train.tokens[i] = (int32_t)((uint64_t)drawn[i % IDS_A_DRAW] * (uint64_t)stream->vocab >> 32);
    }
    return EL_OK;
}

static enum el_status open_texts(const struct el_dataset_spec *spec, struct el_stream *stream)
{
    if (strcmp(spec->source, "synthetic") == 0) return open_synthetic(spec, spec->seq, stream);
    EL_TRY(open_text(spec->source, spec->seq, &stream->train));
    return spec->test_path ? open_text(spec->test_path, spec->seq, &stream->test) : EL_OK;
}

enum el_status el_stream_open(const struct el_dataset_spec *spec, struct el_stream *stream)
{
    const bool dummy = strcmp(spec->source, "dummy") == 0;
    stream->vocab = spec->vocab ? spec->vocab : BYTES;
    if (dummy) return open_dummy(spec, spec->seq, stream);
    if (stream->vocab < BYTES)
        return el_fail(EL_ERR_INVALID, "--vocab %lld: a text's tokens are its bytes, of which there are %d",
                       (long long)stream->vocab, BYTES);
    return open_texts(spec, stream);
}
