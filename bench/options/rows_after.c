/* Options behind the models' sizes: data and weights, measuring, what is compared, output; see rows.c. */
#include "bench/options/rows.h"

#define PIN_MEMORY                                                                                                     \
    "GPUs: batches lie in pinned host memory (PyTorch's pin_memory); off: in pageable memory, from which the driver "  \
    "stages each copy"

static const char SET[] = "Data and weights", MEASURING[] = "Measuring", OUTPUT[] = "Output", OTHER[] = "Other";

const struct el_option_row el_option_rows_after[] = {
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
     "textcnn: on: batches of sentences of similar length, in random order, so that --length-by batch pads less",
     CHOICES("off|on"), DEFAULT("off")},
    {SET, "data-in", "WHERE", AT(SWITCH, in_files), OF_TRIALS,
     "memory: the set is read and decoded before training; disk: each batch reads and decodes its own samples",
     CHOICES("memory|disk"), DEFAULT("memory"), OTHERWISE({DATA, "disk"})},
    {SET, "workers", "N", AT(INT, train.loading.workers), COMPARE | RUN | RECOVER | SCALE | IMBALANCE,
     "loader workers of each device, which make batches ahead of time (PyTorch's num_workers); 0: each step makes its "
     "own",
     DEFAULT("0"), RANGE(0, EL_WORKERS_MAX)},
    {SET, "workers", "LIST", AT(NUMBERS, workers), DATA, "numbers of loader workers, comma-separated, beside 0",
     DEFAULT("0,1,2,4"), RANGE(0, EL_WORKERS_MAX), COMMON},
    {SET, "prefetch", "LIST", AT(NUMBERS, prefetch), DATA,
     "batches that each worker keeps ahead (PyTorch's prefetch_factor); a list makes one row for each", DEFAULT("2"),
     RANGE(1, EL_PREFETCH_MAX)},
    {SET, "prefetch", "N", AT(INT, train.loading.prefetch), COMPARE | RUN | RECOVER | SCALE | IMBALANCE,
     "batches that each worker keeps ahead (PyTorch's prefetch_factor)", DEFAULT("2"), RANGE(1, EL_PREFETCH_MAX)},
    {SET, "page-cache", "HOW", AT(CHOICE, page_cache), DATA,
     "warm: files stay in the page cache; cold: they are dropped from it before each read; both: one row for each",
     CHOICES("warm|cold|both"), DEFAULT("both"), COMMON},
    {SET, "page-cache", "HOW", AT(CHOICE, page_cache), COMPARE | RUN | RECOVER | SCALE | IMBALANCE,
     "with --data-in disk. warm: files stay in the page cache; cold: they are dropped from it before each read",
     CHOICES("warm|cold"), DEFAULT("warm")},
    {SET, "pin-memory", "HOW", AT(CHOICE, pin_memory), DATA, PIN_MEMORY "; both: one row for each",
     CHOICES("on|off|both"), DEFAULT("on")},
    {SET, "pin-memory", "HOW", AT(CHOICE, pin_memory), COMPARE | RUN | RECOVER | SCALE | IMBALANCE, PIN_MEMORY,
     CHOICES("on|off"), DEFAULT("on")},
    {SET, "non-blocking", "HOW", AT(CHOICE, train.loading.transfer), COMPARE | RUN | RECOVER | SCALE | IMBALANCE | DATA,
     "GPUs: on: the host continues while a batch is copied (PyTorch's non_blocking); off: it waits; ahead: the next "
     "batch is made and copied on a stream of its own while the device computes",
     CHOICES("on|off|ahead"), DEFAULT("on")},
    {SET, "augment", "HOW", AT(SWITCH, train.augment), OF_TRIALS,
     "models over images: move training images by up to an eighth of their side, and mirror them, at random",
     CHOICES("off|on"), DEFAULT("off")},
    {SET, "load", "FILE", AT(TEXT, load), COMPARE | RUN | RECOVER,
     "safetensors file of initial weights, by PyTorch's names and shapes; what it lacks is drawn by --seed"},
    {SET, "save", "FILE", AT(TEXT, save), RUN,
     "write the weights to a safetensors file: those after the last measured step, with --epochs of the best epoch"},
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
     "with --checkpoint: start the job again, from its last checkpoint, up to N times after a rank was lost",
     DEFAULT("0"), RANGE(0, 1000)},
    {SET, "elastic", "MIN:MAX", AT(TEXT, elastic), RUN,
     "with --max-restarts: on the devices that are left, at least MIN, and on up to MAX again when a file DIR/come "
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
     DEFAULT("5"), OTHERWISE({RUN, "1"}, {DATA, "3"}), RANGE(1, 1000), COMMON},
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
     COMPARE | RUN | RECOVER | REGRESS | BASELINE | SCALE | IMBALANCE | VERIFY | DATA | EXPLAIN,
     "time limit of each launch, in seconds", DEFAULT("300"), RANGE(0.1, 1e6)},
    {MEASURING, "profile", "SCHEDULE", AT(TEXT, profile), RUN,
     "print a table by op of some measured steps, by torch.profiler's schedule: "
     "wait=1,warmup=1,active=2[,repeat=N][,skip_first=N]; without repeat, cycles go on to the end",
     COMMON},
    {MEASURING, "sort", "COLUMN", AT(CHOICE, sort), RUN, "--profile: what the table by op is sorted by",
     CHOICES("self|total|calls|memory|flops|bytes|name"), DEFAULT("self")},
    {MEASURING, "no-record", NULL, AT(UNFLAG, record), COMPARE | RUN | RECOVER, "record step times only, no spans"},
    {MEASURING, "launch", "HOW", AT(CHOICE, launch), COMPARE | RUN | RECOVER | COMM,
     "self: start the ranks; rank: be a rank of mpirun or torchrun; auto: find out", CHOICES("auto|self|rank"),
     DEFAULT("auto"), PER_RANK},
    {MEASURING, "launcher", "WHO", AT(CHOICE, launcher), OF_TRIALS | COMM | VERIFY,
     "who starts the ranks: mpirun, or evenload itself (own); auto: mpirun if installed, own for GPUs",
     CHOICES("auto|mpirun|own"), DEFAULT("auto")},
    {MEASURING, "comm", "KIND", AT(WORD, comm), OF_TRIALS,
     "communicator between processes; auto: nccl where each rank has a GPU of its own, shm on one host, else mpi or "
     "tcp; nccl: also ranks that share a GPU, by the network",
     CHOICES("auto|mpi|shm|tcp|nccl"), DEFAULT("auto")},
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
     CHOICES("none|comm|record"), DEFAULT("comm"), OTHERWISE({DATA | RECOVER, "none"})},
    {MEASURING, "control-pairs", "N", AT(INT, train.control_pairs), OF_MODES, "number of A/B pairs of control blocks",
     DEFAULT("4"), RANGE(1, EL_CONTROL_PAIRS_MAX)},
    {MEASURING, "inject", "LIST", AT(TEXT, inject), OF_TRIALS | COMM | VERIFY,
     "inject disturbances, to see whether they are found: wire=MS (per MiB), delay=POS:MS, straggler=POS:RATIO, "
     "compute=RATIO, op=LABEL:RATIO, pause=LABEL:MS, leak=POS:BYTES, oversize=POS:BYTES, wrong=POS:X (added to a "
     "number of each collective), disk=MS (each read of a loader), worker=BATCH (ends the loader worker before it "
     "makes this batch), kill=POS:STEP and stop=POS:STEP (the process dies or stops before this step), come=STEP (a "
     "device has come, for --elastic)"},
    {MEASURING, "interval", "MS", AT(REAL, interval_ms), WATCH,
     "time between samples of CPU time and memory; longer if sampling would take over 0.4 % of a core", DEFAULT("100"),
     RANGE(10, 60000)},
    {MEASURING, "wait-all", NULL, AT(FLAG, wait_all), WATCH,
     "watch until all its processes have ended, not only the command"},

    {OUTPUT, "out", "DIR", AT(TEXT, out),
     COMPARE | RUN | RECOVER | SELFCHECK | REGRESS | BASELINE | SCALE | IMBALANCE | WATCH | COMM | VERIFY | DATA |
         EXPLAIN,
     "folder for the results (default: results/<time>-<command>); compare, scale, imbalance, data continue a run in it",
     PER_RANK, COMMON},
    {OUTPUT, "out", "DIR", AT(TEXT, out), PLAN,
     "of several numbers of devices: folder for plan.json, plan.csv and the picture", COMMON},
    {OUTPUT, "out", "DIR", AT(TEXT, out), TRACE_STATS, "with A and B: folder for what changed, and its waterfall",
     COMMON},
    {OUTPUT, "out", "FILE", AT(TEXT, out), MACHINE, "file to write (default: standard output)", COMMON},
    {OUTPUT, "trace", "DIR", AT(TEXT, trace), RUN,
     "write traces of the steps of --profile (default: wait=1,warmup=1,active=2,repeat=1), one file per rank, for "
     "Perfetto and HTA",
     PER_RANK},
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
    {OUTPUT, "force", NULL, AT(FLAG, force), BASELINE,
     "add the run even if it was disturbed on purpose, or if exact figures got worse", COMMON},
    {OUTPUT, "json", NULL, AT(FLAG, json),
     COMPARE | RUN | RECOVER | DEVICES | SELFCHECK | BASELINE | REGRESS | SCALE | IMBALANCE | COMM | MODES | VERIFY |
         TRACE_STATS | DATA | EXPLAIN | PLAN,
     "print only JSON on standard output", PER_RANK, COMMON},
    {OUTPUT, "csv", NULL, AT(FLAG, wire.csv), COMM, "print only the rows of comm.csv on standard output", PER_RANK},
    {OUTPUT, "quiet", NULL, AT(FLAG, quiet),
     COMPARE | RUN | RECOVER | SELFCHECK | REGRESS | BASELINE | SCALE | IMBALANCE | WATCH | COMM | VERIFY | DATA |
         EXPLAIN,
     "no progress on standard error", PER_RANK},
    {OUTPUT, "no-plot", NULL, AT(UNFLAG, plot), WATCH, "draw nothing now; 'evenload plot DIR' draws later"},
    {OUTPUT, "peer", "DIR", AT(TEXT, peer), COMPARE,
     "show the trials of this record in the tables too: PyTorch's, by scripts/peer-torch --record, of the same model "
     "and data"},
    {OUTPUT, "term", NULL, AT(FLAG, look.term), COMPARE | PLOT, "also draw the plots as text in the terminal"},
    {OUTPUT, "width", "WIDTH", AT(POINTS, look.width_pt), PLOT,
     "width of the pictures in a paper, as 252pt, 89mm or 3.5in: letters then have 8 points, as far as they have room, "
     "and legends stand below (default: as wide as each figure needs)",
     RANGE(72, 2000)},
    {OUTPUT, "no-title", NULL, AT(FLAG, look.untitled), PLOT, "no titles above the pictures: a paper has captions"},

    {OTHER, "help", NULL, AT(FLAG, help), EL_CMD_ALL, "show this help; --help all: every option", COMMON},
    {OTHER, "version", NULL, AT(FLAG, version), EL_CMD_ALL, "show version and commit"},
};

const int el_option_n_after = sizeof el_option_rows_after / sizeof el_option_rows_after[0];
_Static_assert(sizeof el_option_rows_after / sizeof el_option_rows_after[0] <= EL_OPTION_AFTER_MAX,
               "room for all of them");
