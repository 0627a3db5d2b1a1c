# Files of other tools: PyTorch's memory snapshots, nccl-tests' output, NCCL Inspector's lines.
load common

ROOT=${BATS_TEST_DIRNAME%/tests/cli}

snapshot() { python3 "$ROOT/tests/foreign/snapshot.py" "$@"; }

@test "imbalance of PyTorch's snapshots: DataParallel's devices in one file, by every protocol" {
    for protocol in 2 3 4 5; do
        snapshot dp "p$protocol.pickle" "$protocol"
        run --separate-stderr "$EVENLOAD" imbalance "p$protocol.pickle"
        [[ $status -eq 0 && -z $stderr ]] || show
        [[ ${lines[-2]} == "* cuda:0 holds 52.0 MiB more than cuda:1 at its peak (2.04 times): 40.0 MiB of optimizer" ]] || show
        [[ ${lines[-1]} == "  (train.py:42 step) and 12.0 of gather (train.py:42 step)." ]] || show
    done
    cmp p4.pickle "$ROOT/tests/foreign/dp.pickle"
}

@test "imbalance of two ranks' snapshots, of a folder of them, and of one alone" {
    mkdir s
    snapshot rank s/rank0.pickle 0
    snapshot rank s/rank1.pickle 1
    run --separate-stderr "$EVENLOAD" imbalance s/rank0.pickle s/rank1.pickle
    [[ $status -eq 0 && $output == *"* rank0.pickle cuda:0 holds 16.0 MiB more than rank1.pickle cuda:1"*"of other code (metrics.py:7 keep)."* ]] || show
    two=$output
    run --separate-stderr "$EVENLOAD" imbalance s
    [[ $output == "$two" ]] || show
    run --separate-stderr "$EVENLOAD" imbalance s/rank1.pickle --json
    printf '%s' "$output" >one.json
    [[ $(json one.json 'd["difference"], d["devices"][0]["peak_bytes"], d["devices"][0]["at_peak"]["optimizer"]') == "(None, 94371840, 41943040)" ]] || show
    [[ $(json one.json 'sum(d["devices"][0]["at_peak"].values()) == 94371840, d["devices"][0]["places"][0]["where"]') == "(True, 'train.py:42 step')" ]] || show
    cp s/rank0.pickle s/rank2.pickle
    run --separate-stderr "$EVENLOAD" imbalance s
    [[ $output == *"than the others' mean"* && $output == *"others: the mean of the other devices."* ]] || show
}

@test "a snapshot of a device that ran out of memory says what was asked, what was free and who held it; a list of segments is one" {
    snapshot oom o.pickle 60
    run --separate-stderr "$EVENLOAD" imbalance o.pickle
    [[ $status -eq 0 && $output == *"350.0       300.0"*"forward           300.0"*"other code         50.0"* ]] || show
    said=$(tr -s '\n ' ' ' <<<"$output")
    [[ $said == *"! cuda:0 ran out of memory: train.py:42 step asked for 90.0 MiB; the device had 10.0 MiB free, and PyTorch held 120.0 MiB free in 2 pieces, the largest of 60.0 MiB. Together that was enough: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True avoids such pieces. Most of what was held, 300.0 MiB, is of forward (train.py:42 step)."* ]] || show
    snapshot oom o.pickle 20
    run --separate-stderr "$EVENLOAD" imbalance o.pickle
    [[ $output == *"Together that was not enough"* ]] || show
    snapshot segments s.pickle
    run --separate-stderr "$EVENLOAD" imbalance s.pickle --json
    printf '%s' "$output" >s.json
    [[ $(json s.json 'd["devices"][0]["peak_bytes"] >> 20, d["devices"][0]["failure"]') == "(300, None)" ]] || show
}

@test "a snapshot that is none is one line, and nothing of it is executed" {
    printf 'import os, pickle\nclass Bad:\n    def __reduce__(self): return os.system, ("touch executed",)\npickle.dump({"segments": [Bad()]}, open("bad.pickle", "wb"), 4)\n' | python3 -
    refuses "bad.pickle: byte " "$EVENLOAD" imbalance bad.pickle
    [[ $stderr == *"opcode STACK_GLOBAL: it would make Python import or call something"* && ! -e executed ]] || show
    printf 'import pickle\npickle.dump({"a": 1}, open("other.pickle", "wb"))\n' | python3 -
    refuses "other.pickle: a pickle, but no snapshot of torch.cuda.memory: it has no segments" "$EVENLOAD" imbalance other.pickle
    printf 'PK\003\004xxxx' >zip.pt
    refuses "zip.pt: a file of torch.save" "$EVENLOAD" imbalance zip.pt
    refuses "x.pickle: No such file" "$EVENLOAD" imbalance "$ROOT/tests/foreign/dp.pickle" x.pickle
    refuses "README.md: no pickle of protocols 2 to 5" "$EVENLOAD" imbalance "$ROOT/README.md"
    refuses "measures nothing: leave out --batch" "$EVENLOAD" imbalance bad.pickle --batch 8
    refuses "measures nothing: leave out --out" "$EVENLOAD" imbalance bad.pickle bad.pickle --out x
}

nccl() { python3 "$ROOT/tests/foreign/nccl.py" "$@"; }

# The figures that nccl.py has put in, of a document at $1: 10 us + bytes / 200 GB/s, 8 us in place; 8 ranks.
known='[round(c["fit"][p]["latency_us"] * 10) for c in d["curves"] for p in ("out_of_place", "in_place")], [round(c["fit"]["in_place"]["gb_per_s"]) for c in d["curves"]], d["ranks"], len(d["curves"][0]["points"]), d["curves"][0]["operation"]'

@test "comm --from: nccl-tests' text of several versions and its JSON come to the same table" {
    nccl text a.txt
    nccl text all_reduce-8.txt old
    nccl text stamped.txt timestamps
    nccl json a.json
    sed 's/^/[1,0]<stdout>:/' a.txt >tagged.txt
    for file in a.txt all_reduce-8.txt stamped.txt a.json tagged.txt; do
        run --separate-stderr "$EVENLOAD" comm --from "$file" --json
        printf '%s' "$output" >d.json
        [[ $status -eq 0 && $(json d.json "$known") == "([100, 80], [200], 8, 13, 'all_reduce')" ]] || show
        [[ $(json d.json '[round(p["in_place"]["busbw_gb_per_s"], 1) for p in d["curves"][0]["points"]][-1]') == 345.9 ]] || show
    done
    run --separate-stderr "$EVENLOAD" comm --from a.txt
    [[ $output == *"nccl-tests: 8 ranks on 1 host"* && $output == *"Out of bounds values : 0 OK"* ]] || show
    [[ ${output//$'\n'  / } == *"busbw is 93 % of that: normal (the links between the cards are the limit)"* ]] || show
    sed 's/     0$/     7/' a.txt >wrong.txt
    run --separate-stderr "$EVENLOAD" comm --from wrong.txt
    [[ $status -eq 1 && $output == *"Out of bounds values : 91 FAILED"* ]] || show
}

@test "comm --from: several operations in one folder, and the times of processes (-I)" {
    mkdir two
    nccl text two/all_reduce.txt old
    nccl text two/all_gather.txt old
    sed -i 's/ sum/none/' two/all_gather.txt
    run --separate-stderr "$EVENLOAD" comm --from two --csv
    [[ $status -eq 0 && $(printf '%s\n' "$output" | cut -d, -f1 | sort | uniq -c | xargs) == "26 all_gather 26 all_reduce 1 operation" ]] || show
    nccl json slow.json ranks
    run --separate-stderr "$EVENLOAD" comm --from slow.json --json
    printf '%s' "$output" >d.json
    [[ $(json d.json '(lambda p: (len(p["samples_us"]), p["time_us"] == max(r[2] for r in p["samples_us"])))(d["curves"][0]["points"][0]["in_place"])') == "(4, True)" ]] || show
}

@test "comm --from: NCCL Inspector's lines of four ranks say who is late, and what the transfer takes" {
    nccl inspector late late
    run --separate-stderr "$EVENLOAD" comm --from late
    [[ $status -eq 0 && $output == *"Rank 2 is late: it comes last to 95 % of 120 calls, and the first one then waits 500 us"* ]] || show
    run --separate-stderr "$EVENLOAD" comm --from late --json
    printf '%s' "$output" >d.json
    [[ $(json d.json '[[p["out_of_place"]["time_us"] for p in c["points"]] for c in d["curves"]]') == "[[21.0, 30.0, 188.0], [21.0, 30.0, 188.0]]" ]] || show
    [[ $(json d.json '[(c["operation"], c["points"][0]["bytes"]) for c in d["curves"]]') == "[('all_reduce', 65536), ('all_gather', 262144)]" ]] || show
    [[ $(json d.json '[round(r["waited_us"]) for r in d["late"]["ranks"]], round(sum(r["caused_us"] for r in d["late"]["ranks"]))') == "([475, 500, 25, 500], 500)" ]] || show
    nccl inspector even
    run --separate-stderr "$EVENLOAD" comm --from even
    [[ $output == *"No rank is late"* ]] || show
    run --separate-stderr "$EVENLOAD" comm --from late/node-1-pid102.log --json # of one rank alone nobody knows
    printf '%s' "$output" >d.json
    [[ $status -eq 0 && $(json d.json 'd["late"], d["ranks"], len(d["curves"][0]["points"][0]["out_of_place"]["samples_us"][0])') == "(None, 4, 20)" ]] || show
}

# As PyTorch's process has it: Python, the plugin by its path, and nothing else of ours.
@test "comm --from: what the NCCL profiler wrote of four ranks, with the algorithms that were used" {
    export EVENLOAD_NCCL_DIR=$PWD/played
    python3 "$ROOT/tests/foreign/played.py" "${EVENLOAD_BUILD:-$ROOT/build}/modules/libnccl-profiler-evenload.so" 4
    run --separate-stderr "$EVENLOAD" comm --from played
    [[ $status -eq 0 && $output == *"all_reduce, algorithm: TREE LL, then RING SIMPLE"* ]] || show
    [[ $output == *"Rank 3 is late: it comes last to 100 % of 40 calls, and the first one then waits 500 us"* ]] || show
    run --separate-stderr "$EVENLOAD" comm --from played --json
    printf '%s' "$output" >d.json
    [[ $(json d.json '[(p["bytes"], p["algorithm"], p["out_of_place"]["time_us"]) for p in d["curves"][0]["points"]]') == "[(65536, 'TREE LL', 20.655), (16777216, 'RING SIMPLE', 187.772)]" ]] || show
    sed -i 's/"n_ranks":4/"n_ranks":0/' played/*.log # as NCCL 2.26, which does not say
    [[ $("$EVENLOAD" comm --from played) == *": 4 ranks on 1 host"*"Rank 3 is late"* ]]
}

@test "what other tools measured is costs of simulated members, and readings for regress" {
    nccl text a.txt
    run --separate-stderr "$EVENLOAD" run --mode ddp --devices sim:8 --model mlp --hidden 512 --costs a.txt --dry-run --json
    [[ $status -eq 0 ]] || show
    cp a.txt b.txt
    sed 's/ 681.09 / 781.09 /' a.txt >slower.txt
    run --separate-stderr "$EVENLOAD" regress --ab 'cat a.txt' 'cat slower.txt' --blocks 16 --quiet --json --out r
    printf '%s' "$output" >d.json
    [[ $status -eq 1 && $(json d.json '[c["name"] for c in d["cells"] if c["verdict"] == "regression"]') == "['all_reduce_float_sum_134217728B_out_of_place']" ]] || show
}

@test "a file that no reader knows is one line that says what was tried" {
    tried="tried as nccl-tests' text, as nccl-tests' JSON (-J) and as NCCL Inspector's lines: it is none of them"
    refuses "README.md: $tried" "$EVENLOAD" comm --from "$ROOT/README.md"
    echo '{"a": 1}' >a.json
    refuses "a.json: $tried" "$EVENLOAD" comm --from a.json
    refuses "a.json: $tried" "$EVENLOAD" run --mode ddp --devices sim:2 --costs a.json --dry-run
    : >empty.txt
    refuses "$tried" "$EVENLOAD" comm --from empty.txt
    nccl text all_reduce.txt old
    cp all_reduce.txt unnamed.txt
    refuses "unnamed.txt: it does not name its operation" "$EVENLOAD" comm --from unnamed.txt
    grep -v Rank all_reduce.txt >no_all_reduce.txt
    refuses "it does not say of how many ranks it is" "$EVENLOAD" comm --from no_all_reduce.txt
    sed 's/Rank  1/Rank  0/' all_reduce.txt >twice_all_reduce.txt
    refuses "rank 0 is in it twice" "$EVENLOAD" comm --from twice_all_reduce.txt
    refuses "x.txt: No such file" "$EVENLOAD" comm --from x.txt
    refuses "measures nothing: leave out --minbytes" "$EVENLOAD" comm --from all_reduce.txt -b 8
}

# Made by PyTorch: its profiler's memory as a snapshot (torch.cuda._memory_viz), for devices without CUDA; Adam's state of two
# layers of 512 x 512 and a bias is 4 MiB, its gradients 2.
@test "a snapshot that PyTorch made has the peak that its own blocks and events come to" {
    [[ -n ${EVENLOAD_TORCH-} ]] || skip "no PyTorch was asked for: scripts/test --with-torch"
    "$EVENLOAD_TORCH" - >torch.txt 2>torch.err <<'PYTHON' || { tail torch.err && false; }
import pickle, torch
from torch.cuda import _memory_viz
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
adam = torch.optim.Adam(model.parameters())
with torch.profiler.profile(profile_memory=True, with_stack=True, record_shapes=True) as profile:
    for _ in range(2):
        model(torch.randn(64, 512)).sum().backward()
        adam.step()
snapshot = _memory_viz._profile_to_snapshot(profile)
pickle.dump(snapshot, open("cpu.pickle", "wb"))
held = now = sum(b["requested_size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"].startswith("active"))
peak = held
for event in reversed(snapshot["device_traces"][0]):
    held += {"alloc": -event["size"], "free_completed": event["size"]}.get(event["action"], 0)
    peak = max(peak, held)
print(peak, now)
PYTHON
    run --separate-stderr "$EVENLOAD" imbalance cpu.pickle --json
    printf '%s' "$output" >d.json
    [[ $status -eq 0 && $(json d.json 'd["devices"][0]["peak_bytes"], d["devices"][0]["now_bytes"]') == "($(tail -1 torch.txt | sed 's/ /, /'))" ]] || show
    [[ $(json d.json 'd["devices"][0]["at_peak"]["optimizer"] >= 4 * 2 ** 20, d["devices"][0]["at_peak"]["backward"] >= 2 * 2 ** 20') == "(True, True)" ]] || show
}

# A run of nccl-tests on 8 cards, whose rows python makes: WORDS are of python.
as_printed() { # as_printed FILE PYTHON
    python3 - "$1" "$2" <<'.'
import sys
rows = [f"{size:12d} {size // 4:12d}     float     sum      -1 {size / 1e5:8.2f}  100.00  175.00      0 {size / 1e5:8.2f}  100.00  175.00      0" for size in (1 << 20, 4 << 20, 16 << 20)]
ranks = [f"#  Rank {i:2d} Group  0 Pid 10{i} on node0 device {i:2d} [0x01] Some Card" for i in range(8)]
head = ["# nThread 1 nGpus 8 minBytes 1048576 maxBytes 16777216 step: 4(factor) warmup iters: 5"] + ranks
head += ["#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"]
foot = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 175"]
lines = head + rows + foot
exec(sys.argv[2])
open(sys.argv[1], "w").write("\n".join(lines) + "\n")
.
}

@test "comm --from: names without underscores, prefixes of launchers and logs, columns that old versions leave empty" {
    for name in nccl_AllReduce.log all_reduce.txt; do
        as_printed $name ""
        run --separate-stderr "$EVENLOAD" comm --from $name
        [[ $status -eq 0 && $output == *"  all_reduce  "*" 175 "* ]] || show
    done
    for prefix in "[1,0]<stdout>:" "node0: " "[rank0]: " "web-1  | " "2025-03-04T05:06:07.123Z " "2025-03-04T05:06:07.123Z node0: "; do
        as_printed all_reduce.txt "lines = ['$prefix' + line for line in lines]"
        run --separate-stderr "$EVENLOAD" comm --from all_reduce.txt
        [[ $status -eq 0 && $output == *"  all_reduce  "* && $output == *" 175 "* ]] || { echo "$prefix" && show; }
    done
    as_printed alltoall.txt "lines = [line.replace('     sum      -1', ' ' * 16).replace('redop    root', 'redop        ').replace('175', ' 87.5'.strip()) for line in lines]"
    run --separate-stderr "$EVENLOAD" comm --from alltoall.txt
    [[ $status -eq 0 && $output == *"  alltoall  "* ]] || show
    as_printed reduce.txt ""
    refuses "by its name it is of reduce, whose busbw is 1 times its algbw; in it that is 1.75 times" "$EVENLOAD" comm --from reduce.txt
}

@test "comm --from says what a file has lost, and which files it leaves out" {
    as_printed all_reduce.txt "lines[-4] = lines[-4][:45] + 'node0:1:2 [0] NCCL INFO AllReduce: opCount 1'"
    run --separate-stderr "$EVENLOAD" comm --from all_reduce.txt
    [[ $status -eq 1 && $output == *"! Not whole: "*"! The header announces 1 row more than there is."* ]] || show
    as_printed all_reduce.txt "lines = lines[:-3] + ['node0: Test NCCL failure']"
    run --separate-stderr "$EVENLOAD" comm --from all_reduce.txt --json
    printf '%s' "$output" >d.json
    [[ $status -eq 1 && $(json d.json 'd["cut"], d["lost_rows"]') == "(True, 1)" ]] || show
    as_printed all_reduce.txt ""
    run --separate-stderr "$EVENLOAD" comm --from all_reduce.txt
    [[ $status -eq 0 && $output != *"The file states"* ]] || show
    as_printed all_reduce.txt "lines[-1] = lines[-1].replace('175', '170')"
    run --separate-stderr "$EVENLOAD" comm --from all_reduce.txt
    [[ $status -eq 0 && $output == *"! The file states an average bus bandwidth of 170 GB/s; its rows come to 175."* ]] || show
    mkdir folder
    as_printed folder/all_reduce.txt ""
    echo "node0 slots=8" >folder/hostfile.txt
    run --separate-stderr "$EVENLOAD" comm --from folder
    [[ $status -eq 0 && $output == *"! Left out (unknown format): "*hostfile.txt* ]] || show
}
