#!/usr/bin/env bats
# Ranks that have several devices each, by the command line.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

MODEL=(--model mlp --features 16 --hidden "12,8" --data dummy --batch 8 --warmup 1 --steps 3 --min-time 0 --precision f64 --quiet)

losses() { json "$1/results.json" 'd["trials"][0]["loss"]'; }

@test "spmg's ranks as threads and as processes have the same bits, and ddp's losses on as many ranks" {
    "$EVENLOAD" run --mode ddp --devices 2 --procs 1 "${MODEL[@]}" --out ddp
    "$EVENLOAD" run --mode spmg --devices 4 --mesh dp=2 --procs 1 "${MODEL[@]}" --out threads
    "$EVENLOAD" run --mode spmg --devices cpu:0,cpu:1,cpu:0,cpu:1 --procs 2 --launcher own "${MODEL[@]}" --out processes
    "$EVENLOAD" run --mode spmg --devices 4 --procs 2 --launcher own --comm tcp --reduce hierarchical "${MODEL[@]}" --out hierarchical
    [[ $(losses threads) == "$(losses processes)" ]] || { losses threads; losses processes; false; }
    python3 - <<'END'
import json
ddp, *others = [json.load(open(f"{d}/results.json"))["trials"][0] for d in ("ddp", "threads", "processes", "hierarchical")]
for trial in others:
    assert max(abs(a - b) for a, b in zip(ddp["loss"], trial["loss"])) < 1e-12, (ddp["loss"], trial["loss"])
    assert trial["config"]["ranks"] == 2, trial["config"]
    assert trial["batch_per_device"] == [2, 2, 2, 2], trial["batch_per_device"]
    layouts = [device["layout"] for device in trial["per_device"]]
    assert [layout["data_rank"] for layout in layouts] == [0, 1, 2, 3], layouts
    assert layouts[0]["stage"] == layouts[3]["shard"] == 0 and layouts[0]["nodes"] == layouts[3]["nodes"], layouts
for trial in others:
    groups = [device["comm"]["by_group"] for device in trial["per_device"]]
    sums = [sum(group["sent_bytes"] for group in device.values()) for device in groups]
    assert all(set(group) <= {"world", "local"} and group["local"]["total_ms"] > 0 for group in groups), groups
    copied = [device["comm"]["bytes"] for device in trial["per_device"]]
    assert all(total <= bytes for total, bytes in zip(sums, copied)), (sums, copied)
    assert groups[0]["world"]["sent_bytes"] > 0 and ("world" in groups[1]) == (trial["config"]["reduce"] == "flat"), groups
assert groups[0]["world"]["axis"] == groups[0]["local"]["axis"] == "data", groups
assert [d["rank"] for d in others[1]["per_device"]] == [0, 0, 1, 1] and others[2]["config"]["reduce"] == "hierarchical"
END
}

@test "of two processes that both take both cards, the tables add up each card" {
    "$EVENLOAD" run --mode spmg --devices cpu:0,cpu:1,cpu:0,cpu:1 --procs 2 --launcher own "${MODEL[@]}" --out both >table
    [[ $(grep -c "^  cpu:[01] sum " table) -eq 2 ]] || { cat table; false; }
    [[ $("$EVENLOAD" imbalance both | grep -c "^  sum     cpu:[01] ") -eq 2 ]]
    "$EVENLOAD" imbalance both --json >cards.json
    python3 - <<'END'
import json
trial = json.load(open("cards.json"))["trials"][0]
cards, sums = trial["cards"], trial["shared_cards"]
for k, card in enumerate(sums):
    own = [other for other in cards if other["device"] == card["device"]]
    assert len(own) == 2 and card["device"] == f"cpu:{k}", (cards, sums)
    for figure in ("peak_bytes", "sent_bytes"):
        assert card[figure] == sum(other[figure] for other in own), (figure, card, own)
    assert card["at_peak_by_tag"]["param"] == sum(other["at_peak_by_tag"]["param"] for other in own)
assert len(sums) == 2
END
}

@test "steps without communication, and epochs with an evaluation, go through several devices per process" {
    run "$EVENLOAD" run --mode spmg --devices 4 --procs 2 --launcher own --model mlp --features 16 --hidden 8 --data dummy --batch 8 --steps 3 \
        --min-time 0.1 --out comm
    [[ $status -eq 0 && $output == *"Where a step goes"* ]] || show
    how=(--model mlp --features 16 --hidden 8 --batch 64 --epochs 2 --precision f64 --quiet)
    "$EVENLOAD" run --mode single "${how[@]}" --out single
    "$EVENLOAD" run --mode spmg --devices 4 --mesh dp=2 --procs 1 "${how[@]}" --out spmg
    accuracy='d["trials"][0]["epochs"][-1]["held_out_accuracy"]'
    [[ $(json spmg/results.json "$accuracy") == "$(json single/results.json "$accuracy")" ]]
}

@test "what devices cannot be shared among, and a device without samples, is refused by name" {
    refuses "--procs 3: 4 devices cannot be divided evenly among that many" "$EVENLOAD" run --mode spmg --devices 4 --procs 3 "${MODEL[@]}"
    refuses "got no gradient of 'side.weight' and 1 more; leave them out of the model" "$EVENLOAD" run --mode mp --model branch --devices sim:2 \
        --mesh dp=2 --dry-run
    refuses "--mesh dp=3: 4 devices cannot be divided evenly among that many" "$EVENLOAD" run --mode spmg --devices 4 --mesh dp=3 "${MODEL[@]}"
    refuses "--mesh dp=2,pp=3: dp times pp times tp must be the number of devices (4)" "$EVENLOAD" run --mode pipeline --devices 4 --mesh dp=2,pp=3 "${MODEL[@]}"
    refuses "--mesh dp=2,pp=2: must be like dp=2" "$EVENLOAD" run --mode spmg --devices 4 --mesh dp=2,pp=2 "${MODEL[@]}"
    refuses "--schedule micro=3: a batch of 8 cannot be divided into that many equal parts in each of 2 copies of the model" "$EVENLOAD" run --mode pipeline --devices 4 --mesh dp=2 --schedule micro=3 "${MODEL[@]}"
    refuses "--mesh dp=2,,: must be like dp=2" "$EVENLOAD" run --mode pipeline --devices 4 --mesh dp=2,, "${MODEL[@]}"
    refuses "--mesh ,dp=2: must be like dp=2" "$EVENLOAD" run --mode spmg --devices 4 --mesh ,dp=2 "${MODEL[@]}"
    refuses "--cut out: gives 2 parts, and there must be 1" "$EVENLOAD" run --mode mp --devices 1 --cut out "${MODEL[@]}"
    refuses "--mesh dp=0: must be like dp=2,pp=2,tp=2, each number at least 1" "$EVENLOAD" run --mode pipeline --devices 4 --mesh dp=0 "${MODEL[@]}"
    refuses "--procs 2: there is one device: leave --procs out" "$EVENLOAD" run --mode spmg --devices 1 --procs 2 "${MODEL[@]}"
    "$EVENLOAD" run --mode spmg --devices 4 --procs 1 --mesh dp=2,pp=1,tp=1 "${MODEL[@]}" --out ones >/dev/null # said, and not had
    refuses "--mesh tp=2: must be like dp=2" "$EVENLOAD" run --mode spmg --devices 4 --mesh tp=2 "${MODEL[@]}"
    refuses "--mesh: mode ddp does not take it, spmg does" "$EVENLOAD" run --mode ddp --devices 4 --mesh dp=2 "${MODEL[@]}"
    refuses "--batch 9: cut evenly among the devices of a process, it leaves device 5 without samples" "$EVENLOAD" run --mode spmg --devices 8 "${MODEL[@]}" --batch 9
}

@test "gradients of copies in stages are summed in buckets of the given size" {
    local of=(--model mlp --features 16 --hidden "32,32,32" --data dummy --batch 8 --warmup 2 --steps 1 --min-time 0 --quiet) size
    for size in 0.001 25; do
        "$EVENLOAD" run --mode pipeline --devices sim:4 --mesh dp=2,pp=2 "${of[@]}" --bucket-mb $size --out b$size
        json b$size/results.json '[len(d["trials"][0]["collectives"]), sum(c["bytes"] for c in d["trials"][0]["collectives"])]' >$size.txt
    done
    [[ $(<0.001.txt) == "[2, 6400.0]" && $(<25.txt) == "[1, 6400.0]" ]] || { cat 0.001.txt 25.txt; false; }
}

@test "copies of a model in stages, as threads and as processes, have the same bits, and single's losses" {
    "$EVENLOAD" run --mode single "${MODEL[@]}" --out single
    "$EVENLOAD" run --mode pipeline --devices 4 --mesh dp=2,pp=2 "${MODEL[@]}" --out threads
    "$EVENLOAD" run --mode pipeline --devices 4 --mesh pp=2 --procs 4 --launcher own --overlap off "${MODEL[@]}" --out processes
    [[ $(losses threads) == "$(losses processes)" ]] || { losses threads; losses processes; false; }
    python3 - <<'END'
import json
single, *others = [json.load(open(f"{d}/results.json"))["trials"][0] for d in ("single", "threads", "processes")]
for trial in others:
    assert max(abs(a - b) for a, b in zip(single["loss"], trial["loss"])) < 1e-12, (single["loss"], trial["loss"])
    devices = trial["per_device"]
    assert [(d["layout"]["data_rank"], d["layout"]["stage"]) for d in devices] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert set(devices[0]["layout"]["nodes"]).isdisjoint(devices[1]["layout"]["nodes"]) and trial["batch_per_device"] == [4] * 4
    for device in devices:
        groups = device["comm"]["by_group"]
        assert set(groups) == {"pipeline", "data"} and all(group["sent_bytes"] > 0 for group in groups.values()), groups
        assert groups["data"]["sent_bytes"] == device["memory"]["peak_by_tag"]["bucket"], groups
        assert sum(group["sent_bytes"] for group in groups.values()) == device["comm"]["bytes"]
        assert groups["data"]["axis"] == "data" and groups["pipeline"]["axis"] is None, groups
END
    how=(--model mlp --features 16 --hidden 8 --batch 64 --epochs 2 --precision f64 --quiet)
    "$EVENLOAD" run --mode single "${how[@]}" --out single-epochs
    "$EVENLOAD" run --mode pipeline --devices 4 --mesh dp=2 "${how[@]}" --out epochs
    accuracy='d["trials"][0]["epochs"][-1]["held_out_accuracy"]'
    [[ $(json epochs/results.json "$accuracy") == "$(json single-epochs/results.json "$accuracy")" ]]
}

@test "simulated jobs of hundreds of members send and hold what the closed forms say; others have up to 64" {
    local sizes=(256)
    [[ ${EVENLOAD_LONG:-} == 1 ]] && sizes+=(1024)
    [[ ${EVENLOAD_LONG:-} == 1 ]] || echo "# long: 1024 members too, a minute" >&3
    for n in "${sizes[@]}"; do
        "$EVENLOAD" run --mode ddp --devices "sim:$n" "${MODEL[@]}" --batch "$n" --out "ddp-$n"
        "$EVENLOAD" run --mode dp --devices "sim:$n" "${MODEL[@]}" --batch "$n" --out "dp-$n"
        "$EVENLOAD" run --mode pipeline --devices "sim:$n" --mesh "dp=$((n / 2)),pp=2" "${MODEL[@]}" --batch "$n" \
            --schedule micro=1 --out "pipeline-$n"
    done
    python3 - "${sizes[@]}" <<'END'
import json, sys
def members(mode, n):
    trial = json.load(open(f"{mode}-{n}/results.json"))["trials"][0]
    assert len(trial["per_device"]) == n, (mode, n, len(trial["per_device"]))
    return trial["param_bytes"], trial["per_device"]
for n in map(int, sys.argv[1:]):
    p, devices = members("ddp", n)
    assert abs(sum(d["sent_bytes"] for d in devices) - 2 * (n - 1) * p) < 1, (n, p)
    for d in devices:
        assert d["memory"]["peak_by_tag"]["param"] == d["memory"]["peak_by_tag"]["bucket"] == p, (n, d["memory"])
    p, devices = members("dp", n) # to each replica and back
    assert devices[0]["memory"]["peak_by_tag"]["param"] == p and devices[0]["layout"]["data_rank"] == 0
    assert all(d["memory"]["peak_by_tag"]["replica"] == p for d in devices[1:]), n
    p, devices = members("pipeline", n)
    parts = [devices[s]["memory"]["peak_by_tag"]["param"] for s in (0, 1)]
    assert sum(parts) == p, (parts, p)
    for i, d in enumerate(devices):
        assert (d["layout"]["data_rank"], d["layout"]["stage"]) == divmod(i, 2), (i, d["layout"])
        assert d["memory"]["peak_by_tag"]["param"] == parts[i % 2], (i, d["memory"])
END
    run -2 "$EVENLOAD" run --mode ddp --devices sim:16385 "${MODEL[@]}"
    [[ $output == *"--devices: 16385 is out of range: give 1 to 16384"* ]] || { echo "$output"; false; }
    run -2 "$EVENLOAD" run --mode ddp --devices 65 "${MODEL[@]}"
    [[ $output == *"--devices: 65 is out of range: give 1 to 64"* ]] || { echo "$output"; false; }
}
