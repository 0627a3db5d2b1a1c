# Batches padded to their own longest sentence, and batches of similar length: losses, the record's figures, the table, and what is refused.
# Semantics are tests/equivalence/test_threads_lengths's and, with PyTorch, tests/torch/parity.py's.
load common
PICTURES=no

TINY=(--model textcnn --vocab 60 --embed 8 --filters 4 --model dropout=0 --batch 16 --warmup 2 --min-time 0 --control none --quiet)
WIDE=("${TINY[@]}" --data dummy --lengths 4-64)

@test "two ranks have lengths of their own: losses, padding and the rank that computes longest, which changes" {
    "$EVENLOAD" run "${WIDE[@]}" --mode ddp --devices 2 --lengths pad=batch --precision f64 --steps 60 --json --out ranks >ranks.json
    "$EVENLOAD" run "${WIDE[@]}" --mode single --accumulate 2 --lengths pad=batch --precision f64 --steps 60 --json --out plain >plain.json
    "$EVENLOAD" run "${WIDE[@]}" --mode ddp --devices 2 --precision f64 --steps 60 --json --out model >model.json
    python3 - <<'.'
import json
ranks, plain, model = (json.load(open(f"{name}.json")) for name in ("ranks", "plain", "model"))
worst = max(abs(a - b) for a, b in zip(ranks["loss"], plain["loss"], strict=True))
assert worst <= 1e-12 and ranks["loss"][0] != model["loss"][0], worst
assert (ranks["config"]["length_by"], ranks["config"]["lengths"], model["config"]["length_by"]) == ("batch", [4, 64], "model")
lengths = []
for device in ranks["per_device"]:
    steps, length = device["steps"], device["loading"]["length"]
    assert steps["step"] == list(range(2, 62)) and len(steps["compute_ms"]) == 60 and min(steps["compute_ms"]) > 0, steps
    assert abs(sum(steps["length"]) / 60 - length["mean"]) < 1e-9 and max(steps["length"]) == length["max"] <= 64, (steps, length)
    assert abs(100 * (1 - length["words"] / length["mean"]) - length["padding_pct"]) < 1e-9
    assert 25 < length["padding_pct"] < 50 and len(set(steps["length"])) > 5
    lengths.append(steps["length"])
    assert device["comm"]["wait_ms"] > 0, device["comm"]  # ranks know each other's collectives, whichever length each of them has
wins = [sum(a > b for a, b in zip(*order)) for order in (lengths, lengths[::-1])]
assert min(wins) >= 10, wins
# A row of 64 words takes longer than one of 30, whatever else the machine does.
for device in ranks["per_device"]:
    by_length = sorted(zip(device["steps"]["length"], device["steps"]["compute_ms"]))
    short, long = (sorted(t for _, t in part)[len(part) // 2] for part in (by_length[:15], by_length[-15:]))
    assert long > short, (short, long)
for device in model["per_device"]:
    assert device["steps"] is None and device["loading"]["length"]["mean"] == device["loading"]["length"]["max"] == 64
    assert device["memory"]["peak_bytes"] >= ranks["per_device"][0]["memory"]["peak_bytes"]
.
    run --separate-stderr "$EVENLOAD" compare --modes single,ddp,dp --devices 2 "${WIDE[@]}" --steps 12 --repeats 1 --lengths pad=batch --out table
    [[ $status -eq 0 && $output == *"Lengths: words of a sentence, what batches are padded to, and who computes longest"*"padding %"* ]] || show
    for line in "${lines[@]}"; do [[ ${#line} -le 100 || $line == "not drawn:"* || $line == "Again: "* ]] || { echo "$line" && show; }; done
}

# With one bucket both rounds of ddp have the same ops: a rank whose last step is as long as its first one must not be known by the first round's numbers.
# One that always comes last does not wait.
@test "ranks find each other's collectives, whichever lengths they had before" {
    "$EVENLOAD" run "${TINY[@]}" --mode ddp --devices 2 --data dummy --lengths 62-64,pad=batch --batch 4 --warmup 1 --steps 12 --seed 6 --json --out r >r.json
    [[ $(json r.json 'max(m["comm"]["wait_ms"] for m in d["per_device"]) > 0') == True ]] || json r.json '[m["comm"] for m in d["per_device"]]'
    [[ $(json r.json 'max(m["comm"]["wait_ms"] for m in d["per_device"]) > 0') == True ]]
}

@test "batches of similar length pad less, and the set written for others is the one that was trained on" {
    local pct='d["per_device"][0]["loading"]["length"]["padding_pct"]'
    for how in off on; do
        "$EVENLOAD" run "${TINY[@]}" --lengths 4-64 --seq 64 --lengths bucketed=$how --lengths pad=batch --steps 20 --json --out "$how" >$how.json
    done
    [[ $(json off.json "$pct > 25") == True && $(json on.json "$pct < 4") == True ]] || { json off.json "$pct" && json on.json "$pct" && false; }
    "$EVENLOAD" run "${TINY[@]}" --data off/data/synthetic-lengths-4-64-1-seed-1-train.txt --lengths pad=batch --steps 20 --json --out f >file.json
    [[ $(json file.json 'd["loss"]') == "$(json off.json 'd["loss"]')" ]]
}

@test "a forecast is for the longest sentence, and says so" {
    run --separate-stderr "$EVENLOAD" run --dry-run "${WIDE[@]}" --mode ddp --devices 2 --lengths pad=batch
    [[ $status -eq 0 && $output == *"Peaks are of a batch with a sentence of 64 words, the longest there can be"* ]] || show
    "$EVENLOAD" run --dry-run --json "${WIDE[@]}" --mode ddp --devices 2 --lengths pad=batch >batch.json
    "$EVENLOAD" run --dry-run --json "${WIDE[@]}" --mode ddp --devices 2 >model.json
    [[ $(json batch.json 'd["longest"], d["devices"]') == "(64, $(json model.json 'd["devices"]'))" && $(json model.json 'd["longest"]') == None ]]
}

@test "simulated ranks have lengths of their own too" {
    "$EVENLOAD" run "${WIDE[@]}" --mode ddp --devices sim:3 --machine a100-sxm --lengths pad=batch --steps 20 --json --out s >s.json
    [[ $(json s.json 'all(len(set(m["steps"]["compute_ms"])) > 5 for m in d["per_device"])') == True ]]
}

@test "what does not go together is refused" {
    echo "0 some words" >text.txt
    refuses "--lengths pad=batch: model mlp takes no sentences of any length" "$EVENLOAD" run "${QUICK[@]}" --lengths pad=batch
    refuses "--lengths bucketed: model mlp" "$EVENLOAD" run "${QUICK[@]}" --lengths bucketed
    refuses "--lengths pad=batch: pipeline: its stages" "$EVENLOAD" run "${WIDE[@]}" --mode pipeline --devices 2 --lengths pad=batch
    refuses "text.txt have their own lengths: leave it out" "$EVENLOAD" run "${TINY[@]}" --data text.txt --lengths 4-8
    refuses "--lengths: model resnet18 takes images" "$EVENLOAD" run --model resnet18 --lengths 4-8
    refuses "--lengths 8-4: the smaller number goes first" "$EVENLOAD" run "${TINY[@]}" --lengths 8-4
    refuses "--lengths: '' is not a whole number" "$EVENLOAD" run "${TINY[@]}" --lengths 4-
    refuses "--lengths: 0 is out of range" "$EVENLOAD" run "${TINY[@]}" --lengths 0-4
    [[ ! -e results ]]
}
