/* The interface of a backend; a new one starts from skeleton.c. Only device.c, program.c and execute*.c call it; they
 * keep the ledger and probe events. Life: usable, open, map..., stream_open..., submit..., stream_close, unmap, close.
 *
 * A synchronous backend's stream is a thread that runs functions in order (`submit`, `copy`). An asynchronous one's is
 * the device's own queue: the program's thread feeds all queues in issue order, and events order them (struct
 * el_async_ops). */
#pragma once

#include "runtime/device/program.h"

/* `to` and `from`: states of the devices that own the memory; NULL: host. */
struct el_copy {
    void *destination, *to;
    const void *source;
    void *from;
    size_t bytes;
    unsigned how; /* enum el_copy_how; 0 */
};

/* None waits unless it says so. Threads: one at a time per device. A later device failure is returned by a following
 * call, at the latest by stream_synchronize. */
struct el_async_ops {
    /* Required. Directs the calling thread to this device. */
    enum el_status (*activate)(void *state);
    /* Required. Queues a copy. A host source is reusable on return (staged by the backend) unless `how` says
     * otherwise; a host destination is filled on return, so this waits. */
    enum el_status (*copy)(void *stream, const struct el_copy *copy);
    /* Optional: default is malloc and free. Pinned host memory. */
    enum el_status (*host_map)(void *state, size_t bytes, void **memory_p);
    void (*host_unmap)(void *state, void *memory);
    /* Optional. Prepares for `n` copies from host memory of bytes[n], all possibly in flight. */
    enum el_status (*prepare_copies)(void *state, const size_t *bytes, int n);
    /* Required. Reusable; `timed`: for event_elapsed. */
    enum el_status (*event_open)(void *state, bool timed, void **event_p);
    void (*event_close)(void *event);
    enum el_status (*event_record)(void *event, void *stream);
    /* Required. Both are timed, of one device, and reached. Nanoseconds. */
    enum el_status (*event_elapsed)(void *from, void *to, int64_t *ns_p);
    /* Required. Later work on `stream` starts after the event's latest record, on any device of the backend. */
    enum el_status (*stream_wait)(void *stream, void *event);
    enum el_status (*stream_synchronize)(void *stream);
    enum el_status (*stream_query)(void *stream, bool *idle_p);
    /* Required. el_kernel_args.native, and the library's own handle for other code; the stream's. */
    const void *(*stream_native)(void *stream);
    void *(*stream_handle)(void *stream);

    /* Optional, all or none. Graphs: recorded work that one launch repeats. Life: graph_prepare..., capture_begin,
     * work, capture_end, graph_launch..., graph_close. */
    /* Before a stream's first capture, once or more: what its libraries need. Allocates. */
    enum el_status (*graph_prepare)(void *stream);
    /* Records the calling thread's work on the stream instead of doing it, and on streams that wait for an event
     * recorded in the capture. Meanwhile nothing may allocate, query or wait. */
    enum el_status (*capture_begin)(void *stream);
    /* Ends it, also after a failure; the stream has joined all others. `graph_p` NULL: discards it. */
    enum el_status (*capture_end)(void *stream, void **graph_p);
    enum el_status (*graph_launch)(void *graph, void *stream);
    void (*graph_close)(void *graph);
};

struct el_device_ops {
    const char *name;    /* Required: prefix of device names */
    const char *summary; /* Required: for `evenload devices` */
    bool simulated;
    bool computes; /* false: kernels are skipped */

    /* Optional: default is usable. EL_ERR_ABSENT with the reason. `n_devices_p`: without sharing. */
    enum el_status (*usable)(int *n_devices_p);
    /* Optional: default is `summary`. Where usable. */
    void (*describe)(char *text, size_t bytes);
    /* Required. */
    enum el_status (*open)(const struct el_device_spec *spec, void **state_p);
    /* Required. Streams are closed, memory is unmapped. */
    void (*close)(void *state);

    /* Required unless simulated. 64-byte aligned, never 0. EL_ERR_HOST_MEMORY or EL_ERR_OOM. */
    enum el_status (*map)(void *state, size_t bytes, uintptr_t *address_p);
    void (*unmap)(void *state, uintptr_t address, size_t bytes);
    /* Optional: default is unknown. See el_device_resident. */
    enum el_status (*resident)(void *state, int64_t *bytes_p);
    /* Optional: default is the mapped bytes. A caching allocator's reservation. */
    int64_t (*reserved)(void *state);
    /* Optional: default is empty. */
    void (*identify)(void *state, struct el_device_identity *identity_p);
    /* Optional: default is none. See el_device_library_memory. */
    int (*library_memory)(void *state, struct el_library_memory *list, int capacity);
    /* Optional: default is el_kernels_cpu(). After open. */
    const struct el_kernel_table *(*kernels)(void *state);
    /* Required unless simulated. Blocking copy, of memory that no stream uses. */
    enum el_status (*move)(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device);

    /* Required unless simulated. An ordered queue. */
    enum el_status (*stream_open)(void *state, int index, void **stream_p);
    void (*stream_close)(void *stream);
    /* Required if synchronous. Runs run(argument) on the stream's thread; returns at once. At most one is pending. */
    void (*submit)(void *stream, void (*run)(void *argument), void *argument);
    /* Required if synchronous. In submit's thread. */
    enum el_status (*copy)(void *destination, const void *source, size_t bytes);

    /* Optional: makes the backend asynchronous. */
    const struct el_async_ops *async;

    /* Required if simulated. An op's virtual time in nanoseconds, alone or `beside` working devices; a collective
     * takes its slowest member's. Errors: EL_ERR_INVALID where unknown. */
    enum el_status (*cost_ns)(void *state, const struct el_op_info *op, bool beside, int64_t *ns_p);
};

extern const struct el_device_ops el_device_cpu, el_device_null, el_device_sim, el_device_cuda;
