# What goes wrong while trials run costs one row: out of memory, a time-out, a killed rank, Ctrl-C, a full disk.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load ../cli/common
PICTURES=no
stderr='' # set by run

# Begins at once, goes on for a minute, and waits more than it computes.
LONG=(--model mlp --features 16 --hidden 8 --data dummy --batch 16 --warmup 1 --min-time 60 --inject pause=linear_forward:10)

# What is ended at once takes a second, and on a busy machine up to so many; nothing here would end by itself before.
SOON=25

# The pid of a worker of this run: its result's path is in its arguments, from the root on, as other tests have runs of the same name.
# mpirun's own arguments have it too; its ranks write theirs into files.
worker_pid() { # worker_pid RUN RANK
    local file=("$1"/logs/*/rank-"$2".pid) pids
    [[ ! -s ${file[0]} ]] || { cat "${file[0]}" && return; }
    pids=$(pgrep -f "worker measure $PWD/$1/repeats") || return 0
    pgrep -x mpirun | grep -qxF "$pids" || head -n 1 <<<"$pids"
}

wait_for() { # wait_for COMMAND...: true within a minute
    local end=$((SECONDS + 60))
    until "$@"; do
        [[ $SECONDS -lt $end ]] || return 1
        sleep 0.05
    done
}

# A launch may end by itself between two looks: the next one's worker is taken then.
kill_worker() {
    local pid
    pid=$(worker_pid "$1" "$2")
    [[ -n $pid ]] && kill -"${SIGNAL:-KILL}" "$pid" 2>/dev/null
}
has_worker() { [[ -n $(worker_pid "$1" "$2") ]]; }
is_watching() { grep -qs el-mpi-watch /proc/"$(worker_pid "$1" "$2")"/task/*/comm; }
has_repeats() { [[ $(find "$1/repeats" -name '*-[0-9]*.json' 2>/dev/null | wc -l) -ge $2 ]]; }

# Each of these is the same for ranks of mpirun and for ranks of our own.
oom_in_a_process() { # oom_in_a_process LAUNCHER
    run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --features 16384 --mode ddp --devices mem=1MiB --launcher "$1" --out r
    [[ $status -eq 1 && $(json r/results.json 'd["trials"][0]["status"]') == oom ]] || show
}

time_out_of_several() { # time_out_of_several LAUNCHER
    run --separate-stderr "$EVENLOAD" run "${LONG[@]}" --mode ddp --timeout 1 --launcher "$1" --out "$PWD/r"
    [[ $status -eq 1 && $(json r/results.json 'd["trials"][0]["status"]') == timeout ]] || show
    [[ -z $(pgrep -f "worker measure $PWD/r/repeats") ]]
}

ended_rank() { # ended_rank OPTION...: rank 1 gets $SIGNAL while it trains
    "$EVENLOAD" run "${LONG[@]}" --mode "${MODE:-ddp}" "$@" --out "$PWD/r" --quiet >out 2>err 3>&- &
    local parent=$! code=0
    wait_for has_worker r 1
    sleep "${TRAINS_AFTER:-0.3}"
    kill_worker r 1
    local began=$SECONDS
    wait "$parent" || code=$?
    [[ $code -eq 1 && $((SECONDS - began)) -le $SOON ]]
    [[ -z $(pgrep -f "worker measure $PWD/r/repeats") ]]
}
killed_rank() { # killed_rank OPTION...
    ended_rank "$@"
    [[ $(json r/results.json 'd["trials"][0]["reason"]') == *"rank 1"*"signal 9"* ]]
}

@test "out of device memory: a row, with the tag" {
    run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --features 16384 --devices mem=1MiB --out r
    [[ $status -eq 1 ]] || show
    [[ $(json r/results.json 'd["trials"][0]["status"]') == oom ]]
    [[ $(json r/results.json 'd["trials"][0]["reason"]') =~ \((param|grad|optimizer|activation|input|workspace)\) ]]
}

@test "out of memory of one mode leaves the others" {
    need=$("$EVENLOAD" run "${QUICK[@]}" --features 8192 --mode dp --devices 2 --dry-run --json | python3 -c \
        'import json, sys; print(max(d["peak_bytes"] for d in json.load(sys.stdin)["devices"]) - 1)')
    run --separate-stderr "$EVENLOAD" compare "${QUICK[@]}" --features 8192 --procs 1 --modes dp,ddp --repeats 1 --devices "mem=$need" --out c
    [[ $(json c/results.json 'd["trials"][0]["status"], len(d["trials"])') == "('oom', 2)" ]] || show
    # What just fits is measured: the gate keeps gradients, and is not limited.
    "$EVENLOAD" compare "${QUICK[@]}" --features 8192 --modes dp --repeats 1 --devices mem=$((need + 1)) --out fits --quiet >out
    [[ $(json fits/results.json 'd["trials"][0]["status"], d["gate"][0]["agrees"]') == "('ok', True)" ]]
}

@test "out of memory in a process of its own reaches the row" {
    need_mpirun
    oom_in_a_process mpirun
}

@test "out of memory in a process of its own reaches the row, without mpirun" {
    oom_in_a_process own
}

@test "a time-out ends the launch and is a row" {
    local began=$SECONDS
    run --separate-stderr "$EVENLOAD" run "${LONG[@]}" --timeout 0.5 --out r
    [[ $status -eq 1 && $((SECONDS - began)) -le $SOON ]] || show
    [[ $(json r/results.json 'd["trials"][0]["status"], d["trials"][0]["reason"]') == "('timeout', 'timed out after 0.5 s')" ]]
}

@test "a time-out of several processes leaves none behind" {
    need_mpirun
    time_out_of_several mpirun
}

@test "a time-out of several processes leaves none behind, without mpirun" {
    time_out_of_several own
}

@test "a killed process is a row with its signal" {
    "$EVENLOAD" run "${LONG[@]}" --out "$PWD/r" --quiet >out 2>err 3>&- &
    local parent=$! code=0
    wait_for has_worker r 0
    sleep 0.3
    kill_worker r 0
    local began=$SECONDS
    wait "$parent" || code=$?
    [[ $code -eq 1 && $((SECONDS - began)) -le $SOON ]]
    [[ $(json r/results.json 'd["trials"][0]["status"]') == failed ]]
    [[ $(json r/results.json 'd["trials"][0]["reason"]') == *"signal 9"* ]]
}

# The kernel's count of processes that it ended for lack of memory, in a file of ours.
@test "a rank that the kernel ends for lack of memory is a row oom, which says so" {
    [[ $(id -u) -eq 0 ]] || skip "only root can mount"
    echo "oom_kill 3" >vmstat
    unshare -m mount --bind vmstat /proc/vmstat 2>why.txt || skip "cannot mount here: $(cat why.txt)"
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m bash -c 'mount --bind vmstat /proc/vmstat && exec "$@"' - \
        "$EVENLOAD" run "${LONG[@]}" --mode ddp --launcher own --out "$PWD/r" --quiet >out 2>err 3>&- &
    local parent=$! code=0
    wait_for has_worker r 1
    sleep 0.3
    echo "oom_kill 4" >vmstat
    kill_worker r 1
    wait "$parent" || code=$?
    [[ $code -eq 1 && $(json r/results.json 'd["trials"][0]["status"]') == oom ]]
    [[ $(json r/results.json 'd["trials"][0]["reason"]') == "rank 1 was killed by signal 9 (Killed), because memory ran out: the kernel's"* ]]
}

@test "a killed rank is a row with its signal within 5 seconds" {
    need_mpirun
    killed_rank --launcher mpirun
}

@test "a killed rank is a row with its signal within 5 seconds, without mpirun" {
    killed_rank --launcher own
}

# mpirun itself may be slow to notice, and a rank may be in a call that waits, or compute: here both are made so.
killed_rank_beside_a_stopped_mpirun() { # killed_rank_beside_a_stopped_mpirun SECONDS OPTION...
    local seconds=$1
    shift
    "$EVENLOAD" run "${LONG[@]}" --mode ddp --launcher mpirun "$@" --out "$PWD/r" --quiet >out 2>err 3>&- &
    local parent=$! code=0
    wait_for has_worker r 1
    wait_for is_watching r 0 # before that only mpirun, which is stopped here, could notice
    sleep 0.5
    kill -STOP "$(pgrep -P "$parent" mpirun)"
    kill_worker r 1
    local began=$SECONDS
    wait "$parent" || code=$?
    [[ $code -eq 1 && $((SECONDS - began)) -le $seconds ]]
    [[ $(json r/results.json 'd["trials"][0]["reason"]') == *"rank 1 "*"is gone"* ]]
    [[ -z $(pgrep -f "worker measure $PWD/r/repeats") ]]
}

@test "ranks of mpirun notice by themselves that one was killed" {
    need_mpirun
    killed_rank_beside_a_stopped_mpirun 5 --comm mpi
}

@test "a rank that notices nothing else ends when another one was killed" {
    need_mpirun
    killed_rank_beside_a_stopped_mpirun 8 --inject pause=linear_forward:30000
    grep -q "rank 1 (process [0-9]*) is gone, so this rank ends too" r/logs/*/rank-0.log
}

@test "a killed stage is a row with its signal within 5 seconds" {
    MODE=pipeline killed_rank --launcher own --procs 2
}

@test "a killed piece of a model is a row with its signal within 5 seconds, alone and with copies and stages" {
    LONG=(--model gpt --layers 2 --embed 16 --seq 8 --vocab 32 --data dummy --batch 16 --warmup 1 --min-time 60 --launcher own)
    MODE=tp killed_rank --devices 2 --procs 2
    rm -r r
    MODE=tp killed_rank --devices 4 --mesh dp=2,tp=2 --procs 4
    rm -r r
    MODE=pipeline killed_rank --devices 4 --mesh pp=2,tp=2 --procs 4
}

# In a step's first gather, where the others wait for rank 1, which the delay holds.
@test "zero3: a rank that is killed, or stopped, while a unit is gathered ends the trial within 5 seconds, and is named" {
    local comm launcher reason TRAINS_AFTER=1.5
    LONG=(--timeout 30 --model gpt --layers 2 --embed 16 --seq 8 --vocab 32 --data dummy --batch 16 --warmup 1 --min-time 60 --inject delay=1:60000)
    local kinds=(shm)
    if [[ ${EVENLOAD_LONG:-} == 1 ]]; then kinds+=(tcp mpi); else echo "# long: over tcp and by mpi too, 16 s" >&3; fi
    for comm in "${kinds[@]}"; do
        launcher=own
        [[ $comm != mpi ]] || launcher=mpirun
        [[ $comm != mpi ]] || has_mpirun || continue
        MODE=zero3 killed_rank --devices 2 --procs 2 --launcher $launcher --comm "$comm"
        rm -r r
        SIGNAL=STOP MODE=zero3 ended_rank --devices 2 --procs 2 --launcher $launcher --comm "$comm" --comm-timeout 3s
        reason=$(json r/results.json 'd["trials"][0]["reason"]')
        [[ $reason == "the all_gather number "*" of rank "*"$comm communicator: "*"rank 1 "* ]] || { echo "$reason" && false; }
        rm -r r
    done
}

@test "a killed rank is a row with its signal within 5 seconds, over tcp" {
    killed_rank --launcher own --comm tcp
}

# Nobody but the ranks themselves is there to see it: as under torchrun's variables on several hosts.
@test "a rank killed under torchrun's variables ends the others, who say which it was" {
    local port code=0
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
    export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
    RANK=1 "$EVENLOAD" run "${LONG[@]}" --mode ddp --comm tcp >one 2>&1 3>&- &
    local one=$!
    RANK=2 "$EVENLOAD" run "${LONG[@]}" --mode ddp --comm tcp >two 2>&1 3>&- &
    local two=$!
    RANK=0 "$EVENLOAD" run "${LONG[@]}" --mode ddp --comm tcp --out r --json >out 2>err 3>&- &
    local zero=$!
    wait_for test -d r/repeats
    sleep 0.3
    kill -KILL "$two"
    local began=$SECONDS
    wait "$zero" || code=$?
    [[ $code -ne 0 ]]
    code=0
    wait "$one" || code=$?
    [[ $code -ne 0 && $((SECONDS - began)) -le $SOON ]]
    cat out err one
    grep -q "rank 2 is gone" out err one
}

# A stopped rank holds its connections and says nothing: only the clock ends the others.
@test "a rank stopped under torchrun's variables: --timeout ends the others, who say which it was" {
    local port code=0
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
    local -a place=(env WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port")
    local -a options=("${LONG[@]}" --mode ddp --timeout 4)
    "${place[@]}" RANK=1 "$EVENLOAD" run "${options[@]}" >one 2>&1 3>&- &
    local one=$!
    "${place[@]}" RANK=2 "$EVENLOAD" run "${options[@]}" >two 2>&1 3>&- &
    local two=$!
    "${place[@]}" RANK=0 "$EVENLOAD" run "${options[@]}" --out r --json >out 2>err 3>&- &
    local zero=$!
    wait_for test -d r/repeats
    sleep 0.3
    kill -STOP "$two"
    local began=$SECONDS
    wait "$zero" || code=$?
    kill -KILL "$two"
    [[ $code -eq 1 && $((SECONDS - began)) -le $SOON ]]
    code=0
    wait "$one" || code=$?
    [[ $code -eq 1 && $((SECONDS - began)) -le $SOON ]]
    cat out err one
    [[ $(cat err) == "evenload: rank 0: the job did not end within 4 s (--timeout): rank 2 does not answer (stopped?)" ]]
    [[ $(wc -l <one) -eq 1 && $(json r/results.json 'd["trials"][0]["status"]') == timeout ]]
}

@test "a launch killed in a comparison leaves what was measured" {
    "$EVENLOAD" compare "${LONG[@]}" --min-time 0.5 --procs 1 --modes single,dp --repeats 2 --control none --out "$PWD/c" --quiet >out 2>err 3>&- &
    local parent=$! code=0
    wait_for has_repeats c 1
    wait_for kill_worker c 0
    wait "$parent" || code=$?
    [[ $code -eq 1 ]]
    [[ $(json c/results.json 'sorted(t["status"] for t in d["trials"])') == "['failed', 'ok']" ]]
}

# mpirun, but killed at the gate's launches for as long as there is a letter in the file `kills`.
deadly_mpirun() {
    mkdir bin
    cat >bin/mpirun <<END
#!/bin/bash
if [[ "\$*" == *" worker gate "* && -s kills ]]; then
    truncate -s -1 kills
    kill -KILL \$\$
fi
exec $(command -v mpirun) "\$@"
END
    chmod +x bin/mpirun
}

@test "a gate that dies is run again; one that dies twice refuses its mode, and the same command asks it again" {
    need_mpirun
    deadly_mpirun
    local each=("${QUICK[@]}" --modes "single,ddp" --repeats 1 --control none --quiet)
    printf x >kills
    PATH=$PWD/bin:$PATH "$EVENLOAD" compare "${each[@]}" --out a >out 2>err
    [[ ! -s kills && $(json a/results.json '[g["agrees"] for g in d["gate"]], [t["status"] for t in d["trials"]]') == "([True, True], ['ok', 'ok'])" ]]
    printf xx >kills
    PATH=$PWD/bin:$PATH run --separate-stderr "$EVENLOAD" compare "${each[@]}" --out b
    [[ $status -eq 1 && ! -s kills && $output == *"could not be compared with the reference"*"signal 9"* ]] || show
    [[ $(json b/results.json '[g["agrees"] for g in d["gate"]], [t["status"] for t in d["trials"]]') == "([True, None], ['ok', 'failed'])" ]]
    local verdict
    verdict=$(grep -l '"status": "ok"' b/repeats/*-gate.json) # one is there; a mode that disagreed is asked again too
    sed -i 's/"worst": [^,]*/"worst": 0.5/' "$verdict"
    "$EVENLOAD" compare "${each[@]}" --out b >out 2>err
    [[ $(json b/results.json '[g["agrees"] for g in d["gate"]], [t["status"] for t in d["trials"]]') == "([True, True], ['ok', 'ok'])" ]]
}

@test "Ctrl-C keeps what is done, says how to go on, and the same command does" {
    local each=("${QUICK[@]}" --procs 1 --repeats 3 --min-time 0.2 --inject pause=linear_forward:5 --control none --out c --quiet)
    "$EVENLOAD" compare "${each[@]}" >out 2>err 3>&- &
    local parent=$! code=0
    wait_for has_repeats c 3
    kill -INT "$parent"
    wait "$parent" || code=$?
    [[ $code -eq 130 ]]
    grep -q -- "Go on with: the same command and --out c" err
    local kept
    kept=$(json c/results.json 'sum(len(t["repeats"]) for t in d["trials"])')
    [[ $kept -ge 3 && $kept -lt 9 ]]
    mkdir kept && cp c/repeats/*-0.json kept
    "$EVENLOAD" compare "${each[@]}" >out 2>err
    [[ $(json c/results.json '[(t["status"], len(t["repeats"])) for t in d["trials"]]') == "[('ok', 3), ('ok', 3), ('ok', 3)]" ]]
    local file
    for file in kept/*; do cmp "$file" "c/repeats/${file##*/}"; done
}

@test "Ctrl-C before the first repeat says that nothing was measured, and leaves no document" {
    "$EVENLOAD" compare "${QUICK[@]}" --devices null:2 --procs 1 --modes dp --min-time 30 --out c --quiet >out 2>err 3>&- &
    local parent=$! code=0
    wait_for test -d c/logs
    kill -INT "$parent"
    wait "$parent" || code=$?
    [[ $code -eq 130 && ! -e c/results.json && ! -e c/trials.csv ]]
    grep -q "interrupted before anything was measured.*the same command and --out c$" err
}

@test "the same command again measures nothing that is there, and keeps its trials" {
    local each=("${QUICK[@]}" --procs 1 --modes "single,dp" --control none --out c --quiet)
    "$EVENLOAD" compare "${each[@]}" --repeats 1 >/dev/null
    cp -r c/repeats before
    "$EVENLOAD" compare "${each[@]}" --repeats 1 >/dev/null
    diff -r before c/repeats
    cp c/results.json results.before
    refuses "c holds a trial (single, batch 8) of other options" "$EVENLOAD" compare "${each[@]}" --repeats 1 --modes dp
    refuses "c holds a trial (single, batch 8) of other options" "$EVENLOAD" compare "${each[@]}" --repeats 1 --optimizer adam
    cmp c/results.json results.before
    "$EVENLOAD" compare "${each[@]}" --repeats 2 >/dev/null # adds to them
    [[ $(json c/results.json '[len(t["repeats"]) for t in d["trials"]]') == "[2, 2]" ]]
    refuses "more repeats" "$EVENLOAD" compare "${each[@]}" --repeats 1
    sed -i 's/"id": "[0-9a-f]*"/"id": "0123456789abcdef"/' c/results.json # as another build's
    cp c/results.json results.before
    refuses "another build" "$EVENLOAD" compare "${each[@]}" --repeats 2
    cmp c/results.json results.before
}

@test "the same command again tries again what failed" {
    local each=("${LONG[@]}" --min-time 1 --modes single --repeats 1 --out c --quiet)
    "$EVENLOAD" compare "${each[@]}" --timeout 0.5 >/dev/null || true
    [[ $(json c/results.json 'd["trials"][0]["status"]') == timeout ]]
    "$EVENLOAD" compare "${each[@]}" --timeout 60 >/dev/null
    [[ $(json c/results.json 'd["trials"][0]["status"]') == ok ]]
}

@test "a repeat cut in half is measured again" {
    "$EVENLOAD" compare "${QUICK[@]}" --modes single --repeats 1 --out c --quiet >/dev/null
    local file=(c/repeats/*-0.json)
    truncate -s 100 "${file[0]}"
    "$EVENLOAD" compare "${QUICK[@]}" --modes single --repeats 1 --out c --quiet >/dev/null
    [[ $(json "${file[0]}" 'd["status"]') == ok ]]
}

@test "a full disk stops the run, and what was written stands" {
    [[ $(id -u) -eq 0 ]] || skip "only root can mount a small disk"
    mkdir disk
    mount -t tmpfs -o size=160k none disk 2>mount.txt || skip "cannot mount here: $(cat mount.txt)"
    run --separate-stderr "$EVENLOAD" compare "${QUICK[@]}" --procs 1 --repeats 60 --out disk/c --quiet
    local code=$status
    json disk/c/results.json 'len(d["trials"])' >count.txt || true
    umount disk
    [[ $code -eq 2 && $stderr == *"evenload: "* && $stderr == *disk/c* ]] || show
    [[ $(cat count.txt) -ge 1 ]]
}

@test "a record that could not be written is not listed as written" {
    mkdir -p r/trials.csv
    run --separate-stderr "$EVENLOAD" run "${QUICK[@]}" --devices sim:2 --out r --quiet
    [[ $status -eq 2 && $stderr == *"r/trials.csv could not be written: Is a directory" && $output != *"r/trials.csv"* ]] || show
}

@test "a limit of the size of files is a failure with words, and the program's own affair under watch" {
    # shellcheck disable=SC2016 # for the inner shell
    run --separate-stderr bash -c 'ulimit -f 2; "$@"' - "$EVENLOAD" run "${QUICK[@]}" --control none --out r --quiet
    [[ $status -eq 2 && $stderr == *"r/"*"could not be written: File too large"* ]] || show
    # shellcheck disable=SC2016
    run --separate-stderr bash -c 'ulimit -f 1; "$@"' - "$EVENLOAD" watch --quiet --out w -- dd if=/dev/zero of=big bs=4096 count=1
    [[ $status -eq 153 ]] || show # 128 and SIGXFSZ
}

@test "what cannot be written is reported in the system's words, not as a full disk" {
    "$EVENLOAD" run "${LONG[@]}" --mode single --timeout 30 --repeats 1 --min-time 1 --control none --out "$PWD/r" --quiet >out 2>err &
    local first=$! code=0
    wait_for has_worker r 0
    mv r/repeats r/elsewhere
    wait "$first" || code=$?
    [[ $code -eq 2 && $(cat err) == *"r/repeats/"*" could not be written: No such file or directory"* ]]
    [[ $(wc -l <err) -eq 1 && $(cat err) != *disk* ]]
}

@test "standard output that is full is an error" {
    [[ -w /dev/full ]] || skip "no /dev/full here"
    # shellcheck disable=SC2016 # for the inner shell
    run --separate-stderr bash -c '"$0" devices >/dev/full' "$EVENLOAD"
    [[ $status -eq 2 && $stderr == *"No space left"* ]] || show
    with_gnuplot
    command -v gnuplot >/dev/null || return 0
    mkdir r && kept_record >r/results.json
    # shellcheck disable=SC2016
    run --separate-stderr bash -c '"$0" plot r --term >/dev/full' "$EVENLOAD"
    [[ $status -eq 2 && $stderr == *"standard output cannot be written: No space left"* ]] || show
}

@test "two programs do not write into one run's folder" {
    "$EVENLOAD" compare "${QUICK[@]}" --modes single --procs 1 --repeats 200 --out r --quiet >/dev/null 2>&1 &
    local first=$!
    for _ in $(seq 100); do [ -e r/command.json ] && break; sleep 0.05; done
    run "$EVENLOAD" compare "${QUICK[@]}" --modes single --procs 1 --repeats 200 --out r --quiet
    kill "$first"
    wait "$first" || true
    [ "$status" -eq 2 ]
    [[ "$output" == *"another evenload writes into this folder"* ]]
    [ "${#lines[@]}" -eq 1 ]
}

# A folder's parts are empty until the first repeat ends: a second program that is refused must leave them.
@test "a second program that is refused leaves the first one's empty folders alone" {
    local each=("${QUICK[@]}" --modes dp --repeats 1 --min-time 1 --inject pause=linear_forward:5 --control none --out r --quiet)
    "$EVENLOAD" imbalance "${each[@]}" >out 2>err &
    local first=$! code=0
    wait_for test -e r/command.json
    refuses "r: another evenload writes into this folder" "$EVENLOAD" imbalance "${each[@]}"
    refuses "r: another evenload writes into this folder" "$EVENLOAD" compare "${each[@]}"
    [[ -d r/repeats && -d r/logs ]]
    wait "$first" || code=$?
    [[ $code -eq 0 && ! -s err && $(json r/results.json 'd["trials"][0]["status"]') == ok ]]
}

@test "of programs started at the same moment in one folder one measures, the others are refused in a line" {
    local i good=0 codes=()
    for i in 1 2 3 4; do
        "$EVENLOAD" run "${QUICK[@]}" --mode single --repeats 1 --min-time 0.3 --inject pause=linear_forward:5 --control none --out r --quiet >"out$i" 2>"err$i" &
        codes[i]=$!
    done
    for i in 1 2 3 4; do
        if wait "${codes[i]}"; then
            good=$((good + 1))
        else
            grep -q "another evenload writes into this folder\|r holds a run already" "err$i"
            [[ $(wc -l <"err$i") -eq 1 ]]
        fi
    done
    [[ $good -eq 1 && $(json r/results.json 'd["trials"][0]["status"]') == ok ]]
}

# The library ends with a signal where one of its allocations fails: between the least memory with which a device opens and the least with
# which it trains there are about 20 MB.
@test "no memory for oneDNN is a row 'oom', as a device without memory is" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer needs more address space than is given here"
    "$EVENLOAD" devices | grep -q oneDNN || skip "built without oneDNN"
    small=(--model textcnn --vocab 100 --embed 64 --filters 32 --batch 8 --devices 1 --steps 1 --warmup 0 --min-time 0 --control none --quiet --data dummy)
    row='d["trials"][0]["status"], d["trials"][0]["reason"]'
    for limit in $(seq 56000 8000 200000); do
        (ulimit -v "$limit" && "$EVENLOAD" run "${small[@]}" --out "r$limit" >/dev/null 2>&1) && break
        found=$(json "r$limit/results.json" "$row")
        [[ $found != *"killed by signal"* ]] || { echo "$limit: $found" && return 1; }
        [[ $found != "('oom', \"no memory for oneDNN"* ]] || return 0
    done
    echo "no limit up to $limit ended in oneDNN" && return 1
}

@test "a device that the machine has no memory for is a row 'oom'" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer needs more address space than is given here"
    (ulimit -v 150000 && ! "$EVENLOAD" run --model resnet18 --image 64 --batch 64 --classes 10 --data dummy --devices 1 --steps 1 --warmup 0 --min-time 0 --control none --quiet --out r >/dev/null 2>&1)
    [[ $(json r/results.json 'd["trials"][0]["status"]') == oom ]]
}
