#!/usr/bin/env bats
# What `watch` records of a training in Python, by its hook (profiles/hook): here a package that is called torch and has what the hook takes of
# PyTorch; tests/cli/torch.bats has PyTorch itself.
load common
PICTURES=no

# Two ranks on a grid of 40 ms: each enters its all-reduce, rank 1 LATE ms after rank 0, and all go on 30 ms later.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    mkdir -p packages/torch/{optim,utils/data,distributed,_C,autograd,cuda}
    cat >packages/torch/__init__.py <<'.'
__version__ = "0.fake"
from . import _C, autograd, cuda, distributed, optim, profiler
.
    cat >packages/torch/autograd/__init__.py <<'.'
def backward(work): work()
.
    cat >packages/torch/cuda/__init__.py <<'.'
import os
class Properties:
    name = "A card"
def is_initialized(): return "CARD" in os.environ
def device_count(): return 2
def max_memory_reserved(device): return [300 << 20, 0][device]
def max_memory_allocated(device): return [200 << 20, 0][device]
def get_device_properties(device): return Properties
.
    # Steps of 1 ms; the all-reduce of rank 1 begins 0.3 ms late.
    cat >packages/torch/profiler.py <<'.'
import json, os
def schedule(skip_first, wait, warmup, active, repeat): return skip_first + wait + warmup, active
class profile:
    def __init__(self, schedule, on_trace_ready, record_shapes): self.plan, self.ready, self.n = schedule, on_trace_ready, 0
    def start(self): pass
    def step(self):
        self.n += 1
        if self.n == sum(self.plan): self.ready(self)
    def export_chrome_trace(self, path):
        rank, events = int(os.environ["RANK"]), []
        def event(cat, name, ts, dur): events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1})
        for k in range(self.plan[1]):
            event("user_annotation", f"ProfilerStep#{k}", 1000 * k, 1000)
            event("cpu_op", "aten::linear", 1000 * k, 100)
            event("cpu_op", "gloo:all_reduce", 1000 * k + 200 + 300 * rank, 600 - 300 * rank)
        with open(path, "w") as file:
            json.dump({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, file)
.
    cat >packages/torch/optim/__init__.py <<'.'
from . import optimizer
.
    cat >packages/torch/optim/optimizer.py <<'.'
before, after = [], []
def register_optimizer_step_pre_hook(hook): before.append(hook)
def register_optimizer_step_post_hook(hook): after.append(hook)
class SGD:
    def __init__(self, inner=None): self.inner = inner
    def step(self):
        for hook in before: hook(self, (), {})
        if self.inner: self.inner.step()
        for hook in after: hook(self, (), {})
.
    : >packages/torch/utils/__init__.py
    : >packages/torch/utils/data/__init__.py
    cat >packages/torch/utils/data/dataloader.py <<'.'
import time
class Batch:
    shape = (8, 3)
class _BaseDataLoaderIter:
    def __next__(self):
        time.sleep(0.002)
        return [Batch(), Batch()]
.
    cat >packages/torch/distributed/__init__.py <<'.'
import os, sys
from . import distributed_c10d
from .distributed_c10d import destroy_process_group
def is_available(): return True
def is_initialized(): return distributed_c10d.there
def get_rank(): return int(os.environ["RANK"])
def get_backend(): return "gloo"
.
    cat >packages/torch/distributed/distributed_c10d.py <<'.'
there = True
def destroy_process_group():
    global there
    there = False
.
    cat >packages/torch/_C/__init__.py <<'.'
from . import _distributed_c10d
.
    cat >packages/torch/_C/_distributed_c10d.py <<'.'
import json
entries = []
def _dump_fr_trace_json(collectives, active, backend):
    assert collectives and backend == "gloo"
    return json.dumps({"version": "2.10", "entries": entries}).encode()
.
    cat >train.py <<'.'
import os, signal, sys, time
steps, late, killed = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:] == ["killed"]
import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter
# Both begin when the later one is ready.
open("ready-" + os.environ["RANK"], "w").close()
while not (os.path.exists("ready-0") and os.path.exists("ready-1")): time.sleep(0.002)
rank, begin, optimizer, loader = int(os.environ["RANK"]), max(os.stat(f"ready-{r}").st_mtime for r in (0, 1)) + 0.1 + float(os.environ.get("AHEAD", 0)), torch.optim.optimizer.SGD(torch.optim.optimizer.SGD()), _BaseDataLoaderIter()
def until(s): time.sleep(max(0, begin + s - time.time()))
for k in range(steps):
    x = next(loader)[0]
    torch.autograd.backward(lambda: until(0.04 * k + 0.01 + (late / 1e3 if rank == 1 else 0)))
    torch._C._distributed_c10d.entries.append({
        "record_id": k, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": k + 1, "p2p_seq_id": 0, "is_p2p": False, "op_id": k + 1,
        "profiling_name": "gloo:all_reduce", "time_created_ns": time.time_ns(), "input_sizes": [[10]], "input_dtypes": ["Float"], "output_sizes": [[10]],
        "output_dtypes": ["Float"], "state": "scheduled", "retired": True, "timeout_ms": 1000})
    until(0.04 * k + 0.038)
    optimizer.step()
    torch.optim.optimizer.SGD().step() # another one, beside it
    if killed and rank == 1 and k == steps - 1: os.kill(os.getpid(), signal.SIGKILL)
sys.stdout.write(f"loss {0.5 * rank}\n")
if hasattr(torch.distributed, "destroy_process_group"): torch.distributed.destroy_process_group()
.
    cat >job <<'.'
#!/bin/sh
rm -f ready-*
RANK=0 python3 $PYTHON train.py "$@" & first=$!
RANK=1 python3 $PYTHON train.py "$@" & second=$!
wait $first; a=$?
wait $second; b=$?
exit $((a > b ? a : b))
.
    chmod +x job
}

here() {
    cp -r "$BATS_FILE_TMPDIR"/{packages,train.py,job} .
    export PYTHONPATH=$PWD/packages
}

@test "watch: steps, samples, the wait for data and the late rank of a training that was not changed" {
    here
    run --separate-stderr "$EVENLOAD" watch --out w --no-plot -- ./job 12 20
    local said
    said=$(tr -s ' \n' ' ' <<<"$stderr")
    [[ $status -eq 0 && $output == *"loss 0.5"* && $said == *"rank 1 comes "*" ms late; rank 0 waits "*"Of the last 11 steps"*"* The lateness of rank 1 arises in backward ("* && $said != *"Not recorded"* ]] || show
    [[ $(ls w) == $'devices.csv\nresults.json\ntrials.csv' ]]
    python3 - <<'.'
import json
d = json.load(open("w/results.json"))
t, trial = d["watch"]["training"], d["trials"][0]
assert [(r["rank"], r["steps"]) for r in t["ranks"]] == [(0, 12), (1, 12)] and t["trouble"] == [] and t["late_reason"] is None, t
assert all(35 < r["step_ms"] < 60 and 1.9 < r["data_ms"] < 12 for r in t["ranks"]), t["ranks"]
assert 300 < t["samples_per_s"] < 430, t["samples_per_s"]                             # 8 of each rank in 40 ms
assert trial["step_ms"] == t["step_ms"] and trial["throughput"]["samples_per_s"] == t["samples_per_s"]
late = t["late"]["ranks"][1]["late_ms"]
assert t["late"]["blame"]["rank"] == "rank 1" and t["late"]["steps"] == 11 and 12 < late < 30, late
assert not [r["compute_ms"] for r in t["late"]["ranks"] if r["compute_ms"] is not None]
.
    run --separate-stderr "$EVENLOAD" watch --out even --no-plot -- ./job 8 0
    [[ $status -eq 0 && $stderr == *"no rank is late by what is worth speaking of"* ]] || show
    [[ $("$EVENLOAD" report w 2>&1) == *w/report.html* ]]
    # Before and after: 20 ms more in backward.
    run --separate-stderr "$EVENLOAD" explain even w --out x
    [[ $status -eq 0 && $output == *"From A to B: a step of the rank that waits least"* && $(json x/explain.json '{p["part"]: 12 < p["ms"] < 30 for p in d["parts"]}["backward"]') == True ]] || show
    refuses "w/results.json was watched from outside" "$EVENLOAD" explain "${BATS_TEST_DIRNAME:-tests/cli}/../../results/reference/cpu-2-cores:dp:128" w --out y
    # A card's allocator has peaks; of a rank alone nobody is late.
    CARD=1 RANK=0 run --separate-stderr "$EVENLOAD" watch --out card --no-plot -- sh -c 'touch ready-1; exec python3 train.py 3 0'
    [[ $status -eq 0 && $(tr -s ' ' <<<"$stderr") == *"alloc MiB reserved"*" 200.0 300.0"*"Who comes late is not known: one process steps."* ]] || show
}

@test "watch --live: the ranks' table while the command trains, on a terminal alone, and a record of what there is so far" {
    here
    script -qec "'$EVENLOAD' watch --live --quiet --no-plot --out w -- ./job 170 20" /dev/null >terminal </dev/null & pid=$!
    for ((k = 0; k < 200; k++)); do [[ ! -e w/results.json ]] || break; sleep 0.05; done
    [[ $(json w/results.json 'd["trials"][0]["reason"], 20 < d["watch"]["training"]["ranks"][1]["steps"] < 170') == "('the command still ran when this was written', True)" ]] || { cat w/results.json && false; }
    wait $pid
    [[ $(grep -c " rank .*late ms" terminal) -ge 1 && $(json w/results.json '[a["name"] for a in d["watch"]["sampler"]["activities"]][-2:], d["trials"][0]["status"]') == "(['ranks', 'the record so far'], 'ok')" ]] || { cat terminal && false; }
    run --separate-stderr "$EVENLOAD" watch --live --quiet --no-plot --out piped -- ./job 20 0
    [[ $status -eq 0 && -z $stderr ]] || show
}

# host I COMMAND...: that host's watch; the second host's clock is 7 s ahead.
host() {
    [[ $1 == 0 ]] || export LD_PRELOAD=$PWD/ahead.so AHEAD=7
    RANK=$1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 exec "$EVENLOAD" watch --hosts "$1/2" --out w --no-plot -- "${@:2}" >"said-$1" 2>&1
}

@test "watch --hosts: one record of two hosts whose clocks differ, and of one where the other is gone" {
    here
    cat >ahead.c <<'.'
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME) time->tv_sec += 7;
    return status;
}
.
    cc -shared -fPIC -o ahead.so ahead.c
    (host 1 python3 train.py 12 20) & second=$!
    (host 0 python3 train.py 12 20) || { cat said-0 && false; }
    wait $second
    [[ $(tr -s ' \n' ' ' <said-0) == *"rank 1 comes "*" ms late; rank 0 waits "*" backward ("*"Of 2 hosts; their clocks are related within "* && $(<said-1) == "loss 0.5" ]] || { cat said-0 said-1 && false; }
    [[ $(ls w) == $'devices.csv\nresults.json\ntrials.csv' ]]
    python3 - <<'.'
import json
d = json.load(open("w/results.json"))
w, trial = d["watch"], d["trials"][0]
late = [r["late_ms"] for r in w["training"]["late"]["ranks"]]
assert 12 < late[1] < 30 and len(w["hosts"]) == 2 and w["hosts"][1]["clock_error_us"] < 5000, (late, w["hosts"])
assert [p["rank"] for p in trial["per_device"]] == [0, 1] and trial["devices"] == w["compared"]["n"] == 2 and trial["imbalance"]["memory"]
assert abs(w["cpu_s"] - sum(h["cpu_s"] for h in w["hosts"])) < 1e-9 and all(p["host"] for p in w["processes"]), w
.
    rm -r w ready-*
    (host 1 sh -c 'kill -9 $PPID') & second=$!
    (host 0 sh -c 'touch ready-1; exec python3 train.py 3 0') || { cat said-0 && false; }
    wait $second || true
    [[ $(<said-0) == *"the record is of this host alone"*"one process steps"* && $(json w/results.json 'len(d["trials"]), "hosts" in d["watch"]') == "(1, False)" ]] || { cat said-0 && false; }
    refuses "--hosts 2: no launcher says which of them this is" "$EVENLOAD" watch --hosts 2 --out x -- true
    refuses "--hosts 2/2: it is the number of hosts" "$EVENLOAD" watch --hosts 2/2 --out x -- true
    refuses "--out DIR names the folder that all hosts share" "$EVENLOAD" watch --hosts 0/2 -- true
    [[ ! -e x ]]
}

@test "watch --profile: traces of the schedule's steps are kept, and who is late is said by them" {
    here
    run --separate-stderr "$EVENLOAD" watch --out w --no-plot --profile wait=1,active=4 -- ./job 8 0
    [[ $status -eq 0 && $(tr -s ' \n' ' ' <<<"$stderr") == *"rank 1 comes 0.30 ms late"*"Of torch.profiler's 4 steps"* ]] || show
    "$EVENLOAD" plot w >/dev/null 2>&1 || true # there is no gnuplot in this file
    [[ $(echo w/plots/*.dat) == "w/plots/ranks.dat w/plots/watch.dat" ]]
    [[ $(echo w/traces/*) == "w/traces/rank-0.pt.trace.json w/traces/rank-1.pt.trace.json" ]]
    [[ $("$EVENLOAD" trace-stats w/traces) == *"rank 1 comes 0.30 ms late"* ]]
    run --separate-stderr "$EVENLOAD" watch --out short --no-plot --profile wait=1,active=4 -- ./job 3 0
    [[ $status -eq 0 && $stderr == *"Not recorded: torch.profiler: RuntimeError: the job ended before"* ]] || show
    for words in "--profile wait=1" "--profile active=1,repeat=2" "--no-hook --profile active=1"; do
        # shellcheck disable=SC2086 # several words
        run --separate-stderr "$EVENLOAD" watch --out x $words -- true
        [[ $status -eq 2 && ${#stderr_lines[@]} == 1 && $stderr == *--profile* && ! -e x ]] || show
    done
}

# A training of one process: a step takes as many ms as its first word says.
one() {
    cat >one.py <<'.'
import sys, time
import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter
torch.distributed.is_initialized = lambda: False
optimizer, loader = torch.optim.optimizer.SGD(), _BaseDataLoaderIter()
for k in range(6):
    next(loader)
    time.sleep(float(sys.argv[1]) / 1e3)
    optimizer.step()
sys.stdout.write("epoch 1\n")
.
}

@test "regress --ab judges the steps of a training that prints no figure" {
    here && one
    run --separate-stderr "$EVENLOAD" regress --ab "python3 one.py 4" "python3 one.py 8" --blocks 10 --quiet --out r
    [[ $status -eq 1 && $output == *step_ms*REGRESSION* ]] || show
    [[ $(json r/regress.json '[c["name"] for c in d["cells"]]') == "['step_ms']" && ! -e r/hook ]]
    run --separate-stderr "$EVENLOAD" regress --ab "python3 one.py 4" "python3 one.py 4" --blocks 2 --metric samples_per_s,data_ms --quiet --out s
    [[ $output == *data_ms*samples_per_s* || $output == *samples_per_s*data_ms* ]] || show
    run --separate-stderr "$EVENLOAD" regress --ab "python3 one.py 4" "python3 one.py 4" --blocks 2 --no-hook --out t
    [[ $status -eq 2 && $stderr == *"nothing can be judged: of 'epoch'"* ]] || show
}

@test "scale -- COMMAND and compare NAME='COMMAND': trainings in turns, what they come to, and going on" {
    here && one
    # As many devices, as much shorter a step: an ideal speed-up but for the data's 2 ms.
    printf '%s\n' '#!/bin/sh' 'exec python3 one.py $((16 / $1))' >scaled
    chmod +x scaled
    run --separate-stderr "$EVENLOAD" scale --devices 1,4 --repeats 5 --batch 32 --out s -- ./scaled '{devices}' 'a b {batch}'
    [[ $status -eq 0 && $output == *"dev.  step ms"*"4 devices: "*" times the rate of 1, "*"Next: "* && ${#stderr_lines[@]} == 10 ]] || show
    python3 - <<'.'
import json
d = json.load(open("s/results.json"))
one, four = d["study"]["rows"]
assert [r["command"] for r in (one, four)] == ["./scaled 1 'a b 32'", "./scaled 4 'a b 8'"]
assert 17 < one["step_ms"]["median"] < 30 and 5.9 < four["step_ms"]["median"] < 12 and one["launches"] == four["launches"] == 5, (one, four)
assert 1.8 < four["speedup"] < 3.5 and abs(four["efficiency"] - four["speedup"] / 4) < 1e-9 and four["speedup_ci95"][0] > 1
assert abs(four["lost_ms"] - four["step_ms"]["median"] * (1 - four["efficiency"])) < 1e-6 and one["lost_ms"] == 0
assert [t["mode"] for t in d["trials"]] == ["devices-1", "devices-4"] and d["trials"][0]["throughput"]["samples_per_s"] > 100
.
    [[ $("$EVENLOAD" scale s) == *"4 devices: "* && $("$EVENLOAD" report s 2>&1) == *s/report.html* ]]
    rm s/repeats/devices-4-2.json
    run --separate-stderr "$EVENLOAD" scale --devices 1,4 --repeats 5 --batch 32 --out s -- ./scaled '{devices}' 'a b {batch}'
    [[ $status -eq 0 && $stderr == *"devices-4, launch 2" && ${#stderr_lines[@]} == 1 ]] || show
    run --separate-stderr "$EVENLOAD" compare quick='python3 one.py 4' slow='python3 one.py 12' broken='exit 3' --repeats 5 --quiet --out c
    [[ $status -eq 1 && $(tr -s ' \n' ' ' <<<"$output") == *"slow: "*" times the rate of quick; it is slower."*"broken: launch "*" ended with exit status 3: see "*logs/broken-*.log* ]] || show
    # One that hangs ends in time, and what a launch leaves does not run beside the next one.
    run --separate-stderr "$EVENLOAD" compare hangs='sleep 4711.5 & sleep 600' leaves='sleep 4711.5 & exec python3 one.py 1' --repeats 1 --timeout 2 --quiet --out h
    [[ $status -eq 1 && $output == *"hangs: launch 1 did not end in time (--timeout): see "* && -z $(pgrep -f "sleep 4711.5") ]] || show
    # Interrupted: what was measured is kept, and the same command goes on.
    "$EVENLOAD" compare quick='python3 one.py 1' slow='python3 one.py 400' --repeats 2 --out i 2>err >/dev/null & pid=$!
    for ((k = 0; k < 200; k++)); do ! grep -q "slow, launch" err || break; sleep 0.05; done
    kill -TERM $pid
    wait $pid && status=0 || status=$?
    [[ $status -eq 130 && $(tail -n 1 err) == "evenload: interrupted; what was measured is kept. Go on with: the same command and --out i" ]] || { cat err && show; }
    run --separate-stderr "$EVENLOAD" compare quick='python3 one.py 5' slow='python3 one.py 12' --out c
    [[ $status -eq 2 && $stderr == *"c holds a study of other commands"* ]] || show
}

@test "scale and compare of commands: what cannot be asked is a line, and leaves nothing" {
    refused() {
        run --separate-stderr "$EVENLOAD" "$@" --out x
        [[ $status -eq 2 && ${#stderr_lines[@]} == 1 && ! -e x ]] || show
    }
    refused compare one='true'
    refused compare one='true' one='false'
    refused compare one='true' 'a b=true'
    refused compare one='true' two='true' --model mlp
    refused compare one='true' two='true' --devices 2
    scaled() {
        run --separate-stderr "$EVENLOAD" scale --out x "$@"
        [[ $status -eq 2 && ${#stderr_lines[@]} == 1 && ! -e x ]] || show
    }
    scaled -- true '{devices}'
    scaled --devices 1 -- true
    scaled --devices 2 -- true '{devices}' '{batch}'
    scaled --devices 3 --batch 4 -- true '{devices}' '{batch}'
    scaled --devices 2 --model mlp -- true '{devices}'
    scaled --devices sim:2 -- true '{devices}'
}

@test "watch: a disk that fills while a job trains is said, and is the program's no more than before" {
    here && one
    [[ $(id -u) -eq 0 ]] || skip "only root can mount a small disk"
    mkdir disk
    mount -t tmpfs -o size=160k none disk 2>mount.txt || skip "cannot mount here: $(cat mount.txt)"
    run --separate-stderr "$EVENLOAD" watch --out disk/w --no-plot -- sh -c 'head -c 1M /dev/zero >disk/full 2>/dev/null; python3 one.py 4'
    umount disk
    [[ $status -eq 0 && $output == "epoch 1" && $stderr == "evenload: watch: disk/w/results.json could not be written: No space left on device; the command's exit status follows" ]] || show
}

@test "watch: a rank that is killed leaves its steps, and the status is its own" {
    here
    run --separate-stderr "$EVENLOAD" watch --out w --no-plot -- ./job 6 20 killed
    [[ $status -eq 137 && $(json w/results.json '[r["steps"] for r in d["watch"]["training"]["ranks"]]') == "[6, 6]" ]] || show
}

@test "watch: what the hook cannot do is said, and the program goes on; it can be left out, and hides nobody's sitecustomize" {
    here
    printf '%s\n' 'import sys; sys.stdout.write("theirs is run\n")' >packages/sitecustomize.py
    run --separate-stderr "$EVENLOAD" watch --out w --no-plot -- ./job 3 0
    [[ $status -eq 0 && $(grep -o "theirs is run" <<<"$output" | wc -l) == 2 && $stderr == *$'\n rank '* ]] || show
    run --separate-stderr "$EVENLOAD" watch --out without --no-hook --no-plot -- sh -c 'echo "${EVENLOAD_HOOK-none}"; exec ./job 3 0'
    [[ $status -eq 0 && $output == *none* && $stderr != *$'\n rank '*samples* && $(json without/results.json 'd["watch"]["training"]') == None ]] || show
    PYTHON=-S run --separate-stderr "$EVENLOAD" watch --out bare --no-plot -- env PYTHON=-S ./job 3 0
    [[ $status -eq 0 && $(json bare/results.json 'd["watch"]["training"], "step_ms" in d["trials"][0]') == "(None, False)" ]] || show
    # An older PyTorch: no recorder; no way to see steps; no groups at all.
    sed -i 's/^def _dump_fr_trace_json/def _dump_other/' packages/torch/_C/_distributed_c10d.py
    run --separate-stderr "$EVENLOAD" watch --out older --no-plot -- ./job 3 0
    stderr=$(tr -s ' \n' ' ' <<<"$stderr")
    [[ $status -eq 0 && $output == *"loss 0.5"* && $stderr == *"Who comes late is not known: the ranks left no dump"*"Not recorded: "*"PyTorch 0.fake has none for gloo"* && $(json older/results.json '[r["steps"] for r in d["watch"]["training"]["ranks"]]') == "[3, 3]" ]] || show
    sed -i 's/"gloo"$/"nccl"/' packages/torch/distributed/__init__.py
    run --separate-stderr "$EVENLOAD" watch --out nccl --no-plot -- ./job 3 0
    [[ $status -eq 0 && $stderr == *"with nccl the host calls collectives before"* ]] || show
    echo 'class SGD:
    def __init__(self, inner=None): pass
    def step(self): pass' >packages/torch/optim/optimizer.py
    run --separate-stderr "$EVENLOAD" watch --out oldest --no-plot -- ./job 3 0
    [[ $status -eq 0 && $output == *"loss 0.5"* && $(json oldest/results.json 'd["watch"]["training"]') == None ]] || show
    # PyTorch 1.13: what puts its profiler's wrapper around a step.
    cat >packages/torch/optim/optimizer.py <<'.'
class Optimizer:
    def __init__(self): self._hook_for_profile()
    def _hook_for_profile(self):
        inner = type(self).step
        if getattr(inner, "hooked", None): return
        def step(self): return inner(self)
        step.hooked, type(self).step = True, step
class SGD(Optimizer):
    def __init__(self, inner=None): super().__init__()
    def step(self): pass
.
    run --separate-stderr "$EVENLOAD" watch --out wrapped --no-plot -- ./job 3 0
    [[ $status -eq 0 && $(json wrapped/results.json '[r["steps"] for r in d["watch"]["training"]["ranks"]]') == "[3, 3]" ]] || show
    # A training without an optimizer of torch.optim; one that multiprocessing forks after the import.
    printf '%s\n' 'import torch' 'torch.distributed.distributed_c10d.there = False' 'torch.autograd.backward(lambda: None)' >none.py
    run --separate-stderr "$EVENLOAD" watch --out none --no-plot -- python3 none.py
    [[ $status -eq 0 && $stderr == *"Of PyTorch no step is known: steps: RuntimeError: none was made by an optimizer"* ]] || show
    # A launcher collects garbage, and trains nothing.
    printf '%s\n' 'import torch, gc' 'torch.distributed.distributed_c10d.there = False' 'x = [[] for _ in range(20000)]' 'for a in x: a.append(a)' 'del x, a' 'gc.collect()' >launcher.py
    run --separate-stderr "$EVENLOAD" watch --out launcher --no-plot -- python3 launcher.py
    [[ $status -eq 0 && $stderr != *"Of PyTorch"* ]] || show
    cat >forks.py <<'.'
import multiprocessing, torch
torch.distributed.distributed_c10d.there = False
optimizer = torch.optim.optimizer.SGD()
def steps(n):
    for _ in range(n): optimizer.step()
steps(2)
child = multiprocessing.get_context("fork").Process(target=steps, args=(5,))
child.start()
child.join()
steps(2)
.
    "$EVENLOAD" watch --out forks --quiet --no-plot -- python3 forks.py
    [[ $(json forks/results.json 'sorted(r["steps"] for r in d["watch"]["training"]["ranks"])') == "[4, 5]" ]]
    # A folder that cannot be written to any more, a module that is broken: the program's own words and status.
    run --separate-stderr "$EVENLOAD" watch --out gone --no-plot -- sh -c 'rm -rf gone/hook; exec ./job 3 0'
    [[ $status -eq 0 && $output == *"loss 0.5"* ]] || show
    echo 'raise ImportError("theirs is broken")' >packages/torch/__init__.py
    run --separate-stderr "$EVENLOAD" watch --out broken --no-plot -- ./job 3 0
    [[ $status -eq 1 && $stderr == *"theirs is broken"* ]] || show
}
