# What is measured in time, or must come in time: on a machine that does nothing else.
# shellcheck disable=SC2030,SC2031 # each test is a subshell, and functions use what `run` set in it
load common
PICTURES=no

# mlp on one of two cores: long enough for the system's ticks.
WINDOW=(run --model mlp --features 64 --hidden 64 --data dummy --batch 32 --warmup 1 --min-time 0.7 --quiet)

# thrice COMMAND...: up to twice more where it fails, for moments in which the machine was held up.
thrice() { "$@" || { echo "# once more: $*" >&2 && "$@"; } || { sleep 1 && "$@"; }; }

# From the first measured step to the last: neither warm-up nor control blocks, which here take four times as long.
window_is_of_steps() {
    rm -rf w
    "$EVENLOAD" "${WINDOW[@]}" --mode ddp --procs 1 --devices 2 --min-time 0.2 --control pairs=60 --out w >/dev/null
    [[ $(json w/repeats/*-0.json '1 <= d["system"]["processes"][0]["window_s"] / sum(d["step_ms"]) * 1e3 <= 1.6') == True ]] ||
        { json w/repeats/*-0.json 'd["system"]["processes"][0]["window_s"], sum(d["step_ms"])' && false; }
}

@test "the system's figures of the measured window" {
    "$EVENLOAD" "${WINDOW[@]}" --mode ddp --procs 1 --devices 2 --out r >/dev/null
    [[ $(json r/results.json '[0 < m["utilization"]["system_pct"] <= 100 for m in d["trials"][0]["per_device"]]') == "[True, True]" ]]
    [[ $(json r/results.json '0 <= d["trials"][0]["repeats"][0]["system"]["others_pct"] <= 100') == True ]]
    # A process has the CPU time of its devices' threads, which their own clocks tell, and no more than its cores have: on a busy machine both shrink.
    python3 - r/repeats/*-0.json <<'END' || show
import json, sys
d = json.load(open(sys.argv[1]))
process, steps_s = d["system"]["processes"][0], sum(d["step_ms"]) / 1e3
of_devices_s = sum(m["utilization"]["cpu_pct"] for m in d["members"]) / 100 * steps_s
assert 0 < 0.9 * of_devices_s <= process["own_cpu_s"] + 0.02, (of_devices_s, process["own_cpu_s"])
assert process["own_cpu_s"] <= len(process["cpus"]) * process["window_s"] * 1.02 + 0.02, process
END
    [[ $(head -1 r/devices.csv) == *device_system_pct* ]]
    thrice window_is_of_steps
}

@test "processes that compute beside a trial are found" {
    local spinners=() cpu
    for cpu in $(python3 -c 'import os; print(*os.sched_getaffinity(0))'); do
        taskset -c "$cpu" timeout 20 bash -c 'while :; do :; done' 3>&- & # pinned, or they would all leave the device's core
        spinners+=($!)
    done
    "$EVENLOAD" "${WINDOW[@]}" --out r >/dev/null
    "$EVENLOAD" "${WINDOW[@]}" --min-time 0.2 --out short >/dev/null # too short for ticks, not for the scheduler's nanoseconds
    kill "${spinners[@]}"
    [[ $(json short/results.json 'd["trials"][0]["verdict"], "others" in d["trials"][0]["warning_rules"], d["trials"][0]["repeats"][0]["system"]["waited_pct"] > 5') == "('suspect', True, True)" ]] ||
        { json short/results.json 'd["trials"][0]["repeats"][0]["system"], d["trials"][0]["warnings"]' && show; }
    [[ $(json r/results.json '"others" in d["trials"][0]["warning_rules"], d["trials"][0]["repeats"][0]["system"]["others_pct"] > 5') == "(True, True)" ]] ||
        { json r/results.json 'd["trials"][0]["repeats"][0]["system"], d["trials"][0]["warnings"]' && show; }
}

@test "a rank that comes later than --comm-timeout ends the run, and is named with its operation" {
    for procs in 1 2; do
        run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices 2 --procs $procs --inject delay=1:600 --comm-timeout 0.2s --json --quiet --out "r$procs"
        [[ $status -eq 1 && $output == *"the all_reduce number "*" of rank 0: "*"rank 1 did not arrive within 0.2 s"* ]] || show
    done
}

# stop_rank LAUNCHER: rank 1 of a run is stopped while it trains.
stop_rank() {
    local job pid try code=0
    "$EVENLOAD" run --mode ddp --model toy --data dummy --devices 2 --procs 2 --launcher "$1" --comm shm --comm-timeout 1s --warmup 1 \
        --steps 1000000 --control none --timeout 60 --quiet --out "s-$1" >out 2>&1 3>&- &
    job=$!
    for ((try = 0; try < 100; try++)); do
        ! cat "s-$1"/logs/*/rank-1.pid >rank-1.pid 2>/dev/null || break
        sleep 0.1
    done
    sleep 1 # it trains
    read -r pid <rank-1.pid
    kill -STOP "$pid"
    timeout 60 tail --pid=$job -f /dev/null || kill -INT $job
    wait $job || code=$?
    [[ $code -eq 1 ]] || { cat out; false; }
    [[ $(json "s-$1/results.json" 'd["trials"][0]["reason"]') == *"rank 1 did not arrive within 1 s; rank 1 does not answer"* ]] || { cat out; false; }
    ! kill -0 "$pid" 2>/dev/null || { kill -KILL "$pid"; echo "rank 1 is still there"; false; }
}

@test "a rank that is stopped ends the run after --comm-timeout, and is named" {
    long "a rank of run that stops"
    stop_rank own
    ! command -v mpirun >/dev/null || stop_rank mpirun
}

@test "devices names every backend and library, quickly" {
    run --separate-stderr timeout 20 "$EVENLOAD" devices
    [[ $status -eq 0 ]] || show
    for name in cpu null sim cuda oneDNN MPI Cores; do [[ $output == *"$name"* ]] || show; done
    "$EVENLOAD" devices --json >d.json
    [[ $(json d.json '[b["name"] for b in d["backends"]], len(d["cores"]) > 0') == "(['cpu', 'null', 'sim', 'cuda'], True)" ]]
}

# Disturbances of known size: they wait and take no core, so that a busy machine changes little.
QUIET=(--data dummy --quiet --json --control none --min-time 0)

# measure NAME OPTIONS...: one run, its record in NAME.json.
measure() {
    local name=$1
    shift
    rm -rf "$name"
    "$EVENLOAD" run --out "$name" "$@" >"$name.json"
}

# By null devices: no kernel's noise is in it. Threads share a clock, processes relate theirs. The delay is long beside the milliseconds that
# a thread waits for its core on a busy machine: 5 % of it are more than those.
delay_is_skew() {
    local options=(--mode ddp --devices null:2 --procs "$1" --model mlp --features 16 --hidden 16 --batch 8 --warmup 1 --steps 3 "${QUIET[@]}")
    measure clean "${options[@]}"
    measure late "${options[@]}" --inject delay=1:400
    # The first collective's lateness by position, against that of the clean run.
    [[ $(json late.json '[abs(x - y) < 20 for x, y in zip(d["collectives"][0]["late_ms"], [-400, 400])]') == "[True, True]" ]] &&
        [[ $(json late.json 'abs(d["collectives"][0]["skew_median_ms"] - 400) < 20') == True ]] &&
        [[ $(json late.json 'd["per_device"][0]["comm"]["wait_ms"] > max(380, 4 * d["per_device"][1]["comm"]["wait_ms"])') == True ]] &&
        [[ $(json clean.json 'all(abs(x) < 20 for x in d["collectives"][0]["late_ms"])') == True ]]
}

@test "a delay on one thread, and on one process, is found as skew within 5 %" {
    long "a delay as skew, 6 s"
    thrice delay_is_skew 1
    ! has_mpirun || thrice delay_is_skew 2
}

# Backward after the first bucket is 200 ms of pause, the wire takes 105 ms in all and 100 for that bucket: long beside the milliseconds that a
# thread waits for its core on a busy machine.
exposed_share() { # exposed_share on|off: of the time of communication
    measure wire --mode ddp --devices null:2 --procs 1 --model mlp --features 64 --hidden 256,2048 --batch 8 --warmup 1 --steps 4 "${QUIET[@]}" \
        --overlap "$1" --inject 'wire=50,pause=linear_backward_weights hidden1:200' &&
        json wire.json '(lambda c: c["exposed_ms"] / c["total_ms"])(d["per_device"][0]["comm"])'
}

overlap_pays() {
    local on off
    on=$(exposed_share on) && off=$(exposed_share off) && echo "exposed: $on with overlap, $off without" &&
        python3 -c 'import sys; sys.exit(not (float(sys.argv[1]) < 0.5 and float(sys.argv[2]) >= 0.9))' "$on" "$off"
}

@test "overlap hides a wire that is shorter than backward, and without overlap all of it is exposed" {
    thrice overlap_pays
}

# A step is 16 ms of pause; on two devices it has 16 ms of wire more, a MiB of parameters at 16 ms each: half is lost.
@test "scale finds a planted loss, and says where it is" {
    long "a planted loss of scale, 6 s"
    run --separate-stderr "$EVENLOAD" scale --devices 'null:1,2' --procs 1 --modes ddp --model mlp --data dummy --warmup 1 --quiet \
        --features 512 --hidden 512 --steps 5 --min-time 0.03 --control pairs=2 --inject 'pause=linear_forward hidden1:16,wire=16' --out p --json
    [[ $status -eq 0 && -z $stderr ]] || show
    printf '%s' "$output" >p.json
    [[ $(json p.json '[(r["mode"], r["devices"], r["global_batch"]) for r in d["rows"]]') == \
        "[('single', 1, 64), ('ddp', 1, 64), ('ddp', 2, 128)]" ]] || show
    python3 - <<'END' || show
import json
d = json.load(open("p.json"))
one, wrapped, two = d["rows"]
plain, step = two["plain"], two["step"]
assert d["scaling"] == "weak" and d["batch"] == 64, d
assert 0.2 < plain["efficiency"] < 0.75, plain # a busy machine wakes late
assert abs(plain["speedup"] - 2 * plain["efficiency"]) < 1e-9, plain
low, high = plain["speedup_ci95"]
assert low <= plain["speedup"] <= high, plain
if plain["speedup_repeat95"] is None:
    assert plain["repeat_reason"] == "other work was on the machine", plain
else:
    far_low, far_high = plain["speedup_repeat95"]
    assert far_low <= low and high <= far_high, plain
assert 15 < step["exposed_ms"] < 40 and 8 < step["comm_costs_ms"] < 40, step
assert step["exposed_ms"] > 0.5 * step["lost_ms"], step
parts = sum(step[k] for k in ("compute_ms", "contention_ms", "exposed_ms", "idle_ms"))
assert abs(parts - step["lost_ms"]) < 1e-6 and abs(step["ideal_ms"] + parts - step["step_ms"]) < 1e-6, step
assert one["plain"] is None and wrapped["wrapped"] is None and two["wrapped"]["efficiency"] < 0.85, d
END
}

# k of 10: the interval for a repeat of the whole study holds the next one's speed-up. By chance one in ten goes of ten has less than 9.
@test "intervals hold the repeat of the whole study in at least 9 of 10" {
    long "eleven studies on 1 and 2 devices, about four minutes"
    local go i
    for go in 1 2; do
        for i in {0..10}; do
            "$EVENLOAD" scale --devices 1,2 --modes ddp --model mlp --data dummy --min-time 0.4 --control none --quiet --json \
                --out "$go-$i" >"$go-$i.json"
        done
        run python3 - "$go" <<'END'
import json, sys
rows = [json.load(open(f"{sys.argv[1]}-{i}.json"))["rows"] for i in range(11)]
intervals = [study[-1]["plain"]["speedup_repeat95"] for study in rows]
quiet = [(i, j) for i, j in zip(range(10), range(1, 11)) if intervals[i] and intervals[j]]
held = sum(intervals[i][0] <= rows[j][-1]["plain"]["speedup"] <= intervals[i][1] for i, j in quiet)
print(f"{held} of {len(quiet)} held; other work was on the machine in {sum(x is None for x in intervals)} of 11 studies")
sys.exit(3 if len(quiet) < 10 else 0 if held >= 9 else 1)
END
        echo "# $output" >&3
        [[ $status -eq 0 ]] && return
    done
    [[ $status -ne 3 ]] || skip "$output"
    false
}

# live COMPUTE OPTION...: this program against itself, whose kernels take COMPUTE times as long.
live() {
    local compute=$1 launch
    shift
    launch="d=\$(mktemp -d ./l.XXXXXX); \"$EVENLOAD\" run --model mlp --features 256 --hidden 256 --devices 1 --batch 16 --data dummy \
--warmup 5 --steps 60 --min-time 0 --control none --no-record --json --quiet --out \$d"
    run --separate-stderr "$EVENLOAD" regress --ab "$launch; rm -r \$d" "$launch --inject compute=$compute; rm -r \$d" --quiet --json "$@"
    printf '%s' "$output" >live.json
}

# Sixteen times: whatever a busy machine adds to one launch, all nine pairs point the same way.
@test "regress: live, kernels of sixteen times their time are found" {
    long "a regression of this machine, 15 s"
    live 16 --blocks 9 --metric step_median_ms,device_peak_bytes
    [[ $status -eq 1 ]] || show
    [[ $(json live.json '[c["verdict"] for c in d["cells"]]') == "['regression', 'same']" ]]
}

@test "regress: live, the same program is not slower than itself" {
    if [[ ${EVENLOAD_LONG:-} != 1 ]]; then
        echo "# long: the program against itself, 40 blocks" >&3
        skip "takes half a minute"
    fi
    live 1
    [[ $status -eq 0 || $status -eq 3 ]] || show
    [[ $(json live.json '"regression" in [c["verdict"] for c in d["cells"]]') == False ]]
}
