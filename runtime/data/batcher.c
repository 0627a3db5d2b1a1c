/* Batches (batcher.h). Positions are distributed as by DistributedSampler, but over the unpadded set: training drops
 * the epoch's incomplete last batch, evaluation fills it with label -1, so that any number of ranks has one device's
 * batches. */
#include "runtime/data/batcher.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/rng.h"
#include "runtime/data/stored.h"

struct el_batcher {
    const struct el_dataset *dataset;
    struct el_loader_spec spec;
    int64_t size;
    int64_t n;                  /* places in an epoch: `size`, or more with padding */
    struct el_batch_part share; /* of each batch: a row per sample */
    int64_t steps;
    int64_t *order;      /* [size] the epoch's permutation; NULL: not shuffled */
    int64_t order_epoch; /* the epoch of `order`; -1: none yet */
    int64_t *sorting;    /* scratch to sort `order` by length; NULL: not sorted */
    size_t row_bytes;    /* of the longest input */
    int64_t n_labels;
    int64_t length;         /* EL_INPUT_IDS: words per row of the current batch */
    int32_t *bins, *counts; /* EL_INPUT_FEATURES: [seq], [features] zeros */
    struct el_tones tones;
    struct el_reader reader;
};

static enum el_status check_spec(const struct el_loader_spec *spec)
{
    if (spec->global_batch < 1)
        return el_fail(EL_ERR_INVALID, "loader: a batch of %lld samples", (long long)spec->global_batch);
    if (spec->ranks < 1 || spec->rank < 0 || spec->rank >= spec->ranks)
        return el_fail(EL_ERR_INVALID, "loader: rank %d of %d", spec->rank, spec->ranks);
    if (spec->input == EL_INPUT_IDS || spec->input == EL_INPUT_TOKENS) return EL_OK;
    if (spec->input == EL_INPUT_FEATURES && (spec->features < 1 || spec->features > INT32_MAX))
        return el_fail(EL_ERR_INVALID, "loader: %lld features", (long long)spec->features);
    if (spec->dtype != EL_F32 && spec->dtype != EL_F64)
        return el_fail(EL_ERR_INVALID, "loader: features and images are f32 or f64");
    return EL_OK;
}

/* The model's kind must match, else rows are read beyond their end. */
static enum el_status check_kind(const struct el_dataset *dataset, const struct el_loader_spec *spec)
{
    int64_t has = el_dataset_info(dataset)->image, wanted = spec->input == EL_INPUT_IMAGES ? spec->image : 0;
    if (el_dataset_info(dataset)->stream != (spec->input == EL_INPUT_TOKENS))
        return el_fail(EL_ERR_INVALID, "%s: a model of tokens takes a stream of them, and no other model does",
                       el_path_tail(el_dataset_info(dataset)->source));
    if (has == wanted) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: images of side %lld, not %lld (0: sentences)",
                   el_path_tail(el_dataset_info(dataset)->source), (long long)has, (long long)wanted);
}

static enum el_status check_size(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t size)
{
    static const char *const name[] = {"training", "held-out", "test"};
    const char *source = el_path_tail(el_dataset_info(dataset)->source);
    if (size == 0) return el_fail(EL_ERR_INVALID, "%s: no %s samples", source, name[spec->split]);
    if (spec->shuffle && size < spec->global_batch)
        return el_fail(EL_ERR_INVALID,
                       "%s: %lld %s samples are less than one global batch of %lld: "
                       "take a batch of at most %lld, hold out less, or give more data",
                       source, (long long)size, name[spec->split], (long long)spec->global_batch, (long long)size);
    return EL_OK;
}

static enum el_status make_bins(struct el_batcher *batcher)
{
    batcher->bins = malloc((size_t)el_dataset_info(batcher->dataset)->seq * sizeof *batcher->bins);
    batcher->counts = calloc((size_t)batcher->spec.features, sizeof *batcher->counts);
    if (batcher->bins && batcher->counts) return EL_OK;
    return el_fail(EL_ERR_HOST_MEMORY, "no memory for bags of words in %lld bins", (long long)batcher->spec.features);
}

static enum el_status prepare(struct el_batcher *batcher)
{
    const struct el_loader_spec *spec = &batcher->spec;
    const size_t type_bytes = spec->dtype == EL_F64 ? sizeof(double) : sizeof(float);
    batcher->n_labels = spec->input == EL_INPUT_TOKENS ? el_dataset_info(batcher->dataset)->seq : 1;
    switch (spec->input) {
    case EL_INPUT_IDS:
    case EL_INPUT_TOKENS:
        batcher->row_bytes = (size_t)el_dataset_info(batcher->dataset)->seq * sizeof(int32_t);
        return EL_OK;
    case EL_INPUT_FEATURES:
        batcher->row_bytes = (size_t)spec->features * type_bytes;
        return make_bins(batcher);
    case EL_INPUT_IMAGES:
        batcher->row_bytes = (size_t)el_image_bytes(spec->image) * type_bytes;
        el_tones_make(&batcher->tones);
    }
    return EL_OK;
}

enum el_status el_batcher_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                               struct el_batcher **batcher_p)
{
    int64_t size = el_dataset_size(dataset, spec->split), batch = spec->global_batch, n = size;
    EL_TRY(check_spec(spec));
    EL_TRY(check_kind(dataset, spec));
    EL_TRY(check_size(dataset, spec, size));
    struct el_batcher *batcher = calloc(1, sizeof *batcher);
    if (!batcher) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a loader");
    if (spec->pad) n = (size + spec->ranks - 1) / spec->ranks * spec->ranks;
    *batcher = (struct el_batcher){.dataset = dataset,
                                   .spec = *spec,
                                   .size = size,
                                   .n = n,
                                   .share = el_batch_part(&spec->shares, batch, spec->ranks, spec->rank),
                                   .steps = spec->shuffle ? size / batch : (n - 1) / batch + 1,
                                   .order_epoch = -1};
    enum el_status status = EL_OK;
    if (spec->shuffle && !(batcher->order = malloc((size_t)size * sizeof *batcher->order)))
        status = el_fail(EL_ERR_HOST_MEMORY, "no memory to shuffle %lld samples", (long long)size);
    if (spec->bucket && !(batcher->sorting = malloc(el_sorting_bytes(dataset, spec, batcher->steps))))
        status = el_fail(EL_ERR_HOST_MEMORY, "no memory to sort %lld samples", (long long)size);
    if (status == EL_OK) status = prepare(batcher);
    if (status == EL_OK) status = el_reader_open(dataset, &batcher->spec.loading, &batcher->reader);
    if (status == EL_OK)
        *batcher_p = batcher;
    else
        el_batcher_close(batcher);
    return status;
}

void el_batcher_close(struct el_batcher *batcher)
{
    if (!batcher) return;
    el_reader_close(&batcher->reader);
    free(batcher->sorting);
    free(batcher->order);
    free(batcher->bins);
    free(batcher->counts);
    free(batcher);
}

int64_t el_batcher_steps(const struct el_batcher *batcher)
{
    return batcher->steps;
}

int64_t el_batcher_labels(const struct el_batcher *batcher)
{
    return batcher->share.samples * batcher->n_labels;
}

size_t el_batcher_input_bytes(const struct el_batcher *batcher)
{
    return (size_t)batcher->share.samples * batcher->row_bytes;
}

/* Fisher-Yates. The bias of % is below length / 2^64. */
void el_permute(int64_t length, uint64_t seed, int64_t epoch, int64_t *order)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_SHUFFLE, .id = (uint32_t)epoch};
    const uint64_t high = (uint64_t)epoch >> 32;
    for (int64_t i = 0; i < length; i++) order[i] = i;
    for (int64_t i = length - 1; i > 0; i--) {
        int64_t other = (int64_t)(el_rng_u64(&key, (uint64_t)i, high) % (uint64_t)(i + 1));
        int64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void enter_epoch(struct el_batcher *batcher, int64_t epoch)
{
    if (batcher->order_epoch == epoch) return;
    if (batcher->order) el_permute(batcher->size, batcher->spec.seed, epoch, batcher->order);
    if (batcher->sorting)
        el_sort_batches(batcher->dataset, &batcher->spec, batcher->steps, epoch, batcher->sorting, batcher->order);
    batcher->order_epoch = epoch;
}

/* row: [seq] */
static void put_ids(const struct el_batcher *batcher, const struct el_sample *sample, int32_t *row)
{
    memcpy(row, sample->tokens, (size_t)sample->length * sizeof *row);
    memset(row + sample->length, EL_ID_PADDING, (size_t)(batcher->length - sample->length) * sizeof *row);
}

/* row: [image, image, 3] */
static void put_image(const struct el_batcher *batcher, const struct el_sample *sample, void *row)
{
    el_tones_row(&batcher->tones, sample->pixels, batcher->spec.image, batcher->spec.dtype, row);
}

/* position < 0: a row of zeros (the padding id), labels -1. */
static enum el_status fill_row(struct el_batcher *batcher, int64_t position, void *row, int32_t *labels)
{
    struct el_sample sample;
    for (int64_t i = 0; i < batcher->n_labels; i++) labels[i] = -1;
    if (position < 0)
        memset(row, 0,
               batcher->spec.input == EL_INPUT_IDS ? (size_t)batcher->length * sizeof(int32_t) : batcher->row_bytes);
    if (position < 0) return EL_OK;
    EL_TRY(el_dataset_read(batcher->dataset, batcher->spec.split, position, &batcher->reader, &sample));
    labels[0] = sample.label;
    switch (batcher->spec.input) {
    case EL_INPUT_IDS:
        put_ids(batcher, &sample, row);
        batcher->reader.times->words += sample.length;
        break;
    case EL_INPUT_TOKENS:
        memcpy(row, sample.tokens, batcher->row_bytes);
        memcpy(labels, sample.tokens + 1, (size_t)batcher->n_labels * sizeof *labels);
        break;
    case EL_INPUT_FEATURES:
        el_features_row(sample.tokens, sample.length, batcher->spec.features, batcher->bins, batcher->counts,
                        batcher->spec.dtype, row);
        break;
    case EL_INPUT_IMAGES:
        put_image(batcher, &sample, row);
        break;
    }
    return EL_OK;
}

static int64_t position_of(const struct el_batcher *batcher, uint64_t step, int64_t row)
{
    const struct el_loader_spec *spec = &batcher->spec;
    const int64_t first = (int64_t)(step % (uint64_t)batcher->steps) * spec->global_batch,
                  position = first + batcher->share.first + row * batcher->share.stride;
    if (position >= batcher->n) return -1;
    return batcher->order ? batcher->order[position] : position % batcher->size;
}

int64_t el_batcher_length(struct el_batcher *batcher, uint64_t step)
{
    const struct el_loader_spec *spec = &batcher->spec;
    const int64_t seq = el_dataset_info(batcher->dataset)->seq;
    int64_t length = spec->least;
    if (spec->input != EL_INPUT_IDS) return 0;
    if (!spec->least) return seq;
    enter_epoch(batcher, (int64_t)(step / (uint64_t)batcher->steps));
    for (int64_t row = 0; row < batcher->share.samples; row++) {
        const int64_t position = position_of(batcher, step, row);
        if (position < 0) continue;
        const struct el_sample sample = el_dataset_sample(batcher->dataset, spec->split, position);
        if (sample.length > length) length = sample.length;
    }
    return length < seq ? length : seq;
}

enum el_status el_batcher_fill(struct el_batcher *batcher, uint64_t step, void *inputs, int32_t *labels,
                               struct el_load_times *times)
{
    const int64_t begin_ns = el_clock_ns(), before_ns = times->read_ns + times->decode_ns;
    size_t row_bytes = batcher->row_bytes;
    batcher->reader.times = times;
    enter_epoch(batcher, (int64_t)(step / (uint64_t)batcher->steps));
    batcher->length = el_batcher_length(batcher, step);
    if (batcher->spec.input == EL_INPUT_IDS) row_bytes = (size_t)batcher->length * sizeof(int32_t);
    for (int64_t row = 0; row < batcher->share.samples; row++)
        EL_TRY(fill_row(batcher, position_of(batcher, step, row), (char *)inputs + (size_t)row * row_bytes,
                        &labels[row * batcher->n_labels]));
    times->places += batcher->share.samples * batcher->length;
    if (batcher->length > times->longest) times->longest = batcher->length;
    times->batches++;
    times->samples += batcher->share.samples;
    times->collate_ns += el_clock_ns() - begin_ns - (times->read_ns + times->decode_ns - before_ns);
    return EL_OK;
}

void el_load_times_add(const struct el_load_times *more, struct el_load_times *times)
{
    times->batches += more->batches, times->samples += more->samples;
    times->reads += more->reads, times->read_bytes += more->read_bytes;
    times->read_ns += more->read_ns, times->decode_ns += more->decode_ns, times->collate_ns += more->collate_ns;
    times->wait_ns += more->wait_ns, times->take_ns += more->take_ns;
    times->words += more->words, times->places += more->places;
    if (more->longest > times->longest) times->longest = more->longest;
}
