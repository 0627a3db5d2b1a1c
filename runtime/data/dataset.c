/* The data set: sources, numbers of words and classes, and splits (images: images.c). Every k-th training sample is
 * held out (k = 1 / share, rounded). */
#include "runtime/data/stored.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/rng.h"

enum {
    DUMMY_VOCAB = 20000,
    DUMMY_CLASSES = 2,
    DUMMY_SAMPLES = 16384,
    DEFAULT_SEQ = 64,
    SEQ_MAX = 1 << 20,
    WORDS_A_DRAW = 4,
    HASHED_SENTENCES = 16384,
    HASHED_IMAGES = 64
};

struct el_dataset {
    struct el_dataset_info info;
    struct el_samples train, test; /* train: with the held-out part */
    int64_t words;                 /* distinct ones in the training file */
    bool folded;
    int64_t every;
    struct el_vocabulary vocabulary;
    char *words_text;
};

static bool is_named(const struct el_dataset_spec *spec, const char *name)
{
    return strcmp(spec->source, name) == 0;
}

static enum el_status check_spec(const struct el_dataset_spec *spec)
{
    if (!spec->source || !*spec->source) return el_fail(EL_ERR_INVALID, "no data given: a file, synthetic or dummy");
    if (spec->vocab != 0 && (spec->vocab <= EL_ID_FIRST_WORD || spec->vocab > INT32_MAX))
        return el_fail(EL_ERR_INVALID, "vocab %lld: 3 or more (0 is padding, 1 the unknown word), below 2^31",
                       (long long)spec->vocab);
    if (spec->seq < 0 || spec->seq > SEQ_MAX)
        return el_fail(EL_ERR_INVALID, "seq %lld: from 1 to %d words", (long long)spec->seq, SEQ_MAX);
    if (spec->classes < 0 || spec->classes > EL_LABEL_MAX + 1)
        return el_fail(EL_ERR_INVALID, "classes %lld: from 1 to %d", (long long)spec->classes, EL_LABEL_MAX + 1);
    if (!(spec->held_out >= 0 && spec->held_out <= 0.5))
        return el_fail(EL_ERR_INVALID, "held-out share %g: from 0 to 0.5", spec->held_out);
    if (spec->in_files && (is_named(spec, "synthetic") || is_named(spec, "dummy")))
        return el_fail(EL_ERR_INVALID,
                       "--data-in disk: '%s' data are made in memory: give a file or a folder, or take "
                       "--data-in memory",
                       spec->source);
    if (spec->shortest < 0 || spec->longest < spec->shortest || (spec->longest && spec->shortest < 1) ||
        spec->longest > SEQ_MAX)
        return el_fail(EL_ERR_INVALID, "lengths %lld-%lld: from 1 to %d words, the shortest first",
                       (long long)spec->shortest, (long long)spec->longest, SEQ_MAX);
    if (spec->longest && !is_named(spec, "synthetic") && !is_named(spec, "dummy"))
        return el_fail(EL_ERR_INVALID,
                       "--lengths %lld-%lld: the sentences of %s have their own lengths: leave it out, or take --data "
                       "synthetic or dummy",
                       (long long)spec->shortest, (long long)spec->longest, el_path_tail(spec->source));
    if (spec->test_path && (is_named(spec, "synthetic") || is_named(spec, "dummy")))
        return el_fail(EL_ERR_INVALID, "a test file goes with a training file, not with '%s' data", spec->source);
    return EL_OK;
}

/* Labels must be below `classes`; sample i is on line i + 1. */
static enum el_status check_labels(const char *path, const struct el_samples *samples, int64_t classes, const char *why)
{
    for (int64_t i = 0; i < samples->count; i++) {
        if (samples->labels[i] >= classes)
            return el_fail(EL_ERR_INVALID, "%s, line %lld: label %d, but there are %lld classes (%s)",
                           el_path_tail(path), (long long)i + 1, samples->labels[i], (long long)classes, why);
    }
    return EL_OK;
}

static void cap_words(struct el_samples *samples, int64_t vocab)
{
    for (int64_t t = 0; t < samples->starts[samples->count]; t++)
        if (samples->tokens[t] >= vocab) samples->tokens[t] = EL_ID_UNKNOWN;
}

static void fold_labels(struct el_samples *samples, int64_t classes)
{
    for (int64_t i = 0; i < samples->count; i++) samples->labels[i] %= (int32_t)classes;
}

static int64_t highest_label(const struct el_samples *samples)
{
    int64_t highest = 0;
    for (int64_t i = 0; i < samples->count; i++)
        if (samples->labels[i] > highest) highest = samples->labels[i];
    return highest;
}

static enum el_status read_test(const char *path, const struct el_text *text, struct el_vocabulary *vocabulary,
                                struct el_dataset *set)
{
    EL_TRY(el_text_parse(path, text, vocabulary, false, &set->test));
    if (set->folded) fold_labels(&set->test, set->info.classes);
    EL_TRY(check_labels(path, &set->test, set->info.classes, "as in training, or as set by classes"));
    cap_words(&set->test, set->info.vocab);
    return EL_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum el_status leave_in_files(const struct el_dataset_spec *spec, const struct el_text *train,
                                     const struct el_text *test, struct el_vocabulary *vocabulary,
                                     struct el_dataset *set)
{
    EL_TRY(el_stored_lines(spec->source, train, &set->train));
    if (test->bytes) EL_TRY(el_stored_lines(spec->test_path, test, &set->test));
    EL_TRY(el_vocabulary_keep(vocabulary, &set->words_text));
    set->vocabulary = *vocabulary;
    *vocabulary = (struct el_vocabulary){0};
    return EL_OK;
}

/* `test` is empty if there is none. The vocabulary points into the training text. */
static enum el_status read_texts(const struct el_dataset_spec *spec, const struct el_text *train,
                                 const struct el_text *test, struct el_dataset *set)
{
    int64_t lines;
    set->info.unspaced = el_text_unspaced(train, &lines);
    set->info.characters = 2 * set->info.unspaced > lines;
    struct el_vocabulary vocabulary = {.characters = set->info.characters};
    enum el_status status;
    EL_TRY_GOTO(el_text_parse(spec->source, train, &vocabulary, true, &set->train), done);
    set->words = vocabulary.count;
    set->info.vocab = spec->vocab ? spec->vocab : vocabulary.count + EL_ID_FIRST_WORD;
    set->info.seq = spec->seq ? spec->seq : larger(set->train.longest, spec->seq_min);
    set->info.classes = spec->classes ? spec->classes : highest_label(&set->train) + 1;
    if (set->info.seq > SEQ_MAX) {
        status = el_fail(EL_ERR_INVALID, "%s: a sentence of %lld words; set seq to at most %d",
                         el_path_tail(spec->source), (long long)set->info.seq, SEQ_MAX);
        goto done;
    }
    set->folded = is_named(spec, "synthetic");
    if (set->folded) fold_labels(&set->train, set->info.classes);
    EL_TRY_GOTO(check_labels(spec->source, &set->train, set->info.classes, "as set by classes"), done);
    cap_words(&set->train, set->info.vocab);
    if (test->bytes)
        EL_TRY_GOTO(read_test(spec->test_path ? spec->test_path : spec->source, test, &vocabulary, set), done);
    if (spec->in_files) status = leave_in_files(spec, train, test, &vocabulary, set);
done:
    el_vocabulary_free(&vocabulary);
    return status;
}

static enum el_status open_files(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    struct el_text train = {0}, test = {0};
    EL_TRY(el_text_load(spec->source, &train));
    enum el_status status = spec->test_path ? el_text_load(spec->test_path, &test) : EL_OK;
    if (status == EL_OK) status = read_texts(spec, &train, &test, set);
    free(train.bytes);
    free(test.bytes);
    return status;
}

static int64_t default_seq(const struct el_dataset_spec *spec)
{
    return spec->longest ? larger(spec->longest, spec->seq_min) : DEFAULT_SEQ;
}

static enum el_status open_synthetic(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    struct el_dataset_spec sized = *spec;
    struct el_text train = {0}, test = {0};
    const struct el_synthetic_spec made = {spec->input, spec->seed, spec->shortest, spec->longest};
    if (!sized.seq) sized.seq = default_seq(spec);
    EL_TRY(el_synthetic_make(&made, &train, &test));
    enum el_status status = read_texts(&sized, &train, &test, set);
    free(train.bytes);
    free(test.bytes);
    return status;
}

/* A number below `bound` from 32 random bits, without division. */
static int32_t below(uint32_t bits, int64_t bound)
{
    return (int32_t)((uint64_t)bits * (uint64_t)bound >> 32);
}

/* Random ids and labels in memory, so that neither disk nor parser is a bottleneck. 16,384 samples: one step of 256 on
 * each of 64 devices. */
static enum el_status open_dummy(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    const struct el_rng_key ids = {.seed = spec->seed, .use = EL_RNG_DATA, .id = 0};
    const struct el_rng_key labels = {.seed = spec->seed, .use = EL_RNG_DATA, .id = 1};
    struct el_samples samples = {0};
    const int64_t seq = set->info.seq = spec->seq ? spec->seq : default_seq(spec);
    const int64_t longest = spec->longest ? spec->longest : seq, shortest = spec->longest ? spec->shortest : seq;
    set->info.vocab = spec->vocab ? spec->vocab : DUMMY_VOCAB;
    set->info.classes = spec->classes ? spec->classes : DUMMY_CLASSES;
    set->words = set->info.vocab - EL_ID_FIRST_WORD;
    EL_TRY(el_samples_alloc(DUMMY_SAMPLES, DUMMY_SAMPLES * longest, &samples));
    samples.longest = longest;
    uint32_t bits[WORDS_A_DRAW];
    for (int64_t i = 0; i < DUMMY_SAMPLES; i++) {
        el_rng_draw4(&labels, (uint64_t)i, 0, bits);
        samples.labels[i] = below(bits[0], set->info.classes);
        samples.starts[i + 1] = samples.starts[i] + shortest + below(bits[1], longest - shortest + 1);
    }
    for (int64_t t = 0; t < samples.starts[DUMMY_SAMPLES]; t++) {
        if (t % WORDS_A_DRAW == 0) el_rng_draw4(&ids, (uint64_t)t, 0, bits);
        samples.tokens[t] = EL_ID_FIRST_WORD + below(bits[t % WORDS_A_DRAW], set->info.vocab - EL_ID_FIRST_WORD);
    }
    set->train = samples;
    return EL_OK;
}

static enum el_status open_sentences(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    if (is_named(spec, "dummy")) return open_dummy(spec, set);
    return is_named(spec, "synthetic") ? open_synthetic(spec, set) : open_files(spec, set);
}

static enum el_status open_stream(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    struct el_dataset_spec sized = *spec;
    struct el_stream stream = {.vocab = 0};
    if (!sized.seq) sized.seq = DEFAULT_SEQ;
    if (spec->in_files)
        return el_fail(EL_ERR_INVALID, "--data-in disk: a stream of tokens is read into memory: give --data-in memory");
    enum el_status status = el_stream_open(&sized, &stream);
    set->train = stream.train, set->test = stream.test;
    set->info.stream = true;
    set->info.seq = sized.seq;
    set->info.vocab = set->info.classes = set->words = stream.vocab;
    return status;
}

static enum el_status open_images(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    struct el_images images = {0};
    enum el_status status = el_images_open(spec, &images);
    set->train = images.train, set->test = images.test;
    set->info.image = images.image, set->info.classes = images.classes;
    return status;
}

static enum el_status describe(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    char held_out[64] = "", test[64] = "", what[96], unspaced[96] = "";
    long long apart = el_dataset_size(set, EL_SPLIT_HELD_OUT);
    if (apart) snprintf(held_out, sizeof held_out, ", %lld of them held out", apart);
    if (set->test.count) snprintf(test, sizeof test, "; test: %lld samples", (long long)set->test.count);
    if (set->info.image)
        snprintf(what, sizeof what, "images of %lld x %lld", (long long)set->info.image, (long long)set->info.image);
    else if (set->info.stream)
        snprintf(what, sizeof what, "sequences of %lld tokens", (long long)set->info.seq);
    else
        snprintf(what, sizeof what, "%lld words, longest %lld", (long long)set->words, (long long)set->train.longest);
    if (set->info.characters)
        snprintf(unspaced, sizeof unspaced, " (few spaces: each Chinese or kana character is a word)");
    else if (set->info.unspaced)
        snprintf(unspaced, sizeof unspaced,
                 set->info.unspaced == 1 ? " (1 sentence without spaces is one word: segment it)"
                                         : " (%lld sentences without spaces are one word each: segment them)",
                 (long long)set->info.unspaced);
    char *description;
    int written = asprintf(&description, "%s: %lld samples, %lld classes, %s%s%s%s", spec->source,
                           (long long)set->train.count, (long long)set->info.classes, what, unspaced, held_out, test);
    set->info.source = strdup(spec->source);
    set->info.description = written < 0 ? NULL : description;
    return set->info.source && set->info.description ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for a data set");
}

enum el_status el_dataset_open(const struct el_dataset_spec *spec, struct el_dataset **dataset_p)
{
    EL_TRY(check_spec(spec));
    struct el_dataset *set = calloc(1, sizeof *set);
    if (!set) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a data set");
    if (spec->held_out > 0) set->every = spec->held_out < 1e-9 ? 0 : llround(1 / spec->held_out);
    enum el_status status = spec->input == EL_INPUT_IMAGES   ? open_images(spec, set)
                            : spec->input == EL_INPUT_TOKENS ? open_stream(spec, set)
                                                             : open_sentences(spec, set);
    if (status == EL_OK) status = describe(spec, set);
    if (status == EL_OK)
        *dataset_p = set;
    else
        el_dataset_close(set);
    return status;
}

void el_dataset_close(struct el_dataset *dataset)
{
    if (!dataset) return;
    el_samples_free(&dataset->train);
    el_samples_free(&dataset->test);
    el_vocabulary_free(&dataset->vocabulary);
    free(dataset->words_text);
    free(dataset->info.source);
    free(dataset->info.description);
    free(dataset);
}

int64_t el_dataset_size(const struct el_dataset *dataset, enum el_data_split split)
{
    int64_t held_out = dataset->every ? dataset->train.count / dataset->every : 0;
    if (split == EL_SPLIT_TEST) return dataset->test.count;
    return split == EL_SPLIT_HELD_OUT ? held_out : dataset->train.count - held_out;
}

static int64_t place_of(const struct el_dataset *dataset, enum el_data_split split, int64_t position)
{
    if (split == EL_SPLIT_HELD_OUT) return position * dataset->every + dataset->every - 1;
    return split == EL_SPLIT_TRAIN && dataset->every ? position + position / (dataset->every - 1) : position;
}

static const struct el_samples *samples_of(const struct el_dataset *dataset, enum el_data_split split)
{
    return split == EL_SPLIT_TEST ? &dataset->test : &dataset->train;
}

static struct el_sample sample_at(const struct el_dataset *dataset, const struct el_samples *samples, int64_t at)
{
    if (samples->stored && !samples->starts) return (struct el_sample){.label = samples->labels[at]};
    if (samples->pixels)
        return (struct el_sample){.pixels = samples->pixels + samples->starts[at], .label = samples->labels[at]};
    int64_t length = samples->starts[at + 1] - samples->starts[at];
    return (struct el_sample){.tokens = samples->stored ? NULL : samples->tokens + samples->starts[at],
                              .length = length < dataset->info.seq ? length : dataset->info.seq,
                              .label = samples->labels[at]};
}

static enum el_status read_at(const struct el_dataset *dataset, const struct el_samples *samples, int64_t at,
                              struct el_reader *reader, struct el_sample *sample_p)
{
    const struct el_words words = {&dataset->vocabulary, dataset->info.vocab, dataset->info.seq};
    *sample_p = sample_at(dataset, samples, at);
    if (!samples->stored) return EL_OK;
    sample_p->tokens = reader->tokens;
    sample_p->pixels = reader->pixels;
    if (dataset->info.image) return el_stored_image(samples->stored, at, dataset->info.image, reader);
    return el_stored_line(samples->stored, at, &words, reader, &sample_p->length);
}

enum el_status el_dataset_read(const struct el_dataset *dataset, enum el_data_split split, int64_t position,
                               struct el_reader *reader, struct el_sample *sample_p)
{
    return read_at(dataset, samples_of(dataset, split), place_of(dataset, split, position), reader, sample_p);
}

struct el_sample el_dataset_sample(const struct el_dataset *dataset, enum el_data_split split, int64_t position)
{
    return sample_at(dataset, samples_of(dataset, split), place_of(dataset, split, position));
}

enum el_status el_dataset_hash(const struct el_dataset *dataset, uint64_t *hash_p)
{
    const struct el_samples *samples = &dataset->train;
    const int64_t most = dataset->info.image ? HASHED_IMAGES : HASHED_SENTENCES;
    const int64_t n = samples->count < most ? samples->count : most;
    const size_t image_bytes = (size_t)el_image_bytes(dataset->info.image);
    const struct el_loading loading = {.workers = 0};
    struct el_load_times times = {.batches = 0};
    struct el_reader reader;
    enum el_status status = el_reader_open(dataset, &loading, &reader);
    reader.times = &times;
    uint64_t hash = el_hash(EL_HASH_BEGIN, &samples->count, sizeof samples->count);
    for (int64_t i = 0; i < n && status == EL_OK; i++) {
        struct el_sample sample;
        status = read_at(dataset, samples, i * (samples->count / n), &reader, &sample);
        if (status != EL_OK) break;
        hash = el_hash(hash, &sample.label, sizeof sample.label);
        hash = dataset->info.image ? el_hash_blocks(hash, sample.pixels, image_bytes)
                                   : el_hash_blocks(hash, sample.tokens, (size_t)sample.length * sizeof *sample.tokens);
    }
    el_reader_close(&reader);
    if (status == EL_OK) *hash_p = hash;
    return status;
}

const struct el_dataset_info *el_dataset_info(const struct el_dataset *dataset)
{
    return &dataset->info;
}
