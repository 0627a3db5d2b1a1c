/* Options that several modes have. */
#include "runtime/layout/schedule.h"
#include "runtime/modes/option.h"

#define ELSEWHERE(words) .name = (words), .kind = EL_MODE_ELSEWHERE

const struct el_mode_option el_mode_procs = {ELSEWHERE("procs")}, el_mode_mesh = {ELSEWHERE("mesh")},
                            el_mode_bucket_mb = {ELSEWHERE("bucket-mb"), .of_copies = true},
                            el_mode_first_bucket_mb = {ELSEWHERE("first-bucket-mb"), .of_copies = true};

const struct el_mode_option el_mode_shares = {
    .name = "shares",
    .argument = "W,W...",
    .help = "a weight for each device (dp) or rank: its part of the batch, by largest remainder; a list of trials: "
            "equal/3,1 (models in stages: --cut)",
    .kind = EL_MODE_SHARES,
    EL_MODE_FIELD(shares),
    .initial = ""};

const struct el_mode_option el_mode_share_weights = {
    .name = "share-weights",
    .argument = "HOW",
    .help = "what a rank's gradients count: samples: as its samples do, so that any shares train as one device; equal: "
            "all alike, as in PyTorch's DDP; auto: samples with --shares, else equal (dp: with --loss-in replica)",
    .kind = EL_MODE_CHOICE,
    EL_MODE_FIELD(share_weights),
    .choices = "auto|samples|equal",
    .initial = "auto"};

const struct el_mode_option el_mode_overlap = {.name = "overlap",
                                               .argument = "HOW",
                                               .help = "all-reduce during backward",
                                               .kind = EL_MODE_SWITCH,
                                               EL_MODE_FIELD(overlap),
                                               .choices = "off|on",
                                               .initial = "on",
                                               .of_copies = true};

const struct el_mode_option el_mode_comm_hook = {
    .name = "comm-hook",
    .argument = "HOOK",
    .help =
        "type of gradients in buckets: f16 and bf16 are PyTorch's fp16_compress_hook and bf16_compress_hook and send "
        "half of f32's bytes; f32 is the reduce_dtype of its MixedPrecision",
    .kind = EL_MODE_CHOICE,
    EL_MODE_FIELD(hook),
    .choices = "none|f32|f16|bf16",
    .initial = "none",
    .label = "",
    .of_copies = true};

const struct el_mode_option el_mode_accumulate = {
    .name = "accumulate",
    .argument = "N",
    .help = "micro-steps per optimizer step; gradients accumulate on each device, and the last micro-step synchronizes "
            "them, as with PyTorch's no_sync (dp: each micro-step does)",
    .kind = EL_MODE_COUNT,
    EL_MODE_FIELD(n_accumulate),
    .initial = "1",
    .min = 1,
    .max = 1024};

const struct el_mode_option el_mode_find_unused = {
    .name = "find-unused",
    .argument = "HOW",
    .help = "find parameters without gradients in every step, as PyTorch's find_unused_parameters: one more "
            "all-reduce, and buckets are never rebuilt",
    .kind = EL_MODE_SWITCH,
    EL_MODE_FIELD(find_unused),
    .choices = "off|on",
    .initial = "off"};

const struct el_mode_option el_mode_broadcast_buffers = {
    .name = "broadcast-buffers",
    .argument = "HOW",
    .help = "send rank 0's buffers (batch norm's running statistics) to all ranks before each step's forward, as "
            "PyTorch's broadcast_buffers (from 2.13 on forward_sync_buffers); models in stages: with --mesh",
    .kind = EL_MODE_SWITCH,
    EL_MODE_FIELD(broadcast_buffers),
    .choices = "off|on",
    .initial = "on",
    .absent = "off",
    .of_copies = true};

const struct el_mode_option el_mode_cut = {
    .name = "cut",
    .argument = "WHERE",
    .help = "first node of each part after the first, comma-separated, or what to balance: time, memory or nodes",
    .kind = EL_MODE_TEXT,
    EL_MODE_FIELD(cut),
    .bytes = sizeof((struct el_train_config *)0)->cut,
    .initial = "time",
    .of_stages = true};

const struct el_mode_option el_mode_micro = {
    .name = "micro",
    .argument = "N",
    .help = "micro-batches per step (default: the number of stages, or what FILE.csv has)",
    .kind = EL_MODE_COUNT,
    EL_MODE_FIELD(n_micro),
    .absent = "1",
    .min = 1,
    .max = EL_MICRO_MAX,
    .key = "micro_batches",
    .of_stages = true};

const struct el_mode_option el_mode_schedule = {
    .name = "schedule",
    .argument = "NAME|FILE.csv",
    .help = "the order of forwards and backwards; FILE.csv: a compute table written by torch.distributed.pipelining",
    .kind = EL_MODE_FILE,
    EL_MODE_FIELD(schedule),
    .bytes = sizeof((struct el_train_config *)0)->schedule,
    .choices = "1f1b|gpipe|interleaved|zero-bubble",
    .initial = "1f1b",
    .of_stages = true};

const struct el_mode_option el_mode_sequence_parallel = {
    .name = "sequence-parallel",
    .argument = "HOW",
    .help = "of a model that is cut across its layers, layer norms, dropout and sums by tokens: each device has 1/n of "
            "them between the layers, as Megatron-LM's option of that name",
    .kind = EL_MODE_SWITCH,
    EL_MODE_FIELD(by_tokens),
    .choices = "off|on",
    .initial = "off",
    .label = "by tokens"};

const struct el_mode_option el_mode_graph = {.name = "graph",
                                             .argument = "HOW",
                                             .help = "on GPUs: launch a step's work at once as a CUDA graph; recorded "
                                                     "steps are queued op by op (it has never run on a card)",
                                             .kind = EL_MODE_SWITCH,
                                             EL_MODE_FIELD(device_graph),
                                             .choices = "off|on",
                                             .initial = "off",
                                             .label = "graph"};

/* Not capturable within a step, or meaningless in a graph. */
enum el_status el_mode_check_graph(const struct el_train_config *config)
{
    const char *reason = NULL;
    if (config->control == EL_CONTROL_RECORD)
        reason = "--control record: recorded steps are no graph, so that their difference is not the recorder's";
    if (config->loading.pageable) reason = "--non-blocking pin=off: a graph copies from pinned memory alone";
    if (config->loading.transfer == EL_TRANSFER_BLOCKING)
        reason = "--non-blocking off: within a graph the host waits for no copy";
    if (config->loading.transfer == EL_TRANSFER_AHEAD)
        reason = "--non-blocking ahead: a batch is made before the graph is launched, not beside it";
    if (!config->device_graph || !reason) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--graph on and %s: leave one of them out", reason);
}
