# What recording costs, on null devices, where a step takes microseconds: that the record and the table hold together.
PICTURES=no
load common

SHORT=(--devices null:2 --procs 1 --model mlp --features 16 --hidden 8 --data dummy --batch 8 --warmup 1 --steps 2
    --min-time 0.01 --control 'record,pairs=6')

@test "compare --control record says what recording costs" {
    run --separate-stderr "$EVENLOAD" compare "${SHORT[@]}" --out o --quiet
    [[ $status -eq 0 && $output == *"What recording costs"*"toggled us"*$'\nsingle '*$'\ndp '*$'\nddp '* ]] || show
    python3 - <<'END'
import glob, json
for name in glob.glob("o/repeats/*.json"):
    control = json.load(open(name))["control"]
    assert control["kind"] == "record" and len(control["on_ms"]) == len(control["off_ms"]) == 6, control
d = json.load(open("o/results.json"))
for t in d["trials"]:
    r = t["recorder"]
    low, high = r["toggled_pct_ci95"]
    assert low <= r["toggled_pct"] <= high, r
END
}

@test "without such blocks the record says nothing of it" {
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices null:2 --quiet --json >r.json
    [[ $(json r.json 'd["recorder"]') == None ]] || show
}
