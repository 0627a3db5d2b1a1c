# What recording costs, on null devices, where a step takes microseconds: that the record and the table hold together.
PICTURES=no
load common

SHORT=(--devices null:2 --procs 1 --model mlp --features 16 --hidden 8 --data dummy --batch 8 --warmup 1 --steps 2
    --min-time 0.01 --control record --control-pairs 6)

@test "compare --control record says what recording costs" {
    run --separate-stderr "$EVENLOAD" compare "${SHORT[@]}" --out o --quiet
    [[ $status -eq 0 && $output == *"What recording costs"*"counted us"*"toggled us"*$'\nsingle '*$'\ndp '*$'\nddp '* ]] || show
    # An event's price times its number, added up, in each launch.
    python3 - <<'END'
import glob, json
for name in glob.glob("o/repeats/*.json"):
    r = json.load(open(name))
    c, control = r["recorder_cost"], r["control"]
    e, p = c["events"], c["cost_ns"]
    ns = (e["clock_reads"] * p["clock_read"] + e["cpu_clock_reads"] * p["cpu_clock_read"]
          + e["event_records"] * p["event_record"] + e["kept_bytes"] * p["kept_byte"])
    assert abs(ns / 1e3 - c["counted_us"]) < 1e-6, (name, ns, c)
    assert control["kind"] == "record" and len(control["on_ms"]) == len(control["off_ms"]) == 6, control
d = json.load(open("o/results.json"))
for t in d["trials"]:
    r = t["recorder"]
    low, high = r["toggled_pct_ci95"]
    assert low <= r["toggled_pct"] <= high and r["counted_pct"] > 0, r
by_mode = {t["mode"]: t["recorder"]["events"]["clock_reads"] for t in d["trials"]}
assert by_mode["single"] < by_mode["ddp"] < by_mode["dp"], by_mode
END
}

@test "every trial's record has the counted cost" {
    run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices null:2 --quiet --json
    [[ $status -eq 0 ]] || show
    printf '%s' "$output" >r.json
    [[ $(json r.json 'd["recorder"]["counted_us"] > 0, d["recorder"]["toggled_us"]') == "(True, None)" ]] || show
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices null:2 --quiet --json --no-record >n.json
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices sim:2 --quiet --json >s.json
    [[ $(json n.json 'd["recorder"]') == None && $(json s.json 'd["recorder"]') == None ]]
}
