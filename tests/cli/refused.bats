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
    leaves_nothing "none.txt: No such file" "$EVENLOAD" run "${TINY[@]}" --data none.txt --out X/Y
    for out in '' --out=X/Y; do
        leaves_nothing "none.csv: No such file" "$EVENLOAD" run "${TINY[@]}" --mode pipeline --schedule none.csv $out
    done
    leaves_nothing "--trace needs" "$EVENLOAD" run "${TINY[@]}" --trace T --out X
    leaves_nothing "none: No such file" "$EVENLOAD" compare "${TINY[@]}" --load none --out X
    leaves_nothing "1 is there twice" "$EVENLOAD" scale "${TINY[@]}" --devices 1,1 --out X
    leaves_nothing "unknown mode" "$EVENLOAD" imbalance "${TINY[@]}" --modes x --out X
    leaves_nothing "a global batch of 100000" "$EVENLOAD" explain --model mlp --batch 100000 --out X
    leaves_nothing "no such folder" "$EVENLOAD" explain none none --out X
    leaves_nothing "there is no rank 7" "$EVENLOAD" comm all_reduce --devices 2 --root 7 --out X
    leaves_nothing "unknown disturbance" "$EVENLOAD" verify --inject oops --out X
    leaves_nothing "printed no metric" "$EVENLOAD" regress --ab true true --out X
    leaves_nothing "printed no metric" "$EVENLOAD" baseline add --store S --from 'echo none' --launches 1
    leaves_nothing "none does not exist" "$EVENLOAD" report none --markdown m.md
    leaves_nothing "No such file" "$EVENLOAD" trace-stats none
}

@test "where nobody can launch the ranks, nothing is left either" {
    leaves_nothing "mpirun: not found" env PATH=/nowhere "$EVENLOAD" run "${TINY[@]}" --mode ddp --devices 2 --launcher mpirun --out X --checkpoint C/D/
    leaves_nothing "mpirun: not found" env PATH=/nowhere "$EVENLOAD" comm all_reduce --devices 2 --launcher mpirun --out X
}

@test "--devices under a launcher of several ranks is one line, not a job for each" {
    launched=(env RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=localhost MASTER_PORT=29500)
    for device in 'cuda:0,' 'cpu:0,' 1 2; do
        leaves_nothing "torchrun started 2 ranks, each of which would run a job of its own" "${launched[@]}" "$EVENLOAD" run "${TINY[@]}" --devices "$device" --out X
    done
    leaves_nothing "torchrun started 2 ranks" "${launched[@]}" "$EVENLOAD" comm all_reduce --devices 'cpu:0,' --out X
    "${launched[@]}" "$EVENLOAD" run "${TINY[@]}" --devices 'cpu:0,' --launcher self --out X >/dev/null
}

@test "a pipe or a device where a file is read is refused, not waited for" {
    local folder=r record=s/0123456789abcdef-1.json
    mkdir -p r x c s st
    mkfifo r/results.json x/explain.json c/comm.json $record p p.csv p.json p.json.gz
    ln -s /dev/zero z.csv && ln -s /dev/zero z.json && ln -s /dev/zero z
    is() { refuses "$1: is not a regular file" timeout 120 "$EVENLOAD" "${@:2}"; }
    for command in plot report imbalance scale explain; do is r/results.json $command $folder; done
    is x/explain.json report x
    is c/comm.json plot c
    is $record baseline show --store s
    is r/results.json baseline add r --store st
    for file in p.json p.json.gz z.json; do is $file trace-stats $file; done
    for file in p.csv z.csv; do is $file run --mode pipeline --devices sim:2 --schedule $file; done
    for file in p z; do
        refuses "--machine $file: is not a regular file" timeout 120 "$EVENLOAD" run --devices sim:2 --mode ddp --machine $file
        is $file run --data $file
        is $file run --model mlp --load $file
    done
    refuses "no comm.json that can be read" timeout 120 "$EVENLOAD" run --mode ddp --devices sim:2 --costs c
    # A file that is too large for what it is.
    truncate -s 20M large.csv && truncate -s 300M x/results.json
    refuses "large.csv: is larger than 16 MiB" "$EVENLOAD" run --mode pipeline --devices sim:2 --schedule large.csv
    refuses "x/results.json: is larger than 256 MiB" "$EVENLOAD" imbalance x
}

@test "a trace that unpacks to gigabytes is refused early, in little memory" {
    mkdir zeros blanks
    head -c 70M /dev/zero | gzip >zeros/a.json.gz
    { printf '[' && head -c 70M /dev/zero | tr '\0' ' '; } | gzip >blanks/a.json.gz
    ulimit -v 100000 # KiB
    refuses "no { or [ at byte 0" "$EVENLOAD" trace-stats zeros
    refuses "unpacks to more than 50 times its size" "$EVENLOAD" trace-stats blanks
}

@test "a rate by which an op takes for ever is told as such" {
    sed 's/"link_gb_per_s": [0-9.]*/"link_gb_per_s": 1e-300/' "$BATS_TEST_DIRNAME/../../profiles/hardware/h100-sxm.json" >slow.json
    run --separate-stderr "$EVENLOAD" run --mode ddp --devices sim:2 --machine slow.json "${QUICK[@]}" --out X
    [[ $status -eq 1 && $stderr == *"a rate of the machine is too low"* ]] || show
}

# A limit on files' sizes stands for a disk that is full: what a worker measured is lost, and its parent says that it is that.
@test "a result that cannot be written is told as such, with exit status 2" {
    make_little() { ulimit -f 1 && exec "$@"; }
    for command in "comm all_reduce --devices 2 --maxbytes 64K --iters 2 --comm local" "explain --model mlp --features 8 --hidden 4 --batch 8 --devices 2 --min-time 0.01 --repeats 1"; do
        run --separate-stderr make_little "$EVENLOAD" $command --quiet --out X
        [[ $status -eq 2 && ${#stderr_lines[@]} -eq 1 && $stderr == "evenload: "*"could not be written"* && ! -e X/command.json ]] || show
        rm -rf X
    done
    run --separate-stderr bash -c '"$0" "$@" >/dev/full' "$EVENLOAD" comm all_reduce --devices 2 --maxbytes 64 --iters 2 --comm local --quiet --out X
    [[ $status -eq 2 && ${#stderr_lines[@]} -eq 1 && $stderr == *"standard output cannot be written"* ]] || show
}

@test "a run that is interrupted before it has measured anything leaves logs alone, and its folder can be used again" {
    "$EVENLOAD" run "${TINY[@]}" --min-time 60 --devices 1 --out X >/dev/null 2>interrupted.txt 3>&- &
    pid=$!
    for ((i = 0; i < 400; i++)); do
        [[ -z $(find X/logs -name 'rank-0.log' 2>/dev/null) ]] || break
        sleep 0.05
    done
    kill -INT $pid
    wait $pid || true
    [[ $(cat interrupted.txt) == "evenload: interrupted" && ! -e X/command.json && ! -e X/data ]]
    "$EVENLOAD" run "${TINY[@]}" --devices 1 --out X >/dev/null
}
