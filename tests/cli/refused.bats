# A command that is refused leaves nothing: no folder, no data set, no file. Each is run in a folder that is empty, and looked for afterwards.
# shellcheck disable=SC2086 # an option that may be missing
load common
PICTURES=no
stderr='' # set by run

TINY=(--model mlp --features 8 --hidden 4 --steps 3 --warmup 1 --min-time 0 --quiet)

# leaves_nothing WORDS COMMAND...: refused with these words, and the folder is empty as before.
leaves_nothing() {
    mkdir empty
    cd empty || return
    refuses "$@"
    [[ -z $(find . -mindepth 1) ]] || { find . && show; }
    cd .. && rmdir empty
}

@test "what is refused before anything is measured leaves no folder and no data" {
    for out in '' --out=X/Y; do
        leaves_nothing "a global batch of 100000" "$EVENLOAD" data "${TINY[@]}" --batch 100000 $out
        leaves_nothing "--pin-memory is for GPUs" "$EVENLOAD" data "${TINY[@]}" --devices 1 --pin-memory off $out
        leaves_nothing "none.txt: No such file" "$EVENLOAD" data "${TINY[@]}" --test none.txt $out
        leaves_nothing "unknown disturbance" "$EVENLOAD" run "${TINY[@]}" --inject oops=1 $out
        leaves_nothing "--trace needs" "$EVENLOAD" run "${TINY[@]}" --trace T $out
        leaves_nothing "none.csv: No such file" "$EVENLOAD" run "${TINY[@]}" --mode pipeline --schedule none.csv $out
        leaves_nothing "none: No such file" "$EVENLOAD" compare "${TINY[@]}" --load none $out
        leaves_nothing "1 is there twice" "$EVENLOAD" scale "${TINY[@]}" --devices 1,1 $out
        leaves_nothing "unknown mode" "$EVENLOAD" imbalance "${TINY[@]}" --modes x $out
        leaves_nothing "a global batch of 100000" "$EVENLOAD" explain --model mlp --batch 100000 $out
        leaves_nothing "there is no rank 7" "$EVENLOAD" comm all_reduce --devices 2 --root 7 $out
        leaves_nothing "unknown disturbance" "$EVENLOAD" verify --inject oops $out
        leaves_nothing "printed no metric" "$EVENLOAD" regress --ab true true $out
    done
    leaves_nothing "printed no metric" "$EVENLOAD" baseline add --store S --from 'echo none' --launches 1
    leaves_nothing "could not be read" "$EVENLOAD" report none --markdown m.md
    leaves_nothing "No such file" "$EVENLOAD" trace-stats none
}

@test "where nobody can launch the ranks, nothing is left either" {
    leaves_nothing "mpirun: not found" env PATH=/nowhere "$EVENLOAD" run "${TINY[@]}" --mode ddp --devices 2 --launcher mpirun --out X
    leaves_nothing "mpirun: not found" env PATH=/nowhere "$EVENLOAD" comm all_reduce --devices 2 --launcher mpirun --out X
}

@test "one device under a launcher of several ranks is one line, not a training for each" {
    launched=(env RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=localhost MASTER_PORT=29500)
    for device in cuda:0, cpu:0, 1; do
        leaves_nothing "torchrun started 2 ranks, each of which would train alone" "${launched[@]}" "$EVENLOAD" run "${TINY[@]}" --devices $device --out X
    done
    leaves_nothing "torchrun started 2 ranks" "${launched[@]}" "$EVENLOAD" comm all_reduce --devices cpu:0, --out X
    "${launched[@]}" "$EVENLOAD" run "${TINY[@]}" --devices cpu:0, --launch self --out X >/dev/null
}
