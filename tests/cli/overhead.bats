# `overhead` on null devices, where a step takes microseconds: that its JSON holds together, and its refusals. Shares of
# such steps are not judged; the judgement is tests/unit/test_overhead's.
load common

SHORT=(--devices null:2 --procs 1 --model mlp --features 16 --hidden 8 --data dummy --batch 8 --warmup 1 --steps 2
    --min-time 0.01 --control-pairs 6)

@test "overhead --json holds together" {
    run --separate-stderr "$EVENLOAD" overhead "${SHORT[@]}" --out o --quiet --json
    [[ $status -eq 0 && -z $stderr ]] || show
    printf '%s' "$output" >o.json
    [[ $(json o.json '[(t["mode"], t["global_batch"], t["status"]) for t in d["trials"]]') == \
        "[('single', 8, 'ok'), ('dp', 8, 'ok'), ('ddp', 8, 'ok')]" ]] || show
    # An event's price times its number, added up, in each launch.
    python3 - <<'END'
import glob, json
for name in glob.glob("o/repeats/*.json"):
    r = json.load(open(name))
    c, control = r["recorder_cost"], r["control"]
    e, p = c["events"], c["cost_ns"]
    ns = (e["clock_reads"] * p["clock_read"] + e["cpu_clock_reads"] * p["cpu_clock_read"]
          + e["kept_bytes"] * p["kept_byte"])
    assert abs(ns / 1e3 - c["counted_us"]) < 1e-6, (name, ns, c)
    assert control["kind"] == "record" and len(control["on_ms"]) == len(control["off_ms"]) == 6, control
d = json.load(open("o.json"))
for t in d["trials"]:
    r = t["recorder"]
    low, high = r["toggled_pct_ci95"]
    assert low <= r["toggled_pct"] <= high and r["counted_pct"] > 0, r
    assert t["verdict"] == "inconclusive" and "null devices" in t["why"], t
by_mode = {t["mode"]: t["recorder"]["events"]["clock_reads"] for t in d["trials"]}
assert by_mode["single"] < by_mode["ddp"] < by_mode["dp"], by_mode
assert d["holds"] is None and d["limit_pct"] == 1, d
END
}

@test "overhead prints a row a mode, a judgement and what to do next" {
    run --separate-stderr "$EVENLOAD" overhead "${SHORT[@]}" --modes single,dp --repeats 2 --out o
    [[ $status -eq 0 && $stderr == *"[4/4]"* ]] || show
    for words in "counted us" "clock readings at" "inconclusive: null devices" "Null devices compute nothing" "o/results.json" "Next: "; do
        [[ $output == *"$words"* ]] || { echo "no '$words'" && show; }
    done
    for line in "${lines[@]}"; do [[ ${#line} -le 110 ]] || { echo "$line" && show; }; done
}

@test "overhead refuses what it cannot tell anything of" {
    refuses "simulated devices" "$EVENLOAD" overhead --devices sim:2
    refuses "--min-time 0" "$EVENLOAD" overhead --min-time 0
    refuses "is an option of 'evenload compare', not of 'overhead'" "$EVENLOAD" overhead --epochs 2
    [[ ! -e results ]]
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
