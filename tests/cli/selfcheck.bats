# `selfcheck`: what is injected is found on this machine, what one core cannot tell is skipped with the reason, and the exit
# status says which. How findings are judged is tests/unit/test_selfcheck's.
load common

# It tries each check twice itself; on a machine that is held up for longer it may have one more go.
all_found() {
    rm -rf r
    run --separate-stderr "$EVENLOAD" selfcheck --json --out r
    [[ $status -eq 0 ]] || run --separate-stderr "$EVENLOAD" selfcheck --json --out r2
    [[ $status -eq 0 ]]
}

@test "selfcheck finds what it injected" {
    long "the disturbances, 15 s"
    local found=yes
    all_found || found=no
    printf '%s' "$output" >s.json
    # What does not hang on time is found however busy the machine is; the rest cannot be asked of a machine that is held up.
    [[ $(json s.json '[c["state"] for c in d["checks"] if c["check"] == "leak"]') == "['found']" ]] || show
    if [[ $found == no && $(json s.json '(d["others_pct"] or 0) > 30') == True ]]; then
        skip "other processes took $(json s.json 'round(d["others_pct"])') % of the cores"
    fi
    [[ $found == yes ]] || show
    [[ $(json s.json 'd["checked"] == d["found"] == 5 - d["skipped"]') == True ]]
    [[ $(json s.json '[c["check"] for c in d["checks"]]') == "['delay', 'slow op', 'leak', 'straggler', 'cause']" ]]
    [[ $(json s.json 'all(abs(c["off_pct"]) <= c["within_pct"] for c in d["checks"] if c["state"] == "found")') == True ]]
    # The folder is a run's, with every trial's record, and the findings.
    [[ $(json "$(json s.json 'd["dir"]')/results.json" 'd["selfcheck"]["found"], {t["status"] for t in d["trials"]}') \
        == "($(json s.json 'd["found"]'), {'ok'})" ]]
}

@test "on one core a delay and a straggler are skipped, and the rest is found" {
    long "selfcheck on one core, 7 s alone"
    command -v taskset >/dev/null || skip "taskset is not installed"
    run --separate-stderr taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+$')" "$EVENLOAD" selfcheck --quiet --out r
    [[ $status -eq 0 ]] || run --separate-stderr taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+$')" "$EVENLOAD" selfcheck --quiet --out r2
    [[ $status -eq 0 && -z $stderr && $output == *"3 of 3 found, 2 skipped"* && $output == *"share one core"* ]] || show
    [[ ${lines[-1]} == "Next: "*compare ]] || show
    for line in "${lines[@]}"; do [[ ${#line} -le 100 ]] || { echo "$line" && show; }; done
}

@test "selfcheck refuses what it does not take, before anything is injected" {
    refuses "is an option of 'evenload compare', not of 'selfcheck'" "$EVENLOAD" selfcheck --repeats 3
    refuses "unexpected argument 'now'" "$EVENLOAD" selfcheck now
    mkdir taken && touch taken/results.json
    refuses "taken holds a run already" "$EVENLOAD" selfcheck --out taken
    [[ ! -e results ]]
}

@test "an interrupted selfcheck leaves no process, and says so" {
    "$EVENLOAD" selfcheck --quiet --out "$PWD/r" >out.txt 2>err.txt &
    local pid=$! got=0
    sleep 1
    kill -INT "$pid"
    wait "$pid" || got=$?
    [[ $got -eq 130 && ! -s out.txt && $(<err.txt) == "evenload: interrupted" ]] || { cat out.txt err.txt && false; }
    ! pgrep -f "evenload worker measure $PWD/r/" || false
}

@test "the help's time and the page's runs agree" {
    local page=$BATS_TEST_DIRNAME/../../docs/trust.md low high seconds
    read -r low high <<<"$("$EVENLOAD" selfcheck --help | sed -n 's/.*selfcheck  *\([0-9]*\) to \([0-9]*\) seconds$/\1 \2/p')"
    [[ $low -gt 0 && $high -gt $low ]]
    seconds=$(sed -n 's/.*found, in \([0-9]*\) s;.*/\1/p' "$page")
    [[ $seconds -ge $low && $seconds -le $high ]] || { echo "$seconds s" && false; }
}
