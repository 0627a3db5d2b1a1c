#!/usr/bin/env bats
# Ranks of a user's own launcher that were not all asked for the same: refused before anything is trained.
load common
PICTURES=no
DDP=("${QUICK[@]}" --mode ddp)

# ranks WORDS0 -- WORDS1: two ranks by torchrun's variables; rank 0's status, output and stderr by run, rank 1's in $one and one.txt.
ranks() {
    local zero=() place=(env WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$(free_port)")
    while [[ $1 != -- ]]; do zero+=("$1") && shift; done
    shift
    "${place[@]}" RANK=1 timeout 120 "$@" >one.txt 2>&1 3>&- &
    run --separate-stderr "${place[@]}" RANK=0 timeout 120 "${zero[@]}"
    one=0
    wait $! || one=$?
}

# refused WORDS: both ranks ended with status 2, and one line was said in all.
refused() {
    [[ $status -eq 2 && $one -eq 2 && -z $output && ! -s one.txt && ${#stderr_lines[@]} -eq 1 ]] || { cat one.txt && show; }
    [[ $stderr == "evenload: $1: ${2:-start all ranks with the same program and options}" ]] || show
}

@test "by torchrun's variables ranks with unlike options are refused, in one line, whatever they would talk by" {
    local kind
    for kind in auto tcp shm; do
        ranks "$EVENLOAD" run "${DDP[@]}" --comm "$kind" --optimizer sgd --out r -- "$EVENLOAD" run "${DDP[@]}" --comm "$kind" --optimizer adam --lr 0.5
        refused "rank 1 was started with --optimizer adam, rank 0 with --optimizer sgd"
    done
    [[ ! -e r && ! -e results ]] || show
}

@test "under mpirun ranks with unlike options are refused, in one line" {
    need_mpirun
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run --separate-stderr timeout 120 mpirun --oversubscribe --bind-to none -n 1 "$EVENLOAD" run "${DDP[@]}" --comm mpi --out r : \
        -n 1 "$EVENLOAD" run "${DDP[@]}" --comm mpi --seed 2
    [[ $status -eq 2 && $(grep -c "^evenload: " <<<"$output$stderr") -eq 1 ]] || show
    [[ $output$stderr == *"rank 1 was started with --seed 2, rank 0 with --seed 1 (the default): start all"* ]] || show
}

@test "the command, flags, what only one rank was given, and sizes of the model are compared too" {
    ranks "$EVENLOAD" run "${DDP[@]}" -- "$EVENLOAD" comm -b 8 -e 64
    refused "rank 1 was started as 'evenload comm', rank 0 as 'evenload run'"
    ranks "$EVENLOAD" run "${DDP[@]}" -- "$EVENLOAD" run "${DDP[@]}" --no-record
    refused "rank 1 was started with --no-record, rank 0 without --no-record"
    ranks "$EVENLOAD" run "${DDP[@]}" --launcher rank --devices 2 -- "$EVENLOAD" run "${DDP[@]}"
    refused "rank 1 was started without --devices, rank 0 with --devices 2"
    ranks "$EVENLOAD" run "${DDP[@]}" -- "$EVENLOAD" run "${DDP[@]}" --hidden 9
    refused "rank 1 was started with --hidden 9, rank 0 with --hidden 8"
    ranks "$EVENLOAD" comm -b 8 -e 64 -- "$EVENLOAD" comm -b 8 -e 128
    refused "rank 1 was started with --maxbytes 128, rank 0 with --maxbytes 64"
    ranks "$EVENLOAD" comm broadcast -e 64 -- "$EVENLOAD" comm -e 64
    refused "rank 1 was started as 'evenload comm', rank 0 as 'evenload comm broadcast'"
}

@test "where a rank writes, and what it prints, is its own" {
    ranks "$EVENLOAD" run "${DDP[@]}" --out r --quiet -- "$EVENLOAD" run "${DDP[@]}" --out elsewhere --json --launcher rank --strict
    [[ $status -eq 0 && $one -eq 0 && -s r/results.json && ! -e elsewhere ]] || { cat one.txt && show; }
}

@test "a data set that is another one at another rank is refused" {
    mkdir other
    printf '0 good day\n1 bad day\n' >train.txt
    printf '0 good day\n1 bad day\n1 sad day\n' >other/train.txt
    local train=("$EVENLOAD" run --model textcnn --filters 2 --data train.txt --batch 2 --mode ddp)
    ranks "${train[@]}" --out r -- env -C other "${train[@]}"
    [[ $status -eq 2 && $one -eq 2 && ! -s one.txt && ! -e r ]] || { cat one.txt && show; }
    [[ $stderr == "evenload: rank 1 reads train.txt: 3 samples, "*", rank 0 train.txt: 2 samples, "*": give all ranks the same data" ]] || show
}

@test "ranks of other folders train from rank 0's checkpoint, or not at all" {
    local train=("$EVENLOAD" run "${DDP[@]}" --precision f64 --warmup 0 --min-time 0 --steps 12) share="give --resume a folder that all ranks share"
    "${train[@]}" --devices 2 --checkpoint ck,every=4,keep=9 --out whole --quiet >out 2>&1 || { cat out && return 1; }
    mkdir -p h0/ck h1/ck h2/ck
    cp -r ck/step-4 h0/ck && cp -r ck/step-[48] h1/ck && cp -r ck/step-8 h2/ck/step-4
    ranks env -C h0 "${train[@]}" --resume ck --out "$PWD/r" --quiet -- env -C h1 "${train[@]}" --resume ck
    [[ $status -eq 0 && $one -eq 0 ]] || { cat one.txt && show; }
    [[ $(json r/results.json 'd["trials"][0]["loss"]') == "$(json whole/results.json 'd["trials"][0]["loss"][4:]')" ]]
    ranks env -C h0 "${train[@]}" --resume ck -- env -C h2 "${train[@]}" --resume ck
    [[ $stderr == "evenload: rank 1 begins at step 8, "*"rank 0 at step 4, "* ]] && refused "${stderr:10: -${#share}-2}" "$share"
    ranks env -C h0 "${train[@]}" --checkpoint new -- env -C h1 "${train[@]}" --checkpoint new
    refused "rank 1: --checkpoint new: not the folder of rank 0" "give one that all ranks share"
    [[ ! -e h0/results && ! -e h0/new ]]
}
