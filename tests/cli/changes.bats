# `baseline show`: since when a figure has its level. The method is tests/unit/test_changes's; here stores are made, a session a day.
# shellcheck disable=SC2030,SC2031 # each test is a subshell, and functions use what `run` set in it
PICTURES=no
load common

made() { python3 "$BATS_TEST_DIRNAME/made_store.py" "$@"; } # made [STORE STATEMENT]...

shown() { # shown STORE OPTION...: what is said below the row of the newest machine, on one line
    run --separate-stderr "$EVENLOAD" baseline show --store "$@"
    [[ $status -eq 0 && -z $stderr ]] || show
    said=$(sed -n '/^  /p' <<<"$output" | tr -s ' \n' ' ')
    for line in "${lines[@]}"; do [[ ${#line} -le 100 || $line == Next:* ]] || { echo "$line" && show; }; done
}

@test "a change has its date, its commit, its size and what else changed, over two machines of the store" {
    # Two hosts that alternate are two histories.
    made s 'value=[100*exp(e)*(1.123 if i >= 42 else 1) for i, e in enumerate(noise(60, .01))]; compiler=lambda i: "gcc 12.2.0" if i < 42 else "gcc 13.1.0"' \
        hosts 'value=[100*exp(e)*(1.1 if i % 2 else 1) for i, e in enumerate(noise(60, .01))]; compiler=lambda i: "gcc %d" % (i % 2)'
    shown hosts
    [[ -z $said ]] || show
    shown s
    [[ $said =~ ^" since 2026-10-13 23:35 (commit ab123452a; before: ab1234529): +12."[0-9]" %, worse (95 %: 11."[0-9]" to 12."[0-9]"), change between sessions 42 and 43 of 60; compiler gcc 12.2.0, then gcc 13.1.0 "$ ]] || show
    "$EVENLOAD" baseline show --store s --json | python3 -c '
import json, sys
old, new = (m["workloads"][0] for m in json.load(sys.stdin)["machines"])
assert old["history"] is None and old["figures"]["step"]["history"] is None
session, history = new["history"][42], new["figures"]["step"]["history"]
assert len(new["history"]) == len(history["values"]) == 60 and new["history"][41]["fingerprint"] != session["fingerprint"]
assert (session["time_utc"], session["commit"], session["accepted"]) == ("2026-10-13T23:35:00Z", "ab123452a", False), session
assert history["partition"] == [43] and history["creep"] is None and .5 < history["sd_pct"] < 1.5 and history["penalty"] > 15
assert [(p["first"], p["last"], p["sessions"], p["creeps"]) for p in history["pieces"]] == [(1, 42, 42, False), (43, 60, 18, False)]
(change,) = history["changes"]
low, high = change.pop("ci95_pct")
assert low < change.pop("change_pct") < high
assert change == dict(session=43, between=[42, 43], time_utc="2026-10-13T23:35:00Z", commit="ab123452a", commits=["ab1234529", "ab123452a"],
                      worse=True, accepted=False, environment=dict(compiler=["gcc 12.2.0", "gcc 13.1.0"])), change
'
}

@test "a change for the better, one that was accepted, one of a rate, and of the same commit" {
    made s 'value=[100*exp(e)*(.9 if i >= 20 else 1) for i, e in enumerate(noise(40, .01))]; accepted=lambda i: i == 20; commit=lambda i: "c0ffee"' \
        rate 'value=[100*exp(e)*(.9 if i >= 20 else 1) for i, e in enumerate(noise(40, .01))]; better="higher"; unit="img/s"'
    shown s
    [[ $said == *"since 2026-09-21 23:35 (commit c0ffee, as before): -"*" %, better (95 %"*"of 40, accepted "* ]] || show
    shown rate
    [[ $said == *": -"*" %, worse (95 %"* ]] || show
}

@test "a creep is one, and no staircase" {
    made s 'value=[100*exp(e + .004*max(0, i - 40)) for i, e in enumerate(noise(100, .01))]'
    shown s
    [[ $said =~ ^" creep: +0."[34][0-9]*" % a session over the last "(5|6)[0-9]" sessions, from 2026-10-"[01][0-9]" 23:35: +2"[0-9.]+" % in all, worse "$ ]] || show
    "$EVENLOAD" baseline show --store s --json >s.json
    [[ $(json s.json "(lambda h: (h['changes'], len(h['partition']) > 1, h['creep']['last'], h['creep']['worse'], h['creep']['p'] < .001))(d['machines'][0]['workloads'][0]['figures']['step']['history'])") \
        == "([], True, 100, True, True)" ]]
}

@test "nothing is said of an even history, of two odd sessions, or of few" {
    made even 'value=[100*exp(e) for e in noise(150, .02)]' \
        odd 'value=[100*exp(e)*(1.5 if i in (30, 31) else 1) for i, e in enumerate(noise(60, .01))]' \
        few 'value=[100, 120, 120, 120]' \
        gaps 'value=[None if i % 3 else 100*exp(e) for i, e in enumerate(noise(61, .01))]'
    local store
    for store in even odd few gaps; do
        shown "$store"
        [[ $said != *since* && $said != *creep* ]] || show
    done
}

@test "of many changes the last five are said" {
    made s 'value=[100*exp(e)*(1.1 if i // 12 % 2 else 1) for i, e in enumerate(noise(150, .01))]'
    shown s
    [[ $said == *" 7 earlier changes (--json has them) since "* && $(grep -o since <<<"$said" | wc -l) == 5 ]] || show
}

@test "a picture, beside the store or elsewhere; and what is refused" {
    made s 'value=[100*exp(e)*(1.1 if i >= 20 else 1) for i, e in enumerate(noise(40, .01))]'
    with_gnuplot
    if command -v gnuplot >/dev/null; then
        run --separate-stderr "$EVENLOAD" baseline show --store s --plot
        [[ $status -eq 0 && -s s/plots/baseline.svg && -s s/plots/baseline.png && -s s/plots/baseline.pdf && $output == *s/plots/baseline.svg* ]] || show
    fi
    without_gnuplot
    run --separate-stderr "$EVENLOAD" baseline show --store s --plot --out elsewhere --json
    [[ -s elsewhere/plots/baseline.dat && $output == "{"* ]] || show
    grep -q $'\t+10.* %\t1$' elsewhere/plots/baseline.dat
    refuses "--plot is for 'baseline show'" "$EVENLOAD" baseline add s --plot
    refuses "--out is for --from 'COMMAND', and for --plot" "$EVENLOAD" baseline show --store s --out elsewhere
    touch file
    refuses "file/x" "$EVENLOAD" baseline show --store s --plot --out file/x
    sed -i 's/"figures"/"figure"/' s/*-0000000000000001.json
    refuses "0000000000000001.json is no record of a baseline: move the file away" "$EVENLOAD" baseline show --store s
}

@test "the commit of a program is that of its folder, or what a continuous integration says" {
    command -v git >/dev/null || skip "git is not installed"
    unset GITHUB_SHA CI_COMMIT_SHA
    git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m one
    "$EVENLOAD" baseline add --from 'echo step 5 ms' --launches 2 --quiet >out.txt
    [[ $(json "$(echo results/baseline/*.json)" 'd["trials"][0]["commit"]') == "$(git rev-parse --short=12 HEAD)" ]]
    rm -rf .git results
    GIT_CEILING_DIRECTORIES=$PWD/.. CI_COMMIT_SHA=abc "$EVENLOAD" baseline add --from 'echo step 5 ms' --launches 2 --quiet >out.txt
    [[ $(json "$(echo results/baseline/*.json)" 'd["trials"][0]["commit"]') == abc ]]
}

# EVENLOAD_RUPTURES: a Python that has that package; else python3, if it does.
@test "the change points are those of ruptures" {
    long "200 made series beside the package ruptures, 5 s"
    local python=${EVENLOAD_RUPTURES:-python3}
    "$python" -c 'import ruptures' 2>/dev/null || command "$python" -c 'import ruptures' 2>/dev/null || skip "$python has no package ruptures (EVENLOAD_RUPTURES: one that has)"
    run command "$python" "$BATS_TEST_DIRNAME/changes_peer.py" "$EVENLOAD" "$PWD"
    echo "# ${lines[-1]}" >&3
    [[ $status -eq 0 ]] || show
}
