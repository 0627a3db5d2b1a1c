# Loading: from files and by workers in every mode, with the losses of a set in memory; a worker that ends and a file that goes bad. Bits
# are tests/unit/test_data_workers'.
load common
PICTURES=no

TINY=(--model mlp --features 16 --hidden 8 --batch 8 --warmup 1 --steps 6 --min-time 0 --control none --quiet)

make_text() { for i in $(seq 40); do echo "$((i % 3)) word$i common word$((i / 2))"; done >text.txt; }

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
    refuses "--data-in cache=cold: with --data-in memory" "$EVENLOAD" run --data text.txt --data-in cache=cold
    refuses "--workers prefetch: there are no loader workers" "$EVENLOAD" run --workers prefetch=3
    [[ ! -e results ]]
}
