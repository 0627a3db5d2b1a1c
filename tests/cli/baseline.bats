# `baseline add|show|accept`: what is kept, what is refused, and what is said. The rules are tests/unit/test_baseline_levels'; here a
# run is measured once, and its copies stand for other days.
# shellcheck disable=SC2030,SC2031 # each test is a subshell, and functions use what `run` set in it
PICTURES=no
load common

measured() { # measured DIR OPTION...: a launch of a fraction of a second
    "$EVENLOAD" run "${QUICK[@]}" --repeats 3 --quiet --out "$@" >/dev/null
}

# once NAME COMMAND...: what the command leaves in this test's folder; the tests of this file share it.
once() {
    local kept=${BATS_FILE_TMPDIR:-}/$1
    if [[ -n ${BATS_FILE_TMPDIR:-} && -d $kept ]]; then
        cp -r "$kept/." .
        return
    fi
    "${@:2}"
    [[ -z ${BATS_FILE_TMPDIR:-} ]] || { mkdir "$kept" && cp -r . "$kept"; }
}

altered() { # altered FROM TO STATEMENT: a copy of another day, with something else in its document `d`
    mkdir -p "$2"
    python3 - "$@" <<'END'
import json, sys
d = json.load(open(sys.argv[1] + "/results.json"))
def measured(day, ratio=1): # each step `ratio` times as long
    d["environment"]["time_utc"] = "2026-01-%02dT12:00:00Z" % day
    for r in (r for t in d["trials"] for r in t["repeats"]): r["step_ms"] = [ratio * x for x in r["step_ms"]]
d["environment"]["time_utc"] = "2026-01-28T12:00:00Z"
exec(sys.argv[3])
json.dump(d, open(sys.argv[2] + "/results.json", "w"))
END
}

copy() { # copy FROM TO DAY [RATIO] [TO DAY RATIO]...: the same run, measured on another day, each step RATIO times as long
    local from=$1
    (($# > 3)) || set -- "$@" 1
    while (($# > 1)); do altered "$from" "$2" "measured($3, $4)" && shift 3; done
}

keep_nine() { once nine nine_sessions; }

nine_sessions() { # that scatter by half a per cent
    [[ -e r ]] || once run measured r
    local day ratios=(1 1.005 0.995) days=()
    for day in 1 2 3 4 5 6 7 8 9; do days+=("day$day" "$day" "${ratios[day % 3]}"); done
    copy r "${days[@]}"
    for day in 1 2 3 4 5 6 7 8 9; do "$EVENLOAD" baseline add "day$day" >out.txt; done
}

narrow() { # no line of the output is wider than a table may be
    for line in "${lines[@]}"; do [[ ${#line} -le 100 || $line == Next:* ]] || { echo "$line" && show; }; done
}

judge() { # judge STATUS WORDS CURRENT: `regress` against the store ends so, and says so, in the table or in one line of error
    run --separate-stderr "$EVENLOAD" regress --baseline results/baseline --current "$3" --out "gate-$3-$1"
    [[ $status -eq $1 && "$(tr -s ' \n' ' ' <<<"$output $stderr")" == *"$2"* ]] || { echo "expected $1 and '$2'" && show; }
    narrow
}

mask() { # figures as N, whatever their width
    sed -E 's/[+-]?[0-9][0-9a-f.,:-]*/N/g; s/ +/ /g'
}

# example COMMAND...: the lines that the manual shows of it, but for those that name the machine or this program.
example() {
    awk -v command="    \$ $*" '$0 == command { on = 1; next } /^[^ ]/ || /^    \$/ { on = 0 } on && NF { print substr($0, 5) }' \
        "$BATS_TEST_DIRNAME/../../docs/regress.md" | grep -vE '^(machine|Next:|results/)' | mask
}

as_in_the_manual() { # as_in_the_manual LEAST: at least so many lines, and each is in the output
    local lines_seen=0 line
    while IFS= read -r line; do
        printf '%s\n' "$output$stderr" | mask | grep -qxF -- "$line" || { echo "the manual has: $line" && show; }
        lines_seen=$((lines_seen + 1))
    done
    ((lines_seen >= $1)) || { echo "only $lines_seen lines" && show; }
}

@test "a baseline from the first session to the ninth" {
    once run measured r
    copy r day1 1
    run --separate-stderr "$EVENLOAD" baseline add day1
    [[ $status -eq 0 && -z $stderr && $output == *"single 1 device mlp batch 8, ms "*" 1 "*" 7  2026-01-01 12:00"* ]] || show
    [[ ${lines[0]} =~ ^"machine "[0-9a-f]{16}": ".*" cores, Linux " && ${lines[-1]} == "Next: "*"7 more sessions before it can judge)" ]] || show
    narrow
    rm -r results
    keep_nine
    run --separate-stderr "$EVENLOAD" baseline
    [[ $status -eq 0 && -z $stderr && $output == *"single 1 device mlp batch 8, ms "*" 9 "*" 0.4 "*" 0  2026-01-09 12:00"* ]] || show
    [[ ${lines[-1]} == "Next: "*"regress --baseline results/baseline --current DIR" ]] || show
    narrow
    "$EVENLOAD" baseline show --json >b.json
    [[ $(json b.json '[(w["sessions"], w["accepted"]) for m in d["machines"] for w in m["workloads"]]') == "[(9, None)]" ]]
    [[ $(json b.json '(lambda f: (f["counted"], f["sessions_needed"], f["outliers"], 2 <= f["detectable_pct"] < 5, f["sd_pct"] < 1))(d["machines"][0]["workloads"][0]["figures"]["step_median_ms"])') \
        == "(9, 0, 0, True, True)" ]]
    # A record a run, its name beginning with the machine's fingerprint.
    local records=(results/baseline/*.json)
    [[ ${#records[@]} -eq 9 && $(json "${records[0]}" 'd["machine"]["fingerprint"], len(d["trials"])') == "('$(basename "${records[0]%%-*}")', 1)" ]]
}

@test "a session that is far is kept, said, and does not count; accepted it is the level" {
    keep_nine
    copy r slow 10 1.3
    run --separate-stderr "$EVENLOAD" baseline add slow
    [[ $status -eq 0 && $output == *"1 outlier, kept and not counted; the last session is one (+"[23]?.?" %)"* ]] || show
    [[ ${lines[-1]} == "Next: "*"baseline accept slow    (if the new level is right)" ]] || show
    run --separate-stderr "$EVENLOAD" baseline accept slow
    [[ $status -eq 0 && $output == *"accepted as the level: the run of 2026-01-10 12:00; 1 since, with it"* ]] || show
    narrow
    refuses "slow is the accepted level in results/baseline already" "$EVENLOAD" baseline accept slow
    judge 0 "single 1 device mlp batch 8: this run is the accepted level, and the only session of it so far" slow
    [[ ${lines[-1]} == "Next: "*"measure again for another session: this run is in the store already" ]] || show
    "$EVENLOAD" baseline show --json >b.json
    [[ $(json b.json '[w["since_accepted"] for m in d["machines"] for w in m["workloads"]]') == "[1]" ]]
    [[ $(json b.json '(lambda f: (f["of_level"], f["outliers"], f["sessions_needed"], abs(f["level"] / f["last"] - 1) < 1e-6))(d["machines"][0]["workloads"][0]["figures"]["step_median_ms"])') \
        == "(1, 0, 0, True)" ]]
    # The level is the accepted one: neither the sessions before it are, nor the others that are like them.
    copy r again 11 1.305 back 12 1 slower 13 1.6
    judge 0 "No regression" again
    judge 0 "better by 23." back
    judge 1 "worse by 2" slower
}

sessions_after() { # sessions_after N STATEMENT: N sessions more than the only one, each the last one changed by STATEMENT on `s`
    python3 - "$(echo results/baseline/*.json)" "$@" <<'END'
import json, sys
key, time, _ = sys.argv[1].split("-")
second, ns = time.split(".")
for i in range(int(sys.argv[2])):
    record = json.load(open(sys.argv[1]))
    s = record["trials"][0]
    s["run"] = "%016x" % i
    exec(sys.argv[3])
    json.dump(record, open("%s-%s.%09d-%s.json" % (key, second, int(ns) + 1 + i, s["run"]), "w"))
END
}

@test "a run that is the accepted level is the same as itself, however sessions scatter" {
    once run measured r
    copy r day1 1 1 new 28 1.2
    "$EVENLOAD" baseline add day1 >out.txt
    sessions_after 9 's["figures"]["step_median_ms"]["value"] *= 1 + 0.3 * (i % 3)'
    judge 3 "sessions differ so much that only slowdowns of" new
    "$EVENLOAD" baseline accept new >out.txt
    judge 0 "this run is the accepted level, and the only session of it so far" new
}

@test "levels of one session each tell no scatter" {
    once run measured r
    copy r first 1 1 now 28 1.1
    "$EVENLOAD" baseline accept first >out.txt
    sessions_after 9 's["figures"]["step_median_ms"]["value"] *= 1 + i / 10'
    judge 4 "10 levels, each of too few sessions to estimate their scatter" now
    [[ $output == *" 7"*"more by 'evenload baseline add'"* ]] || show
    run --separate-stderr "$EVENLOAD" baseline show
    [[ $status -eq 0 && $output == *" batch 8, ms "*" 10 "*" 1 "*" - "*" - "*" 7  2026-01-01 12:00"* ]] || show
}

@test "of many sessions of an accepted level the last thirty count, and all are said" {
    once run measured r
    copy r first 1
    "$EVENLOAD" baseline accept first >out.txt
    sessions_after 45 'del s["accepted"]; s["figures"]["step_median_ms"]["value"] *= 0.5'
    run --separate-stderr "$EVENLOAD" baseline show
    [[ $status -eq 0 && $output == *" batch 8, ms "*" 46 "*" 30 "*"the run of 2026-01-01 12:00; 46 since, with it; the last 30 count"* ]] || show
    narrow
    judge 1 "worse by 100" first
    [[ ${lines[-1]} == "Next: "*"measure again for another session: this run is the accepted level already" ]] || show
}

@test "what a baseline does not take" {
    once run measured r
    copy r kept 1
    "$EVENLOAD" baseline add kept >out.txt
    refuses "kept is a session in results/baseline already: measure again" "$EVENLOAD" baseline add kept
    copy kept moved 1
    refuses "moved is a session in results/baseline already" "$EVENLOAD" baseline add moved
    altered r failed 'd["trials"][0].update(status="oom", reason="cpu:0 is full")'
    refuses "single 1 device mlp batch 8 did not finish (cpu:0 is full)" "$EVENLOAD" baseline add failed
    altered r more 'd["trials"][0]["per_device"][0]["memory"]["peak_bytes"] = 12345678901' # more digits than a float has
    refuses "device_peak_bytes[0] is 12345678901 B, and was " "$EVENLOAD" baseline add more
    altered r empty 'd["trials"].clear()'
    refuses "empty has no trials" "$EVENLOAD" baseline add empty
    measured planted --inject compute=1.5
    refuses "was disturbed on purpose (--inject): --force takes it all the same" "$EVENLOAD" baseline add planted
    [[ $(find results/baseline -name '*.json' | wc -l) == 1 ]]
    run "$EVENLOAD" baseline add planted --force
    [[ $status -eq 0 && $(find results/baseline -name '*.json' | wc -l) == 2 ]] || show
}

@test "a store with a record that was cut off" {
    once run measured r
    "$EVENLOAD" baseline add r >out.txt
    local file
    file=$(echo results/baseline/*.json)
    truncate -s -30 "$file"
    refuses "$file is no JSON: line " "$EVENLOAD" baseline show
}

@test "folders that are none, and words that are no action" {
    refuses "unknown action 'ad': did you mean 'add'?" "$EVENLOAD" baseline ad r
    refuses "baseline accept: which run?" "$EVENLOAD" baseline accept
    refuses "unexpected argument 'b'" "$EVENLOAD" baseline add a b
    refuses "baseline show takes no folder" "$EVENLOAD" baseline show r
    refuses "nix: there is no run in it (no results.json, no program.json)" "$EVENLOAD" baseline add nix
    mkdir bad && echo '{' >bad/results.json
    refuses "bad/results.json is no JSON: line" "$EVENLOAD" baseline add bad
    once run measured r
    touch file
    refuses "file/store" "$EVENLOAD" baseline add r --store file/store
    run --separate-stderr "$EVENLOAD" baseline show
    [[ $status -eq 4 && -z $output && $stderr == "evenload: results/baseline holds no sessions: "* && ! -e results ]] || show
}

# Other ways of being unreadable are in tests/unit/test_runs.
@test "a gate by the stored baseline" {
    local first='d["trials"][0]' other
    once run measured r
    copy r now 28
    judge 4 "there is no such folder yet" now
    copy r day1 1 && "$EVENLOAD" baseline add day1 >out.txt
    rm -r gate-now-4
    judge 4 "1 session, and 8 are needed" now
    rm -r results
    keep_nine
    judge 0 "No regression" now
    [[ ${lines[-1]} == "Next: "*"baseline add now" ]] || show
    # A run that is in the store is held against the others: it would else be its own excuse.
    judge 0 "this run is in the store already" day3
    [[ $(json gate-day3-0/regress.json '[len(c["base"]) for c in d["cells"] if c["kind"] == "history"]') == "[8]" ]]
    copy r slow 28 1.3
    judge 1 "worse by 30." slow
    [[ ${lines[-1]} == "Next: "*"baseline accept slow    (if the new level is right)" ]] || show
    altered r more "${first}['comm']['bytes'] = 4096"
    judge 1 "comm_bytes: was 0 B, is 4096" more
    altered r nan "${first}['repeats'][1]['step_ms'][0] = 'NaN'"
    judge 2 "step_median_ms: the current figure is no number, or not above 0" nan
    altered r other 'd["environment"]["governor"] = "slow"'
    judge 4 "differs in governor" other
    altered r wider "${first}['config'].update(lr=9)"
    judge 4 "no session of this trial yet" wider
    # What is worse without noise is right once it is accepted.
    "$EVENLOAD" baseline accept more >out.txt
    altered more next 'd["environment"]["time_utc"] = "2026-01-29T12:00:00Z"'
    judge 0 "No regression" next
    sed -i 's/"unit": "ms"/"unit": "s"/g' results/baseline/*.json
    judge 2 "step_median_ms: the unit is ms, and was s" now
    sed -i 's/"unit": "s"/"unit": "ms"/g; /"step_median_ms"/,/}/ s/"value": [^,]*/"value": 0/' results/baseline/*.json
    rm -r gate-now-2
    judge 2 "step_median_ms: the baseline's figure is 0, and must be above 0" now
    sed -i '/"step_median_ms"/,/}/ s/"value": 0/"value": null/' results/baseline/*.json
    rm -r gate-now-2
    judge 2 "step_median_ms: the baseline's figure is no number" now
}

own_program() { # a program of one's own, whose launch n takes (100000 + 7919 n mod 601) us times $SCALE / 100
    cat >train.sh <<'END'
n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n
echo "step_us $(((100000 + n * 7919 % 601) * ${SCALE:-100} / 100)) us"; echo "peak: ${PEAK:-4096} B"; echo "rate $((500 + n % 3)) img/s"
END
}

recipe() { # recipe STATUS WORDS OPTION...: the manual's one command, with its own folder
    rm -rf gate
    run --separate-stderr "$EVENLOAD" regress --baseline results/baseline --from 'sh train.sh' --launches 3 --add --quiet --out gate "${@:3}"
    [[ $status -eq $1 && "$(tr -s ' \n' ' ' <<<"$output $stderr")" == *"$2"* ]] || { echo "expected $1 and '$2'" && show; }
}

@test "a program of one's own: one command from an empty store to a verdict" {
    own_program
    recipe 0 "Added to results/baseline. NOT JUDGED: 7 more sessions are needed first."
    [[ $stderr == *"note: no baseline that fits"*"there is no such folder yet"* && $output == *"no session of this trial yet"* ]] || show
    PEAK=8192 recipe 1 "peak: was 4096 B, is 8192" # what has no noise is judged from the second run on
    [[ $output != *Added* ]] || show
    for _ in 2 3 4 5 6 7; do recipe 0 "NOT JUDGED"; done
    recipe 0 "NOT JUDGED: the next run is the first that can be."
    recipe 0 "No regression in 3 cells. This run could reliably detect slowdowns of "
    [[ $output == *"Added to results/baseline."* && $(json gate/regress.json 'd["outcome"], d["added"]') == "('none', True)" ]] || show
    SCALE=110 recipe 1 "step_us: worse by 10."
    [[ $output == *"Regression in 1 of 3 cells."* && $output != *Added* && ${lines[-1]} == "Next: "*"baseline accept gate    (if"* ]] || show
    [[ $(find results/baseline -name '*.json' | wc -l) == 9 ]] || ls -R results
    # Another name is another program; without --add a store that is too small is exit status 4.
    run "$EVENLOAD" regress --baseline results/baseline --from 'sh train.sh' --launches 2 --name other --quiet
    [[ $status -eq 4 && $output == *"no session of this trial yet"* ]] || show
    recipe 2 "program, launch 1: ended with exit status 3" --prepare ': >ran' --from 'exit 3'
    [[ -e ran ]]
}

@test "a program of one's own: runs within a second with equal figures are sessions of their own, and the same folder is one" {
    local pids=() i
    for i in 1 2 3; do
        "$EVENLOAD" baseline add --store s --from 'echo "step 5 ms"' --quiet --launches 1 >"out$i" 2>&1 3>&- &
        pids+=($!)
    done
    for i in 0 1 2; do wait "${pids[i]}" || { cat "out$((i + 1))" && false; }; done
    [[ $(cat s/*.json | grep -c '"run":') -eq 3 ]] || { cat s/*.json && false; }
    "$EVENLOAD" regress --baseline s --from 'echo "step 5 ms"' --launches 1 --quiet --out kept >/dev/null 2>&1 || true
    "$EVENLOAD" baseline add kept --store s >/dev/null
    refuses "kept is a session in s already" "$EVENLOAD" baseline add kept --store s
}

@test "a program of one's own: a launch that was stopped is ended, and said to be stopped" {
    refuses "program, launch 1: did not end within 0.2 s (--timeout): its shell was stopped (SIGSTOP)" timeout 60 \
        "$EVENLOAD" baseline add --store s --from 'kill -STOP $$; echo step 5 ms' --launches 1 --timeout 0.2
    [[ ! -e s ]] || show
    run "$EVENLOAD" baseline --help all
    [[ $output == *"--timeout S "*"(default: 300)"* ]] || show
}

@test "a program of one's own: what can be added" {
    own_program
    run --separate-stderr "$EVENLOAD" baseline add --from 'sh train.sh' --launches 5 --name train --out monday --quiet
    [[ $status -eq 0 && -z $stderr && $output == *"train: step_us, us "*" 1 "*" 7  "* ]] || show
    [[ $(json monday/program.json 'len(d["trials"][0]["figures"]["step_us"]["launches"])') == 5 ]] || show
    SCALE=130 run "$EVENLOAD" baseline add --from 'sh train.sh' --launches 5 --name train --out tuesday --quiet
    [[ $status -eq 0 && $output == *"train: step_us, us "*" 2 "*" 6  "* ]] || show
    refuses "unknown metric 'pace'" "$EVENLOAD" regress --baseline results/baseline --current tuesday --metric pace
    # The head's launches of two programs side by side; a watched command is one launch, and none of a program.
    "$EVENLOAD" regress --ab 'sh train.sh' 'sh train.sh ' --blocks 9 --quiet --out ab --name train >out.txt
    run "$EVENLOAD" baseline add ab
    [[ $status -eq 0 && $output == *"train: step_us, us "*" 3 "*" 5  "* ]] || show
    "$EVENLOAD" watch --quiet --no-plot --out seen -- sh -c 'sleep 0.1' >out.txt
    refuses "seen/results.json is a watch of one launch" "$EVENLOAD" baseline add seen
    refuses "--launches is for --from" "$EVENLOAD" baseline add seen --launches 3
    refuses "'baseline add' without a run's folder" "$EVENLOAD" baseline add seen --from 'sh train.sh'
    mkdir two
    refuses "there is no run in it" "$EVENLOAD" baseline add two
}

@test "the manual's examples" {
    "$EVENLOAD" compare --modes single,dp --devices 2 "${QUICK_MODEL[@]}" --batch 64 --repeats 2 --control none --quiet --out r >/dev/null
    local days=() day
    for day in {1..12}; do days+=("results/run-$day" "$day" "1.$((day * 7 % 10))"); done
    copy r "${days[@]}" results/run-13 13 9 results/run-14 14 1
    for day in {1..10}; do "$EVENLOAD" baseline add "results/run-$day" >out.txt; done
    run --separate-stderr "$EVENLOAD" baseline show
    as_in_the_manual 5 < <(example evenload baseline show)
    altered results/run-13 results/run-13 'd["trials"][0]["warning_rules"] = ["others", "injected"]'
    run --separate-stderr "$EVENLOAD" regress --baseline results/baseline --current results/run-13 --out results/gate
    [[ $status -eq 1 ]] || show
    as_in_the_manual 3 < <(example evenload regress --baseline results/baseline --current results/run-13 | grep -E '^(cell|and|Regression) ')
    run --separate-stderr "$EVENLOAD" baseline add results/run-13
    [[ $status -eq 2 ]] || show
    as_in_the_manual 1 < <(example evenload baseline add results/run-13)
    altered results/run-14 results/run-14 'd["environment"]["affinity"] = [0]; [t.update(warning_rules=[]) for t in d["trials"]]'
    run --separate-stderr "$EVENLOAD" regress --baseline results/baseline --current results/run-14
    [[ $status -eq 4 && $stderr == *"; the nearest, "*", differs in affinity "*", then 0: --add fills it from this run on, and 'evenload regress --ab BASE HEAD' needs none"* ]] || show
    run --separate-stderr "$EVENLOAD" baseline accept results/run-12
    as_in_the_manual 2 < <(example evenload baseline accept results/run-12)
}
