/* The loader: one member's batches in order, made on demand or by workers. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"
#include "runtime/base/rng.h"
#include "runtime/data/data.h"
#include "runtime/data/stored.h"

struct el_batcher;

struct el_team;

static void batcher_close(struct el_batcher *batcher); /* NULL is legal */
static size_t team_bytes(const struct el_team *team);

/* Batches. Positions are distributed as by DistributedSampler, but over the unpadded set: training drops
 * the epoch's incomplete last batch, evaluation fills it with label -1, so that any number of ranks has one device's
 * batches. */

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

static enum el_status batcher_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
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
        batcher_close(batcher);
    return status;
}

static void batcher_close(struct el_batcher *batcher)
{
    if (!batcher) return;
    el_reader_close(&batcher->reader);
    free(batcher->sorting);
    free(batcher->order);
    free(batcher->bins);
    free(batcher->counts);
    free(batcher);
}

static int64_t batcher_steps(const struct el_batcher *batcher)
{
    return batcher->steps;
}

static int64_t batcher_labels(const struct el_batcher *batcher)
{
    return batcher->share.samples * batcher->n_labels;
}

static size_t batcher_input_bytes(const struct el_batcher *batcher)
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

/* As el_loader_length; 0: no sentences as ids. Enters the step's epoch. */
static int64_t batcher_length(struct el_batcher *batcher, uint64_t step)
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

static enum el_status batcher_fill(struct el_batcher *batcher, uint64_t step, void *inputs, int32_t *labels,
                                   struct el_load_times *times)
{
    const int64_t begin_ns = el_clock_ns(), before_ns = times->read_ns + times->decode_ns;
    size_t row_bytes = batcher->row_bytes;
    batcher->reader.times = times;
    enter_epoch(batcher, (int64_t)(step / (uint64_t)batcher->steps));
    batcher->length = batcher_length(batcher, step);
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

/* As el_loader_fill; adds its times to `times`. */
static void load_times_add(const struct el_load_times *more, struct el_load_times *times)
{
    times->batches += more->batches, times->samples += more->samples;
    times->reads += more->reads, times->read_bytes += more->read_bytes;
    times->read_ns += more->read_ns, times->decode_ns += more->decode_ns, times->collate_ns += more->collate_ns;
    times->wait_ns += more->wait_ns, times->take_ns += more->take_ns;
    times->words += more->words, times->places += more->places;
    if (more->longest > times->longest) times->longest = more->longest;
}

/* Its workers. */

enum { ALIGN = 64 };
enum turn { FREE, READY, STOPPED };                /* the worker's, the trainer's, nobody's */
static const int64_t AGAIN_NS = 200 * 1000 * 1000; /* interval at which a waiting thread checks the other */

struct slot {
    _Atomic uint32_t turn;
    struct el_error error; /* instead of a batch */
    struct el_load_times times;
};

struct member {
    struct el_team *team;
    int index;
    bool started;
    pthread_t thread;
    _Atomic bool gone; /* thread exited */
};

struct el_team {
    struct el_loading loading;
    struct el_batcher *const *batchers;
    size_t input_bytes, slot_bytes;
    char *memory;
    int n_slots;
    cpu_set_t cores; /* the opener's: a worker must not share the core to which the taker may be bound */
    bool running;
    uint64_t first, next; /* batches: the workers' first, the next to take */
    struct member members[EL_WORKERS_MAX];
};

static struct slot *slot_of(const struct el_team *team, uint64_t step)
{
    return (struct slot *)(void *)(team->memory + (size_t)(step % (uint64_t)team->n_slots) * team->slot_bytes);
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static char *inputs_of(struct slot *slot)
{
    return (char *)slot + rounded(sizeof *slot);
}

static int32_t *labels_of(const struct el_team *team, struct slot *slot)
{
    return (int32_t *)(void *)(inputs_of(slot) + rounded(team->input_bytes));
}

/* Waits until the slot is the worker's; false: exit. */
static bool await_free(struct slot *slot)
{
    for (;;) {
        uint32_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn != READY) return turn == FREE;
        el_futex_wait(&slot->turn, turn, false, AGAIN_NS);
    }
}

static bool hand_over(struct slot *slot)
{
    uint32_t turn = FREE;
    bool taken = atomic_compare_exchange_strong(&slot->turn, &turn, READY);
    el_futex_wake(&slot->turn, false);
    return taken;
}

static void work(const struct el_team *team, int index)
{
    const uint64_t n = (uint64_t)team->loading.workers;
    uint64_t step = team->first + ((uint64_t)index + n - team->first % n) % n;
    for (enum el_status status = EL_OK; status == EL_OK; step += n) {
        struct slot *slot = slot_of(team, step);
        if (!await_free(slot)) return;
        if (team->loading.dies_at > 0 && step == (uint64_t)team->loading.dies_at) return;
        slot->times = (struct el_load_times){0};
        status = batcher_fill(team->batchers[index], step, inputs_of(slot), labels_of(team, slot), &slot->times);
        el_error_take(status, &slot->error);
        if (!hand_over(slot)) return;
    }
}

static void *run_thread(void *argument)
{
    struct member *member = argument;
    sched_setaffinity(0, sizeof member->team->cores, &member->team->cores);
    work(member->team, member->index);
    atomic_store(&member->gone, true);
    for (int s = 0; s < member->team->n_slots; s++) el_futex_wake(&slot_of(member->team, (uint64_t)s)->turn, false);
    return NULL;
}

static enum el_status start_thread(struct member *member)
{
    if (pthread_create(&member->thread, NULL, run_thread, member) == 0) return EL_OK;
    return el_fail(EL_ERR_HOST_MEMORY, "loader worker %d: its thread could not be made", member->index);
}

static void stop(struct el_team *team)
{
    for (int s = 0; s < team->n_slots; s++) {
        struct slot *slot = slot_of(team, (uint64_t)s);
        atomic_store(&slot->turn, STOPPED);
        el_futex_wake(&slot->turn, false);
    }
    for (int w = 0; w < team->loading.workers; w++) {
        struct member *member = &team->members[w];
        if (member->started) pthread_join(member->thread, NULL);
        member->started = false;
    }
    team->running = false;
}

static enum el_status start(struct el_team *team, uint64_t first)
{
    enum el_status status = EL_OK;
    team->first = team->next = first;
    team->running = true;
    for (int s = 0; s < team->n_slots; s++) atomic_store(&slot_of(team, (uint64_t)s)->turn, FREE);
    for (int w = 0; w < team->loading.workers && status == EL_OK; w++) {
        struct member *member = &team->members[w];
        *member = (struct member){.team = team, .index = w};
        status = start_thread(member);
        member->started = status == EL_OK;
    }
    if (status != EL_OK) stop(team);
    return status;
}

/* A worker that exited may still have made the batch. */
static enum el_status look_after(const struct member *member, const struct slot *slot, uint64_t step)
{
    if (!atomic_load(&member->gone) || atomic_load(&slot->turn) == READY) return EL_OK;
    return el_fail(EL_ERR_IO, "loader worker %d ended before batch %llu was ready", member->index,
                   (unsigned long long)step);
}

static enum el_status await_batch(struct el_team *team, struct slot *slot, uint64_t step)
{
    const struct member *member = &team->members[step % (uint64_t)team->loading.workers];
    while (atomic_load_explicit(&slot->turn, memory_order_acquire) != READY) {
        EL_TRY(look_after(member, slot, step));
        el_futex_wait(&slot->turn, FREE, false, AGAIN_NS);
    }
    return slot->error.status == EL_OK ? EL_OK : el_error_give(&slot->error);
}

static enum el_status team_take(struct el_team *team, uint64_t step, void *inputs, int32_t *labels,
                                struct el_load_times *times)
{
    const int64_t asked_ns = el_clock_ns();
    if (team->running && step != team->next) stop(team);
    if (!team->running) EL_TRY(start(team, step));
    struct slot *slot = slot_of(team, step);
    EL_TRY(await_batch(team, slot, step));
    const int64_t ready_ns = el_clock_ns();
    memcpy(inputs, inputs_of(slot), team->input_bytes);
    memcpy(labels, labels_of(team, slot), (size_t)batcher_labels(team->batchers[0]) * sizeof *labels);
    load_times_add(&slot->times, times);
    times->wait_ns += ready_ns - asked_ns;
    times->take_ns += el_clock_ns() - ready_ns;
    atomic_store_explicit(&slot->turn, FREE, memory_order_release);
    el_futex_wake(&slot->turn, false);
    team->next = step + 1;
    return EL_OK;
}

static enum el_status team_open(const struct el_loading *loading, struct el_batcher *const *batchers,
                                struct el_team **team_p)
{
    struct el_team *team = calloc(1, sizeof *team);
    if (!team) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a loader's workers");
    *team = (struct el_team){.loading = *loading, .batchers = batchers};
    team->n_slots = loading->workers * (loading->prefetch ? loading->prefetch : EL_PREFETCH_DEFAULT);
    team->input_bytes = batcher_input_bytes(batchers[0]);
    team->slot_bytes = rounded(sizeof(struct slot)) + rounded(team->input_bytes) +
                       rounded((size_t)batcher_labels(batchers[0]) * sizeof(int32_t));
    team->memory = aligned_alloc(ALIGN, team_bytes(team));
    sched_getaffinity(0, sizeof team->cores, &team->cores);
    if (!team->memory) {
        el_fail(EL_ERR_HOST_MEMORY, "no memory for %d batches ahead", team->n_slots);
        free(team);
        return EL_ERR_HOST_MEMORY;
    }
    memset(team->memory, 0, team_bytes(team));
    *team_p = team;
    return EL_OK;
}

static void team_close(struct el_team *team)
{
    if (!team) return;
    if (team->running) stop(team);
    free(team->memory);
    free(team);
}

/* Copies the batch of `step`; blocks until it is made; adds its times to `times`. Errors: the worker's; EL_ERR_IO
 * within a second if it exited silently. */
static size_t team_bytes(const struct el_team *team)
{
    return team->slot_bytes * (size_t)team->n_slots;
}

struct el_loader {
    struct el_loading loading;
    /* One per worker, then the loader's own if lengths differ; without workers only the first. */
    struct el_batcher *batchers[EL_WORKERS_MAX + 1];
    struct el_team *team;
    struct el_load_times times;
    struct el_load_length lengths[EL_LOAD_LENGTHS]; /* a ring: batch i at i % EL_LOAD_LENGTHS */
    int64_t n_lengths;
};

int64_t el_share_size(int64_t global_batch, int ranks, int rank)
{
    return global_batch > rank ? (global_batch - rank + ranks - 1) / ranks : 0;
}

static struct el_batch_part weighted(const struct el_shares *shares, int64_t samples, int w)
{
    struct el_batch_part part = {.stride = 1};
    int64_t sum = 0, left = samples;
    for (int i = 0; i < shares->n; i++) sum += shares->weight[i];
    for (int i = 0; i < shares->n; i++) left -= samples * shares->weight[i] / sum;
    for (int i = 0; i <= w; i++) {
        int64_t rest = samples * shares->weight[i] % sum, before = 0;
        for (int k = 0; k < shares->n; k++) {
            int64_t other = samples * shares->weight[k] % sum;
            before += other > rest || (other == rest && k < i);
        }
        part.first += part.samples;
        part.samples = samples * shares->weight[i] / sum + (before < left);
    }
    return part;
}

struct el_batch_part el_batch_part(const struct el_shares *shares, int64_t batch, int parts, int part)
{
    if (shares->n < 2 || parts < shares->n)
        return (struct el_batch_part){part, parts, el_share_size(batch, parts, part)};
    int64_t n = parts / shares->n, piece = part / shares->n;
    struct el_batch_part own = weighted(shares, el_share_size(batch, (int)n, (int)piece), part % shares->n);
    own.first += piece * (batch / n) + (piece < batch % n ? piece : batch % n);
    return own;
}

enum el_status el_loader_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                              struct el_loader **loader_p)
{
    const int workers = spec->loading.workers, prefetch = spec->loading.prefetch;
    if (workers < 0 || workers > EL_WORKERS_MAX || prefetch < 0 || prefetch > EL_PREFETCH_MAX)
        return el_fail(EL_ERR_INVALID, "loader: %d workers, each %d batches ahead: at most %d and %d", workers,
                       prefetch, EL_WORKERS_MAX, EL_PREFETCH_MAX);
    struct el_loader *loader = calloc(1, sizeof *loader);
    if (!loader) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a loader");
    loader->loading = spec->loading;
    enum el_status status = EL_OK;
    for (int w = 0; (w == 0 || w < workers + (spec->least > 0)) && status == EL_OK; w++)
        status = batcher_open(dataset, spec, &loader->batchers[w]);
    if (status == EL_OK && workers) status = team_open(&loader->loading, loader->batchers, &loader->team);
    if (status == EL_OK)
        *loader_p = loader;
    else
        el_loader_close(loader);
    return status;
}

void el_loader_close(struct el_loader *loader)
{
    if (!loader) return;
    team_close(loader->team);
    for (int w = 0; w <= EL_WORKERS_MAX; w++) batcher_close(loader->batchers[w]);
    free(loader);
}

int64_t el_loader_steps_per_epoch(const struct el_loader *loader)
{
    return batcher_steps(loader->batchers[0]);
}

int64_t el_loader_length(struct el_loader *loader, uint64_t step)
{
    struct el_batcher *own = loader->batchers[loader->loading.workers];
    return batcher_length(own ? own : loader->batchers[0], step);
}

enum el_status el_loader_fill(struct el_loader *loader, uint64_t step, void *inputs, int32_t *labels)
{
    EL_TRY(loader->team ? team_take(loader->team, step, inputs, labels, &loader->times)
                        : batcher_fill(loader->batchers[0], step, inputs, labels, &loader->times));
    loader->lengths[loader->n_lengths++ % EL_LOAD_LENGTHS] =
        (struct el_load_length){step, el_loader_length(loader, step)};
    return EL_OK;
}

void el_loader_account(const struct el_loader *loader, struct el_load_account *account_p)
{
    const int64_t n = loader->n_lengths < EL_LOAD_LENGTHS ? loader->n_lengths : EL_LOAD_LENGTHS;
    *account_p = (struct el_load_account){.times = loader->times, .n_lengths = (int)n};
    for (int64_t i = 0; i < n; i++)
        account_p->lengths[i] = loader->lengths[(loader->n_lengths - n + i) % EL_LOAD_LENGTHS];
    if (loader->team) account_p->queue_bytes = (int64_t)team_bytes(loader->team);
}

void el_load_account_add(const struct el_load_account *more, struct el_load_account *account)
{
    load_times_add(&more->times, &account->times);
    account->queue_bytes += more->queue_bytes;
}

void el_loader_reset(struct el_loader *loader)
{
    loader->times = (struct el_load_times){0};
    loader->n_lengths = 0;
}

/* Hashed bags of words, scaled to unit L2 norm, without signs, so that a sentence cannot cancel to zero. */

/* By id, because a dummy set has no texts. SplitMix64's finaliser. */
static int32_t bin_of(int32_t id, int64_t features)
{
    uint64_t x = (uint64_t)id * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (int32_t)((x ^ x >> 31) % (uint64_t)features);
}

/* The sum of squared counts is the sum over tokens of their bin's count. */
static double scale_of(const int32_t *bins, int64_t length, int32_t *counts)
{
    double squares = 0;
    for (int64_t t = 0; t < length; t++) counts[bins[t]]++;
    for (int64_t t = 0; t < length; t++) squares += counts[bins[t]];
    for (int64_t t = 0; t < length; t++) counts[bins[t]] = 0;
    return 1 / sqrt(squares);
}

void el_features_row(const int32_t *tokens, int64_t length, int64_t features, int32_t *bins, int32_t *counts,
                     enum el_dtype dtype, void *row)
{
    memset(row, 0, (size_t)features * (dtype == EL_F64 ? sizeof(double) : sizeof(float)));
    for (int64_t t = 0; t < length; t++) bins[t] = bin_of(tokens[t], features);
    const double scale = scale_of(bins, length, counts);
    if (dtype == EL_F64) {
        for (int64_t t = 0; t < length; t++) ((double *)row)[bins[t]] += scale;
    } else {
        for (int64_t t = 0; t < length; t++) ((float *)row)[bins[t]] += (float)scale;
    }
}

/* Sorted by length, cut into batches, which are shuffled. Equal lengths keep the shuffle's order, so that epochs
 * differ. */

static int64_t length_of(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t position)
{
    return el_dataset_sample(dataset, spec->split, position).length;
}

size_t el_sorting_bytes(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps)
{
    return (size_t)(steps * (spec->global_batch + 1) + el_dataset_info(dataset)->seq + 2) * sizeof(int64_t);
}

/* Counting sort, which is stable. */
void el_sort_batches(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps, int64_t epoch,
                     int64_t *scratch, int64_t *order)
{
    const int64_t batch = spec->global_batch, n = steps * batch, seq = el_dataset_info(dataset)->seq;
    int64_t *sorted = scratch, *batches = sorted + n, *begins = batches + steps; /* begins: [seq + 2] by length */
    memset(begins, 0, (size_t)(seq + 2) * sizeof *begins);
    for (int64_t i = 0; i < n; i++) begins[length_of(dataset, spec, order[i]) + 1]++;
    for (int64_t length = 0; length <= seq; length++) begins[length + 1] += begins[length];
    for (int64_t i = 0; i < n; i++) sorted[begins[length_of(dataset, spec, order[i])]++] = order[i];
    el_permute(steps, ~spec->seed, epoch, batches); /* another seed than the samples' shuffle */
    for (int64_t b = 0; b < steps; b++)
        memcpy(order + b * batch, sorted + batches[b] * batch, (size_t)batch * sizeof *order);
}
