/* The subcommands as rows: the overview, each one's help, and what runs it. */
#include "bench/commands.h"

static const char MEASURE[] = "Measure", JOBS[] = "Imbalance, scaling, regressions", OTHERS[] = "Other programs",
                  TRUST[] = "This machine, and whether to believe it";

static const struct el_command_row commands[] = {
    {.name = "compare",
     .group = MEASURE,
     .brief = "one model trained in several ways: memory, time, communication of each, drawn",
     .bit = EL_CMD_COMPARE,
     .usage = "[--modes LIST] [--model NAME] [--devices N|LIST] [--batch LIST] [options]",
     .summary = "Train one model in several ways on the same data, in fresh processes and in turns, and draw the "
                "comparison: memory of each device, time, communication.",
     .examples = "  evenload compare                                      about two minutes on two cores\n"
                 "  evenload compare --modes dp,ddp --batch-per-device 32  the same work for each device\n"
                 "  evenload compare --model mlp --data dummy --repeats 7 --out results/mlp\n"
                 "  evenload compare --resume --out results/mlp            go on where it was cut off\n",
     .run = el_cmd_compare},
    {.name = "run",
     .group = MEASURE,
     .brief = "one trial in one way, and its record",
     .bit = EL_CMD_RUN,
     .usage = "[--mode NAME] [--model NAME] [--devices N|LIST] [--batch N] [options]",
     .summary = "Train one model in one way and write the record. Starts its own processes; started by mpirun or "
                "torchrun without --devices, takes its place as a rank.",
     .examples = "  evenload run --mode ddp --devices 4                  a process a device\n"
                 "  evenload run --mode ddp --devices 4 --procs 1        a thread a device\n"
                 "  evenload run --mode dp --devices 8 --batch 512 --dry-run\n"
                 "  evenload run --mode ddp --data train.txt --test test.txt --epochs 10 --optimizer adam --json\n"
                 "  mpirun -n 4 evenload run --mode ddp\n"
                 "  torchrun --no_python --nproc_per_node 4 evenload run --mode ddp\n",
     .run = el_cmd_run},
    {.name = "plot",
     .group = MEASURE,
     .brief = "a run's figures again, from its files alone",
     .bit = EL_CMD_PLOT,
     .usage = "DIR [--term]",
     .summary = "Draw a run's plots again, from its files alone.",
     .examples = "  evenload plot results/mlp --term\n",
     .run = el_cmd_plot},
    {.name = "imbalance",
     .group = JOBS,
     .brief = "which device holds how much more, and of what",
     .bit = EL_CMD_IMBALANCE,
     .usage = "[DIR | --modes LIST --batch LIST | --preset NAME] [--dry-run] [options]",
     .summary =
         "What each card holds, does and sends, card by card, and what the first one's difference is made of. Of "
         "a folder's records alone, or it runs what they lack.",
     .examples = "  evenload imbalance results/mlp                     from its records: nothing is run\n"
                 "  evenload imbalance --out results/two               dp and ddp; run again it runs nothing\n"
                 "  evenload imbalance --preset two-cards --dry-run    the published table, by forecast\n"
                 "  evenload imbalance --preset outputs --dry-run      outputs that grow with the batch\n"
                 "  evenload imbalance --preset momentum --dry-run     SGD with momentum, --preset adam: Adam\n"
                 "  evenload imbalance --devices 8 --modes dp --dry-run\n",
     .run = el_cmd_imbalance},
    {.name = "scale",
     .group = JOBS,
     .brief = "speed-up and efficiency at each number of devices, and where the loss goes",
     .bit = EL_CMD_SCALE,
     .usage = "[DIR] [--devices LIST] [--weak | --strong] [--modes LIST] [--bucket-mb LIST] [options]",
     .summary = "What more devices bring: speed-up and efficiency of each mode at each count, where the loss goes, and "
                "the size of ddp's buckets. With DIR from its records alone.",
     .examples = "  evenload scale                                  1, 2, 4 ... all GPUs, else all cores\n"
                 "  evenload scale --devices 1,2 --strong --batch 128\n"
                 "  evenload scale --devices cuda:1,2,4,8 --modes ddp --bucket-mb 1,5,25,100\n"
                 "  evenload scale --devices 1,2,4 --out results/mine   again: measures what is missing\n"
                 "  evenload scale results/mine                     from its records alone\n",
     .run = el_cmd_scale},
    {.name = "regress",
     .group = JOBS,
     .brief = "did it get slower? an exit status for CI, with a known rate of false alarms",
     .bit = EL_CMD_REGRESS,
     .usage = "--ab 'BASE COMMAND' 'HEAD COMMAND' [options]",
     .summary =
         "Did it get slower? Two programs in turns, or two runs, cell by cell; exit status 0 no, 1 yes, 2 bad use "
         "or unreadable, 3 it cannot be told, 4 no baseline that fits.",
     .examples = "  evenload regress --ab 'base/evenload run --json --quiet' 'build/evenload run --json --quiet'\n"
                 "  evenload regress --ab './old-train.sh' './train.sh' --metric step_ms --budget 5m\n"
                 "  evenload regress --baseline results/before --current results/after\n",
     .run = el_cmd_regress},
    {.name = "baseline",
     .group = JOBS,
     .brief = "runs kept as this machine's past, for regress",
     .bit = EL_CMD_BASELINE,
     .usage = "[add DIR|show [DIR]|accept DIR] [--store DIR] [--json]",
     .summary = "Keep runs as this machine's baseline, show what it could find, accept a new level.",
     .examples = "  evenload baseline add results/mlp       one more session; eight are needed\n"
                 "  evenload baseline show                  how many, how far they scatter, what they would find\n"
                 "  evenload baseline accept results/mlp    this level is right: compare with it from now on\n",
     .run = el_cmd_baseline},
    {.name = "watch",
     .group = OTHERS,
     .brief = "memory and utilization of each process of any command, yours too",
     .bit = EL_CMD_WATCH,
     .usage = "[--interval MS] [--out DIR] [options] -- COMMAND [ARGUMENT...]",
     .summary = "Run any command, and see what each of its processes held and did on CPUs and GPUs; its exit status "
                "is passed on.",
     .examples = "  evenload watch -- torchrun --nproc_per_node 2 train.py\n"
                 "  evenload watch --out results/train --quiet -- python train.py\n",
     .run = el_cmd_watch},
    {.name = "devices",
     .group = TRUST,
     .brief = "what can be used here, and what each backend and library lacks",
     .bit = EL_CMD_DEVICES,
     .usage = "[--json]",
     .summary = "What devices there are, and what each backend and library lacks.",
     .examples = "  evenload devices\n",
     .run = el_cmd_devices},
    {.name = "selfcheck",
     .group = TRUST,
     .brief = "four planted disturbances: are they found on this machine?",
     .bit = EL_CMD_SELFCHECK,
     .usage = "[--json] [--out DIR]",
     .summary = "Plant a delay, a slow op, a leak and a straggler on this machine, and say what was found of each.",
     .examples = "  evenload selfcheck                    ten to twenty seconds\n",
     .run = el_cmd_selfcheck},
    {.name = "overhead",
     .group = TRUST,
     .brief = "what recording costs a step",
     .bit = EL_CMD_OVERHEAD,
     .usage = "[--modes LIST] [--model NAME] [--devices N|LIST] [--batch LIST] [options]",
     .summary = "What recording costs a step: its events counted, and steps with and without it in turns.",
     .examples = "  evenload overhead                          the comparison's smallest batch: about 90 seconds\n"
                 "  evenload overhead --modes dp --repeats 20  one mode, a narrower interval\n",
     .run = el_cmd_overhead},
    {.name = "study",
     .group = TRUST,
     .brief = "a published table, taken apart",
     .bit = EL_CMD_STUDY,
     .usage = "[NAME] [--dry-run] [--devices LIST] [options]",
     .summary = "Take a published table apart and hold it against this runtime; without a name, list the studies.",
     .examples = "  evenload study                        what there is\n"
                 "  evenload study two-cards --dry-run    by forecast: no step is run, no memory taken\n"
                 "  evenload study two-cards              the same, measured: about a minute, and 4.1 GiB\n"
                 "  evenload study two-cards --devices cuda:0,cuda:1    on two GPUs, of which the driver tells\n",
     .run = el_cmd_study},
    {.name = NULL},
};

const struct el_command_row *el_command_rows(void)
{
    return commands;
}
