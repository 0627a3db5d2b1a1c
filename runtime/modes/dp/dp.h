/* A step's replicas while it is issued: what dp's files share, and spmg, whose workers do the same with the batch of
 * each. Nobody else includes it. */
#pragma once

#include "runtime/gradients/reducer.h"
#include "runtime/modes/dp/fix.h"
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

/* torch's comm.broadcast_coalesced and reduce_add_coalesced work in chunks of this size. */
enum { EL_DP_CHUNK_BYTES = 10 << 20 };

/* ---- options.c ---- */
extern const struct el_mode_option *const el_dp_options[];
void el_dp_resolve(struct el_train_config *config);
enum el_status el_dp_check(struct el_train_config *config, const struct el_layout *layout);
/* Position of the one that has the outputs, and their loss. */
int el_dp_output_device(const struct el_train_config *config);

/* A device of the step. The master's arrays are the originals, the others' its copies. */
struct el_dp_replica {
    int64_t samples;
    struct el_comm *comm; /* among the devices used */
    struct el_pass *pass;
    struct el_view inputs, labels, outputs, doutputs;
    struct el_view *params, *grads;     /* [n_params] */
    struct el_view *buffers;            /* [n_buffers] */
    struct el_buffer **chunks;          /* flat storage of the parameters */
    struct el_buffer *own_buffers;      /* those of a step; NULL on an owner */
    struct el_buffer **results, **sums; /* an owner's, by chunk: a micro-step's sums, and those of all so far */
    struct el_buffer *loss, *flat;      /* while they are issued: its own loss; a chunk's gradients */
    struct el_reducer *reducer;         /* with the fix `overlap`; else NULL */
    void *context;                      /* of grad_ready */
};

struct el_dp {
    struct el_worker *worker;
    struct el_program *program;                      /* of the step being issued */
    int n;                                           /* devices used: there may be fewer chunks of the batch */
    struct el_dp_replica *replica;                   /* [n] */
    unsigned fix;                                    /* of enum el_dp_fix; on one device there is nothing to fix */
    struct el_feed *feed;                            /* the master's, of the micro-step being issued */
    int micro;                                       /* its number */
    int64_t batch;                                   /* samples of the worker's */
    int n_chunks;                                    /* of the parameters */
    int *chunk_of;                                   /* [n_params] */
    size_t *place;                                   /* [n_params]: in its chunk, in bytes */
    int output;                                      /* the one that has the outputs, or the losses */
    bool in_replica;                                 /* each replica has a loss */
    struct el_buffer *losses;                        /* on that one, from step to step; NULL: the master's own */
    struct el_buffer *loaded_inputs, *loaded_labels; /* by the master; NULL: it has none */
    struct el_buffer *gathered;                      /* outputs, or the losses' gradients */
    void (*grad_ready)(void *context, int param);    /* of a replica, as in el_pass_spec; NULL: nobody asks */
};

/* The only one that holds anything between steps, but for the fix `update`. */
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

/* Those that hold the model between steps: the first so many. */
static inline int el_dp_owners(const struct el_dp *dp)
{
    return el_dp_fixed(dp, EL_DP_FIX_UPDATE) ? dp->n : 1;
}

/* dp's own, with fixes or without. */
void el_dp_layout(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);

/* Copies between two members' devices, on the compute stream of the one that receives, after what the sender was given
 * so far. */
void el_dp_copy(struct el_dp *dp, enum el_phase phase, const char *label, int to, struct el_view destination, int from,
                struct el_view source, size_t bytes);

/* The first `n` devices of a worker, and a communicator among them; parameters go out in chunks of at most so many
 * bytes. `dp` is all zeros, and to be closed after a failure too. */
enum el_status el_dp_open(struct el_dp *dp, struct el_worker *worker, int n, size_t chunk_bytes);
void el_dp_close(struct el_dp *dp);
void el_dp_mute(struct el_dp *dp, bool muted);

/* Where the loss is; else on the master, of gathered outputs. After el_dp_open. `losses` is el_dp_close's to free. */
enum el_status el_dp_open_loss(struct el_dp *dp, int output, bool in_replica);
/* The last step's. Between steps. */
enum el_status el_dp_read_loss(const struct el_dp *dp, double *loss_p);

/* What loads for member m. */
struct el_feed *el_dp_feed_of(const struct el_dp *dp, int m);
/* Labels come to where the loss is from the host, and not to the master with the inputs. */
bool el_dp_brings_labels(const struct el_dp *dp);

/* A step's parts, in this order; el_dp_end frees what the replicas hold but for parameters and gradients,
 * el_dp_free_batch what the master loaded, and gathered outputs. */
void el_dp_feed(struct el_dp *dp);
enum el_status el_dp_forward(struct el_dp *dp);
void el_dp_loss(struct el_dp *dp);
void el_dp_backward(struct el_dp *dp);
void el_dp_end(struct el_dp *dp);
void el_dp_free_batch(struct el_dp *dp);
/* A part of el_dp_end: labels and gradients of outputs. */
void el_dp_free_loss(struct el_dp *dp);

/* Sends the parameters to the other devices; params[] are set. */
void el_dp_replicate(struct el_dp *dp);
void el_dp_free_params(struct el_dp *dp); /* and buffers */
/* The same of its buffers, of which replicas change their own copies. Where these live from step to step buffers[] is
 * set by the caller, who sends them. */
void el_dp_replicate_buffers(struct el_dp *dp);
void el_dp_send_buffers(struct el_dp *dp);
/* Sums the replicas' gradients on the owners, frees them, adds them to those of earlier micro-steps, and gives what
 * each owner's optimizer is to use, its shard's `issued`: free that with el_dp_free_grads. */
void el_dp_reduce(struct el_dp *dp);
void el_dp_free_grads(struct el_dp *dp);

/* Chunk c as one piece: its elements and bytes, of which `padding_bytes` lie between its tensors. */
struct el_dp_chunk {
    int n_tensors;
    int64_t count;
    size_t bytes, padding_bytes;
};
struct el_dp_chunk el_dp_chunk(const struct el_dp *dp, int c);
/* Copies between the tensors of chunk c and a flat buffer on member m's device, on its compute stream. */
void el_dp_flatten(struct el_dp *dp, int m, int c, enum el_phase phase, const struct el_view *tensors,
                   struct el_buffer *flat);
