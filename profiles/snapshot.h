/* Memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot): what each device held at its peak, by cause.
 *
 *     el_snapshot_read_file("rank0.pickle", &snapshot);
 *     for (size_t i = 0; i < snapshot.n; i++) show(&snapshot.devices[i]);
 *     el_snapshot_free(&snapshot);
 *
 * The form is that of torch/csrc/cuda/memory_snapshot.cpp: `segments` with their blocks as they were when the snapshot
 * was made, `device_traces` with what was allocated and freed before, the last max_entries of it. Bytes of blocks are
 * those that were asked for (requested_size), as in the trace. The peak is found from the end backwards, as MemoryViz
 * does it: what a block holds now, less each allocation, more each free. What the trace saw freed but not allocated has
 * no cause. A cause is told by the frames of the allocation: by rows of files and functions of PyTorch, the first row
 * that any frame fits.
 *
 * What is read is anyone's (pickle.h). Units: bytes. Errors: EL_ERR_IO, EL_ERR_INVALID with the file and why,
 * EL_ERR_HOST_MEMORY. Threads: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* Name, and what it is in words. */
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

/* A line of the user's code, or what PyTorch's is nearest to it: "train.py:31 step"; "": not known. */
struct el_snapshot_place {
    enum el_snapshot_cause cause;
    char where[EL_SNAPSHOT_PLACE_BYTES];
    int64_t bytes; /* at the peak */
};

struct el_snapshot_device {
    int64_t number;
    size_t n_events;                               /* allocations and frees in its trace; 0: the peak is not known */
    int64_t peak_bytes, now_bytes, reserved_bytes; /* now: of blocks; reserved: of segments, now */
    int64_t at_peak[EL_SNAPSHOT_N_CAUSES];         /* their sum is the peak */
    struct el_snapshot_place places[EL_SNAPSHOT_PLACES_MAX]; /* the largest first */
    size_t n_places;
};

struct el_snapshot {
    struct el_snapshot_device *devices; /* those that hold or held something */
    size_t n;
};

enum el_status el_snapshot_read(const uint8_t *data, size_t size, const char *name, struct el_snapshot *snapshot_p);
/* Of a file of 1 GiB at most. Blocking. */
enum el_status el_snapshot_read_file(const char *path, struct el_snapshot *snapshot_p);
void el_snapshot_free(struct el_snapshot *snapshot);
