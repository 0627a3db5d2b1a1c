/* NCCL's profiler interface, versions 3 to 5, which NCCL from 2.26 on looks up as ncclProfiler_v5 and so on in
 * NCCL_PROFILER_PLUGIN's library. Layouts are NCCL's (ext-profiler in its sources), with the parts that we read.
 * Versions 1 and 2 (NCCL 2.23 to 2.25) do not report kernels.
 *
 *     init          a communicator opens; returns the wanted events as bits
 *     start_event   returns an opaque handle; NULL: none
 *     stop_event    of a call: the host has queued it; of a channel: its kernel has ended, from the proxy thread
 *     record_state  of a channel in version 4 and 5: the GPU's time of its end
 *     finalize      the communicator closes */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    EL_NCCL_EVENT_COLLECTIVE = 1 << 1,
    EL_NCCL_EVENT_P2P = 1 << 2,
    EL_NCCL_EVENT_CHANNEL = 1 << 6,
    EL_NCCL_STATE_CHANNEL_STOP = 22
};

struct el_nccl_collective {
    uint64_t number; /* of its kind in the communicator */
    const char *function;
    const void *sent;
    void *received;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
};

struct el_nccl_p2p {
    const char *function;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels; /* from version 4 */
};

struct el_nccl_channel {
    uint8_t channel;
    uint64_t gpu_ns; /* from version 4: GPU clock at the begin */
};

/* Version 4's type is one byte of it. */
struct el_nccl_event_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct el_nccl_collective collective;
        struct el_nccl_p2p p2p;
        struct el_nccl_channel channel;
    };
};

/* Only calls name their communicator. */
struct el_nccl_event_v3 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t communicator;
            union {
                struct el_nccl_collective collective;
                struct el_nccl_p2p p2p;
            };
        };
        struct el_nccl_channel channel;
    };
};

union el_nccl_state {
    uint64_t gpu_ns;
};

#define EL_NCCL_PROFILER(version, event, ...)                                                                          \
    struct el_nccl_profiler_##version {                                                                                \
        const char *name;                                                                                              \
        int (*init)(__VA_ARGS__);                                                                                      \
        int (*start_event)(void *context, void **handle_p, struct event *event);                                       \
        int (*stop_event)(void *handle);                                                                               \
        int (*record_state)(void *handle, int state, union el_nccl_state *arguments);                                  \
        int (*finalize)(void *context);                                                                                \
    };                                                                                                                 \
    extern const struct el_nccl_profiler_##version ncclProfiler_##version

EL_NCCL_PROFILER(v3, el_nccl_event_v3, void **context_p, int *mask_p);
/* NCCL's last argument writes into its log. */
EL_NCCL_PROFILER(v4, el_nccl_event_v5, void **context_p, int *mask_p, const char *name, uint64_t communicator,
                 int nodes, int ranks, int rank, void (*log)(void));
EL_NCCL_PROFILER(v5, el_nccl_event_v5, void **context_p, uint64_t communicator, int *mask_p, const char *name,
                 int nodes, int ranks, int rank, void (*log)(void));
