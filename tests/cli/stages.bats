#!/usr/bin/env bats
# mp and pipeline: the model cut by layers, by the command line.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

MODEL=(--model mlp --features 16 --hidden "12,8,8" --data dummy --batch 8 --warmup 1 --steps 3 --min-time 0 --dtype f64 --quiet)

losses() { json "$1/results.json" 'd["trials"][0]["loss"]'; }

@test "stages as threads and as processes have the same bits, and single's losses" {
    "$EVENLOAD" run --mode single "${MODEL[@]}" --out single
    for kind in local shm tcp; do
        how=(--procs 1)
        [[ $kind == local ]] || how=(--procs 3 --launcher own --comm "$kind")
        "$EVENLOAD" run --mode pipeline --devices 3 --micro 4 "${MODEL[@]}" "${how[@]}" --out "$kind"
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

@test "a step with communication off and on, and epochs with an evaluation, go through stages" {
    run "$EVENLOAD" run --mode pipeline --devices 2 --procs 2 --launcher own --model mlp --features 16 --hidden 8 --data dummy --batch 8 --steps 3 \
        --min-time 0.1 --out comm
    [[ $status -eq 0 && $output == *" (2 stages) "*"Where a step goes"* ]] || show
    "$EVENLOAD" run --mode single --model mlp --features 16 --hidden 8 --batch 64 --epochs 2 --dtype f64 --quiet --out single
    "$EVENLOAD" run --mode pipeline --devices 2 --model mlp --features 16 --hidden 8 --batch 64 --epochs 2 --dtype f64 --quiet --out pipeline
    [[ $(json pipeline/results.json 'd["trials"][0]["epochs"][-1]["held_out_accuracy"]') == "$(json single/results.json 'd["trials"][0]["epochs"][-1]["held_out_accuracy"]')" ]]
}

@test "a step of each stage is drawn, and run says how" {
    "$EVENLOAD" run --mode pipeline --devices sim:2 --micro 4 "${MODEL[@]}" --out r >out
    grep -q "^Next: .*evenload plot r    (bubbles: a step of each stage, in r/plots/stages.png)$" out || { cat out; false; }
    run "$EVENLOAD" plot r # writes the data: there is no gnuplot
    grep -q "^pipeline, batch 8 (2 stages), 1f1b, 4 micro-batches: bubble [0-9.]* %" r/plots/stages.dat
    if command -v gnuplot >/dev/null; then
        with_gnuplot
        cd r/plots && gnuplot -d -c "$BATS_TEST_DIRNAME/../../plots/stages.gnuplot" stages.dat svg >stages.svg 2>errors
        [[ ! -s errors && $(grep -c ">3<" stages.svg) -ge 1 && $(grep -c "sim:1" stages.svg) -eq 1 ]] || { cat errors && false; }
    fi
    json ../results.json 'd["trials"][0]["per_device"][0]["activation_sets"]' | grep -qx 2
}

@test "what cannot be cut is refused by name" {
    refuses "--micro 3: a batch of 8 cannot be divided into that many equal parts" "$EVENLOAD" run --mode pipeline --devices 2 --micro 3 "${MODEL[@]}"
    refuses "--cut conv9: mlp has no node 'conv9'" "$EVENLOAD" run --mode mp --devices 2 --cut conv9 "${MODEL[@]}"
    refuses "--cut out: gives 2 parts, and there must be 3" "$EVENLOAD" run --mode mp --devices 3 --cut out "${MODEL[@]}"
    refuses "mlp has 4 nodes: it cannot be cut into 5 parts" "$EVENLOAD" run --mode mp --devices sim:5 "${MODEL[@]}"
}
