# `scale` on null devices, where what is planted is all there is: its JSON, its tables, records used again, its refusals; and
# the examples of docs/scale.md. Arithmetic and judgement are tests/unit/test_scale's.
load common
PICTURES=no

NULL=(--devices 'null:1,2' --procs 1 --modes ddp --model mlp --data dummy --warmup 1 --quiet)
SHORT=("${NULL[@]}" --features 16 --hidden '32,32' --steps 2 --min-time 0 --control none --repeats 2)

# A step is 4 ms of pause; on two devices it has 4 ms of wire more, a MiB of parameters at 4 ms each: half is lost.
@test "scale finds a planted loss, and says where it is" {
    run --separate-stderr "$EVENLOAD" scale "${NULL[@]}" --features 512 --hidden 512 --steps 5 --min-time 0.03 --control-pairs 2 \
        --inject 'pause=linear_forward hidden1:4,wire=4' --out p --json
    [[ $status -eq 0 && -z $stderr ]] || show
    printf '%s' "$output" >p.json
    [[ $(json p.json '[(r["mode"], r["devices"], r["global_batch"]) for r in d["rows"]]') == \
        "[('single', 1, 64), ('ddp', 1, 64), ('ddp', 2, 128)]" ]] || show
    python3 - <<'END' || show
import json
d = json.load(open("p.json"))
one, wrapped, two = d["rows"]
plain, step = two["plain"], two["step"]
assert d["scaling"] == "weak" and d["batch"] == 64 and d["buckets"] is None, d
assert 0.2 < plain["efficiency"] < 0.75, plain # a busy machine wakes late
assert abs(plain["speedup"] - 2 * plain["efficiency"]) < 1e-9, plain
low, high = plain["speedup_ci95"]
assert low <= plain["speedup"] <= high, plain
if plain["speedup_repeat95"] is None:
    assert plain["repeat_reason"] == "other work was on the machine", plain
else:
    far_low, far_high = plain["speedup_repeat95"]
    assert far_low <= low and high <= far_high, plain
assert 3.8 < step["exposed_ms"] < 16 and 2 < step["comm_costs_ms"] < 16, step
assert step["exposed_ms"] > 0.5 * step["lost_ms"], step
parts = sum(step[k] for k in ("compute_ms", "contention_ms", "exposed_ms", "idle_ms"))
assert abs(parts - step["lost_ms"]) < 1e-6 and abs(step["ideal_ms"] + parts - step["step_ms"]) < 1e-6, step
assert one["plain"] is None and wrapped["wrapped"] is None and two["wrapped"]["efficiency"] < 0.85, d
END
}

@test "scale again measures what is missing, and scale DIR nothing" {
    with_gnuplot
    run --separate-stderr "$EVENLOAD" scale "${SHORT[@]}" --out r
    [[ $status -eq 0 && $output == *"against plain single"*"Where the time goes"*"Null devices compute nothing"*"Next: "*" scale --modes ddp "*"--bucket-mb 1,5,25,100"* ]] || show
    for line in "${lines[@]}"; do [[ ${#line} -le 110 || $line == Next:* ]] || { echo "$line" && show; }; done
    find r/repeats -name '*.json' -printf '%f %T@\n' | sort >before
    [[ $(wc -l <before) -eq 6 ]]
    local gnuplot
    gnuplot=$(command -v gnuplot) || gnuplot=''
    [[ -z $gnuplot || (-s r/plots/scale.svg && -s r/plots/scale.png && ! -e r/plots/buckets.dat) ]]
    without_gnuplot
    run --separate-stderr "$EVENLOAD" scale "${SHORT[@]}" --out r
    [[ $status -eq 0 ]] || show
    find r/repeats -name '*.json' -printf '%f %T@\n' | sort | diff before -
    "$EVENLOAD" scale "${SHORT[@]}" --out r --bucket-mb 0.001 --json >more.json # one trial more
    # Its row of trials.csv says what it is: two trials of one mode, devices and batch differ in a column.
    [[ $(python3 -c 'import csv; print(sorted(int(t["bucket_cap_bytes"]) for t in csv.DictReader(open("r/trials.csv")) if t["mode"] == "ddp" and t["devices"] == "2"))') \
        == "[1049, 26214400]" ]] || { cat r/trials.csv && show; }
    [[ $(find r/repeats -name '*.json' | wc -l) -eq 8 ]]
    [[ $(json more.json '[(b["mib"], b["buckets"]) for b in d["buckets"]["rows"]][1] == (25, 1)') == True ]]
    [[ $(json more.json 'd["buckets"]["rows"][0]["buckets"] > 1, d["buckets"]["recommended_mib"]') == "(True, None)" ]]
    run --separate-stderr "$EVENLOAD" scale r --json
    [[ $status -eq 0 && -z $stderr && $output == "$(cat more.json)" ]] || show
    if [[ -n $gnuplot ]]; then # the sweep's picture
        [[ $(cd r/plots && "$gnuplot" -d -c "$BATS_TEST_DIRNAME/../../plots/buckets.gnuplot" buckets.dat svg) == \
            *'>0.001<'*'>25<'*">Size of ddp's buckets on 2 devices; mlp, f32<"*'</svg>'* ]]
    fi
    rm -r r/plots && touch r/plots # where nothing can be drawn all else is said
    run --separate-stderr "$EVENLOAD" scale r --json
    [[ $status -eq 0 && $stderr == "evenload: not drawn: r/plots"* && $output == "$(cat more.json)" ]] || show
}

@test "counts without cores of their own are marked, and nothing is claimed of them" {
    [[ $(nproc) -lt 16 ]] || skip "there are cores for all"
    run --separate-stderr "$EVENLOAD" scale "${SHORT[@]}" --devices cpu:16 --strong --batch 32 --features 8 --repeats 1 --out s
    [[ $status -eq 0 && $output == *"ddp    16*"*"No count above 1 has"*"marked *, drawn hollow): devices share a core"* ]] || show
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
    refuses "--bucket-mb: more than 1 items" "$EVENLOAD" run --bucket-mb 1,25
    refuses "results.json could not be read" "$EVENLOAD" scale nothing
    for option in --strong '--repeats 7' '--repeats 5' '--out r' '--devices 4'; do # given with a folder of records, which have been measured
        # shellcheck disable=SC2086 # an option and its value
        refuses "scale nothing reads records and measures nothing: leave out ${option%% *}" "$EVENLOAD" scale nothing $option
    done
    refuses "--devices: one device is measured too" "$EVENLOAD" scale --devices "null:$(seq -s, 2 33)"
    refuses "--bucket-mb: 25 is measured too" "$EVENLOAD" scale --bucket-mb "$(seq -s, 50 81)"
    [[ ! -e results ]]
}

@test "folders of other commands are left alone" {
    "$EVENLOAD" run "${QUICK[@]}" --mode single --devices null:1 --quiet --json --out c >/dev/null
    refuses "would take out of its results.json: give another --out" "$EVENLOAD" scale "${SHORT[@]}" --out c
    run --separate-stderr "$EVENLOAD" scale c # but read
    [[ $status -eq 0 && $output == *"Strong scaling: 8 samples a step on all devices together"* ]] || show
    "$EVENLOAD" scale "${SHORT[@]}" --repeats 1 --json --out s >/dev/null
    refuses "s holds a run of 'scale', not of 'compare'" "$EVENLOAD" compare --resume --out s
}

# Each command of docs/scale.md, shortened, in order: the third reads what the first wrote. Heads of tables and what does not hang on
# time must be what the page shows.
@test "the examples of docs/scale.md run, and print what the page shows" {
    local page=$BATS_TEST_DIRNAME/../../docs/scale.md command line all=
    local less=(--modes ddp --repeats 1 --warmup 1 --steps 2 --min-time 0 --control none --procs 1 --batch-per-device 4 --quiet)
    mapfile -t commands < <(sed -n 's/^    \(evenload scale .*\)$/\1/p' "$page")
    [[ ${#commands[@]} -eq 3 ]]
    for command in "${commands[@]}"; do
        read -ra words <<<"${command#evenload }"
        [[ ${words[1]} == --* ]] && words+=("${less[@]}")
        # Buckets are counted from the schedule, which is any device's; the first example computes.
        [[ $command != *--bucket-mb* ]] || words+=(--devices "null:1,2")
        run --separate-stderr "$EVENLOAD" "${words[@]}"
        [[ $status -eq 0 ]] || show
        all+=$output$'\n'
    done
    while read -r line; do
        [[ $all == *"$line"* ]] || { echo "no '$line'" && show; }
    done < <(grep -E '^    (mode  dev\.|Where the time goes|times those of|Buckets of ddp| +against plain| +size  )' "$page" | sed 's/^ *//')
    grep -q '^    ddp      2 ' "$page" && [[ $all == *"ddp      2 "* ]]
    # Buckets are counted from the schedule: the same in any run.
    while read -r line; do
        [[ $all == *"$line"* ]] || { echo "no '$line'" && show; }
    done < <(sed -n 's/^    \( *[0-9]\+ \+[0-9]\+ \+[0-9.]\+ \+[0-9.]\+\) .*/\1/p' "$page")
}

# k of 10: the interval for a repeat of the whole study holds the next one's speed-up. By chance one in ten goes of ten has less than 9.
@test "intervals hold the repeat of the whole study in at least 9 of 10" {
    [[ ${EVENLOAD_LONG:-} == 1 ]] || {
        echo "# long: eleven studies on 1 and 2 devices, about four minutes" >&3
        skip "three to four minutes"
    }
    local go i
    for go in 1 2; do
        for i in {0..10}; do
            "$EVENLOAD" scale --devices 1,2 --modes ddp --model mlp --data dummy --min-time 0.4 --control none --quiet --json \
                --out "$go-$i" >"$go-$i.json"
        done
        run python3 - "$go" <<'END'
import json, sys
rows = [json.load(open(f"{sys.argv[1]}-{i}.json"))["rows"] for i in range(11)]
intervals = [study[-1]["plain"]["speedup_repeat95"] for study in rows]
quiet = [(i, j) for i, j in zip(range(10), range(1, 11)) if intervals[i] and intervals[j]]
held = sum(intervals[i][0] <= rows[j][-1]["plain"]["speedup"] <= intervals[i][1] for i, j in quiet)
print(f"{held} of {len(quiet)} held; other work was on the machine in {sum(x is None for x in intervals)} of 11 studies")
sys.exit(3 if len(quiet) < 10 else 0 if held >= 9 else 1)
END
        echo "# $output" >&3
        [[ $status -eq 0 ]] && return
    done
    [[ $status -ne 3 ]] || skip "$output"
    false
}

# In virtual time, so that four buckets are faster than one in every launch.
@test "the next command after a sweep keeps model, data, devices and batch" {
    local options=(--model mlp --features 512 --hidden "512,512,512,512" --data dummy --batch-per-device 64 --warmup 1)
    run --separate-stderr "$EVENLOAD" scale --devices "sim:1,2" --modes ddp "${options[@]}" --steps 2 --bucket-mb "100,1" --out s --quiet
    [[ $status -eq 0 && $output == *"take --bucket-mb 1"* ]] || show
    for words in "compare --modes ddp" "--model mlp" "--devices sim:2" "--batch-per-device 64" "--bucket-mb 1" "--features 512" "--data dummy"; do
        [[ ${lines[-1]} == "Next: "*"$words"* ]] || { echo "no $words" && show; }
    done
    local next=${lines[-1]}
    run --separate-stderr env PATH="$(path_without_mpirun)" "$EVENLOAD" scale s # the same from the folder, which holds what was asked for
    [[ $status -eq 0 && ${lines[-1]} == "$next" ]] || show
    echo '{"command": "scale", "options": {"model": "of no name"}}' >s/command.json
    run --separate-stderr env PATH="$(path_without_mpirun)" "$EVENLOAD" scale s
    [[ $status -eq 0 && -z $stderr && ${lines[-1]} == "Next: "*" compare --modes ddp --bucket-mb 1" ]] || show
}
