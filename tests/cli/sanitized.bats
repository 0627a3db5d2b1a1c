# Command lines under the address sanitizer, where alone this file runs (scripts/test): few, and quick, but through every room of bench/.
# What a launched process has to say is in its log, what the program itself has in its exit status.
PICTURES=no
load common

ours() { # ours COMMAND...: exit status 0, and nothing of a sanitizer
    run --separate-stderr "$EVENLOAD" "$@"
    [[ $status -eq 0 && $stderr != *Sanitizer* && $stderr != *"runtime error"* ]] || show
}
all_ok() { # all_ok RUN TRIALS: each was measured, and its processes ended without a word
    [[ $(json "$1/results.json" '[t["status"] for t in d["trials"]].count("ok")') == "$2" ]] || show
    ! grep -rE 'Sanitizer|runtime error' "$1/logs" || show
}

@test "a run, its table, its JSON and its memory" {
    ours run "${QUICK[@]}" --mode dp --out r
    all_ok r 1
    ours run "${QUICK[@]}" --mode single --control none --json --quiet --out j
    all_ok j 1
    ours run "${QUICK[@]}" --mode ddp --dry-run --json
    ours devices
}

@test "a comparison with its gate, gone on with, shown again by other commands" {
    local each=("${QUICK[@]}" --launcher own --control none --out c)
    ours compare "${each[@]}" --repeats 1
    all_ok c 3
    ours compare "${each[@]}" --repeats 2 --quiet --json
    ours imbalance c --json
    ours scale c --json
    "$EVENLOAD" baseline add c --store s >out.txt
    run --separate-stderr "$EVENLOAD" regress --baseline s --current c
    [[ $status -lt 5 && $stderr != *Sanitizer* && $stderr != *"runtime error"* ]] || show
}

@test "every mode, in threads and in processes" {
    local all=single,dp,ddp,manual,mp,pipeline,tp,zero1,zero2,zero3,spmg
    ours compare "${QUICK[@]}" --devices 2 --modes "$all" --launcher own --control none --repeats 1 --quiet --out m
    all_ok m 11
    [[ ${EVENLOAD_LONG:-} == 1 ]] || { echo "# long: verify with each mode, two minutes" >&3 && return 0; }
    ours verify --quick --launcher own --quiet --out v
    ! grep -rE 'Sanitizer|runtime error' v/logs || show
}

@test "what is refused frees what it took" {
    refuses "more than the 16384" "$EVENLOAD" compare "${QUICK_MODEL[@]}" --batch 8,20000
    refuses "unknown disturbance" "$EVENLOAD" run "${QUICK[@]}" --inject foo
    refuses "nowhere does not exist" "$EVENLOAD" imbalance nowhere
}
