# `explain`: causes of dp's step add up to the whole, and a pause in one of them is charged to that one and no other: in virtual
# time, where nothing else differs. docs/dp-or-ddp.md's commands run as they stand there.
PICTURES=no
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
SMALL=(--model mlp --features 16 --hidden 8 --data dummy --batch 16 --min-time 0 --repeats 1 --quiet)

explained() { # explained FILE OPTION...: what `explain` says on simulated devices
    "$EVENLOAD" explain "${SMALL[@]}" --devices sim:2 --json --out "${1%.json}" "${@:2}" >"$1"
}

@test "causes and rest add up to the whole, and a pause is charged to its cause alone" {
    local label pairs=("inputs:scatter inputs" "outputs:gather outputs" "update:scatter gradient" "replicas:broadcast parameters"
        "overlap:reduce gradients" "threads:thread")
    explained plain.json
    [[ $(json plain.json 'd["verdict"], d["warning_rules"], d["prediction"]["machine"]["name"]') == "('simulated', ['simulated'], 'default')" ]]
    for pair in "${pairs[@]}"; do
        label=${pair#*:}
        explained "${pair%%:*}.json" --inject "pause=$label:5"
    done
    python3 - <<'END'
import json
names = ["inputs", "outputs", "update", "replicas", "overlap", "threads"]
plain = {c["cause"]: c for c in json.load(open("plain.json"))["causes"]}
assert list(plain) == names
for name in names:
    d = json.load(open(name + ".json"))
    causes = {c["cause"]: c for c in d["causes"]}
    assert abs(sum(c["ms"] for c in causes.values()) + d["rest"]["ms"] - d["whole"]["ms"]) < 1e-9
    assert abs(d["whole"]["ms"] - (d["steps"][0]["step_ms"] - d["steps"][7]["step_ms"])) < 1e-9 and d["rest"]["ms"] == 0
    for other in names:
        rise = causes[other]["ms"] - plain[other]["ms"]
        wanted = 0 if other != name else 10 if name == "outputs" else 5  # the master gathers both devices' outputs, one by one
        assert abs(rise - wanted) < 0.05, (name, other, rise)
END
}

# The perceptron has two units, of which the last stays from forward to backward: the second gathering is the first one's.
@test "--mode zero3: a pause in a gather is charged to gathering again, and what ddp's all-reduce has not is the rest" {
    local pause
    explained none.json --mode zero3
    for pause in all_gather reduce_scatter; do explained $pause.json --mode zero3 --inject pause=$pause:5; done
    python3 - <<'END'
import json
d = {name: json.load(open(name + ".json")) for name in ("none", "all_gather", "reduce_scatter")}
for one in d.values():
    assert [s["mode"] for s in one["steps"]] == ["zero3", "zero3", "zero2", "zero1", "ddp"], one["steps"]
    assert abs(sum(c["ms"] for c in one["causes"]) + one["rest"]["ms"] - one["whole"]["ms"]) < 1e-9
rises = {name: [round(c["ms"] - plain["ms"], 3) for c, plain in zip(one["causes"] + [one["rest"]], d["none"]["causes"] + [d["none"]["rest"]])]
         for name, one in d.items()}
assert rises["all_gather"] == [5, 0, 0, 10] and rises["reduce_scatter"] == [0, 0, 0, 10], rises  # of both units, which ddp has in no step
END
}

@test "memory by cause is the ledger's, and ddp's at the end" {
    explained m.json
    local devices
    devices=$(json m.json '[d["peak_bytes"] for d in d["steps"][6]["memory"]] == [d["peak_bytes"] for d in d["steps"][7]["memory"]]')
    [[ $devices == True ]] || show
    [[ $(json m.json 'sum(c["excess_bytes"] for c in d["causes"]) == d["steps"][0]["excess_bytes"] - d["steps"][7]["excess_bytes"]') == True ]]
    "$EVENLOAD" run --mode dp "${QUICK[@]}" --batch 16 --devices sim:2 --dp-fix inputs,outputs --json --quiet --out r >r.json
    [[ $(json r.json '[p["memory"]["peak_bytes"] for p in d["per_device"]]') == "$(json m.json '[p["peak_bytes"] for p in d["steps"][2]["memory"]]')" ]]
}

@test "explain prints a table on real devices, and writes its document" {
    run --separate-stderr "$EVENLOAD" explain "${SMALL[@]}" --devices 2 --out e
    [[ $status -eq 0 && $output == *"cause          ms"* && $output == *"dp - ddp"* && $output == *"outputs,update,replicas"* ]] || show
    [[ $output == *"An interval needs five launches"* && $output == *"Peak memory, MiB"* && $output == *"e/explain.json"* ]] || show
    [[ $(json e/explain.json 'd["kind"], d["launches"], len(d["steps"]), len(d["steps"][0]["samples_ms"])') == "('explain', 1, 13, 1)" ]] || show
    run --separate-stderr "$EVENLOAD" plot e # without gnuplot here, but it knows what there is to draw
    [[ $status -eq 2 && $stderr == "evenload: gnuplot is not installed"*"the data files lie in e/plots"* ]] || show
    # A cause that costs time makes the step shorter when it is taken away, which is good; steps have their modes' colours.
    awk -F'\t' '$9 ~ /^(good|bad)/ && $3 > $2 && ($9 ~ /^good/) != ($7 ~ /^-/) {exit 1}' e/plots/explain.dat || { cat e/plots/explain.dat && false; }
    grep -qP '^1\t.*\tdp\tstep\t[0-9.]+\tdp$' e/plots/explain.dat && grep -qP '\tddp\tstep\t\?\tddp$' e/plots/explain.dat || { cat e/plots/explain.dat && false; }
    [[ $(json e/explain.json '[c["ms"] > 0 for c in d["causes"]]') == "$(awk -F'\t' '$9 ~ /_pale/ && $8 !~ /rest/ {print $7}' e/plots/explain.dat |
        python3 -c 'import sys; print([l.startswith("-") for l in sys.stdin])')" ]] || { cat e/plots/explain.dat && false; }
    [[ $(grep -c "No intervals: all parts are pale" e/plots/explain.dat) == 1 && $(grep -cE "^[0-9].*(good|bad)_pale" e/plots/explain.dat) == 7 ]] || { cat e/plots/explain.dat && false; }
}

@test "in virtual time no interval is asked for, and the next command is of the same job" {
    run --separate-stderr "$EVENLOAD" explain "${SMALL[@]}" --devices sim:2 --inject 'pause=thread:1' --out e
    [[ $status -eq 0 && $output == *"In virtual time launches do not scatter"* && $output != *"other programs took"* ]] || show
    [[ $output == *"Next: "*"compare --modes dp,ddp --model mlp --devices sim:2 --batch 16 "*"--features 16 --hidden 8"* ]] || show
}

@test "launches that do not scatter give no intervals; where all causes are shown, no other is spoken of" {
    "$EVENLOAD" explain --model mlp --features 16 --hidden 8 --data dummy --batch 16 --min-time 0 --quiet --repeats 5 --devices sim:2 --out e >sim
    ! grep -E '^(cause|dp|inputs|outputs|update|replicas|overlap|threads|rest|Shown) ' sim | grep -qE '[0-9] (to|-) -?[0-9]|e-1[0-9]|Shown' || { cat sim && false; }
    grep -q "In virtual time launches do not scatter" sim
    grep -q "on 2 simulated devices" e/plots/explain.dat
    local said wanted
    for wanted in 6 5 4; do
        python3 - "$wanted" <<'END'
import json, sys
d = json.load(open("e/explain.json"))
for i, cause in enumerate(d["causes"]):
    cause["ms"], cause["ci95"] = 2.0, [1.0, 3.0] if i < int(sys.argv[1]) else [-1.0, 3.0]
json.dump(d, open("e/explain.json", "w"))
END
        "$EVENLOAD" report e >/dev/null
        said=$(grep -A3 "Shown to make a difference" e/report.html | tr '\n' ' ')
        case $wanted in
        6) [[ $said == *"threads (2.00 ms)."* && $said != *other* ]] ;;
        5) [[ $said == *"overlap (2.00 ms). The other cause is not: its interval contains 0."* ]] ;;
        4) [[ $said == *"No other cause is: their intervals contain 0."* ]] ;;
        esac || { echo "$wanted: $said" && false; }
    done
}

@test "explain refuses what it cannot take apart" {
    refuses "give --devices 2 or more" "$EVENLOAD" explain "${SMALL[@]}" --devices 1
    refuses "--dp-fix is an option of 'evenload compare', not of 'explain'" "$EVENLOAD" explain "${SMALL[@]}" --dp-fix all
    refuses "give one batch" "$EVENLOAD" explain "${SMALL[@]}" --batch 16,32
    refuses "--accumulate is an option of 'evenload compare', not of 'explain'" "$EVENLOAD" explain "${SMALL[@]}" --accumulate 2
    refuses "--dp-fix: 'repicas' is not one of inputs|outputs|update|replicas|overlap|threads: did you mean 'replicas'?" "$EVENLOAD" run --mode dp "${QUICK[@]}" --dp-fix threads,repicas
    [[ ! -e results ]]
}

@test "the commands of docs/dp-or-ddp.md run as they stand there" {
    local line n=0 small="--model mlp --features 16 --hidden 8 --data dummy --min-time 0"
    [[ ${EVENLOAD_LONG:-} == 1 ]] || echo "# long: the page's commands as they are written, about five minutes" >&3
    mkdir results && ln -s "$ROOT/results/reference" results/reference
    while read -r line; do
        local command="\"$EVENLOAD\" ${line#evenload }"
        [[ ${EVENLOAD_LONG:-} == 1 || $line == *--dry-run* || $line == *' results/'* ]] || command+=" $small --repeats 1 --quiet"
        run --separate-stderr bash -c "$command" </dev/null
        [[ $status -eq 0 ]] || { echo "docs/dp-or-ddp.md: $line" && show; }
        n=$((n + 1))
    done < <(sed -nE 's/^    (evenload .*)/\1/p' "$ROOT/docs/dp-or-ddp.md" | sed -E 's/ +# .*//')
    [[ $n -ge 4 ]] || { echo "only $n commands were found" && return 1; }
}

@test "a schedule that computes something else is not timed" {
    run --separate-stderr "$EVENLOAD" explain "${SMALL[@]}" --devices 2 --inject wrong=0:0.01 --out w
    [[ $status -eq 1 && -z $output && $stderr == *"is not timed: the gradient of "*" differs from the reference by "* && ! -e w/explain.json ]] || show
}
