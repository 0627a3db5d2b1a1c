# `watch`: a command's own streams, exit status and signals; every process of it with what it truly held; its refusals,
# and the examples of docs/watch.md.
load common
export EVENLOAD # commands in quotes use it too
DOCS=$BATS_TEST_DIRNAME/../../docs/watch.md

# Processes of known size: two workers, each with a helper that sleeps; one helper loses its parent.
family() {
    cat >family.py <<'END'
import os, sys, time
def work(mib):
    held = bytearray(mib << 20)
    for i in range(0, len(held), 4096): held[i] = 1
    end = time.time() + 0.8
    while time.time() < end: pass
def orphan():
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.7)
        os._exit(0)
    os.wait()
workers = []
for mib in (40, 80):
    pid = os.fork()
    if pid == 0:
        orphan()
        work(mib)
        os._exit(0)
    workers.append(pid)
print(*workers, flush=True)
for pid in workers: os.waitpid(pid, 0)
END
}

# The interpreter itself: a wrapper on PATH may start processes of its own.
python() { python3 -c 'import os, sys; print(os.path.realpath(sys.executable))'; }

@test "watch leaves the command its streams, and passes its exit status on" {
    run --separate-stderr bash -c 'echo in | "$EVENLOAD" watch --quiet --no-plot -- sh -c "cat; echo err >&2; exit 7"'
    [[ $status -eq 7 && $output == in && $stderr == err ]] || show
    run --separate-stderr "$EVENLOAD" watch --quiet --no-plot sh -c 'kill -9 $$'
    [[ $status -eq 137 && -z $output$stderr ]] || show
    # What follows '--', or the first word that is no option, is the command's.
    run --separate-stderr "$EVENLOAD" watch --quiet --no-plot -- printf '%s ' --json --out x
    [[ $status -eq 0 && $output == "--json --out x " && ! -e x ]] || show
}

@test "watch shows every process of a program that forks, with what each held" {
    family
    run --separate-stderr "$EVENLOAD" watch --no-plot --out r "$(python)" family.py
    [[ $status -eq 0 && ${lines[0]} =~ ^[0-9]+\ [0-9]+$ ]] || show
    local small=${output% *} large=${output#* }
    [[ $stderr == *"exit status 0; 7 processes"* ]] || [[ $(json r/results.json 'len(d["watch"]["processes"])') -ge 5 ]] || show
    for words in "$small " "$large " "2 processes compared" "memory" "process $large holds" "Watching took" "r/results.json"; do
        [[ $stderr == *"$words"* ]] || { echo "no '$words'" && show; }
    done
    [[ ${stderr_lines[-1]} == "Next: "*"plot r --term" ]] || show
    for line in "${stderr_lines[@]}"; do [[ ${#line} -le 100 ]] || { echo "$line" && show; }; done
    python3 - "$small" "$large" <<'END'
import json, sys
small, large = map(int, sys.argv[1:])
d = json.load(open("r/results.json"))
watch, processes, trial = d["watch"], {p["pid"]: p for p in d["watch"]["processes"]}, d["trials"][0]
peak_mib = {pid: (p["peak_bytes"] or 0) / 2**20 for pid, p in processes.items()}
assert 36 < peak_mib[large] - peak_mib[small] < 44, peak_mib # 40 and 80 MiB, and the interpreter's own of each
assert [pid for pid, p in processes.items() if p["peer"]] == [small, large], processes
# The helpers lost their parents and are ours all the same.
helpers = [p for pid, p in processes.items() if pid not in (small, large)]
assert sum(p["end_s"] - p["begin_s"] > 0.5 and p["cpu_s"] < 0.1 and (p["peak_bytes"] or 0) < 2e7 for p in helpers) >= 2, helpers
assert [x["memory"]["peak_bytes"] > 4e7 for x in trial["per_device"]] == [True, True], trial
assert trial["imbalance"]["memory"]["first_over_rest"] < 0.7, trial
assert watch["unseen_cpu_s"] < 0.5 * watch["cpu_s"] + 0.1, watch
# It may cost per core 1 % and what it takes to begin; each look itself is dearer on a machine under load.
assert watch["sampler"]["cpu_s"] < 0.2 + 0.01 * watch["seconds"], watch["sampler"]
END
    [[ $(wc -l <r/devices.csv) -eq 3 && $(ls r) == $'devices.csv\nresults.json\ntrials.csv' ]] || { ls r && false; }
}

@test "ranks are compared, the heaviest process of each" {
    cat >ranks.sh <<'END'
for r in 1 0; do
    RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 sh -c 'sleep 0.4; :' &
done
wait
END
    "$EVENLOAD" watch --quiet --no-plot --out r sh ranks.sh
    [[ $(json r/results.json '(d["watch"]["compared"]["what"], [x["rank"] for x in d["trials"][0]["per_device"]],
        [p["launcher"] for p in d["watch"]["processes"] if p["rank"] is not None])') == \
        "('ranks', [0, 1], ['torchrun', 'torchrun', 'torchrun', 'torchrun'])" ]]
}

@test "a signal is passed on, and one that ends the command is its exit status" {
    cat >trap.sh <<'END'
trap 'echo caught; exit 5' TERM
echo ready
for i in $(seq 100); do sleep 0.05; done
END
    "$EVENLOAD" watch --quiet --no-plot sh trap.sh >out &
    local watch=$! i
    for i in $(seq 100); do grep -q ready out && break || sleep 0.05; done
    kill -TERM "$watch"
    status=0
    wait "$watch" || status=$?
    [[ $status -eq 5 && $(<out) == $'ready\ncaught' ]] || show
}

@test "what the command leaves behind is named, or waited for" {
    run --separate-stderr "$EVENLOAD" watch --no-plot --out a sh -c 'sleep 0.6 >&- 2>&- & exit 3'
    [[ $status -eq 3 && $stderr == *"1 of its processes still ran"* ]] || show
    run --separate-stderr "$EVENLOAD" watch --no-plot --out b --wait-all sh -c 'sleep 0.6 >&- 2>&- & exit 3'
    [[ $status -eq 3 && $stderr != *"still ran"* ]] || show
    grep -q '"wait_all": false' a/results.json
    [[ $(json b/results.json 'd["watch"]["wait_all"], d["watch"]["seconds"] > 0.5, any(p["left_running"] for p in d["watch"]["processes"])') == \
        "(True, True, False)" ]]
    # SIGUSR1 was for the command, which has ended; SIGTERM ends the waiting, and the command's status stays.
    rm -rf c
    "$EVENLOAD" watch --no-plot --out c --wait-all sh -c 'sleep 9 >&- 2>&- & echo $! >pid; echo $$ >sh.pid; exit 3' 2>words &
    local watch=$!
    until [[ -s sh.pid && ! -e /proc/$(<sh.pid) ]]; do sleep 0.02; done
    kill -USR1 "$watch"
    sleep 0.3
    [[ ! -e c/results.json ]]
    kill -TERM "$watch"
    status=0
    wait "$watch" || status=$?
    kill "$(<pid)"
    [[ $status -eq 3 && $(<words) == *"still ran: "*"a signal ended the wait for them"* ]] || { cat words && false; }
}

@test "who no longer reads our words does not take the command's status away" {
    run bash -c '"$EVENLOAD" watch --no-plot --out r sh -c "sleep 0.2; exit 3" 2> >(exec true); echo $?'
    [[ $output == 3 && $(ls r) == $'devices.csv\nresults.json\ntrials.csv' ]] || { ls r && show; }
}

@test "signals are as usual while the figure is drawn" {
    mkdir bin
    # It runs in the folder of the plots.
    printf '#!/bin/sh\ngrep -E "SigBlk|SigIgn" /proc/self/status >>"%s/masks"\n' "$PWD" >bin/gnuplot
    chmod +x bin/gnuplot
    grep -E 'SigBlk|SigIgn' /proc/self/status >expected
    PATH=$PWD/bin:$PATH "$EVENLOAD" watch --quiet --out r sleep 0.3
    [[ -s masks && $(grep SigBlk masks | sort -u) == $(grep SigBlk expected) ]] || { cat masks expected && false; }
    while read -r _ ignored; do [[ $((0x$ignored & 0x1000)) -eq 0 ]]; done < <(grep SigIgn masks) # SIGPIPE
    # And one ends the drawing: the record is there.
    printf '#!/bin/sh\n: >"%s/begun"; exec sleep 60\n' "$PWD" >bin/gnuplot
    PATH=$PWD/bin:$PATH "$EVENLOAD" watch --quiet --out s sleep 0.3 3>&- &
    local watch=$! begin=$SECONDS
    until [[ -e begun ]]; do sleep 0.02; done
    kill -TERM "$watch"
    status=0
    wait "$watch" || status=$?
    [[ $status -eq 143 && $((SECONDS - begin)) -lt 30 && $(ls s) == *results.json* ]] || show
}

@test "a command that cannot be started" {
    run --separate-stderr sh -c '"$EVENLOAD" watch -- no-such-command || echo $?'
    [[ $output == 127 && $stderr == "evenload: watch: no-such-command: cannot be started: No such file"* ]] || show
    mkdir kept # folders that were made for it are gone again, one that was there is not
    run --separate-stderr sh -c '"$EVENLOAD" watch --out kept/a/b -- no-such-command || echo $?'
    [[ $output == 127 && -d kept && ! -e kept/a ]] || show
    echo x >file
    run --separate-stderr "$EVENLOAD" watch --out r -- ./file
    [[ $status -eq 126 && ${#stderr_lines[@]} -eq 1 && $stderr == *"Permission denied"* ]] || show
    [[ ! -e r && -z $(ls results 2>/dev/null) ]] || show
}

@test "a bad use is refused before the command is started" {
    refuses "which command?" "$EVENLOAD" watch
    refuses "which command?" "$EVENLOAD" watch --quiet --
    refuses "--interval: 5 is out of range" "$EVENLOAD" watch --interval 5 touch begun
    refuses "watch has no --json" "$EVENLOAD" watch --json touch begun
    refuses "did you mean '--interval'" "$EVENLOAD" watch --interva1 20 touch begun
    mkdir r && echo '{}' >r/results.json
    refuses "r holds a run already: give another --out" "$EVENLOAD" watch --out r touch begun
    [[ ! -e begun ]]
}

@test "the record that cannot be written is said, and the exit status stays" {
    run --separate-stderr "$EVENLOAD" watch --no-plot --out r sh -c 'rmdir r/repeats r/logs r; exit 4'
    [[ $status -eq 4 && $stderr == *"r/results.json"*"could not be written"* ]] || show
}

@test "the figure is drawn again from its files" {
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    "$EVENLOAD" watch --quiet --no-plot --out r sh -c 'RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 sleep 0.3 & sleep 0.3; : a label of whole words; wait'
    run --separate-stderr "$EVENLOAD" plot r --term
    grep -qxE 'rank 1 \([0-9]+\)' r/plots/watch.dat && grep -qxE '[0-9]+ sleep 0.3' r/plots/watch.dat && grep -qxE '[0-9]+ sh -c RANK.1 [.]{3}' r/plots/watch.dat || { cat r/plots/watch.dat && false; }
    [[ $status -eq 0 && $output == *"r/plots/watch.svg"* && $output == *"resident memory"* && -s r/plots/watch.png ]] || show
    [[ $output != *"could not be drawn"* && $output != *"no figure"* ]] || show
}

# The example's program as it stands there; half a second instead of two.
@test "docs/watch.md: the program that forks" {
    grep -qx '    evenload watch --out results/workers -- python3 workers.py' "$DOCS"
    sed -n '/^    import os, time$/,/^$/s/^    //p' "$DOCS" | sed 's/+ 2$/+ 0.5/' >workers.py
    run --separate-stderr "$EVENLOAD" watch --no-plot --out results/workers -- "$(python)" workers.py
    [[ $status -eq 0 && -z $output ]] || show
    for words in "exit status 0" "peak MiB anon MiB mean MiB Pss MiB share % CPU s CPU %" "workers.py " "2 processes compared" \
        "holds 40.0 MiB more than the other" "Compared:" "Watching took " results/workers/results.json; do
        grep -qF -- "$words" "$DOCS" || { echo "the page has no '$words'" && false; }
        [[ $stderr == *"$words"* ]] || { echo "no '$words'" && show; }
    done
}

@test "docs/watch.md: two ranks of torchrun" {
    grep -qx '    evenload watch -- torchrun --nproc_per_node 2 scripts/examples/torch_ddp.py' "$DOCS"
    if [[ ${EVENLOAD_LONG:-} != 1 ]]; then
        echo "# long: two ranks of torchrun under watch, where PyTorch is" >&3
        return 0
    fi
    command python3 -c 'import torch' 2>/dev/null && command -v torchrun >/dev/null || skip "PyTorch is not installed"
    run --separate-stderr "$EVENLOAD" watch --no-plot --out r torchrun --nproc_per_node 2 "$BATS_TEST_DIRNAME/../../scripts/examples/torch_ddp.py"
    [[ $status -eq 0 && $stderr == *"2 ranks compared"* && $stderr == *"At its peak rank 0 (process "* ]] || show
    [[ $(json r/results.json "150 < (d['trials'][0]['per_device'][0]['memory']['peak_bytes']
        - d['trials'][0]['per_device'][1]['memory']['peak_bytes']) / 2**20 < 250") == True ]]
    [[ $(json r/results.json "d['watch']['sampler']['cpu_pct_of_a_core'] < 1.1") == True ]]
}

@test "watch: its record is no run for imbalance and scale" {
    "$EVENLOAD" watch --quiet --no-plot --out w -- sleep 0.1
    refuses "w was watched from outside" "$EVENLOAD" imbalance w
    refuses "w was watched from outside" "$EVENLOAD" scale w
    [[ ! -e results ]]
}
