/* Training one configuration in any mode.
 *
 *     el_train_check(&config);                        ranges and combinations
 *     el_layout_of(&config, n_processes, &layout);    devices, shares and threads (layout.h)
 *     el_train(&config, &place, &hooks, &result);     trains; several workers of this process get a thread each
 *     el_train_result_free(&result);
 *
 * Units: nanoseconds, seconds, bytes, FLOPs. Blocking. Collective over the bootstrap's ranks, with the same
 * configuration. Threads: one call at a time per set of devices; workers' threads call hooks for their own members.
 * Ownership: config, place and hooks must outlive the call; the result is the caller's. Errors: the first failure of
 * any member; all members stop, and no result is written. */
#pragma once

#include "runtime/device/device.h"
#include "runtime/layout/config.h"
#include "runtime/layout/layout.h"
#include "runtime/modes/mode_info.h"
#include "runtime/train/checkpoint.h"

/* What a step belongs to, for the hook `segment`. */
enum el_segment {
    EL_SEGMENT_NONE,
    EL_SEGMENT_MEASURED,
    EL_SEGMENT_ON,
    EL_SEGMENT_OFF, /* a control block with something off */
    EL_SEGMENT_COUNT
};

struct el_train_place {
    struct el_device *const *devices;
    int n_devices;
    struct el_bootstrap *bootstrap; /* size 1: all devices are in this process; else those of its rank */
    const char *comm_kind;          /* between processes: "mpi", "shm", "tcp", "nccl" */
    const struct el_dataset *dataset;
    const char *save; /* file for the weights of the best epoch or the last measured step; NULL: none */
    struct el_checkpoint_spec checkpoint;
};

/* Called during training; all optional. `member`: a device's position in this process. */
struct el_train_hooks {
    struct el_probe *probes;
    void *context;
    void (*measure_begin)(void *context, int member); /* warm-up is over; peaks are reset */
    void (*measure_end)(void *context, int member);
    /* The next steps of `member` belong to `segment`: control blocks, after measure_end. */
    void (*segment)(void *context, int member, enum el_segment segment);
    void (*progress)(void *context, double done, double total); /* in steps, by the process's first worker */
    /* Before each step of a worker, outside its time; `member`: its first. A failure ends training. */
    enum el_status (*before_step)(void *context, int member, int64_t step);
};

/* A rank's counts in an evaluation; loss: their sum. */
struct el_score {
    double correct, counted, loss;
    double bytes; /* of text, if tokens are of a text */
};

/* One split's evaluation. Ranks: the evaluating ones, in the order of their parts. */
struct el_evaluation {
    int64_t samples;
    int n_ranks; /* 0: not evaluated */
    struct el_score *ranks;
    struct el_score all; /* the sum over ranks; if each evaluated the whole split, the first one's */
    double accuracy;     /* of `all`; negative: not evaluated */
    bool own_buffers;    /* each rank normalized by its own running statistics */
};

struct el_epoch_result {
    double seconds, train_loss;
    struct el_evaluation held_out;
};

/* What a device's routers did with its tokens in the measured steps, over layers: counts[step][2][experts] are choices,
 * and those that were not dropped. experts 0: unknown, or no routers. */
struct el_routed {
    int64_t experts, layers, n_steps;
    int64_t *counts;
    int64_t beyond[2]; /* bytes sent and received in these steps beyond the ops' */
    /* Its own: steps with room; counters before the step, and now. */
    int64_t room, last_beyond[2];
    int32_t *last;
};

struct el_train_result {
    int64_t start; /* steps before the first one here, made before resuming */
    int64_t n_steps, n_warmup;
    int64_t *step_ns, *warmup_step_ns; /* of this process's first worker */
    int64_t *wall_ns; /* measured steps from before each until its loss is read: one iteration of a loop */
    /* Event recording makes steps on asynchronous devices longer: only measured steps of odd number (from 0) are
     * recorded. False: all are. */
    bool alternates;
    int64_t n_graph_steps; /* measured steps launched as a graph */
    bool settled;          /* warm-up ended because steps settled; false: at its limit, or not checked */
    int n_control_pairs, control_steps;
    double control_on_ns[EL_CONTROL_PAIRS_MAX], control_off_ns[EL_CONTROL_PAIRS_MAX]; /* a block's mean step */
    double *loss;    /* n_warmup + n_steps: each step's loss by the mode's definition; mean over workers */
    bool loss_valid; /* false if kernels do not compute */
    /* The first n_own steps before averaging over workers: own_loss[w * n_own + step]. NULL unless several workers all
     * have a loss. */
    double *own_loss;
    int n_own, n_own_workers;
    struct el_checkpoint_result checkpoints;
    int n_epochs;
    struct el_epoch_result *epochs;
    int best_epoch; /* by held-out accuracy; -1: none */
    struct el_evaluation test;
    /* Running statistics after the last step: each copy of the model's, on rank 0; NULL if the model has none or
     * kernels do not compute. */
    double *buffers;
    int64_t n_buffers;      /* elements of all copies */
    double flops_per_step;  /* of all members: model FLOPs, forward and backward; mean of the measured steps */
    uint64_t param_bytes;   /* P, logical */
    uint64_t trained_bytes; /* without frozen parameters */
    bool simulated;
    const char *comm;                /* the communicator, "nccl"; NULL: none */
    char comm_algorithms[32];        /* of the step's collectives: "direct", "direct,ring"; "": none */
    struct el_ledger *ledgers;       /* [devices of this process]: over the measured steps */
    struct el_load_account *loading; /* likewise; no batches: it loads nothing */
    struct el_routed *routed;        /* likewise */
    int n_routed;
};

enum { EL_OWN_LOSSES = 4 };

/* PyTorch's for Adam and AdamW, 0.001; 0.01 for SGD with and without momentum. */
double el_train_default_lr(enum el_optimizer_kind optimizer);
/* PyTorch's for AdamW, 0.01; else 0. */
double el_train_default_weight_decay(enum el_optimizer_kind optimizer);
/* Checks, and fills in defaults (learning rate, weight decay, buckets, foreach). Errors: EL_ERR_INVALID naming the
 * option to change. */
enum el_status el_train_check(struct el_train_config *config);
enum el_status el_train(const struct el_train_config *config, const struct el_train_place *place,
                        const struct el_train_hooks *hooks, struct el_train_result *result_p);
void el_train_result_free(struct el_train_result *result);

/* el_train with the last step's gradients: doubles in the order of parameters, on rank 0 (elsewhere NULL); the caller
 * frees them. Needs config.keep_grads. */
enum el_status el_train_with_grads(const struct el_train_config *config, const struct el_train_place *place,
                                   const struct el_train_hooks *hooks, struct el_train_result *result_p,
                                   double **grads_p);
