/* Every option of the program, one row each: parser, defaults, help, man page, completion and the record's echo come
 * from here. The models' sizes are rows of the models, and what only some modes have is the modes'. What the values
 * mean beyond their range is for trial/ to say (combinations), and for the runtime. */
#include <stddef.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"
#include "runtime/layout/schedule.h"

/* Group, name, what its value is called (NULL: a flag), kind and field, the commands that take it, help. Then what only
 * some have. */
#define AT(kind_, field) .kind = EL_OPTION_##kind_, .offset = offsetof(struct el_options, field)
#define CHOICES(words)   .choices = (words)
#define DEFAULT(text)    .initial = (text)
#define OTHERWISE(...)   .otherwise = {__VA_ARGS__}
#define RANGE(low, high) .min = (low), .max = (high)
#define LETTER(c)        .letter = (c)
#define PER_RANK         .per_rank = true
#define COMMON           .common = true

#define OF_COMMAND(bit, function, name) bit = EL_CMD_##bit,
enum { EL_COMMANDS(OF_COMMAND) OF_TRIALS = EL_CMD_OF_TRIALS, OF_MODES = EL_CMD_OF_MODES };

/* Groups that both files have. */
#define SIZES "Sizes of the model"
#define GATE  "What is compared"
#define RULE  "Decision rule"

#define BUCKET_MB                                                                                                      \
    "ddp, spmg, copies of a model in pieces (--mesh): MiB of gradients at which a bucket is closed, as PyTorch's "     \
    "bucket_cap_mb (default: the first 1, the others 25)"
#define BUCKET_VIEW                                                                                                    \
    "ddp: gradients are views of the buckets, as with PyTorch's gradient_as_bucket_view: no copies in and out, and "   \
    "less memory, by as much as the parameters take"
#define REAL_DEVICES                                                                                                   \
    "2: two CPU devices; cuda:4: four GPUs; cuda:1: one, number 0; cuda:1,: GPU 1 alone; cuda:0,cuda:5: these two; "   \
    "cpu:0,cpu:3: these cores (modulo their "                                                                          \
    "number); "                                                                                                        \
    "null:2: everything except computation"

static const char WHAT[] = "What is measured", TRAINING[] = "Training";

static const struct el_option_row before_sizes[] = {
    {WHAT, "preset", "NAME", AT(TEXT, preset), IMBALANCE, "a published or reported table; other options override it",
     CHOICES("two-cards|outputs|momentum|adam"), COMMON},
    {WHAT, "solve", "WHAT", AT(CHOICE, solve), IMBALANCE,
     "find the --shares that even out the devices' time (from a measurement) or memory (by forecast), or the placement "
     "of experts that evens out their ranks' tokens, then measure them; one mode, one batch",
     CHOICES("none|time|memory|placement"), DEFAULT("none")},
    {WHAT, "modes", "LIST", AT(MODES, modes), COMPARE | SCALE | IMBALANCE,
     "modes, comma-separated, of those listed below", DEFAULT("single,dp,ddp"),
     OTHERWISE({SCALE | IMBALANCE, "dp,ddp"}), COMMON},
    {WHAT, "modes", "LIST", AT(MODES, modes), VERIFY, "modes, comma-separated (default: all)"},
    {WHAT, "quick", NULL, AT(FLAG, quick), VERIFY,
     "each mode and model with one optimizer and one number of devices, and each optimizer at least once"},
    {WHAT, "pairs", NULL, AT(FLAG, pairs), VERIFY,
     "instead: every two values of every two options that change arithmetic, together in some cell"},
    {WHAT, "disturb", NULL, AT(FLAG, disturb), VERIFY,
     "instead: a delay, a slow op, a leak and a straggler of known size, injected here: are they found?"},
    {WHAT, "mode", "NAME", AT(MODES, modes), RUN | RECOVER, "one of the modes listed below", DEFAULT("single"),
     OTHERWISE({RECOVER, "ddp"}), COMMON},
    {WHAT, "mode", "NAME", AT(MODES, modes), EXPLAIN, "whose step is compared with ddp's: dp, zero2 or zero3",
     DEFAULT("dp"), COMMON},
    {WHAT, "model", "NAME", AT(MODEL, train.model.name), OF_TRIALS | PLAN, "one of the models listed below",
     DEFAULT("textcnn"), OTHERWISE({PLAN, "gpt"}), COMMON},
    {WHAT, "kill", "LIST", AT(TEXT, kill), RECOVER,
     "ranks that die, and when: RANK@STEP or RANK@PERCENT, comma-separated (default: 1@50%)", COMMON},
    {WHAT, "stop", "LIST", AT(TEXT, stop), RECOVER,
     "likewise ranks that stop: the others wait for them as long as --comm-timeout says", COMMON},
    {WHAT, "mtbf", "TIME", AT(SECONDS, mtbf_s), RECOVER,
     "mean time between failures of the whole job, like 24h, for the interval between checkpoints (default: a table)",
     RANGE(1, 1e12)},
    {WHAT, "without", "LIST", AT(TEXT, without), TRACE_STATS,
     "what the step would be without: rank:N (comes no later than the others), waits (all at their mean), transfers, "
     "data (PyTorch's DataLoader), all of these, or, as the last one, op:NAME (kernels, ops and annotations with NAME "
     "in their names)",
     COMMON},
    {WHAT, "params", "N", AT(TEXT, params), PLAN,
     "gpt: parameters (125M, 7B), by which a published shape is chosen: what is not given of --layers, --embed, "
     "--heads, --seq (2048) and --vocab (50304)",
     COMMON},
    {WHAT, "devices", "LIST", AT(NUMBERS, sizes), PLAN,
     "number of devices; of several, 8,64,512 or 8..512 (doubling), the best of each mode", DEFAULT("8"),
     RANGE(2, EL_SIMULATED_MAX), COMMON},
    {WHAT, "devices", "N|LIST", AT(DEVICES, devices), COMPARE | RUN | RECOVER | IMBALANCE | EXPLAIN,
     REAL_DEVICES "; sim:8: simulated. single uses the first. Default: all GPUs, else two CPU devices", COMMON},
    {WHAT, "devices", "N|LIST", AT(DEVICES, devices), FLEET,
     REAL_DEVICES
     "; sim:1024: simulated hosts. Of each host that --hosts names. Default: all GPUs, else two CPU devices; "
     "under a launcher one device a process, by its local rank",
     COMMON},
    {WHAT, "hosts", "FILE", AT(TEXT, hosts), FLEET,
     "start a process on each host of this file by ssh (EVENLOAD_RSH names another program); a line: HOST [name=NAME] "
     "[devices=LIST] [switch=NAME]",
     COMMON},
    {WHAT, "soak", "TIME", AT(SECONDS, fleet.soak_s), FLEET,
     "also replay training steps for so long (10m) on each device and compare what every op wrote, bit for bit",
     RANGE(0, 1e6), COMMON},
    {WHAT, "devices", "N|LIST", AT(DEVICES, devices), COMM | MACHINE,
     REAL_DEVICES ". Default: all GPUs, else two CPU devices", COMMON},
    {WHAT, "devices", "LIST", AT(COUNTS, counts), SCALE,
     "numbers of devices, comma-separated: 1,2,4 CPU devices; cuda:1,2,4 GPUs; sim:1,2,4 simulated ones. 1 is always "
     "measured. Default: 1, 2, 4 ... up to all GPUs, else all cores",
     COMMON},
    {WHAT, "predict", "LIST", AT(NUMBERS, sizes), SCALE,
     "numbers of devices to predict too, 4,8,16 or 4..16 (doubling): simulated, with times of --costs and of this "
     "study's single, or with rates of --machine",
     RANGE(2, EL_MEMBERS_MAX), COMMON},
    {WHAT, "weak", NULL, AT(FLAG, weak), SCALE,
     "keep the batch of each device constant (the default; --batch-per-device, or 64): n devices do n times the work; "
     "efficiency = X_n/(n X_1), X in samples/s",
     COMMON},
    {WHAT, "strong", NULL, AT(FLAG, strong), SCALE,
     "keep the global batch constant (--batch, or 64); efficiency = T_1/(n T_n), T = step time", COMMON},
    {WHAT, "minbytes", "BYTES", AT(BYTES, wire.min_bytes), COMM, "smallest size (suffix K, M, G)", DEFAULT("8"),
     RANGE(1, 1e12), LETTER('b'), COMMON},
    {WHAT, "maxbytes", "BYTES", AT(BYTES, wire.max_bytes), COMM, "largest size", DEFAULT("128M"), RANGE(1, 1e12),
     LETTER('e'), COMMON},
    {WHAT, "stepfactor", "N", AT(INT, wire.factor), COMM, "factor between sizes", DEFAULT("2"), RANGE(2, 1e9),
     LETTER('f'), COMMON},
    {WHAT, "stepbytes", "BYTES", AT(BYTES, wire.step_bytes), COMM, "difference between sizes, instead of a factor",
     RANGE(1, 1e12), LETTER('i')},
    {WHAT, "ngpus", "N", AT(INT, wire.gpus), COMM,
     "as nccl-tests: N devices (times --nthreads) in one process, GPUs if there are any, else CPU devices",
     DEFAULT("1"), RANGE(1, EL_MEMBERS_MAX), LETTER('g')},
    {WHAT, "nthreads", "N", AT(INT, wire.threads), COMM, "as nccl-tests: N times as many devices in one process",
     DEFAULT("1"), RANGE(1, EL_MEMBERS_MAX), LETTER('t')},
    {WHAT, "datatype", "TYPE", AT(CHOICE, wire.dtype), COMM, "type of the elements",
     CHOICES("float|double|int32|uint8|half|bfloat16|all"), DEFAULT("float"), LETTER('d')},
    {WHAT, "op", "NAME", AT(CHOICE, wire.reduction), COMM, "reduction operation",
     CHOICES("sum|prod|min|max|avg|and|or|xor|all"), DEFAULT("sum"), LETTER('o'), COMMON},
    {WHAT, "root", "RANK", AT(TEXT, wire.root), COMM, "root rank, or all", DEFAULT("0"), LETTER('r')},
    {WHAT, "group", "RANKS", AT(TEXT, wire.group), COMM,
     "ranks that communicate, comma-separated: 0,1; or groups of all ranks, each at the same time, as "
     "NCCL_TESTS_SPLIT: "
     "'mod 2', 'div 2', 'and 1', 'or 1' of a rank's number"},
    {WHAT, "from", "FILES", AT(TEXT, wire.from), COMM,
     "measure nothing: read nccl-tests' output (text, or -J's JSON), NCCL Inspector's logs or a comm.json; a file, a "
     "folder, or several, comma-separated; two folders of comm are compared by size",
     COMMON},
    {WHAT, "comm-algorithm", "LIST", AT(TEXT, wire.algorithms), COMM,
     "auto, direct, ring, ps, all, or a list; auto: by size, the fastest measured", DEFAULT("auto"), COMMON},
    {WHAT, "procs", "P", AT(INT, procs), OF_TRIALS,
     "processes: 1 (one thread per device), or one per device (ddp's default); spmg: any divisor of the number of "
     "devices (default: 1)",
     RANGE(1, EL_MEMBERS_MAX)},
    {WHAT, "batch", "LIST", AT(BATCH, batches), COMPARE | IMBALANCE,
     "global batches, comma-separated: samples per step over all devices", DEFAULT("64,128,256"), COMMON},
    {WHAT, "batch", "N", AT(BATCH, batches), RUN | RECOVER | SCALE | EXPLAIN,
     "global batch: samples per step over all devices", DEFAULT("64"), OTHERWISE({SCALE, ""}), COMMON},
    {WHAT, "batch", "N", AT(BATCH, batches), PLAN,
     "global batch: samples per step over all devices, however many (default: --batch-per-device 1)", COMMON},
    {WHAT, "batch-per-device", "LIST", AT(BATCH_PER_DEVICE, batches), OF_TRIALS | PLAN,
     "local batch: samples per step on each device", COMMON},
    {WHAT, "device-mem", "BYTES", AT(BYTES, device_mem_bytes), OF_TRIALS | PLAN,
     "limit of each device's memory (suffix KiB, MiB, GiB, or K, M, G)", OTHERWISE({PLAN, "80G"}),
     RANGE(1 << 20, 1e15)},

    {GATE, "ab", "'BASE' 'HEAD'", AT(TEXT, regress.ab), REGRESS,
     "two shell commands, interleaved in one session; each prints lines 'metric value unit'", COMMON},
    {GATE, "baseline", "DIR", AT(TEXT, regress.baseline), REGRESS, "store of this machine's sessions", COMMON},
    {GATE, "baseline", "DIR", AT(TEXT, regress.baseline), FLEET,
     "an earlier run of fleet: each device and link is also compared with itself then (15 % slower is bad)", COMMON},
    {RULE, "min-effect", "PCT", AT(PERCENT, fleet.floor_pct), FLEET, "slowdowns up to this are good, however sure",
     DEFAULT("3"), RANGE(0, 90)},
    {GATE, "current", "DIR", AT(TEXT, regress.current), REGRESS, "folder of the run that is judged", COMMON},
    {GATE, "from", "'COMMAND'", AT(TEXT, regress.from), REGRESS | BASELINE,
     "shell command to launch and measure; it prints lines 'metric value unit'", COMMON},
    {GATE, "launches", "N", AT(INT, regress.launches), REGRESS | BASELINE,
     "launches of --from; their median is the session's figure", DEFAULT("7"), RANGE(1, 200), COMMON},
    {GATE, "name", "TEXT", AT(TEXT, regress.name), REGRESS | BASELINE,
     "name of the program in the store (default: its command); sessions of one name are compared", COMMON},
    {GATE, "add", NULL, AT(FLAG, regress.add), REGRESS,
     "add the run to --baseline unless it is a regression; exit status 0 while that is too small to judge", COMMON},
    {GATE, "prepare", "'COMMAND'", AT(TEXT, regress.prepare), REGRESS | BASELINE,
     "shell command to run before each launch; if it fails, exit status 2"},
    {GATE, "metric", "LIST", AT(TEXT, regress.metrics), REGRESS | BASELINE,
     "only these metrics, comma-separated; any program has wall_time, cpu_time and peak_resident"},
    {GATE, "higher", "LIST", AT(TEXT, regress.higher), REGRESS | BASELINE,
     "metrics for which more is better, comma-separated, if their unit does not say it"},
    {GATE, "lower", "LIST", AT(TEXT, regress.lower), REGRESS | BASELINE,
     "metrics for which less is better, comma-separated, if their unit does not say it"},
    {GATE, "exact", "LIST", AT(TEXT, regress.exact), REGRESS | BASELINE,
     "metrics without noise, comma-separated: any change for the worse is a regression"},

    {RULE, "budget", "TIME", AT(SECONDS, regress.budget_s), REGRESS,
     "start no block that would end later (90s, 5m, 2h), then judge the data so far", RANGE(0, 864000), COMMON},
    {RULE, "max-samples", "N", AT(INT, regress.max_samples), REGRESS,
     "maximum number of blocks; interim analyses after 14, 24 and N", DEFAULT("40"), RANGE(1, 200)},
    {RULE, "blocks", "N", AT(INT, regress.blocks), REGRESS, "one analysis only, after N blocks", RANGE(1, 200)},
    {RULE, "min-effect", "PCT", AT(PERCENT, regress.min_effect_pct), REGRESS,
     "smallest effect that counts as a regression", DEFAULT("2"), RANGE(0.01, 1000), COMMON},
    {RULE, "of", "WHICH", AT(CHOICE, regress.of), REGRESS | BASELINE,
     "what counts of a metric that a launch prints several times, as its ranks or steps do", CHOICES("median|slowest"),
     DEFAULT("median")},
    {RULE, "inconclusive", "HOW", AT(CHOICE, regress.inconclusive), REGRESS,
     "exit status if inconclusive: tell 3, pass 0, fail 1", CHOICES("tell|pass|fail"), DEFAULT("tell")},

    {TRAINING, "loss", "NAME", AT(CHOICE, train.model.loss), OF_TRIALS,
     "loss: the model's own, cross-entropy, or mse (mean squared error against one-hot labels)",
     CHOICES("own|cross-entropy|mse"), DEFAULT("own")},
    {TRAINING, "optimizer", "NAME", AT(CHOICE, train.optimizer), OF_TRIALS | PLAN, "optimizer",
     CHOICES("sgd|momentum|adam|adamw"), DEFAULT("momentum"), OTHERWISE({PLAN, "adamw"}), COMMON},
    {TRAINING, "lr", "X", AT(REAL, train.lr), OF_TRIALS,
     "learning rate (default: adam and adamw 0.001, as in PyTorch; sgd and momentum 0.01)", RANGE(0, 1e3)},
    {TRAINING, "weight-decay", "X", AT(REAL, train.weight_decay), OF_TRIALS,
     "weight decay, of --optimizer adamw (default: 0.01, as in PyTorch)", RANGE(0, 1e3)},
    {TRAINING, "clip", "NORM", AT(REAL, train.clip), OF_TRIALS,
     "scale all gradients down to this L2 norm if theirs together is larger, as PyTorch's clip_grad_norm_; 0: no limit",
     DEFAULT("0"), RANGE(0, 1e6)},
    {TRAINING, "momentum", "X", AT(REAL, train.momentum), OF_TRIALS, "momentum, of --optimizer momentum",
     DEFAULT("0.9"), RANGE(0, 1)},
    {TRAINING, "dropout", "X", AT(REAL, train.model.dropout), OF_TRIALS, "dropout rate (textcnn, gpt, moe)",
     RANGE(0, 0.99)},
    {TRAINING, "recompute", "HOW", AT(SWITCH, train.model.recompute), OF_TRIALS | PLAN,
     "gpt: on: keep the input of each block alone, and compute the block again in backward (activation checkpointing)",
     CHOICES("off|on"), DEFAULT("off")},
    {TRAINING, "freeze", "NAMES", AT(TEXT, train.model.freeze), OF_TRIALS,
     "parameters that are not trained, as with requires_grad=False: PyTorch's names of layers, groups of layers or "
     "parameters, comma-separated (embedding; conv1,bn1,layer1; fc.bias)"},
    {TRAINING, "max-norm", "X", AT(REAL, train.model.max_norm), OF_TRIALS,
     "maximum L2 norm of the classifier's rows; 0: no limit", DEFAULT("0"), RANGE(0, 1e6)},
    {TRAINING, "capacity", "X", AT(REAL, train.model.capacity), OF_TRIALS | PLAN,
     "moe: capacity factor: an expert takes X times a sequence's even share of choices, first ones first; the others "
     "are dropped; 0: none is",
     DEFAULT("0"), RANGE(0, 1e3)},
    {TRAINING, "aux", "X", AT(REAL, train.model.aux), OF_TRIALS | PLAN,
     "moe: coefficient of the load balancing loss, of each sequence and layer (Mixtral's router_aux_loss_coef)",
     DEFAULT("0.01"), RANGE(0, 1e3)},
    {TRAINING, "z", "X", AT(REAL, train.model.z), OF_TRIALS | PLAN, "moe: coefficient of the router z loss (ST-MoE)",
     DEFAULT("0"), RANGE(0, 1e3)},
    {TRAINING, "routing", "HOW", AT(TEXT, train.model.routing), OF_TRIALS | PLAN,
     "moe: where tokens go: learned: by the router; else drawn by seed, step and token, alike in every mode: balanced; "
     "zipf:S; hot:E: all to that expert first; hot-rank:R: to that rank's experts; rotate: a hot one, another in each "
     "step; burst: one hot step in 8; or FILE, with a line of counts for each step, a count for each expert",
     DEFAULT("learned")},
    {TRAINING, "placement", "E,E...", AT(TEXT, train.model.placement), OF_TRIALS | PLAN,
     "moe: the experts' order over ranks (own: theirs): with another --routing than learned, expert E and its tokens "
     "move to that place"},
    {TRAINING, "zero-grad", "HOW", AT(SWITCH, train.keep_grads), OF_TRIALS,
     "gradients between steps: free them, or keep and set to zero", CHOICES("free|keep"), DEFAULT("free")},
    {TRAINING, "foreach", "HOW", AT(CHOICE, train.foreach), OF_TRIALS | PLAN,
     "as in PyTorch. on: the optimizer updates all parameters in one launch, and adam has a temporary of each at once; "
     "off: one parameter after another, and two temporaries of it; auto: on for cuda devices",
     CHOICES("auto|off|on"), DEFAULT("auto")},
    {TRAINING, "dtype", "TYPE", AT(CHOICE, train.dtype), OF_TRIALS | PLAN, "all in f64, by the reference kernels",
     CHOICES("f32|f64"), DEFAULT("f32")},
    {TRAINING, "precision", "HOW", AT(CHOICE, train.model.precision), OF_TRIALS | PLAN,
     "f32: all in f32; bf16: matrix work in bf16, as torch.autocast; bf16-pure: parameters and activations in "
     "bf16, the optimizer's state in f32; bf16-mixed: weights and state in f32, a copy of the weights and activations "
     "in bf16, as with FSDP's MixedPrecisionPolicy or Megatron-LM ('plan': the default for gpt)",
     CHOICES("f32|bf16|bf16-pure|bf16-mixed"), DEFAULT("f32")},
    {TRAINING, "products", "LIBRARY", AT(CHOICE, train.products), OF_TRIALS,
     "CPU devices, f32: the library of linear layers' products; auto: the fastest one that is there, tried once "
     "(oneDNN unless another one is faster by 5 %; as a rank of mpirun, srun or torchrun: oneDNN)",
     CHOICES("auto|onednn|mkl|openblas|blis"), DEFAULT("auto")},
    {TRAINING, "bucket-view", "HOW", AT(SWITCH, train.bucket_view), OF_MODES, BUCKET_VIEW, CHOICES("off|on"),
     DEFAULT("off")},
    {TRAINING, "bucket-mb", "N", AT(REAL, bucket_mib), OF_MODES, BUCKET_MB, RANGE(0.001, 1e5)},
    {TRAINING, "first-bucket-mb", "N", AT(REAL, first_bucket_mib), OF_TRIALS,
     "the same for the first bucket alone (default: 1, or --bucket-mb if that is given)", RANGE(0.001, 1e5)},
    {TRAINING, "mesh", "dp=N,pp=N,tp=N,shard=N,ep=N", AT(TEXT, mesh), OF_MODES,
     "mp, pipeline, tp: copies of the model (dp, by default 1), stages of each copy (pp; not tp), and pieces across "
     "the layers of each stage (tp); zero1, zero2, zero3: shards of the state (shard) in each copy, with stages (pp) "
     "or "
     "pieces (tp); ep: copies of the experts (dp), and ranks that share them (ep); spmg: dp alone, the number of "
     "data-parallel ranks, each with equally many devices (default: "
     "--procs, "
     "or 1)"},
    {TRAINING, "tf32", "HOW", AT(SWITCH, tf32), OF_TRIALS,
     "GPUs: as f32, with matrix products in TF32 (10-bit mantissa)", CHOICES("off|on"), DEFAULT("off")},
    {TRAINING, "seed", "N", AT(SEED, train.seed),
     COMPARE | RUN | RECOVER | REGRESS | SCALE | IMBALANCE | EXPLAIN | FLEET,
     "random seed: weights, dropout, shuffling, synthetic data, order of trials", DEFAULT("1"),
     RANGE(0, 9.2e18)}, /* JSON's integers are signed */
};

/* Behind the models' sizes: data and weights, measuring, what is compared, output. */

static const char SET[] = "Data and weights", MEASURING[] = "Measuring", OUTPUT[] = "Output", OTHER[] = "Other";

static const struct el_option_row rows_after[] = {
    {SIZES, "classes", "N", AT(COUNT, train.model.classes), OF_TRIALS, "number of classes", RANGE(1, 1e9)},

    {SET, "data", "FILE|NAME", AT(TEXT, data), OF_TRIALS,
     "FILE of lines 'label sentence'; for models over images CIFAR-10's binary files or a folder of images "
     "(DIR/CLASS/*.png, jpg, ppm); for gpt any file, whose bytes are its tokens; synthetic (generated, learnable) or "
     "dummy (random batches in memory)",
     DEFAULT("synthetic"), COMMON},
    {SET, "test", "FILE", AT(TEXT, test), OF_TRIALS, "test set: a file or folder in the same format"},
    {SET, "lengths", "A-B", AT(SPREAD, lengths), OF_TRIALS,
     "made-up sentences (--data synthetic, dummy) have from A to B words, each number equally often (default: 8 to 40; "
     "dummy: --seq)",
     RANGE(1, 65536)},
    {SET, "length-by", "WHAT", AT(SWITCH, train.length_by_batch), OF_TRIALS,
     "textcnn: what sentences are padded to: model: its --seq; batch: the longest sentence of the batch, of each "
     "rank's "
     "own in ddp (as PyTorch's collate functions do), so that steps and ranks differ",
     CHOICES("model|batch"), DEFAULT("model")},
    {SET, "bucket-lengths", "HOW", AT(SWITCH, train.bucket_lengths), OF_TRIALS,
     "textcnn: batches of sentences of similar length, in random order, so that pad=batch pads less", CHOICES("off|on"),
     DEFAULT("off")},
    {SET, "data-in", "WHERE", AT(SWITCH, in_files), OF_TRIALS,
     "memory: the set is read and decoded before training; disk: each batch reads and decodes its own samples",
     CHOICES("memory|disk"), DEFAULT("memory")},
    {SET, "page-cache", "HOW", AT(SWITCH, train.loading.cold), OF_MODES,
     "with --data-in disk. warm: files stay in the page cache; cold: they are dropped from it before each read",
     CHOICES("warm|cold"), DEFAULT("warm")},
    {SET, "pin-memory", "HOW", AT(SWITCH, train.loading.pageable), OF_MODES,
     "GPUs: batches lie in pinned host memory (PyTorch's pin_memory); off: in pageable memory, from which the driver "
     "stages each copy",
     CHOICES("on|off"), DEFAULT("on")},
    {SET, "workers", "N", AT(INT, train.loading.workers), OF_MODES,
     "loader workers of each device, which make batches ahead of time (PyTorch's num_workers); 0: each step makes its "
     "own",
     DEFAULT("0"), RANGE(0, EL_WORKERS_MAX)},
    {SET, "prefetch", "N", AT(INT, train.loading.prefetch), OF_MODES,
     "batches that each worker keeps ahead (PyTorch's prefetch_factor)", DEFAULT("2"), RANGE(1, EL_PREFETCH_MAX)},
    {SET, "non-blocking", "HOW", AT(CHOICE, train.loading.transfer), COMPARE | RUN | RECOVER | SCALE | IMBALANCE,
     "GPUs: on: the host continues while a batch is copied (PyTorch's non_blocking); off: it waits; ahead: the next "
     "batch is made and copied on a stream of its own while the device computes",
     CHOICES("on|off|ahead"), DEFAULT("on")},
    {SET, "load", "FILE", AT(TEXT, load), COMPARE | RUN | RECOVER,
     "safetensors file of initial weights, by PyTorch's names and shapes; what it lacks is drawn by --seed"},
    {SET, "save", "FILE", AT(TEXT, save), RUN,
     "write the weights to a safetensors file: those after the last measured step, with --epochs of the best epoch"},
    {SET, "checkpoint", "HOW", AT(TEXT, checkpoint), RECOVER, "how checkpoints are written, in recover's own folder"},
    {SET, "checkpoint", "DIR", AT(TEXT, checkpoint), RUN,
     "write checkpoints into a folder (DIR/step-20, ...): weights, optimizer's state and place in the data"},
    {SET, "checkpoint-every", "WHEN", AT(TEXT, checkpoint_every), RUN | RECOVER,
     "after every N steps, warm-up included, or whenever so much time has passed: 30s, 5m", DEFAULT("20")},
    {SET, "checkpoint-keep", "N", AT(COUNT, checkpoint_keep), RUN | RECOVER, "remove all but the N last", DEFAULT("2"),
     RANGE(1, 1e6)},
    {SET, "checkpoint-async", "HOW", AT(SWITCH, checkpoint_async), RUN | RECOVER,
     "on: training goes on while a copy of the state is written; off: it waits", CHOICES("off|on"), DEFAULT("on")},
    {SET, "resume", "DIR", AT(TEXT, resume), RUN,
     "go on from the last checkpoint of a folder, or from DIR/step-N, in any mode and on any number of devices"},
    {SET, "max-restarts", "N", AT(INT, max_restarts), RUN,
     "start the job again, from its last checkpoint, up to N times after a rank was lost", DEFAULT("0"),
     RANGE(0, 1000)},
    {SET, "elastic", "MIN:MAX", AT(TEXT, elastic), RUN,
     "with --checkpoint restarts: on the devices that are left, at least MIN, and on up to MAX again when a file "
     "DIR/come "
     "says that one has come"},
    {SET, "elastic-batch", "WHOSE", AT(SWITCH, elastic_device), RUN,
     "with --elastic, the batch that stays: global, or device: the global batch follows the number of devices, and "
     "the learning rate with it",
     CHOICES("global|device"), DEFAULT("global")},
    {SET, "epochs", "N", AT(COUNT, train.epochs), COMPARE | RUN, "train whole epochs and evaluate, instead of --steps",
     RANGE(1, 1e6), COMMON},
    {SET, "eval", "HOW", AT(CHOICE, train.eval), COMPARE | RUN,
     "with --epochs, what a rank evaluates. exact: its part, each sample once; padded: the same, but some samples "
     "twice, "
     "as PyTorch's DistributedSampler; each: every rank evaluates all samples",
     CHOICES("exact|padded|each"), DEFAULT("exact")},

    {MEASURING, "steps", "N", AT(COUNT, train.steps), OF_MODES, "minimum number of measured steps", DEFAULT("10"),
     OTHERWISE({RECOVER, "100"}), RANGE(1, 1e9), COMMON},
    {MEASURING, "warmup", "N", AT(COUNT, train.warmup), OF_MODES, "warm-up steps, reported separately", DEFAULT("5"),
     RANGE(0, 1e9)},
    {MEASURING, "min-time", "S", AT(REAL, train.min_time_s), OF_TRIALS,
     "minimum measured time in seconds: steps are added to reach it (GPUs: 2.2, so that the driver can tell their "
     "utilization)",
     DEFAULT("1"), OTHERWISE({EXPLAIN, "0.6"}, {RECOVER, "0"}), RANGE(0, 86400)},
    {MEASURING, "repeats", "N", AT(INT, repeats), OF_TRIALS, "launches per trial, each in fresh processes",
     DEFAULT("5"), OTHERWISE({RUN, "1"}), RANGE(1, 1000), COMMON},
    {MEASURING, "repeats", "N", AT(INT, repeats), FLEET, "samples of each figure", DEFAULT("5"), RANGE(3, 1000),
     COMMON},
    {MEASURING, "rounds", "N", AT(INT, fleet.rounds), FLEET,
     "rounds of pairs between hosts, in each of which every host works with another one (0: all, or as many as "
     "--budget "
     "has time for)",
     DEFAULT("0"), RANGE(0, EL_SIMULATED_MAX)},
    {MEASURING, "budget", "TIME", AT(SECONDS, fleet.budget_s), FLEET, "time for the rounds", DEFAULT("100s"),
     RANGE(1, 1e6)},
    {MEASURING, "wait", "TIME", AT(SECONDS, fleet.wait_s), FLEET, "how long to wait for all hosts", DEFAULT("30s"),
     RANGE(1, 1e6)},
    {MEASURING, "iters", "N", AT(INT, wire.iters), COMM, "timed calls of each size", DEFAULT("20"), RANGE(1, 10000),
     LETTER('n'), COMMON},
    {MEASURING, "warmup_iters", "N", AT(INT, wire.warmup), COMM, "warm-up calls of each size, not timed", DEFAULT("5"),
     RANGE(0, 10000), LETTER('w')},
    {MEASURING, "check", "N", AT(INT, wire.check), COMM, "calls of each size whose data are checked; 0: none",
     DEFAULT("1"), RANGE(0, 1000), LETTER('c')},
    {MEASURING, "agg_iters", "N", AT(INT, wire.aggregate), COMM,
     "operations of a timed call, one after another; the time is of one", DEFAULT("1"), RANGE(1, 1000), LETTER('m')},
    {MEASURING, "run_cycles", "N", AT(INT, wire.cycles), COMM, "how often all sizes are measured", DEFAULT("1"),
     RANGE(1, 1000), LETTER('N')},
    {MEASURING, "blocking", "HOW", AT(CHOICE, wire.blocking), COMM,
     "0: calls follow one another; 1: a barrier behind each operation, in its time; 3: a barrier before each call, not "
     "in its time",
     CHOICES("0|1|2|3"), DEFAULT("3"), LETTER('z')},
    {MEASURING, "overlap", "HOW", AT(CHOICE, wire.overlap), COMM,
     "on: time each operation also beside a computation that takes about as long, and print how much of the "
     "communication that hides, as OSU's non-blocking tests (osu_iallreduce) do",
     CHOICES("off|on"), DEFAULT("off"), COMMON},
    {MEASURING, "average", "HOW", AT(CHOICE, wire.average), COMM,
     "time of a call: 0: of rank 0; 1: mean of the ranks; 2: of the fastest rank; 3: of the slowest",
     CHOICES("0|1|2|3"), DEFAULT("3"), LETTER('a')},
    {MEASURING, "timeout", "S", AT(REAL, timeout_s), COMM, "time limit of the launch, in seconds", DEFAULT("300"),
     RANGE(0.1, 1e6), LETTER('T')},
    {MEASURING, "timeout", "S", AT(REAL, timeout_s),
     COMPARE | RUN | RECOVER | REGRESS | BASELINE | SCALE | IMBALANCE | VERIFY | EXPLAIN,
     "time limit of each launch, in seconds", DEFAULT("300"), RANGE(0.1, 1e6)},
    {MEASURING, "profile", "SCHEDULE", AT(TEXT, profile), RUN,
     "print a table by op of some measured steps, by torch.profiler's schedule: "
     "wait=1,warmup=1,active=2[,repeat=N][,skip_first=N]; without repeat, cycles go on to the end",
     COMMON},
    {MEASURING, "sort", "COLUMN", AT(CHOICE, sort), RUN, "--profile: what the table by op is sorted by",
     CHOICES("self|total|calls|memory|flops|bytes|name"), DEFAULT("self")},
    {MEASURING, "no-record", NULL, AT(UNFLAG, record), COMPARE | RUN | RECOVER, "record step times only, no spans"},
    {MEASURING, "launch", "HOW", AT(CHOICE, launch), COMPARE | RUN | RECOVER | COMM | FLEET,
     "self: start the ranks; rank: be a rank of mpirun or torchrun; auto: find out", CHOICES("auto|self|rank"),
     DEFAULT("auto"), PER_RANK},
    {MEASURING, "launcher", "WHO", AT(CHOICE, launcher), OF_TRIALS | COMM | VERIFY,
     "who starts the ranks: mpirun, or evenload itself (own); auto: mpirun if installed, own for GPUs",
     CHOICES("auto|mpirun|own"), DEFAULT("auto")},
    {MEASURING, "comm", "KIND", AT(WORD, comm), OF_TRIALS,
     "communicator between processes; auto: nccl where each rank has a GPU of its own, shm on one host, else mpi or "
     "tcp; nccl: also ranks that share a GPU, by the network",
     CHOICES("auto|mpi|shm|tcp|nccl"), DEFAULT("auto")},
    {MEASURING, "comm", "KIND", AT(WORD, comm), FLEET,
     "communicator of pairs and of the step; auto: nccl where each has a GPU of its own, shm on one host, else tcp",
     CHOICES("auto|shm|tcp|nccl"), DEFAULT("auto")},
    {MEASURING, "comm", "KIND", AT(WORD, comm), VERIFY, "communicator between processes; auto: as in 'run'",
     CHOICES("auto|mpi|shm|tcp"), DEFAULT("auto")},
    {MEASURING, "comm", "KIND", AT(WORD, comm), COMM,
     "communicator; local: one process, a thread per device; auto: as 'run --mode ddp' would",
     CHOICES("auto|local|shm|tcp|mpi|nccl"), DEFAULT("auto"), COMMON},
    {MEASURING, "comm-algorithm", "NAME", AT(CHOICE, train.comm_algorithm), OF_TRIALS,
     "algorithm of collectives: direct (every rank to every other), ring, or ps (parameter server: through rank 0); "
     "auto: the communicator's choice, by size",
     CHOICES("auto|direct|ring|ps"), DEFAULT("auto")},
    {MEASURING, "comm-timeout", "TIME", AT(SECONDS, train.comm_timeout_s), OF_TRIALS,
     "how long a collective may wait for other ranks (30s, 5m); 0: as long as --timeout", DEFAULT("0"),
     RANGE(0, 864000)},
    {MEASURING, "comm-check", "HOW", AT(SWITCH, train.comm_check), OF_TRIALS,
     "before each collective ranks compare what they are about to begin, and name operations that differ; not on GPUs; "
     "takes time",
     CHOICES("off|on"), DEFAULT("off")},
    {MEASURING, "beside", "N", AT(INT, beside), RUN,
     "single: N further devices train the same at the same time, without communication, and are not measured: shows "
     "what the devices of one machine cost each other",
     RANGE(0, EL_MEMBERS_MAX - 1)},
    {MEASURING, "costs", "DIRS", AT(TEXT, costs), OF_TRIALS,
     "sim devices: folders with measured times, comma-separated: of 'evenload comm' (collectives, messages) and of "
     "'run --mode single' (kernels), also with --beside"},
    {MEASURING, "machine", "FILE", AT(TEXT, machine), FLEET,
     "the machine of simulated hosts: a file of 'evenload machine', or h100-sxm, a100-sxm, v100-sxm2, v100-pcie"},
    {MEASURING, "machine", "FILE", AT(TEXT, machine), PLAN,
     "the machine whose devices are planned with: a file of 'evenload machine', or h100-sxm (the default), a100-sxm, "
     "v100-sxm2, v100-pcie (data sheets); none: without steps, ordered by bytes sent"},
    {MEASURING, "machine", "FILE", AT(TEXT, machine), OF_TRIALS,
     "sim devices: the machine that they stand for where --costs has no time: a file of 'evenload machine', or "
     "h100-sxm, a100-sxm, v100-sxm2, v100-pcie (data sheets); other devices: the rate of products that their FLOP/s "
     "are "
     "held against"},
    {MEASURING, "control", "WHAT", AT(CHOICE, train.control), OF_MODES,
     "what to switch off and on in A/B blocks after the measured steps, to measure its cost",
     CHOICES("none|comm|record"), DEFAULT("comm"), OTHERWISE({RECOVER, "none"})},
    {MEASURING, "control-pairs", "N", AT(INT, train.control_pairs), OF_MODES, "number of A/B pairs of control blocks",
     DEFAULT("4"), RANGE(1, EL_CONTROL_PAIRS_MAX)},
    {MEASURING, "inject", "LIST", AT(TEXT, inject), OF_TRIALS | COMM | VERIFY,
     "inject disturbances, to see whether they are found: wire=MS (per MiB), delay=POS:MS, straggler=POS:RATIO, "
     "compute=RATIO, op=LABEL:RATIO, pause=LABEL:MS, leak=POS:BYTES, oversize=POS:BYTES, wrong=POS:X (added to a "
     "number of each collective), disk=MS (each read of a loader), worker=BATCH (ends the loader worker before it "
     "makes this batch), kill=POS:STEP and stop=POS:STEP (the process dies or stops before this step), come=STEP (a "
     "device has come, for --elastic)"},
    {MEASURING, "inject", "LIST", AT(TEXT, inject), FLEET,
     "wrong=RANK:X: X is added to a number of one op's result in each step of this rank's soak; of simulated hosts "
     "straggler=HOST:RATIO, link=A-B:RATIO (what A sends to B; A or B may be *) and noise=PCT of each sample"},
    {MEASURING, "interval", "MS", AT(REAL, interval_ms), WATCH,
     "time between samples of CPU time and memory; longer if sampling would take over 0.4 % of a core", DEFAULT("100"),
     RANGE(10, 60000)},
    {MEASURING, "profile", "SCHEDULE", AT(TEXT, profile), WATCH,
     "have torch.profiler record some steps of a training with PyTorch, by its schedule: wait=10,warmup=2,active=8; "
     "DIR/traces then has a file per rank, and the late rank is of these steps",
     COMMON},
    {MEASURING, "live", NULL, AT(FLAG, live), WATCH,
     "print the table of a training's ranks every few seconds, on a terminal"},
    {MEASURING, "hosts", "N", AT(TEXT, hosts), WATCH,
     "of a job on N hosts: every host watches its part, with one --out that all see, and the first writes the record "
     "of "
     "all; where no launcher numbers them I/N, from 0/N"},
    {MEASURING, "no-hook", NULL, AT(UNFLAG, hook), WATCH | REGRESS,
     "put nothing into Python's environment: steps, samples and late ranks of PyTorch are not recorded"},
    {MEASURING, "wait-all", NULL, AT(FLAG, wait_all), WATCH,
     "watch until all its processes have ended, not only the command"},

    {OUTPUT, "out", "DIR", AT(TEXT, out),
     COMPARE | RUN | RECOVER | REGRESS | BASELINE | SCALE | IMBALANCE | WATCH | COMM | VERIFY | EXPLAIN | FLEET,
     "folder for the results (default: results/<time>-<command>); compare, scale and imbalance continue a run in it",
     PER_RANK, COMMON},
    {OUTPUT, "out", "DIR", AT(TEXT, out), PLAN,
     "of several numbers of devices: folder for plan.json, plan.csv and the picture", COMMON},
    {OUTPUT, "out", "DIR", AT(TEXT, out), TRACE_STATS, "folder for the result and its picture", COMMON},
    {OUTPUT, "merge", "FILE", AT(TEXT, merge), TRACE_STATS,
     "write the traces of all ranks as one, on one clock, with waits and arrows, for Perfetto (.gz: packed)", COMMON},
    {OUTPUT, "out", "FILE", AT(TEXT, out), MACHINE, "file to write (default: standard output)", COMMON},
    {OUTPUT, "trace", "DIR", AT(TEXT, trace), RUN,
     "write traces of the steps of --profile (default: wait=1,warmup=1,active=2,repeat=1), one file per rank, for "
     "Perfetto and HTA",
     PER_RANK},
    {OUTPUT, "prometheus", "FILE", AT(TEXT, fleet.prometheus), FLEET,
     "write metrics for node_exporter's textfile collector", COMMON},
    {OUTPUT, "junit", "FILE", AT(TEXT, regress.junit), REGRESS, "write JUnit XML, one case per cell"},
    {OUTPUT, "markdown", "FILE", AT(TEXT, regress.markdown), REGRESS | REPORT,
     "write a Markdown table ($GITHUB_STEP_SUMMARY is appended to)"},
    {OUTPUT, "github", NULL, AT(FLAG, regress.github), REGRESS, "print GitHub annotations on standard error", COMMON},
    {OUTPUT, "dry-run", NULL, AT(FLAG, dry_run), RUN | IMBALANCE,
     "print the predicted memory of each device, and with --costs the predicted step; run nothing", COMMON},
    {OUTPUT, "strict", NULL, AT(FLAG, strict), COMPARE | RUN | SCALE,
     "exit status 1 if a trial is suspect, unchecked, or simulated from doubtful costs; results are written all the "
     "same",
     PER_RANK},
    {OUTPUT, "store", "DIR", AT(TEXT, store), BASELINE, "folder of the baseline store, a file for each session",
     DEFAULT("results/baseline"), COMMON},
    {OUTPUT, "plot", NULL, AT(FLAG, draw), BASELINE,
     "baseline show: draw each row over time into DIR/plots (DIR: --out, or the store)", COMMON},
    {OUTPUT, "force", NULL, AT(FLAG, force), BASELINE,
     "add the run even if it was disturbed on purpose, or if exact figures got worse", COMMON},
    {OUTPUT, "json", NULL, AT(FLAG, json),
     COMPARE | RUN | RECOVER | DEVICES | BASELINE | REGRESS | SCALE | IMBALANCE | COMM | MODES | VERIFY | TRACE_STATS |
         EXPLAIN | PLAN | FLEET,
     "print only JSON on standard output", PER_RANK, COMMON},
    {OUTPUT, "csv", NULL, AT(FLAG, wire.csv), COMM, "print only the rows of comm.csv on standard output", PER_RANK},
    {OUTPUT, "quiet", NULL, AT(FLAG, quiet),
     COMPARE | RUN | RECOVER | REGRESS | BASELINE | SCALE | IMBALANCE | WATCH | COMM | VERIFY | EXPLAIN | FLEET,
     "no progress on standard error", PER_RANK},
    {OUTPUT, "no-plot", NULL, AT(UNFLAG, plot), WATCH, "draw nothing now; 'evenload plot DIR' draws later"},
    {OUTPUT, "term", NULL, AT(FLAG, look.term), COMPARE | PLOT, "also draw the plots as text in the terminal"},
    {OUTPUT, "width", "WIDTH", AT(POINTS, look.width_pt), PLOT,
     "width of the pictures in a paper, as 252pt, 89mm or 3.5in: letters then have 8 points, as far as they have room, "
     "and legends stand below (default: as wide as each figure needs)",
     RANGE(72, 2000)},
    {OUTPUT, "no-title", NULL, AT(FLAG, look.untitled), PLOT, "no titles above the pictures: a paper has captions"},

    {OTHER, "help", NULL, AT(FLAG, help), EL_CMD_ALL, "show this help; --help all: every option", COMMON},
    {OTHER, "version", NULL, AT(FLAG, version), EL_CMD_ALL, "show version and commit"},
};

enum { N_AFTER = sizeof rows_after / sizeof rows_after[0] };

enum { N_BEFORE = sizeof before_sizes / sizeof before_sizes[0] };
_Static_assert(N_BEFORE + EL_MODE_OPTIONS_MAX + EL_MODEL_SIZES_MAX + N_AFTER <= EL_OPTIONS_MAX,
               "el_options.given has a place for each row");

/* "ddp, spmg: what it does": with the modes that have it. */
static void describe_of_mode(const struct el_mode_option *option, char help[EL_OPTION_HELP_BYTES])
{
    *help = 0;
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        if (el_mode_option_of(mode->name, option->name))
            el_text_append(help, EL_OPTION_HELP_BYTES, "%s%s", *help ? ", " : "", mode->name);
    el_text_append(help, EL_OPTION_HELP_BYTES, ": %s", option->help);
}

/* Of `explain`, which compares dp with ddp, what ddp alone has. */
static unsigned commands_of(const struct el_mode_option *option)
{
    bool explained = el_mode_option_of("ddp", option->name) && !el_mode_option_of("dp", option->name);
    return explained ? OF_TRIALS : OF_MODES;
}

static int add_of_modes(struct el_option_row *rows)
{
    static char helps[EL_MODE_OPTIONS_MAX][EL_OPTION_HELP_BYTES];
    const struct el_mode_option *const *options = el_mode_options();
    int n = 0;
    for (int i = 0; options[i]; i++) {
        const struct el_mode_option *option = options[i];
        if (!option->help) continue; /* has a row of its own */
        describe_of_mode(option, helps[i]);
        rows[n++] = (struct el_option_row){.group = TRAINING,
                                           .name = option->name,
                                           .argument = option->argument,
                                           .kind = EL_OPTION_OF_MODE,
                                           .offset = offsetof(struct el_options, of_modes) + i * EL_MODE_TEXT_BYTES,
                                           .commands = commands_of(option),
                                           .help = helps[i],
                                           .choices = option->kind == EL_MODE_WORDS ? NULL : option->choices,
                                           .initial = option->initial,
                                           .min = option->min,
                                           .max = option->max,
                                           .of_mode = option};
    }
    return n;
}

/* "vocabulary size (textcnn)": with the models that let it be chosen. */
static void describe_size(const struct el_model_size *size, char help[EL_OPTION_HELP_BYTES])
{
    const char *before = " (";
    snprintf(help, EL_OPTION_HELP_BYTES, "%s", size->help);
    for (const struct el_model_info *model = el_model_list(); model->name; model++) {
        const struct el_model_size *own = el_model_size_row(model, size->name);
        if (!own || own->min == own->max) continue;
        el_text_append(help, EL_OPTION_HELP_BYTES, "%s%s", before, model->name);
        before = ", ";
    }
    if (*before == ',') el_text_append(help, EL_OPTION_HELP_BYTES, ")");
}

const struct el_option_row *el_option_rows(void)
{
    static struct el_option_row rows[EL_OPTIONS_MAX + 1];
    static char helps[EL_MODEL_SIZES_MAX][EL_OPTION_HELP_BYTES];
    const struct el_model_size *sizes[EL_MODEL_SIZES_MAX];
    if (rows[0].name) return rows;
    int n = N_BEFORE, n_sizes = el_model_size_list(sizes);
    n += add_of_modes(rows + n);
    for (int i = 0; i < n_sizes; i++) {
        describe_size(sizes[i], helps[i]);
        rows[n++] = (struct el_option_row){SIZES,
                                           sizes[i]->name,
                                           sizes[i]->list ? "LIST" : "N",
                                           AT(SIZE, train.model.sizes),
                                           OF_TRIALS | PLAN,
                                           helps[i],
                                           RANGE(1, 1e9),
                                           .size = sizes[i]};
    }
    memcpy(rows + n, rows_after, sizeof rows_after);
    memcpy(rows, before_sizes, sizeof before_sizes);
    for (int i = 0; i < n + N_AFTER; i++)
        if (!rows[i].initial) rows[i].initial = "";
    return rows;
}
