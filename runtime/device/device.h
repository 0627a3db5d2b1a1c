/* Devices: a place with its own memory and its own streams. What users of devices need; authors of backends read
 * device_ops.h.
 *
 *     el_device_open(&spec, &device);                      a CPU core, a null or a simulated device, a GPU
 *     el_device_alloc(device, EL_TAG_PARAM, n, "w", &buf); memory that lives across steps, with a tag in the ledger
 *     el_program_...                                       a step's work (program.h)
 *     el_device_write(view, host, n); el_device_read(...)  between steps: tests, initial weights, checkpoints
 *     el_device_free(buf); el_device_close(device);
 *
 * Units: bytes, nanoseconds where a name says so. Ownership: a device owns its allocations and streams; views and
 * buffers are borrowed. Threads: one thread at a time per device, except that its streams work by themselves; questions
 * without side effects (name, index, is_...) any.
 */
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

/* Stream 0 computes; from stream 1 on each communicator of a device has one of its own (el_device_take_stream). */
enum { EL_STREAM_COMPUTE = 0, EL_STREAM_COMM = 1 };

/* Disturbances injected on a device: known answers for what measures. All 0: none. On simulated devices times
 * are virtual, and memory cannot be taken. */
struct el_inject {
    double delay_ms; /* its part of every step begins so much later; no core is used meanwhile */
    double stretch;  /* its kernels take so many times their time, computing */
    char op[48];     /* kernels whose label begins so take `op_stretch` times their time */
    double op_stretch;
    char pause[48]; /* ops whose label begins so take `pause_ms` longer; no core is used meanwhile */
    double pause_ms;
    double disk_ms;               /* each read of its loader takes so much longer; no core is used meanwhile */
    int64_t worker_dies_at;       /* the loader's worker that is to make this batch ends; 0: none */
    int64_t kill_step, stop_step; /* the process that has it open dies, or stops, before this step; 0: none */
    int64_t come_step;            /* the job is told that a device has come */
    double wire_ms_per_mib; /* its collectives take so much longer for each MiB of payload; no core is used meanwhile */
    double wrong;           /* is added to the first number that each collective leaves on it */
    int64_t leak_bytes;     /* of device memory, taken in every step and never given back; no ledger knows of it */
    int64_t most_bytes;     /* what both may take together: no more than the machine has to give */
    int64_t oversize_bytes; /* likewise, once, when the device is opened */
};

struct el_device_spec {
    const char *backend; /* "cpu", "null", "sim", "cuda" */
    int index;           /* within the backend: cpu:0, cpu:1; of several on one GPU: the same */
    int position;        /* within the job: 0 is the first device of the list; names it in spans */
    int n_cores;         /* cores this device computes on; 0: not bound */
    int cores[EL_DEVICE_CORES_MAX];
    int comm_core;             /* the communication streams' own core + 1; 0: it shares the compute stream's */
    size_t memory_limit_bytes; /* 0: no limit but the machine's */
    const struct el_kernel_table *kernels; /* NULL: the backend's own choice */
    bool tf32;                             /* GPUs: matrix work in TF32 instead of f32 */
    struct el_inject inject;
    /* Simulated devices only; all may be NULL. Who opens the device keeps them as long as it is open. */
    const struct el_costs *costs;     /* measured times (costs.h) */
    struct el_cost_use *cost_use;     /* adds up what times rest on */
    const struct el_machine *machine; /* rates where nothing was measured (machine.h), read when ops are priced; NULL:
                                         el_machine_default */
    int data_stride;                  /* from a member of a group named "data" to the next, in positions; 0: 1 */
};

struct el_device;

/* What tells a piece of hardware from all others, and what it is called. Empty where a backend has nothing to tell. */
enum { EL_DEVICE_UUID_BYTES = 48 };
struct el_device_identity {
    char uuid[EL_DEVICE_UUID_BYTES]; /* "GPU-6b8f...": the same in every process and for every tool; "MIG-..." of a part
                                        of a card */
    char model[96];                  /* "NVIDIA H200" */
    char driver[64];                 /* "580.82.07, CUDA 13.0" */
    char libraries[128];             /* "CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0" */
    int capability;                  /* of a GPU's machine code: 75 is 7.5 */
};

/* Device memory that a library takes for itself when it starts. */
struct el_library_memory {
    const char *name; /* "context", "cuBLAS", "cuDNN" */
    int64_t bytes;
};
enum { EL_LIBRARIES_MAX = 8 };

/* Live and peak bytes per tag. `peak_bytes` is the highest sum; `at_peak_by_tag` is how it was made up, and sums to it.
 */
struct el_ledger {
    size_t live_bytes;
    size_t peak_bytes;
    size_t live_by_tag[EL_TAG_COUNT];
    size_t at_peak_by_tag[EL_TAG_COUNT];
    size_t peak_by_tag[EL_TAG_COUNT];
};

/* Device memory. `address` is 0 for a step's buffer until its program has been planned. Ownership: the device's
 * (persistent) or the program's (a step's); free with el_device_free or el_program_free. */
struct el_buffer {
    struct el_device *device;
    enum el_tag tag;
    size_t bytes; /* logical: what was asked for */
    const char *name;
    uintptr_t address;
};

/* A place in a buffer, or in host memory (buffer NULL, offset the address). */
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

/* What a kind of device is; of a name that is none, nothing. */
struct el_backend_facts {
    bool computes;  /* kernels run: losses and weights mean something */
    bool simulated; /* in virtual time, without memory */
    bool gpu;       /* memory of its own, and streams that go on by themselves */
    bool on_host;   /* memory of this host, and its cores */
};
struct el_backend_facts el_backend_facts(const char *backend);

/* Errors: EL_ERR_ABSENT (backend unknown or not usable here, with the reason), EL_ERR_HOST_MEMORY. */
enum el_status el_device_open(const struct el_device_spec *spec, struct el_device **device_p);
/* NULL is legal. Frees what is still allocated. */
void el_device_close(struct el_device *device);

const char *el_device_name(const struct el_device *device); /* "cpu:0" */
int el_device_index(const struct el_device *device);        /* within its backend: 3 of "cuda:3" */
bool el_device_is_simulated(const struct el_device *device);
/* false: kernels do not compute (null, sim), so losses mean nothing. */
bool el_device_computes(const struct el_device *device);
/* How its kernels store conv2d's weights [f,k,k,c] of this type; NULL: plain. */
const struct el_weights_layout *el_device_weights_layout(const struct el_device *device, enum el_dtype dtype,
                                                         const int64_t shape[4]);
/* Where operands of this type should begin that are views of a larger piece: its kernels' alignment, at least 1. */
size_t el_device_alignment(const struct el_device *device, enum el_dtype dtype);
/* Whether streams of some device of this process did not end after a failure. Then no asynchronous device's streams,
 * memory and pinned memory are given back, as each call that does may wait for ever: the process is to end by _exit. */
bool el_device_is_left(void);
/* The cores it computes on, in *cores_p (borrowed); returns how many, 0: not bound. */
int el_device_cores(const struct el_device *device, const int **cores_p);
/* 0: no limit but the machine's. */
void el_device_limit_memory(struct el_device *device, size_t bytes);
size_t el_device_memory_limit(const struct el_device *device);
const struct el_inject *el_device_inject(const struct el_device *device);
/* How many ops were issued whose label `op` or `pause` names. */
int64_t el_device_inject_hits(const struct el_device *device);
/* What is mapped for all that the ledger counts: allocations, and the arenas of programs. A gap to the ledger's peak is
 * the planner's, and a caching allocator's. */
int64_t el_device_reserved(const struct el_device *device);
void el_device_identify(const struct el_device *device, struct el_device_identity *identity_p);
/* What libraries hold of its memory besides; returns how many of list[0..EL_LIBRARIES_MAX) it filled. */
int el_device_library_memory(const struct el_device *device, struct el_library_memory *list);
/* Whether the host may read and write its memory through addresses: not on GPUs. */
bool el_device_is_host_memory(const struct el_device *device);
/* Whether its streams are the device's own queues: then calls get their native stream (program.h). */
bool el_device_is_asynchronous(const struct el_device *device);
/* A stream as its library knows it (cudaStream_t), opened if need be. Errors: EL_ERR_ABSENT where there is none. */
enum el_status el_device_native_stream(struct el_device *device, int stream, void **native_p);
/* A stream that nobody else has, the first free one from EL_STREAM_COMM on, until it is given back. Between steps.
 * Errors: EL_ERR_INVALID where EL_DEVICE_STREAMS_MAX - 1 are taken. */
enum el_status el_device_take_stream(struct el_device *device, int *stream_p);
void el_device_give_back_stream(struct el_device *device, int stream);
/* Waits until all that was queued on a stream is done; nothing to do on synchronous backends. Only in calls and between
 * steps. Errors: what failed on the device since. */
enum el_status el_device_stream_synchronize(struct el_device *device, int stream);
/* EL_OK, or what failed on the device; does not wait. On synchronous backends EL_OK. */
enum el_status el_device_stream_check(struct el_device *device, int stream);
/* What is queued on `stream` from now on starts after what has been queued on the other device's stream so far. Only on
 * asynchronous devices of one backend. */
enum el_status el_device_enqueue_wait(struct el_device *device, int stream, struct el_device *other, int other_stream);
/* A place in a stream of an asynchronous device that later work can wait for, of this device or of another of its
 * backend: made once, recorded again and again; who waits waits for the latest record. */
enum el_status el_device_event_open(struct el_device *device, void **event_p);
void el_device_event_close(struct el_device *device, void *event); /* NULL is legal */
enum el_status el_device_enqueue_record(struct el_device *device, int stream, void *event);
enum el_status el_device_enqueue_wait_event(struct el_device *device, int stream, void *event);
/* Queues a kernel that needs neither workspace nor preparation. args->native is filled in. Errors: EL_ERR_ABSENT. */
enum el_status el_device_enqueue_kernel(struct el_device *device, int stream, enum el_op_kind op, enum el_dtype dtype,
                                        struct el_kernel_args *args);
/* Queues a copy within a call of an asynchronous device, on one of the caller's streams; views are of any device of the
 * backend. Memory of the host is read before it returns, without pinned memory of the backend's: CUDA may wait for all
 * cards before it gives such memory, so for other members that wait for this call. Errors: EL_ERR_INTERNAL. */
enum el_status el_device_enqueue_copy(struct el_device *device, int stream, void *destination,
                                      struct el_device *destination_device, const void *source,
                                      struct el_device *source_device, size_t bytes);
/* What the system says that the device's memory takes just now: resident pages on CPU devices. It cannot tell of what;
 * the ledger can. Errors: EL_ERR_ABSENT with the reason (simulated; a system that does not say). */
enum el_status el_device_resident(struct el_device *device, int64_t *bytes_p);

/* Allocates memory that lives across steps. Contents are undefined.
 * Errors: EL_ERR_OOM beyond the device's limit, naming the tag; EL_ERR_HOST_MEMORY. */
enum el_status el_device_alloc(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               struct el_buffer **buffer_p);
/* NULL is legal. */
void el_device_free(struct el_buffer *buffer);

/* Memory of a device that somebody else has mapped, and how it goes back: release(owner), once. */
struct el_lent_memory {
    uintptr_t address;
    void (*release)(void *owner);
    void *owner;
};
/* As el_device_alloc, of memory that is there already, and all of it in pages that are present: the ledger counts it,
 * el_device_free gives it back. Errors: as el_device_alloc; then the memory stays the caller's. */
enum el_status el_device_adopt(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               const struct el_lent_memory *memory, struct el_buffer **buffer_p);
/* Whether so much more is within the device's limit. Errors: EL_ERR_OOM, as el_device_alloc would say it. */
enum el_status el_device_has_room(const struct el_device *device, enum el_tag tag, size_t bytes, const char *name);

/* Memory of the host's that is copied to the device: pinned, where the backend knows of such, or any. Between steps.
 * Ownership: the caller's, el_device_host_free. Errors: EL_ERR_HOST_MEMORY, EL_ERR_OOM. */
enum el_status el_device_host_alloc(struct el_device *device, bool pinned, size_t bytes, void **memory_p);
void el_device_host_free(struct el_device *device, bool pinned, void *memory); /* NULL is legal */

/* Copies between host and device; blocking; only between steps. No-ops on a simulated device (read gives zeros). */
enum el_status el_device_write(struct el_view destination, const void *host, size_t bytes);
enum el_status el_device_read(struct el_view source, void *host, size_t bytes);

const struct el_ledger *el_device_ledger(const struct el_device *device);
/* Starts the peak anew from what is live: call when warm-up ends. */
void el_device_ledger_reset_peak(struct el_device *device);
/* Takes the peaks back to those of `earlier`: what came between (an evaluation, an exchange of figures) does not count.
 */
void el_device_ledger_restore_peak(struct el_device *device, const struct el_ledger *earlier);

/* One line for `evenload devices`: whether the backend can be used here, and why not. */
struct el_backend_info {
    const char *name;
    bool usable;
    int n_devices;    /* that can be opened without sharing a core; 0 for null and sim: any number */
    char detail[256]; /* what it is, or why it is missing */
};
/* How many devices of a backend can be opened without sharing; 0: any number. Errors: EL_ERR_ABSENT with the reason. */
enum el_status el_device_count(const char *backend, int *n_p);
/* How many GPUs this process can use; 0 where there is no driver, and then nothing of CUDA is loaded, or no card. A
 * driver that is there and fails is a failure, so that nobody takes CPU devices without knowing. Errors: EL_ERR_ABSENT
 * with the driver's words. */
enum el_status el_device_gpus(int *n_p);
/* What tells the GPU with this index from all others, without opening it. Errors: EL_ERR_ABSENT, as above. */
enum el_status el_device_gpu_identity(int index, struct el_device_identity *identity_p);
/* The kernels of GPUs, without having one: what they take in workspaces, for forecasts. Loads CUDA's libraries. Errors:
 * EL_ERR_ABSENT where they were not built. */
enum el_status el_device_gpu_kernels(const struct el_kernel_table **kernels_p);
/* CUDA's libraries in words, and why cuDNN is missing (NULL: it is there). Loads them. Errors:
 * EL_ERR_ABSENT where they were not built. */
enum el_status el_device_gpu_libraries(const char **libraries_p, const char **cudnn_missing_p);
/* The backends in the order of the registry; returns how many. */
int el_device_backends(struct el_backend_info *infos, int capacity);
