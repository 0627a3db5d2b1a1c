#!/usr/bin/env bats
# PyTorch itself is asked (tests/torch): the ledger's peaks are its peaks, ddp's buckets its buckets, pipelines' tables its tables. It is large, and so only
# here with `scripts/test --with-torch`, which sets EVENLOAD_TORCH to a Python that has it.
load common

need_torch() {
    [[ -n ${EVENLOAD_TORCH-} ]] || skip "no PyTorch was asked for: scripts/test --with-torch"
    MEASURE=${BATS_TEST_DIRNAME:-tests/cli}/../torch/measure.py
}

# An embedding that outweighs all else; foreach given both ways on both sides, since the default follows the device.
@test "peaks are within 2 % of PyTorch's: single and ddp, each optimizer, gradients freed and kept, foreach off and on" {
    need_torch
    local mode optimizer zero foreach n=0 model=(--model textcnn --vocab 20000 --embed 64 --seq 12 --filters 8 --classes 2 --model dropout=0)
    "$EVENLOAD_TORCH" "$MEASURE" peaks >torch.json 2>torch.err || { tail torch.err && false; }
    for mode in single ddp; do for optimizer in sgd momentum adam; do for zero in free keep; do for foreach in off on; do
        "$EVENLOAD" run --mode "$mode" --devices 2 --optimizer "$optimizer" --zero-grad "$zero" --optimizer "foreach=$foreach" "${model[@]}" \
            --data dummy --batch 8 --dry-run --json >ours.json
        python3 - "$mode $optimizer $zero $foreach" <<'.'
import json, sys
theirs, device = json.load(open("torch.json"))[sys.argv[1]], json.load(open("ours.json"))["devices"][0]
ours = device["peak_bytes"] / device["at_peak_by_tag"]["param"]
print(f"{sys.argv[1]}: {ours:.4f} copies of P, PyTorch {theirs:.4f}")
sys.exit(not abs(ours / theirs - 1) < 0.02)
.
        n=$((n + 1))
    done; done; done; done
    [[ $n == 24 ]]
}

# A hidden layer's output takes as much as its weights do.
@test "peaks are within 1 % of PyTorch's where activations weigh: an mlp with a large batch" {
    need_torch
    local optimizer
    "$EVENLOAD_TORCH" "$MEASURE" activations >torch.json 2>torch.err || { tail torch.err && false; }
    for optimizer in sgd momentum; do
        "$EVENLOAD" run --model mlp --hidden 1024,1024,1024 --mode single --optimizer "$optimizer" --data dummy --batch 1024 --dry-run --json >ours.json
        python3 - "$optimizer" <<'.'
import json, sys
theirs, device = json.load(open("torch.json"))["mlp " + sys.argv[1]], json.load(open("ours.json"))["devices"][0]
ours = device["peak_bytes"] / device["at_peak_by_tag"]["param"]
print(f"{sys.argv[1]}: {ours:.4f} copies of P, PyTorch {theirs:.4f}")
sys.exit(not abs(ours / theirs - 1) < 0.01)
.
    done
}

@test "buckets have PyTorch's sizes for caps default, 1, 5 and 25" {
    need_torch
    local cap
    "$EVENLOAD_TORCH" "$MEASURE" buckets >torch.json 2>torch.err || { tail torch.err && false; }
    for cap in default 1 5 25; do
        local given=()
        [[ $cap == default ]] || given=(--bucket-mb "$cap")
        "$EVENLOAD" run --mode ddp --devices null:2 --procs 1 --model mlp --hidden 1024,1024,1024,1024 --classes 10 --data dummy --batch 4 \
            --warmup 2 --steps 2 --min-time 0 --control none --json --quiet --out "$cap" "${given[@]}" >ours.json
        echo "$cap: $(json ours.json '[int(c["bytes"]) for c in d["collectives"]]'), PyTorch $(json torch.json "d['$cap']")"
        [[ $(json ours.json '[int(c["bytes"]) for c in d["collectives"]]') == "$(json torch.json "d['$cap']")" ]]
    done
}

# The same weights and batches: gradients and running statistics of a step, losses of several (tests/torch/parity.py says how).
@test "gradients and losses are PyTorch's: textcnn, mlp, toy, linear and resnets, single and ddp, each optimizer; with frozen layers too" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/parity.py" "$EVENLOAD" "$PWD" >parity.txt 2>parity.err || { cat parity.txt && tail parity.err && false; }
    cat parity.txt
    [[ $(wc -l <parity.txt) == 172 && $(cut -d' ' -f1 parity.txt | sort -u | wc -l) == 12 ]]
}

@test "checkpoints go both ways, with the state of momentum, adam and adamw: textcnn, mlp, resnet18" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/checkpoint.py" "$EVENLOAD" "$PWD" >checkpoint.txt 2>checkpoint.err || { cat checkpoint.txt && tail checkpoint.err && false; }
    cat checkpoint.txt
    [[ $(wc -l <checkpoint.txt) == 18 && $(grep -c OVER checkpoint.txt) == 0 ]]
}

@test "gpt is PyTorch's GPT-2: losses and gradients in eight modes; tp's of parallelize_module, zero's of fully_shard and its optimizer too" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/gpt.py" "$EVENLOAD" "$PWD" >gpt.txt 2>gpt.err || { cat gpt.txt && tail gpt.err && false; }
    cat gpt.txt
    [[ $(wc -l <gpt.txt) == 47 && $(grep -c OVER gpt.txt) == 0 ]]
}

@test "moe is plain PyTorch, Mixtral's block and two ranks of gloo: losses and gradients in five modes" {
    need_torch
    "$EVENLOAD_TORCH" -W ignore "$(dirname "$MEASURE")/moe.py" "$EVENLOAD" "$PWD" >moe.txt 2>moe.err || { cat moe.txt && tail moe.err && false; }
    cat moe.txt
    [[ $(wc -l <moe.txt) -ge 63 && $(grep -c OVER moe.txt) == 0 ]]
}

@test "gpt learns this project's documents to PyTorch's held-out bits a byte within 0.02, by each of three seeds" {
    need_torch
    long "GPT-2 in PyTorch trained three times, 2 to 4 minutes"
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/learns.py" "$EVENLOAD" "$PWD" >learns.txt 2>learns.err || { cat learns.txt && tail learns.err && false; }
    cat learns.txt
    [[ $(grep -c '^seed ' learns.txt) == 3 ]]
}

# How far apart its seeds are is what PyTorch's own runs say (tests/torch/precision.py).
@test "bf16 learns as PyTorch's autocast: gpt and textcnn, 200 steps" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/precision.py" "$EVENLOAD" "$PWD" >precision.txt 2>precision.err || { cat precision.txt && tail precision.err && false; }
    [[ $(grep -c ' bf16 ' precision.txt) == 2 ]]
}

@test "bf16-mixed is fully_shard's MixedPrecisionPolicy: zero1, zero2, zero3 and ddp, f32 weights after 5 steps" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/mixed.py" "$EVENLOAD" "$PWD" >mixed.txt 2>mixed.err || { cat mixed.txt && tail mixed.err && false; }
    cat mixed.txt
    [[ $(wc -l <mixed.txt) == 26 ]]
}

@test "--epochs eval=padded: each rank counts what PyTorch's DistributedSampler gives it, and the accuracy is PyTorch's" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/evaluation.py" "$EVENLOAD" "$PWD" >eval.txt 2>eval.err || { cat eval.txt && tail eval.err && false; }
    cat eval.txt
    [[ $(wc -l <eval.txt) == 6 ]]
}

# What limits there are is said by PyTorch's own runs from weights that are one bit off (tests/torch/hooks.py).
@test "--comm-hook: losses and weights of 20 steps are those of PyTorch's fp16 and bf16 hooks" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/hooks.py" "$EVENLOAD" "$PWD" >hooks.txt 2>hooks.err || { cat hooks.txt && tail hooks.err && false; }
    cat hooks.txt
    [[ $(wc -l <hooks.txt) == 12 && $(grep -c OVER hooks.txt) == 0 ]]
}

@test "the package safetensors reads what we write, and we read what it writes" {
    need_torch
    "$EVENLOAD_TORCH" -c 'import safetensors' 2>/dev/null || skip "that Python has no package safetensors"
    local file small=(--model textcnn --data dummy --vocab 50 --embed 6 --seq 8 --filters 4 --model dropout=0 --batch 8 --warmup 0 --steps 1 --min-time 0 --quiet)
    "$EVENLOAD" run "${small[@]}" --out a --save a.st >/dev/null
    # What goes through PyTorch's module comes back, in the other types too.
    "$EVENLOAD_TORCH" - "$(dirname "$MEASURE")" <<'.'
import sys
import torch
from safetensors.torch import load_file, save_file
sys.path.insert(0, sys.argv[1])
import weights
state, own = load_file("a.st"), weights.load("a.st")
assert sorted(state) == sorted(own) and all(torch.equal(state[n], own[n]) for n in own)
model = weights.TextCNN(50, 6, 4, 2)
model.load_state_dict(state)
save_file(model.state_dict(), "b.st")
save_file({n: t.half() for n, t in state.items()}, "f16.st")
save_file({n: t.bfloat16() for n, t in state.items()}, "bf16.st")
.
    for file in b f16 bf16; do "$EVENLOAD" run "${small[@]}" --lr 0 --out "out-$file" --load "$file.st" --save "back-$file.st" >/dev/null; done
    "$EVENLOAD_TORCH" - <<'.'
import torch
from safetensors.torch import load_file
first = load_file("a.st")
for name, kind in ("b", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16):
    back = load_file(f"back-{name}.st")
    assert all(torch.equal(back[n], first[n].to(kind).float()) for n in first), name
.
}

@test "tables of pipelines are those that this PyTorch writes" {
    need_torch
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/schedules.py" tables >torch.out 2>&1 || { tail torch.out && false; }
    diff -r tables "$BATS_TEST_DIRNAME/../unit/data/schedules" || show
}

# The same steps by torch.profiler.schedule, of any schedule; and what trace-stats counts in a trace that torch.profiler wrote.
@test "a profile's steps are torch.profiler.schedule's, and its traces are read" {
    need_torch
    local schedule
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/profiles.py" >torch.txt 2>torch.err || { tail torch.err && false; }
    while IFS=$'\t' read -r schedule steps; do
        "$EVENLOAD" run "${QUICK[@]}" --steps 24 --control none --quiet --json --profile "$schedule" >ours.json
        echo "$schedule: $(json ours.json 'd["profile"]["steps"]'), PyTorch $steps"
        [[ $(json ours.json 'd["profile"]["steps"]') == "$steps" ]]
    done <torch.txt
    [[ $(wc -l <torch.txt) == 6 ]]
    "$EVENLOAD" trace-stats trace.json --json >stats.json
    python3 - <<'.'
import json
(ours,), cpu_only = (json.load(open("stats.json"))[k] for k in ("devices", "cpu_only"))
ops = [e for e in json.load(open("trace.json"))["traceEvents"] if e.get("cat") == "cpu_op"]
work, busy, end = [e for e in ops if "evaluate_function" not in e["name"]], 0, 0 # whose own time is none
for a, b in sorted((e["ts"], e["ts"] + e["dur"]) for e in work):
    busy, end = busy + max(0, b - max(a, end)), max(end, b)
window = max(e["ts"] + e["dur"] for e in ops) - min(e["ts"] for e in ops)
assert cpu_only and ours["events"]["compute"] == len(work) and ours["comm_ms"] == 0, ours
assert abs(ours["compute_ms"] - busy / 1e3) < 1e-4 and abs(ours["window_ms"] - window / 1e3) < 1e-4, (ours, busy, window)
.
}

# Thirty jobs of four kinds, in each of which one rank sleeps 20 or 50 ms in its data, forward, backward or optimizer, on traces that torch.profiler has just
# written: which rank, and by how much; nobody in eight even ones. A busy machine adds to what a rank sleeps: a kind that was disturbed is made again once.
@test "trace-stats names the late rank in 30 of 30 of PyTorch's jobs, within 10 % of its lateness, nobody in even ones, and a slow wire as the wire" {
    need_torch
    long "38 jobs of PyTorch with a late rank or none, and one on a slow wire, 3 minutes"
    local tests kind
    tests=$(dirname "$MEASURE")
    planted() { # KIND WORLD CASE...
        "$EVENLOAD_TORCH" "$tests/planted.py" "jobs/$1-$2" "$@" >torch.out 2>&1 || { tail torch.out && false; }
        python3 "$tests/planted_check.py" "$EVENLOAD" "jobs/$1-$2"/* >found.one
    }
    for kind in "ddp 2 0-data-20 1-forward-20 0-backward-50 1-optimizer-50 1-data-50" "ddp 4 3-data-20 1-forward-50 2-backward-20 0-optimizer-20 3-backward-50" \
        "fsdp 2 1-data-20 0-forward-50 1-backward-50 0-optimizer-20" "fsdp 4 2-data-50 0-forward-20 3-backward-20 1-optimizer-50" \
        "zero1 2 0-data-20 1-backward-50 0-forward-20" "zero1 4 2-data-20 3-backward-20 1-forward-50" \
        "loop 2 1-data-20 0-backward-50 1-optimizer-20" "loop 4 0-data-50 2-backward-20 3-forward-20"; do
        # shellcheck disable=SC2086  # several words
        planted $kind even || { rm -rf jobs && planted $kind even; } || true
        cat found.one >>found.txt
    done
    cat found.txt
    [[ $(grep -c '^ok ' found.txt) == 38 && $(grep -c '^NOT' found.txt) == 0 ]]
    # A loopback of its own, at 300 Mbit/s: 1 MB from each to the other takes 57 ms, in two buckets side by side.
    unshare -rn true 2>/dev/null && command -v tc ip >/dev/null || { echo "# no network of its own here: the slow wire is not tried" && return 0; }
    unshare -rn sh -c 'ip link set lo up && tc qdisc add dev lo root tbf rate 300mbit burst 256kb latency 2s && exec "$@"' sh \
        "$EVENLOAD_TORCH" "$tests/planted.py" wire ddp 2 even >torch.out 2>&1 || { tail torch.out && false; }
    "$EVENLOAD" trace-stats wire/even --json >wire.json
    json wire.json 'd["job"]["blame"]["sentence"], d["job"]["bandwidth"]'
    [[ $(json wire.json 'd["job"]["blame"]["kind"]') == wire && $(json wire.json '0.008 < d["job"]["bandwidth"][0]["busbw_gb_per_s"] < 0.04') == True ]]
}

@test "watch: the late rank of PyTorch's jobs that were not changed, by its hook, with the losses that they have without it" {
    need_torch
    local tests case
    tests=$(dirname "$MEASURE")
    for case in "ddp 2 1-backward-50" "fsdp 2 0-forward-50" "loop 2 1-data-50"; do
        # shellcheck disable=SC2086  # several words
        "$EVENLOAD" watch --quiet --no-plot --out "w-${case// /}" -- "$EVENLOAD_TORCH" "$tests/planted.py" jobs $case >torch.out 2>&1 || { tail torch.out && false; }
        json "w-${case// /}/results.json" 'd["watch"]["training"]["late"]["blame"]["sentence"], d["watch"]["training"]["trouble"]'
        [[ $(json "w-${case// /}/results.json" 'd["watch"]["training"]["late"]["blame"]["rank"]') == "rank $(cut -d' ' -f3 <<<"$case" | cut -d- -f1)" ]]
        [[ $(json "w-${case// /}/results.json" '[r["steps"] for r in d["watch"]["training"]["ranks"]], d["watch"]["training"]["trouble"]') == "([10, 10], [])" ]]
    done
    cat >train.py <<'.'
import torch
torch.manual_seed(0)
model, data = torch.nn.Linear(20, 3), torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 3, (640,)))
optimizer = torch.optim.Adam(model.parameters())
for x, y in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=1):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
.
    "$EVENLOAD_TORCH" train.py >plain.txt
    "$EVENLOAD" watch --quiet --no-plot --out w -- "$EVENLOAD_TORCH" train.py >hooked.txt
    cmp plain.txt hooked.txt && [[ $(wc -l <plain.txt) == 20 ]]
    [[ $(json w/results.json '[r["steps"] for r in d["watch"]["training"]["ranks"]], d["watch"]["training"]["late_reason"], d["watch"]["training"]["trouble"]') == "([20], 'one process steps', [])" ]]
}

@test "watch: rank, cause and milliseconds of 57 in 60 of PyTorch's jobs that are late on purpose, and nobody in even ones" {
    need_torch
    long "71 jobs of PyTorch under watch, 15 minutes"
    local tests
    tests=$(cd "${BATS_TEST_DIRNAME:-tests/cli}/../torch" && pwd)
    "$EVENLOAD_TORCH" "$tests/watched_check.py" "$EVENLOAD" "$PWD/jobs" >found.txt
    cat found.txt
    awk '/^late:/ { exit !($2 >= 0.95 * $4 && $4 >= 50 && $6 == $8 && $8 >= 8) }' <(tr -d ';' <found.txt)
}

@test "scripts/peer-torch: raw pairs, and their ratios" {
    need_torch
    "${BATS_TEST_DIRNAME:-tests/cli}/../../scripts/peer-torch" --python "$EVENLOAD_TORCH" --pairs 2 --steps 3 --out "$PWD/r" >out.txt
    cat out.txt
    [[ $(grep -cE '^(textcnn|mlp) +(single +1|ddp +2) +[0-9.]+ +\([0-9.]+ to [0-9.]+\)' out.txt) == 4 && $(wc -l <r/peer-torch.csv) == 9 ]]
    # A row's ratio is of its own two times, the first of a pair changes, and no launch took no time.
    python3 - <<'.'
import csv
rows = list(csv.DictReader(open("r/peer-torch.csv")))
assert {(r["model"], r["mode"]) for r in rows} == {(m, n) for m in ("textcnn", "mlp") for n in ("single", "ddp")}
assert {r["first"] for r in rows} == {"evenload", "torch"}
assert all(abs(float(r["evenload_ms"]) / float(r["torch_ms"]) / float(r["ratio"]) - 1) < 0.01 for r in rows)
.
}

@test "scripts/peer-torch refuses a Python without PyTorch, and bad use" {
    local peer=${BATS_TEST_DIRNAME:-tests/cli}/../../scripts/peer-torch
    refuses "has no PyTorch" "$peer" --python /bin/false
    refuses "unknown option '--frobnicate'" "$peer" --frobnicate
    refuses "--pairs takes a whole number" "$peer" --pairs none
    refuses "--models takes textcnn, mlp, gpt, resnet18 and resnet50" "$peer" --models resnet
    refuses "--image takes a whole number" "$peer" --image wide
    refuses "--ranks takes a number" "$peer" --ranks 1,x
    refuses "--modes takes single, ddp, tp and zero3" "$peer" --modes dp
    refuses "are of --models gpt alone" "$peer" --modes tp
    refuses "--bucket-view takes on or off" "$peer" --bucket-view both
}

@test "what jobs of PyTorch that hang on purpose hang in, by their flight recorders' dumps" {
    need_torch
    long "15 jobs of two to four ranks, a minute"
    "$EVENLOAD_TORCH" -c 'import torch; torch._C._distributed_c10d._dump_fr_trace_json' 2>/dev/null || skip "that PyTorch's gloo has no flight recorder"
    "$EVENLOAD_TORCH" "$(dirname "$MEASURE")/hangs.py" "$EVENLOAD" "$PWD/hangs" >hangs.txt 2>hangs.err || { cat hangs.txt && tail hangs.err && false; }
    tail -1 hangs.txt
}
