# `run`, `compare`, `devices`: what comes out where, for each way of running.
load common
PICTURES=no

@test "run writes a record and prints a table" {
    run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --out r
    [[ $status -eq 0 && $output == *single* && $output == *r/results.json* ]] || show
    [[ $(json r/results.json 'd["schema"], d["trials"][0]["status"]') == "(2, 'ok')" ]]
    [[ -s r/trials.csv && -s r/steps.csv && -z $(find r -name '*.tmp*') ]]
    python3 - r/*.csv r/results.json <<'.' || show
import math, re, sys
for path in sys.argv[1:]: # no number is 0.5541000000000001
    for text in re.findall(r"\d+\.\d+(?:e[-+]?\d+)?", open(path).read()):
        value, near = float(text), float("%.12g" % float(text))
        assert value == near or abs(value - near) > 8 * math.ulp(value), (path, text)
.
}

@test "the progress line names the bucket size, where it is not the usual one" {
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices null:2 --procs 1 --bucket-mb 1 --out b >/dev/null 2>words
    [[ $(<words) == *"ddp on 2, batch "*", buckets of 1 MiB, repeat 1: ok"* ]] || { cat words && false; }
}

@test "run --json prints the trial's record and nothing else" {
    "$EVENLOAD" run "${QUICK[@]}" --json --quiet --out r >out.json 2>err.txt
    [[ $(json out.json 'd["mode"], d["id"] == json.load(open("r/results.json"))["trials"][0]["id"]') == "('single', True)" ]]
    [[ ! -s err.txt ]]
    # What a library chose is told by the op, and only where a library did it.
    local library told='{o["op"].split()[0] for o in d["per_device"][0]["ops"] if str(o["implementation"]).startswith("oneDNN: ")}'
    library=$(json r/results.json 'd["environment"]["cpu_library"] is not None')
    [[ $(json out.json "sorted($told) == ($library and ['linear_backward_data', 'linear_backward_weights', 'linear_forward'] or [])") == True ]] ||
        { json out.json "$told" && show; }
}

@test "the record's command makes the same trial again" {
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --optimizer adam --lr 0.003 --out a --quiet
    local command
    command=$(json a/results.json 'd["trials"][0]["command"]')
    eval "${command/evenload/\"\$EVENLOAD\"} --out b --quiet"
    [[ $(json a/results.json 'd["trials"][0]["id"]') == "$(json b/results.json 'd["trials"][0]["id"]')" ]]
    [[ $(json a/results.json 'd["trials"][0]["loss"]') == "$(json b/results.json 'd["trials"][0]["loss"]')" ]]
}

# The known answers are PyTorch 2.15's (tests/cli/torch.bats asks PyTorch itself): a given cap is the first bucket's limit too, and a Linear
# layer's bias is ready before its weight.
@test "ddp's buckets are PyTorch's" {
    local cap wanted
    while read -r wanted cap; do
        # shellcheck disable=SC2086 # no option, or an option and its value
        "$EVENLOAD" run --mode ddp --devices null:2 --procs 1 --model mlp --hidden 1024,1024,1024,1024 --classes 10 --data dummy --batch 4 \
            --warmup 2 --steps 2 --min-time 0 --control none --json --quiet --out r $cap >out.json
        echo "$cap: $(json out.json '[int(c["bytes"]) for c in d["collectives"]]')"
        [[ $(json out.json '",".join("%d" % c["bytes"] for c in d["collectives"])') == "$wanted" ]]
        rm -r r
    done <<'.'
4239400,12595200
4239400,4198400,4198400,4198400 --bucket-mb 1
8437800,8396800 --bucket-mb 5
16834600 --bucket-mb 25
4239400,8396800,4198400 --bucket-mb 5,first=1
.
}

# Of a process: what it reads once is there once, and each device takes room for itself alone.
@test "a process with 64 devices holds less than 60 MB" {
    local mode
    for mode in dp 'ddp --procs 1'; do
        # shellcheck disable=SC2086 # a mode with its options
        "$EVENLOAD" run --mode $mode --devices null:64 --model toy --warmup 0 --steps 1 --min-time 0 --out "of ${mode%% *}" --quiet >/dev/null &
    done
    wait
    for mode in dp ddp; do
        json "of $mode/results.json" '[p["process_bytes"] + sum(p["per_device_bytes"]) for p in d["trials"][0]["processes"]]'
        [[ $(json "of $mode/results.json" '[10e6 < p["process_bytes"] + sum(p["per_device_bytes"]) < 60e6 for p in d["trials"][0]["processes"]]') == "[True]" ]]
    done
}

# Options of `run`, an expression of the trial `t` of its record, and what that is.
@test "what a record says of a run" {
    local line words expression wanted
    while read -r line; do
        echo "$line"
        wanted=${line##* :: } expression=${line#* :: }
        read -ra words <<<"${line%% :: *}"
        "$EVENLOAD" run "${QUICK_MODEL[@]}" --batch 8 "${words[@]}" --out r --quiet >/dev/null
        # shellcheck disable=SC2053 # a pattern
        [[ $(json r/results.json "[(${expression% :: *}) for t in d['trials']][0]") == $wanted ]] || show
        rm -r r
    done <<'END'
--mode ddp --devices 3 --procs 1 :: [len(t[k]) for k in ("per_device", "processes", "batch_per_device")] :: [[]3, 1, 3]
--mode dp --devices null:3 :: t["device_names"] :: [[]'null:0', 'null:1', 'null:2']
--mode ddp --devices sim:4 :: t["status"], t["procs"] :: ('ok', 1)
--mode dp --devices cpu:0,cpu:0 :: t["verdict"], [w for w in t["warnings"] if "devices share a core" in w] != [] :: ('suspect', True)
--no-record :: t["status"], t["per_device"][0]["utilization"]["busy_pct"] :: ('ok', None)
--mode single :: [t["per_device"][0]["utilization"][k] for k in ("system_pct", "system_reason")] :: [[]None, "window of *ticks say too little"]
--devices sim:1 :: [t["per_device"][0]["utilization"][k] for k in ("system_pct", "system_reason")] :: [[]None, 'simulated']
END
}

@test "the local batch is of each device" {
    "$EVENLOAD" run "${QUICK_MODEL[@]}" --batch-per-device 5 --mode dp --devices 2 --out r --quiet
    [[ $(json r/results.json 'd["trials"][0]["global_batch"], d["trials"][0]["batch_per_device"]') == "(10, [5, 5])" ]]
}

@test "ddp as a process per device" {
    need_mpirun
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices 3 --out r --quiet
    [[ $(json r/results.json '[p["rank"] for p in d["trials"][0]["processes"]], d["trials"][0]["procs"]') == "([0, 1, 2], 3)" ]]
    [[ $(json r/results.json 'len({p["pid"] for p in d["trials"][0]["processes"]})') == 3 ]]
    local logs=(r/logs/*/rank-2.log)
    [[ -e ${logs[0]} ]]
}

@test "gradients as views of buckets: a row of its own, the same losses, no memory for gradients" {
    run --separate-stderr "$EVENLOAD" compare "${QUICK[@]}" --modes single,ddp --procs 1 --bucket-mb view=off,on --repeats 1 --out c --quiet
    [[ $status -eq 0 && $output == *"ddp      8 (2 x 4)"*"ddp view 8 (2 x 4)"* ]] || show
    python3 - <<'.'
import json
run = json.load(open("c/results.json"))
plain, view = run["trials"][1:]
assert [t["config"]["bucket_view"] for t in run["trials"]] == ["off", "off", "on"]
assert plain["loss"] == view["loss"] and len(view["loss"]) == 3, "losses"
held = [t["per_device"][1]["memory"]["peak_by_tag"] for t in (plain, view)]
assert held[0]["grad"] == held[0]["bucket"] == held[1]["bucket"] == plain["param_bytes"] and held[1]["grad"] == 0, held
assert [g["bucket_view"] for g in run["gate"]] == [False, False, True] and all(g["agrees"] for g in run["gate"])
.
    refuses "--bucket-mb view: mode dp does not take it, ddp does" "$EVENLOAD" run --mode dp --bucket-mb view
}

@test "simulated members' collectives take what 'evenload comm' measured, by algorithm" {
    mkdir wire
    python3 - <<'.'
import json
times = {"direct": (1000, 30000), "ring": (2000, 50000), "ps": (3000, 70000)}
points = lambda a: [{"bytes": b, "count": b // 4, "algorithm": a, "in_place": {"time_us": us}} for b, us in zip((1 << 20, 16 << 20), times[a])]
curves = [{"operation": "all_reduce", "algorithm": a, "points": points(a)} for a in times]
json.dump({"schema": 1, "kind": "comm", "ranks": 2, "curves": curves}, open("wire/comm.json", "w"))
.
    for case in direct:30 ring:50 ps:70; do # 4095 x 1024 weights and 1024 biases: 16 MiB in one bucket
        "$EVENLOAD" run --mode ddp --devices sim:2 --model mlp --features 4095 --hidden none --classes 1024 --data dummy --batch 2 --bucket-mb 100 \
            --warmup 2 --steps 1 --min-time 0 --costs wire --comm-algorithm "${case%:*}" --json --quiet --out "r-${case%:*}" >r.json
        python3 -c 'import json, sys
t = json.load(open("r.json"))
assert t["comm_algorithms"] == sys.argv[1] and [round(c["transfer_ms"], 3) for c in t["collectives"]] == [float(sys.argv[2])], t["collectives"]' \
            "${case%:*}" "${case#*:}"
    done
    # The command's own record, of 4 KiB.
    "$EVENLOAD" comm all_reduce --comm local --devices 2 --comm-algorithm ring -b 4K -e 4K -n 3 -w 1 --out own --quiet >own.txt
    "$EVENLOAD" run --mode ddp --devices sim:2 --model mlp --features 255 --hidden none --classes 4 --data dummy --batch 2 --warmup 2 --steps 1 \
        --min-time 0 --costs own --comm-algorithm ring --json --quiet --out r-own >r.json
    python3 -c 'import json
[c], [curve] = json.load(open("r.json"))["collectives"], json.load(open("own/comm.json"))["curves"]
assert c["bytes"] == 4096 and abs(c["transfer_ms"] * 1e3 / curve["points"][0]["in_place"]["time_us"] - 1) < 0.01, (c, curve)'
    refuses "--costs is for simulated devices" "$EVENLOAD" run --costs wire
    refuses "--costs ,: names no folder" "$EVENLOAD" run --devices sim:2 --costs ,
    refuses "has no comm.json" "$EVENLOAD" run --devices sim:2 --costs none
    refuses "leave one of them out" "$EVENLOAD" run --mode ddp --comm mpi --comm-algorithm ring
}

@test "single beside others is measured and recorded as one device, and named" {
    (($(nproc) > 1)) || skip "one core"
    "$EVENLOAD" run "${QUICK[@]}" --mode single --devices 1 --out alone --quiet >/dev/null
    "$EVENLOAD" run "${QUICK[@]}" --mode single --devices 1 --beside 1 --out b --quiet >out
    grep -qE '^single \+1' out || { cat out && false; }
    "$EVENLOAD" run "${QUICK[@]}" --mode single --devices 1 --beside 1 --control record --out b2 --json --quiet >b.json
    python3 - <<'.'
import json
alone, beside = (json.load(open(f))["trials"][0] for f in ("alone/results.json", "b2/results.json"))
assert (alone["config"]["beside"], beside["config"]["beside"]) == (0, 1) and beside["command"].endswith(" --beside 1 --control record"), beside["command"]
same = ("devices", "device_names", "loss", "flops_per_step", "param_bytes")
assert [alone[k] for k in same] == [beside[k] for k in same], (alone, beside)
peaks = [[d["memory"]["peak_bytes"] for d in t["per_device"]] for t in (alone, beside)]
assert len(peaks[0]) == 1 and peaks[0] == peaks[1], peaks
.
    refuses "--beside: mode dp does not take it, single does" "$EVENLOAD" run --mode dp --beside 1
    refuses "--beside 1: simulated devices cost each other what --costs says" "$EVENLOAD" run --mode single --devices sim:1 --beside 1
    refuses "--beside 63: each device needs a core of its own from cpu:0 on, and there are" "$EVENLOAD" run "${QUICK[@]}" --mode single --beside 63 --out many
    [[ ! -e many ]]
}

@test "--strict makes a suspect trial's exit status 1, and nothing else of it" {
    local shared=(run "${QUICK[@]}" --mode dp --devices "cpu:0,cpu:0" --quiet)
    "$EVENLOAD" "${shared[@]}" --out a >/dev/null
    run --separate-stderr "$EVENLOAD" "${shared[@]}" --strict --out b
    [[ $status -eq 1 && $output == *b/results.json* && ${#stderr_lines[@]} -eq 1 ]] || show
    [[ $stderr == "evenload: --strict: 1 of 1 trials is suspect; "*"too few samples"* ]] || show
    [[ $(json a/results.json 'd["trials"][0]["id"]') == "$(json b/results.json 'd["trials"][0]["id"]')" ]]
    "$EVENLOAD" run "${QUICK[@]}" --devices sim:1 --strict --quiet --out s >/dev/null # virtual time raises no doubt
}

@test "--strict of compare counts the suspect trials" {
    run --separate-stderr "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 1 --strict --quiet --out c
    [[ $status -eq 1 && $stderr == *"3 of 3 trials are suspect; the commonest reason: too few samples"* ]] || show
}

@test "--dry-run prints memory by tag, launches nothing and writes no run" {
    run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices 3 --dry-run
    [[ $status -eq 0 && $output == *param* && $output == *cpu:2* && ! -e results/data && -z $(find . -name results.json) ]] || show
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices 3 --dry-run --json >dry.json
    [[ $(json dry.json '[sum(x["at_peak_by_tag"].values()) == x["peak_bytes"] for x in d["devices"]]') == "[True, True, True]" ]]
    mkdir dry && cd dry
    "$EVENLOAD" run --dry-run >/dev/null # by the synthetic set, which is made for it alone
    "$EVENLOAD" imbalance --dry-run >/dev/null
    [[ -z $(ls -A) ]] || show
}

@test "--dry-run says what it assumed and whether it fits, within 100 columns" {
    local mode
    run "$EVENLOAD" run --model resnet50 --mode dp --devices 2,mem=300M --dry-run
    [[ $status -eq 1 && $output == *"assumed: --image 32, --width 64, --classes 10, --batch 64, "* ]] || show
    [[ $output == *"It does not fit: a device needs up to "*" MiB, and --devices mem allows 300.0."* ]] || show
    run "$EVENLOAD" run --model mlp --features 8 --hidden 4 --classes 2 --batch 8 --precision f32 --optimizer sgd --data dummy --devices mem=300M --dry-run
    [[ $status -eq 0 && $output != *assumed* && $output == *"It fits: "* ]] || show
    for mode in dp "ddp --bucket-mb view" spmg "pipeline --mesh dp=2,pp=2"; do
        # shellcheck disable=SC2086 # a mode and its options
        run "$EVENLOAD" run --model resnet18 --mode $mode --devices sim:4 --dry-run
        [[ $status -eq 0 && $(wc -L <<<"$output") -le 100 && $output == *"Whether it fits is not known"* ]] || show
    done
    "$EVENLOAD" run "${QUICK[@]}" --features 16384 --mode dp --devices 2,mem=1M --dry-run --json >small.json || [[ $? -eq 1 ]]
    [[ $(json small.json 'd["fits"], d["limit"], d["limit_bytes"], sorted(d["assumed"])[0]') == "(False, 'device', 1048576, 'classes')" ]] || cat small.json
}

@test "a simulated trial is never valid, and names its machine; a machine that cannot be is refused in one line" {
    local file rest HARDWARE=$BATS_TEST_DIRNAME/../../profiles/hardware
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices sim:4 --repeats 5 --out default --quiet >default.txt
    grep -q '  simulated$' default.txt
    grep -q "! simulated: all times are virtual, by the rates of machine default" default.txt
    [[ $(json default/results.json '[d["trials"][0][k] for k in ("verdict", "warning_rules")] + [d["trials"][0]["throughput"]["ci95"], d["trials"][0]["per_device"][0]["memory"]["reserved_bytes"]]') == \
        "['simulated', ['simulated'], None, None]" ]]
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices sim:4 --strict --out strict --quiet >/dev/null
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices sim:4 --machine h100-sxm --out h100 --quiet >/dev/null
    [[ $(json h100/results.json 'd["trials"][0]["prediction"]["machine"]["link_gb_per_s"], d["trials"][0]["config"]["machine"]') == "(370.8, 'h100-sxm')" ]]
    [[ $(json h100/results.json 'd["trials"][0]["step_ms"]["mean"]') != "$(json default/results.json 'd["trials"][0]["step_ms"]["mean"]')" ]]
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices sim:4 --machine "$HARDWARE/h100-sxm.json" --dry-run >/dev/null
    while read -r file rest; do
        sed "$rest" "$HARDWARE/h100-sxm.json" >"$file.json"
        refuses "--machine $file.json: ${file//-/ }" "$EVENLOAD" run "${QUICK[@]}" --devices sim:2 --machine "$file.json"
    done <<'END'
unknown-key s/"link_gb_per_s"/"links"/
'kernel_launch_us'-is-missing /kernel_launch_us/d
unknown-key-'link_latency_ns':-did-you-mean-'link_latency_us' s/link_latency_us/link_latency_ns/
'memory_gb_per_s'-must-be-a-number-above-0 s/2903/"2903"/
'collective_multiprocessors'-is-missing /"collective_multiprocessors/d
'collective_multiprocessors'-must-be-at-most-half-of s/: 24,/: 67,/
'devices_per_host'-is-missing /devices_per_host/d
'name'-must-be-a-text s/"H100 SXM5 80GB"/7/
line s/{/[/
END
    refuses "--machine nowhere: no such file" "$EVENLOAD" run --devices sim:2 --machine nowhere
    refuses "--machine is for simulated devices, and these are null: give --devices sim:1" "$EVENLOAD" run --devices null:1 --machine h100-sxm
    refuses "--costs is for simulated devices, and these are cpu: give --devices sim:1" "$EVENLOAD" run --devices cpu:1 --costs default
}

@test "--dry-run predicts what a run then holds" {
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices 2 --dry-run --json >dry.json
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices 2 --out r --quiet
    [[ $(json dry.json '[x["peak_bytes"] for x in d["devices"]]') == "$(json r/results.json \
        '[x["memory"]["peak_bytes"] for x in d["trials"][0]["per_device"]]')" ]]
}

@test "the same trial twice has the same losses" {
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --procs 1 --repeats 2 --out r --quiet
    [[ $(json r/repeats/*-0.json 'd["loss"]') == "$(json r/repeats/*-1.json 'd["loss"]')" ]]
}

@test "epochs are evaluated on a test file" {
    for i in 1 2 3 4 5 6 7 8; do printf '0 good fine day %d\n1 bad sad night %d\n' "$i" "$i"; done >train.txt
    "$EVENLOAD" run --model mlp --features 32 --hidden 8 --data train.txt --test train.txt --batch 4 --epochs 3 \
        --optimizer adam --out r --quiet
    [[ $(json r/results.json 'len(d["trials"][0]["epochs"]), 0 <= d["trials"][0]["accuracy"] <= 1') == "(3, True)" ]]
}

# tops RECORD: of every device, whether the timeline's largest sum is the ledger's peak, at peak_ms and in peak_phase.
tops() {
    json "$1" '{(max(sums), sums.index(max(sums))) == (m["peak_bytes"], next(i for i, at in enumerate(t["ms"])
        if (at, t["phase"][i], sums[i]) == (t["peak_ms"], t["peak_phase"], m["peak_bytes"])))
        for trial in d["trials"] for m in [device["memory"] for device in trial["per_device"]] for t in [m["timeline"]]
        for sums in [[sum(column) for column in zip(*t["bytes"].values())]]}'
}

@test "the memory timeline holds the peak, and where it lies" {
    "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 1 --out c --quiet >/dev/null
    [[ $(tops c/results.json) == "{True}" ]]
    "$EVENLOAD" compare "${QUICK[@]}" --devices sim:3 --repeats 1 --out s --quiet >/dev/null
    [[ $(tops s/results.json) == "{True}" ]]
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --no-record --out n --quiet >/dev/null
    [[ $(json n/results.json '{x["memory"]["timeline"] for x in d["trials"][0]["per_device"]}') == "{None}" ]]
}

@test "the next command that compare prints works; a mode left out is not missed" {
    run --separate-stderr "$EVENLOAD" compare "${QUICK[@]}" --modes dp --procs 1 --repeats 1 --control none --out c
    [[ $status -eq 0 && $output != *"cannot be"* && ${lines[-2]} == "Next: $EVENLOAD imbalance c    (device by device)" ]]
    [[ ${lines[-1]} == "Again: $EVENLOAD compare "*" --repeats "[0-9]* ]] || show
    run --separate-stderr "$EVENLOAD" imbalance c
    [[ $status -eq 0 && $output == *"main "* ]] || show
}

@test "compare measures every trial and prints table, sentences and paths" {
    run --separate-stderr "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --batch 8,12 --repeats 2 --out c
    [[ $status -eq 0 && $output == *dp* && $output == *c/results.json* && $output == *Next:* ]] || show
    [[ $(json c/results.json 'len(d["trials"]), {len(t["repeats"]) for t in d["trials"]}') == "(6, {2})" ]]
    [[ $(json c/results.json '[g["agrees"] for g in d["gate"]]') == "[True, True, True]" ]]
    [[ -s c/trials.csv && -d c/plots ]]
}

@test "compare takes its trials in turns, in an order of the seed" {
    "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 2 --out a --quiet --json >a.json
    "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 2 --out b --quiet >/dev/null
    [[ $(json a.json '[sorted(t["repeats"][k]["order"] for t in d["trials"]) for k in (0, 1)]') == "[[0, 1, 2], [3, 4, 5]]" ]]
    [[ $(json a.json '[[r["order"] for r in t["repeats"]] for t in d["trials"]]') == "$(json b/results.json \
        '[[r["order"] for r in t["repeats"]] for t in d["trials"]]')" ]]
}

@test "compare --json prints the run's document and nothing else" {
    "$EVENLOAD" compare "${QUICK[@]}" --modes single --repeats 1 --out c --json --quiet >out.json 2>err.txt
    cmp out.json c/results.json
    [[ ! -s err.txt ]]
}

@test "plot draws again from the files alone" {
    "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 1 --out c --quiet >/dev/null
    rm -r c/plots c/repeats c/logs
    with_gnuplot
    run --separate-stderr "$EVENLOAD" plot c
    [[ $status -eq 0 && -d c/plots && -n $(ls c/plots) ]] || show
}

@test "plot draws every figure, and of a record without timelines what it holds" {
    with_gnuplot
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 1 --out c --quiet >/dev/null
    run --separate-stderr "$EVENLOAD" plot --term c
    [[ $status -eq 0 && $output == *", batch 8 (2 x 4): cpu:0"*"time in the step (ms)"* && $output != *"could not"* ]] || show
    for figure in memory throughput step utilization timeline; do
        [[ $output == *plots/$figure.svg* && -s c/plots/$figure.svg && ! -e c/plots/gnuplot.log ]] || show
    done
    mkdir old
    kept_record >old/results.json
    run --separate-stderr "$EVENLOAD" plot old
    [[ $status -eq 0 && $output == *"no figure 'timeline'"* && -s old/plots/memory.svg && ! -e old/plots/timeline.svg ]] || show
}

# A run that is gone on with knows the build that began it by these (bench/base/program.c).
@test "every file of a build has the linker's hash of it in its first 4 KiB" {
    run python3 - "$EVENLOAD" "$EVENLOAD_BUILD"/modules/el_*.so <<'END_OF_PYTHON'
import re, sys
found = [re.search(rb"\x14\0\0\0\x03\0\0\0GNU\0(.{20})", open(path, "rb").read(4096), re.DOTALL) for path in sys.argv[1:]]
print(all(found) and len({match[1] for match in found}) == len(found))
END_OF_PYTHON
    [[ $output == True ]] || show
}

@test "other programs on the cores are said before a long measurement, while it can still wait" {
    taskset -c 0 bash -c 'while :; do :; done' &
    local busy=$!
    taskset -c 0 "$EVENLOAD" run --min-time 1000 --out r >out 2>err &
    local measuring=$!
    for ((i = 0; i < 100; i++)); do
        [[ -s err ]] && break
        sleep 0.05
    done
    kill -INT $measuring
    kill $busy
    wait $measuring || true
    [[ $(head -n 1 err) =~ ^"evenload: other processes use "[0-9]+" % of the cores now: stop them first" ]] || { cat err && false; }
}

# What a baseline, a title and explain tell two runs apart by.
@test "the record says in which precision a trial computed" {
    for precision in f32 bf16 f64; do
        "$EVENLOAD" run "${QUICK[@]}" --precision $precision --out $precision --quiet >/dev/null
        [[ $(json $precision/results.json 'd["trials"][0]["config"]["precision"]') == "$precision" ]] || show
    done
    [[ $("$EVENLOAD" explain f32 bf16) == *precision*f32*bf16* ]] || show
    "$EVENLOAD" baseline add f32 --store store >/dev/null
    run --separate-stderr "$EVENLOAD" regress --baseline store --current bf16
    [[ $status -eq 4 && $output == *"precision bf16"* ]] || show
}
