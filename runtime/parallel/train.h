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
#ifndef EL_TRAIN_H
#define EL_TRAIN_H

#include "runtime/comm/comm.h"
#include "runtime/data/data.h"
#include "runtime/data/safetensors.h"
#include "runtime/device/device.h"
#include "runtime/models/models.h"
#include "runtime/parallel/layout.h"
#include "runtime/parallel/mode_info.h"

/* PyTorch's, where nothing is given. */
enum { EL_BUCKET_FIRST_BYTES = 1 << 20, EL_BUCKET_CAP_BYTES = 25 << 20 };

enum el_optimizer_kind { EL_OPT_SGD, EL_OPT_MOMENTUM, EL_OPT_ADAM };

/* Adam's temporaries, as in PyTorch. Off: one parameter after another, two temporaries of its size each time. On: all
 * parameters in one call, one temporary of each at the same time. */
enum el_foreach { EL_FOREACH_AUTO, EL_FOREACH_OFF, EL_FOREACH_ON };

/* spmg: which devices sum gradients across processes. */
enum el_train_reduce {
    EL_REDUCE_FLAT,        /* all of them */
    EL_REDUCE_HIERARCHICAL /* each process's first, for the others of its process */
};

/* Blocks of further steps after the measured ones: in half of them something is switched off, so that its cost is the
 * difference, found in one process and in turns. Not with epochs: without communication weights mean nothing. */
enum el_control {
    EL_CONTROL_NONE,
    EL_CONTROL_COMM,  /* communication: collectives move nothing and wait for nobody */
    EL_CONTROL_RECORD /* the recorder: no clock is read inside a step, no event is sent */
};
enum { EL_CONTROL_PAIRS_MAX = 256 };

/* What a step belongs to; the hook `segment` reports it. */
enum el_segment {
    EL_SEGMENT_NONE, /* warm-up; the first steps of a block */
    EL_SEGMENT_MEASURED,
    EL_SEGMENT_ON,  /* a control block as usual ... */
    EL_SEGMENT_OFF, /* ... and one with something switched off */
    EL_SEGMENT_COUNT
};

struct el_train_config {
    char mode[16];
    struct el_model_config model; /* resolved */
    enum el_dtype dtype;
    enum el_optimizer_kind optimizer;
    double lr;               /* negative: el_train_default_lr */
    double momentum;         /* EL_OPT_MOMENTUM's alone: Adam takes 0.9, 0.999 and 1e-8 */
    enum el_foreach foreach; /* EL_FOREACH_AUTO: off */
    bool keep_grads;   /* --zero-grad keep: gradients live on and are zeroed; else freed, as torch does since 2.0 */
    bool overlap;      /* ddp: all-reduce during backward */
    bool bucket_view;  /* ddp: gradients are born in the buckets (PyTorch's gradient_as_bucket_view) */
    bool device_graph; /* single, on asynchronous devices: steps that are not recorded are graphs (program.h) */
    bool capture;      /* run the captured step (default); false: issue every step anew (tests) */
    uint64_t seed;
    struct el_loading loading; /* how batches come to be; what is injected there is the devices' to say */
    bool augment;              /* models over images: training images are moved and mirrored */
    int64_t global_batch;
    int n_devices; /* of the job; what the mode makes of them is its layout */
    int n_ranks;   /* data ranks, in modes whose row takes `mesh`; 0: not given */
    int64_t warmup, steps;
    double min_time_s; /* measure at least so long: steps are added; 0: no step more than asked for, no control */
    enum el_control control;
    int control_pairs; /* blocks on and blocks off; together they take about min_time_s */
    int64_t epochs;    /* 0: `steps` steps; else whole epochs, measured all, evaluated after each */
    /* ddp. 0: not given. PyTorch's rule: a given cap is the first bucket's limit too. */
    size_t bucket_first_bytes, bucket_cap_bytes;
    enum el_comm_algorithm comm_algorithm; /* EL_COMM_AUTO: each communicator's choice */
    double comm_timeout_s;                 /* of a collective's wait for others; 0: none */
    bool comm_check;                       /* el_comm_set_checking */
    int64_t n_accumulate;                  /* micro-steps to one of the optimizer; 0: 1 */
    bool sync_params;               /* manual: averages parameters after the optimizer's step, instead of gradients */
    bool find_unused, static_graph; /* ddp: as PyTorch's find_unused_parameters and static_graph, which wins */
    bool broadcast_buffers;         /* ddp and its kin: rank 0's to all before each step (buffers.h) */
    int output_device;              /* dp: position of the device that has the outputs, and their loss */
    bool loss_in_replica;           /* dp: each replica computes the loss of its chunk */
    unsigned dp_fix;                /* dp: what it is not to do, of enum el_dp_fix (dp_fix.h) */
    enum el_train_reduce reduce;
    /* Modes that cut the model. */
    char cut[128];      /* parts.h says how; empty: "time" */
    int64_t n_micro;    /* micro-batches; 0: as many as there are devices, or in the schedule's file */
    char schedule[256]; /* of schedule.h's list, or a FILE.csv; empty: the list's first */
    int parts;          /* a device; 0: the schedule's choice */
    /* The reference's alone (reference.c): pieces in which each share goes forward, 0: 1; and whether all of them
     * change the same running statistics, one after another, or the first one's alone last. */
    int n_pieces;
    bool pieces_in_order;
    bool by_samples;                      /* shares count as their samples do, not all alike */
    const struct el_safetensors *weights; /* to begin with, checked (weights.h); NULL: drawn by the seed */
    const struct el_vectors *vectors;     /* over what was drawn for their words, of the model's width; NULL: none */
};

/* Where this process stands in the job: its devices (all of them, or one of a rank) and its way to the others. */
struct el_train_place {
    struct el_device *const *devices; /* of this process, opened */
    int n_devices;
    struct el_bootstrap *bootstrap; /* size 1: all devices are in this process; else those of its rank */
    const char *comm_kind;          /* between processes: "mpi", "shm", "tcp", "nccl" */
    const struct el_dataset *dataset;
    const char *save; /* a file for the weights after the last measured step, or of the best epoch; NULL: none */
};

/* Called while training runs. All optional. `member` is the position of a device among this process's. */
struct el_train_hooks {
    struct el_probe *probes; /* one a device of this process, or NULL */
    void *context;
    void (*measure_begin)(void *context, int member); /* warm-up is over; peaks have just been reset */
    void (*measure_end)(void *context, int member);   /* the last measured step is over */
    /* The following steps of `member` belong to `segment`: after measure_end, where there are control blocks. */
    void (*segment)(void *context, int member, enum el_segment segment);
    void (*progress)(void *context, double done, double total); /* of the process's first worker; steps */
    /* Before each step of a worker, outside its time; `member`: its first. A failure ends training. */
    enum el_status (*before_step)(void *context, int member);
};

struct el_epoch_result {
    double seconds, train_loss;
    double held_out_accuracy; /* negative: no held-out part */
};

struct el_train_result {
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
    int n_epochs;
    struct el_epoch_result *epochs;
    int best_epoch;       /* by held-out accuracy; -1 */
    double test_accuracy; /* of the best epoch's weights, negative: not evaluated */
    /* Running statistics after the last step, of the whole model: each copy's, one after another, on rank 0; NULL where
     * the model has none, or kernels do not compute. */
    double *buffers;
    int64_t n_buffers;      /* elements of all copies */
    double flops_per_step;  /* all members together: model FLOPs, forward and backward */
    uint64_t param_bytes;   /* P, logical */
    uint64_t trained_bytes; /* of them those that are not frozen */
    bool simulated;
    const char *comm;         /* the communicator, "nccl"; NULL: none */
    char comm_algorithms[32]; /* of the step's collectives: "direct", "direct,ring"; "": there are none */
    struct el_ledger ledgers[EL_MEMBERS_MAX]; /* of this process's devices, over the measured steps alone */
    struct el_load_account *loading;          /* [devices of this process] likewise; no batches: it loads nothing */
};

enum { EL_OWN_LOSSES = 4 };

/* PyTorch's for Adam, 0.001; 0.01 for SGD with and without momentum. */
double el_train_default_lr(enum el_optimizer_kind optimizer);
/* Fills in what was not given (learning rate, buckets, foreach) and checks. Errors: EL_ERR_INVALID naming the option to
 * change. */
enum el_status el_train_check(struct el_train_config *config);
enum el_status el_train(const struct el_train_config *config, const struct el_train_place *place,
                        const struct el_train_hooks *hooks, struct el_train_result *result_p);
void el_train_result_free(struct el_train_result *result);

/* The gate between modes. Loss and gradients of step EL_GATE_STEPS - 1 with a learning rate of 0 (so that ddp's rebuilt
 * buckets are compared too), and running statistics after it: grads are doubles in order of parameters, and behind
 * them those of el_train_result's buffers, on rank 0 (elsewhere NULL); to be freed. el_train_gradients runs the mode;
 * el_train_reference computes on one device what it must give, by the loss of its row. el_train_compare: the worst
 * parameter's relative L2 difference, and its name. */
enum { EL_GATE_STEPS = 2 };
enum el_status el_train_gradients(const struct el_train_config *config, const struct el_train_place *place,
                                  double *loss_p, double **grads_p);
/* el_train_reference_config: what the mode must equal as a configuration of its own, to be trained on one device. */
void el_train_reference_config(const struct el_train_config *config, struct el_train_config *reference_p);
enum el_status el_train_reference(const struct el_train_config *config, struct el_device *device,
                                  const struct el_dataset *dataset, double *loss_p, double **grads_p);
enum el_status el_train_compare(const struct el_train_config *config, const double *grads, const double *reference,
                                double *worst_p, char *name, size_t name_bytes);

/* Peak memory a device by tag, without running or allocating (docs/semantics.md gives the closed forms that it equals).
 * `moment`: the phase of the step that has the peak. */
struct el_memory_forecast {
    struct el_ledger ledger;
    const char *moment;  /* "forward", "backward", "reduce", "optimizer" */
    int activation_sets; /* the most that it holds, of a model in stages; 0: there are none */
};
enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts /* [n_devices] */);

#endif
