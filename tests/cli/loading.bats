# Loading: from files and by workers in every mode, with the losses of a set in memory; what `evenload data` says of it; a worker that
# ends and a file that goes bad. Judgement is tests/unit/test_loading_document's, bits are tests/unit/test_data_workers'.
load common
PICTURES=no

TINY=(--model mlp --features 16 --hidden 8 --batch 8 --warmup 1 --steps 6 --min-time 0 --control none --quiet)

make_text() { for i in $(seq 40); do echo "$((i % 3)) word$i common word$((i / 2))"; done >text.txt; }

@test "data names an injected slow disk, and writes and draws what it measured" {
    make_text
    with_gnuplot
    run --separate-stderr "$EVENLOAD" data "${TINY[@]}" --data text.txt --devices 1 --inject disk=1 --workers 2 --repeats 1 --data-in cache=warm --out d
    [[ $status -eq 0 && $output == *"stages, warm page cache"*"CPU devices copy from any host memory"*"The slowest stage is reading"* ]] || show
    for line in "${lines[@]}"; do [[ ${#line} -le 100 ]] || { echo "$line" && show; }; done
    [[ $(json d/data.json '[r["workers"] for r in d["rows"]]') == '[0, 2]' ]]
    [[ $(json d/data.json 'd["rows"][0]["read_ms"] >= 8 and d["rows"][0]["exposed_ms"] >= 8 and d["rows"][0]["waits"]') == compute ]]
    [[ $(json d/data.json 'd["recommended"][0]["slowest_stage"], d["recommended"][0]["ms_per_read"] >= 1') == "('read', True)" ]]
    [[ $(json d/data.json 'all(abs(r["step_ms"] * r["samples_per_s"] - 8e3) < 1e-6 and abs(100 * r["exposed_ms"] / r["step_ms"] - r["exposed_pct"]) < 1e-9 for r in d["rows"])') == True ]]
    ! command -v gnuplot >/dev/null || [[ -s d/plots/loading.png ]]
    run --separate-stderr "$EVENLOAD" report d
    [[ $status -eq 0 && $(<d/report.html) == *">single workers 2<"* ]] || show
    ! command -v gnuplot >/dev/null || [[ $(<d/report.html) == *'<h2>Loading</h2>'*'alt="When each batch was made and taken, without workers and with them." src="data:image/svg+xml'* ]]
}

@test "every way of loading gives the same losses, in threads and in ranks" {
    make_text
    for mode in single ddp dp pipeline; do
        "$EVENLOAD" run "${TINY[@]}" --mode $mode --devices 2 --data text.txt --json --out "m-$mode" >memory.json
        "$EVENLOAD" run "${TINY[@]}" --mode $mode --devices 2 --data text.txt --data-in disk --workers 2 --json --out "w-$mode" >workers.json
        [[ $(json memory.json 'd["trials"][0]["loss"]') == "$(json workers.json 'd["trials"][0]["loss"]')" ]] || { echo $mode && return 1; }
    done
}

@test "a dead worker and a file that goes bad are one line, and soon" {
    make_text
    SECONDS=0
    run --separate-stderr "$EVENLOAD" run "${TINY[@]}" --data text.txt --data-in disk --workers 2 --inject worker=4 --devices 1 --out dead
    [[ $status -eq 1 && $output == *"loader worker 0 ended before batch 4 was ready"* && $SECONDS -lt 30 ]] || show
    mkdir -p images/{a,b}
    for i in $(seq 20); do
        { printf 'P6 4 4 255\n' && head -c 48 /dev/zero; } | tee "images/a/$i.ppm" >"images/b/$i.ppm"
    done
    echo no image >images/a/7.ppm # the set is opened all the same, since it is read later
    run --separate-stderr "$EVENLOAD" run --model resnet18 --image 32 --classes 2 --data images --data-in disk --workers 1 --batch 4 --steps 9 --warmup 0 --min-time 0 --control none --quiet --devices 1 --out bad
    [[ $status -eq 1 && $output == *"images/a/7.ppm: not an image"* ]] || show
}

@test "what does not go together is refused" {
    make_text
    refuses "'synthetic' data are made in memory" "$EVENLOAD" run --data-in disk
    refuses "--inject disk: with --data-in memory" "$EVENLOAD" run --data text.txt --inject disk=1
    refuses "--inject worker: there are no loader workers" "$EVENLOAD" run --data text.txt --inject worker=3
    refuses "data: simulated devices load nothing" "$EVENLOAD" data --devices sim:2
    refuses "--data-in cache=cold: with --data-in memory" "$EVENLOAD" run --data text.txt --data-in cache=cold
    refuses "--workers" "$EVENLOAD" data --data text.txt --workers 1,1
    refuses "--workers prefetch: there are no loader workers" "$EVENLOAD" run --workers prefetch=3
    refuses "--data dummy: nothing lies in files" "$EVENLOAD" data --model mlp --data dummy
    refuses "nothing.txt: No such file" "$EVENLOAD" data --data nothing.txt
    [[ ! -e results ]]
}
