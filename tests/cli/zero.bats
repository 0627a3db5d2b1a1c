#!/usr/bin/env bats
# Sharded state by the command line: room that ddp lacks, traces and reports, and what is refused. Semantics are tests/equivalence's.
PICTURES=no
load common

GPT=(--model gpt --layers 4 --embed 40 --seq 8 --vocab 64 --data dummy --batch 4 --precision f64 --optimizer adam --warmup 1 --steps 3 --min-time 0 --control none --quiet)

@test "a model that --devices mem=refuses in ddp trains in zero3, as ddp does where it has room" {
    local need
    "$EVENLOAD" run "${GPT[@]}" --mode zero3 --devices 4 --dry-run --json >forecast.json
    need=$(json forecast.json 'max(d["peak_bytes"] for d in d["devices"])')
    run --separate-stderr "$EVENLOAD" run "${GPT[@]}" --mode ddp --devices 4 --procs 1 --devices "mem=$need" --out ddp
    [[ $status -eq 1 && $(json ddp/results.json 'd["trials"][0]["status"]') == oom ]] || show
    "$EVENLOAD" run "${GPT[@]}" --mode zero3 --devices 4 --procs 1 --devices "mem=$need" --out zero3
    run --separate-stderr "$EVENLOAD" run "${GPT[@]}" --mode zero3 --devices 4 --procs 1 --devices mem=$((need - 1)) --out less
    [[ $status -eq 1 && $(json less/results.json 'd["trials"][0]["status"]') == oom ]] || show
    "$EVENLOAD" run "${GPT[@]}" --mode ddp --devices 4 --procs 1 --out room
    python3 - "$need" <<'.'
import json, sys
a, b = (json.load(open(f"{name}/results.json"))["trials"][0] for name in ("zero3", "room"))
assert max(abs(x - y) for x, y in zip(a["loss"], b["loss"], strict=True)) < 1e-12, (a["loss"], b["loss"])
peaks = [[d["memory"]["peak_bytes"] for d in t["per_device"]] for t in (a, b)]
assert max(peaks[0]) == int(sys.argv[1]) < min(peaks[1]) / 2, peaks
.
}

@test "a mesh that does not fit, units that are none, and options that the mode lacks are refused in a line" {
    local refused=0 options words
    while IFS='|' read -r options words; do
        # shellcheck disable=SC2086 # words
        refuses "$words" "$EVENLOAD" run "${QUICK[@]}" --devices 4 --mode $options
        [[ ${#stderr_lines[@]} -eq 1 ]] || show
        refused=$((refused + 1))
    done <<'.'
zero3 --mesh dp=3|--mesh dp=3: 4 devices cannot be divided evenly among that many
zero3 --mesh shard=3|--mesh shard=3: dp times pp times tp times shard must be the number of devices (4)
zero1 --mesh dp=2,shard=4|--mesh dp=2,shard=4: dp times pp times tp times shard must be the number of devices (4)
zero2 --mesh shard=0|--mesh shard=0: must be like dp=2,pp=2,tp=2,shard=2, each number at least 1
zero2 --mesh dp=2,shard=|--mesh dp=2,shard=: must be like dp=2,pp=2,tp=2,shard=2
zero3 --mesh pp=3|--mesh pp=3: dp times pp times tp times shard must be the number of devices (4)
zero3 --mesh pp=2 --accumulate 2|--accumulate 2: stages take micro-batches: give --schedule micro
zero1 --mesh pp=2 --schedule interleaved|--schedule interleaved: zero1 takes schedules of one part a device and of whole backwards: 1f1b or gpipe
zero2 --mesh pp=2 --schedule zero-bubble|--schedule zero-bubble: zero2 takes schedules of one part a device
zero3 --mesh pp=2 --schedule micro=5|--schedule micro=5: a batch of 8 cannot be divided into that many equal parts in each of 2 copies of the model: change --batch
pipeline --mesh pp=2,shard=2|--mesh pp=2,shard=2: must be like dp=2,pp=2,tp=2
ddp --mesh shard=2|--mesh: mode ddp does not take it, zero1 does
zero2 --unit reduce=last|--unit reduce=last: a step has one micro-step, which is the last: add --accumulate 2
zero3 --mesh pp=2 --schedule micro=1 --unit reduce=last|--unit reduce=last: a step has one micro-batch, which is the last: add --schedule micro=2
zero3 --unit h.0|--unit: 'h.0' is not one of block|layer|model
zero3 --unit ahead=3|--unit ahead: '3' is not one of 1|2|0
zero3 --unit reduce=first|--unit reduce: 'first' is not one of each|last
ddp --unit layer|--unit: mode ddp does not take it, zero1 does
zero2 --unit ahead=2|--unit ahead: mode zero2 does not take it, zero3 does
zero1 --unit reshard=off|--unit reshard: mode zero1 does not take it, zero3 does
zero1 --unit reduce=last|--unit reduce: mode zero1 does not take it, zero2 does
zero3 --schedule 1f1b|--schedule: mode zero3 with one stage of the model has no use for it: leave it out, or give --mesh pp=2
zero3 --mesh dp=2 --schedule micro=2|--schedule micro: mode zero3 with one stage of the model has no use for it
zero3 --bucket-mb 1|--bucket-mb: mode zero3 does not take it, ddp does
zero3 --batch 3|--batch 3 is smaller than the 4 devices
.
    [[ $refused -eq 25 ]]
}

# A unit's part times the ranks is the unit, and the bytes of all are (n - 1) / n of the model, filled up, per gathering and reduction.
@test "Kineto's traces have gathers and reduce-scatters by their names and sizes, and the record's figures are theirs" {
    "$EVENLOAD" run "${QUICK_MODEL[@]}" --batch 12 --steps 9 --control none --mode zero3 --devices 3 --procs 3 --launcher own --quiet \
        --profile active=9,repeat=1 --trace t --out r >/dev/null
    python3 - <<'.'
import json
from collections import Counter
filled = [(16 * 8 + 8 + 2) // 3 * 3, (8 * 2 + 2 + 2) // 3 * 3]  # elements of the two layers
trial = json.load(open("r/results.json"))["trials"][0]
for rank, device in enumerate(trial["per_device"]):
    events = [e for e in json.load(open(f"t/rank-{rank}.pt.trace.json"))["traceEvents"] if e.get("cat") == "kernel" and "nccl" in e["name"]]
    calls = Counter((e["name"], e["args"]["Collective name"], e["args"]["In msg nelems"], e["args"]["Out msg nelems"]) for e in events)
    wanted = Counter()
    for unit, gathers in zip(filled, (2, 1)):  # the last one stays from forward to backward
        wanted["ncclDevKernel_AllGather", "_allgather_base", unit // 3, unit] += 9 * gathers
        wanted["ncclDevKernel_ReduceScatter", "_reduce_scatter_base", unit, unit // 3] += 9
    assert calls == wanted, (calls, wanted)
    sent = sum(e["args"]["sent bytes"] for e in events) / 9
    assert sent == device["comm"]["bytes"] == 4 * (3 * filled[0] + 2 * filled[1]) * 2 / 3, (sent, device["comm"])
.
    "$EVENLOAD" trace-stats t >stats
    [[ $(grep -c "^all_gather  *3 " stats) -eq 2 && $(grep -c "^reduce_scatter  *3 " stats) -eq 2 ]] || { cat stats && false; }
}

@test "tables, pages and pictures have rows of sharded state, and explain tells its record from ddp's" {
    local mode all=("${QUICK_MODEL[@]}" --batch 16 --devices 4 --procs 1 --control none --repeats 1 --quiet --optimizer adam)
    "$EVENLOAD" compare "${all[@]}" --modes ddp,zero1,zero2,zero3 --out c >table
    "$EVENLOAD" report c >/dev/null
    for mode in zero1 zero2 zero3; do
        grep -q "^$mode  *16 (4 x 4) " table && grep -q "$mode" c/report.html && grep -q "$mode" c/plots/memory.dat && grep -q "$mode" c/plots/step.dat ||
            { cat table c/plots/*.dat && echo $mode && false; }
        "$EVENLOAD" run "${all[@]}" --mode $mode --out $mode >/dev/null
    done
    [[ $(json c/results.json '[g["agrees"] for g in d["gate"]]') == "[True, True, True, True]" ]]
    "$EVENLOAD" run "${all[@]}" --mode ddp --out ddp >/dev/null
    run --separate-stderr "$EVENLOAD" explain ddp zero3 --out e
    [[ $status -eq 0 && $output == *"They differ in mode (ddp, zero3)"*"bucket -"*"optimizer -"* ]] || show
}

# On simulated links of 370.8 GB/s: 0.5 to 1 of that is left where each collective counts by its own factor and group.
@test "the bus bandwidth of a step is no more than its links' in any mode" {
    local mode
    for mode in "zero1 --devices sim:2" "zero3 --devices sim:4 --mesh dp=2,shard=2" "ddp --devices sim:4"; do
        # shellcheck disable=SC2086
        "$EVENLOAD" run --mode $mode --machine h100-sxm --model mlp --features 8192 --hidden 8192,8192 --data dummy --batch 64 --warmup 2 --steps 1 \
            --min-time 0 --json --quiet --out "${mode// /-}" >t.json
        json t.json 'd["comm"]["busbw_gb_per_s"]'
        [[ $(json t.json '185 < d["comm"]["busbw_gb_per_s"] <= 371') == True ]]
    done
}
