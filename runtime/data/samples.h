/* What the files of this folder share: a set of samples in memory, the readers, the vocabulary, the permutation.
 *
 * Private to runtime/data: users see data.h only. Nothing here knows of batches or ranks.
 */
#pragma once

#include "runtime/base/files.h"
#include "runtime/data/codec/codec.h"
#include "runtime/data/data.h"

enum { EL_ID_PADDING = 0, EL_ID_UNKNOWN = 1, EL_ID_FIRST_WORD = 2, EL_LABEL_MAX = 9999 };

/* Sentences of uneven length, one after the other: sample i is tokens[starts[i] .. starts[i + 1] - 1]; in a text file
 * it stands on line i + 1. Or images: sample i is the side * side * EL_COLOURS bytes from pixels[starts[i]] on. Or
 * either of them in files (stored.h): then there are labels only, and `starts` of sentences. */
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
/* starts[i] are those of images of that side one after the other; `pixels` bytes in all. Errors: EL_ERR_INVALID
 * beyond 4 GiB, which every process would hold. */
enum el_status el_images_alloc(int64_t count, int64_t side, int64_t pixels, struct el_samples *samples_p);
void el_samples_free(struct el_samples *samples);

/* Words and their numbers, from EL_ID_FIRST_WORD up in the order of their first appearance. The words are not copied:
 * the text they point into must stay. All zero is an empty vocabulary. */
struct el_word {
    const char *text; /* NULL: a free place */
    uint32_t length;
    int32_t id;
    uint64_t hash;
};
struct el_vocabulary {
    struct el_word *places; /* open addressing, linear probing, a power of two, at most half full */
    size_t capacity;
    int32_t count;
    bool characters; /* the reader takes each character of a script without spaces (Chinese, kana) for a word */
};

/* The word's number, a new one if it was not there. */
enum el_status el_vocabulary_add(struct el_vocabulary *vocabulary, const char *word, size_t length, int32_t *id_p);
/* EL_ID_UNKNOWN if it is not there. */
int32_t el_vocabulary_find(const struct el_vocabulary *vocabulary, const char *word, size_t length);
/* Copies the words into memory of its own, *text_p, so that the text may go. Ownership: free(*text_p), after it. */
enum el_status el_vocabulary_keep(struct el_vocabulary *vocabulary, char **text_p);
void el_vocabulary_free(struct el_vocabulary *vocabulary);

/* A whole file in memory, with a zero byte behind it. Ownership: free(bytes). */
struct el_text {
    char *bytes;
    size_t length;
};
/* Errors: no regular file, or larger than 2 GiB. */
enum el_status el_bytes_load(const char *path, struct el_text *text_p);
/* The same found to be text, without the blank space at its end. */
enum el_status el_text_load(const char *path, struct el_text *text_p);
/* The synthetic set's two files, in memory. Ownership: free(bytes). */
enum el_status el_synthetic_make(const struct el_synthetic_spec *spec, struct el_text *train_p, struct el_text *test_p);
/* `grow`: new words get numbers; otherwise they are unknown. `path` is for messages. */
enum el_status el_text_parse(const char *path, const struct el_text *text, struct el_vocabulary *vocabulary, bool grow,
                             struct el_samples *samples_p);
/* How many sentences are one word in a script without spaces, as unsegmented Chinese; of how many lines. */
int64_t el_text_unspaced(const struct el_text *text, int64_t *lines_p);
/* The ids of a line's sentence, at most `most`; those from `vocab` up are unknown. Its form has been checked. Returns
 * how many. */
int64_t el_text_ids(const char *line, size_t length, const struct el_vocabulary *vocabulary, int64_t vocab,
                    int64_t most, int32_t *ids);

/* A stream of tokens, cut into samples: spec->seq is known. After a failure too its samples are to be freed. */
struct el_stream {
    struct el_samples train, test;
    int64_t vocab;
};
enum el_status el_stream_open(const struct el_dataset_spec *spec, struct el_stream *stream);
/* The bytes of the synthetic text; file 1 is the test. Ownership: free(*bytes_p). */
enum el_status el_stream_compose(uint64_t seed, uint32_t file, char **bytes_p, size_t *length_p);

/* Images: what a set of them is made of. */
enum { EL_COLOURS = 3 };
struct el_images {
    struct el_samples train, test;
    int64_t image, classes;
};
static inline int64_t el_image_bytes(int64_t side)
{
    return side * side * EL_COLOURS;
}
/* CIFAR-10's binary format: records of a label and the planes of red, green and blue, rows from the top. */
enum {
    EL_CIFAR_SIDE = 32,
    EL_CIFAR_CLASSES = 10,
    EL_CIFAR_RECORD_BYTES = 1 + EL_CIFAR_SIDE * EL_CIFAR_SIDE * EL_COLOURS
};
/* A file of it, in memory. */
struct el_cifar_file {
    const char *path; /* for messages */
    struct el_text text;
};
/* Labels must be below `classes`; folded, they are taken modulo it. */
struct el_cifar_labels {
    int64_t classes;
    bool folded;
};
/* A record's image, of side `side`. */
enum el_status el_cifar_pixels(const uint8_t *record, int64_t side, uint8_t *pixels);
/* `side` 0: labels alone. */
enum el_status el_cifar_parse(const struct el_cifar_file *files, int n, const struct el_cifar_labels *labels,
                              int64_t side, struct el_samples *samples_p);
/* Whether the folder has files data_batch_*.bin. */
bool el_cifar_is_folder(const char *path);
/* A file, or a folder of the set's own layout, whose test_batch.bin is taken where no other test file is given. */
enum el_status el_cifar_open(const struct el_dataset_spec *spec, struct el_images *set);
/* The bytes of a file of so many synthetic images. Ownership: free(*bytes_p). */
enum el_status el_shapes_compose(uint64_t seed, uint32_t file, int samples, char **bytes_p, size_t *length_p);

/* Any file of an image; `name` is for messages. Ownership: free(bitmap_p->rgb). */
enum el_status el_bitmap_decode(const char *name, const uint8_t *bytes, size_t length, struct el_bitmap *bitmap_p);
/* rgb: [height, width, 3] -> pixels: [side, side, 3]: the short side scaled to fit, the middle kept. */
enum el_status el_image_fit(const uint8_t *rgb, int width, int height, int64_t side, uint8_t *pixels);

/* All below: set->image and spec->classes are known, what they read is theirs to add. By the spec's source; after a
 * failure too the set's samples are to be freed. */
enum el_status el_images_open(const struct el_dataset_spec *spec, struct el_images *set);
/* DIR/CLASS/..., or DIR/train/CLASS/... with DIR/val or DIR/test. */
enum el_status el_image_folder_open(const struct el_dataset_spec *spec, struct el_images *set);

/* What the bytes of a colour become. */
struct el_tones {
    float f32[EL_COLOURS][256];
    double f64[EL_COLOURS][256];
};
void el_tones_make(struct el_tones *tones);
/* row: [side, side, 3] of f32 or f64. */
void el_tones_row(const struct el_tones *tones, const uint8_t *pixels, int64_t side, enum el_dtype dtype, void *row);

/* order[0 .. length - 1] = a permutation of 0 .. length - 1: a pure function of (length, seed, epoch). */
void el_permute(int64_t length, uint64_t seed, int64_t epoch, int64_t *order);

/* The first steps * global_batch of an epoch's `order`: by length, in batches, these shuffled. A pure function of
 * (spec->seed, epoch, order); `scratch` has el_sorting_bytes. */
size_t el_sorting_bytes(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps);
void el_sort_batches(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps, int64_t epoch,
                     int64_t *scratch, int64_t *order);

/* One sample of a split, cut to the set's `seq`. Ownership: the set's. */
struct el_sample {
    const int32_t *tokens;
    int64_t length;
    const uint8_t *pixels; /* of an image: then it has no tokens */
    int32_t label;
};
/* Of a set in files: label and, of a sentence, length alone. */
struct el_sample el_dataset_sample(const struct el_dataset *dataset, enum el_data_split split, int64_t position);

/* A sentence's bag of words, hashed into row[features] of f32 or f64 and scaled to unit L2 norm. `bins` [length] is
 * scratch, `counts` [features] zeros before and after. */
void el_features_row(const int32_t *tokens, int64_t length, int64_t features, int32_t *bins, int32_t *counts,
                     enum el_dtype dtype, void *row);
