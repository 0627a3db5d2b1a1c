/* What a backend gives: the contract for authors. Users read device.h; a new backend starts from skeleton.c.
 *
 * Only device.c, program.c and execute*.c call these hooks, after checking arguments; the ledger and the probe's events
 * are theirs, so a backend knows nothing of tags, phases or recorders. Life: usable, open, map..., stream_open...,
 * submit..., stream_close, unmap, close.
 *
 * There are two kinds. A stream of a synchronous backend is a thread that runs functions in order (`submit`, `copy`).
 * A stream of an asynchronous one is the device's own queue: the thread that runs a program feeds all queues in order
 * of issue, and events order them among each other (struct el_async_ops).
 *
 * A registry row is one backend; see el_backends in device.c.
 */
#pragma once

#include "runtime/device/program.h"

/* One copy. `to` and `from` are the states of the devices whose memory it is; NULL: host memory. */
struct el_copy {
    void *destination, *to;
    const void *source;
    void *from;
    size_t bytes;
    unsigned how; /* of enum el_copy_how; 0 */
};

/* An asynchronous backend's hooks. None of them waits unless it says so. Threads: any, one at a time per device.
 * Errors: a device that fails later says so in one of the calls that follow, at the latest in stream_synchronize. */
struct el_async_ops {
    /* Required. The calling thread's calls go to this device from now on. Called before all hooks below, kernels and
     * calls, whenever the device may have changed. */
    enum el_status (*activate)(void *state);
    /* Required. Queues a copy. A source in host memory may be overwritten when this returns (a staging buffer is the
     * backend's), unless `how` says otherwise; a destination in host memory is filled when it returns, so that this
     * waits. */
    enum el_status (*copy)(void *stream, const struct el_copy *copy);
    /* Optional: default is malloc and free. Pinned memory of the host's. */
    enum el_status (*host_map)(void *state, size_t bytes, void **memory_p);
    void (*host_unmap)(void *state, void *memory);
    /* Optional: default is nothing. Makes beforehand what `n` copies of a program need whose sources are in host
     * memory, all of which may be under way at once: `bytes[n]`. */
    enum el_status (*prepare_copies)(void *state, const size_t *bytes, int n);
    /* Required. An event is a place in a stream; `timed`: elapsed() will be asked. Made beforehand, used many times. */
    enum el_status (*event_open)(void *state, bool timed, void **event_p);
    void (*event_close)(void *event);
    enum el_status (*event_record)(void *event, void *stream);
    /* Required. Both events are timed, of one device, and reached. Units: nanoseconds. */
    enum el_status (*event_elapsed)(void *from, void *to, int64_t *ns_p);
    /* Required. What is queued on `stream` from now on starts after the event's latest record; it may be of another
     * device of the same backend. */
    enum el_status (*stream_wait)(void *stream, void *event);
    /* Required. Waits until the stream is empty. */
    enum el_status (*stream_synchronize)(void *stream);
    /* Required. Whether it is empty just now. */
    enum el_status (*stream_query)(void *stream, bool *idle_p);
    /* Required. What kernels get as el_kernel_args.native, and the library's own stream for foreign code; both the
     * stream's. */
    const void *(*stream_native)(void *stream);
    void *(*stream_handle)(void *stream);

    /* Graphs: what a stream was given once, to be done again by one launch. Optional, all or none: default is that the
     * backend has none. Life: graph_prepare..., capture_begin, what streams are given, capture_end, graph_launch...,
     * graph_close. */
    /* Once or more often, before a stream's first capture: what its libraries need for one. Allocates. */
    enum el_status (*graph_prepare)(void *stream);
    /* What the calling thread gives the stream from now on is noted and not done; so it is on streams that wait for an
     * event that was recorded in a capture. Meanwhile nothing may be allocated, asked or waited for. */
    enum el_status (*capture_begin)(void *stream);
    /* Ends it, after a failure too. The stream has waited for all others. `graph_p`: NULL: what was noted is dropped.
     */
    enum el_status (*capture_end)(void *stream, void **graph_p);
    enum el_status (*graph_launch)(void *graph, void *stream);
    void (*graph_close)(void *graph);
};

struct el_device_ops {
    const char *name;    /* Required: the word before the colon in a device's name */
    const char *summary; /* Required: for `evenload devices` */
    bool simulated;      /* no memory, no time: programs are resolved in virtual time */
    bool computes;       /* kernels run; false: they are skipped */

    /* Optional: default is usable. EL_ERR_ABSENT with the reason. `n_devices_p`: how many can be opened without
     * sharing. */
    enum el_status (*usable)(int *n_devices_p);
    /* Optional: default is `summary`. One line for `evenload devices` where it is usable. */
    void (*describe)(char *text, size_t bytes);
    /* Required. Called once per device. */
    enum el_status (*open)(const struct el_device_spec *spec, void **state_p);
    /* Required. All streams are closed and all memory is unmapped. */
    void (*close)(void *state);

    /* Required unless simulated. Device memory, 64-byte aligned, never 0. EL_ERR_HOST_MEMORY or EL_ERR_OOM. */
    enum el_status (*map)(void *state, size_t bytes, uintptr_t *address_p);
    void (*unmap)(void *state, uintptr_t address, size_t bytes);
    /* Optional: default is that nobody knows. Bytes that the system says this device's memory takes just now. */
    enum el_status (*resident)(void *state, int64_t *bytes_p);
    /* Optional: default is what is mapped. Bytes that the backend holds for what was mapped: a caching allocator's. */
    int64_t (*reserved)(void *state);
    /* Optional: default is that there is none. Fills in what tells this piece of hardware from all others. */
    void (*identify)(void *state, struct el_device_identity *identity_p);
    /* Optional: default is none. What libraries take of the device's memory for themselves; returns how many of
     * list[0..capacity) it filled. */
    int (*library_memory)(void *state, struct el_library_memory *list, int capacity);
    /* Optional: default is el_kernels_cpu(). The backend's own kernels; after open. */
    const struct el_kernel_table *(*kernels)(void *state);
    /* Required unless simulated. Blocking copies, of memory that no stream works on now. `host_to_device`: which
     * address is which. */
    enum el_status (*move)(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device);

    /* Required unless simulated. A stream is an ordered queue: of functions, with a thread of its own, or the device's.
     */
    enum el_status (*stream_open)(void *state, int index, void **stream_p);
    void (*stream_close)(void *stream);
    /* Required unless simulated or asynchronous. Queues run(argument) on the stream's thread and returns at once. At
     * most one is pending. */
    void (*submit)(void *stream, void (*run)(void *argument), void *argument);
    /* Required unless simulated or asynchronous. One copy, within submit's thread. */
    enum el_status (*copy)(void *destination, const void *source, size_t bytes);

    /* Optional: what makes a backend an asynchronous one. */
    const struct el_async_ops *async;

    /* Required if simulated. What an op takes in virtual time, asked when its program ends, alone and `beside` other
     * devices that work; of a collective's members the longest counts for all. Units: nanoseconds. Errors:
     * EL_ERR_INVALID where it is not known. */
    enum el_status (*cost_ns)(void *state, const struct el_op_info *op, bool beside, int64_t *ns_p);
};

extern const struct el_device_ops el_device_cpu, el_device_null, el_device_sim, el_device_cuda;
