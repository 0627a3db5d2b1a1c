/* Shared within runtime/data: samples in memory, readers, vocabulary, permutation. */
#pragma once

#include "runtime/base/files.h"
#include "runtime/data/codec/codec.h"
#include "runtime/data/data.h"

enum { EL_ID_PADDING = 0, EL_ID_UNKNOWN = 1, EL_ID_FIRST_WORD = 2, EL_LABEL_MAX = 9999 };

/* Sentences: sample i is tokens[starts[i] .. starts[i + 1] - 1], on line i + 1 of a text file. Images: sample i is side
 * * side * EL_COLOURS bytes from pixels[starts[i]] on. In files (stored.h): labels only, and `starts` of sentences. */
struct el_stored;
struct el_samples {
    int64_t count;
    int64_t longest;
    int32_t *labels;          /* [count] */
    int64_t *starts;          /* [count + 1] */
    int32_t *tokens;          /* [starts[count]]; NULL: images */
    uint8_t *pixels;          /* NULL: sentences */
    struct el_stored *stored; /* NULL: in memory */
};

enum el_status el_samples_alloc(int64_t count, int64_t tokens, struct el_samples *samples_p);
/* starts[i]: images of that side in order; `pixels` bytes in total. Errors: EL_ERR_INVALID beyond 4 GiB, which every
 * process would hold. */
enum el_status el_images_alloc(int64_t count, int64_t side, int64_t pixels, struct el_samples *samples_p);
void el_samples_free(struct el_samples *samples);

/* Words and their ids, from EL_ID_FIRST_WORD in the order of first appearance. Words are not copied: their text must
 * outlive it. Zeroed: empty. */
struct el_word {
    const char *text;
    uint32_t length;
    int32_t id;
    uint64_t hash;
};
struct el_vocabulary {
    struct el_word *places; /* open addressing, linear probing, a power of two, at most half full */
    size_t capacity;
    int32_t count;
    bool characters; /* each character of a script without spaces (Chinese, kana) is a word */
};

/* The word's id; adds it if needed. */
enum el_status el_vocabulary_add(struct el_vocabulary *vocabulary, const char *word, size_t length, int32_t *id_p);
int32_t el_vocabulary_find(const struct el_vocabulary *vocabulary, const char *word, size_t length);
/* Copies the words to *text_p, so that the text may be freed. Ownership: free(*text_p) after the vocabulary. */
enum el_status el_vocabulary_keep(struct el_vocabulary *vocabulary, char **text_p);
void el_vocabulary_free(struct el_vocabulary *vocabulary);

/* A whole file in memory, with a zero byte after it. Ownership: free(bytes). */
struct el_text {
    char *bytes;
    size_t length;
};
/* Errors: no regular file, or larger than 2 GiB. */
enum el_status el_bytes_load(const char *path, struct el_text *text_p);
/* The same, checked to be text, without trailing blanks. */
enum el_status el_text_load(const char *path, struct el_text *text_p);
/* The synthetic set's two files, in memory. Ownership: free(bytes). */
enum el_status el_synthetic_make(const struct el_synthetic_spec *spec, struct el_text *train_p, struct el_text *test_p);
enum el_status el_text_parse(const char *path, const struct el_text *text, struct el_vocabulary *vocabulary, bool grow,
                             struct el_samples *samples_p);
/* Number of sentences that are one word in a script without spaces (unsegmented Chinese), and of lines. */
int64_t el_text_unspaced(const struct el_text *text, int64_t *lines_p);
/* Ids of a valid line's sentence, at most `most`; ids from `vocab` on are unknown. Returns their number. */
int64_t el_text_ids(const char *line, size_t length, const struct el_vocabulary *vocabulary, int64_t vocab,
                    int64_t most, int32_t *ids);

/* A stream of tokens cut into samples of spec->seq > 0. Free its samples after a failure too. */
struct el_stream {
    struct el_samples train, test;
    int64_t vocab;
};
enum el_status el_stream_open(const struct el_dataset_spec *spec, struct el_stream *stream);
/* The synthetic text; file 1 is the test. Ownership: free(*bytes_p). */
enum el_status el_stream_compose(uint64_t seed, uint32_t file, char **bytes_p, size_t *length_p);

enum { EL_COLOURS = 3 };
struct el_images {
    struct el_samples train, test;
    int64_t image, classes;
};
static inline int64_t el_image_bytes(int64_t side)
{
    return side * side * EL_COLOURS;
}
/* CIFAR-10's binary format: a label, then planes of red, green and blue, rows from the top. */
enum {
    EL_CIFAR_SIDE = 32,
    EL_CIFAR_CLASSES = 10,
    EL_CIFAR_RECORD_BYTES = 1 + EL_CIFAR_SIDE * EL_CIFAR_SIDE * EL_COLOURS
};
struct el_cifar_file {
    const char *path;
    struct el_text text;
};
/* Labels must be below `classes`, or `folded`: are taken modulo it. */
struct el_cifar_labels {
    int64_t classes;
    bool folded;
};
enum el_status el_cifar_pixels(const uint8_t *record, int64_t side, uint8_t *pixels);
/* `side` 0: labels only. */
enum el_status el_cifar_parse(const struct el_cifar_file *files, int n, const struct el_cifar_labels *labels,
                              int64_t side, struct el_samples *samples_p);
bool el_cifar_is_folder(const char *path);
enum el_status el_cifar_open(const struct el_dataset_spec *spec, struct el_images *set);
/* A file of synthetic images. Ownership: free(*bytes_p). */
enum el_status el_shapes_compose(uint64_t seed, uint32_t file, int samples, char **bytes_p, size_t *length_p);

/* Any image file; `name`: for messages. Ownership: free(bitmap_p->rgb). */
enum el_status el_bitmap_decode(const char *name, const uint8_t *bytes, size_t length, struct el_bitmap *bitmap_p);
/* rgb: [height, width, 3] -> pixels: [side, side, 3]: scaled by the short side, middle cropped. */
enum el_status el_image_fit(const uint8_t *rgb, int width, int height, int64_t side, uint8_t *pixels);

/* Opens the spec's source. The openers below need set->image and spec->classes, and add samples; free the set's samples
 * after a failure too. */
enum el_status el_images_open(const struct el_dataset_spec *spec, struct el_images *set);
/* DIR/CLASS/..., or DIR/train/CLASS/... with DIR/val or DIR/test. */
enum el_status el_image_folder_open(const struct el_dataset_spec *spec, struct el_images *set);

struct el_tones {
    float f32[EL_COLOURS][256];
    double f64[EL_COLOURS][256];
};
void el_tones_make(struct el_tones *tones);
/* row: [side, side, 3] of f32 or f64. */
void el_tones_row(const struct el_tones *tones, const uint8_t *pixels, int64_t side, enum el_dtype dtype, void *row);

/* order[0 .. length - 1]: a permutation, a pure function of (length, seed, epoch). */
void el_permute(int64_t length, uint64_t seed, int64_t epoch, int64_t *order);

/* Sorts the first steps * global_batch of an epoch's `order` by length, cuts batches and shuffles them. A pure function
 * of (spec->seed, epoch, order); `scratch` has el_sorting_bytes. */
size_t el_sorting_bytes(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps);
void el_sort_batches(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps, int64_t epoch,
                     int64_t *scratch, int64_t *order);

/* A sample of a split, cut to the set's `seq`. Ownership: the set's. */
struct el_sample {
    const int32_t *tokens;
    int64_t length;
    const uint8_t *pixels;
    int32_t label;
};
/* For a set in files: only the label, and a sentence's length. */
struct el_sample el_dataset_sample(const struct el_dataset *dataset, enum el_data_split split, int64_t position);

/* A sentence's bag of words, hashed into row[features] of f32 or f64, scaled to unit L2 norm. `bins` [length]: scratch;
 * `counts` [features]: zeros before and after. */
void el_features_row(const int32_t *tokens, int64_t length, int64_t features, int32_t *bins, int32_t *counts,
                     enum el_dtype dtype, void *row);
