/* From a snapshot's values to each device's peak. */
#include "profiles/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "profiles/pickle.h"
#include "runtime/base/files.h"
#include "runtime/base/grow.h"
#include "runtime/base/utf8.h"

/* Limits of a file, and of all bytes in it, so that sums do not overflow. */
static const int64_t FILE_MAX = (int64_t)1 << 30, BYTES_MAX = (int64_t)1 << 61;

enum { FRAMES_MAX = 128, NAME_BYTES = 256 };

/* Substrings of a frame's file and function. The first row that any frame fits is the cause: specific rows come first.
 * C++ functions need stacks="all". */
static const struct rule {
    const char *file, *function;
    enum el_snapshot_cause cause;
} rules[] = {
    {"torch/optim/", "", EL_SNAPSHOT_OPTIMIZER},
    {"apex/optimizers/", "", EL_SNAPSHOT_OPTIMIZER},
    {"bitsandbytes/optim/", "", EL_SNAPSHOT_OPTIMIZER},
    {"nn/parallel/scatter_gather.py", "gather", EL_SNAPSHOT_GATHER},
    {"nn/parallel/comm.py", "gather", EL_SNAPSHOT_GATHER},
    {"nn/parallel/scatter_gather.py", "scatter", EL_SNAPSHOT_SCATTER},
    {"nn/parallel/comm.py", "scatter", EL_SNAPSHOT_SCATTER},
    {"nn/parallel/replicate.py", "", EL_SNAPSHOT_REPLICATE},
    {"nn/parallel/comm.py", "broadcast", EL_SNAPSHOT_REPLICATE},
    {"nn/parallel/comm.py", "reduce_add", EL_SNAPSHOT_BACKWARD},
    {"", "c10d::Reducer", EL_SNAPSHOT_BUCKETS},
    {"nn/parallel/distributed.py", "_ddp_init_helper", EL_SNAPSHOT_BUCKETS},
    {"distributed/utils.py", "_to_kwargs", EL_SNAPSHOT_INPUTS},
    {"nn/parallel/distributed.py", "_pre_forward", EL_SNAPSHOT_BUCKETS}, /* buckets are rebuilt after a step */
    {"distributed/fsdp/", "", EL_SNAPSHOT_SHARDS},
    {"distributed/_composable/fsdp/", "", EL_SNAPSHOT_SHARDS},
    {"distributed/distributed_c10d.py", "", EL_SNAPSHOT_COLLECTIVE},
    {"", "c10d::ProcessGroup", EL_SNAPSHOT_COLLECTIVE},
    {"torch/autograd/", "backward", EL_SNAPSHOT_BACKWARD},
    {"torch/_tensor.py", "backward", EL_SNAPSHOT_BACKWARD},
    {"", "torch::autograd::Engine::", EL_SNAPSHOT_BACKWARD},
    {"nn/modules/module.py", "_apply", EL_SNAPSHOT_MODEL},
    {"torch/nn/modules/", "__init__", EL_SNAPSHOT_MODEL},
    {"torch/utils/data/", "", EL_SNAPSHOT_INPUTS},
    {"torch/nn/modules/loss.py", "", EL_SNAPSHOT_LOSS},
    {"torch/nn/functional.py", "cross_entropy", EL_SNAPSHOT_LOSS},
    {"nn/modules/module.py", "_call_impl", EL_SNAPSHOT_FORWARD},
};
enum { N_RULES = sizeof rules / sizeof rules[0] };

static bool is_own(const char *file)
{
    static const char *const not_own[] = {"site-packages/",
                                          "dist-packages/",
                                          "<frozen",
                                          "/lib/python",
                                          "pytorch/torch/",
                                          "/torch/distributed/",
                                          "/torch/nn/",
                                          "/torch/optim/",
                                          "/torch/utils/",
                                          "/torch/autograd/",
                                          "/torch/cuda/",
                                          "/torch/_",
                                          NULL};
    size_t n = strlen(file);
    for (size_t i = 0; not_own[i]; i++)
        if (strstr(file, not_own[i])) return false;
    return n > 3 && !strcmp(file + n - 3, ".py");
}

const char *el_snapshot_cause_name(enum el_snapshot_cause cause)
{
#define NAME(id, name) name,
    static const char *const names[] = {EL_SNAPSHOT_CAUSES(NAME)};
    return names[cause];
}

struct el_snapshot_place el_snapshot_place_of(struct el_pickle *p, uint32_t frames)
{
    struct el_snapshot_place place = {.cause = EL_SNAPSHOT_NO_FRAMES};
    struct el_pickle_walk walk = el_pickle_walk(p, frames);
    bool own = false;
    int best = N_RULES, n = 0;
    for (uint32_t frame; n < FRAMES_MAX && el_pickle_next(p, &walk, &frame); n++) {
        char file[NAME_BYTES], function[NAME_BYTES];
        el_pickle_text(p, frame, "filename", file, sizeof file);
        el_pickle_text(p, frame, "name", function, sizeof function);
        bool known = strcmp(file, "none") != 0 && strcmp(file, "??") != 0;
        if (!known) memcpy(file, function, sizeof file); /* as torch.cuda._memory_viz writes them */
        for (int i = 0; i < best; i++)
            if (strstr(file, rules[i].file) && strstr(function, rules[i].function)) best = i;
        if (own || !known || (*place.where && !is_own(file))) continue;
        own = is_own(file);
        const char *slash = strrchr(file, '/');
        snprintf(place.where, sizeof place.where, "%.48s:%lld %.30s", slash ? slash + 1 : file,
                 (long long)el_pickle_whole(p, frame, "line", 0), function);
    }
    el_utf8_printable(place.where);
    if (n > 0) place.cause = best < N_RULES ? rules[best].cause : EL_SNAPSHOT_OTHER;
    return place;
}

struct event {
    uint64_t address;
    int64_t bytes;
    size_t at; /* in the trace */
    uint32_t frames;
    enum { FREE, ALLOCATION, BLOCK } what;
};

struct reader {
    struct el_pickle *pickle;
    const char *name;
    struct event *events;
    size_t n, room;
    int64_t told;       /* bytes of all events and segments */
    size_t failed_at;   /* events before the last failure */
    uint32_t *place_of; /* [values]: place of a list of frames plus 1, for the current device; 0: none yet */
};

static enum el_status check_bytes(struct reader *r, int64_t bytes)
{
    if (bytes < 0 || bytes > BYTES_MAX - r->told)
        return el_fail(EL_ERR_INVALID, "%s: something of %lld bytes is in it", r->name, (long long)bytes);
    r->told += bytes;
    return EL_OK;
}

static enum el_status add_event(struct reader *r, uint32_t dict, int64_t address, int64_t bytes, size_t at, int what)
{
    EL_TRY(check_bytes(r, bytes));
    if (!EL_GROW(r->events, r->room, r->n + 1)) return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", r->name);
    r->events[r->n++] = (struct event){.address = (uint64_t)address,
                                       .bytes = bytes,
                                       .at = at,
                                       .frames = el_pickle_at(r->pickle, dict, "frames"),
                                       .what = what};
    return EL_OK;
}

static uint32_t segments_of(struct el_pickle *p)
{
    return p->values[p->root].kind == EL_PICKLE_LIST ? p->root : el_pickle_at(p, p->root, "segments");
}

static void add_free(struct el_snapshot_failure *failure, int64_t bytes)
{
    failure->n_free++;
    failure->free_bytes += bytes;
    if (bytes > failure->largest_free_bytes) failure->largest_free_bytes = bytes;
}

/* The device's blocks. Earlier versions have no addresses: blocks are consecutive. */
static enum el_status add_blocks(struct reader *r, struct el_snapshot_device *device)
{
    struct el_pickle *p = r->pickle;
    struct el_pickle_walk segments = el_pickle_walk(p, segments_of(p));
    for (uint32_t segment; el_pickle_next(p, &segments, &segment);) {
        if (el_pickle_whole(p, segment, "device", -1) != device->number) continue;
        struct el_pickle_walk blocks = el_pickle_walk(p, el_pickle_at(p, segment, "blocks"));
        int64_t total = el_pickle_whole(p, segment, "total_size", 0);
        EL_TRY(check_bytes(r, total));
        device->reserved_bytes += total;
        uint64_t next = (uint64_t)el_pickle_whole(p, segment, "address", 0);
        for (uint32_t block; el_pickle_next(p, &blocks, &block);) {
            char state[32];
            int64_t size = el_pickle_whole(p, block, "size", 0),
                    at = el_pickle_whole(p, block, "address", (int64_t)next);
            next = (uint64_t)at + (uint64_t)size;
            el_pickle_text(p, block, "state", state, sizeof state);
            if (strncmp(state, "active", 6) != 0) { /* _allocated, _pending_free, _awaiting_free */
                EL_TRY(check_bytes(r, size));
                add_free(&device->failure, size);
                continue;
            }
            int64_t bytes = el_pickle_whole(p, block, "requested_size", size);
            EL_TRY(add_event(r, block, at, bytes, SIZE_MAX, BLOCK));
            device->now_bytes += bytes;
        }
    }
    return EL_OK;
}

static enum el_status add_trace(struct reader *r, struct el_snapshot_device *device)
{
    struct el_pickle *p = r->pickle;
    struct el_pickle_walk traces = el_pickle_walk(p, el_pickle_at(p, p->root, "device_traces"));
    uint32_t trace = 0, entry;
    for (int64_t i = 0; i <= device->number; i++)
        if (!el_pickle_next(p, &traces, &trace)) return EL_OK;
    struct el_pickle_walk entries = el_pickle_walk(p, trace);
    while (el_pickle_next(p, &entries, &entry)) {
        char action[32];
        el_pickle_text(p, entry, "action", action, sizeof action);
        bool alloc = !strcmp(action, "alloc");
        if (!strcmp(action, "oom")) {
            r->failed_at = device->n_events;
            device->failure.asked_bytes = el_pickle_whole(p, entry, "size", 0);
            device->failure.device_free_bytes = el_pickle_whole(p, entry, "device_free", -1);
            struct el_snapshot_place place = el_snapshot_place_of(p, el_pickle_at(p, entry, "frames"));
            memcpy(device->failure.where, place.where, sizeof place.where);
        }
        if (alloc || !strcmp(action, "free_completed"))
            EL_TRY(add_event(r, entry, el_pickle_whole(p, entry, "addr", 0), el_pickle_whole(p, entry, "size", 0),
                             device->n_events++, alloc ? ALLOCATION : FREE));
    }
    return EL_OK;
}

/* Returns how many events precede the last failure, or else the first highest moment. */
static size_t find_moment(const struct reader *r, struct el_snapshot_device *device)
{
    const struct event *events = device->n_events ? r->events + r->n - device->n_events : NULL;
    const bool failed = device->failure.asked_bytes > 0;
    int64_t held = device->now_bytes;
    size_t at = device->n_events;
    device->peak_bytes = held;
    for (size_t i = device->n_events; i-- > (failed ? r->failed_at : 0);) {
        held += events[i].what == FREE ? events[i].bytes : -events[i].bytes;
        if (!failed && held < device->peak_bytes) continue;
        device->peak_bytes = held;
        at = i;
    }
    return at;
}

static int by_address(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* After `at` events; NULL: nothing, or allocated before the trace. */
static const struct event *held_at(const struct event *events, size_t n, size_t at)
{
    const struct event *last = NULL;
    for (size_t i = 0; i < n && events[i].at < at; i++) last = &events[i];
    if (last) return last->what == ALLOCATION ? last : NULL;
    return events[0].what == BLOCK ? events : NULL;
}

/* The last places are reserved for causes without one. Shared frames are read once. */
static struct el_snapshot_place *place_of(struct reader *r, uint32_t frames, struct el_snapshot_device *device)
{
    uint32_t *of = &r->place_of[frames];
    if (*of) return &device->places[*of - 1];
    struct el_snapshot_place place = el_snapshot_place_of(r->pickle, frames);
    size_t i = 0, like = device->n_places;
    for (; i < device->n_places; i++) {
        if (device->places[i].cause != place.cause) continue;
        if (!strcmp(device->places[i].where, place.where)) break;
        like = i;
    }
    if (i == device->n_places && i >= EL_SNAPSHOT_PLACES_MAX - EL_SNAPSHOT_N_CAUSES) i = like;
    if (i == device->n_places) device->places[device->n_places++] = place;
    *of = (uint32_t)i + 1;
    return &device->places[i];
}

static int by_bytes(const void *a, const void *b)
{
    const struct el_snapshot_place *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static enum el_status read_device(struct reader *r, struct el_snapshot_device *device)
{
    int64_t known = 0;
    r->n = 0;
    r->told = 0;
    EL_TRY(add_blocks(r, device));
    EL_TRY(add_trace(r, device));
    size_t at = find_moment(r, device);
    if (r->n) memset(r->place_of, 0, r->pickle->n_values * sizeof *r->place_of);
    if (r->n) qsort(r->events, r->n, sizeof *r->events, by_address);
    for (size_t i = 0, n; i < r->n; i += n) {
        for (n = 1; i + n < r->n && r->events[i + n].address == r->events[i].address;) n++;
        const struct event *held = held_at(&r->events[i], n, at);
        if (!held) continue;
        struct el_snapshot_place *place = place_of(r, held->frames, device);
        place->bytes += held->bytes;
        device->at_peak[place->cause] += held->bytes;
        known += held->bytes;
    }
    if (r->pickle->exhausted) return el_fail(EL_ERR_INVALID, "%s: it holds the same values too many times", r->name);
    if (known > device->peak_bytes) device->peak_bytes = known; /* blocks that are gone without a recorded free */
    device->at_peak[EL_SNAPSHOT_BEFORE] += device->peak_bytes - known;
    qsort(device->places, device->n_places, sizeof *device->places, by_bytes);
    return EL_OK;
}

static enum el_status read_devices(struct reader *r, struct el_snapshot *snapshot)
{
    if (!segments_of(r->pickle))
        return el_fail(EL_ERR_INVALID, "%s: a pickle, but no snapshot of torch.cuda.memory: it has no segments",
                       r->name);
    for (int64_t number = 0; number < EL_SNAPSHOT_DEVICES_MAX; number++) {
        void *more = realloc(snapshot->devices, (snapshot->n + 1) * sizeof *snapshot->devices);
        if (more) snapshot->devices = more;
        if (!r->place_of || !more) return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", r->name);
        struct el_snapshot_device *device = &snapshot->devices[snapshot->n];
        *device = (struct el_snapshot_device){.number = number};
        EL_TRY(read_device(r, device));
        snapshot->n += device->peak_bytes > 0 || device->reserved_bytes > 0;
    }
    return snapshot->n ? EL_OK : el_fail(EL_ERR_INVALID, "%s: no device holds anything in it", r->name);
}

enum el_status el_snapshot_read(const uint8_t *data, size_t size, const char *name, struct el_snapshot *snapshot_p)
{
    struct el_pickle pickle;
    if (size > 4 && !memcmp(data, "PK\3\4", 4))
        return el_fail(EL_ERR_INVALID, "%s: a file of torch.save; what torch.cuda.memory._dump_snapshot writes is read",
                       name);
    EL_TRY(el_pickle_read(data, size, name, &pickle));
    struct reader reader = {
        .pickle = &pickle, .name = name, .place_of = calloc(pickle.n_values, sizeof *reader.place_of)};
    struct el_snapshot snapshot = {.devices = NULL};
    enum el_status status = read_devices(&reader, &snapshot);
    free(reader.events);
    free(reader.place_of);
    el_pickle_free(&pickle);
    if (status != EL_OK)
        el_snapshot_free(&snapshot);
    else
        *snapshot_p = snapshot;
    return status;
}

enum el_status el_snapshot_read_file(const char *path, struct el_snapshot *snapshot_p)
{
    char *data;
    size_t n;
    EL_TRY(el_file_read(path, FILE_MAX, &data, &n));
    enum el_status status = el_snapshot_read((const uint8_t *)data, n, el_path_tail(path), snapshot_p);
    free(data);
    return status;
}

void el_snapshot_free(struct el_snapshot *snapshot)
{
    free(snapshot->devices);
    *snapshot = (struct el_snapshot){.devices = NULL};
}
