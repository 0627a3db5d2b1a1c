/* The loader: one member's rows of any step. Positions are dealt out as the sampler deals them, but over the unpadded
 * set: training drops the epoch's incomplete last batch, evaluation fills it up with label -1, so that the ranks' rows
 * of a step together are exactly one device's batch, whatever the number of ranks. It does not read ahead. */
#include "runtime/data/samples.h"

#include <stdlib.h>
#include <string.h>

struct el_loader {
    const struct el_dataset *dataset;
    struct el_loader_spec spec;
    int64_t size;               /* samples of the split */
    int64_t share;              /* rows a step */
    int64_t steps;              /* an epoch */
    int64_t *order;             /* [size] the epoch's permutation; NULL when not shuffled */
    int64_t order_epoch;        /* the one it is in, whose permutation that is; -1: none yet */
    size_t row_bytes;           /* of a sample's input */
    const struct el_bags *bags; /* EL_INPUT_FEATURES; the set's */
    struct el_tones tones;      /* EL_INPUT_IMAGES */
    uint8_t *moved;             /* augmented: an image, where it is moved to */
};

int64_t el_share_size(int64_t global_batch, int ranks, int rank)
{
    return global_batch > rank ? (global_batch - rank + ranks - 1) / ranks : 0;
}

static enum el_status check_spec(const struct el_loader_spec *spec)
{
    if (spec->global_batch < 1)
        return el_fail(EL_ERR_INVALID, "loader: a batch of %lld samples", (long long)spec->global_batch);
    if (spec->ranks < 1 || spec->rank < 0 || spec->rank >= spec->ranks)
        return el_fail(EL_ERR_INVALID, "loader: rank %d of %d", spec->rank, spec->ranks);
    if (spec->input == EL_INPUT_IDS) return EL_OK;
    if (spec->input == EL_INPUT_FEATURES && (spec->features < 1 || spec->features > INT32_MAX))
        return el_fail(EL_ERR_INVALID, "loader: %lld features", (long long)spec->features);
    if (spec->dtype != EL_F32 && spec->dtype != EL_F64)
        return el_fail(EL_ERR_INVALID, "loader: features and images are f32 or f64");
    return EL_OK;
}

/* Of sentences or of images, as the model wants them: another kind would be read beyond its end. */
static enum el_status check_kind(const struct el_dataset *dataset, const struct el_loader_spec *spec)
{
    int64_t has = el_dataset_image(dataset), wanted = spec->input == EL_INPUT_IMAGES ? spec->image : 0;
    if (has == wanted) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: images of side %lld, not %lld (0: sentences)",
                   el_path_tail(el_dataset_source(dataset)), (long long)has, (long long)wanted);
}

static enum el_status check_size(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t size)
{
    static const char *const name[] = {"training", "held-out", "test"};
    const char *source = el_path_tail(el_dataset_source(dataset));
    if (size == 0) return el_fail(EL_ERR_INVALID, "%s: no %s samples", source, name[spec->split]);
    if (spec->shuffle && size < spec->global_batch)
        return el_fail(EL_ERR_INVALID,
                       "%s: %lld %s samples are less than one global batch of %lld: "
                       "take a batch of at most %lld, hold out less, or give more data",
                       source, (long long)size, name[spec->split], (long long)spec->global_batch, (long long)size);
    return EL_OK;
}

/* What its rows are made with. */
static enum el_status prepare(struct el_loader *loader)
{
    const struct el_loader_spec *spec = &loader->spec;
    const size_t type_bytes = spec->dtype == EL_F64 ? sizeof(double) : sizeof(float);
    switch (spec->input) {
    case EL_INPUT_IDS:
        loader->row_bytes = (size_t)el_dataset_seq(loader->dataset) * sizeof(int32_t);
        return EL_OK;
    case EL_INPUT_FEATURES:
        loader->row_bytes = (size_t)spec->features * type_bytes;
        return el_bags_find(loader->dataset, spec->split, spec->features, &loader->bags);
    case EL_INPUT_IMAGES:
        loader->row_bytes = (size_t)el_image_bytes(spec->image) * type_bytes;
        el_tones_make(&loader->tones);
        if (spec->augment && !(loader->moved = malloc((size_t)el_image_bytes(spec->image))))
            return el_fail(EL_ERR_HOST_MEMORY, "no memory for an image");
    }
    return EL_OK;
}

enum el_status el_loader_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                              struct el_loader **loader_p)
{
    int64_t size = el_dataset_size(dataset, spec->split), batch = spec->global_batch;
    EL_TRY(check_spec(spec));
    EL_TRY(check_kind(dataset, spec));
    EL_TRY(check_size(dataset, spec, size));
    struct el_loader *loader = calloc(1, sizeof *loader);
    if (!loader) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a loader");
    *loader = (struct el_loader){.dataset = dataset,
                                 .spec = *spec,
                                 .size = size,
                                 .share = el_share_size(batch, spec->ranks, spec->rank),
                                 .steps = spec->shuffle ? size / batch : (size - 1) / batch + 1,
                                 .order_epoch = -1};
    enum el_status status = EL_OK;
    if (spec->shuffle && !(loader->order = malloc((size_t)size * sizeof *loader->order)))
        status = el_fail(EL_ERR_HOST_MEMORY, "no memory to shuffle %lld samples", (long long)size);
    if (status == EL_OK) status = prepare(loader);
    if (status == EL_OK)
        *loader_p = loader;
    else
        el_loader_close(loader);
    return status;
}

void el_loader_close(struct el_loader *loader)
{
    if (!loader) return;
    free(loader->order);
    free(loader->moved);
    free(loader);
}

int64_t el_loader_steps_per_epoch(const struct el_loader *loader)
{
    return loader->steps;
}

static void enter_epoch(struct el_loader *loader, int64_t epoch)
{
    if (loader->order_epoch == epoch) return;
    if (loader->order) el_permute(loader->size, loader->spec.seed, epoch, loader->order);
    loader->order_epoch = epoch;
}

/* row: [seq]; position < 0 writes padding only. */
static void fill_ids(const struct el_loader *loader, int64_t position, int32_t *row)
{
    int64_t seq = el_dataset_seq(loader->dataset), length = 0;
    if (position >= 0) {
        struct el_sample sample = el_dataset_sample(loader->dataset, loader->spec.split, position);
        memcpy(row, sample.tokens, (size_t)sample.length * sizeof *row);
        length = sample.length;
    }
    memset(row + length, EL_ID_PADDING, (size_t)(seq - length) * sizeof *row);
}

/* row: [image, image, 3]; position < 0 writes zeros. */
static void fill_image(const struct el_loader *loader, int64_t position, void *row)
{
    const struct el_loader_spec *spec = &loader->spec;
    const uint8_t *pixels = position < 0 ? NULL : el_dataset_sample(loader->dataset, spec->split, position).pixels;
    if (pixels && loader->moved) {
        el_image_augment(pixels, spec->image, spec->seed, loader->order_epoch, position, loader->moved);
        pixels = loader->moved;
    }
    el_tones_row(&loader->tones, pixels, spec->image, spec->dtype, row);
}

static void fill_row(const struct el_loader *loader, int64_t position, void *row)
{
    switch (loader->spec.input) {
    case EL_INPUT_IDS:
        fill_ids(loader, position, row);
        return;
    case EL_INPUT_FEATURES:
        el_bags_row(loader->bags, position, loader->spec.dtype, row);
        return;
    case EL_INPUT_IMAGES:
        fill_image(loader, position, row);
        return;
    }
}

enum el_status el_loader_fill(struct el_loader *loader, uint64_t step, void *inputs, int32_t *labels)
{
    const struct el_loader_spec *spec = &loader->spec;
    const int64_t first = (int64_t)(step % (uint64_t)loader->steps) * spec->global_batch;
    enter_epoch(loader, (int64_t)(step / (uint64_t)loader->steps));
    for (int64_t row = 0; row < loader->share; row++) {
        int64_t position = first + spec->rank + row * spec->ranks;
        if (position >= loader->size)
            position = -1;
        else if (loader->order)
            position = loader->order[position];
        labels[row] = position < 0 ? -1 : el_dataset_sample(loader->dataset, spec->split, position).label;
        fill_row(loader, position, (char *)inputs + (size_t)row * loader->row_bytes);
    }
    return EL_OK;
}
