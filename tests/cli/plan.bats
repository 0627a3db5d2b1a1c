#!/usr/bin/env bats
# evenload plan: what fits, and that a row is what its dry run says.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
TINY=(--layers 4 --embed 64 --heads 8 --seq 32 --vocab 512)

# rows EXPRESSION: over plan.json's document `d`.
rows() { json plan.json "$1"; }

# equal_dry_runs OPTION...: the plan's first row, and the first of each mode, against what their commands say.
equal_dry_runs() {
    local command n=0
    "$EVENLOAD" plan "$@" --json >plan.json
    while read -r command; do
        bash -c "${command/#evenload/$EVENLOAD} --json" >"dry$n.json"
        n=$((n + 1))
    done < <(rows '"\n".join(next(r["command"] for r in d["rows"] if r["mode"] == m) for m in dict.fromkeys(r["mode"] for r in d["rows"] if r["fits"]))')
    [[ $n -ge 5 ]] || { echo "$n modes fit" && return 1; }
    python3 - "$n" <<'END'
import json, sys
d = json.load(open("plan.json"))
first = {}
for row in d["rows"]:
    if row["fits"]: first.setdefault(row["mode"], row)
for k, (mode, row) in enumerate(first.items()):
    dry = json.load(open(f"dry{k}.json"))
    fullest = max(dry["devices"], key=lambda device: device["peak_bytes"])
    assert (dry["mode"], dry["fits"], len(dry["devices"])) == (mode, True, d["devices"]), (row, dry["mode"])
    assert (row["peak_bytes"], row["at_peak_by_tag"]) == (fullest["peak_bytes"], fullest["at_peak_by_tag"]), (row, fullest)
    assert row["room_bytes"] == d["device_mem_bytes"] - row["peak_bytes"] and row["least_bytes"] <= row["peak_bytes"], row
    if d["machine"]:
        assert abs(row["step_ms"] / dry["step_ms"] - 1) < 1e-9, (row, dry["step_ms"])
        assert abs(row["tokens_per_s"] / dry["tokens_per_s"] - 1) < 1e-9, (row, dry["tokens_per_s"])
END
}

@test "a row's memory is its dry run's to the byte, and so is its step" {
    equal_dry_runs "${TINY[@]}" --devices 8 --batch 16 --machine h100-sxm --devices mem=8M
    [[ $(rows '[r["step_ms"] for r in d["rows"] if r["fits"]] == sorted(r["step_ms"] for r in d["rows"] if r["fits"])') == True ]]
}

@test "where copies of the model lie in hosts in other ways, each is issued: six devices in hosts of four" {
    sed 's/"devices_per_host": 8/"devices_per_host": 4/' "$ROOT/profiles/hardware/h100-sxm.json" >four.json
    equal_dry_runs "${TINY[@]}" --vocab 510 --heads 8 --embed 72 --devices 6 --batch 12 --machine four.json --devices mem=1G
}

@test "a batch that does not divide evenly: the fullest device is one with more samples" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 4 --batch 6 --json >plan.json
    python3 - "$EVENLOAD" <<'END'
import json, subprocess, sys
d = json.load(open("plan.json"))
seen = 0
for row in d["rows"]:
    if row["mode"] not in ("ddp", "zero2") or "tp=" in row["mesh"]: continue
    dry = json.loads(subprocess.run([sys.argv[1], *row["command"].split()[1:], "--json"], stdout=subprocess.PIPE).stdout)
    peaks = [device["peak_bytes"] for device in dry["devices"]]
    assert row["peak_bytes"] == max(peaks) > min(peaks), (row, peaks)
    seen += 1
assert seen == 3, d["rows"]
END
}

@test "without a machine the order is by bytes sent, and then by memory; no step is claimed, and no row is best" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 4 --machine none --json >plan.json
    [[ $(rows 'd["machine"], {r["step_ms"] for r in d["rows"]}') == "(None, {None})" ]]
    [[ $(rows '[(r["sent_bytes"], r["peak_bytes"]) for r in d["rows"]] == sorted((r["sent_bytes"], r["peak_bytes"]) for r in d["rows"])') == True ]]
    run "$EVENLOAD" plan "${TINY[@]}" --devices 4 --machine none
    [[ $status -eq 0 && $output == *"Ordered by bytes sent, not by speed. For step times add --machine h100-sxm."* && $output != *[Bb]est* && $output != *Next:* ]] || show
}

@test "by default the machine is an H100, which the first lines say, the first row is the fastest, and gpt is in bf16-mixed" {
    run "$EVENLOAD" plan "${TINY[@]}" --devices 4
    [[ $status -eq 0 && $(head -3 <<<"$output" | tr -s ' \n' ' ') == *"bf16-mixed, adamw: 4 devices of 80.0 GiB (H100 SXM5 80GB, unless --machine names another)"* ]] || show
    [[ $output == *"Best first, by the step on H100"*"Next: "*" run --mode "*" --dry-run"* ]] || show
    bash -c "$(sed -n 's/^Next: //p' <<<"$output")" | grep -q "It fits"
    "$EVENLOAD" plan "${TINY[@]}" --devices 4 --json >plan.json
    [[ $(rows 'd["rows"][0]["step_ms"] == min(r["step_ms"] for r in d["rows"] if r["fits"]), d["machine_is_default"], d["precision"]') == "(True, True, 'bf16-mixed')" ]]
    "$EVENLOAD" plan "${TINY[@]}" --devices 4 --precision f32 --machine h100-sxm --json >plan.json
    [[ $(rows 'd["machine_is_default"], d["precision"]') == "(False, 'f32')" ]]
}

# What is published: 16 bytes a parameter, in parts; Megatron-LM's distributed optimizer has 6 bytes whole, and 12 in parts.
published_bytes() { # published_bytes DEVICES TOLERANCE: of zero3's units, which are filled up
    python3 - "$@" <<'END'
import json, sys
d = json.load(open("plan.json"))
P, n = d["parameters"], int(sys.argv[1])
row = {(r["mode"], r["mesh"]): r for r in d["rows"]}
for mode, bytes in ("zero3", 16 * P / n), ("zero2", 2 * P + 16 * P / n), ("zero1", 6 * P + 12 * P / n):
    assert abs(row[mode, ""]["least_bytes"] - bytes) <= 1, (mode, row[mode, ""]["least_bytes"], bytes)
tags = row["zero3", ""]["at_peak_by_tag"]
assert row["ddp", ""]["least_bytes"] == 18 * P and row["zero3", ""]["fits"]
assert abs((tags["param"] + tags["optimizer"]) / (12 * P / n) - 1) < float(sys.argv[2]), tags
assert d["rows"][0]["step_ms"] == min(r["step_ms"] for r in d["rows"] if r["fits"])
END
}

@test "state is of the published bytes, 16 P / n in zero3; 70 billion parameters fit in it on 64 devices" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 8 --json >plan.json
    published_bytes 8 1e-3
    [[ -n ${EVENLOAD_LONG:-} ]] || { echo "# long: 70 billion parameters on 64 devices, 10 s" >&3 && return; }
    "$EVENLOAD" plan --params 70B --devices 64 --machine h100-sxm --json >plan.json
    published_bytes 64 1e-3
    [[ $(rows 'd["rows"][0]["mode"], any(r["fits"] for r in d["rows"] if r["mode"] == "ddp")') == "('zero3', False)" ]]
}

@test "every mesh that divides is tried, once" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 8 --json >plan.json
    python3 - <<'END'
import json
d = json.load(open("plan.json"))
seen = sorted((r["mode"], r["mesh"]) for r in d["rows"])
halves = ["", "dp=2,shard=4", "dp=4,shard=2", "tp=2,shard=4", "tp=4,shard=2", "dp=2,tp=2,shard=2"]
stages = ["", "dp=2,pp=4", "dp=4,pp=2", "pp=4,tp=2", "pp=2,tp=4", "dp=2,pp=2,tp=2"]
want = [("ddp", "")] + [(f"zero{k}", m) for k in (1, 2, 3) for m in halves] + [("zero1", m) for m in ("pp=2,shard=4", "pp=4,shard=2", "pp=2,tp=2,shard=2")] + [("tp", m) for m in ("", "dp=2,tp=4", "dp=4,tp=2")] + [("pipeline", m) for m in stages]
assert seen == sorted(want), (set(seen) ^ set(want))
END
    "$EVENLOAD" plan "${TINY[@]}" --devices 8 --heads 2 --json >plan.json # of which no four pieces can be made
    [[ $(rows 'sorted({r["mesh"] for r in d["rows"] if "tp=" in r["mesh"]})') == "['dp=2,pp=2,tp=2', 'dp=2,tp=2,shard=2', 'dp=4,tp=2', 'pp=2,tp=2,shard=2', 'pp=4,tp=2', 'tp=2,shard=4']" ]]
    [[ $(rows 'd["model"], d["parameters"]') == "('gpt', $("$EVENLOAD" plan "${TINY[@]}" --devices 4 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["parameters"])'))" ]]
}

@test "a model that ddp has no room for fits in zero3, and a batch in micro-steps" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 4 --json >plan.json
    local zero3 ddp
    zero3=$(rows 'next(r["peak_bytes"] for r in d["rows"] if (r["mode"], r["mesh"]) == ("zero3", ""))')
    ddp=$(rows 'next(r["peak_bytes"] for r in d["rows"] if r["mode"] == "ddp")')
    [[ $zero3 -lt $ddp ]]
    "$EVENLOAD" plan "${TINY[@]}" --devices "4,mem=$zero3" --json >plan.json
    [[ $(rows 'sorted({(r["mode"], r["fits"]) for r in d["rows"] if r["mode"] in ("ddp", "zero3") and not r["mesh"]})') == "[('ddp', False), ('zero3', True)]" ]]
    "$EVENLOAD" plan "${TINY[@]}" --devices 4 --batch 64 --devices "mem=$ddp" --json >plan.json
    [[ $(rows '[r["fits"] and 1 < r["accumulate"] <= 16 and "--accumulate %d " % r["accumulate"] in r["command"] for r in d["rows"] if (r["mode"], r["mesh"]) == ("zero2", "")]') == "[True]" ]]
}

@test "nothing fits: status 1, how near the modes come, and what would do" {
    run "$EVENLOAD" plan "${TINY[@]}" --layers 16 --devices 2,mem=2M
    [[ $status -eq 1 && $output == *"Does not fit: "*"ddp over "*"Nothing fits on 2 devices; on "*" something does:"*"Next: "*" run "* ]] || show
    bash -c "$(sed -n 's/^Next: //p' <<<"$output")" | grep -q "It fits"
    run "$EVENLOAD" plan "${TINY[@]}" --embed 1024 --devices 2,mem=1M
    [[ $status -eq 1 && $output == *"Nothing fits, not even on "*" devices: give a smaller --batch or --seq, or more --devices mem."* ]] || show
}

@test "copies that lie in other hosts meet over the network" {
    local machine
    for machine in 50 0.05; do
        sed "s/\"network_gb_per_s\": 50/\"network_gb_per_s\": $machine/" "$ROOT/profiles/hardware/h100-sxm.json" >"net$machine.json"
        "$EVENLOAD" run --mode zero3 --mesh dp=2 --devices sim:16 --model gpt "${TINY[@]}" --data dummy --batch 16 --dry-run --machine "net$machine.json" \
            --json >"net$machine.out"
    done
    [[ $(json net0.05.out 'd["step_ms"] > 1.2 * json.load(open("net50.out"))["step_ms"]') == True ]]
}

@test "--params takes the nearest published shape, and what is given stands" {
    local params
    for params in 125M 350M 760M 1.3B 2.7B 6.7B 13B 30B 70B 175B 530B; do
        "$EVENLOAD" plan --params $params --devices 2,mem=100000G --machine none --precision f32 --json >plan.json
        grep -qF "| $params | $(rows 'd["shape"][3:] + " | " + " | ".join(d["sizes"][s] for s in ("layers", "embed", "heads"))') | $(rows 'format(d["parameters"] / 1e6, ",.0f")') |" \
            "$ROOT/docs/plan.md" || { cat plan.json && return 1; }
    done
    "$EVENLOAD" plan --params 20B --devices 2,mem=100000G --machine none --json >plan.json
    [[ $(rows 'd["shape"], abs(d["parameters"] / 20e9 - 1) < 0.02') == "('as wide as OPT 30B', True)" ]]
    "$EVENLOAD" plan --params 125e6 --layers 2 --vocab 512 --seq 64 --devices 2 --json >plan.json
    [[ $(rows 'd["sizes"]') == *"'layers': '2', 'embed': '768', 'heads': '12', 'seq': '64', 'vocab': '512'"* ]]
}

@test "of several numbers of devices the best of each mode, which is its dry run's: step, bubble, and the files" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 4..16 --batch 32 --machine h100-sxm --json --out several >several.json
    python3 - "$EVENLOAD" <<'END'
import csv, json, subprocess, sys
d = json.load(open("several.json"))
assert d == json.load(open("several/plan.json")) and sorted({r["devices"] for r in d["rows"]}) == [4, 8, 16] and d["none_fits"] == []
table = list(csv.DictReader(open("several/plan.csv")))
assert [(r["mode"], float(r["step_ms"])) for r in table] == [(r["mode"], r["step_ms"]) for r in d["rows"]]
for n in (4, 8, 16):
    of = [r for r in d["rows"] if r["devices"] == n]
    assert [r["step_ms"] for r in of] == sorted(r["step_ms"] for r in of) and len({r["mode"] for r in of}) == len(of) >= 5
for row in d["rows"]:
    dry = json.loads(subprocess.run([sys.argv[1], *row["command"].split()[1:], "--json"], stdout=subprocess.PIPE).stdout)
    assert row["global_batch"] == dry["global_batch"] == 32 and row["step_ms"] == dry["step_ms"], (row, dry["step_ms"])
    assert (row["bubble_pct"] is None) == (row["mode"] != "pipeline") and 0 <= row["exposed_ms"] < row["step_ms"], row
    if row["mode"] == "pipeline": assert abs(row["bubble_pct"] - dry["bubble_pct"]) < 1e-9 and row["bubble_pct"] > 5, (row, dry["bubble_pct"])
    assert 0 < row["mfu_pct"] < 100, row
END
    grep -q "tokens/s" several/plots/plan.dat
    # Lines of one rate are told apart: the one below is wider.
    "$EVENLOAD" plan "${TINY[@]}" --devices 4,8 --precision f32 --batch 32 --out f32 >/dev/null
    [[ $(awk '/^# points of/ { mode = $4 } mode && /^[48]\t/ { print mode, $1, $3 }' f32/plots/plan.dat | grep -E 'zero[12]' | sort | tr '\n' ' ') == "zero1 4 0 zero1 8 0 zero2 4 1 zero2 8 1 " ]] ||
        { cat f32/plots/plan.dat && return 1; }
    "$EVENLOAD" plan "${TINY[@]}" --devices 2,4 --batch-per-device 3 --machine none --json >each.json
    [[ $(json each.json 'sorted({(r["devices"], r["global_batch"], r["step_ms"]) for r in d["rows"]})') == "[(2, 6, None), (4, 12, None)]" ]]
    run "$EVENLOAD" plan "${TINY[@]}" --devices 4,8 --machine v100-pcie
    [[ $status -eq 0 && $output == *"1 sample per device, so that the global batch grows"*"Not modelled: "* ]] || show
    run "$EVENLOAD" plan "${TINY[@]}" --embed 512 --devices 2,4,mem=1M
    [[ $status -eq 1 && $output == *"Nothing fits on 2, 4 devices."* ]] || show
    refuses "give the smaller number first" "$EVENLOAD" plan --devices 64..8
    refuses "--devices" "$EVENLOAD" plan --devices 8..99999
    refuses "--out: of several numbers of devices" "$EVENLOAD" plan --devices 8 --out one
}

@test "of several numbers the best of each mode is that of all rows, also where most meshes in stages are not issued" {
    long "the best of each mode beside all rows, 6 s"
    "$EVENLOAD" plan --params 1.3B --devices 8,16 --precision f32 --json >several.json
    for n in 8 16; do "$EVENLOAD" plan --params 1.3B --devices $n --precision f32 --json >"all$n.json"; done
    python3 - <<'END'
import json
of = {}
for row in json.load(open("several.json"))["rows"]: of.setdefault(row["devices"], {})[row["mode"]] = row
for n in (8, 16):
    best = {}
    for row in json.load(open(f"all{n}.json"))["rows"]: best.setdefault(row["mode"], row)
    same = ("command", "step_ms", "peak_bytes", "sent_bytes")
    assert {m: [r[k] for k in same] for m, r in of[n].items()} == {m: [r[k] for k in same] for m, r in best.items() if r["fits"]}, n
floors = [r["floor_ms"] / r["step_ms"] for n in of for r in of[n].values() if r["mode"] == "pipeline"]
assert 0.75 < max(floors) <= 1, floors # else it would say nothing, or too much
END
}

@test "what the first step depends on is what its dry run says on such a machine" {
    "$EVENLOAD" plan "${TINY[@]}" --devices 16 --machine h100-sxm --json >plan.json
    python3 - "$EVENLOAD" "$ROOT" <<'END'
import json, subprocess, sys
d = json.load(open("plan.json"))
row = d["rows"][0]
changes = row["sensitivities"]
assert [c["longer_pct"] for c in changes] == sorted((c["longer_pct"] for c in changes), reverse=True) and changes[0]["longer_pct"] > 1, changes
for change in changes[:3] + changes[-1:]:
    machine = json.load(open(f"{sys.argv[2]}/profiles/hardware/h100-sxm.json"))
    machine[change["figure"]] *= 0.5 if change["figure"].endswith("_per_s") else 2
    json.dump(machine, open("worse.json", "w"))
    command = [sys.argv[1], *row["command"].replace("h100-sxm", "worse.json").split()[1:], "--json"]
    step = json.loads(subprocess.run(command, stdout=subprocess.PIPE).stdout)["step_ms"]
    assert abs(step / change["step_ms"] - 1) < 1e-9, (change, step)
END
}

@test "the tables of published steps in results/published-steps: their first rows, and with --long all of them" {
    local rows=(22B 124M)
    [[ -z ${EVENLOAD_LONG:-} ]] || rows=()
    "$ROOT/scripts/published-steps" "${rows[@]}" >table.md
    [[ $(grep -c '^| [0-9]' table.md) -eq $([[ -n ${EVENLOAD_LONG:-} ]] && echo 75 || echo 2) ]]
    while IFS= read -r line; do
        [[ $line == Median* && -z ${EVENLOAD_LONG:-} ]] || grep -qxF -- "$line" "$ROOT/results/published-steps/README.md" || { echo "not in the page: $line" && return 1; }
    done <table.md
}

@test "other models, and what is refused" {
    "$EVENLOAD" plan --model mlp --devices 2 --json >plan.json
    [[ $(rows 'd["shape"], d["fit"] > 3') == "(None, True)" ]]
    refuses "--params: model mlp has no layers" "$EVENLOAD" plan --model mlp --params 7B
    refuses "must be a number of parameters from 1M to 10T" "$EVENLOAD" plan --params 7X
    refuses "must be a number of parameters" "$EVENLOAD" plan --params -7B
    refuses "no shape is near that" "$EVENLOAD" plan --params 10M
    refuses "give 2 to 16384" "$EVENLOAD" plan --devices 1
    refuses "--batch: 'plan' takes one" "$EVENLOAD" plan --batch 4,8
    refuses "do not divide evenly among 7 heads" "$EVENLOAD" plan "${TINY[@]}" --heads 7
    refuses "no machine of that name" "$EVENLOAD" plan "${TINY[@]}" --machine nothing
    refuses "not of 'plan'" "$EVENLOAD" plan --mode ddp
}

@test "the example of docs/plan.md" {
    local line
    long "the example of docs/plan.md, 6 s"
    $EVENLOAD plan --params 7B --devices 64,mem=80G >out.txt
    while IFS= read -r line; do
        [[ -z $line || $line == ... || $line == evenload* ]] || grep -qxF -- "$line" out.txt || { echo "not printed: $line" && cat out.txt && return 1; }
    done < <(sed -n '/^    /s/^    //p' "$ROOT/docs/plan.md")
    [[ $(sed -n '/^    /p' "$ROOT/docs/plan.md" | wc -l) -ge 12 ]]
}

@test "16,384 devices take seconds and less than a GiB, and 128 the step of 64 beside a copy" {
    long "16,384 devices, 5 s"
    local at
    for at in 64 128; do
        "$EVENLOAD" run --mode pipeline --mesh "dp=$((at / 32)),pp=4,tp=8" --schedule micro=4 --model gpt "${TINY[@]}" --data dummy --batch "$((at / 8))" \
            --devices "sim:$at" --procs 1 --dry-run --machine h100-sxm --json >"at$at.json"
        [[ $(json "at$at.json" 'len(d["devices"]), d["verdict"]') == "($at, 'simulated')" ]]
    done
    # Another number of copies costs an all-reduce of more steps alone.
    [[ $(json at128.json '1 <= d["step_ms"] / json.load(open("at64.json"))["step_ms"] < 1.2') == True ]] || { json at128.json 'd["step_ms"]' && return 1; }
    python3 - "$EVENLOAD" <<'END'
import json, resource, subprocess, sys
command = """run --mode pipeline --mesh dp=256,pp=8,tp=8 --schedule micro=64 --model gpt --layers 96 --embed 12288 --heads 96 --seq 2048 --vocab 50304
    --optimizer adamw --data dummy --batch 16384 --devices sim:16384 --procs 1 --dry-run --machine h100-sxm --json""".split()
done = subprocess.run([sys.argv[1], *command], stdout=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds, bytes = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
document = json.loads(done.stdout)
assert len(document["devices"]) == 16384 and document["step_ms"] > 0, document.get("step_ms")
assert document["prediction"]["machine"]["name"].startswith("H100"), document["prediction"]
assert seconds < 60 and bytes < 1 << 30, (seconds, bytes)
END
}

@test "what is injected slows down 65 devices as it does 64, of a mesh too, and is refused where each would be too many" {
    python3 - "$EVENLOAD" <<'END'
import json, subprocess, sys
def step(n, mode, *inject):
    command = f"run {mode} --batch {8 * n} --devices sim:{n} --data dummy --procs 1 --dry-run --machine h100-sxm --json".split()
    document = json.loads(subprocess.run([sys.argv[1], *command, *inject], stdout=subprocess.PIPE).stdout)
    assert ("injected" in (document["warning_rules"] or [])) == bool(inject), document["warning_rules"]
    return document["step_ms"]
ddp, mesh = "--mode ddp --model mlp", "--mode pipeline --model mlp --hidden 1024,1024,1024 --schedule micro=8 --mesh dp={},pp=2"
for item, longer in ("straggler=3:2", None), ("delay=1:20", 20), ("wire=1", None):
    few, many = (step(n, ddp, "--inject", item) - step(n, ddp) for n in (64, 65))
    assert few > 0.05 and abs(many / few - 1) < 1e-3 and (longer is None or abs(many - longer) < 1e-6), (item, few, many)
few, many = (step(n, mesh.format(n // 2), "--inject", "straggler=3:2") - step(n, mesh.format(n // 2)) for n in (64, 66))
assert few > 0.05 and abs(many / few - 1) < 0.02, (few, many)
END
    refuses "give at most 1024 devices" "$EVENLOAD" run --mode pipeline --mesh dp=1024,pp=2 --model mlp --batch 8192 --schedule micro=8 --data dummy \
        --devices sim:2048 --procs 1 --dry-run --machine h100-sxm --inject straggler=3:2
}
