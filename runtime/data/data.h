/* Data: a labelled set, who gets which sample of a step, and the batches.
 *
 *     el_dataset_open(&spec, &set);                       file(s), the synthetic set, or dummy batches
 *     el_loader_open(set, &share, &loader);               one member's (or the whole) part of every global batch
 *     el_loader_fill(loader, step, inputs, labels);       rows of that step: a pure function of (seed, step)
 *
 * A text file has one `label sentence` a line: label a non-negative integer below 10,000, a blank, then tokens
 * separated by blanks. Words are numbered by first appearance in the training file from 2 up (0 is padding, 1 the
 * unknown word), at most `vocab` of them; a sentence longer than `seq` is cut, a shorter one padded with 0. Where
 * `vocab` or `seq` is 0 the set's own is taken (seq: the longest training sentence). The test file uses the training
 * file's words; others are unknown. Models over features see a sentence as its bag of words, hashed into `features`
 * bins and scaled to unit L2 norm.
 * The synthetic set has six classes; where fewer are asked for, labels are taken modulo their number.
 *
 * Models that say the next token (EL_INPUT_TOKENS) get any file by its bytes, or by byte pairs: samples of `seq` in a
 * row, and as labels [seq] those that follow each. The synthetic text is made-up English; dummy tokens are random.
 *
 * Models over images get [image, image, 3] for each, rows from the top, red, green and blue side by side (NHWC): a byte
 * x becomes (x / 255 - mean) / deviation of its colour, with torchvision's means (0.485, 0.456, 0.406) and deviations
 * (0.229, 0.224, 0.225). They come from files in CIFAR-10's binary format (or a folder that has data_batch_*.bin and
 * test_batch.bin), or from a folder with a folder of PNG, JPEG, PPM and PGM files for each class, or one such for
 * training and one for test (train, val or test); classes are numbered in the order of their names. An image of another
 * size is scaled until its short side is `image` and cut in the middle. Synthetic images have ten classes and are
 * CIFAR-10's files; dummy ones are noise. Augmented, a training image is moved by up to an eighth of its side, with
 * black where nothing is left, and mirrored or not: a function of (seed, epoch, sample).
 *
 * Where samples are: in memory, read and decoded when the set is opened; or in their files (`in_files`), of which only
 * labels, words and places are kept: then each batch reads and decodes its own. The numbers are the same. A loader may
 * have workers (struct el_loading), which make batches ahead of their step; what a batch holds does not depend on them.
 *
 * Threads: a set may be used by several once open, and is the same for all; a loader belongs to one thread at a time. A
 * set outlives its loaders, which share what is made of it.
 * Errors: EL_ERR_INVALID with file, line and reason for malformed input; EL_ERR_IO where a file cannot be read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "runtime/base/status.h"

/* What a model takes: ids[seq] int32; tokens[seq] int32, whose labels are the next ones [seq]; features[features] or an
 * image [image, image, 3] in the float type. */
enum el_input_kind { EL_INPUT_IDS, EL_INPUT_FEATURES, EL_INPUT_IMAGES, EL_INPUT_TOKENS };

struct el_dataset_spec {
    const char *source;       /* a path, "synthetic" or "dummy" */
    const char *test_path;    /* NULL: none; the synthetic set has its own */
    enum el_input_kind input; /* EL_INPUT_IMAGES; else sentences */
    int64_t image;            /* side of an image; 0: the set's own: 32 (CIFAR-10, synthetic) or 224 */
    int64_t vocab;            /* 0: the set's own */
    int64_t seq;              /* 0: the set's own; dummy and synthetic: 64 */
    int64_t seq_min;          /* the set's own is at least this: shorter sentences are padded */
    /* Made-up sentences (dummy, synthetic) have from `shortest` to `longest` words, all numbers equally often; 0: as
     * usual, `seq` words of dummy ones and 8 to 40 of synthetic ones. */
    int64_t shortest, longest;
    int64_t classes; /* 0: the set's own (highest label + 1; images: all classes; dummy ones: 1000) */
    uint64_t seed;   /* for synthetic and dummy */
    /* Share of the training samples set apart for choosing an epoch, 0 to 0.5; by position: every k-th. */
    double held_out;
    /* Optional: called after each image that was read into memory. */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;
    bool in_files; /* samples stay in their files; not of synthetic and dummy sets, which have none */
    bool heads;    /* so do images in a folder: only how many there are, and of which class, is of interest */
};

/* Which samples: training, held-out part of training, test. */
enum el_data_split { EL_SPLIT_TRAIN, EL_SPLIT_HELD_OUT, EL_SPLIT_TEST };

struct el_dataset;

enum el_status el_dataset_open(const struct el_dataset_spec *spec, struct el_dataset **dataset_p);
void el_dataset_close(struct el_dataset *dataset); /* NULL is legal */

int64_t el_dataset_size(const struct el_dataset *dataset, enum el_data_split split);
/* What its training samples are known by, wherever they are and whatever is held out: their number, and labels and
 * content of at most 16,384 sentences or 64 images, evenly spaced. Errors: a file that cannot be read any more. */
enum el_status el_dataset_hash(const struct el_dataset *dataset, uint64_t *hash_p);
/* What was found when it was opened. Ownership: the set's. */
struct el_dataset_info {
    char *source;
    char *description; /* "trec/train.txt: 5452 samples, 6 classes, 8700 words, longest 37" */
    int64_t vocab;     /* ids are below this (padding and unknown counted) */
    int64_t seq;       /* ids a sample */
    int64_t image;     /* side of its images; 0: it has sentences */
    int64_t classes;   /* labels are below this */
    int64_t unspaced;  /* training sentences of one word in a script without spaces (Chinese, kana) */
    bool stream;       /* it has tokens: samples are `seq` of them, with a label each */
    bool characters;   /* they are most: each such character is a word */
};
const struct el_dataset_info *el_dataset_info(const struct el_dataset *dataset);
/* What the synthetic set is made by: as in struct el_dataset_spec. */
struct el_synthetic_spec {
    enum el_input_kind input;
    uint64_t seed;
    int64_t shortest, longest;
};
/* Writes the synthetic set's files into `dir`, in the text format or in CIFAR-10's, where they are not there yet, for
 * whoever wants to read them; gives their paths. el_dataset_open needs none of it. */
enum el_status el_synthetic_write(const char *dir, const struct el_synthetic_spec *spec, char *train_path,
                                  char *test_path, size_t path_bytes);

/* Their paths in `dir`, whether they are there or not. Errors: EL_ERR_INVALID: too long. */
enum el_status el_synthetic_paths(const char *dir, const struct el_synthetic_spec *spec, char *train_path,
                                  char *test_path, size_t path_bytes);

/* Whether what is read of `path`, a file or a folder of files, can be dropped from the page cache: tried on one of
 * them. Writes what its file system has not written yet. Errors: EL_ERR_ABSENT with the reason; EL_ERR_IO. */
enum el_status el_page_cache_drops(const char *path);

/* How batches come to be. All 0: the step makes its batch itself, when it needs it. */
enum { EL_WORKERS_MAX = 64, EL_PREFETCH_MAX = 64, EL_PREFETCH_DEFAULT = 2 };
/* The copy of a batch to a GPU: on the compute stream, and the host goes on at once (PyTorch's non_blocking) or when it
 * is done; or a step ahead: the next batch is made and copied on a stream of its own while the device computes. */
enum el_transfer { EL_TRANSFER_NON_BLOCKING, EL_TRANSFER_BLOCKING, EL_TRANSFER_AHEAD };
struct el_loading {
    int workers;   /* of each loader; worker w makes batches w, w + workers, ...; they are taken in order */
    int prefetch;  /* batches that each worker keeps ready or in work; 0: EL_PREFETCH_DEFAULT, as in PyTorch */
    bool pageable; /* of GPUs: the batch lies in pageable memory of the host's, not in pinned one */
    enum el_transfer transfer;
    bool cold;       /* what is to be read is dropped from the page cache before */
    double disk_ms;  /* injected: each read takes so much longer */
    int64_t dies_at; /* injected: the worker that is to make this batch ends without a word; negative or 0: none */
};

/* Weights of the parts of a batch: how many samples one gets beside the others. */
enum { EL_SHARES_MAX = 64, EL_SHARE_WEIGHT_MAX = 1000000 };
struct el_shares {
    int n; /* 0: all alike */
    int weight[EL_SHARES_MAX];
};

/* Samples first, first + stride, ... of a batch. */
struct el_batch_part {
    int64_t first, stride, samples;
};

/* A member's part of each global batch, as el_batch_part deals it out. With ranks = 1 the whole batch. */
struct el_loader_spec {
    enum el_data_split split;
    int64_t global_batch;
    int ranks;
    int rank;
    struct el_shares shares;
    bool shuffle; /* training: yes; evaluation: no */
    bool pad;     /* evaluation: as DistributedSampler pads a set: by its first samples, to a multiple of `ranks` */
    uint64_t seed;
    enum el_input_kind input;
    /* EL_INPUT_IDS: rows of a batch are as long as the longest sentence among them, and at least `least` words; 0: all
     * have the set's `seq`. */
    int64_t least;
    /* Shuffled: sentences of an epoch are sorted by length, cut into global batches, and these are shuffled. The
     * epoch has the same samples as without it. */
    bool bucket;
    int64_t features;    /* EL_INPUT_FEATURES: bins a sample */
    int64_t image;       /* EL_INPUT_IMAGES: side of an image, which must be the set's */
    enum el_dtype dtype; /* of features and images */
    struct el_loading loading;
};

struct el_loader;

/* What batches cost, summed over `batches`. Who makes them: reads files, decodes bytes to pixels or words to ids, puts
 * rows together. Who trains: waits for a worker, copies its batch out; 0 without workers, where it makes them itself.
 */
struct el_load_times {
    int64_t batches, samples, reads, read_bytes;
    int64_t read_ns, decode_ns, collate_ns;
    int64_t wait_ns, take_ns;
    /* EL_INPUT_IDS: words of its sentences, places in its rows (words and padding), and the longest row; else 0. */
    int64_t words, places, longest;
};
/* When a batch was made, and when training asked for it and had it; on el_clock_ns. */
struct el_load_span {
    uint64_t step;
    int worker;     /* -1: training itself */
    int64_t length; /* EL_INPUT_IDS: words a row, with padding; else 0 */
    int64_t begin_ns, end_ns, asked_ns, got_ns;
};
enum { EL_LOAD_SPANS = 256 };
struct el_load_account {
    struct el_load_times times;
    struct el_load_span spans[EL_LOAD_SPANS]; /* of the last batches, oldest first */
    int n_spans;
    int64_t queue_bytes; /* batches that workers keep ahead; 0: there are none */
};

enum el_status el_loader_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                              struct el_loader **loader_p);
void el_loader_close(struct el_loader *loader); /* NULL is legal */

/* Global position i belongs to rank i % ranks: shares differ by at most one. */
int64_t el_share_size(int64_t global_batch, int ranks, int rank);
/* Part `part` of `parts`. All alike: as above, every parts-th sample. By weights: neighbouring samples, as many as the
 * weight says by largest remainder (the first of equal ones); with more parts than weights the batch is first cut into
 * parts / weights pieces that are alike, and part p is that of weight p % weights in piece p / weights. */
struct el_batch_part el_batch_part(const struct el_shares *shares, int64_t batch, int parts, int part);
/* Training: full global batches of an epoch (the rest of the epoch is dropped; the next shuffle takes others).
 * Evaluation: all samples (with `pad` and those that are repeated), the last batch filled up with label -1. */
int64_t el_loader_steps_per_epoch(const struct el_loader *loader);
/* Words a row of that step has, padding among them: known before the batch is made. */
int64_t el_loader_length(struct el_loader *loader, uint64_t step);
/* inputs: [share, el_loader_length] int32, or [share, features] or [share, image, image, 3] of dtype; labels: [share]
 * int32, or [share, seq] of tokens. `step` counts from 0 over epochs: epoch = step / steps_per_epoch. The first call of
 * an epoch permutes. With workers, steps asked for one after another were made ahead; another step starts them anew.
 * Errors: what a worker failed with, at its batch; EL_ERR_IO: a worker ended without a word. */
enum el_status el_loader_fill(struct el_loader *loader, uint64_t step, void *inputs, int32_t *labels);
/* Since it was opened, or since the last reset. */
void el_loader_account(const struct el_loader *loader, struct el_load_account *account_p);
void el_loader_reset(struct el_loader *loader);
/* Adds up all but the spans. */
void el_load_account_add(const struct el_load_account *more, struct el_load_account *account);
