# Names that would be commands: of records, folders, processes and metrics. Nothing of them is run, something is drawn or
# refused in a line, and none reaches standard output or standard error raw.
load common
bats_require_minimum_version 1.5.0 2>/dev/null || true

# What gnuplot, a shell, a terminal, Markdown, GitHub's log or a spreadsheet could take for more than a name. A command that
# ran would leave a file `canary`.
# shellcheck disable=SC1003 # a backslash on its own is a name too
NAMES=(
    "x','<touch\${IFS}canary;:\"" "x','<id>canary;:\"" '|touch canary' '<touch canary' '< touch canary' '`touch canary`' '$(touch canary)'
    '$HOME' '"' "'" "';system('touch canary');'" '"; system("touch canary"); "' '@present' '@stacked' '%s%s%n%d' '{/Bold x}' '\' '#' ';'
    '!touch canary' $'a\nb' $'\n::error::canary' $'\e[31mred\e[0m' $'\e]0;title\a' $'\xc2\x9b31m' $'tab\there' $'return\r' '<script>alert(1)</script>'
    '=1+1' '-rf' '--help' '*' "$(printf 'x%.0s' {1..240})" 'é漢字' 'a|b|c' '...' $'\x7f'
    '::error title=a::canary' $' \t::warning::canary' $'\u3000::group::canary' '##[error]canary' '##vso[task.setvariable variable=a]b' 'a ##[warning]b'
    $'gpj.\u202eexe' $'a\u2066b\u200bc' $'\ufeff::error::x'
)

# No control character but the newline, none that is not seen or turns text, no line that a CI log takes for a command, no file of a command.
harmless() { # harmless: what `run --separate-stderr` left
    if printf '%s\n%s\n' "$output" "$stderr" | LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf|^(\s|[\x80-\xff])*::[a-z]|##[a-z]*\[' | cat -v; then
        [[ ${PIPESTATUS[1]} -ne 0 ]] || { echo "the lines above are raw" && return 1; }
    fi
    [[ -z $(find . -name 'canary*') ]] || { echo "a command ran: $(find . -name 'canary*')" && return 1; }
}

# A record in which each name is a mode, a model, a device, a reason and a warning.
record() { # record FOLDER NAME...
    local folder=$1
    shift
    mkdir -p -- "$folder"
    kept_record >kept.json
    python3 - kept.json "$folder/results.json" "$@" <<'END'
import copy, json, sys
run = json.load(open(sys.argv[1]))
trials = [t for t in run["trials"] if t["status"] == "ok"]
for k, name in enumerate(sys.argv[3:]):
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    trial = copy.deepcopy(trials[k % len(trials)])
    trial.update(mode=name, model=name, optimizer=name, dtype=name, reason=name, verdict=name, warnings=[name], warning_rules=["reported"])
    for device in trial["per_device"]: device.update(device=name, model=name, host=name)
    run["trials"].append(trial)
run["trials"].append(dict(copy.deepcopy(trials[0]), status=sys.argv[3], mode=sys.argv[3]))
json.dump(run, open(sys.argv[2], "w"))
END
}

# A gnuplot with one terminal, where what is tested is the same for all.
svg_alone() {
    local gnuplot
    gnuplot=$(command -v gnuplot) || return 0
    mkdir -p tools
    printf '#!/bin/sh\ncase "$*" in *"set terminal pngcairo" | *"set terminal pdfcairo") exit 1 ;; esac\nexec %s "$@"\n' "$gnuplot" >tools/gnuplot
    chmod +x tools/gnuplot
    PATH=$PWD/tools:$PATH
}

@test "no script of gnuplot's makes commands of text" {
    ! grep -nE '^[^#]*(eval |@[a-z]|system|`)' "$BATS_TEST_DIRNAME"/../../plots/*.gnuplot || false
}

@test "names in a record: plot, imbalance, scale and regress" {
    record r "${NAMES[@]}"
    if command -v gnuplot >/dev/null; then
        run --separate-stderr "$EVENLOAD" plot r --term
        [[ $status -eq 0 && -s r/plots/throughput.svg && -s r/plots/memory.png && -s r/plots/step.pdf && ! -e r/plots/gnuplot.log ]] || show
        harmless || show
    fi
    ! LC_ALL=C grep -nP '^[^#].*[^A-Za-z0-9_.:/ ()*,;%\t\n?+-]' r/plots/*.dat || false # not a character that means something
    svg_alone
    for command in imbalance scale report; do
        run --separate-stderr "$EVENLOAD" "$command" r
        [[ $status -eq 0 || ($status -eq 2 && ${#stderr_lines[@]} -eq 1) ]] || show
        harmless || show
    done
    for action in add accept; do
        run --separate-stderr "$EVENLOAD" baseline $action r --store "s$action" --force
        harmless || show
    done
    run --separate-stderr "$EVENLOAD" regress --baseline saccept --current r --markdown out.md --junit out.xml
    harmless || show
    ! LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]' out.md out.xml 2>/dev/null || false
    printf '{"schema": 2, "trials": [{"mode": "\377\376"}]}' >r/results.json # not UTF-8
    refuses "is no JSON" "$EVENLOAD" plot r
    harmless || show
}

@test "names of folders that are written to: progress, and what is said in the end" {
    run --separate-stderr "$EVENLOAD" scale --modes ddp --devices 1 "${QUICK_MODEL[@]}" --repeats 1 --out $'e\e[31m\n::error::y'
    [[ $status -eq 0 && $stderr == *"results go to "* ]] || show
    harmless || show
}

@test "names that a spreadsheet takes for formulas" {
    local name
    for name in '=HYPERLINK("x")' '+1' '-1+cmd' '@SUM(1)'; do
        ln -s -- "$(command -v sleep)" "$name"
        PATH=$PWD:$PATH run --separate-stderr "$EVENLOAD" watch --out w --quiet -- "$name" 0.1
        [[ $status -eq 0 ]] || show
        ! LC_ALL=C grep -nE '(^|,)"?([=+@]|-[^0-9,])' w/*.csv || { cat w/trials.csv && show; }
        grep -qF -- "'${name//\"/\"\"}" w/trials.csv || { cat w/trials.csv && show; }
        rm -r w
    done
}

@test "names of folders: drawn in, whatever they are called" {
    local name step=13 at
    [[ ${EVENLOAD_LONG:-} != 1 ]] || step=1
    [[ $step -eq 1 ]] || echo "# long: all ${#NAMES[@]} names, a minute" >&3
    record record dp
    svg_alone
    for ((at = 0; at < ${#NAMES[@]}; at += step)); do
        name=${NAMES[at]//\//:}
        mkdir -p "./$name/in" && cp record/results.json "./$name/in"
        run --separate-stderr "$EVENLOAD" imbalance "./$name/in"
        harmless || show
        [[ $status -eq 0 ]] || show
        ! command -v gnuplot >/dev/null || [[ -s ./$name/in/plots/imbalance.svg && ! -e ./$name/in/plots/gnuplot.log ]] || show
        rm -rf "./$name/in"
    done
    # A path that gnuplot would take for a command, from its first character on.
    name='|touch canary'
    mkdir -p "$name" && cp record/results.json "$name"
    run --separate-stderr "$EVENLOAD" plot "$name"
    harmless || show
    ! command -v gnuplot >/dev/null || [[ $status -eq 0 && -s $name/plots/throughput.svg ]] || show
}

@test "names of traces: read and refused" {
    local name
    mkdir t
    for name in "${NAMES[@]}"; do
        name=${name//\//:}
        printf '[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1}]' >"t/$name.json"
        printf '[' >"./$name.json"
        run --separate-stderr "$EVENLOAD" trace-stats "./$name.json"
        [[ $status -eq 2 && ${#stderr_lines[@]} -eq 1 ]] || show
        harmless || show
    done
    for name in "" --json; do
        run --separate-stderr "$EVENLOAD" trace-stats t $name
        [[ $status -eq 0 ]] || show
        harmless || show
    done
    [[ $(json <(printf '%s' "$output") '[t["file"] for t in d["devices"]].count("##[error]canary.json")') -eq 1 ]] || show # in JSON it is what it is
}

@test "names of processes: watched, printed and drawn" {
    cat >many.sh <<'END'
for name; do
    bash -c 'printf %s "$0" >/proc/$$/comm; exec -a "$0" sleep 0.5' "$name" &
done
wait
END
    run --separate-stderr "$EVENLOAD" watch --out w -- bash many.sh "${NAMES[@]}"
    [[ $status -eq 0 && -s w/results.json ]] || show
    harmless || show
    run --separate-stderr "$EVENLOAD" plot w --term
    ! command -v gnuplot >/dev/null || [[ $status -eq 0 && -s w/plots/watch.svg ]] || show
    harmless || show
    ! LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]' w/results.csv || false
}

# What is printed as the next command, pasted into a shell, as one argument a line.
pasted() { # pasted LINE
    [[ $1 == "Next: $EVENLOAD "* ]] || return 1
    bash -c "printf '%s\n' ${1#"Next: $EVENLOAD "}"
}

@test "names of folders in the next command: one word each, that runs nothing" {
    local name words
    for name in "${NAMES[@]:5:11}" $'a\nb' $'\e[31mred\e[0m' 'a|b|c'; do
        name="./${name//\//:} it's"
        run --separate-stderr "$EVENLOAD" watch --no-plot --out "$name" -- true
        [[ $status -eq 0 && -e $name/results.json ]] || show
        harmless || show
        words=$(pasted "${stderr_lines[-1]}") || show
        name=${name//[[:cntrl:]]/\?} # as it is shown
        [[ $words == $'plot\n'"$name"$'\n--term' ]] || { echo "$words" && show; }
    done
    name="\$(touch canary)'s"
    "$EVENLOAD" run "${QUICK[@]}" --quiet --out "$name" >/dev/null
    run --separate-stderr "$EVENLOAD" baseline add "$name" --store "store $name"
    [[ $status -eq 0 && $(pasted "${lines[-1]%    (*}") == $'regress\n--baseline\n'"store $name"$'\n--current\nDIR\n--add' ]] || show
}

@test "names of metrics: regress" {
    local name
    for name in "${NAMES[@]}"; do printf '%s: %s s\n' "$name" 1.0; done >base.txt
    printf '#!/bin/sh\ncat base.txt\n' >print.sh && chmod +x print.sh
    run --separate-stderr "$EVENLOAD" regress --ab ./print.sh ./print.sh --blocks 2
    harmless || show
}

@test "a limit on files' sizes is said in one line" {
    refuses "File too large" bash -c 'ulimit -f 1; "$0" help compare >out' "$EVENLOAD"
}
