/* The configuration of training. el_train_check (runtime/train/train.h) fills in defaults and checks it.
 * Units: samples, bytes, seconds. Ownership: a plain value; its pointers must outlive its users. Threads: any, once
 * checked. */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/data/data.h"
#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"
#include "runtime/models/models.h"

enum { EL_BUCKET_FIRST_BYTES = 1 << 20, EL_BUCKET_CAP_BYTES = 25 << 20 };

enum el_optimizer_kind { EL_OPT_SGD, EL_OPT_MOMENTUM, EL_OPT_ADAM, EL_OPT_ADAMW };

/* Adam's temporaries, as in PyTorch. Off: two of a parameter's size, one parameter at a time. On: one call for all
 * parameters, one temporary of each at once. */
enum el_foreach { EL_FOREACH_AUTO, EL_FOREACH_OFF, EL_FOREACH_ON };

/* Blocks of steps after the measured ones, alternately with something off, whose cost is the difference. Not with
 * epochs: steps without communication spoil the weights. */
enum el_control {
    EL_CONTROL_NONE,
    EL_CONTROL_COMM,  /* collectives neither move data nor wait */
    EL_CONTROL_RECORD /* no clock is read within a step, no event is recorded */
};
/* What a rank evaluates: its part of the split, each sample once; its part of the split padded as by PyTorch's
 * DistributedSampler; or the whole split with its own weights and buffers. */
enum el_eval { EL_EVAL_EXACT, EL_EVAL_PADDED, EL_EVAL_EACH };
/* A rank's weight in the step's mean: by its samples, or equal, as in PyTorch's DistributedDataParallel. Auto: by
 * samples if shares are given. */
enum el_share_weights { EL_SHARE_WEIGHTS_AUTO, EL_SHARE_WEIGHTS_SAMPLES, EL_SHARE_WEIGHTS_EQUAL };
enum { EL_CONTROL_PAIRS_MAX = 256, EL_MODE_SETTINGS_BYTES = 64 };

/* The type in which gradients are sent; none: as stored. */
enum el_hook { EL_HOOK_NONE, EL_HOOK_F32, EL_HOOK_F16, EL_HOOK_BF16 };

struct el_train_config {
    char mode[16];
    struct el_model_config model;
    enum el_dtype dtype; /* of everything that model.precision leaves in full */
    enum el_hook hook;
    enum el_products products; /* CPU devices, f32 */
    enum el_optimizer_kind optimizer;
    double lr;               /* negative: el_train_default_lr */
    double weight_decay;     /* for EL_OPT_ADAMW only; negative: el_train_default_weight_decay */
    double clip;             /* limit of all gradients' norm; 0: none */
    double momentum;         /* for EL_OPT_MOMENTUM only; Adam uses 0.9, 0.999 and 1e-8 */
    enum el_foreach foreach; /* EL_FOREACH_AUTO: off */
    bool keep_grads;         /* --zero-grad keep: keep and zero gradients; else free them, torch's default since 2.0 */
    bool overlap;
    bool bucket_view;  /* ddp: gradients are in the buckets (PyTorch's gradient_as_bucket_view) */
    bool device_graph; /* single and ddp on asynchronous devices: unrecorded steps are graphs (program.h) */
    bool capture;      /* repeat the captured step (default); false: issue every step (tests) */
    uint64_t seed;
    struct el_loading loading; /* how batches are made; injections there are the devices' */
    bool length_by_batch;      /* pad training batches to their longest sentence, not to `seq` */
    bool bucket_lengths;
    int64_t global_batch;
    int n_devices;           /* in the job; the mode's layout assigns them */
    int mesh[EL_AXIS_COUNT]; /* devices along each axis, for modes with `--mesh`; 0: not given */
    int64_t warmup, steps;
    double min_time_s; /* minimum measured time, by adding steps; 0: no added steps, no control */
    enum el_control control;
    int control_pairs; /* blocks on and blocks off; in total they take about min_time_s */
    int64_t epochs;    /* 0: `steps` steps; else whole epochs, all measured, evaluated after each */
    enum el_eval eval;
    size_t bucket_first_bytes, bucket_cap_bytes;
    enum el_comm_algorithm comm_algorithm;
    double comm_timeout_s; /* for a collective's wait; 0: no limit */
    bool comm_check;
    int64_t n_accumulate;    /* micro-steps per optimizer step; 0: 1 */
    struct el_shares shares; /* of the batch: for dp's devices, other modes' ranks */
    enum el_share_weights share_weights;
    bool by_samples;  /* resolved: means of ranks, micro-steps and dp's replicas are weighted by samples */
    bool sync_params; /* manual: average parameters after the optimizer's step, not gradients */
    bool find_unused;
    bool broadcast_buffers; /* ddp and similar: rank 0's to all before each step (buffers.h) */
    bool loss_in_replica;
    unsigned dp_fix; /* dp: behaviours to leave out, of enum el_dp_fix (dp/fix.h) */
    int unit;        /* zero1 to zero3: enum el_unit_kind (units.h) */
    int zero;        /* resolved: ZeRO's stage, 1 to 3; 0: other modes */
    /* Modes that cut the model. */
    char cut[128];      /* see parts.h; empty: "time" */
    int64_t n_micro;    /* micro-batches; 0: the number of devices, or the schedule file's */
    char schedule[256]; /* a name of schedule.h's list, or FILE.csv; empty: the list's first */
    int parts;          /* per device; 0: the schedule's choice */
    bool by_tokens;     /* tensor parallelism: pieces have 1/n of the tokens between cut layers (graph.h) */
    _Alignas(8) unsigned char settings[EL_MODE_SETTINGS_BYTES]; /* the mode's own (modes/option.h); 0: defaults */
    /* For the reference only (reference.c): pieces of each share's forward (0: 1), and whether all update the same
     * running statistics in order, or only the first, last. */
    int n_pieces;
    bool pieces_in_order;
    const struct el_safetensors *weights; /* initial ones, checked (weights.h); NULL: drawn by the seed */
};

/* The types of stored parameters and gradients, of parameters in passes, and of reduced gradients. */
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
