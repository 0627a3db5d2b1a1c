/* A step's replicas while it is issued: what dp's files share, and spmg, whose workers do the same with the batch of
 * each. Nobody else includes it. */
#ifndef EL_DP_H
#define EL_DP_H

#include "runtime/parallel/buckets.h"
#include "runtime/parallel/mode.h"
#include "runtime/parallel/share.h"

/* torch's comm.broadcast_coalesced and reduce_add_coalesced work in chunks of this size. */
enum { EL_DP_CHUNK_BYTES = 10 << 20 };

struct el_dp {
    struct el_worker *worker;
    struct el_program *program;            /* of the step being issued */
    int n;                                 /* devices used: there may be fewer chunks of the batch than devices */
    struct el_feed *feed;                  /* of the micro-step being issued */
    int micro;                             /* its number */
    int64_t batch;                         /* samples of the worker's */
    int64_t sizes[EL_MEMBERS_MAX];         /* samples of each */
    struct el_comm *comms[EL_MEMBERS_MAX]; /* among the devices used */
    int n_chunks;                          /* of the parameters */
    int *chunk_of;                         /* [n_params] */
    size_t *place;                         /* [n_params]: in its chunk, in bytes */
    int output;                            /* the one that has the outputs, or the losses */
    bool in_replica;                       /* each replica has a loss */
    struct el_buffer *losses;              /* on that one, from step to step; NULL: the master's own */
    struct el_view labels[EL_MEMBERS_MAX];
    struct el_view inputs[EL_MEMBERS_MAX], outputs[EL_MEMBERS_MAX], doutputs[EL_MEMBERS_MAX];
    struct el_pass *passes[EL_MEMBERS_MAX];
    struct el_view *params[EL_MEMBERS_MAX];            /* [n_params]; the master's are the originals */
    struct el_view *grads[EL_MEMBERS_MAX];             /* [n_params] */
    struct el_buffer **replicas[EL_MEMBERS_MAX];       /* by chunk: flat storage of the parameters */
    struct el_view *buffers[EL_MEMBERS_MAX];           /* [n_buffers]; the master's are the originals */
    struct el_buffer *replica_buffers[EL_MEMBERS_MAX]; /* the others' memory, of a step */
    struct el_buffer **results;                        /* by chunk: a micro-step's sums on the master */
    struct el_buffer **sums;                           /* those of all its micro-steps so far */
    struct el_buffer *gathered;                        /* outputs, or the losses' gradients */
    void (*grad_ready)(void *context, int param);      /* of a replica, as in el_pass_spec; NULL: nobody asks */
    void *contexts[EL_MEMBERS_MAX];                    /* by replica */
};

/* The only one that holds anything between steps. */
static inline const struct el_shard *el_dp_master(const struct el_dp *dp)
{
    return &dp->worker->members[0].shard;
}

static inline struct el_device *el_dp_device(const struct el_dp *dp, int m)
{
    return dp->worker->members[m].shard.device;
}

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

/* A step's parts, in this order; el_dp_end frees what the replicas hold but for parameters and gradients. `gathered`
 * is the caller's to free. */
void el_dp_bring_labels(struct el_dp *dp, struct el_buffer *labels); /* as the feed gave them: on the master, or NULL */
void el_dp_scatter_inputs(struct el_dp *dp, struct el_buffer *inputs);
enum el_status el_dp_forward(struct el_dp *dp);
void el_dp_loss(struct el_dp *dp);
void el_dp_backward(struct el_dp *dp);
void el_dp_end(struct el_dp *dp);
/* A part of el_dp_end: labels and gradients of outputs. */
void el_dp_free_loss(struct el_dp *dp);

/* Sends the parameters to the other devices; params[] are set. */
void el_dp_replicate(struct el_dp *dp);
void el_dp_free_params(struct el_dp *dp); /* and buffers */
/* The same of its buffers, of which replicas change their own copies. Where these live from step to step buffers[] is
 * set by the caller, who sends them. */
void el_dp_replicate_buffers(struct el_dp *dp);
void el_dp_send_buffers(struct el_dp *dp);
/* Sums the replicas' gradients on the master, frees them, adds them to those of earlier micro-steps, and gives what the
 * optimizer is to use: free that with el_dp_free_grads. */
void el_dp_reduce(struct el_dp *dp, struct el_view *grads);
void el_dp_free_grads(struct el_dp *dp, const struct el_view *grads);

/* Elements of chunk c, and how many tensors it has. */
int64_t el_dp_chunk_count(const struct el_dp *dp, int c, int *n_tensors_p);
/* Copies between the tensors of chunk c and a flat buffer on member m's device, on its compute stream. */
void el_dp_flatten(struct el_dp *dp, int m, int c, enum el_phase phase, const struct el_view *tensors,
                   struct el_buffer *flat);

#endif
