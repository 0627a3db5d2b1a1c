#!/usr/bin/env bats
# Traces as PyTorch's tools read them: what `run --trace` writes, by a parser of our own (Python's), and what `trace-stats` makes of any.
load common
PICTURES=no

SHORT=("${QUICK_MODEL[@]}" --steps 9 --control none --batch 8 --quiet)

# Everything that is promised of a trace file but its lanes' names: see docs/watch.md.
check_trace() { # FILE RANK WORLD "STEPS"
    python3 - "$@" <<'.'
import json, sys
from collections import Counter
name, rank, world, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [int(s) for s in sys.argv[4].split()]
text = open(name).read()
d = json.loads(text)
assert text.index('"rank": %d,' % rank) < text.index("traceEvents")          # HTA looks for it line by line
assert d["distributedInfo"]["rank"] == rank and d["distributedInfo"]["world_size"] == world, d["distributedInfo"]
events = d["traceEvents"]
complete = [e for e in events if e["ph"] == "X"]
for e in complete:
    assert e["dur"] >= 0 and isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["name"] and e["cat"], e
# The steps of the schedule and no other.
marks = [e for e in complete if e["name"].startswith("ProfilerStep#")]
assert [int(e["name"][13:]) for e in marks] == steps, marks
inside = lambda a, b: b["ts"] - 0.0015 <= a["ts"] and a["ts"] + a["dur"] <= b["ts"] + b["dur"] + 0.0015
assert all(any(inside(e, s) for s in marks) for e in complete), [e for e in complete if not any(inside(e, s) for s in marks)][:2]
# Lanes have names, and events of a lane lie beside or in one another.
named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
lanes = {}
for e in complete: lanes.setdefault((e["pid"], e["tid"]), []).append(e)
assert set(lanes) <= named, set(lanes) - named
for lane in lanes.values():
    stack = []
    for e in sorted(lane, key=lambda e: (e["ts"], -e["dur"])):
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= e["ts"] + 0.0015: stack.pop()
        assert not stack or inside(e, stack[-1]), (e, stack[-1])
        stack.append(e)
# What a device does has one op on a thread that it belongs to.
ops = {e["args"]["correlation"]: e for e in complete if e["cat"] == "cpu_op"}
works = [e for e in complete if e["cat"] in ("kernel", "gpu_memcpy")]
assert works and len(ops) == sum(e["cat"] == "cpu_op" for e in complete)
for e in works:
    assert e["args"]["stream"] == e["tid"] and e["args"]["device"] == e["pid"], e
    assert inside(e, ops[e["args"]["correlation"]]), e
kernels = [e for e in ops.values() if "linear_forward" in e["name"]]
assert kernels and all(e["args"]["flops"] > 0 and e["args"]["bytes"] > 0 and len(e["args"]["Input Dims"]) == 3
                       and e["args"]["Call stack"].startswith("ProfilerStep#") for e in kernels), kernels[:1]
# Flows begin where they end, each once; counters grow and shrink.
flows = Counter((e["id"], e["ph"]) for e in events if e["ph"] in "sf")
assert set(flows.values()) <= {1} and all((i, "f") in flows and (i, "s") in flows for i, _ in flows), flows
assert not [e for e in events if e["ph"] == "f" and e.get("bp") != "e"]
assert len({json.dumps(e["args"]) for e in events if e["ph"] == "C"}) > 1
comm = [e["args"] for e in works if e["name"].startswith("ncclDevKernel_")]
assert bool(comm) == (world > 1), comm
for a in comm:
    assert a["In msg nelems"] > 0 and a["dtype"] == "Float" and a["Group size"] == world and a["backend"], a
    assert a["Process Group Ranks"] == str(list(range(world))) and a["Process Group Name"] and a["Rank"] == rank, a
print(sorted({a["Collective name"] for a in comm}), len(flows) // 2)
.
}

@test "run --trace: a file per rank, the schedule's steps in it, and the table by op of the same steps" {
    run --separate-stderr "$EVENLOAD" run "${SHORT[@]}" --mode ddp --devices 2 --procs 1 --trace t --profile wait=1,warmup=2,active=2,repeat=1 \
        --profile sort=name --out o
    [[ $status -eq 0 && $output == *$'\nProfilerStep* '*$'\n  all_reduce '*$'\n  linear_forward '*$'\n  products '*$'\n  no op '*"t/rank-0.pt.trace.json"* ]] || show
    [[ $(ls t) == $'rank-0.pt.trace.json\nrank-1.pt.trace.json' ]]
    [[ $(check_trace t/rank-0.pt.trace.json 0 2 "3 4") == "['allreduce'] "[1-9]* && $(check_trace t/rank-1.pt.trace.json 1 2 "3 4") == "['allreduce'] "* ]]
    python3 - <<'.'
import json
p = json.load(open("o/results.json"))["trials"][0]["profile"]
assert p["steps"] == [3, 4] and p["schedule"]["warmup"] == 2 and p["trace"] == "t", p
for rank, device in enumerate(p["devices"]):
    assert device["rank"] == rank and device["steps"] == 2
    rows = {r["name"]: r for r in device["rows"]}
    events = json.load(open(f"t/rank-{rank}.pt.trace.json"))["traceEvents"]
    of = lambda name: [e["dur"] / 1e3 for e in events if e["name"] == name]
    # Calls and total time of the table are those of the trace.
    for name in ("linear_forward", "linear_backward_weights", "cross_entropy"):
        assert rows[name]["calls"] == len(of(name)) and abs(rows[name]["total_ms"] - sum(of(name))) < 1e-4, (name, rows[name])
        assert rows[name]["self_ms"] == rows[name]["total_ms"] and rows[name]["flops"] > 0
    assert rows["all_reduce"]["calls"] == len(of("ncclDevKernel_AllReduce"))
    # Parts add up to the ops; without --machine no rate is known.
    parts = {p["part"]: p["ms"] for p in device["parts"]}
    assert abs(2 * parts["products"] - sum(r["self_ms"] for n, r in rows.items() if n.startswith("linear_"))) < 1e-6, parts
    assert abs(2 * parts["communication"] - rows["all_reduce"]["self_ms"]) < 1e-6 and all(p["limit_ms"] is None for p in device["parts"])
    step = rows["ProfilerStep*"]
    assert step["calls"] == 2 and step["self_ms"] < step["total_ms"] and abs(step["total_ms"] - sum(of("ProfilerStep#3") + of("ProfilerStep#4"))) < 1e-4
.
}

@test "run --trace of processes: their times are on one clock; stages send and receive; dp's devices are one rank's" {
    "$EVENLOAD" run "${SHORT[@]}" --mode pipeline --devices 2 --procs 2 --launcher own --schedule micro=2 --trace t --profile active=3,repeat=1 --out o >/dev/null
    [[ $(check_trace t/rank-0.pt.trace.json 0 2 "0 1 2") == "['recv', 'send'] "* && $(check_trace t/rank-1.pt.trace.json 1 2 "0 1 2") == "['recv', 'send'] "* ]]
    # What one sends the other has not got before.
    python3 - <<'.'
import json
a, b = ([e for e in json.load(open(f"t/rank-{r}.pt.trace.json"))["traceEvents"] if e.get("cat") == "kernel" and e["name"].startswith("nccl")] for r in (0, 1))
pair = lambda xs, ys: zip([e for e in xs if e["name"].endswith("Send")], [e for e in ys if e["name"].endswith("Recv")])
pairs = list(pair(a, b)) + list(pair(b, a))
assert len(pairs) >= 12 and all(s["ts"] <= r["ts"] + r["dur"] for s, r in pairs), pairs[:1]
assert {s["args"]["Peer"] for s, _ in pair(a, b)} == {1}
.
    "$EVENLOAD" run "${SHORT[@]}" --mode dp --devices 2 --trace d --out p >/dev/null
    [[ $(ls d) == rank-0.pt.trace.json ]]
    [[ $(json d/rank-0.pt.trace.json 'sorted({e["pid"] for e in d["traceEvents"] if e.get("cat") == "kernel"})') == "[0, 1]" ]]
    [[ $("$EVENLOAD" trace-stats d --json | python3 -c 'import json, sys; print([x["device"] for x in json.load(sys.stdin)["devices"]])') == "[0, 1]" ]]
}

@test "cycles after the first have folders of their own; without --profile and --trace a record has nothing of them" {
    "$EVENLOAD" run "${SHORT[@]}" --trace t --profile wait=2,active=1,repeat=3 --out o >/dev/null
    [[ $(ls t) == $'cycle-2\ncycle-3\nrank-0.pt.trace.json' ]]
    check_trace t/rank-0.pt.trace.json 0 1 2
    check_trace t/cycle-3/rank-0.pt.trace.json 0 1 8
    [[ $(json o/results.json 'd["trials"][0]["profile"]["steps"]') == "[2, 5, 8]" ]]
    "$EVENLOAD" run "${SHORT[@]}" --out p >/dev/null
    [[ $(json p/results.json '"profile" in d["trials"][0]') == False ]]
    touch t/rank-1.pt.trace.json t/rank-2.pt.trace.json t/mine.json # as a job of three ranks leaves them
    "$EVENLOAD" run "${SHORT[@]}" --trace t --profile wait=2,active=1,repeat=2 --out q >/dev/null
    [[ $(ls t) == $'cycle-2\nmine.json\nrank-0.pt.trace.json' ]]
}

@test "simulated devices have traces too, and 16 bits are called what PyTorch calls them" {
    "$EVENLOAD" run --mode tp --devices sim:2 --model gpt --layers 1 --embed 16 --heads 2 --seq 8 --vocab 32 --data dummy --batch 2 --precision bf16 \
        --machine h100-sxm --steps 4 --trace t --out r --quiet >/dev/null
    [[ $(json t/rank-0.pt.trace.json 'sorted({e["args"]["dtype"] for e in d["traceEvents"] if "Collective name" in e.get("args", {})})') == "['BFloat16', 'Float']" ]] ||
        { json t/rank-0.pt.trace.json '{e["args"]["dtype"] for e in d["traceEvents"] if "Collective name" in e.get("args", {})}' && return 1; }
}

@test "trace-stats: our own traces as the record has them, packed ones, PyTorch's, and clear words for what it cannot read" {
    "$EVENLOAD" run "${SHORT[@]}" --mode ddp --devices 2 --procs 1 --trace t --profile active=9,repeat=1 --out o >/dev/null
    "$EVENLOAD" trace-stats t --json >stats.json
    python3 - <<'.'
import json
stats = json.load(open("stats.json"))
record = json.load(open("o/results.json"))["trials"][0]["per_device"]
assert not stats["cpu_only"] and len(stats["devices"]) == 2
for s, r in zip(stats["devices"], record):
    # The same nine steps, by the same arithmetic: sums here, means there.
    assert abs(s["exposed_ms"] / 9 - r["comm"]["exposed_ms"]) < 1e-3, (s, r["comm"])
    assert abs(s["overlapped_ms"] / 9 - r["comm"]["overlapped_ms"]) < 1e-3, (s, r["comm"])
    parts = s["compute_ms"] + s["exposed_ms"] + s["copies_ms"] + s["idle_ms"]
    assert abs(parts - s["window_ms"]) < 1e-6 and s["events"]["communication"] > 0, s
.
    mkdir z e && gzip -c t/rank-1.pt.trace.json >z/rank-1.pt.trace.json.gz
    run --separate-stderr "$EVENLOAD" trace-stats z
    [[ $status -eq 0 && $output == *"rank-1.pt.trace.json.gz"*"Counted: "*" kernels as computation"* ]] || show
    printf '[{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":3}]' >e/x.json
    run --separate-stderr "$EVENLOAD" trace-stats e/x.json
    [[ $status -eq 0 && $output == *" CPU "*"100.0"*"1 CPU ops (cat cpu_op)"*"have no device"* ]] || show
    head -c 3000 t/rank-0.pt.trace.json >e/y.json
    refuses "the file is damaged, cut off, or no trace" "$EVENLOAD" trace-stats e
    printf 'x' >z/rank-1.pt.trace.json.gz
    refuses "gzip cannot unpack it" "$EVENLOAD" trace-stats z
    mkdir n
    refuses "no .json" "$EVENLOAD" trace-stats n
    refuses "o is a run's folder, with its record" "$EVENLOAD" trace-stats o
    refuses "--profile sort: there is no table by op" "$EVENLOAD" run --profile sort=name
    refuses "which traces?" "$EVENLOAD" trace-stats
    refuses "No such file" "$EVENLOAD" trace-stats nowhere
}

@test "--profile and --trace say what they cannot do" {
    refuses "must be like wait=1" "$EVENLOAD" run "${SHORT[@]}" --profile wait=1
    refuses "must be like wait=1" "$EVENLOAD" run "${SHORT[@]}" --profile active=2,again=1
    refuses "needs 12 measured steps, and at least 9 are measured: give --steps 12" "$EVENLOAD" run "${SHORT[@]}" --profile wait=2,active=2,repeat=3
    refuses "--no-record keeps none" "$EVENLOAD" run "${SHORT[@]}" --trace t --no-record
    : >file
    refuses "--trace file: is a file" "$EVENLOAD" run "${SHORT[@]}" --trace file
}

# Kept traces of jobs like tests/torch/planted.py's (gloo, PyTorch 2.15), without what is not read of them.
SAMPLES=${BATS_TEST_DIRNAME:-tests/cli}/traces

@test "trace-stats of PyTorch's traces names the rank that is late, or the wire, on clocks that differ and drift too" {
    run --separate-stderr "$EVENLOAD" trace-stats "$SAMPLES/late-1-20"
    [[ $status -eq 0 && $output == *"mean of 10 steps of 24.3 ms; 10 collectives"*"rank 1 comes 20.3 ms late, though it computes no longer; rank 0 waits 20.3 of 24.3 ms for it."* ]] || show
    [[ $output == *"all_reduce            2         16384      10"*" comparable within "* ]] || show
    run --separate-stderr "$EVENLOAD" trace-stats "$SAMPLES/wire"
    [[ $status -eq 0 && $output == *"the network is the limit, not a rank: exposed transfers take 92.1 of 110 ms"*" 2000000       4 "*" 0.02"* ]] || show
    # The second one's clock is 3.7 s ahead and 200 ppm fast, and its times begin at another moment; the first one is unpacked.
    mkdir moved lone several
    python3 - "$SAMPLES/late-0-50" <<'.'
import glob, gzip, json, sys
for rank, name in enumerate(sorted(glob.glob(sys.argv[1] + "/*.gz"))):
    d = json.load(gzip.open(name))
    first = d["traceEvents"][0]["ts"]
    for e in d["traceEvents"] if rank == 1 else []:
        e["ts"] = round(3.7e6 + 2e9 + e["ts"] + (e["ts"] - first) * 2e-4, 3)
    if rank == 1: d["baseTimeNanoseconds"] -= 2 * 10**12
    json.dump(d, open(f"moved/worker{rank}.{17 + rank}.pt.trace.json", "w"))
.
    "$EVENLOAD" trace-stats "$SAMPLES/late-0-50" --json >plain.json
    "$EVENLOAD" trace-stats moved --json >moved.json
    python3 - <<'.'
import json
plain, moved = (json.load(open(n + ".json"))["job"] for n in ("plain", "moved"))
for job in plain, moved:
    assert job["blame"]["kind"] == "stays" and job["blame"]["rank"] == "rank 0" and "the others wait" in job["blame"]["sentence"], job["blame"]
    late = [r["late_ms"] for r in job["ranks"]]
    assert abs(late[0] / 50.9 - 1) < 0.1 and all(-25 < l < 0 for l in late[1:]), late         # 50.9: when the ranks really came
    assert [r["last_pct"] for r in job["ranks"]] == [100, 0, 0, 0] and abs(job["ranks"][0]["caused_ms"] / sum(r["wait_ms"] for r in job["ranks"]) - 1) < 1e-9
clock = moved["clocks"][1]
assert abs(clock["offset_ms"] + 3700) < clock["error_ms"], clock
error = max(c["error_ms"] or 0 for c in moved["clocks"])
for a, b in zip(plain["ranks"], moved["ranks"]):
    assert abs(a["late_ms"] - b["late_ms"]) < error, (a["late_ms"], b["late_ms"], error)
.
    # One trace says nothing of others; several files of a worker are several times of it; two workers of one rank are two jobs.
    cp moved/worker0.17.pt.trace.json lone
    run --separate-stderr "$EVENLOAD" trace-stats lone
    [[ $status -eq 0 && $output != *Ranks* ]] || show
    cp moved/* several
    cp moved/worker1.18.pt.trace.json several/worker1.7.pt.trace.json
    rm several/worker3*
    run --separate-stderr "$EVENLOAD" trace-stats several
    [[ $status -eq 0 && $output == *"No trace is of rank 3: "*"the last of each is read, 1 older one"* ]] || show
    cp moved/worker1.18.pt.trace.json several/another.18.pt.trace.json
    run --separate-stderr "$EVENLOAD" trace-stats several
    [[ $status -eq 0 && $output == *"Several traces are of rank 1, "* && $output != *"last %"* ]] || show
}

@test "trace-stats and imbalance say the same sentence of one launch, by its traces and by its record" {
    "$EVENLOAD" run --model mlp --hidden 512,512 --data dummy --batch 64 --steps 9 --min-time 0 --control none --quiet --mode ddp --devices 2 --procs 2 \
        --launcher own --inject straggler=1:6 --profile active=9,repeat=1 --trace t --out o >/dev/null
    local ours theirs
    ours=$("$EVENLOAD" trace-stats t --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["blame"]["sentence"])')
    theirs=$("$EVENLOAD" imbalance o --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["trials"][0]["time"]["blame"]["sentence"])')
    echo "$ours / $theirs"
    [[ $ours == *"cpu:1 "* && $ours == "$theirs" ]]
}

@test "trace-stats of our own traces has the record's wait and transfer for each rank: ddp, dp, hybrid groups, and shards" {
    local mode
    for mode in "ddp --devices 2 --procs 2 --launcher own --inject straggler=1:3" "ddp --devices 3 --procs 1" "dp --devices 3" "spmg --devices 4" \
        "zero1 --devices 3 --procs 1" "zero3 --devices 2 --procs 2 --launcher own --inject straggler=1:3"; do
        # shellcheck disable=SC2086  # several words
        "$EVENLOAD" run "${SHORT[@]}" --mode $mode --trace "t-${mode%% *}" --profile active=9,repeat=1 --out "o-${mode// /}" >/dev/null
        "$EVENLOAD" trace-stats "t-${mode%% *}" --json >stats.json
        python3 - "o-${mode// /}/results.json" <<'.'
import json, sys
job, record = json.load(open("stats.json"))["job"], json.load(open(sys.argv[1]))["trials"][0]["per_device"]
assert job["common_clock"] and job["steps"] == 9 and job["operations"] > 0 and job["alone"] == 0 and len(job["ranks"]) == len(record), job
for row, device in zip(job["ranks"], record):
    comm = device["comm"]
    assert row["rank"] == device["device"], row
    for ours, theirs in (row["wait_ms"], comm["wait_ms"]), (row["wait_exposed_ms"], comm["wait_exposed_ms"]), (row["exposed_ms"], comm["exposed_ms"]), \
            (row["transfer_ms"], comm["transfer_ms"]), (row["compute_ms"], device["compute_ms"]):
        assert abs(ours - theirs) <= 0.02 * theirs + 1e-5, (row, comm)
.
    done
    run --separate-stderr "$EVENLOAD" trace-stats t-ddp
    [[ $status -eq 0 && $output == *"on one clock."* ]] || show
}

@test "trace-stats A B: parts that add up, both sentences, a waterfall's file; clear words where there are no steps" {
    "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" "$SAMPLES/late-0-50" --json --out changed >ab.json
    python3 - <<'.'
import json
d = json.load(open("ab.json"))
assert d == json.load(open("changed/explain.json")) and d["kind"] == "difference" and d["ci_reason"] is None
assert (d["a"]["device"], d["b"]["device"]) == ("rank 1", "rank 0") and "rank 1 comes 20" in d["a"]["sentence"] and "rank 0 comes 5" in d["b"]["sentence"]
parts = {p["part"]: p for p in d["parts"]}
assert abs(sum(p["ms"] for p in d["parts"]) + d["rest"]["ms"] - d["whole"]["ms"]) < 1e-9
assert 25 < parts["idle"]["ms"] < 35 and parts["idle"]["ci95"][0] > 0          # 20 ms late, then 50, asleep in a hook
.
    run --separate-stderr "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" "$SAMPLES/wire"
    [[ $status -eq 0 && $output == *$'\ncompute '*"fewer than 5 steps"* ]] || show
    output=$(tr -s ' \n' ' ' <<<"$output") # a folder's name moves the ends of lines
    [[ $output == *"late-1-20: rank 1 of 2, 10 steps; rank 1 comes "*"the network is the limit, not a rank"* ]] || show
    printf '[{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":3}]' >x.json
    refuses "no ProfilerStep annotations" "$EVENLOAD" trace-stats x.json "$SAMPLES/wire"
}

@test "trace-stats --without: a simulated job without its disturbance is the undisturbed one, and the kept traces lose what was planted" {
    local mode case
    for mode in ddp zero3 tp; do
        for case in none delay=1:0.3 straggler=1:2; do
            # shellcheck disable=SC2046  # two words or none
            "$EVENLOAD" run --model mlp --hidden 512,512 --data dummy --batch 64 --mode $mode --devices sim:4 --steps 4 --control none --quiet \
                --profile active=4,repeat=1 --trace "$mode-${case%=*}" --out "o-$mode-${case%=*}" $([[ $case == none ]] || echo --inject "$case") >/dev/null
            "$EVENLOAD" trace-stats "$mode-${case%=*}" --without rank:sim:1 --json >"$mode-${case%=*}.json"
        done
    done
    python3 - <<'.'
import json
for mode in "ddp", "zero3", "tp":
    even, late, long = (json.load(open(f"{mode}-{case}.json")) for case in ("none", "delay", "straggler"))
    step = even["job"]["step_ms"]
    for job in late, long:
        w = job["without"][0]
        assert job["job"]["step_ms"] > 1.05 * step and w["cause"] == "sim:1" and abs(w["step_ms"] / step - 1) < 0.005, (mode, step, w)
        assert abs(job["job"]["step_ms"] - w["step_ms"] - w["gain_ms"]) < 1e-9
    assert abs(even["without"][0]["gain_ms"]) < 1e-6
.
    "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" --without waits,rank:1 --json >late.json
    [[ $(json late.json '[(w["cause"], round(w["gain_ms"])) for w in d["without"]]') == "[('rank 1', 20), ('waits', 10)]" ]] || show
    run --separate-stderr "$EVENLOAD" trace-stats "$SAMPLES/late-0-50" --without all,op:aten::addmm
    [[ $status -eq 0 && $output == *$'\nWhat the step of 64 ms '*$'\nrank 0 '*$'\nop aten::addmm '* ]] || show
    refuses "no event of PyTorch's DataLoader is in these traces" "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" --without data
    refuses "these traces have no such rank" "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" --without rank:7
    refuses "no kernel and no annotation has this in its name" "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" --without waits,op:a,b
    refuses "not a cause" "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" --without idle
    refuses "of one job" "$EVENLOAD" trace-stats "$SAMPLES/late-1-20" "$SAMPLES/wire" --without all
}

@test "trace-stats --merge: every event once, on one clock, processes apart, waits that add up, arrows between slices" {
    mkdir job
    cp "$SAMPLES"/late-0-50/* job
    # The second one's clock is 3.7 s ahead, and flows of all ranks have the same numbers.
    python3 - <<'.'
import glob, gzip, json
for rank, name in enumerate(sorted(glob.glob("job/*.gz"))):
    d = json.load(gzip.open(name))
    for e in d["traceEvents"] if rank == 1 else []: e["ts"] = round(e["ts"] + 3.7e6, 3)
    x = next(e for e in d["traceEvents"] if e["ph"] == "X")
    d["traceEvents"] += [dict(x, ph="s", id=7, cat="ac2g"), dict(x, ph="f", id=7, cat="ac2g", bp="e"),
                         dict(ph="M", name="process_name", pid=x["pid"], args={"name": 'py"thon'})]
    json.dump(d, gzip.open(name, "wt"))
.
    run --separate-stderr "$EVENLOAD" trace-stats job --merge job/merged.json.gz
    [[ $status -eq 0 && $output == *"job/merged.json.gz: "*" events of 4 traces on one clock, to "*"Open it in ui.perfetto.dev."* ]] || show
    # It is in the folder of the traces, and is none of them.
    "$EVENLOAD" trace-stats job --merge again.json --json >job.json
    python3 - <<'.'
import collections, glob, gzip, json
text = gzip.open("job/merged.json.gz", "rt").read()
assert text == open("again.json").read()
d, job = json.loads(text), json.load(open("job.json"))
events, ours = d["traceEvents"], ("evenload.collective", "evenload.wait", "evenload.transfer")
assert job["foreign"] == ["merged.json.gz"] and len(d["evenloadMerged"]["clocks"]) == 4
theirs = [e for name in sorted(glob.glob("job/*pt.trace.json.gz")) for e in json.load(gzip.open(name))["traceEvents"]]
named = lambda e: e["ph"] == "M" and e["name"] in ("process_name", "process_sort_index")
kept = [e for e in events if e.get("cat") not in ours and e["ph"] != "M"]
assert len(kept) == len([e for e in theirs if e["ph"] != "M"]) <= job["merged"]["events"]
assert collections.Counter(e["name"] for e in kept) == collections.Counter(e["name"] for e in theirs if e["ph"] != "M")
# The offset is taken back: the first step of all ranks begins at one time, to some ms.
steps = [e["ts"] for e in kept if e["name"].startswith("ProfilerStep#")]
assert max(steps) - min(steps) < 1e6, (min(steps), max(steps))
names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
assert {e["pid"] for e in events} == set(names) and 'rank 2: py"thon' in names.values() and "rank 3: collectives" in names.values()
assert len(set(names.values())) == len(names)
assert sorted(collections.Counter(e["id"] for e in kept if e["ph"] in "sf").values()) == [2] * 4
# Waits, as the table has them; rows do not overlap.
of = lambda cat: [e for e in events if e.get("cat") == cat and e["ph"] == "X"]
waits, transfers, calls = of("evenload.wait"), of("evenload.transfer"), of("evenload.collective")
told = sum(r["wait_ms"] for r in job["job"]["ranks"]) * job["job"]["steps"]
assert len(waits) == job["merged"]["waits"] and abs(sum(e["dur"] for e in waits) / 1e3 - job["merged"]["wait_ms"]) < 1e-2
assert abs(job["merged"]["wait_ms"] / told - 1) < 1e-3 and {e["name"] for e in waits} == {"waits for rank 0"}
assert len(calls) == sum(r["calls"] - r["alone"] for r in job["job"]["ranks"])
rows = collections.defaultdict(list)
for e in calls: rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
for spans in rows.values():
    spans.sort()
    assert all(a[1] <= b[0] + 1e-3 for a, b in zip(spans, spans[1:]))
# An arrow leads from the transfer of the last one to that of the one that waited.
begins = {(e["pid"], e["tid"], e["ts"]) for e in transfers}
arrows = [e for e in events if e.get("cat") == "evenload.wait" and e["ph"] in "sf"]
assert len(arrows) == 2 * len(waits) and all((e["pid"], e["tid"], e["ts"]) in begins for e in arrows)
assert {names[e["pid"]] for e in arrows if e["ph"] == "s"} == {"rank 0: collectives"}
assert all(e["bp"] == "e" and names[e["pid"]] != "rank 0: collectives" for e in arrows if e["ph"] == "f")
.
    # A trace that shares no collective has no clock; a full disk and a missing gzip are said, and nothing is left.
    printf '{"distributedInfo": {"rank": 4}, "traceEvents": [{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":3}]}' >job/w4.json
    refuses "job/w4.json cannot be placed beside the others" "$EVENLOAD" trace-stats job --merge x.json
    rm job/w4.json
    refuses "is no trace of a rank" "$EVENLOAD" trace-stats again.json
    run --separate-stderr "$EVENLOAD" trace-stats job --merge /dev/full
    [[ $status -ne 0 && $stderr == *"/dev/full could not be written: No space left on device"* ]] || show
    refuses "no collective is in two of these traces" "$EVENLOAD" trace-stats "$(find "$SAMPLES/late-1-20" -type f | sort | head -n 1)" --merge x.json
    gunzip -k job/*pt.trace.json.gz && rm job/*.gz && mkdir empty
    run --separate-stderr env PATH="$PWD/empty" "$EVENLOAD" trace-stats job --merge x.json.gz
    [[ $status -eq 2 && $stderr == *"gzip is not installed: give a name without .gz"* && -z $(ls x.json* 2>/dev/null) ]] || show
}

# 200 ranks, of which rank 3 is 32 ms late in four of twenty steps.
@test "trace-stats: the steps in which a rank is late are named and drawn, of many ranks the latest of each few" {
    mkdir many few
    python3 - <<'.'
import json
for r in range(200):
    events = []
    for s in range(5, 25):
        t, bad = s * 100000, s in (7, 11, 12, 20)
        events += [dict(ph="X", cat="user_annotation", name=f"ProfilerStep#{s}", ts=t, dur=100000, pid=1, tid=1), dict(ph="X", cat="cpu_op", name="aten::mm", ts=t + 100, dur=10000, pid=1, tid=1)]
        begin, end = t + 20000 + (32000 if r == 3 and bad else r if r != 3 else 0), t + (55000 if bad else 22500)
        events.append(dict(ph="X", cat="cpu_op", name="gloo:all_reduce", ts=begin, dur=end - begin, pid=1, tid=20, args={"Input Dims": [[1000]]}))
    text = json.dumps(dict(distributedInfo=dict(rank=r, world_size=200), traceEvents=events))
    for folder in ("many", "few") if r < 4 else ("many",): open(f"{folder}/r{r}.json", "w").write(text.replace('"world_size": 200', '"world_size": 4') if folder == "few" else text)
.
    run --separate-stderr "$EVENLOAD" trace-stats few --out f
    [[ $status -eq 0 && $output == *"rank 3 is late at times"*"It is late in steps 7, 11, 12 and 20."* ]] || show
    [[ $(json f/trace-stats.json '[round(x) for x in d["job"]["by_step"]["late_ms"][3]][:8], d["job"]["by_step"]["steps"][:2]') == "([0, 0, 32, 0, 0, 0, 32, 32], [5, 6])" ]]
    [[ $(grep -c "^2[[:space:]]3[[:space:]]3[12]" f/plots/lateness.dat) -eq 1 && $(grep -c "^1[[:space:]]3[[:space:]]" f/plots/lateness.dat) -eq 1 ]] || { cat f/plots/lateness.dat && false; }
    "$EVENLOAD" trace-stats many --out m >/dev/null
    grep -q "A cell shows the latest of 2 ranks in 1 step" m/plots/lateness.dat
    [[ $(grep -c "^2[[:space:]]1[[:space:]]3[12]" m/plots/lateness.dat) -eq 1 ]]
    if command -v gnuplot >/dev/null; then
        with_gnuplot
        LC_ALL=C.UTF-8 gnuplot -d -c "$BATS_TEST_DIRNAME/../../plots/lateness.gnuplot" m/plots/lateness.dat svg >late.svg 2>errors
        [[ ! -s errors && $(grep -c "the latest of 2 ranks" late.svg) -eq 1 && $(grep -c ">late (ms)<" late.svg) -eq 1 ]] || { cat errors && false; }
    fi
}

# Holistic Trace Analysis on our traces. It leaves out the last step unless told, and rounds times to microseconds unless told.
@test "HTA's breakdown and overlap are within 1 point of ours: ddp and pipeline" {
    long "HTA on traces of ddp and pipeline, 15 s"
    local python=${EVENLOAD_HTA:-python3} mode
    "$python" -c 'import hta' 2>/dev/null || skip "no Python here has HTA: EVENLOAD_HTA=a python with HolisticTraceAnalysis"
    for mode in ddp pipeline; do
        "$EVENLOAD" run --mode "$mode" --devices 2 --model mlp --hidden 1024,1024,1024 --data dummy --batch 64 --steps 6 --min-time 0 --control none \
            --quiet --profile wait=1,warmup=1,active=4,repeat=1 --trace "$mode" --out "o-$mode" >/dev/null
        "$EVENLOAD" trace-stats "$mode" --json >"$mode.stats"
        HTA_DISABLE_NS_ROUNDING=1 "$python" - "$mode" >"$mode.txt" 2>"$mode.err" <<'.' || { cat "$mode.txt" && tail "$mode.err" && false; }
import json, sys
from hta.trace_analysis import TraceAnalysis
hta = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
times, overlap = hta.get_temporal_breakdown(visualize=False), hta.get_comm_comp_overlap(visualize=False)
ours = {d["rank"]: d for d in json.load(open(sys.argv[1] + ".stats"))["devices"]}
assert set(times["rank"]) == set(ours) == {0, 1}
for (_, t), (_, o) in zip(times.iterrows(), overlap.iterrows()):
    u = ours[t["rank"]]
    for theirs, mine in ((t["idle_time_pctg"], u["idle_pct"]), (t["compute_time_pctg"], u["compute_pct"]),
                         (t["non_compute_time_pctg"], u["exposed_pct"] + u["copies_pct"]), (o["comp_comm_overlap_pctg"], u["overlap_pct"])):
        print(sys.argv[1], t["rank"], theirs, mine)
        assert abs(theirs - mine) < 1, (theirs, mine)
.
        cat "$mode.txt"
    done
}

# HTA's own test data, GPU traces of real jobs, where a copy of it lies in EVENLOAD_HTA_DATA (the folder tests/data of its repository): each trace by both.
@test "HTA's breakdown and overlap are within 1 point of ours: published GPU traces" {
    long "HTA on its own test data, a minute"
    local python=${EVENLOAD_HTA:-python3} n=0 name
    "$python" -c 'import hta' 2>/dev/null || skip "no Python here has HTA: EVENLOAD_HTA=a python with HolisticTraceAnalysis"
    [[ -d ${EVENLOAD_HTA_DATA-} ]] || skip "HTA's test data are not here: EVENLOAD_HTA_DATA=its folder tests/data"
    for name in nccl_parser_config trace_diff/test trace_diff/control timeline_analysis negative_queue_length_values_check ns_resolution_trace \
        df_index_resolver amd_trace; do
        [[ -d $EVENLOAD_HTA_DATA/$name ]] || continue
        "$EVENLOAD" trace-stats "$EVENLOAD_HTA_DATA/$name" --json >stats.json
        HTA_DISABLE_NS_ROUNDING=1 "$python" - "$EVENLOAD_HTA_DATA/$name" >out.txt 2>err.txt <<'.' || { cat out.txt && tail err.txt && false; }
import json, sys
from hta.trace_analysis import TraceAnalysis
hta = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
times, ours = hta.get_temporal_breakdown(visualize=False), json.load(open("stats.json"))["devices"]
assert len(times) == len(ours) == 1
t, u = times.iloc[0], ours[0]
pairs = [(t["idle_time_pctg"], u["idle_pct"]), (t["compute_time_pctg"], u["compute_pct"]), (t["non_compute_time_pctg"], u["exposed_pct"] + u["copies_pct"])]
if u["events"]["communication"]: pairs.append((hta.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"], u["overlap_pct"]))
print(sys.argv[1], pairs)
assert all(abs(a - b) < 1 for a, b in pairs), pairs
.
        cat out.txt
        n=$((n + 1))
    done
    [[ $n -gt 0 ]] || skip "none of the traces looked for is in EVENLOAD_HTA_DATA"
}
