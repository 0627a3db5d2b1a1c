# `imbalance`: from records alone, what is missing only, presets by forecast, and the page's examples.
load common
PICTURES=no

ROOT=${BATS_TEST_DIRNAME%/tests/cli}
TINY=(--model mlp --features 64 --hidden 64 --data dummy --devices cpu:2 --procs 1 --repeats 1 --warmup 1 --steps 2 --min-time 0
    --control none --quiet)

fits() { # no line of the output is wider than 110 columns, and the last says what is next
    for line in "${lines[@]}"; do [[ ${#line} -le 100 || $line == "Next: "* || $line == "not drawn: "* ]] || { echo "$line" && show; }; done
    [[ ${lines[-1]} == "Next: "* ]] || show
}

# prints WORDS...: in the output and on the page.
prints() {
    local words page
    page=$(<"$ROOT/docs/imbalance.md")
    for words in "$@"; do [[ $output == *"$words"* && $page == *"$words"* ]] || { echo "no '$words'" && show; }; done
}

# prints_block COMMAND LINES: each line that the page shows under the command, at least so many.
prints_block() {
    local line shown=0
    while IFS= read -r line; do
        [[ $output == *"${line#    }"* ]] || { echo "not printed: $line" && show; }
        shown=$((shown + 1))
    done < <(awk -v command="    $1" '$0 == command { on = 1; next } on && /^[^ ]/ { exit } on && NF' "$ROOT/docs/imbalance.md")
    [[ $shown -ge $2 ]] || { echo "only $shown lines" && show; }
}

@test "imbalance of a folder shows its records, and launches nothing" {
    with_gnuplot
    mkdir old && kept_record >old/results.json
    run --separate-stderr "$EVENLOAD" imbalance old
    [[ $status -eq 0 && -z $stderr && $output == *"dp, batch 64 (2 x 32): valid"*"main - second"*"how uneven"*"cpu:0 holds "* ]] || show
    [[ $output != *single* && ! -e old/repeats && -s old/plots/imbalance.dat ]] || show
    fits
    ! command -v gnuplot >/dev/null || [[ -s old/plots/imbalance.svg && -s old/plots/imbalance.pdf && ! -e old/plots/gnuplot.log ]]
    "$EVENLOAD" imbalance old --json >i.json 2>err.txt
    [[ ! -s err.txt ]]
    python3 - <<'PYTHON'
import json
shown, record = json.load(open("i.json")), json.load(open("old/results.json"))
assert len(shown["trials"]) == len(record["trials"]) > 1
for s, r in zip(shown["trials"], record["trials"]):
    assert s["imbalance"] == r["imbalance"]
    devices = r["per_device"]
    assert [c["device"] for c in s["cards"]] == [d["device"] for d in devices]
    for c, d in zip(s["cards"], devices):
        assert (c["peak_bytes"], c["at_peak_by_tag"]) == (d["memory"]["peak_bytes"], d["memory"]["at_peak_by_tag"])
        assert (c["busy_pct"], c["sent_bytes"]) == (d["utilization"]["busy_pct"], d["sent_bytes"])
        assert c["sum_of_tag_peaks_bytes"] == sum(v for t, v in d["memory"]["peak_by_tag"].items() if t not in ("workspace", "allowance", "padding"))
    if len(devices) < 2:
        assert s["difference"] is None
        continue
    mean = sum(d["memory"]["peak_bytes"] for d in devices[1:]) / (len(devices) - 1)
    assert s["difference"]["peak_bytes"] == devices[0]["memory"]["peak_bytes"] - mean
    assert abs(sum(s["difference"]["at_peak_by_tag"].values()) - s["difference"]["peak_bytes"]) < 1
PYTHON
}

repeats_of() { # name and time of each repeat's file
    (cd "$1/repeats" && stat -c '%n %y' -- *-0.json)
}

# expect_new FOLDER NUMBER: so many repeats are there that were not in `before`, which is then all of them.
expect_new() {
    local now
    now=$(repeats_of "$1")
    [[ $(comm -13 <(sort <<<"$before") <(sort <<<"$now") | wc -l) -eq $2 && $(comm -23 <(sort <<<"$before") <(sort <<<"$now")) == "" ]]
    before=$now
}

@test "imbalance launches what is missing from its folder: of run's folder ddp, then nothing, then one batch more" {
    "$EVENLOAD" run --mode dp "${TINY[@]}" --batch 8 --out i >/dev/null
    local before held
    before=$(repeats_of i)
    run --separate-stderr "$EVENLOAD" imbalance "${TINY[@]}" --batch 8 --out i
    [[ $status -eq 0 && -z $stderr && $output == *"suspect times"* && $output == *i/results.json* ]] || show
    fits
    expect_new i 1
    "$EVENLOAD" imbalance "${TINY[@]}" --batch 8 --out i >/dev/null
    expect_new i 0
    "$EVENLOAD" imbalance "${TINY[@]}" --batch 8,16 --out i >/dev/null
    expect_new i 2
    [[ $(json i/results.json 'sorted((t["mode"], t["global_batch"]) for t in d["trials"])') == \
        "[('ddp', 8), ('ddp', 16), ('dp', 8), ('dp', 16)]" ]]
    # What would take trials or repeats away is refused, and the folder stays.
    held=$(md5sum i/results.json i/command.json)
    refuses "i holds a trial (ddp, batch 8) of other options" "$EVENLOAD" imbalance "${TINY[@]}" --modes dp --batch 8,16 --out i
    [[ $held == "$(md5sum i/results.json i/command.json)" ]]
}

@test "what a forecast says a run then holds" {
    local run=(imbalance --preset adam --features 32 --hidden 16 --batch 8 --devices cpu:2)
    "$EVENLOAD" "${run[@]}" --dry-run --json >dry.json
    "$EVENLOAD" "${run[@]}" --procs 1 --repeats 1 --warmup 1 --steps 2 --min-time 0 --quiet --json --out r >run.json
    local cards='[[(c["peak_bytes"], c["at_peak_by_tag"], c["peak_by_tag"]) for c in t["cards"]] for t in d["trials"]]'
    [[ $(json dry.json "$cards") == "$(json run.json "$cards")" ]]
    [[ $(json dry.json 'd["preset"], d["dir"], d["predicted"], d["trials"][0]["cards"][0]["busy_pct"]') == "('adam', None, True, None)" ]]
    [[ $(json run.json 'd["preset"], d["dir"], d["predicted"], d["trials"][0]["cards"][0]["busy_pct"] > 0') == "('adam', 'r', False, True)" ]]
    # Weights that are cast have a column too: the line adds up to the card's memory.
    "$EVENLOAD" imbalance --modes ddp --model mlp --hidden 1024,1024 --data dummy --batch 64 --devices cpu:2 --precision bf16-mixed --dry-run >cast
    awk '/^card/ && /cast/ { n++ } /main +cpu:0/ { for (i = 4; i < NF; i++) sum += $i; d = sum - $3 } END { exit !(n == 1 && d * d < 0.01) }' cast || show "$(<cast)"
}

@test "two-cards stands beside the published figures, as near to them as docs/imbalance.md says" {
    "$EVENLOAD" imbalance --preset two-cards --dry-run --json >i.json
    python3 - "$ROOT/docs/imbalance.md" <<'PYTHON'
import json, re, sys
document, MIB, page = json.load(open("i.json")), 2**20, open(sys.argv[1]).read()
table = [list(map(int, row)) for row in re.findall(r"^\| (\d+) \(2 x \d+\) \| (\d+) \| (\d+) \|", page, re.M)]
rows = document["published"]["rows"]
assert table and table == [[r["global_batch"], r["published_first_bytes"] / MIB, r["published_second_bytes"] / MIB] for r in rows], rows
for row, trial in zip(rows, document["trials"]):
    main, second = (card["sum_of_tag_peaks_bytes"] for card in trial["cards"])
    assert (row["first_bytes"], row["second_bytes"], row["difference_bytes"]) == (main, second, main - second)
assert [abs(row["difference_off_pct"]) <= 3 for row in rows] == [True, True, False], rows
PYTHON
    [[ ! -e results ]]
    # Another batch has no published row; the source is still named. A preset without a table has none.
    run "$EVENLOAD" imbalance --preset two-cards --dry-run --batch 32
    [[ $status -eq 0 && $output == *"Reported: TextCNN"* && $output != *"off by"* ]] || show
    run "$EVENLOAD" imbalance --preset outputs --modes dp --batch 256 --dry-run
    [[ $status -eq 0 && $output == *"Reported: 4,000 MB on the first of 4 GPUs"*"huggingface/transformers#279"* ]] || show
}

# The page's table of candidates follows from its six figures: straight lines in the samples per card, by least squares, at no sample.
@test "the arithmetic of the published table in docs/imbalance.md" {
    python3 - "$ROOT/docs/imbalance.md" <<'PYTHON'
import re, sys
page = open(sys.argv[1]).read()
prose = " ".join(page.split())
table = [list(map(int, row)) for row in re.findall(r"^\| (\d+) \(2 x \d+\) \| (\d+) \| (\d+) \|", page, re.M)]
b = [row[0] / 2 for row in table]
def line(y):
    mean_b, mean = sum(b) / 3, sum(y) / 3
    slope = sum((x - mean_b) * (v - mean) for x, v in zip(b, y)) / sum((x - mean_b) ** 2 for x in b)
    return mean - slope * mean_b, slope
(main, main_slope), (second, second_slope) = (line([row[k] for row in table]) for k in (1, 2))
for text in (f"main = {main:.1f} + {main_slope:.3f} b", f"second = {second:.1f} + {second_slope:.3f} b"): assert text in prose, text
rows = re.findall(r"^\| ([3-7]) \| .* \| ([\d.]+) \| (-?[\d.]+) \| ([\d,]+) \| (\w+) \|", page, re.M)
assert [row[0] for row in rows] == list("34567")
word = 300 * 4 / 2**20
other = (12 * 300 * 100 + 3 * 100 + 300 * 2 + 2) * 4 / 2**20 # windows 3, 4 and 5 of 100 filters, two classes
for k, p, c, words, possible in rows:
    copies = (main - second) / (int(k) - 2)
    assert abs(copies - float(p)) < 0.06 and abs(second - 2 * copies - float(c)) < 0.06, k
    assert abs((copies - other) / word - int(words.replace(",", ""))) < 1, (k, (copies - other) / word)
    assert possible == ("possible" if float(c) > 0 else "impossible"), k
PYTHON
}

@test "a forecast is drawn where --out says, and leaves no run there" {
    run --separate-stderr "$EVENLOAD" imbalance --preset momentum --devices 12 --dry-run --out f
    [[ $status -eq 0 && $output == *predicted*"and 4 more cards"* && $(ls f) == plots && -s f/plots/imbalance.dat ]] || show
    grep -q ', 12 devices, predicted' f/plots/imbalance.dat
    fits
}

@test "the next command after a prediction keeps the options, and shows the same" {
    run --separate-stderr "$EVENLOAD" imbalance --preset momentum --dry-run --modes dp --devices 3 --batch 30
    [[ $status -eq 0 && ${lines[-1]} == "Next: $EVENLOAD imbalance --preset momentum --modes dp "*"    (the same, measured)" ]] || show
    local predicted=("${lines[@]}") next=${lines[-1]#Next: }
    [[ $next == *" --devices 3 --batch 30 "* && $next != *--dry-run* ]] || show
    run --separate-stderr bash -c "${next%    (*} --dry-run"
    [[ $status -eq 0 && ${lines[*]} == "${predicted[*]}" ]] || show
}

@test "sentences follow a narrow terminal, not below 40 columns; a pipe has none" {
    cat >terminal.py <<'END'
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", 24, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
text = b""
try:
    while part := os.read(terminal, 4096): text += part
except OSError: pass # its end
os.waitpid(pid, 0)
lines = text.decode().replace("\r", "").split("\n")
begin = next(i for i, line in enumerate(lines) if line.startswith("* "))
print(max(len(line) for line in lines[begin:] if line[:2] in ("* ", "  ")))
END
    longest() { python3 terminal.py "$1" "$EVENLOAD" imbalance --preset momentum --dry-run; }
    local at60 at10 at0
    at60=$(longest 60) at10=$(longest 10) at0=$(longest 0)
    [[ $at60 -gt 45 && $at60 -le 60 && $at10 -gt 30 && $at10 -le 40 && $at0 -gt 90 ]] || { echo "$at60 $at10 $at0" && return 1; }
    [[ $("$EVENLOAD" imbalance --preset momentum --dry-run | grep '^[* ] ' | wc -L) -gt 90 ]]
}

@test "bad uses of imbalance are refused" {
    refuses "unknown preset 'two-card': did you mean 'two-cards'?" "$EVENLOAD" imbalance --preset two-card
    refuses "every trial is on one device" "$EVENLOAD" imbalance --modes single --out x
    refuses "every trial is on one device" "$EVENLOAD" imbalance --preset adam --devices cpu:1 --dry-run
    refuses "--optimizer adam has no momentum" "$EVENLOAD" imbalance --preset adam --optimizer momentum=0.9 --dry-run
    refuses "imbalance: x does not exist: " "$EVENLOAD" imbalance x
    refuses "imbalance: nofile.pickle does not exist: " "$EVENLOAD" imbalance nofile.pickle
    mkdir d && printf '{"schema": 2, "trials": [' >d/results.json
    refuses "d/results.json is no JSON" "$EVENLOAD" imbalance d
    printf '{"schema": 2, "trials": []}' >d/results.json
    refuses "has no finished trial on two devices" "$EVENLOAD" imbalance d
    refuses "measures nothing: leave out --batch" "$EVENLOAD" imbalance d --batch 8
    refuses "measures nothing: leave out --preset" "$EVENLOAD" imbalance d --preset adam
    refuses "holds a run already" "$EVENLOAD" imbalance --preset adam --dry-run --out d
    [[ $(ls d) == results.json && ! -e x && ! -e results ]] || show
}

@test "a watch has no memory by tag, and is refused" {
    mkdir w
    cat >w/results.json <<'JSON'
{"schema": 2, "watch": {}, "trials": [{"mode": "watch", "status": "ok", "per_device": [
    {"device": "cpu", "memory": {"peak_bytes": 9, "at_peak_by_tag": {}}}, {"device": "cpu", "memory": {"peak_bytes": 5, "at_peak_by_tag": {}}}]}]}
JSON
    refuses "'evenload plot w' draws what there is" "$EVENLOAD" imbalance w
}

@test "where a disk is full no half picture is left, and each is said" {
    with_gnuplot
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    mkdir old && kept_record >old/results.json
    run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 8; "$0" imbalance old' "$EVENLOAD"
    [[ $status -eq 0 && $output == *"old/plots/imbalance.svg could not be written"*"imbalance.pdf could not be written"* ]] || show
    [[ $(cd old/plots && echo *) == "imbalance-bytes.dat imbalance-time.dat imbalance.dat" ]] || show
    run --separate-stderr bash -c '"$0" imbalance old --json >/dev/full' "$EVENLOAD"
    [[ $status -eq 2 && $stderr == "evenload: standard output cannot be written: "* ]] || show
}

@test "a folder that cannot be drawn into is shown all the same" {
    mkdir old && kept_record >old/results.json && touch old/plots
    run --separate-stderr "$EVENLOAD" imbalance old
    [[ $status -eq 0 && $output == *"main - second"* && $stderr == *"not drawn: old/plots"* ]] || show
}

@test "a run that needs more memory than there is is refused before it begins" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer reserves more addresses than the limit"
    run --separate-stderr bash -c 'ulimit -v 3000000; "$0" imbalance --preset two-cards --devices cpu:2 --out r --quiet' "$EVENLOAD"
    [[ $status -eq 2 && $stderr == *"GiB of memory"* && $stderr == *--dry-run* && ! -e r ]] || show
}

# The page's examples, each by its own words. Memory is exact, but for the kernel library's scratch: lines with it are looked
# for where library and processor are the page's. What is measured is measured on little.
@test "the examples of docs/imbalance.md" {
    mkdir -p results/reference
    cp -r "$ROOT/results/reference/cpu-2-cores" results/reference
    run "$EVENLOAD" imbalance results/reference/cpu-2-cores
    [[ $status -eq 0 ]] || show
    prints_block "evenload imbalance results/reference/cpu-2-cores" 15
    cmp results/reference/cpu-2-cores/plots/imbalance.dat "$ROOT/results/reference/cpu-2-cores/plots/imbalance.dat"

    local same_scratch=''
    ! "$EVENLOAD" devices | grep 'oneDNN 2.6.3' >/dev/null || ! grep -qw avx512f /proc/cpuinfo || same_scratch=yes
    run "$EVENLOAD" imbalance --preset two-cards --dry-run
    [[ $status -eq 0 ]] || show
    prints "  1,837" "  2,786" "  1,041" "918.3 MiB of optimizer state," "mostly by activations"
    [[ -z $same_scratch ]] || prints_block "evenload imbalance --preset two-cards --dry-run" 12
    fits
    run "$EVENLOAD" imbalance --preset outputs --modes dp --dry-run --devices cpu:2
    [[ $status -eq 0 ]] || show
    prints "14.6 MiB of outputs and 2.5 of" "234.4 MiB of outputs" "mostly by outputs"
    [[ -z $same_scratch ]] || prints_block "evenload imbalance --preset outputs --modes dp --dry-run" 5
    run "$EVENLOAD" imbalance --preset adam --batch 64 --out results/adam --devices cpu:2 --procs 1 --repeats 1 --warmup 1 \
        --steps 1 --min-time 0 --control none --quiet
    [[ $status -eq 0 ]] || show
    [[ $output == *"64.1 MiB of optimizer state and"*"ddp, batch 64: the first device holds as much as the others, within 1 %."* ]] || show
    [[ -z $same_scratch || $output == *"more than cpu:1 (2.49 times)"* ]] || show
}

@test "every example of docs/imbalance.md is among those above, or in shares.bats" {
    local command n=0
    while read -r command; do
        n=$((n + 1))
        grep -qxF "$command" <<'COMMANDS' || { echo "an example without a test: $command" && false; }
evenload imbalance DIR
evenload imbalance --out DIR
evenload imbalance --preset two-cards --dry-run
evenload imbalance results/reference/cpu-2-cores
evenload imbalance --devices sim:4 --batch 64 --inject straggler=2:2 --repeats 1
evenload imbalance --preset outputs --modes dp --dry-run
evenload imbalance --solve time --devices 2
evenload imbalance --solve memory --devices 2 --dry-run
evenload imbalance --solve time --devices sim:2 --model mlp --hidden 2048 --batch 1024 --inject straggler=1:3
evenload imbalance rank0.pickle rank1.pickle
evenload imbalance snapshots
evenload imbalance dp.pickle
COMMANDS
    done < <(sed -n 's/^    \(evenload imbalance.*\)/\1/p' "$ROOT/docs/imbalance.md" | sed 's/   .*//')
    [[ $n -ge 6 ]]
}

# told TRIAL PATH: what imbalance --json says there of folder `i`'s trial.
told() {
    "$EVENLOAD" imbalance i --json | python3 -c '
import json, sys
value = json.load(sys.stdin)["trials"][int(sys.argv[1])]
for key in sys.argv[2].split("."):
    value = value and value[key]
print(value)' "$@"
}

@test "simulated devices: one that computes twice as long stays late, and dp's first device sends to all others" {
    with_gnuplot
    run --separate-stderr "$EVENLOAD" imbalance --devices sim:4 --batch 64 --inject straggler=2:2 --repeats 1 --quiet --out i
    [[ $status -eq 0 && $output == *"caused ms"*"sent MiB"*"sim:2"* ]] || show
    fits
    prints_block "evenload imbalance --devices sim:4 --batch 64 --inject straggler=2:2 --repeats 1" 13
    one=$(tr -s ' \n' '  ' <<<"$output")
    [[ $one == *"ddp, batch 64: sim:2 computes 2.00 times as long as the others do on average; the others wait "*" ms for it. Cause: speed: "* ]] || show
    [[ $one == *"dp, batch 64: sim:0 sends 3.00 times what the others do on average, 31.1 MiB per step against 10.4. Cause: algorithm: dp, "* ]] || show
    [[ $(told 1 time.blame.kind) == stays && $(told 1 time.blame.rank) == sim:2 && $(told 1 bytes.rank) == None ]]
    ! command -v gnuplot >/dev/null || [[ -s i/plots/imbalance-time.png && -s i/plots/imbalance-bytes.svg ]]
    # what waits is all charged: the sum over the ranks is the same
    "$EVENLOAD" imbalance i --json | python3 -c '
import json, sys
for trial in json.load(sys.stdin)["trials"]:
    ranks = trial["time"]["ranks"]
    wait, caused = (sum(r[k] for r in ranks) for k in ("wait_ms", "caused_ms"))
    assert wait > 0 and abs(wait - caused) < 1e-6 * wait, (wait, caused)'
}

@test "simulated stages: the one with more arithmetic is named, by its cut, and nothing is charged" {
    run "$EVENLOAD" run --mode pipeline --model mlp --data dummy --devices sim:2 --repeats 1 --quiet --out i
    [[ $status -eq 0 ]] || show
    [[ $(told 0 time.blame) == None && $(told 0 time.longest.rank) == sim:1 && $(told 0 time.longest.cause.cause) == cut ]]
}

@test "measured: the straggler is blamed, with its speed as the cause" {
    run "$EVENLOAD" run --mode ddp --devices 2 --inject straggler=1:5 --steps 8 --min-time 0 --repeats 1 --control none --quiet --out i
    [[ $status -eq 0 ]] || show
    [[ $(told 0 time.blame.kind) == stays && $(told 0 time.blame.rank) == cpu:1 && $(told 0 time.blame.cause.cause) == speed ]] || { told 0 time && false; }
}
