# Unequal shares of the batch: in the record, in tables and in lists of trials; and --solve, which finds them.
load common
PICTURES=no

ROOT=${BATS_TEST_DIRNAME%/tests/cli}
SMALL=(--model mlp --features 64 --hidden 64 --data dummy --precision f64 --batch 22 --warmup 0 --steps 3 --min-time 0 --control none --quiet)
ONCE=(--repeats 1 --steps 3 --warmup 1 --min-time 0 --control none --quiet)

@test "shares are a list of trials, part of id, command, record and table; processes train as one device" {
    "$EVENLOAD" compare --modes single,dp,ddp --shares equal/3,1 --devices cpu:2 "${SMALL[@]}" --repeats 1 --out r >out.txt
    cat out.txt
    grep -q '^ddp 3,1 *22 (17\.\.5)' out.txt
    grep -q '^dp 3,1 *22 (17\.\.5)' out.txt
    python3 - <<'.'
import json
trials = json.load(open("r/results.json"))["trials"]
assert [(t["mode"], t["config"]["shares"], t["batch_per_device"]) for t in trials] == [
    ("single", "", [22]), ("dp", "", [11, 11]), ("dp", "3,1", [17, 5]), ("ddp", "", [11, 11]), ("ddp", "3,1", [17, 5])], trials
assert len({t["id"] for t in trials}) == 5
assert [t["config"]["share_weights"] for t in trials] == ["auto", "auto", "samples", "auto", "samples"]
assert ["--shares 3,1" in t["command"] for t in trials] == [False, False, True, False, True]
for t in trials[1:]:
    assert max(abs(a - b) for a, b in zip(t["loss"], trials[0]["loss"])) < 1e-12, t
shared = trials[4]
assert shared["procs"] == 2 and abs((17 * shared["rank_loss"][0][0] + 5 * shared["rank_loss"][1][0]) / 22 - shared["loss"][0]) < 1e-14
.
}

@test "shares that count alike: the mean of the ranks' means, and the record says what that does" {
    "$EVENLOAD" run --mode ddp --devices cpu:2 --procs 1 "${SMALL[@]}" --shares 17,5,weights=equal --json --out r >r.json
    python3 - <<'.'
import json
t = json.load(open("r.json"))
t = t["trials"][0] if "trials" in t else t
assert t["config"]["share_weights"] == "equal"
assert [sum(step) / 2 for step in zip(*t["rank_loss"])] == t["loss"][:3], t
said = dict(zip(t["warning_rules"], t["warnings"]))
assert said["share_weights"] == "--shares weights=equal: samples of the smallest share (5) count 3.4 times as much as those of the largest (17)", said
.
    "$EVENLOAD" run --mode ddp --devices cpu:2 --procs 1 "${SMALL[@]}" --shares 1,1,weights=equal --json --out s >s.json
    [[ $(json s.json '"share_weights" in str(d["warning_rules"] if "warning_rules" in d else d["trials"][0]["warning_rules"])') == False ]]
}

@test "epochs by shares end where one device's do: the epochs' losses, the accuracies" {
    local options=(--model mlp --features 64 --hidden 32 --data synthetic --precision f64 --batch 48 --epochs 2 --control none --quiet --json)
    "$EVENLOAD" run --mode single "${options[@]}" --out a >a.json
    "$EVENLOAD" run --mode ddp --devices cpu:2 --procs 1 --shares 5,1 "${options[@]}" --out b >b.json
    "$EVENLOAD" run --mode manual --devices cpu:2 --procs 1 --shares 1,6 --accumulate 2 "${options[@]}" --out c >c.json
    python3 - <<'.'
import json
one, *others = (json.load(open(f"{f}.json")) for f in "abc")
for other in others:
    assert other["accuracy"] == one["accuracy"] > 0
    for a, b in zip(other["epochs"], one["epochs"], strict=True):
        assert abs(a["train_loss"] - b["train_loss"]) < 1e-12 and a["held_out_accuracy"] == b["held_out_accuracy"], (a, b)
.
}

@test "solve time: a straggler's step comes to the harmonic optimum, and again runs nothing" {
    local options=(--devices sim:2 --model mlp --hidden 2048 --batch 1024 --inject straggler=1:3)
    "$EVENLOAD" imbalance --solve time "${options[@]}" "${ONCE[@]}" --out r >out.txt
    cat out.txt
    grep -F -A1 '* sim:1 computes' "$ROOT/docs/imbalance.md" | sed 's/^    //' >page.txt
    [[ -s page.txt && $(grep -F -A1 '* sim:1 computes' out.txt) == "$(cat page.txt)" ]] || diff <(grep -F -A1 '* sim:1 computes' out.txt) page.txt
    python3 - <<'.'
import json
run = json.load(open("r/results.json"))
equal, first, shared = run["trials"]
assert first["batch_per_device"] == [765, 259]
busy = [d["busy_ms"]["forward"] + d["busy_ms"]["backward"] for d in equal["per_device"]]
harmonic = 1024 / sum(512 / ms for ms in busy)
before, after = (t["step_ms"]["median"] for t in (equal, shared))
optimum = before - max(busy) + harmonic
print(before, after, optimum)
assert 2.9 < busy[1] / busy[0] < 3.1 and before > 1.5 * after and abs(after / optimum - 1) < 0.1
s = run["solution"]
assert s["samples"] == shared["batch_per_device"] and s["shares"] == shared["config"]["shares"] and sum(s["samples"]) == 1024
assert (s["equal_step_ms"], s["step_ms"], s["by"], s["slowest"], s["fastest"]) == (before, after, "time", "sim:1", "sim:0")
assert abs(s["optimum_step_ms"] / optimum - 1) < 0.1
.
    find r/repeats | sort >before.txt
    "$EVENLOAD" imbalance --solve time "${options[@]}" "${ONCE[@]}" --out r --json >again.json
    find r/repeats | sort | diff before.txt -
    [[ $(json again.json 'd["solution"] == __import__("json").load(open("r/results.json"))["solution"]') == True ]]
    "$EVENLOAD" imbalance r >shown.txt
    grep -qF '* sim:1 computes' shown.txt
}

@test "solve memory: dp's highest device becomes lower, as predicted" {
    local options=(--devices cpu:2 --model resnet18 --image 64 --width 4 --data dummy --batch 24)
    "$EVENLOAD" imbalance --solve memory "${options[@]}" --dry-run --json >predicted.json
    "$EVENLOAD" imbalance --solve memory "${options[@]}" "${ONCE[@]}" --out r --json >measured.json
    python3 - <<'.'
import json
predicted, measured = (json.load(open(f"{f}.json")) for f in ("predicted", "measured"))
for document in predicted, measured:
    s = document["solution"]
    highest = [max(c["peak_bytes"] for c in t["cards"]) for t in document["trials"]]
    assert [t["mode"] for t in document["trials"]] == ["dp", "dp"] and highest == [s["equal_peak_bytes"], s["peak_bytes"]], (highest, s)
    assert s["predicted_peak_bytes"] == s["peak_bytes"] < 0.95 * s["equal_peak_bytes"]
    assert s["samples"][0] < 12 < s["samples"][1] and "less, predicted" in s["sentence"]
assert predicted["solution"] == measured["solution"]
.
}

@test "what cannot be is refused in one line" {
    refuses "mode pipeline does not take it" "$EVENLOAD" run --mode pipeline --shares 3,1
    refuses "'run' takes one value" "$EVENLOAD" run --mode ddp --shares 3,1/1,1
    refuses "weight 2, '0', is not a whole number from 1" "$EVENLOAD" run --mode ddp --shares 3,0
    refuses "3 weights for 2 devices" "$EVENLOAD" compare --devices cpu:2 --shares 1,1/1,1,1
    refuses "--solve finds the shares" "$EVENLOAD" imbalance --solve time --shares 3,1
    refuses "--solve time needs a measurement" "$EVENLOAD" imbalance --solve time --dry-run
    refuses "--solve takes one mode and one batch" "$EVENLOAD" imbalance --solve memory --modes dp,ddp
    refuses "mode mp takes no --shares" "$EVENLOAD" imbalance --solve memory --modes mp --devices cpu:2 --dry-run
    refuses "reads records and measures nothing" "$EVENLOAD" imbalance r --solve time
    [[ ! -e results ]]
}
