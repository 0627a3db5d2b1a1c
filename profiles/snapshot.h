/* PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot): each device's memory at its peak, by cause.
 *
 *     el_snapshot_read_file("rank0.pickle", &snapshot);
 *     for (size_t i = 0; i < snapshot.n; i++) show(&snapshot.devices[i]);
 *     el_snapshot_free(&snapshot);
 *
 * Form: torch/csrc/cuda/memory_snapshot.cpp: `segments` with blocks at the time of the snapshot, `device_traces` with
 * the last max_entries allocations and frees; or a list of such segments alone (torch.cuda.memory_snapshot). Block
 * bytes are requested_size, as in the trace. The peak is found backwards, as in MemoryViz: current bytes, minus each
 * allocation, plus each free. Memory freed but not allocated in the trace has no cause. Causes come from the
 * allocation's frames, by the first row of PyTorch's files and functions that any frame fits.
 *
 * Input is untrusted (pickle.h). Units: bytes. Errors: EL_ERR_IO, EL_ERR_INVALID with file and reason,
 * EL_ERR_HOST_MEMORY. Threads: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* clang-format off */
#define EL_SNAPSHOT_CAUSES(X) \
    X(OPTIMIZER, "optimizer") X(GATHER, "gather") X(SCATTER, "scatter") X(REPLICATE, "replicate") \
    X(BUCKETS, "DDP buckets") X(SHARDS, "FSDP shards") X(COLLECTIVE, "collectives") X(BACKWARD, "backward") \
    X(MODEL, "model") X(INPUTS, "inputs") X(LOSS, "loss") X(FORWARD, "forward") X(OTHER, "other code") \
    X(NO_FRAMES, "no frames") X(BEFORE, "before trace")
/* clang-format on */
#define EL_SNAPSHOT_CAUSE(id, name) EL_SNAPSHOT_##id,
enum el_snapshot_cause { EL_SNAPSHOT_CAUSES(EL_SNAPSHOT_CAUSE) EL_SNAPSHOT_N_CAUSES };
const char *el_snapshot_cause_name(enum el_snapshot_cause cause);

enum { EL_SNAPSHOT_PLACE_BYTES = 96, EL_SNAPSHOT_PLACES_MAX = 256, EL_SNAPSHOT_DEVICES_MAX = 64 };

/* A line of the user's code, or PyTorch's nearest: "train.py:31 step"; "": unknown. */
struct el_snapshot_place {
    enum el_snapshot_cause cause;
    char where[EL_SNAPSHOT_PLACE_BYTES];
    int64_t bytes; /* at the peak */
};

/* The last time that an allocation failed. Free: what the allocator held and had not given out, at the snapshot. */
struct el_snapshot_failure {
    int64_t asked_bytes; /* 0: none failed */
    int64_t device_free_bytes;
    int64_t free_bytes, largest_free_bytes, n_free;
    char where[EL_SNAPSHOT_PLACE_BYTES];
};

struct el_snapshot_device {
    int64_t number;
    size_t n_events;                                         /* allocations and frees in its trace; 0: unknown peak */
    int64_t peak_bytes, now_bytes, reserved_bytes;           /* now: of blocks; reserved: of segments, now */
    int64_t at_peak[EL_SNAPSHOT_N_CAUSES];                   /* sums to the peak */
    struct el_snapshot_place places[EL_SNAPSHOT_PLACES_MAX]; /* largest first */
    size_t n_places;
    struct el_snapshot_failure failure; /* if there is one, "the peak" is that moment */
};

struct el_snapshot {
    struct el_snapshot_device *devices; /* those with memory at any time */
    size_t n;
};

enum el_status el_snapshot_read(const uint8_t *data, size_t size, const char *name, struct el_snapshot *snapshot_p);
/* Of a list of frames, as of the flight recorder too: the cause, and the user's innermost line, else a library's. */
struct el_pickle;
struct el_snapshot_place el_snapshot_place_of(struct el_pickle *pickle, uint32_t frames);
/* At most 1 GiB. Blocking. */
enum el_status el_snapshot_read_file(const char *path, struct el_snapshot *snapshot_p);
void el_snapshot_free(struct el_snapshot *snapshot);
