# `scale` on null devices, where what is planted is all there is: its JSON, its tables, records used again, its refusals; and
# the examples of docs/scale.md. Arithmetic and judgement are tests/unit/test_scale's.
load common
PICTURES=no

NULL=(--devices 'null:1,2' --procs 1 --modes ddp --model mlp --data dummy --warmup 1 --quiet)
SHORT=("${NULL[@]}" --features 16 --hidden '32,32' --steps 2 --min-time 0 --control none --repeats 2)

# Sums of the same figures may differ in their last digit.
as_more() { # as_more JSON: whether it is what more.json has
    python3 - "$1" <<'END_OF_PYTHON'
import json, math, sys
def same(a, b):
    if isinstance(a, float) and isinstance(b, float): return math.isclose(a, b, rel_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict): return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list): return len(a) == len(b) and all(map(same, a, b))
    return a == b
sys.exit(not same(json.loads(sys.argv[1]), json.load(open("more.json"))))
END_OF_PYTHON
}

@test "scale again measures what is missing, and scale DIR nothing" {
    with_gnuplot
    run --separate-stderr "$EVENLOAD" scale "${SHORT[@]}" --out r
    [[ $status -eq 0 && $output == *"against plain single"*"Where the time goes"*"Null devices compute nothing"*"Next: "*" plot r --term"*"Again: "* ]] || show
    again=${lines[-1]#"Again: $EVENLOAD "}
    for line in "${lines[@]}"; do [[ ${#line} -le 100 || $line == Next:* || $line == Again:* ]] || { echo "$line" && show; }; done
    find r/repeats -name '*.json' -printf '%f %T@\n' | sort >before
    [[ $(wc -l <before) -eq 6 ]]
    local gnuplot
    gnuplot=$(command -v gnuplot) || gnuplot=''
    [[ -z $gnuplot || (-s r/plots/scale.svg && -s r/plots/scale.png) ]]
    without_gnuplot
    run --separate-stderr "$EVENLOAD" scale "${SHORT[@]}" --out r
    [[ $status -eq 0 ]] || show
    find r/repeats -name '*.json' -printf '%f %T@\n' | sort | diff before -
    "$EVENLOAD" scale "${SHORT[@]}" --out r --repeats 3 --json >more.json # a launch more of each trial
    [[ $(find r/repeats -name '*.json' | wc -l) -eq 9 ]]
    run --separate-stderr "$EVENLOAD" scale r --json
    [[ $status -eq 0 && -z $stderr ]] && as_more "$output" || show
    python3 - "$again" <<'.' || show # the figures in CSV too, with intervals where there are some; and the study's own command
import csv, json, sys
rows, document, run = list(csv.DictReader(open("r/scale.csv"))), json.load(open("more.json")), json.load(open("r/results.json"))
assert [(r["mode"], int(r["devices"])) for r in rows] == [(r["mode"], r["devices"]) for r in document["rows"]], rows
for row, wanted in zip(rows, document["rows"]):
    for figure in ("speedup", "efficiency"):
        assert (float(row[figure]) if row[figure] else None) == (wanted["plain"] or {}).get(figure), (row, wanted)
assert list(rows[0])[9:12] == ["speedup", "speedup_low", "speedup_high"], list(rows[0])
assert run["command"] == "evenload " + sys.argv[1].replace("--repeats 2", "--repeats 3"), (run["command"], sys.argv[1])
assert " --repeats 3 " in run["command"] and run["trials"][0]["command"].endswith(" --repeats 3"), run["command"]
.
    rm -r r/plots && touch r/plots # where nothing can be drawn all else is said
    run --separate-stderr "$EVENLOAD" scale r --json
    [[ $status -eq 0 && $stderr == "evenload: not drawn: r/plots"* ]] && as_more "$output" || show
}

@test "counts without cores of their own are marked, and nothing is claimed of them" {
    [[ $(nproc) -lt 16 ]] || skip "there are cores for all"
    run --separate-stderr "$EVENLOAD" scale "${SHORT[@]}" --devices cpu:16 --strong --batch 32 --features 8 --repeats 1 --out s
    [[ $status -eq 0 && $output == *"ddp    16*"*"No count above 1 has"*"marked *, drawn open): devices share a core"* ]] || show
    grep -q $'\tddp\t1\t' s/plots/scale.dat
}

@test "scale refuses what does not go together" {
    refuses "add --strong, or give --batch-per-device" "$EVENLOAD" scale --batch 64
    refuses "--strong keeps the global batch" "$EVENLOAD" scale --strong --batch-per-device 64
    refuses "give one" "$EVENLOAD" scale --weak --strong
    refuses "names devices: scale takes how many, like cpu:1,2,4" "$EVENLOAD" scale --devices cpu:0,cpu:1
    refuses "--devices: 2 is there twice" "$EVENLOAD" scale --devices 2,2
    refuses "single runs on one device only: add one that runs on several" "$EVENLOAD" scale --modes single
    refuses "--bucket-mb: mode dp does not take it, ddp does" "$EVENLOAD" scale --modes dp --bucket-mb 1
    refuses "--bucket-mb 1,25: 'scale' takes one value" "$EVENLOAD" scale --bucket-mb 1,25
    refuses "scale: nothing does not exist: " "$EVENLOAD" scale nothing
    for option in --strong '--repeats 7' '--repeats 5' '--out r' '--devices 4'; do # given with a folder of records, which have been measured
        # shellcheck disable=SC2086 # an option and its value
        refuses "scale nothing reads records and measures nothing: leave out ${option%% *}" "$EVENLOAD" scale nothing $option
    done
    refuses "--devices: one device is measured too" "$EVENLOAD" scale --devices "null:$(seq -s, 2 33)"
    [[ ! -e results ]]
}

@test "folders of other commands are left alone" {
    "$EVENLOAD" run "${QUICK[@]}" --mode single --devices null:1 --quiet --json --out c >/dev/null
    refuses "would take out of its results.json: give another --out" "$EVENLOAD" scale "${SHORT[@]}" --out c
    run --separate-stderr "$EVENLOAD" scale c # but read
    [[ $status -eq 0 && $output == *"Strong scaling: 8 samples per step on all devices together"* ]] || show
    "$EVENLOAD" scale "${SHORT[@]}" --repeats 1 --json --out s >/dev/null
    refuses "would take out of its results.json: give another --out" "$EVENLOAD" compare "${QUICK[@]}" --out s
}

# Each command of docs/scale.md, shortened, in order: the later ones read what the earlier ones wrote. Heads of tables and what does not hang on
# time must be what the page shows.
@test "the examples of docs/scale.md run, and print what the page shows" {
    local page=$BATS_TEST_DIRNAME/../../docs/scale.md command line all=
    local less=(--modes ddp --repeats 1 --warmup 1 --steps 2 --min-time 0 --control none --procs 1 --batch-per-device 4 --quiet)
    mapfile -t commands < <(sed -nE 's/^    (evenload (scale|comm|run --mode single) .*)$/\1/p' "$page")
    [[ ${#commands[@]} -eq 5 ]]
    for command in "${commands[@]}"; do
        read -ra words <<<"${command#evenload }"
        [[ ${words[0]} != run ]] || words+=("${less[@]:2}")
        [[ ${words[0]} != scale || ${words[1]} != --* ]] || words+=("${less[@]}")
        [[ ${words[0]} != comm ]] || words+=(-e 1M --iters 2 --quiet)
        run --separate-stderr "$EVENLOAD" "${words[@]}"
        [[ $status -eq 0 ]] || show
        all+=$output$'\n'
    done
    while read -r line; do
        [[ $all == *"$line"* ]] || { echo "no '$line'" && show; }
    done < <(grep -E '^    (mode  dev\.|Where the time goes|times those of| +against plain)' "$page" | sed 's/^ *//')
    grep -q '^    ddp      2 ' "$page" && [[ $all == *"ddp      2 "* ]]
}

@test "the page's pipeline: the command prints the rows that stand below it" {
    local section line command='' words=() n=0
    section=$(sed -n '/^## What a pipeline is for/,/^## /p' "$BATS_TEST_DIRNAME/../../docs/scale.md")
    while IFS= read -r line; do
        line=${line#    }
        [[ -z $command && $line != evenload* ]] || command+=" ${line%\\}"
        [[ -n $command && $line != *\\ ]] || continue
        read -ra words <<<"$command"
        run --separate-stderr "$EVENLOAD" "${words[@]:1}" --quiet --out "page$((++n))"
        command=''
        [[ $status -eq 0 ]] || show
        grep -E '^(mp|pipeline|ddp) .* simulated$|^  sim:0 .* MiB|^  sim:0 .*other' <<<"$output" >rows
        [[ $(wc -l <rows) -eq 6 ]] || { cat rows && show; }
        cat rows >>all
    done <<<"$section"
    grep -E '^    (mp|pipeline|ddp) .* simulated$|^      sim:0 ' <<<"$section" >expected
    python3 - <<'END' || show
import re
number = re.compile(r"\d[\d,.]*")
rows, expected = ([line.split() for line in open(name)] for name in ("all", "expected"))
assert len(rows) == len(expected) == 6, (len(rows), len(expected))
for row, page in zip(rows, expected):  # within 1 %: what kernels need as workspace depends on the processor
    assert len(row) == len(page), (row, page)
    for a, b in zip(row, page):
        x, y = a.rstrip(","), b.rstrip(",")
        if number.fullmatch(x):
            x, y = (float(v.replace(",", "")) for v in (x, y))
            assert abs(x - y) <= 0.01 * y, (row, page)
        else:
            assert x == y, (row, page)
END
    [[ $n -eq 1 ]]
}

@test "--predict: simulated devices go on where devices end, from records or from rates, which are named" {
    long "predictions from records and rates, 11 s"
    local mlp=(--modes ddp --model mlp --data dummy --features 16 --hidden 32 --steps 4 --min-time 0 --warmup 1 --control none --repeats 1 --quiet)
    with_gnuplot
    "$EVENLOAD" comm all -b 1K -e 64K --iters 2 --devices 2 --out wire --quiet >/dev/null
    run --separate-stderr "$EVENLOAD" scale "${mlp[@]}" --devices 1,2 --predict 2,4 --costs wire --out r
    [[ $status -eq 0 && $output == *"Predicted, not measured, from records wire, r; against the measured plain single:"* ]] || show
    "$EVENLOAD" scale r --json >r.json # the same from the folder: errors against what was measured, ratios against its single
    python3 - <<'END' || show
import json
d = json.load(open("r.json"))
rows, predicted = d["rows"], d["predicted"]
one, measured = rows[0]["samples_per_s"], rows[2]["samples_per_s"]
assert [(r["mode"], r["devices"]) for r in rows] == [("single", 1), ("ddp", 1), ("ddp", 2)]
assert [p["devices"] for p in predicted] == [2, 4] and all(p["verdict"] == "simulated" for p in predicted)
assert d["predicted_costs"] == "wire,r" and predicted[1]["error_pct"] is None
assert predicted[0]["measured_samples_per_s"] == measured
assert abs(predicted[0]["error_pct"] - 100 * (predicted[0]["samples_per_s"] / measured - 1)) < 1e-6
assert abs(predicted[1]["plain"]["speedup"] / (predicted[1]["samples_per_s"] / one) - 1) < 1e-6
END
    grep -q 'Dashed lines, open markers: predicted.' r/plots/scale.dat
    [[ $(sed -n '/^# predicted/,/^$/p' r/plots/scale.dat | grep -c $'\tddp\t1$') -eq 2 ]] || { cat r/plots/scale.dat && false; }
    "$EVENLOAD" report r >/dev/null # a study's page begins with it, and has the predicted rows and the study's command
    [[ $(grep -o '<section id="[a-z]*"' r/report.html | head -n 1) == *'"scaling"' ]]
    [[ $(grep -c 'ddp, predicted' r/report.html) -eq 2 && $(grep -c 'All of it again: <code>evenload scale .* --repeats 1 ' r/report.html) -eq 1 ]]
    # An interval that what was measured misses is not printed, nor is another one of the mode.
    local at
    for at in 0.9,1.1 2,3; do
        python3 - "$at" <<'END'
import json, sys
d, measured = json.load(open("r/predicted/results.json")), json.load(open("r.json"))["rows"][2]["samples_per_s"]
for t in d["trials"]: t["throughput"]["ci95"] = [measured * float(x) for x in sys.argv[1].split(",")]
json.dump(d, open("r/predicted/results.json", "w"))
END
        run "$EVENLOAD" scale r
        [[ $status -eq 0 && $(grep -c "^\* ddp has no interval: on 2 devices .* samples/s were measured, outside the" <<<"$output") -eq $([[ $at == 2,3 ]] && echo 1 || echo 0) ]] || show
        [[ $("$EVENLOAD" scale r --json | json /dev/stdin '[p["plain"]["speedup_ci95"] is None for p in d["predicted"]]') == "$([[ $at == 2,3 ]] && echo '[True, True]' || echo '[False, False]')" ]]
    done
    run --separate-stderr "$EVENLOAD" scale "${mlp[@]}" --devices 1,2 --out r --json # of other launches, it would be out of date
    [[ $status -eq 0 && $(json /dev/stdin 'len(d["predicted"])' <<<"$output") == 0 ]] || show
    run --separate-stderr "$EVENLOAD" scale "${mlp[@]}" --devices 1 --predict 4 --machine h100-sxm --out m --json
    [[ $status -eq 0 && $(json /dev/stdin 'd["predicted_costs"], d["predicted_machine"]' <<<"$output") == "(None, 'H100 SXM5 80GB')" ]] || show
    # A card is not held against a core: single is predicted on it too.
    [[ $(json m/predicted/results.json '{t["mode"]: t["throughput"]["samples_per_s"] for t in d["trials"]}["ddp"] / {t["mode"]: t["throughput"]["samples_per_s"] for t in d["trials"]}["single"]') == "$(json /dev/stdin 'd["predicted"][0]["plain"]["speedup"]' <<<"$output")" ]] || show
    [[ $(json /dev/stdin 'len(d["predicted"]), d["predicted"][0]["error_pct"], d["predicted"][0]["plain"]["speedup"] < 4' <<<"$output") == "(1, None, True)" ]] || show
}

@test "--predict names the measurement that is missing" {
    local mlp=(--modes ddp --model mlp --data dummy --features 16 --hidden 32 --steps 4 --min-time 0 --warmup 1 --control none --repeats 1 --quiet)
    refuses "measure it with 'evenload comm all --out DIR' and give --costs DIR, or give --machine" "$EVENLOAD" scale "${mlp[@]}" --predict 4
    refuses "--predict goes on from devices that were measured: --devices sim has none" "$EVENLOAD" scale "${mlp[@]}" --devices sim:1 --predict 4 --machine h100-sxm
    "$EVENLOAD" comm all -b 1K -e 64K --iters 2 --devices 2 --out wire --quiet >/dev/null
    refuses "record single with as many samples as go through it here" "$EVENLOAD" scale "${mlp[@]}" --strong --devices 1 --predict 4 --costs wire --out s
    [[ -s s/results.json && ! -e s/predicted/results.json ]] # what was measured stays
}
