/* Every option of the program, one row each: parser, defaults, help, man page, completion and the record's echo come
 * from here. The models' sizes are rows of the models, and what only some modes have is the modes'. What the values
 * mean beyond their range is for trial/ to say (combinations), and for the runtime. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/rows.h"
#include "runtime/layout/schedule.h"

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
     "find the --shares that even out the devices' time (from a measurement) or memory (by forecast), then measure "
     "them; one mode, one batch",
     CHOICES("none|time|memory"), DEFAULT("none")},
    {WHAT, "modes", "LIST", AT(MODES, modes), COMPARE | SCALE | IMBALANCE,
     "modes, comma-separated, of those listed below", DEFAULT("single,dp,ddp"),
     OTHERWISE({SCALE | IMBALANCE, "dp,ddp"}), COMMON},
    {WHAT, "modes", "LIST", AT(MODES, modes), VERIFY, "modes, comma-separated (default: all)"},
    {WHAT, "quick", NULL, AT(FLAG, quick), VERIFY,
     "each mode and model with one optimizer and one number of devices, and each optimizer at least once"},
    {WHAT, "pairs", NULL, AT(FLAG, pairs), VERIFY,
     "instead: every two values of every two options that change arithmetic, together in some cell"},
    {WHAT, "mode", "NAME", AT(MODES, modes), RUN | RECOVER | DATA, "one of the modes listed below", DEFAULT("single"),
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
    {WHAT, "params", "N", AT(TEXT, params), PLAN,
     "gpt: parameters (125M, 7B), by which a published shape is chosen: what is not given of --layers, --embed, "
     "--heads, --seq (2048) and --vocab (50304)",
     COMMON},
    {WHAT, "devices", "LIST", AT(NUMBERS, sizes), PLAN,
     "number of devices; of several, 8,64,512 or 8..512 (doubling), the best of each mode", DEFAULT("8"),
     RANGE(2, EL_SIMULATED_MAX), COMMON},
    {WHAT, "devices", "N|LIST", AT(DEVICES, devices), COMPARE | RUN | RECOVER | IMBALANCE | DATA | EXPLAIN,
     REAL_DEVICES "; sim:8: simulated. single uses the first. Default: all GPUs, else two CPU devices", COMMON},
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
    {WHAT, "batch", "LIST", AT(BATCH, batches), COMPARE | IMBALANCE | DATA,
     "global batches, comma-separated: samples per step over all devices", DEFAULT("64,128,256"),
     OTHERWISE({DATA, "64"}), COMMON},
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
    {RULE, "inconclusive", "HOW", AT(CHOICE, regress.inconclusive), REGRESS,
     "exit status if inconclusive: tell 3, pass 0, fail 1", CHOICES("tell|pass|fail"), DEFAULT("tell")},

    {TRAINING, "loss", "NAME", AT(CHOICE, train.model.loss), OF_TRIALS,
     "loss: the model's own, cross-entropy, or mse (mean squared error against one-hot labels)",
     CHOICES("own|cross-entropy|mse"), DEFAULT("own")},
    {TRAINING, "optimizer", "NAME", AT(CHOICE, train.optimizer), OF_TRIALS | PLAN, "optimizer",
     CHOICES("sgd|momentum|adam|adamw"), DEFAULT("momentum"), OTHERWISE({PLAN, "adamw"}), COMMON},
    {TRAINING, "lr", "X", AT(REAL, train.lr), OF_TRIALS,
     "learning rate (default: adam and adamw 0.001, as in PyTorch; sgd and momentum 0.01)", RANGE(0, 1e3)},
    {TRAINING, "lr-warmup", "N", AT(COUNT, train.lr_warmup), OF_TRIALS,
     "let the learning rate rise linearly to --lr over the first N steps (those of --warmup count)", DEFAULT("0"),
     RANGE(0, 1e9)},
    {TRAINING, "lr-cosine", "N", AT(COUNT, train.lr_cosine), OF_TRIALS,
     "then let it fall to --lr-min over N steps along half a cosine, and stay there; 0: it stays at --lr", DEFAULT("0"),
     RANGE(0, 1e9)},
    {TRAINING, "lr-min", "X", AT(REAL, train.lr_min), OF_TRIALS, "learning rate at the end of --lr-cosine",
     DEFAULT("0"), RANGE(0, 1e3)},
    {TRAINING, "weight-decay", "X", AT(REAL, train.weight_decay), OF_TRIALS,
     "weight decay, of --optimizer adamw (default: 0.01, as in PyTorch)", RANGE(0, 1e3)},
    {TRAINING, "clip", "NORM", AT(REAL, train.clip), OF_TRIALS,
     "scale all gradients down to this L2 norm if theirs together is larger, as PyTorch's clip_grad_norm_; 0: no limit",
     DEFAULT("0"), RANGE(0, 1e6)},
    {TRAINING, "momentum", "X", AT(REAL, train.momentum), OF_TRIALS, "momentum, of --optimizer momentum",
     DEFAULT("0.9"), RANGE(0, 1)},
    {TRAINING, "dropout", "X", AT(REAL, train.model.dropout), OF_TRIALS, "dropout rate (textcnn, gpt)", RANGE(0, 0.99)},
    {TRAINING, "recompute", "HOW", AT(SWITCH, train.model.recompute), OF_TRIALS | PLAN,
     "gpt: on: keep the input of each block alone, and compute the block again in backward (activation checkpointing)",
     CHOICES("off|on"), DEFAULT("off")},
    {TRAINING, "freeze", "NAMES", AT(TEXT, train.model.freeze), OF_TRIALS,
     "parameters that are not trained, as with requires_grad=False: PyTorch's names of layers, groups of layers or "
     "parameters, comma-separated (embedding; conv1,bn1,layer1; fc.bias)"},
    {TRAINING, "max-norm", "X", AT(REAL, train.model.max_norm), OF_TRIALS,
     "maximum L2 norm of the classifier's rows; 0: no limit", DEFAULT("0"), RANGE(0, 1e6)},
    {TRAINING, "zero-grad", "HOW", AT(SWITCH, train.keep_grads), OF_TRIALS,
     "gradients between steps: free them, or keep and set to zero", CHOICES("free|keep"), DEFAULT("free")},
    {TRAINING, "foreach", "HOW", AT(CHOICE, train.foreach), OF_TRIALS | PLAN,
     "as in PyTorch. on: the optimizer updates all parameters in one launch, and adam has a temporary of each at once; "
     "off: one parameter after another, and two temporaries of it; auto: on for cuda devices",
     CHOICES("auto|off|on"), DEFAULT("auto")},
    {TRAINING, "dtype", "TYPE", AT(CHOICE, train.dtype), OF_TRIALS | PLAN,
     "number type; f64 uses the reference kernels", CHOICES("f32|f64"), DEFAULT("f32")},
    {TRAINING, "precision", "HOW", AT(CHOICE, train.model.precision), OF_TRIALS | PLAN,
     "f32: all as --dtype says; bf16: matrix work in bf16, as torch.autocast; bf16-pure: parameters and activations in "
     "bf16, the optimizer's state in f32; bf16-mixed: weights and state in f32, a copy of the weights and activations "
     "in bf16, as with FSDP's MixedPrecisionPolicy or Megatron-LM ('plan': the default for gpt)",
     CHOICES("f32|bf16|bf16-pure|bf16-mixed"), DEFAULT("f32")},
    {TRAINING, "bucket-mb", "N", AT(BUCKETS, bucket_mib), RUN | RECOVER | SCALE | IMBALANCE | DATA, BUCKET_MB,
     RANGE(0.001, 1e5)},
    {TRAINING, "bucket-mb", "LIST", AT(BUCKETS, bucket_mib), COMPARE, BUCKET_MB "; a list makes one row for each",
     RANGE(0.001, 1e5)},
    {TRAINING, "first-bucket-mb", "N", AT(REAL, first_bucket_mib), OF_TRIALS,
     "the same for the first bucket alone (default: 1, or --bucket-mb if that is given)", RANGE(0.001, 1e5)},
    {TRAINING, "bucket-view", "HOW", AT(CHOICE, bucket_view), RUN | RECOVER | SCALE | IMBALANCE | DATA, BUCKET_VIEW,
     CHOICES("off|on"), DEFAULT("off")},
    {TRAINING, "bucket-view", "HOW", AT(CHOICE, bucket_view), COMPARE, BUCKET_VIEW "; both: one row for each",
     CHOICES("off|on|both"), DEFAULT("off")},
    {TRAINING, "mesh", "dp=N,pp=N,tp=N,shard=N", AT(TEXT, mesh), OF_MODES,
     "mp, pipeline, tp: copies of the model (dp, by default 1), stages of each copy (pp; not tp), and pieces across "
     "the layers of each stage (tp); zero1, zero2, zero3: shards of the state (shard) in each copy, with stages (pp) "
     "or "
     "pieces (tp); spmg: dp alone, the number of data-parallel ranks, each with equally many devices (default: "
     "--procs, "
     "or 1)"},
    {TRAINING, "tf32", "HOW", AT(SWITCH, tf32), OF_TRIALS,
     "GPUs: matrix products in TF32 (10-bit mantissa) instead of f32", CHOICES("off|on"), DEFAULT("off")},
    {TRAINING, "seed", "N", AT(SEED, train.seed),
     COMPARE | RUN | RECOVER | REGRESS | SCALE | IMBALANCE | DATA | EXPLAIN,
     "random seed: weights, dropout, shuffling, synthetic data, order of trials", DEFAULT("1"),
     RANGE(0, 9.2e18)}, /* JSON's integers are signed */
};

enum { N_BEFORE = sizeof before_sizes / sizeof before_sizes[0] };
_Static_assert(N_BEFORE + EL_MODE_OPTIONS_MAX + EL_MODEL_SIZES_MAX + EL_OPTION_AFTER_MAX <= EL_OPTIONS_MAX,
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
    memcpy(rows + n, el_option_rows_after, (size_t)el_option_n_after * sizeof *rows);
    memcpy(rows, before_sizes, sizeof before_sizes);
    for (int i = 0; i < n + el_option_n_after; i++)
        if (!rows[i].initial) rows[i].initial = "";
    return rows;
}
