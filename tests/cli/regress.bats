# `regress`: programs with figures that are known, every exit status with its reason, the forms that machines read, and
# the manual's examples; the program against itself, slowed down, is in window.bats. How often the rule is wrong is unit/test_regress_rates'.
# shellcheck disable=SC2030,SC2031 # each test is a subshell, and functions use what `run` set in it
load common

DOCS=$BATS_TEST_DIRNAME/../../docs

# program NAME SCALE: launch n prints SCALE * (1000 + 7 n mod 11) us, and a peak of 4096 B; a shell command.
program() {
    printf 'n=$(cat %s 2>/dev/null || echo 0); echo $((n + 1)) >%s; echo "step_us $(( (1000 + n * 7 %% 11) * %s )) us"; echo peak: 4096 B' \
        "$1" "$1" "$2"
}

# But for the line with the program's path, and those in which a file lies.
narrow() {
    for line in "${lines[@]}"; do [[ $line == "Next: "* || $line == */regress.json || ${#line} -le 100 ]] || { echo "$line" && show; }; done
}

@test "regress: no regression is exit status 0" {
    run --separate-stderr "$EVENLOAD" regress --ab "$(program a 100)" "$(program b 100)" --out r
    [[ $status -eq 0 && $output == *"No regression in 2 cells, after 14 blocks. This run could reliably detect slowdowns of "* ]] || show
    [[ $output == *"r/regress.json"* && ${lines[-1]} == "Next: "* && $stderr == *"2 cells; a block takes"* ]] || show
    narrow
    [[ $(json r/regress.json 'd["outcome"], d["exit_status"], d["blocks"], len(d["cells"][0]["base"])') == "('none', 0, 14, 14)" ]]
    [[ $(ls r) == $'program.json\nregress.json' ]]
}

# As their 1.15, 1.7 and 5.3 write them, shortened; lines as of Megatron-LM, Hugging Face's Trainer and Lightning.
@test "figures of hyperfine, google-benchmark, pytest-benchmark and trainers are read with their units" {
    echo '{"results": [{"command": "a", "times": [0.5, 0.3, 0.4]}, {"command": "b, c", "times": [2]}]}' >hyperfine
    echo '{"results": [{"command": "a", "mean": 1, "times": [0.5]}]}' >one
    echo '{"context": {}, "benchmarks": [{"name": "BM/8", "run_type": "iteration", "real_time": 6.5, "cpu_time": 1, "time_unit": "us"},
        {"name": "BM/8_mean", "run_type": "aggregate", "real_time": 7, "time_unit": "us"}]}' >google
    echo '{"machine_info": {}, "benchmarks": [{"name": "test_add", "stats": {"median": 2, "data": [1.5, 2.5, 2]}}, {"name": "test_mul", "stats": {"median": 3}}]}' >pytest
    cat >trainers <<'END'
 [2026-01-01 00:00:00] iteration      100/     500 | consumed samples:        12800 | elapsed time per iteration (ms): 812.0 | throughput per GPU (TFLOP/s/GPU): 123.4 | lm loss: 6.9E+00 |
 [2026-01-01 00:00:09] iteration      200/     500 | consumed samples:        25600 | elapsed time per iteration (ms): 814.0 | throughput per GPU (TFLOP/s/GPU): 123.4 | lm loss: 6.9E+00 |
{'loss': 1.23, 'learning_rate': 5e-05, 'epoch': 0.1}
{'train_runtime': 12.5, 'train_samples_per_second': '45.5', 'train_steps_per_second': 5.5, 'epoch': 1.0}
  train_samples_per_second =     45.5
Epoch 0: 100%|####| 10/10 [00:05<00:00,  1.95it/s, v_num=0]
END
    for file in hyperfine one google pytest trainers; do
        "$EVENLOAD" regress --ab "cat $file" "cat $file" --blocks 6 --quiet --out "o-$file" >/dev/null
        json "o-$file/regress.json" '" ".join(f"""{c["name"]}={c["base"][0]}{c["unit"]}{c["better"][0]}""" for c in d["cells"])'
    done >cells
    [[ $(cat cells) == $'time a=0.4sl time b, c=2.0sl\ntime=0.5sl\nBM/8=6.5usl\ntest_add=2.0sl test_mul=3.0sl\nelapsed_time_per_iteration=813.0msl throughput_per_GPU=123.4TFLOPSh train_runtime=12.5sl train_samples_per_second=45.5samples/sh train_steps_per_second=5.5steps/sh progress=1.95it/sh' ]] || { cat cells && false; }
    echo '{"benchmarks": [{"name": "BM", "error_occurred": true, "error_message": "no file"}]}' >failed
    refuses "printed a benchmark that failed: BM: no file" "$EVENLOAD" regress --ab "cat failed" "cat failed" --blocks 6 --quiet --out f
}

@test "GitHub's action may be used twice in a job" {
    sed -n '/- name: regress/,$ s/^        //p' "$DOCS/../action.yml" | sed -n '/^out=/,$p' >step.sh
    mkdir -p temp/evenload/bin && ln -s "$EVENLOAD" temp/evenload/bin/evenload
    for record in regress regress-2; do
        run env RUNNER_TEMP=temp GITHUB_STEP_SUMMARY=summary BASE="$(program a 100)" HEAD="$(program b 100)" OPTIONS= bash -e step.sh
        [[ $status -eq 0 && -s $record/regress.json && -s $record.xml && -s summary ]] || show
    done
}

@test "regress: a regression is exit status 1, in every form" {
    run --separate-stderr "$EVENLOAD" regress --ab "$(program a 100)" "$(program b 110)" --out r --junit j.xml --markdown m.md \
        --github --quiet
    [[ $status -eq 1 && $output == *"step_us: worse by 10.0 %"* && $output == *"Regression in 1 of 2 cells, after 14 blocks."* ]] || show
    [[ $stderr == "::error title=evenload regress%3A step_us::worse by 10.0 %25"* ]] || show
    narrow
    python3 - <<'END'
import json, xml.etree.ElementTree as tree
suite = tree.parse("j.xml").getroot()
assert suite.attrib["tests"] == "2" and suite.attrib["failures"] == "1", suite.attrib
failed = [c.attrib["name"] for c in suite.iter("testcase") if c.find("failure") is not None]
assert failed == ["step_us"], failed
assert suite.find(".//failure").attrib["type"] == "perf-regression"
out = suite.find("testcase/system-out").text
assert out.startswith("unit us, base 100,") and ", slowdown +10.0 %, 95 % +" in out and out.endswith(" %"), out
m = open("m.md").read()
assert "| step\\_us |" in m and "**REGRESSION**: worse by 10.0 %" in m, m
d = json.load(open("r/regress.json"))
cell = d["cells"][0]
assert cell["verdict"] == "regression" and cell["kind"] == "paired" and abs(cell["effect"] - 1.1) < 1e-3, cell
assert cell["p_adjusted"] == 2**-14 and cell["ci95"][0] > 1.09 and len(cell["head"]) == 14, cell
assert d["cells"][1]["kind"] == "exact" and d["cells"][1]["verdict"] == "same"
END
    ! ls ./*.tmp.* 2>/dev/null || false
}

@test "regress: GitHub's summary is appended to" {
    echo before >summary.md
    GITHUB_STEP_SUMMARY=summary.md run "$EVENLOAD" regress --ab 'echo step 5 ms' 'echo step 5 ms' --quiet --markdown summary.md
    [[ $status -eq 0 && $(head -1 summary.md) == before ]] || show
    grep -q '| step | 5.00 | 5.00 ms |' summary.md
}

@test "regress --json: standard output is the record" {
    run --separate-stderr "$EVENLOAD" regress --ab "$(program a 100)" "$(program b 50)" --json --quiet --out r
    [[ $status -eq 0 && -z $stderr ]] || show
    printf '%s\n' "$output" | cmp - r/regress.json
    [[ $(json r/regress.json 'd["cells"][0]["verdict"]') == improvement ]]
}

@test "regress: what cannot be told is exit status 3, or what was asked for" {
    local ab=(--ab "$(program a 100)" "$(program b 150)" --max-samples 7 --quiet)
    run --separate-stderr "$EVENLOAD" regress "${ab[@]}"
    [[ $status -eq 3 && $output == *"8 are needed, 7 were run"* && $output == *"Next: "*"--max-samples 8"* ]] || show
    run "$EVENLOAD" regress "${ab[@]}" --inconclusive pass --out passed
    [[ $status -eq 0 && $(json passed/regress.json 'd["outcome"], d["exit_status"]') == "('inconclusive', 0)" ]] || show
    run "$EVENLOAD" regress "${ab[@]}" --inconclusive fail
    [[ $status -eq 1 ]] || show
}

@test "regress: a budget ends it early, with whole blocks, and is said after the first where it ends before the first analysis" {
    run --separate-stderr "$EVENLOAD" regress --ab 'sleep 0.2; echo t 5 ms' 'echo t 5 ms' --budget 1s --out r
    [[ $status -eq 3 && $stderr == *"note: --budget of 1 s ends after about "?" blocks, before the first analysis: this run will be inconclusive: 8 blocks, about "* ]] || show
    [[ $(json r/regress.json '1 <= d["blocks"] <= 5 and d["last_analysis"] and len(d["cells"][0]["base"]) == d["blocks"]') == True ]] || show
}

@test "regress: advice can help, and an inconclusive run that passes says so" {
    # Sequences of their own, not process numbers: the same verdict in every run. Both differ from themselves by a quarter: no --min-effect that anybody would take decides that, nor 200 blocks.
    local noisy='n=$(cat N 2>/dev/null || echo 7); n=$((n * 7919 % 104729)); echo $n >N; echo t $((100 + n % 180)) ms'
    run --separate-stderr "$EVENLOAD" regress --ab "${noisy//N/a}" "${noisy//N/b}" --quiet --blocks 14 --inconclusive pass --markdown m.md
    [[ $status -eq 0 && $output == *"too noisy"* && $output == *"INCONCLUSIVE, and exit status 0 only because of --inconclusive pass."* ]] || show
    [[ ${lines[-1]} == "Next: "*"regress ... "@(--blocks*|with longer launches*) && ${lines[-1]} != *--min-effect* ]] || show
    grep -q '^\*\*Inconclusive: 1 of 1 cell' m.md
}

@test "regress: --prepare runs before each launch, and every launch can be exported" {
    run --separate-stderr "$EVENLOAD" regress --ab 'echo t 5 ms' 'echo t 5 ms' --blocks 3 --quiet --prepare 'echo x >>prepared; echo t 99 ms'
    [[ $status -eq 3 && $(wc -l <prepared) == 6 && $output == *" 5.00      5.00 "* ]] || show
    refuses ", block 1: ended with exit status 4; its last lines: no room" \
        "$EVENLOAD" regress --ab 'echo t 5 ms' 'echo t 5 ms' --quiet --prepare 'echo no room >&2; exit 4'
    [[ $stderr == "evenload: --prepare for the "* ]] || show
    refuses "--prepare is for programs that are launched" "$EVENLOAD" regress --baseline a --current b --prepare true
    refuses "--add is for a store to add to" "$EVENLOAD" regress --ab 'echo t 1' 'echo t 1' --add
}

# unreadable WORDS HEAD OPTION...: exit status 2, and a line that says what and where.
unreadable() {
    local words=$1 head=$2
    shift 2
    run --separate-stderr "$EVENLOAD" regress --ab 'echo step 5 ms; echo peak 64 B' "$head" --quiet --blocks 9 "$@"
    [[ $status -eq 2 && "$output$stderr" == *"$words"* ]] || show
}

@test "regress: what is unreadable is exit status 2, at the first block" { # each way of it: tests/unit/test_regress_ab
    unreadable "step: in the head it is 0" 'echo step 0 ms; echo peak 64 B'
    [[ $output == *"after 1 block."* ]] || show
    unreadable "head, block 1: ended with exit status 7; its last lines: no data" 'echo no data >&2; exit 7'
    unreadable "head, block 1: did not end within 0.2 s" 'sleep 30' --timeout 0.2
    unreadable "--exact: neither program prints 'q'" 'echo step 5 ms; echo peak 64 B' --exact q
    unreadable "declared deterministic, but varies" 'echo step $$ ms; echo peak 64 B' --exact step
}

# A program prints much: a line without a unit neither ends a gate nor is lost.
@test "regress: what no unit judges is named, and the rest is judged" {
    local prints='echo loss 0.5; echo epoch 3; echo step 5 ms' more
    run --separate-stderr "$EVENLOAD" regress --ab "$prints" "$prints" --blocks 9 --quiet --out r --markdown r.md
    [[ $status -eq 0 && $output == *"Not judged: loss, epoch, because no unit says which way is better (--higher NAME and --lower NAME"* ]] || show
    [[ $(json r/regress.json 'd["not_judged"], [c["name"] for c in d["cells"]]') == "(['loss', 'epoch'], ['step'])" ]] || show
    grep -q "^Not judged, because no unit says which way is better: loss, epoch$" r.md || { cat r.md && show; }
    run --separate-stderr "$EVENLOAD" regress --ab "$prints" 'echo loss 0.6; echo epoch 3; echo step 5 ms' --lower loss --blocks 9 --quiet
    [[ $status -eq 1 && $output == *"loss "*REGRESSION*"Not judged: epoch, "* ]] || show
    refuses "nothing can be judged: of 'loss' no unit says which way is better: give --higher or --lower loss" \
        "$EVENLOAD" regress --ab 'echo loss 1' 'echo loss 1' --quiet
    run --separate-stderr "$EVENLOAD" baseline add --from "$prints" --launches 1 --store s --quiet
    [[ $status -eq 0 && $stderr == "Not judged: loss, epoch, because no unit "* ]] || show
    run --separate-stderr "$EVENLOAD" regress --baseline t --from "$prints" --launches 1 --add --quiet --out f
    [[ $status -eq 0 && $output == *"Not judged: loss, epoch, because no unit "* && $(json f/regress.json 'd["not_judged"]') == "['loss', 'epoch']" ]] || show
}

# With two programs that print a line in place of the workflow's, and every other option as it stands there.
@test "regress: wall time, processor time and memory of any program, whatever it prints" {
    run --separate-stderr "$EVENLOAD" regress --ab 'echo begun' 'sleep 0.1; "$EVENLOAD" version' --metric wall_time,cpu_time,peak_resident --blocks 10 --json --out r
    [[ $status -eq 1 && $(json r/regress.json '[(c["name"], c["unit"]) for c in d["cells"]]') == "[('wall_time', 's'), ('cpu_time', 's'), ('peak_resident', 'MiB')]" ]] || show
    [[ $(json r/regress.json 'd["cells"][0]["verdict"], d["cells"][2]["verdict"]') == "('regression', 'regression')" ]] || { cat r/regress.json && show; }
    refuses "printed no metric: lines 'metric value unit' are read, the JSON of 'evenload run', 'compare' and 'comm', nccl-tests' output, and more (docs/regress.md); or give --metric wall_time, cpu_time or peak_resident" \
        "$EVENLOAD" regress --ab true true
}

@test "the workflows upload what their command writes" {
    local workflow options path paths
    for workflow in github gitlab; do
        rm -rf "$workflow" && mkdir "$workflow" && cd "$workflow"
        options=$(sed '/^#/d' "$BATS_TEST_DIRNAME/../../scripts/examples/regress-$workflow.yml" | tr '\\\n' '  ' |
            grep -oE -- '--(out|junit|markdown) +"?[$]?[A-Za-z][^ "]*"?' | tr '\n' ' ')
        [[ $options == *--out*--junit*--markdown* ]] || { echo "$options" && false; }
        GITHUB_STEP_SUMMARY=summary.md bash -c "'$EVENLOAD' regress --ab 'echo t 1 ms' 'echo t 1 ms' --blocks 9 --quiet $options" >/dev/null
        paths=$(python3 - "$BATS_TEST_DIRNAME/../../scripts/examples/regress-$workflow.yml" <<'.'
import re, sys
text = "\n".join(line for line in open(sys.argv[1]).read().split("\n") if not line.startswith("#"))
upload = text[re.search(r"upload-artifact|artifacts:", text).start():]
print(" ".join(re.findall(r"^ +(?:- |junit: )?([\w/]+\.(?:json|xml|csv|md|txt))$", upload, re.M)))
.
)
        [[ $paths == *regress/regress.json*regress.xml* ]] || { echo "$paths" && false; }
        for path in $paths; do [[ -s $path ]] || { echo "$workflow: $path is not written" && false; }; done
        cd ..
    done
}

@test "regress: bad use" {
    refuses "nothing to compare: give --ab" "$EVENLOAD" regress
    refuses "--ab takes two commands" "$EVENLOAD" regress --ab 'echo t 1'
    refuses "give one" "$EVENLOAD" regress --ab 'echo t 1' 'echo t 1' --baseline a
    refuses "needs --baseline DIR" "$EVENLOAD" regress --current a
    refuses "needs --current DIR" "$EVENLOAD" regress --baseline a
    refuses "unexpected argument 'three'" "$EVENLOAD" regress --ab one two three
    refuses "--budget: 'soon' is not seconds" "$EVENLOAD" regress --ab one two --budget soon
    refuses "--max-samples: 500 is out of range" "$EVENLOAD" regress --ab one two --max-samples 500
    refuses "--min-effect: '2x' is not per cent" "$EVENLOAD" regress --ab one two --min-effect 2x
    refuses "--junit: no/such/folder.xml cannot be written" "$EVENLOAD" regress --ab 'echo t 1' 'echo t 1' --junit no/such/folder.xml
    local same=(--ab 'echo t 1' 'echo t 1')
    mkdir old && : >old/regress.json
    refuses "old holds a run already: give another --out" "$EVENLOAD" regress "${same[@]}" --out old
    refuses "--blocks 3 means one analysis" "$EVENLOAD" regress "${same[@]}" --blocks 3 --max-samples 40 # its default too
    mkdir one && echo {} >one/results.json
    refuses "--baseline one is one run" "$EVENLOAD" regress --baseline one --current two
    refuses "--seed is for two programs launched interleaved" "$EVENLOAD" regress --baseline a --current b --seed 1
    refuses "--exact is for programs that are launched" "$EVENLOAD" regress --baseline a --current b --exact t
    refuses "--budget is for two programs launched interleaved" "$EVENLOAD" regress --baseline a --current b --budget 9
    refuses "names no metric" "$EVENLOAD" regress "${same[@]}" --metric ,
    refuses "unknown option '--bencher'" "$EVENLOAD" regress "${same[@]}" --bencher b.json
    mkdir folder
    refuses "--junit: folder is a folder" "$EVENLOAD" regress --ab 'echo t 1' 'echo t 1' --junit folder
    [[ ! -e results ]] || show
}

# interrupted SIGNAL: one that comes within the second block.
interrupted() {
    local got=0 i
    rm -f begun.*
    "$EVENLOAD" regress --ab 'echo t 5 ms' "echo t 5 ms; [ ! -e begun.1 ] || { : >begun.2; sleep 30.125; : $PWD; }; : >begun.1" \
        --quiet --blocks 200 --out "r$1" >out.txt 2>err.txt &
    local pid=$!
    for ((i = 0; i < 600; i++)); do [[ ! -e begun.2 ]] || break && sleep 0.05; done
    kill "-$1" "$pid"
    wait "$pid" || got=$?
    [[ $got -eq 130 && $(<err.txt) == "evenload: interrupted after 1 block" ]] || { cat out.txt err.txt && false; }
    grep -q 'Inconclusive: 1 of 1' out.txt
    [[ $(json "r$1/regress.json" 'd["blocks"], len(d["cells"][0]["head"]), d["exit_status"], d["interrupted"]') == "(1, 1, 130, True)" ]] || show
    ! pgrep -f "sleep 30.125; : $PWD" || false
}

@test "regress: interrupted, it says what there is and leaves no process" {
    interrupted INT
    interrupted HUP
}

@test "regress: a byte that is no character costs nothing, and many bytes keep their digits" {
    local peak='echo peak 80000000000 B'
    run --separate-stderr "$EVENLOAD" regress --ab "$peak" "$peak"$'; : s\xe9 x' --quiet --blocks 9 --out r --junit j.xml --json
    [[ $status -eq 0 && -z $stderr ]] || show
    [[ $(json r/regress.json 'd["head"], d["interrupted"], d["exit_status"]') == "('$peak; : s? x', False, 0)" ]] || show
    python3 -c 'import xml.etree.ElementTree as tree; tree.parse("j.xml")'
    grep -q 'unit B, base 80,000,000,000, head 80,000,000,000, ' j.xml
}

# example WORDS [SED]: the commands of the block in docs/regress.md that has WORDS, to a file, changed by SED, and what it prints
# to another.
example() {
    python3 - "$DOCS/regress.md" "$1" <<'END'
import re, sys
text, words = open(sys.argv[1]).read(), sys.argv[2]
block, = [b for b in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M) if words in b and "    $ " in b]
lines = [l[4:] for l in block.rstrip("\n").split("\n")]
commands, printed = [], []
for line in lines:
    if line.startswith("$ "): commands.append(line[2:])
    elif commands and line.startswith("    ") and not printed: commands[-1] += "\n" + line
    elif commands: printed.append(line)
open("commands.sh", "w").write("\n".join(commands) + "\n")
open("printed.txt", "w").write("\n".join(printed) + "\n")
END
    mkdir -p bin && ln -sf "$EVENLOAD" bin/evenload
    sed -i "${2:-}" commands.sh
    PATH=$PWD/bin:$PATH TMPDIR=$PWD run --separate-stderr bash commands.sh
}

@test "regress: the manual's example of lines prints what it says" {
    example 'echo sent 4100 B'
    [[ $status -eq 1 ]] || show
    diff printed.txt <(printf '%s\n' "$output") || show
}

@test "regress: the manual's example of two programs" {
    # Fewer steps and blocks than the manual's: what it finds is the business of the live test in window.bats.
    example '--inject compute=1.10' 's/--warmup 20 --steps 200/--warmup 2 --steps 20/; s/--out results/--blocks 3 --out results/'
    [[ $status -eq 3 ]] || show
    [[ $stderr == *"2 cells; a block takes "*"analysis after block 3"* && $output == *"step_p10_ms, ms "* ]] || show
    [[ $output == *"device_peak_bytes[0], B"*"+0.0 %              -      - exact      -  same"* ]] || show
    [[ $output == *results/ab/regress.json*"Next: "* ]] || show
    grep -qF "$(head -1 <<<"$output")" printed.txt
    [[ $(json results/ab/regress.json '[(c["name"], len(c["head"])) for c in d["cells"]]') == *"('step_p10_ms', 3)"* ]]
}

@test "regress: the files for GitHub and GitLab are YAML, and give options that there are" {
    "$EVENLOAD" help regress all >regress.txt
    "$EVENLOAD" help run all >run.txt
    for file in "$DOCS"/../scripts/examples/regress-git{hub,lab}.yml; do
        if command python3 -c 'import yaml' 2>/dev/null; then command python3 -c 'import sys, yaml; yaml.safe_load(open(sys.argv[1]))' "$file"; fi
        grep -v '^ *#\|apt-get\|git worktree' "$file" | grep -oE -- '--[a-z-]+' >options.txt
        while read -r option; do
            grep -q -- "^  $option " regress.txt run.txt || { echo "$file: $option" && show; }
        done <options.txt
    done
}

@test "regress: what each launch prints several times is its median, or the slowest" {
    printf 'step 125 ms\n%.0s' 1 2 3 4 >base.txt
    { head -n 3 base.txt && echo "step 350000 us" | tr -d '\n' && printf '\r\nstep 350 ms\r\n'; } >head.txt
    sed -i '4d' head.txt
    run --separate-stderr "$EVENLOAD" regress --ab 'cat base.txt' 'cat head.txt' --blocks 8 --quiet --out median
    [[ $status -eq 0 && $output == *"Each launch printed step 4 times: the median counts (--of slowest: the slowest)."* ]] || show
    run --separate-stderr "$EVENLOAD" regress --ab 'cat base.txt' 'cat head.txt' --blocks 8 --quiet --of slowest --out slowest
    [[ $status -eq 1 && $output == *"REGRESSION"*"the slowest counts."* ]] || show
}
