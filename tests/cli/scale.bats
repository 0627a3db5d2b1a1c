# `scale` on null devices, where what is planted is all there is: its JSON, its tables, records used again, its refusals; and
# the examples of docs/scale.md. Arithmetic and judgement are tests/unit/test_scale's.
load common
PICTURES=no

NULL=(--devices 'null:1,2' --procs 1 --modes ddp --model mlp --data dummy --warmup 1 --quiet)
SHORT=("${NULL[@]}" --features 16 --hidden '32,32' --steps 2 --min-time 0 --control none --repeats 2)

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
