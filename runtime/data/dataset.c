/* The data set: where samples come from, how many words and classes there are, and which sample is in which split. It
 * knows nothing of batches, and leaves images to images.c. The held-out part is every k-th sample of the training
 * file (k = 1 / share, rounded). */
#include "runtime/data/stored.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DUMMY_VOCAB = 20000, DUMMY_CLASSES = 2, DEFAULT_SEQ = 64, SEQ_MAX = 1 << 20 };

struct el_dataset {
    char *source, *description;
    struct el_samples train, test; /* train: with the held-out part */
    int64_t vocab, seq, image, classes;
    int64_t words;    /* distinct ones in the training file */
    int64_t unspaced; /* training sentences of one word, in a script without spaces */
    bool characters;  /* they are most: each such character is a word */
    bool folded;      /* labels are taken modulo the number of classes */
    int64_t every;    /* each `every`-th training sample is held out; 0: none */
    struct el_bag_store *bags;
    struct el_vocabulary vocabulary; /* of samples in files; else of none */
    char *words_text;                /* which its words are in */
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
    if (spec->test_path && (is_named(spec, "synthetic") || is_named(spec, "dummy")))
        return el_fail(EL_ERR_INVALID, "a test file goes with a training file, not with '%s' data", spec->source);
    return EL_OK;
}

/* Labels must be below `classes`: sample i stands on line i + 1. */
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

/* The synthetic set has six classes; where fewer are asked for, several of its classes are one. */
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
    if (set->folded) fold_labels(&set->test, set->classes);
    EL_TRY(check_labels(path, &set->test, set->classes, "as in training, or as set by classes"));
    cap_words(&set->test, set->vocab);
    return EL_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Words are all that is kept of the texts; the vocabulary becomes the set's. */
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

/* `test`: without bytes where there is none. The vocabulary points into the training text. */
static enum el_status read_texts(const struct el_dataset_spec *spec, const struct el_text *train,
                                 const struct el_text *test, struct el_dataset *set)
{
    int64_t lines;
    set->unspaced = el_text_unspaced(train, &lines);
    set->characters = 2 * set->unspaced > lines;
    struct el_vocabulary vocabulary = {.characters = set->characters};
    enum el_status status;
    EL_TRY_GOTO(el_text_parse(spec->source, train, &vocabulary, true, &set->train), done);
    set->words = vocabulary.count;
    set->vocab = spec->vocab ? spec->vocab : vocabulary.count + EL_ID_FIRST_WORD;
    set->seq = spec->seq ? spec->seq : larger(set->train.longest, spec->seq_min);
    set->classes = spec->classes ? spec->classes : highest_label(&set->train) + 1;
    if (set->seq > SEQ_MAX) {
        status = el_fail(EL_ERR_INVALID, "%s: a sentence of %lld words; set seq to at most %d",
                         el_path_tail(spec->source), (long long)set->seq, SEQ_MAX);
        goto done;
    }
    set->folded = is_named(spec, "synthetic");
    if (set->folded) fold_labels(&set->train, set->classes);
    EL_TRY_GOTO(check_labels(spec->source, &set->train, set->classes, "as set by classes"), done);
    cap_words(&set->train, set->vocab);
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

static enum el_status open_synthetic(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    struct el_dataset_spec sized = *spec;
    struct el_text train = {0}, test = {0};
    if (!sized.seq) sized.seq = DEFAULT_SEQ;
    EL_TRY(el_synthetic_make(spec->input, spec->seed, &train, &test));
    enum el_status status = read_texts(&sized, &train, &test, set);
    free(train.bytes);
    free(test.bytes);
    return status;
}

static enum el_status open_dummy(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    set->vocab = spec->vocab ? spec->vocab : DUMMY_VOCAB;
    set->seq = spec->seq ? spec->seq : DEFAULT_SEQ;
    set->classes = spec->classes ? spec->classes : DUMMY_CLASSES;
    set->words = set->vocab - EL_ID_FIRST_WORD;
    return el_dummy_make(set->vocab, set->seq, set->classes, spec->seed, &set->train);
}

static enum el_status open_sentences(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    if (is_named(spec, "dummy")) return open_dummy(spec, set);
    return is_named(spec, "synthetic") ? open_synthetic(spec, set) : open_files(spec, set);
}

static enum el_status open_images(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    struct el_images images = {0};
    enum el_status status = el_images_open(spec, &images);
    set->train = images.train, set->test = images.test;
    set->image = images.image, set->classes = images.classes;
    return status;
}

static enum el_status describe(const struct el_dataset_spec *spec, struct el_dataset *set)
{
    char held_out[64] = "", test[64] = "", what[96], unspaced[96] = "";
    long long apart = el_dataset_size(set, EL_SPLIT_HELD_OUT);
    if (apart) snprintf(held_out, sizeof held_out, ", %lld of them held out", apart);
    if (set->test.count) snprintf(test, sizeof test, "; test: %lld samples", (long long)set->test.count);
    if (set->image)
        snprintf(what, sizeof what, "images of %lld x %lld", (long long)set->image, (long long)set->image);
    else
        snprintf(what, sizeof what, "%lld words, longest %lld", (long long)set->words, (long long)set->train.longest);
    if (set->characters)
        snprintf(unspaced, sizeof unspaced, " (few spaces: each Chinese or kana character is a word)");
    else if (set->unspaced)
        snprintf(unspaced, sizeof unspaced,
                 set->unspaced == 1 ? " (1 sentence without spaces is one word: segment it)"
                                    : " (%lld sentences without spaces are one word each: segment them)",
                 (long long)set->unspaced);
    set->source = strdup(spec->source);
    int written = asprintf(&set->description, "%s: %lld samples, %lld classes, %s%s%s%s", spec->source,
                           (long long)set->train.count, (long long)set->classes, what, unspaced, held_out, test);
    if (written < 0) set->description = NULL;
    return set->source && set->description ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for a data set");
}

enum el_status el_dataset_open(const struct el_dataset_spec *spec, struct el_dataset **dataset_p)
{
    EL_TRY(check_spec(spec));
    struct el_dataset *set = calloc(1, sizeof *set);
    if (set) set->bags = calloc(1, sizeof *set->bags);
    if (!set || !set->bags) {
        free(set);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for a data set");
    }
    pthread_mutex_init(&set->bags->lock, NULL);
    if (spec->held_out > 0) set->every = spec->held_out < 1e-9 ? 0 : llround(1 / spec->held_out);
    enum el_status status = spec->input == EL_INPUT_IMAGES ? open_images(spec, set) : open_sentences(spec, set);
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
    el_bag_store_clear(dataset->bags);
    pthread_mutex_destroy(&dataset->bags->lock);
    free(dataset->bags);
    el_samples_free(&dataset->train);
    el_samples_free(&dataset->test);
    el_vocabulary_free(&dataset->vocabulary);
    free(dataset->words_text);
    free(dataset->source);
    free(dataset->description);
    free(dataset);
}

int64_t el_dataset_size(const struct el_dataset *dataset, enum el_data_split split)
{
    int64_t held_out = dataset->every ? dataset->train.count / dataset->every : 0;
    if (split == EL_SPLIT_TEST) return dataset->test.count;
    return split == EL_SPLIT_HELD_OUT ? held_out : dataset->train.count - held_out;
}

/* Of each `every` samples in a row the last one is held out. */
static int64_t place_of(const struct el_dataset *dataset, enum el_data_split split, int64_t position)
{
    if (split == EL_SPLIT_HELD_OUT) return position * dataset->every + dataset->every - 1;
    return split == EL_SPLIT_TRAIN && dataset->every ? position + position / (dataset->every - 1) : position;
}

static const struct el_samples *samples_of(const struct el_dataset *dataset, enum el_data_split split)
{
    return split == EL_SPLIT_TEST ? &dataset->test : &dataset->train;
}

bool el_dataset_is_stored(const struct el_dataset *dataset)
{
    return dataset->train.stored != NULL;
}

enum el_status el_dataset_read(const struct el_dataset *dataset, enum el_data_split split, int64_t position,
                               struct el_reader *reader, struct el_sample *sample_p)
{
    const struct el_samples *samples = samples_of(dataset, split);
    const struct el_words words = {&dataset->vocabulary, dataset->vocab, dataset->seq};
    const int64_t at = place_of(dataset, split, position);
    *sample_p = el_dataset_sample(dataset, split, position);
    if (!samples->stored) return EL_OK;
    sample_p->tokens = reader->tokens;
    sample_p->pixels = reader->pixels;
    if (dataset->image) return el_stored_image(samples->stored, at, dataset->image, reader);
    return el_stored_line(samples->stored, at, &words, reader, &sample_p->length);
}

struct el_sample el_dataset_sample(const struct el_dataset *dataset, enum el_data_split split, int64_t position)
{
    const struct el_samples *samples = samples_of(dataset, split);
    const int64_t at = place_of(dataset, split, position);
    if (samples->stored) return (struct el_sample){.label = samples->labels[at]};
    if (samples->pixels)
        return (struct el_sample){.pixels = samples->pixels + samples->starts[at], .label = samples->labels[at]};
    int64_t length = samples->starts[at + 1] - samples->starts[at];
    return (struct el_sample){.tokens = samples->tokens + samples->starts[at],
                              .length = length < dataset->seq ? length : dataset->seq,
                              .label = samples->labels[at]};
}

int64_t el_dataset_vocab(const struct el_dataset *dataset)
{
    return dataset->vocab;
}

int64_t el_dataset_unspaced(const struct el_dataset *dataset)
{
    return dataset->unspaced;
}

bool el_dataset_splits_characters(const struct el_dataset *dataset)
{
    return dataset->characters;
}

int64_t el_dataset_seq(const struct el_dataset *dataset)
{
    return dataset->seq;
}

int64_t el_dataset_image(const struct el_dataset *dataset)
{
    return dataset->image;
}

int64_t el_dataset_classes(const struct el_dataset *dataset)
{
    return dataset->classes;
}

struct el_bag_store *el_dataset_bag_store(const struct el_dataset *dataset)
{
    return dataset->bags;
}

const char *el_dataset_source(const struct el_dataset *dataset)
{
    return dataset->source;
}

const char *el_dataset_describe(const struct el_dataset *dataset)
{
    return dataset->description;
}
