# `explain A B`: where time and memory went from one record to another. Records made by hand, whose answers are known, and real ones.
PICTURES=no
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# records: two folders, a and b, with five launches each. B communicates 2 ms more, half of it waiting, and is idle 1 ms less; compute is 0.5 ms
# slower beside communication; launches differ in compute alone, by -0.2 to 0.2 ms in A and by twice that in B.
make_records() {
    python3 - <<'END'
import json, os, sys
WOBBLE = [-0.2, -0.1, 0, 0.1, 0.2]
def member(compute, exposed, skew, data, idle, contention, wobble, bubble=None):
    step = compute + exposed + data + 0.25 + idle + wobble
    return {"device": "cpu:0", "step_ms": step, "idle_ms": idle, "bubble_ms": bubble, "compute_ms": compute + wobble, "other_ms": data + 0.25,
            "busy_ms": {"data": data / 2, "h2d": data / 2}, "comm": {"exposed_ms": exposed, "wait_exposed_ms": skew},
            "control": {"on": {"compute_ms": 5 + contention}, "off": {"compute_ms": 5}},
            "memory": {"peak_bytes": 0, "at_peak_by_tag": {}}}
def write(folder, mode, tags, scale, parts, **more):
    os.makedirs(folder + "/repeats")
    repeats, launches = [], [member(*parts, scale * w) for w in WOBBLE]
    for i, m in enumerate(launches):
        steps = [m["step_ms"] + 0.1 - 1, m["step_ms"] + 0.1 + 1]  # the host's clock sees 0.1 ms more
        repeats.append({"repeat": i, "status": "ok", "step_ms": steps})
        json.dump({"members": [m], "status": "ok"}, open(f"{folder}/repeats/t1-{i}.json", "w"))
    devices = [dict(member(*parts, 0), device=f"cpu:{d}", memory={"peak_bytes": sum(t.values()), "at_peak_by_tag": t}) for d, t in enumerate(tags)]
    trial = {"id": "t1", "mode": mode, "model": "mlp", "devices": 2, "global_batch": 64, "status": "ok", "verdict": "valid", "slowest_member": 0,
             "config": {"data": "dummy", "model_sizes": {"hidden": [8], "classes": 10, "vocab": 0}, "steps": 3}, "per_device": devices,
             "command": "evenload run --mode " + mode, "repeats": repeats}
    trial.update(more)
    json.dump({"schema": 2, "environment": {"hostname": "h"}, "trials": [trial]}, open(folder + "/results.json", "w"))
write("a", "dp", [{"param": 100, "grad": 40}], 1, (5.0, 1.0, 0.5, 0.5, 2.0, 0.0), command="evenload run --mode dp --trace 'my t' --lr 0.1")
write("b", "ddp", [{"param": 100, "grad": 0, "bucket": 30}, {"param": 9}], 2, (5.5, 3.0, 1.5, 0.5, 1.0, 0.5))
write("faster", "ddp", [], 1, (5.0, 1.0, 0.5, 0.5, 2.0, -0.5))
write("other", "dp", [], 1, (5.0, 1.0, 0.5, 0.5, 2.0, 0.0), model="textcnn", global_batch=32)
write("failed", "dp", [], 1, (5.0, 1.0, 0.5, 0.5, 2.0, 0.0), status="oom", reason="no room")
END
}

@test "parts of a step change as they were made to, add up, and have Welch's intervals" {
    make_records
    "$EVENLOAD" explain a b --json --out ab >ab.json
    python3 - <<'END'
import json
d = json.load(open("ab.json"))
parts = {p["part"]: p for p in d["parts"]}
wanted = {"compute": 0, "contention": 0.5, "exposed": 1, "skew": 1, "data": 0, "idle": -1}
assert list(parts) == list(wanted), list(parts)
for name, ms in wanted.items():
    assert abs(parts[name]["ms"] - ms) < 1e-9, (name, parts[name])
assert abs(d["rest"]["ms"]) < 1e-9 and abs(d["rest"]["a_ms"] - 0.35) < 1e-9, d["rest"]  # a thread's 0.25, and the clock's 0.1
assert abs(sum(p["ms"] for p in d["parts"]) + d["rest"]["ms"] - d["whole"]["ms"]) < 1e-9 and abs(d["whole"]["ms"] - 1.5) < 1e-9
# Variances 0.025 and 0.1 of five each: df = 25 * 4 / 17 = 100 / 17, whose t is 2.459.
low, high = parts["compute"]["ci95"]  # exposed does not scatter, so it has none
assert abs(high + low) < 1e-9 and abs(high - 2.459 * (0.125 / 5) ** 0.5) < 0.002, (low, high)
assert parts["exposed"]["ci95"] is None and not d["paired"] and d["ci_reason"] is None
assert [(x["field"], x["a"], x["b"]) for x in d["differs"]] == [("mode", "dp", "ddp")], d["differs"]
first, second = d["memory"]
assert (first["a_bytes"], first["b_bytes"], first["change_bytes"]) == (140, 130, -10), first
assert first["by_tag"] == {"grad": -40, "bucket": 30}, first
assert second["a_bytes"] is None and second["b_bytes"] == 9 and second["change_bytes"] is None
END
    run --separate-stderr "$EVENLOAD" explain a/results.json b --out t
    [[ $status -eq 0 && $output == *"From A to B: mlp, batch 64"*"They differ in mode (dp, ddp)"*"exposed          0.50     1.50       1.00              none"* ]] || show
    [[ $output == *"grad -3.8e-05, bucket +2.9e-05"* && $output == *"t/explain.json"*"Next: "*"explain --lr 0.1    (dp's step, cause by cause)"* ]] || show
    [[ $output != *"Contention below 0"* ]] || show
    run --separate-stderr "$EVENLOAD" explain a faster --out f
    [[ $status -eq 0 && $output == *"Contention below 0: kernels were faster"* ]] || show
    run --separate-stderr "$EVENLOAD" plot t
    [[ $status -eq 2 && $stderr == "evenload: gnuplot is not installed"*"the data files lie in t/plots"* ]] || show
    [[ $(grep -cE '^[0-9]+.*(step|good|bad)' t/plots/explain.dat) == 9 ]] || { cat t/plots/explain.dat && false; }
    # A difference with a plus is bad, one with a minus is good, as its words say: slower, faster.
    awk -F'\t' '$7 ~ /^\+/ && $9 !~ /^bad/ || $7 ~ /^-/ && $9 !~ /^good/ {exit 1}' t/plots/explain.dat || { cat t/plots/explain.dat && false; }
}

@test "launches of one run are paired; a part that only one record splits is split in neither" {
    make_records
    python3 - <<'END'
import json
a, b = json.load(open("a/results.json")), json.load(open("b/results.json"))
b["trials"][0]["id"] = "t2"
json.dump(dict(a, trials=a["trials"] + b["trials"]), open("a/results.json", "w"))
for i in range(5):
    launch = json.load(open(f"b/repeats/t1-{i}.json"))
    launch["members"][0]["control"] = None
    json.dump(launch, open(f"a/repeats/t2-{i}.json", "w"))
END
    "$EVENLOAD" explain a:dp a:ddp:64 --json --out ab >ab.json
    python3 - <<'END'
import json
d = json.load(open("ab.json"))
parts = {p["part"]: p for p in d["parts"]}
assert d["paired"] and "contention" not in parts and abs(parts["compute"]["ms"] - 0.5) < 1e-9
assert abs(parts["compute"]["ci95"][1] - 0.5 - 2.7764451 * (0.025 / 5) ** 0.5) < 1e-6, parts["compute"]  # differences are -0.2 to 0.2
END
    refuses "a has 2 trials: name one of them, as a:ddp:64 (dp:64, ddp:64)" "$EVENLOAD" explain a b
    refuses "a has no trial 'spmg': it has dp:64, ddp:64" "$EVENLOAD" explain a:spmg b
}

@test "what cannot be set side by side is one line" {
    make_records
    refuses "these two records are not of the same work, so their steps cannot be compared: model mlp and textcnn, global batch 64 and 32" \
        "$EVENLOAD" explain a other
    refuses "failed: dp:64 did not finish: no room" "$EVENLOAD" explain a failed
    refuses "a needs a second record to compare with" "$EVENLOAD" explain a
    refuses "nowhere: there is no such folder, and no such record; 'evenload run --out DIR' makes one" "$EVENLOAD" explain a nowhere
    refuses "nowhere: there is no such folder" "$EVENLOAD" explain nowhere
    refuses "unexpected argument 'c'" "$EVENLOAD" explain a b c
    refuses "reads records and measures nothing: leave out --repeats" "$EVENLOAD" explain a b --repeats 2
    echo '{"schema": 2}' >bad.json
    refuses "bad.json is no record of a run" "$EVENLOAD" explain a bad.json
    [[ ! -e results ]]
}

@test "a record without repeats/ has parts without intervals; a kept one, of an earlier version, is read" {
    local kept=$ROOT/results/reference/cpu-2-cores
    "$EVENLOAD" explain "$kept:dp:256" "$kept:ddp:256" --json --out k >k.json
    [[ $(json k.json 'abs(sum(p["ms"] for p in d["parts"]) + d["rest"]["ms"] - d["whole"]["ms"]) < 1e-9') == True ]]
    [[ $(json k.json 'd["whole"]["ci95"] is not None and all(p["ci95"] is None for p in d["parts"])') == True ]]
    [[ $(json k.json '"repeats/" in d["ci_reason"]') == True ]]
}

@test "two real records: dp and ddp, each run by itself" {
    local mode
    for mode in dp ddp; do
        "$EVENLOAD" run --mode $mode "${QUICK[@]}" --batch 16 --devices 2 --control comm --repeats 2 --quiet --out $mode >/dev/null
    done
    "$EVENLOAD" explain dp ddp --json --out both >both.json
    python3 - <<'END'
import json
d = json.load(open("both.json"))
names = [p["part"] for p in d["parts"]]
assert {"compute", "exposed", "idle"} <= set(names), names
assert abs(sum(p["ms"] for p in d["parts"]) + d["rest"]["ms"] - d["whole"]["ms"]) < 1e-9
a, b = json.load(open("dp/results.json"))["trials"][0], json.load(open("ddp/results.json"))["trials"][0]
for row, x, y in zip(d["memory"], a["per_device"], b["per_device"]):
    assert row["change_bytes"] == y["memory"]["peak_bytes"] - x["memory"]["peak_bytes"] == sum(row["by_tag"].values())
assert "mode" in [x["field"] for x in d["differs"]]
END
}

@test "two dp rows differ by name where causes are left out" {
    local fix
    for fix in --dp-fix=replicas --dp-fix=inputs,overlap --dp-fix=all --loss-in=replica; do
        "$EVENLOAD" run --mode dp "${QUICK[@]}" --devices sim:2 --batch 16 "$fix" --quiet --out "out$fix" | sed -n 3p
    done >rows
    [[ $(sed -E 's/ +16 .*//' rows | paste -sd';') == "dp -replicas;dp -inputs -overlap;dp -all;dp loss" ]] || { cat rows && false; }
}
