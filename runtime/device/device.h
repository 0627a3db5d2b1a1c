/* Devices: memory and streams. Backends implement device_ops.h.
 *
 *     el_device_open(&spec, &device);                      a CPU core, a null or a simulated device, a GPU
 *     el_device_alloc(device, EL_TAG_PARAM, n, "w", &buf); memory that lives across steps, with a tag in the ledger
 *     el_program_...                                       a step's work (program.h)
 *     el_device_write(view, host, n); el_device_read(...)  between steps: tests, initial weights, checkpoints
 *     el_device_free(buf); el_device_close(device);
 *
 * Units: bytes, nanoseconds. A device owns its allocations and streams; views borrow. Threads: one at a time per
 * device; plain queries (name, index, is_...) any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "runtime/base/probe.h"
#include "runtime/base/status.h"

enum { EL_DEVICE_NAME_BYTES = 64, EL_DEVICE_CORES_MAX = 64, EL_DEVICE_STREAMS_MAX = 16 };

struct el_costs;
struct el_cost_use;
struct el_machine;

/* Stream 0 computes; each communicator takes one from stream 1 on (el_device_take_stream). */
enum { EL_STREAM_COMPUTE = 0, EL_STREAM_COMM = 1 };

/* Injected disturbances, known truths for measurements; 0: none. On simulated devices times are virtual, and memory
 * cannot be taken. Delays use no core. */
struct el_inject {
    double delay_ms; /* its part of every step begins later */
    double stretch;  /* factor on its kernels' times, computing */
    char op[48];     /* kernels with this label prefix: factor `op_stretch` */
    double op_stretch;
    char pause[48]; /* ops with this label prefix begin `pause_ms` later */
    double pause_ms;
    double disk_ms;               /* added to each read of its loader */
    int64_t worker_dies_at;       /* the loader's worker of this batch ends; 0: none */
    int64_t kill_step, stop_step; /* its process dies, or stops, before this step; 0: none */
    int64_t come_step;            /* the job is told of a new device */
    double wire_ms_per_mib;       /* added to its collectives per MiB of payload */
    double wrong;                 /* added to the first element of each collective's result */
    int64_t leak_bytes;           /* device memory leaked per step, outside the ledger */
    int64_t most_bytes;           /* limit of both: what the machine can spare */
    int64_t oversize_bytes;       /* likewise, once at opening */
};

struct el_device_spec {
    const char *backend; /* "cpu", "null", "sim", "cuda" */
    int index;           /* within the backend; shared by devices on one GPU */
    int position;        /* within the job */
    int n_cores;         /* compute cores; 0: not bound */
    int cores[EL_DEVICE_CORES_MAX];
    int comm_core;                         /* core of the communication streams + 1; 0: the compute stream's */
    size_t memory_limit_bytes;             /* 0: the machine's */
    const struct el_kernel_table *kernels; /* NULL: the backend's choice */
    bool tf32;                             /* GPUs: matrix products in TF32 */
    struct el_inject inject;
    /* Simulated devices only; may be NULL. Borrowed while open. */
    const struct el_costs *costs;
    struct el_cost_use *cost_use;
    const struct el_machine *machine; /* rates for unmeasured ops; NULL: el_machine_default */
    int data_stride;                  /* positions between members of a group named "data"; 0: 1 */
};

struct el_device;

enum { EL_DEVICE_UUID_BYTES = 48 };
struct el_device_identity {
    char uuid[EL_DEVICE_UUID_BYTES]; /* "GPU-6b8f..."; "MIG-..." for a part of a card */
    char model[96];
    char driver[64];     /* "580.82.07, CUDA 13.0" */
    char libraries[128]; /* "CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0" */
    int capability;      /* of a GPU: 75 is 7.5 */
};

struct el_library_memory {
    const char *name; /* "context", "cuBLAS", "cuDNN": device memory of its own */
    int64_t bytes;
};
enum { EL_LIBRARIES_MAX = 8 };

/* `peak_bytes` is the highest sum, `at_peak_by_tag` its composition. */
struct el_ledger {
    size_t live_bytes;
    size_t peak_bytes;
    size_t live_by_tag[EL_TAG_COUNT];
    size_t at_peak_by_tag[EL_TAG_COUNT];
    size_t peak_by_tag[EL_TAG_COUNT];
};

/* Device memory. `address` is 0 for a step's buffer until its program is planned. Owned by the device, or by the
 * program (a step's); free with el_device_free or el_program_free. */
struct el_buffer {
    struct el_device *device;
    enum el_tag tag;
    size_t bytes;
    const char *name;
    uintptr_t address;
};

/* Buffer and offset, or host memory (buffer NULL, offset the address). */
struct el_view {
    struct el_buffer *buffer;
    uintptr_t offset;
};

static inline struct el_view el_view_of(struct el_buffer *buffer, size_t offset_bytes)
{
    return (struct el_view){.buffer = buffer, .offset = offset_bytes};
}

static inline struct el_view el_view_host(void *host)
{
    return (struct el_view){.buffer = NULL, .offset = (uintptr_t)host};
}

struct el_backend_facts {
    bool computes; /* kernels run: losses and weights are meaningful */
    bool simulated;
    bool gpu;     /* asynchronous streams */
    bool on_host; /* this host's cores and memory */
};
struct el_backend_facts el_backend_facts(const char *backend);

/* Errors: EL_ERR_ABSENT with the reason, EL_ERR_HOST_MEMORY. */
enum el_status el_device_open(const struct el_device_spec *spec, struct el_device **device_p);
/* NULL is legal. */
void el_device_close(struct el_device *device);

const char *el_device_name(const struct el_device *device); /* "cpu:0" */
int el_device_index(const struct el_device *device);
bool el_device_is_simulated(const struct el_device *device);
bool el_device_computes(const struct el_device *device);
/* Layout of conv2d's weights [f,k,k,c] in its kernels; NULL: plain. */
const struct el_weights_layout *el_device_weights_layout(const struct el_device *device, enum el_dtype dtype,
                                                         const int64_t shape[4]);
/* Alignment for operands within a larger buffer, at least 1. */
size_t el_device_alignment(const struct el_device *device, enum el_dtype dtype);
/* Whether a stream of this process did not end after a failure. Then asynchronous devices free nothing, since a call
 * could hang: end the process by _exit. */
bool el_device_is_left(void);
/* The compute cores, borrowed in *cores_p; returns their number, 0: not bound. */
int el_device_cores(const struct el_device *device, const int **cores_p);
void el_device_limit_memory(struct el_device *device, size_t bytes); /* 0: the machine's */
size_t el_device_memory_limit(const struct el_device *device);
const struct el_inject *el_device_inject(const struct el_device *device);
/* Since when (el_clock_ns) a thread is in a call that queues the op `*label_p` on this asynchronous device; 0: in none.
 * *first_p: in its program's first run, where libraries load kernels. Threads: any; the label is valid while it lasts.
 */
int64_t el_device_issuing(const struct el_device *device, const char **label_p, bool *first_p);
/* How many issued ops `op` or `pause` matched. */
int64_t el_device_inject_hits(const struct el_device *device);
/* Mapped for allocations and arenas; exceeds the ledger's peak by the planner's and allocator's overhead. */
int64_t el_device_reserved(const struct el_device *device);
void el_device_identify(const struct el_device *device, struct el_device_identity *identity_p);
/* Libraries' device memory; returns the number filled in list[0..EL_LIBRARIES_MAX). */
int el_device_library_memory(const struct el_device *device, struct el_library_memory *list);
bool el_device_is_host_memory(const struct el_device *device);
/* Native queues; calls get their handle (program.h). */
bool el_device_is_asynchronous(const struct el_device *device);
/* The cudaStream_t, opened if need be. Errors: EL_ERR_ABSENT. */
enum el_status el_device_native_stream(struct el_device *device, int stream, void **native_p);
/* The first free stream from EL_STREAM_COMM on. Between steps. Errors: EL_ERR_INVALID where all EL_DEVICE_STREAMS_MAX
 * - 1 are taken. */
enum el_status el_device_take_stream(struct el_device *device, int *stream_p);
void el_device_give_back_stream(struct el_device *device, int stream);
/* Waits for queued work (synchronous backends: nothing). Only in calls and between steps. Errors: the device's
 * failures. */
enum el_status el_device_stream_synchronize(struct el_device *device, int stream);
/* As above, without waiting. */
enum el_status el_device_stream_check(struct el_device *device, int stream);
/* Later work on `stream` starts after the work queued so far on the other stream. Asynchronous devices of one
 * backend. */
enum el_status el_device_enqueue_wait(struct el_device *device, int stream, struct el_device *other, int other_stream);
/* An event of an asynchronous device; later work of any device of the backend waits for its latest record. */
enum el_status el_device_event_open(struct el_device *device, void **event_p);
void el_device_event_close(struct el_device *device, void *event); /* NULL is legal */
enum el_status el_device_enqueue_record(struct el_device *device, int stream, void *event);
enum el_status el_device_enqueue_wait_event(struct el_device *device, int stream, void *event);
/* Queues a kernel without workspace or preparation; fills in args->native. Errors: EL_ERR_ABSENT. */
enum el_status el_device_enqueue_kernel(struct el_device *device, int stream, enum el_op_kind op, enum el_dtype dtype,
                                        struct el_kernel_args *args);
/* Queues a copy within an asynchronous device's call. Host memory is read before it returns, without pinned memory:
 * allocating that may make CUDA wait for all cards, and so for members that wait for this call. Errors:
 * EL_ERR_INTERNAL. */
enum el_status el_device_enqueue_copy(struct el_device *device, int stream, void *destination,
                                      struct el_device *destination_device, const void *source,
                                      struct el_device *source_device, size_t bytes);
/* In use according to the system (resident pages on CPU devices). Errors: EL_ERR_ABSENT with the reason. */
enum el_status el_device_resident(struct el_device *device, int64_t *bytes_p);

/* Lives across steps; contents undefined. Errors: EL_ERR_OOM beyond the device's limit, naming the tag;
 * EL_ERR_HOST_MEMORY. */
enum el_status el_device_alloc(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               struct el_buffer **buffer_p);
void el_device_free(struct el_buffer *buffer); /* NULL is legal */

/* Device memory mapped by others; release(owner) is called once. */
struct el_lent_memory {
    uintptr_t address;
    void (*release)(void *owner);
    void *owner;
};
/* el_device_alloc of existing memory with all pages present. On failure the memory stays the caller's. */
enum el_status el_device_adopt(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               const struct el_lent_memory *memory, struct el_buffer **buffer_p);
/* Errors: EL_ERR_OOM, as el_device_alloc. */
enum el_status el_device_has_room(const struct el_device *device, enum el_tag tag, size_t bytes, const char *name);

/* Host memory for copies, pinned where the backend can; free by el_device_host_free. Between steps. Errors:
 * EL_ERR_HOST_MEMORY, EL_ERR_OOM. */
enum el_status el_device_host_alloc(struct el_device *device, bool pinned, size_t bytes, void **memory_p);
void el_device_host_free(struct el_device *device, bool pinned, void *memory); /* NULL is legal */

/* Blocking copies, only between steps. No-ops on a simulated device (read gives zeros). */
enum el_status el_device_write(struct el_view destination, const void *host, size_t bytes);
enum el_status el_device_read(struct el_view source, void *host, size_t bytes);

const struct el_ledger *el_device_ledger(const struct el_device *device);
/* Restarts from the live bytes, when warm-up ends. */
void el_device_ledger_reset_peak(struct el_device *device);
/* Restores the peaks of `earlier`, so that an evaluation in between does not count. */
void el_device_ledger_restore_peak(struct el_device *device, const struct el_ledger *earlier);

struct el_backend_info {
    const char *name;
    bool usable;
    int n_devices; /* without sharing a core; 0 for null and sim: any number */
    char detail[256];
};
/* Without sharing; 0: any number. Errors: EL_ERR_ABSENT with the reason. */
enum el_status el_device_count(const char *backend, int *n_p);
/* Usable GPUs; 0 without a driver (CUDA is not loaded then) or card. Errors: EL_ERR_ABSENT: a driver that fails, with
 * its text, so that CPU devices are not used unnoticed. */
enum el_status el_device_gpus(int *n_p);
/* Identifies a GPU without opening it. Errors: EL_ERR_ABSENT, as above. */
enum el_status el_device_gpu_identity(int index, struct el_device_identity *identity_p);
/* Without a GPU, to predict workspaces. Loads CUDA's libraries. Errors: EL_ERR_ABSENT: not built. */
enum el_status el_device_gpu_kernels(const struct el_kernel_table **kernels_p);
/* `cudnn_missing_p`: the reason; NULL: it is there. Loads them. Errors: EL_ERR_ABSENT: not built. */
enum el_status el_device_gpu_libraries(const char **libraries_p, const char **cudnn_missing_p);
/* In registry order; returns their number. */
int el_device_backends(struct el_backend_info *infos, int capacity);
