/* Data: a labelled set, the samples of each step, and batches (formats: docs/data.md).
 *
 *     el_dataset_open(&spec, &set);                       file(s), the synthetic set, or dummy batches
 *     el_loader_open(set, &share, &loader);               one member's (or the whole) part of every global batch
 *     el_loader_fill(loader, step, inputs, labels);       rows of that step: a pure function of (seed, step)
 *
 * Text: lines of `label sentence`, labels below 10,000. Words are numbered from 2 in the order of first appearance in
 * the training file (0 is padding, 1 unknown), at most `vocab`; sentences are cut or padded to `seq` (0: the longest
 * training sentence). Features: a bag of words, hashed into `features` bins and scaled to unit L2 norm. The synthetic
 * set has six classes; for fewer, labels are taken modulo their number.
 * Streams (EL_INPUT_TOKENS): any file by bytes or byte pairs, as samples of `seq` tokens, labelled by the next ones.
 * Images: [image, image, 3] (NHWC), normalised by torchvision's means and deviations, scaled by the short side and
 * cropped. Synthetic images have ten classes in CIFAR-10's format; dummy ones are noise.
 * Samples are in memory, or in their files (`in_files`), where each batch decodes its own. Workers (struct el_loading)
 * make batches ahead. Neither changes a batch.
 * Threads: an open set may be shared; a loader belongs to one thread at a time. A set outlives its loaders. Errors:
 * EL_ERR_INVALID with file, line and reason for malformed input; EL_ERR_IO for an unreadable file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "runtime/base/status.h"

/* A model's input: ids[seq] int32; tokens[seq] int32 with labels [seq]; features[features] or an image [image, image,
 * 3] in the float type. */
enum el_input_kind { EL_INPUT_IDS, EL_INPUT_FEATURES, EL_INPUT_IMAGES, EL_INPUT_TOKENS };

struct el_dataset_spec {
    const char *source;    /* a path, "synthetic" or "dummy" */
    const char *test_path; /* NULL: none, or the synthetic set's own */
    enum el_input_kind input;
    int64_t image; /* image side; 0: the set's: 32 (CIFAR-10, synthetic) or 224 */
    int64_t vocab;
    int64_t seq;     /* 0: the set's; dummy and synthetic: 64 */
    int64_t seq_min; /* minimum of the set's seq: shorter sentences are padded */
    /* Words per made-up sentence (dummy, synthetic), uniform from `shortest` to `longest`; 0: `seq` for dummy ones and
     * 8 to 40 for synthetic ones. */
    int64_t shortest, longest;
    int64_t classes; /* 0: the set's (highest label + 1; images: all classes; dummy: 1000) */
    uint64_t seed;
    /* Share of training samples held out for choosing an epoch, 0 to 0.5: every k-th one. */
    double held_out;
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;
    bool in_files; /* leave samples in their files; not for synthetic and dummy sets */
    bool heads;    /* of an image folder read only the number and classes */
};

enum el_data_split { EL_SPLIT_TRAIN, EL_SPLIT_HELD_OUT, EL_SPLIT_TEST };

struct el_dataset;

enum el_status el_dataset_open(const struct el_dataset_spec *spec, struct el_dataset **dataset_p);
void el_dataset_close(struct el_dataset *dataset); /* NULL is legal */

int64_t el_dataset_size(const struct el_dataset *dataset, enum el_data_split split);
/* Identifies the training samples wherever they are stored and whatever is held out: their number, and labels and
 * content of at most 16,384 sentences or 64 images, evenly spaced. Errors: a file is unreadable. */
enum el_status el_dataset_hash(const struct el_dataset *dataset, uint64_t *hash_p);
/* Known after opening. Ownership: the set's. */
struct el_dataset_info {
    char *source;
    char *description; /* "trec/train.txt: 5452 samples, 6 classes, 8700 words, longest 37" */
    int64_t vocab;     /* ids are below this (padding and unknown count) */
    int64_t seq;       /* ids per sample */
    int64_t image;
    int64_t classes;  /* labels are below this */
    int64_t unspaced; /* training sentences of one word in a script without spaces (Chinese, kana) */
    bool stream;
    bool characters; /* most are unspaced: each such character is a word */
};
const struct el_dataset_info *el_dataset_info(const struct el_dataset *dataset);
struct el_synthetic_spec {
    enum el_input_kind input;
    uint64_t seed;
    int64_t shortest, longest;
};
/* Writes the synthetic set's files into `dir` unless they exist, as text or in CIFAR-10's format, and returns their
 * paths. el_dataset_open does not need them. */
enum el_status el_synthetic_write(const char *dir, const struct el_synthetic_spec *spec, char *train_path,
                                  char *test_path, size_t path_bytes);

/* Their paths in `dir`, existing or not. Errors: EL_ERR_INVALID: too long. */
enum el_status el_synthetic_paths(const char *dir, const struct el_synthetic_spec *spec, char *train_path,
                                  char *test_path, size_t path_bytes);

/* Tries whether a file of `path` (file or folder) can be dropped from the page cache; syncs its file system. Errors:
 * EL_ERR_ABSENT with the reason; EL_ERR_IO. */
enum el_status el_page_cache_drops(const char *path);

/* How batches are made. All 0: the step makes its own batch. */
enum { EL_WORKERS_MAX = 64, EL_PREFETCH_MAX = 64, EL_PREFETCH_DEFAULT = 2 };
/* The copy to a GPU: on the compute stream, without waiting (PyTorch's non_blocking) or waiting; or a step ahead, on a
 * stream of its own. */
enum el_transfer { EL_TRANSFER_NON_BLOCKING, EL_TRANSFER_BLOCKING, EL_TRANSFER_AHEAD };
struct el_loading {
    int workers;   /* per loader; worker w makes batches w, w + workers, ...; they are taken in order */
    int prefetch;  /* batches per worker, ready or in work; 0: EL_PREFETCH_DEFAULT, PyTorch's */
    bool pageable; /* for GPUs: batches in pageable instead of pinned memory */
    enum el_transfer transfer;
    bool cold;       /* drop data from the page cache before reading */
    double disk_ms;  /* injected: extra time per read */
    int64_t dies_at; /* injected: the worker of this batch exits silently; <= 0: none */
};

/* Weights of a batch's parts, in proportion to samples. */
enum { EL_SHARES_MAX = 64, EL_SHARE_WEIGHT_MAX = 1000000 };
struct el_shares {
    int n;
    int weight[EL_SHARES_MAX];
};

/* Samples first, first + stride, ... of a batch. */
struct el_batch_part {
    int64_t first, stride, samples;
};

/* A member's part of each global batch (el_batch_part). */
struct el_loader_spec {
    enum el_data_split split;
    int64_t global_batch;
    int ranks;
    int rank;
    struct el_shares shares;
    bool shuffle; /* in training only */
    bool pad;     /* evaluation: pad as DistributedSampler does, by the first samples, to a multiple of `ranks` */
    uint64_t seed;
    enum el_input_kind input;
    /* EL_INPUT_IDS: pad rows to the batch's longest sentence, at least `least` words; 0: to the set's `seq`. */
    int64_t least;
    /* Sort an epoch's sentences by length, cut them into global batches and shuffle these. The epoch's samples stay the
     * same. */
    bool bucket;
    int64_t features;
    int64_t image;
    enum el_dtype dtype; /* of features and images */
    struct el_loading loading;
};

struct el_loader;

/* Sums over `batches`. Making: reading files, decoding, assembling rows. Training: waiting for a worker and copying its
 * batch; 0 without workers. */
struct el_load_times {
    int64_t batches, samples, reads, read_bytes;
    int64_t read_ns, decode_ns, collate_ns;
    int64_t wait_ns, take_ns;
    /* EL_INPUT_IDS: words, places in rows (with padding), the longest row; else 0. */
    int64_t words, places, longest;
};
struct el_load_length {
    uint64_t step;
    int64_t length; /* EL_INPUT_IDS: words per row, with padding; else 0 */
};
enum { EL_LOAD_LENGTHS = 256 };
struct el_load_account {
    struct el_load_times times;
    struct el_load_length lengths[EL_LOAD_LENGTHS]; /* of the last batches */
    int n_lengths;
    int64_t queue_bytes; /* memory of workers' batches; 0: no workers */
};

enum el_status el_loader_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                              struct el_loader **loader_p);
void el_loader_close(struct el_loader *loader); /* NULL is legal */

/* Global position i belongs to rank i % ranks. */
int64_t el_share_size(int64_t global_batch, int ranks, int rank);
/* Part `part` of `parts`. Equal: every parts-th sample. Weighted: adjacent samples, numbers by largest remainder (first
 * of equal ones); with more parts than weights the batch is first cut into parts / weights equal pieces, and part p has
 * weight p % weights in piece p / weights. */
struct el_batch_part el_batch_part(const struct el_shares *shares, int64_t batch, int parts, int part);
/* Training: full global batches of an epoch; the rest is dropped. Evaluation: all samples (with `pad` also repeated
 * ones), the last batch filled with label -1. */
int64_t el_loader_steps_per_epoch(const struct el_loader *loader);
/* Words per row of that step, with padding; known before the batch is made. */
int64_t el_loader_length(struct el_loader *loader, uint64_t step);
/* inputs: [share, el_loader_length] int32, or [share, features] or [share, image, image, 3] of dtype; labels: [share]
 * int32, or [share, seq] for tokens. `step` counts over epochs. With workers, consecutive steps are made ahead; any
 * other step restarts them. Errors: a worker's failure, at its batch; EL_ERR_IO: a worker exited silently. */
enum el_status el_loader_fill(struct el_loader *loader, uint64_t step, void *inputs, int32_t *labels);
void el_loader_account(const struct el_loader *loader, struct el_load_account *account_p);
void el_loader_reset(struct el_loader *loader);
void el_load_account_add(const struct el_load_account *more, struct el_load_account *account);
