# `verify --disturb`: what is injected is found on this machine, what one core cannot tell is skipped with the reason, and the
# exit status says which. How findings are judged is tests/unit/test_disturb's.
load common

# On a machine that is held up it may have one more go.
disturbed() { # NAME WORD...: verify --disturb by those words, its document in NAME.json
    local name=$1
    shift
    "$@" "$EVENLOAD" verify --disturb --quiet --json --out "$name" >"$name.json" ||
        "$@" "$EVENLOAD" verify --disturb --quiet --json --out "$name-2" >"$name.json"
}

@test "verify --disturb finds what it injected" {
    long "the disturbances, 15 s"
    local found=yes
    disturbed r env || found=no
    # What does not hang on time is found however busy the machine is; the rest cannot be asked of a machine that is held up.
    [[ $(json r.json '[c["status"] for c in d["disturbances"] if c["check"] == "leak"]') == "['found']" ]] || show
    if [[ $found == no && $(json r.json 'max(c.get("others_pct") or 0 for c in d["disturbances"]) > 30') == True ]]; then
        skip "other processes took part of the cores"
    fi
    [[ $found == yes && $(json r.json 'd["checks"] == 4 - d["unserved"] and d["passed"]') == True ]] || show
    [[ $(json r.json '[c["check"] for c in d["disturbances"]]') == "['delay', 'slow-op', 'leak', 'straggler']" ]]
    [[ $(json r.json 'all(abs(c["off_pct"]) <= c["within_pct"] for c in d["disturbances"] if c["status"] == "found")') == True ]]
    # Each trial has a folder like any run's, and the findings have a page.
    [[ $(json r/delay/results.json 'd["trials"][0]["status"]') == ok && -e r/delay-clean/results.json ]]
    run --separate-stderr "$EVENLOAD" report r
    [[ $status -eq 0 ]] && grep -q "4 disturbances found" r/report.html
}

@test "on one core a delay and a straggler are skipped, and the rest is found" {
    long "verify --disturb on one core, 7 s alone"
    command -v taskset >/dev/null || skip "taskset is not installed"
    disturbed r taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+$')"
    [[ $(json r.json 'd["checks"], d["failed"], d["unserved"], "share one core" in str(d)') == "(2, 0, 2, True)" ]] || show
}

@test "verify --disturb refuses what it does not take, before anything is injected" {
    refuses "--disturb runs trials of its own: leave out --pairs" "$EVENLOAD" verify --disturb --pairs
    refuses "is an option of 'evenload compare', not of 'verify'" "$EVENLOAD" verify --disturb --repeats 3
    mkdir taken && touch taken/results.json
    refuses "taken holds a run already" "$EVENLOAD" verify --disturb --out taken
    [[ ! -e results ]]
}

@test "an interrupted verify --disturb leaves no process, and says so" {
    "$EVENLOAD" verify --disturb --quiet --out "$PWD/r" >out.txt 2>err.txt &
    local pid=$! got=0
    sleep 1
    kill -INT "$pid"
    wait "$pid" || got=$?
    [[ $got -eq 130 && $(<err.txt) == "evenload: interrupted" ]] || { cat out.txt err.txt && false; }
    ! pgrep -f "evenload worker measure $PWD/r/" || false
}
