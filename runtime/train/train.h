/* Training: one configuration, every mode, from devices to numbers. This is what the harness calls.
 *
 *     el_train_check(&config);                        ranges and combinations
 *     el_layout_of(&config, n_processes, &layout);    which devices, shares and threads that makes (layout.h)
 *     el_train(&config, &place, &hooks, &result);     trains; several workers of this process get a thread each
 *     el_train_result_free(&result);
 *
 * Units: nanoseconds, seconds, bytes, FLOPs. Timing: blocking.
 * Collective: with a bootstrap of several ranks all of them call el_train with the same configuration.
 * Threads: one call at a time a set of devices; hooks are called by the workers' threads, each for its own members.
 * Ownership: config, place and hooks must last as long as the call; the result is the caller's.
 * Errors: the first failure of any member; all members stop (a failed worker aborts the world's communicator), and no
 * result is written.
 */
#pragma once

#include "runtime/device/device.h"
#include "runtime/layout/config.h"
#include "runtime/layout/layout.h"
#include "runtime/modes/mode_info.h"
#include "runtime/train/checkpoint.h"

/* What a step belongs to; the hook `segment` reports it. */
enum el_segment {
    EL_SEGMENT_NONE, /* warm-up; the first steps of a block */
    EL_SEGMENT_MEASURED,
    EL_SEGMENT_ON,  /* a control block as usual ... */
    EL_SEGMENT_OFF, /* ... and one with something switched off */
    EL_SEGMENT_COUNT
};

/* Where this process stands in the job: its devices (all of them, or one of a rank) and its way to the others. */
struct el_train_place {
    struct el_device *const *devices; /* of this process, opened */
    int n_devices;
    struct el_bootstrap *bootstrap; /* size 1: all devices are in this process; else those of its rank */
    const char *comm_kind;          /* between processes: "mpi", "shm", "tcp", "nccl" */
    const struct el_dataset *dataset;
    const char *save; /* a file for the weights after the last measured step, or of the best epoch; NULL: none */
    struct el_checkpoint_spec checkpoint;
};

/* Called while training runs. All optional. `member` is the position of a device among this process's. */
struct el_train_hooks {
    struct el_probe *probes; /* one per device of this process, or NULL */
    void *context;
    void (*measure_begin)(void *context, int member); /* warm-up is over; peaks have just been reset */
    void (*measure_end)(void *context, int member);   /* the last measured step is over */
    /* The following steps of `member` belong to `segment`: after measure_end, where there are control blocks. */
    void (*segment)(void *context, int member, enum el_segment segment);
    void (*progress)(void *context, double done, double total); /* of the process's first worker; steps */
    /* Before each step of a worker, outside its time; `member`: its first. A failure ends training. */
    enum el_status (*before_step)(void *context, int member, int64_t step);
};

/* What a rank has counted in an evaluation; its loss is the sum over them. */
struct el_score {
    double correct, counted, loss;
    double bytes; /* of text, that what was counted stands for, where it is tokens of one */
};

/* Of one split. Ranks: those who evaluate, in the order of their parts of it. */
struct el_evaluation {
    int64_t samples; /* of the split */
    int n_ranks;     /* 0: not evaluated */
    struct el_score *ranks;
    struct el_score all; /* what counts: the sum over ranks, or, where each has evaluated the whole, the first one's */
    double accuracy;     /* of them; negative: not evaluated */
    bool own_buffers;    /* each rank normalized by its own running statistics */
};

struct el_epoch_result {
    double seconds, train_loss;
    struct el_evaluation held_out;
};

struct el_train_result {
    int64_t start; /* steps before the first one here, made by the job whose checkpoint this one went on from */
    int64_t n_steps, n_warmup;
    int64_t *step_ns, *warmup_step_ns; /* of this process's first worker */
    int64_t *wall_ns; /* the measured steps again, from before each until its loss is read: what one loop lasts */
    /* On asynchronous devices events on the streams record a step and make it longer: of measured steps 0, 1, 2 ...
     * those with odd numbers are recorded and the others not. False: all are. */
    bool alternates;
    int64_t n_graph_steps; /* measured steps that were a graph's launch */
    bool settled;          /* warm-up ended because steps had settled; false: at its limit, or not checked */
    int n_control_pairs, control_steps; /* pairs of blocks, steps in a block */
    double control_on_ns[EL_CONTROL_PAIRS_MAX], control_off_ns[EL_CONTROL_PAIRS_MAX]; /* a block's mean step */
    double *loss;    /* n_warmup + n_steps: each step's loss, as the mode's row has it; mean over workers */
    bool loss_valid; /* false where kernels do not compute */
    /* The first n_own steps again, before workers average them: own_loss[w * n_own + step]. NULL where only one worker
     * has a loss, or not all have. */
    double *own_loss;
    int n_own, n_own_workers;
    struct el_checkpoint_result checkpoints;
    int n_epochs;
    struct el_epoch_result *epochs;
    int best_epoch;            /* by held-out accuracy; -1 */
    struct el_evaluation test; /* of the best epoch's weights */
    /* Running statistics after the last step, of the whole model: each copy's, one after another, on rank 0; NULL where
     * the model has none, or kernels do not compute. */
    double *buffers;
    int64_t n_buffers;      /* elements of all copies */
    double flops_per_step;  /* all members together: model FLOPs, forward and backward; mean of the measured steps */
    uint64_t param_bytes;   /* P, logical */
    uint64_t trained_bytes; /* of them those that are not frozen */
    bool simulated;
    const char *comm;                /* the communicator, "nccl"; NULL: none */
    char comm_algorithms[32];        /* of the step's collectives: "direct", "direct,ring"; "": there are none */
    struct el_ledger *ledgers;       /* [devices of this process]: over the measured steps alone */
    struct el_load_account *loading; /* likewise; no batches: it loads nothing */
};

enum { EL_OWN_LOSSES = 4 };

/* PyTorch's for Adam and AdamW, 0.001; 0.01 for SGD with and without momentum. */
double el_train_default_lr(enum el_optimizer_kind optimizer);
/* PyTorch's for AdamW, 0.01; the others have none. */
double el_train_default_weight_decay(enum el_optimizer_kind optimizer);
/* Fills in what was not given (learning rate, weight decay, buckets, foreach) and checks. Errors: EL_ERR_INVALID naming
 * the option to change. */
enum el_status el_train_check(struct el_train_config *config);
enum el_status el_train(const struct el_train_config *config, const struct el_train_place *place,
                        const struct el_train_hooks *hooks, struct el_train_result *result_p);
void el_train_result_free(struct el_train_result *result);

/* el_train, and the last step's gradients too: doubles in order of parameters, on rank 0 (elsewhere NULL); to be freed.
 * They are kept where config.keep_grads says so. */
enum el_status el_train_with_grads(const struct el_train_config *config, const struct el_train_place *place,
                                   const struct el_train_hooks *hooks, struct el_train_result *result_p,
                                   double **grads_p);
