#!/usr/bin/env bats
# mp and pipeline: the model cut by layers, by the command line.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

MODEL=(--model mlp --features 16 --hidden "12,8,8" --data dummy --batch 8 --warmup 1 --steps 3 --min-time 0 --precision f64 --quiet)

losses() { json "$1/results.json" 'd["trials"][0]["loss"]'; }

@test "stages as threads and as processes have the same bits, and single's losses" {
    "$EVENLOAD" run --mode single "${MODEL[@]}" --out single
    for kind in local shm tcp; do
        how=(--procs 1)
        [[ $kind == local ]] || how=(--procs 3 --launcher own --comm "$kind")
        "$EVENLOAD" run --mode pipeline --devices 3 --schedule micro=4 "${MODEL[@]}" "${how[@]}" --out "$kind"
        [[ $(losses "$kind") == "$(losses local)" ]] || { losses "$kind"; losses local; false; }
    done
    "$EVENLOAD" run --mode mp --devices 2 --cut hidden3 "${MODEL[@]}" --out mp
    python3 - <<'END'
import json
single, *others = [json.load(open(f"{d}/results.json"))["trials"][0] for d in ("single", "local", "mp")]
for trial in others:
    assert max(abs(a - b) for a, b in zip(single["loss"], trial["loss"])) < 1e-12, (single["loss"], trial["loss"])
    assert len(trial["loss"]) == 4, trial["loss"]
config = others[0]["config"]
assert (config["micro_batches"], config["schedule"], config["cut"], others[1]["config"]["cut"]) == (4, "1f1b", "time", "hidden3"), config
END
}

@test "a table of PyTorch and backwards in halves have the same bits in one process and in several, and single's losses" {
    deep=(--model mlp --features 8 --hidden "6,7,5,6,4,6,5" --data dummy --batch 8 --warmup 1 --steps 3 --min-time 0 --precision f64 --quiet)
    table=$BATS_TEST_DIRNAME/../unit/data/schedules/ZBVZeroBubble-2x2-4.csv
    "$EVENLOAD" run --mode single "${deep[@]}" --out single
    for schedule in "$table" zero-bubble; do
        name=$(basename "$schedule")
        "$EVENLOAD" run --mode pipeline --devices 2 --schedule micro=4 --schedule "$schedule" "${deep[@]}" --out "threads-$name"
        "$EVENLOAD" run --mode pipeline --devices 2 --schedule micro=4 --schedule "$schedule" "${deep[@]}" --procs 2 --launcher own --out "processes-$name"
        [[ $(losses "threads-$name") == "$(losses "processes-$name")" ]] || { losses "threads-$name"; losses "processes-$name"; false; }
        python3 - "$name" <<'END'
import json, sys
losses = [json.load(open(f"{d}/results.json"))["trials"][0]["loss"] for d in ("single", "threads-" + sys.argv[1])]
assert max(abs(a - b) for a, b in zip(*losses)) < 1e-12, losses
END
    done
}

@test "a step with communication off and on, and epochs with an evaluation, go through stages" {
    run "$EVENLOAD" run --mode pipeline --devices 2 --procs 2 --launcher own --model mlp --features 16 --hidden 8 --data dummy --batch 8 --steps 3 \
        --min-time 0.1 --out comm
    [[ $status -eq 0 && $output == *" (2 stages) "*"Where a step goes"* ]] || show
    python3 - <<'END'
import json
trial = json.load(open("comm/results.json"))["trials"][0]
for device in trial["per_device"]:
    assert 0 < device["bubble_ms"] < device["window_ms"], device
    assert device["comm"]["wait_ms"] == 0, device["comm"] # there is no collective
assert trial["collectives"] == [] and 0 < trial["bubble_pct"] < 100, trial["bubble_pct"]
END
    "$EVENLOAD" compare --modes single,pipeline --devices 2 --schedule interleaved --model mlp --features 16 --hidden 8,8,8 --batch 64 --epochs 2 --precision f64 \
        --control none --repeats 1 --quiet --out epochs >out
    grep -A3 '^Accuracy' out | grep -qE '^pipeline 64 \(2 stages\) +2 ' || { cat out; false; }
    python3 - <<'END'
import json
single, pipeline = (t["epochs"] for t in json.load(open("epochs/results.json"))["trials"])
assert len(single) == 2 and [e["held_out_accuracy"] for e in single] == [e["held_out_accuracy"] for e in pipeline], (single, pipeline)
block = open("epochs/plots/accuracy.dat").read().split("# line1\n")[1].split("\n\n")[0].splitlines()[1:]
drawn = [[float(x) for x in line.split("\t")] for line in block]
assert len(drawn) == 2 and abs(drawn[1][0] - sum(e["seconds"] for e in pipeline)) < 1e-4 * drawn[1][0], (drawn, pipeline)
assert abs(drawn[1][1] - 100 * pipeline[1]["held_out_accuracy"]) < 1e-4, (drawn, pipeline)
END
}

@test "a step of each stage is drawn, and run says how" {
    "$EVENLOAD" run --mode pipeline --devices sim:2 --schedule micro=4 "${MODEL[@]}" --out r >out
    grep -q "^Next: .*evenload plot r    (bubbles: a step of each stage, in r/plots/stages.png)$" out || { cat out; false; }
    run "$EVENLOAD" plot r # writes the data: there is no gnuplot
    grep -q "^pipeline, batch 8 (2 stages), 1f1b, 4 micro-batches: bubble [0-9.]* %" r/plots/stages.dat
    if command -v gnuplot >/dev/null; then
        with_gnuplot
        cd r/plots && LC_ALL=C.UTF-8 gnuplot -d -c "$BATS_TEST_DIRNAME/../../plots/stages.gnuplot" stages.dat svg >stages.svg 2>errors
        [[ ! -s errors && $(grep -c ">3<" stages.svg) -ge 1 && $(grep -c "sim:1" stages.svg) -eq 1 ]] || { cat errors && false; }
    fi
    json ../results.json 'd["trials"][0]["per_device"][0]["activation_sets"]' | grep -qx 2
}

@test "activation sets are predicted" {
    "$EVENLOAD" run --mode pipeline --devices sim:4 --schedule micro=6 --batch 12 --model mlp --features 8 --hidden "6,7,5" --data dummy --dry-run --json >sets.json
    [[ $(json sets.json '[x["activation_sets"] for x in d["devices"]]') == "[4, 3, 2, 1]" ]] || { cat sets.json; false; }
    run "$EVENLOAD" run --mode pipeline --devices sim:2 --schedule gpipe,micro=6 --batch 12 --model mlp --features 8 --hidden 6 --data dummy --dry-run
    [[ $status -eq 0 && $output == *"  sets  in"*"  6  "*"sets: of activations"* ]] || show
}

@test "a pipeline is predicted from records of single, and what they do not say is refused" {
    local larger=(--model mlp --features 64 --hidden "64,64,64" --data dummy --warmup 1 --steps 3 --min-time 0 --precision f64 --quiet)
    "$EVENLOAD" run --mode single "${larger[@]}" --batch 16 --out s4 >/dev/null
    "$EVENLOAD" run --mode single "${larger[@]}" --batch 16 --zero-grad keep --out keep >/dev/null
    "$EVENLOAD" comm sendrecv --comm local --devices 2 -b 1K -e 4K -n 3 -w 1 --out wire --quiet >/dev/null
    "$EVENLOAD" run --mode pipeline --devices sim:2 --schedule micro=2 "${larger[@]}" --batch 32 --costs wire,s4,keep --out predicted >/dev/null
    python3 - <<'END'
import json
ops = lambda folder: {(o["op"], o["phase"]): (o["ms"] / o["count"], o["count"]) for d in json.load(open(folder + "/results.json"))["trials"][0]["per_device"] for o in d["ops"]}
single, predicted = ops("s4"), ops("predicted")
for op in ("linear_forward hidden1", "linear_backward_weights hidden3", "linear_backward_data out"):
    key = (op, op.split("_")[1].split()[0])
    assert predicted[key][1] == 2 and abs(predicted[key][0] - single[key][0]) < 2e-6, (op, predicted[key], single[key])
assert predicted["add hidden1", "backward"][0] > 0
END
    run "$EVENLOAD" run --mode pipeline --devices sim:2 --schedule micro=2 "${larger[@]}" --batch 32 --costs wire,s4,keep --dry-run
    [[ $status -eq 0 && $output == *"a step of "*" ms, "*" samples/s, bubble "*" %: predicted from wire,s4,keep"* ]] || show
    [[ $output == *"No interval: a record of --costs has one launch: measure it with --repeats 5."* && $output == *"! 2 records of --costs are suspect; s4: "* ]] || show
    [[ $("$EVENLOAD" run --mode pipeline --devices sim:2 --schedule micro=2 "${larger[@]}" --batch 32 --costs wire,s4,keep --dry-run --json | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["step_ms"], 6))') == \
        "$(json predicted/results.json 'round(d["trials"][0]["step_ms"]["mean"], 6)')" ]]
    refuses "--costs: 'linear_forward hidden1' moves " "$EVENLOAD" run --mode pipeline --devices sim:2 --schedule micro=1 "${larger[@]}" --batch 32 --costs wire,s4 --dry-run
    refuses "--costs s4: was measured with --precision f64, not f32" "$EVENLOAD" run --mode pipeline --devices sim:2 "${larger[@]}" --precision f32 --costs wire,s4
}

@test "what cannot be cut is refused by name" {
    refuses "--schedule micro=3: a batch of 8 cannot be divided into that many equal parts" "$EVENLOAD" run --mode pipeline --devices 2 --schedule micro=3 "${MODEL[@]}"
    refuses "--cut conv9: mlp has no node 'conv9'" "$EVENLOAD" run --mode mp --devices 2 --cut conv9 "${MODEL[@]}"
    refuses "--cut out: gives 2 parts, and there must be 3" "$EVENLOAD" run --mode mp --devices 3 --cut out "${MODEL[@]}"
    refuses "mlp has 4 nodes: it cannot be cut into 5 parts" "$EVENLOAD" run --mode mp --devices sim:5 "${MODEL[@]}"
    refuses "mlp has 4 nodes: it cannot be cut into 8 parts: give fewer --devices, or fewer --schedule parts" "$EVENLOAD" run --mode pipeline --schedule interleaved --devices sim:4 "${MODEL[@]}"
}

@test "a schedule that cannot be run is refused by what is wrong with it" {
    printf '0F0,0B0\n1F0\n' >no_backward.csv
    printf '0F0,0B0\n1B0,1F0\n' >dead_lock.csv
    printf '0F0,0B0\n1F0,1SEND_B0,1B0\n' >other.csv
    printf '0F0,0B0\n9F0,9B0\n' >stage.csv
    refuses "no_backward.csv: stage 1 has no backward of micro-batch 0" "$EVENLOAD" run --mode pipeline --devices 2 --schedule no_backward.csv "${MODEL[@]}"
    refuses "dead_lock.csv: deadlock: device 0 would wait for ever" "$EVENLOAD" run --mode pipeline --devices 2 --schedule dead_lock.csv "${MODEL[@]}"
    refuses "other.csv: row 2, cell 2: '1SEND_B0': no action that computes" "$EVENLOAD" run --mode pipeline --devices 2 --schedule other.csv "${MODEL[@]}"
    refuses "stage.csv: has stage 9, and no stage 1" "$EVENLOAD" run --mode pipeline --devices 2 --schedule stage.csv "${MODEL[@]}"
    refuses "--schedule: 'fifo' is not one of 1f1b|gpipe|interleaved|zero-bubble, nor a file (name.csv)" "$EVENLOAD" run --mode pipeline --devices 2 --schedule fifo "${MODEL[@]}"
}

@test "what no device holds alone trains in stages" {
    run "$EVENLOAD" compare --modes single,mp,pipeline --devices 2 --procs 1 --model mlp --features 256 --hidden 512,512,512 --data dummy --batch 32 --schedule micro=4 \
        --devices mem=6MiB --warmup 1 --steps 3 --min-time 0 --control none --repeats 1 --quiet --out m
    [[ $status -eq 1 && $output == *"single   32            oom: cpu:0 is out of memory: "* ]] || show
    python3 - <<'END'
import json
trials = json.load(open("m/results.json"))["trials"]
assert [(t["mode"], t["status"]) for t in trials] == [("single", "oom"), ("mp", "ok"), ("pipeline", "ok")], trials
for trial in trials[1:]:
    peaks = [d["memory"]["peak_bytes"] for d in trial["per_device"]]
    assert all(0 < peak <= 6 << 20 for peak in peaks) and sum(peaks) > 6 << 20, (trial["mode"], peaks)
END
}
