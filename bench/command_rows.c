/* The subcommands as rows: overview, help, function. */
#include "bench/commands.h"

static const char MEASURE[] = "Measure", JOBS[] = "Imbalance, scaling, regressions", OTHERS[] = "Other programs",
                  TRUST[] = "This machine, and how far to trust the figures";

static const struct el_command_row commands[] = {
    {EL_CMD_COMPARE, MEASURE, "train one model in several modes: memory, time and communication of each, with plots",
     "[--modes LIST] [--model NAME] [--devices N|LIST] [--batch LIST] [options]",
     "Train one model in several modes on the same data, interleaved, in fresh processes, and plot the comparison: "
     "memory of each device, time, communication. Most options take a list: a row for each combination.",
     "  evenload compare                                      about two minutes on two cores\n"
     "  evenload compare --modes dp,ddp --batch-per-device 32  the same local batch\n"
     "  evenload compare --model mlp --data dummy --repeats 7 --out results/mlp\n"
     "  evenload compare --modes ddp --model mlp --bucket-mb 1,5,25    which bucket size is best here?\n"
     "  evenload compare --modes dp,ddp --precision f32,bf16 --overlap on,off    six rows\n"
     "  evenload compare --out results/mine                    a second time: runs what is missing\n"
     "  evenload compare old='torchrun ... a.py' new='torchrun ... b.py'   your own PyTorch trainings\n",
     el_cmd_compare},
    {EL_CMD_RUN, MEASURE, "train one model in one mode, and write its record",
     "[--mode NAME] [--model NAME] [--devices N|LIST] [--batch N] [options]",
     "Train one model in one mode and write the record. It starts its own processes; started by mpirun or torchrun "
     "without --devices, it is one of their ranks.",
     "  evenload run --mode ddp --devices 4                  one process per device\n"
     "  evenload run --mode ddp --devices 4 --procs 1        one thread per device\n"
     "  evenload run --mode dp --devices 8 --batch 512 --dry-run\n"
     "  evenload run --mode ddp --data train.txt --test test.txt --epochs 10 --optimizer adam --json\n"
     "  mpirun -n 4 evenload run --mode ddp\n"
     "  torchrun --no_python --nproc_per_node 4 evenload run --mode ddp\n",
     el_cmd_run},
    {EL_CMD_PLAN, MEASURE, "modes and meshes in which a model fits on so many devices, fastest first",
     "[--params N] [--devices N[,mem=BYTES]] [--machine NAME] [options]",
     "List the modes and meshes in which a model can be trained on so many devices: memory of the fullest device, by "
     "each mode's own schedule, bytes sent and the predicted step on a machine (h100-sxm unless --machine names "
     "another), "
     "by which they are ordered; on several numbers of devices the best mesh of each mode. Runs nothing. Exit status 1 "
     "if nothing fits.",
     "  evenload plan --params 7B --devices 64,mem=80G\n"
     "  evenload plan --params 70B --devices 64 --machine h100-sxm --json\n"
     "  evenload plan --params 7B --devices 8..512 --machine h100-sxm --out more    a table and a picture\n"
     "  evenload plan --layers 24 --embed 1024 --heads 16 --devices 4,mem=16G --batch 8\n",
     el_cmd_plan},
    {EL_CMD_MODES, MEASURE, "the modes: what each does, holds and sends, and the options it takes", "[--json]",
     "List the modes: what each does, which loss it equals, what a device holds and sends in a step, and which options "
     "it takes.",
     "  evenload modes\n", el_cmd_modes},
    {EL_CMD_PLOT, MEASURE, "draw a run's plots again, from its files", "DIR [--width WIDTH] [--no-title]",
     "Draw a run's plots again, from its files.",
     "  evenload plot results/mlp --term\n"
     "  evenload plot results/mlp --width 252pt --no-title    for the column of a paper\n",
     el_cmd_plot},
    {EL_CMD_REPORT, MEASURE, "a run as one page: tables and plots in one HTML file", "DIR [--markdown FILE]",
     "Write a run as one HTML page, DIR/report.html: the results, warnings, plots, tables that sort, environment and "
     "commands. The page needs no other file and no network. Folders of comm, data, explain, recover, regress, verify "
     "and watch "
     "have pages too.",
     "  evenload report results/mlp\n"
     "  evenload report results/mlp --markdown summary.md    and a short form for a pull request\n",
     el_cmd_report},
    {EL_CMD_RECOVER, JOBS, "the cost of losing a rank, and how often to write checkpoints",
     "[--mode NAME] [--model NAME] [--kill RANK@STEP] [options]",
     "Train a job undisturbed and with checkpoints, in turns, and then kill or stop ranks of it. Shows the time to "
     "detect the loss, to start again, to load and to catch up, goodput, what checkpoints cost, and the interval "
     "between them that loses least.",
     "  evenload recover --mode ddp --kill 1@50%              half way through 105 steps\n"
     "  evenload recover --mode zero3 --model gpt --kill 1@40,0@80 --checkpoint every=10\n"
     "  evenload recover --stop 1@50% --comm-timeout 2 --mtbf 24h\n",
     el_cmd_recover},
    {EL_CMD_IMBALANCE, JOBS, "which device holds more memory, and of what",
     "[DIR | SNAPSHOT... | --modes LIST --batch LIST | --preset NAME] [options]",
     "Shows what each device holds, computes and sends, and how much more the first one holds. Uses the records in "
     "DIR, or memory snapshots of PyTorch (files, or a folder of them), or runs the missing trials.",
     "  evenload imbalance results/mlp                     from its records: runs nothing\n"
     "  evenload imbalance rank0.pickle rank1.pickle       PyTorch: torch.cuda.memory._dump_snapshot\n"
     "  evenload imbalance --out results/two               dp and ddp; a second time it runs nothing\n"
     "  evenload imbalance --preset two-cards --dry-run    the published table, predicted\n"
     "  evenload imbalance --preset momentum --dry-run     SGD with momentum, --preset adam: Adam\n"
     "  evenload imbalance --preset outputs --dry-run      outputs that grow with the batch\n"
     "  evenload imbalance --solve time                    shares of the batch that even out time\n",
     el_cmd_imbalance},
    {EL_CMD_SCALE, JOBS, "speed-up and efficiency at each number of devices, and where time is lost",
     "[DIR] [--devices LIST] [--weak | --strong] [options] [-- COMMAND]",
     "Show speed-up and efficiency of each mode at each number of devices, and where time is lost. With DIR: from "
     "its records, runs nothing.",
     "  evenload scale                                  1, 2, 4 ... all GPUs, else all cores\n"
     "  evenload scale --devices 1,2 --strong --batch 128\n"
     "  evenload scale --devices cuda:1,2,4,8 --modes ddp\n"
     "  evenload scale --devices 1,2,4 --out results/mine   a second time: runs what is missing\n"
     "  evenload scale results/mine                     from its records: runs nothing\n"
     "  evenload scale --devices 1,2 -- torchrun --nproc_per_node {devices} train.py    your own training\n",
     el_cmd_scale},
    {EL_CMD_EXPLAIN, JOBS, "why DataParallel is slower than DistributedDataParallel, or one record than another",
     "[A B] [--model NAME] [--devices N|LIST] [--batch-per-device N] [options]",
     "Show why dp's step is longer than ddp's here: remove its six causes, one after another and each alone, in "
     "interleaved blocks. Print what each costs, with an interval, and how much more the first device holds because of "
     "it. --mode zero3: the same from sharded state. With two records A and B: compare their time and memory, measure "
     "nothing.",
     "  evenload explain                                  about a minute on two cores\n"
     "  evenload explain --model mlp --data dummy --batch-per-device 64\n"
     "  evenload explain --mode zero3 --model gpt         what sharded state costs against ddp\n"
     "  evenload explain --inject 'pause=gather outputs:5'    5 ms more in one cause\n"
     "  evenload explain results/one results/two          a folder, or its results.json\n"
     "  evenload explain results/mine:dp:128 results/mine:ddp:128\n",
     el_cmd_explain},
    {EL_CMD_REGRESS, JOBS, "did training get slower? exit status for CI, with a known rate of false alarms",
     "--ab 'BASE' 'HEAD' | --baseline DIR --current DIR|--from 'COMMAND' [options]",
     "Did training get slower? Compares two programs, interleaved, or a run with earlier ones. Exit status: 0 no, 1 "
     "yes, 2 wrong usage or unreadable input, 3 inconclusive, 4 no baseline that fits.",
     "  evenload regress --ab 'base/evenload run --json --quiet' 'build/evenload run --json --quiet'\n"
     "  evenload regress --ab 'python old.py' 'python train.py' --budget 5m    a training with PyTorch\n"
     "  evenload regress --baseline results/baseline --current results/mlp\n"
     "  evenload regress --baseline results/baseline --from 'python train.py' --add\n",
     el_cmd_regress},
    {EL_CMD_BASELINE, JOBS, "keep runs of this machine, for regress to compare with",
     "[add DIR|add --from 'COMMAND'|show|accept DIR] [options]",
     "Keep runs as this machine's baseline, show what it can detect and since when each figure has its level, accept a "
     "new level.",
     "  evenload baseline add results/mlp       one more session; eight are needed\n"
     "  evenload baseline add --from 'python train.py' --launches 7\n"
     "  evenload baseline show                  how many, their scatter, the detectable effect, changes\n"
     "  evenload baseline show --plot           and a picture of each figure over time\n"
     "  evenload baseline accept results/mlp    accept a new level: compare with it from now on\n",
     el_cmd_baseline},
    {EL_CMD_WATCH, OTHERS, "memory and utilization of each process of any command",
     "[--interval MS] [--out DIR] [options] -- COMMAND [ARGUMENT...]",
     "Run any command and record the memory and utilization of each of its processes, on CPUs and GPUs. Its exit "
     "status is passed on. Of a training with PyTorch also its steps and samples, and the rank that is late and where: "
     "with gloo by itself, with NCCL with --profile.",
     "  evenload watch -- torchrun --nproc_per_node 2 train.py\n"
     "  evenload watch --profile wait=10,warmup=2,active=8 -- torchrun --nproc_per_node 8 train.py\n"
     "  evenload watch --out results/train --quiet -- python train.py\n",
     el_cmd_watch},
    {EL_CMD_TRACE_STATS, OTHERS, "which rank is late in PyTorch's traces, and which one a job that hangs waits for",
     "DIR|FILE [DIR|FILE] [--without LIST] [--merge FILE] [--out DIR] [--json]",
     "Read traces of PyTorch's profiler (Kineto), yours or those of 'run --trace': how much communication is exposed, "
     "how much is hidden behind computation, and how long each device is idle; which rank is late and who waits for "
     "it, or that it is the wire. DIR: one file per rank, .json or .json.gz. With two: where the step's time went from "
     "one to the other. Of dumps of PyTorch's flight recorder (TORCH_FR_BUFFER_SIZE): which rank did not enter the "
     "collective that the others wait in, or called another one.",
     "  evenload trace-stats log/my-job\n"
     "  evenload trace-stats log/my-job --out late    a picture too: each rank in each step\n"
     "  evenload trace-stats log/my-job --without all     the step without each cause of time\n"
     "  evenload trace-stats log/my-job --merge job.json.gz     all ranks on one page of Perfetto\n"
     "  evenload trace-stats dumps              nccl_trace_rank_0, ... of a job that hangs\n"
     "  evenload trace-stats log/yesterday log/today --out changed\n"
     "  evenload run --mode ddp --trace traces && evenload trace-stats traces\n",
     el_cmd_trace_stats},
    {EL_CMD_COMM, TRUST, "bandwidth and latency of collectives, in nccl-tests' columns: is this number normal?",
     "[OPERATION] [-b BYTES] [-e BYTES] [-f N] [-n N] [options]",
     "Time collectives at each size, out of place and in place, check their data, and compare with the rate at which "
     "the machine copies memory. OPERATION: all_reduce (the default), broadcast, reduce, all_gather, reduce_scatter, "
     "alltoall, alltoallv, scatter, gather, sendrecv, barrier, or all.",
     "  evenload comm                                     all_reduce, 8 bytes to 128 MiB, two CPU devices\n"
     "  evenload comm all -b 1K -e 16M --comm local       every operation, a thread per device\n"
     "  evenload comm -g 2 -d all                         as nccl-tests: each type\n"
     "  evenload comm all_reduce --comm-algorithm all     direct, ring and a parameter server\n"
     "  mpirun -n 4 evenload comm all_reduce -b 8 -e 128M -f 2\n",
     el_cmd_comm},
    {EL_CMD_FLEET, TRUST, "which host, card or link of many is slow? exit status for a Slurm prolog",
     "[--hosts FILE] [--soak TIME] [--baseline DIR] [options]",
     "Check every host before a job: products, memory and copies of each device, the links between all hosts in rounds "
     "of "
     "disjoint pairs, an all-reduce and a training step. Names what stands out of its peers: a card, a host, a link, a "
     "direction, a switch. Exit status: 0 all are good, 1 a bad one (or one lost or absent), 3 undecided, 2 wrong "
     "usage.",
     "  evenload fleet --hosts hosts.txt                      starts them by ssh\n"
     "  srun --ntasks-per-node 8 evenload fleet               a process a device; or by mpirun, torchrun\n"
     "  evenload fleet                                        the devices of this host among each other\n"
     "  evenload fleet --hosts hosts.txt --soak 10m --prometheus /var/lib/node_exporter/evenload.prom\n"
     "  evenload fleet --devices sim:1024 --machine h100-sxm --inject link=7-*:0.5    how it would look\n",
     el_cmd_fleet},
    {EL_CMD_VERIFY, TRUST, "does this build compute right here? every mode, model and optimizer is checked",
     "[--quick | --pairs | --disturb] [--modes LIST] [--json] [--out DIR]",
     "Train every mode with every model and optimizer on two, three and four devices, in one process and in several, "
     "and compare losses and gradients with the right ones: single's, or the mean of the ranks' means. On CPU devices, "
     "and on GPUs if there are any. --disturb checks the measuring: disturbances of known size must be found.",
     "  evenload verify --quick                               some seconds\n"
     "  evenload verify                                       everything: under a minute on two cores\n"
     "  evenload verify --modes ddp --inject wrong=1:0.001    an injected error\n"
     "  evenload verify --disturb                             10 to 30 seconds\n",
     el_cmd_verify},
    {EL_CMD_DEVICES, TRUST, "devices and libraries found here, and what is missing", "[--json]",
     "List the devices and libraries found here, and what is missing.", "  evenload devices\n", el_cmd_devices},
    {EL_CMD_MACHINE, TRUST, "measure this machine's rates, for simulated devices", "[--devices LIST] [--out FILE]",
     "Measure FLOP/s, memory and copy bandwidth, launches, and latency and bandwidth between two devices. The file is "
     "what --machine takes: simulated devices then have these rates.",
     "  evenload machine --out mine.json                      some seconds\n"
     "  evenload compare --devices sim:8 --machine mine.json\n",
     el_cmd_machine},
    {.bit = 0},
};

const struct el_command_row *el_command_rows(void)
{
    return commands;
}
