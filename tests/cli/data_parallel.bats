#!/usr/bin/env bats
# Options of dp, ddp and manual by the command line: in threads and in processes, and the errors that users of DDP meet.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

BRANCH=(--devices 2 --model branch --features 8 --hidden 6 --data dummy --batch 9 --warmup 1 --steps 3 --min-time 0 --precision f64 --quiet)

losses() { json "$1/results.json" 'd["trials"][0]["loss"]'; }

@test "options of ddp and manual have the same bits in threads and in processes" {
    for how in "ddp --find-unused on --accumulate 2" "ddp --find-unused once --bucket-mb view" "manual --sync param"; do
        # shellcheck disable=SC2086 # a mode with its options
        "$EVENLOAD" run --mode $how "${BRANCH[@]}" --procs 1 --out threads
        # shellcheck disable=SC2086
        "$EVENLOAD" run --mode $how "${BRANCH[@]}" --procs 2 --launcher own --out ranks
        [[ $(losses threads) == "$(losses ranks)" ]] || { losses threads; losses ranks; false; }
        rm -r threads ranks
    done
}

@test "ddp trains with --comm check, by whatever its ranks talk" {
    local kinds=(shm tcp) kind
    ! has_mpirun || kinds+=(mpi)
    run --separate-stderr "$EVENLOAD" run --mode ddp --find-unused on "${BRANCH[@]}" --procs 1 --comm check --out local
    [[ $status -eq 0 && $(json local/results.json 'd["trials"][0]["config"]["comm_check"]') == on ]] || show
    for kind in "${kinds[@]}"; do
        run --separate-stderr "$EVENLOAD" run --mode ddp --find-unused on "${BRANCH[@]}" --procs 2 --comm "$kind" --comm check --out "$kind"
        [[ $status -eq 0 && $(losses "$kind") == "$(losses local)" ]] || show
    done
}

@test "a parameter without a gradient is named on every way to run ddp, and nobody waits" {
    for procs in 1 2; do
        run --separate-stderr timeout 120 "$EVENLOAD" run --mode ddp "${BRANCH[@]}" --procs "$procs" --launcher own --out "p$procs"
        [[ $status -eq 1 ]] || show
        reason=$(json "p$procs/results.json" 'd["trials"][0]["reason"]')
        [[ $reason == *"expected to have finished reduction in the prior iteration"*"no gradient of 'side.weight' and 1 more; give --find-unused on"* ]] || { echo "$reason"; false; }
    done
    for how in ddp "dp --dp-fix overlap" "dp --dp-fix all"; do # whose buckets are ddp's
        # shellcheck disable=SC2086 # a mode and its options
        refuses "'side.weight'" "$EVENLOAD" run --mode $how "${BRANCH[@]}" --dry-run
    done
    run --separate-stderr "$EVENLOAD" run --mode ddp "${BRANCH[@]}" --dry-run
    [[ $status -eq 2 && ${#stderr_lines[@]} -eq 1 && $stderr == *"'side.weight'"* ]] || show
}

@test "the gate holds dp's loss in replicas to the mean of its chunks' means" {
    "$EVENLOAD" compare --modes single,dp,ddp "${BRANCH[@]}" --procs 1 --find-unused on --loss-in replica,device=1 --repeats 1 --out c
    [[ $(json c/results.json '[g["agrees"] for g in d["gate"]], round(d["gate"][0]["loss"], 9) == round(d["gate"][1]["loss"], 9)') == "([True, True, True], False)" ]]
}
