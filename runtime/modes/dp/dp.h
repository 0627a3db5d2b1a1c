/* A step's replicas while it is issued; internal to dp's files and spmg. */
#pragma once

#include "runtime/gradients/reducer.h"
#include "runtime/modes/dp/fix.h"
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

/* The chunk size of torch's comm.broadcast_coalesced and reduce_add_coalesced. */
enum { EL_DP_CHUNK_BYTES = 10 << 20 };

extern const struct el_mode_option *const el_dp_options[];
void el_dp_resolve(struct el_train_config *config);
enum el_status el_dp_check(struct el_train_config *config, const struct el_layout *layout);
/* The device with the outputs and the loss. */
int el_dp_output_device(const struct el_train_config *config);

/* A device of the step. The master has the originals, others copies. */
struct el_dp_replica {
    int64_t samples;
    struct el_comm *comm;
    struct el_pass *pass;
    struct el_view inputs, labels, outputs, doutputs;
    struct el_view *params, *grads;
    struct el_view *buffers;
    struct el_buffer **chunks;          /* flat storage of the parameters */
    struct el_buffer *own_buffers;      /* in a step; NULL on an owner */
    struct el_buffer **results, **sums; /* an owner's, by chunk: sums of a micro-step, and of all so far */
    struct el_buffer *loss, *flat;      /* while issued: its own loss; a chunk's gradients */
    struct el_reducer *reducer;         /* with the fix `overlap`; else NULL */
    void *context;                      /* for grad_ready */
};

struct el_dp {
    struct el_worker *worker;
    struct el_program *program;
    int n; /* devices used, at most the batch's chunks */
    struct el_dp_replica *replica;
    unsigned fix;         /* bits of enum el_dp_fix; 0 on one device */
    struct el_feed *feed; /* the master's, in the current micro-step */
    int micro;
    int64_t batch; /* the worker's samples */
    int n_chunks;
    int *chunk_of;
    size_t *place;                                   /* [n_params]: offset in the chunk, in bytes */
    int output;                                      /* device of the outputs or losses */
    bool in_replica;                                 /* each replica has a loss */
    struct el_buffer *losses;                        /* there, kept across steps; NULL: the master's own */
    struct el_buffer *loaded_inputs, *loaded_labels; /* by the master; NULL: none */
    struct el_buffer *gathered;
    void (*grad_ready)(void *context, int param); /* for a replica, as in el_pass_spec; NULL: none */
};

/* The only one with state between steps, except with the fix `update`. */
static inline const struct el_shard *el_dp_master(const struct el_dp *dp)
{
    return &dp->worker->members[0].shard;
}

static inline struct el_device *el_dp_device(const struct el_dp *dp, int m)
{
    return dp->worker->members[m].shard.device;
}

static inline bool el_dp_fixed(const struct el_dp *dp, enum el_dp_fix fix)
{
    return dp->fix & fix;
}

/* Number of devices with the model between steps: the first ones. */
static inline int el_dp_owners(const struct el_dp *dp)
{
    return el_dp_fixed(dp, EL_DP_FIX_UPDATE) ? dp->n : 1;
}

void el_dp_layout(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);

/* Copies between members' devices on the receiver's compute stream, after the sender's ops so far. */
void el_dp_copy(struct el_dp *dp, enum el_phase phase, const char *label, int to, struct el_view destination, int from,
                struct el_view source, size_t bytes);

/* Uses a worker's first `n` devices, with a communicator; parameters go out in chunks of at most chunk_bytes. `dp` is
 * zeroed; close it after a failure too. */
enum el_status el_dp_open(struct el_dp *dp, struct el_worker *worker, int n, size_t chunk_bytes);
void el_dp_close(struct el_dp *dp);
void el_dp_mute(struct el_dp *dp, bool muted);

/* Chooses the loss's device (default: the master, of gathered outputs). After el_dp_open; el_dp_close frees
 * `losses`. */
enum el_status el_dp_open_loss(struct el_dp *dp, int output, bool in_replica);
/* Of a replica's sample in the loss. */
double el_dp_sample_weight(const struct el_dp *dp, int m);
enum el_status el_dp_read_loss(const struct el_dp *dp, double *loss_p);

struct el_feed *el_dp_feed_of(const struct el_dp *dp, int m);
/* Labels go from the host to the loss's device, not to the master with the inputs. */
bool el_dp_brings_labels(const struct el_dp *dp);

/* A step's parts in order. el_dp_end frees the replicas' memory except parameters and gradients; el_dp_free_batch frees
 * the master's batch and gathered outputs. */
void el_dp_feed(struct el_dp *dp);
enum el_status el_dp_forward(struct el_dp *dp);
void el_dp_loss(struct el_dp *dp);
void el_dp_backward(struct el_dp *dp);
void el_dp_end(struct el_dp *dp);
void el_dp_free_batch(struct el_dp *dp);
/* Part of el_dp_end: labels and the outputs' gradients. */
void el_dp_free_loss(struct el_dp *dp);

/* Sends the parameters to the other devices and sets params[]. */
void el_dp_replicate(struct el_dp *dp);
void el_dp_free_params(struct el_dp *dp); /* and buffers */
/* The same for buffers; replicas change their own copies. If they live across steps, the caller sets buffers[] and
 * sends them. */
void el_dp_replicate_buffers(struct el_dp *dp);
void el_dp_send_buffers(struct el_dp *dp);
/* Sums the replicas' gradients on the owners, frees them, adds earlier micro-steps', and sets each owner's `issued`
 * gradients: free them with el_dp_free_grads. */
void el_dp_reduce(struct el_dp *dp);
void el_dp_free_grads(struct el_dp *dp);

/* Chunk c: its elements and bytes, including `padding_bytes` between tensors. */
struct el_dp_chunk {
    int n_tensors;
    int64_t count;
    size_t bytes, padding_bytes;
};
struct el_dp_chunk el_dp_chunk(const struct el_dp *dp, int c);
/* Copies between chunk c's tensors and a flat buffer on member m's device, on its compute stream. */
void el_dp_flatten(struct el_dp *dp, int m, int c, enum el_phase phase, const struct el_view *tensors,
                   struct el_buffer *flat);
