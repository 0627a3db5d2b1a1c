/* The configuration of training: what a job is to do, whatever does it. el_train_check (runtime/train/train.h) fills in
 * what was not given and checks it; all rooms above read it.
 *
 * Units: samples, bytes, seconds. Ownership: a plain value; what it points to must outlive whoever reads it.
 * Threads: any, once it is checked.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/data/data.h"
#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"
#include "runtime/models/models.h"

/* PyTorch's, where nothing is given. */
enum { EL_BUCKET_FIRST_BYTES = 1 << 20, EL_BUCKET_CAP_BYTES = 25 << 20 };

enum el_optimizer_kind { EL_OPT_SGD, EL_OPT_MOMENTUM, EL_OPT_ADAM, EL_OPT_ADAMW };

/* Adam's temporaries, as in PyTorch. Off: one parameter after another, two temporaries of its size each time. On: all
 * parameters in one call, one temporary of each at the same time. */
enum el_foreach { EL_FOREACH_AUTO, EL_FOREACH_OFF, EL_FOREACH_ON };

/* Blocks of further steps after the measured ones: in half of them something is switched off, so that its cost is the
 * difference, found in one process and in turns. Not with epochs: without communication weights mean nothing. */
enum el_control {
    EL_CONTROL_NONE,
    EL_CONTROL_COMM,  /* communication: collectives move nothing and wait for nobody */
    EL_CONTROL_RECORD /* the recorder: no clock is read inside a step, no event is sent */
};
/* What a rank evaluates: its part of the split, each sample once; the same, but the split is padded, as PyTorch's
 * DistributedSampler does; or all of it, with its own weights and buffers. */
enum el_eval { EL_EVAL_EXACT, EL_EVAL_PADDED, EL_EVAL_EACH };
/* What a rank's mean counts in the step's: as its samples do, or as much as any other's, as with PyTorch's
 * DistributedDataParallel. Auto: by samples where shares are given. */
enum el_share_weights { EL_SHARE_WEIGHTS_AUTO, EL_SHARE_WEIGHTS_SAMPLES, EL_SHARE_WEIGHTS_EQUAL };
enum { EL_CONTROL_PAIRS_MAX = 256, EL_MODE_SETTINGS_BYTES = 64 };

/* In which type gradients are sent; none: as they are stored. */
enum el_hook { EL_HOOK_NONE, EL_HOOK_F32, EL_HOOK_F16, EL_HOOK_BF16 };

struct el_train_config {
    char mode[16];
    struct el_model_config model; /* resolved */
    enum el_dtype dtype;          /* of all that model.precision leaves in full */
    enum el_hook hook;
    enum el_optimizer_kind optimizer;
    double lr;               /* negative: el_train_default_lr */
    double weight_decay;     /* EL_OPT_ADAMW's alone; negative: el_train_default_weight_decay */
    double clip;             /* the most that the norm of all gradients may be; 0: any */
    double momentum;         /* EL_OPT_MOMENTUM's alone: Adam takes 0.9, 0.999 and 1e-8 */
    enum el_foreach foreach; /* EL_FOREACH_AUTO: off */
    bool keep_grads;   /* --zero-grad keep: gradients live on and are zeroed; else freed, as torch does since 2.0 */
    bool overlap;      /* ddp: all-reduce during backward */
    bool bucket_view;  /* ddp: gradients are born in the buckets (PyTorch's gradient_as_bucket_view) */
    bool device_graph; /* single and ddp, on asynchronous devices: steps that are not recorded are graphs (program.h) */
    bool capture;      /* run the captured step (default); false: issue every step anew (tests) */
    uint64_t seed;
    struct el_loading loading; /* how batches come to be; what is injected there is the devices' to say */
    bool length_by_batch; /* training's batches are padded to their own longest sentence, not to the model's `seq` */
    bool bucket_lengths;  /* they have sentences of similar length */
    int64_t global_batch;
    int n_devices;           /* of the job; what the mode makes of them is its layout */
    int mesh[EL_AXIS_COUNT]; /* devices along each axis, in modes that have `--mesh`; 0: not given */
    int64_t warmup, steps;
    double min_time_s; /* measure at least so long: steps are added; 0: no step more than asked for, no control */
    enum el_control control;
    int control_pairs; /* blocks on and blocks off; together they take about min_time_s */
    int64_t epochs;    /* 0: `steps` steps; else whole epochs, measured all, evaluated after each */
    enum el_eval eval;
    size_t bucket_first_bytes, bucket_cap_bytes;
    enum el_comm_algorithm comm_algorithm; /* EL_COMM_AUTO: each communicator's choice */
    double comm_timeout_s;                 /* of a collective's wait for others; 0: none */
    bool comm_check;                       /* el_comm_set_checking */
    int64_t n_accumulate;                  /* micro-steps to one of the optimizer; 0: 1 */
    struct el_shares shares;               /* of the batch: dp's devices', other modes' ranks' */
    enum el_share_weights share_weights;
    bool by_samples;        /* resolved: means of ranks, micro-steps and dp's replicas count as their samples do */
    bool sync_params;       /* manual: averages parameters after the optimizer's step, instead of gradients */
    bool find_unused;       /* ddp: as PyTorch's find_unused_parameters */
    bool broadcast_buffers; /* ddp and its kin: rank 0's to all before each step (buffers.h) */
    bool loss_in_replica;   /* dp: each replica computes the loss of its chunk */
    unsigned dp_fix;        /* dp: what it is not to do, of enum el_dp_fix (dp_fix.h) */
    int unit;               /* zero1 to zero3: enum el_unit_kind (units.h) */
    int zero;               /* resolved: ZeRO's stage, 1 to 3; 0: in other modes */
    /* Modes that cut the model. */
    char cut[128];      /* parts.h says how; empty: "time" */
    int64_t n_micro;    /* micro-batches; 0: as many as there are devices, or in the schedule's file */
    char schedule[256]; /* of schedule.h's list, or a FILE.csv; empty: the list's first */
    int parts;          /* a device; 0: the schedule's choice */
    bool by_tokens;     /* pieces across the layers have 1/n of the tokens between them (graph.h) */
    _Alignas(8) unsigned char settings[EL_MODE_SETTINGS_BYTES]; /* the mode's own (modes/option.h); 0: as usual */
    /* The reference's alone (reference.c): pieces in which each share goes forward, 0: 1; and whether all of them
     * change the same running statistics, one after another, or the first one's alone last. */
    int n_pieces;
    bool pieces_in_order;
    const struct el_safetensors *weights; /* to begin with, checked (weights.h); NULL: drawn by the seed */
};

/* In which type parameters and their gradients are stored, passes take parameters, and gradients are reduced. */
static inline enum el_dtype el_config_stored(const struct el_train_config *config)
{
    return config->model.precision == EL_PRECISION_BF16_PURE ? EL_BF16 : config->dtype;
}
static inline enum el_dtype el_config_computed(const struct el_train_config *config)
{
    return el_param_dtype(config->model.precision, config->dtype);
}
static inline enum el_dtype el_config_reduced(const struct el_train_config *config)
{
    switch (config->hook) {
    case EL_HOOK_F32:
        return EL_F32;
    case EL_HOOK_F16:
        return EL_F16;
    case EL_HOOK_BF16:
        return EL_BF16;
    default:
        return el_config_stored(config);
    }
}
