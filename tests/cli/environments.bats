# Where users are: inside other jobs, under mpirun, as root, without mpirun. Each environment is faked by its variables.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load common
PICTURES=no
stderr='' # set by run

# works_in NAME=value...: a process per device is launched from within this environment, by whoever can.
works_in() {
    local launcher launchers=(own) pid pids=()
    ! has_mpirun || launchers+=(mpirun)
    for launcher in "${launchers[@]}"; do
        env "$@" "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices 2 --launcher "$launcher" --control none --out "$launcher" >"$launcher.txt" 2>&1 3>&- &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || { cat ./*.txt && false; }; done
    for launcher in "${launchers[@]}"; do
        [[ $(json "$launcher/results.json" 'd["trials"][0]["status"], len(d["trials"][0]["processes"])') == "('ok', 2)" ]]
    done
}

@test "inside jobs of Open MPI, PMIx, PMI, Slurm and torchrun" {
    local name
    while read -r name variables; do
        echo "$name"
        mkdir "$name" && cd "$name"
        # shellcheck disable=SC2086 # several words
        works_in $variables
        cd ..
    done <<'END'
openmpi OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_UNIVERSE_SIZE=4
pmix PMIX_RANK=0 PMIX_NAMESPACE=job.1 PMIX_SERVER_URI2=nowhere PMIX_ID=job.1.0
pmi PMI_RANK=0 PMI_SIZE=2 PMI_FD=9
slurm SLURM_JOB_ID=17 SLURM_JOBID=17 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NODELIST=other1 SLURM_JOB_NODELIST=other1 SLURM_TASKS_PER_NODE=4 SLURM_STEP_ID=0
torchrun RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
END
}

@test "as root" {
    [[ $(id -u) -eq 0 ]] || skip "not root"
    works_in HOME="$PWD"
}

@test "with more ranks than cores" {
    local n=$(($(nproc) + 2))
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --devices "$n" --batch 64 --out r --quiet
    [[ $(json r/results.json 'd["trials"][0]["status"], d["trials"][0]["verdict"]') == "('ok', 'suspect')" ]]
}

@test "a rank's variables that make no sense" {
    refuses "OMPI_COMM_WORLD_RANK is 'two'" env OMPI_COMM_WORLD_RANK=two "$EVENLOAD" run "${QUICK[@]}"
}

@test "a part of torchrun's variables is refused, not trained alone; a place to meet alone is said" {
    local command
    for command in "run --mode ddp" comm compare; do
        # shellcheck disable=SC2086 # several words
        refuses "RANK and WORLD_SIZE are set, as torchrun does for a rank, but MASTER_PORT is not: set " \
            env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "$EVENLOAD" $command --devices 2
    done
    [[ ! -e results ]] || show
    run --separate-stderr env LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 "$EVENLOAD" run "${QUICK[@]}" --launcher self --out self --quiet
    [[ $status -eq 0 && -z $stderr ]] || show
    run --separate-stderr env MASTER_ADDR=127.0.0.1 "$EVENLOAD" run "${QUICK[@]}" --out own
    [[ $status -eq 0 && $stderr == "evenload: MASTER_ADDR is set, but RANK and WORLD_SIZE are not: "* ]] || show
}

@test "--launcher self in spite of a rank's variables" {
    run --separate-stderr env PMI_RANK=3 PMI_SIZE=4 "$EVENLOAD" run "${QUICK[@]}" --launcher self --out r
    [[ $status -eq 0 && -s r/results.json ]] || show
}

mpirun_n() {
    need_mpirun
    local -a allow=()
    [[ $(id -u) -ne 0 ]] || allow=(--allow-run-as-root)
    timeout 240 mpirun "${allow[@]}" --oversubscribe --bind-to none -n "$@"
}

@test "started by mpirun it takes its place as a rank" {
    mpirun_n 2 "$EVENLOAD" run "${QUICK[@]}" --mode ddp --out r
    [[ $(json r/results.json 'd["trials"][0]["devices"], [p["rank"] for p in d["trials"][0]["processes"]]') == "(2, [0, 1])" ]]
}

@test "a mode of one process under mpirun is refused, once" {
    need_mpirun
    run --separate-stderr mpirun_n 2 "$EVENLOAD" run "${QUICK[@]}" --mode dp --out r
    [[ $status -eq 2 && $(grep -c "mode dp is one process" <<<"$output$stderr") -eq 1 ]] || show
}

@test "compare under mpirun: rank 0 works, the others leave" {
    need_mpirun
    run --separate-stderr mpirun_n 3 "$EVENLOAD" compare "${QUICK[@]}" --repeats 1 --out c
    [[ $status -eq 0 && $(grep -c "leaves" <<<"$output$stderr") -eq 2 ]] || show
    [[ $(json c/results.json '[t["status"] for t in d["trials"]]') == "['ok', 'ok', 'ok']" ]]
}

# torchrun_n N COMMAND...: as torchrun starts it, from rank N-1 down; stops at the first that fails.
torchrun_n() {
    local n=$1 rank
    shift
    for ((rank = n - 1; rank > 0; rank--)); do
        env RANK="$rank" WORLD_SIZE="$n" LOCAL_RANK="$rank" MASTER_ADDR=localhost MASTER_PORT="$port" timeout 240 "$@" >"rank-$rank.txt" 2>&1 3>&- &
    done
    env RANK=0 WORLD_SIZE="$n" LOCAL_RANK=0 MASTER_ADDR=localhost MASTER_PORT="$port" timeout 240 "$@"
    wait
}

@test "started with torchrun's variables it takes its place as a rank" {
    port=$(free_port)
    torchrun_n 3 "$EVENLOAD" run "${QUICK[@]}" --mode ddp --out r
    [[ $(json r/results.json 'd["trials"][0]["devices"], [p["rank"] for p in d["trials"][0]["processes"]]') == "(3, [0, 1, 2])" ]]
}

@test "a mode of one process under torchrun is refused, once" {
    port=$(free_port)
    run --separate-stderr torchrun_n 2 "$EVENLOAD" run "${QUICK[@]}" --mode dp --out r
    [[ $(cat rank-1.txt)$output$stderr == *"mode dp is one process, but torchrun started 2"* ]] || show
    [[ $(cat rank-1.txt <(printf %s "$output$stderr") | grep -c "one process") -eq 1 ]] || show
}

@test "ranks that were told of different worlds: one clear line each, no hang" {
    port=$(free_port)
    local -a place=(env MASTER_ADDR=127.0.0.1 MASTER_PORT="$port")
    "${place[@]}" RANK=1 WORLD_SIZE=3 timeout 120 "$EVENLOAD" run "${QUICK[@]}" --mode ddp >other.txt 2>&1 3>&- &
    run --separate-stderr "${place[@]}" RANK=0 WORLD_SIZE=2 timeout 120 "$EVENLOAD" run "${QUICK[@]}" --mode ddp --timeout 1
    [[ $status -eq 1 && ${#stderr_lines[@]} -eq 1 && $stderr == *"for rank 1 of 2;"*"rank 1 (127.0.0.1) expects 3 ranks, and rank 0 expects 2" ]] || show
    wait
    grep -q "evenload: .*refuses rank 1: .*expects 3 ranks" other.txt
}

@test "more ranks than there can be: refused before anything is allocated for them" {
    refuses "100000000 ranks: at most 64" env RANK=0 WORLD_SIZE=100000000 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        timeout 60 "$EVENLOAD" run "${QUICK[@]}" --mode ddp
}

@test "EVENLOAD_SECRET: who does not know it is turned away, and those who do go on" {
    port=$(free_port)
    local -a place=(env WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port")
    "${place[@]}" RANK=0 EVENLOAD_SECRET=sesame timeout 240 "$EVENLOAD" run "${QUICK[@]}" --mode ddp --out r >zero.txt 2>&1 3>&- &
    local zero=$!
    run --separate-stderr "${place[@]}" RANK=1 EVENLOAD_SECRET=barley timeout 120 "$EVENLOAD" run "${QUICK[@]}" --mode ddp
    [[ $status -eq 1 && $stderr == *"refuses rank 1: "*"has another EVENLOAD_SECRET"* ]] || show
    "${place[@]}" RANK=1 EVENLOAD_SECRET=sesame timeout 120 "$EVENLOAD" run "${QUICK[@]}" --mode ddp
    wait "$zero"
    [[ $(json r/results.json 'd["trials"][0]["status"]') == ok ]]
}

@test "a port that torchrun's variables give and that is in use" {
    port=$(free_port)
    python3 -c 'import socket, sys, time; s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("up", flush=True); time.sleep(30)' \
        "$port" >up.txt 3>&- &
    until [[ -s up.txt ]]; do sleep 0.05; done
    refuses "cannot listen at port $port" env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$EVENLOAD" run "${QUICK[@]}" --mode ddp
    kill $!
}

@test "ranks over tcp: the communicator is the one asked for" {
    "$EVENLOAD" run "${QUICK[@]}" --mode ddp --launcher own --comm tcp --out r --quiet
    [[ $(json r/results.json 'd["trials"][0]["status"], d["trials"][0]["config"]["comm"]') == "('ok', 'tcp')" ]]
}

# listens_abroad RUN: where ranks of this run listen that is not the loopback, as long as it lasts.
listens_abroad() {
    python3 - "$1" <<'END'
import glob, os, sys, time
LISTEN, LOOPBACK = "0A", ("0100007F", "0" * 24 + "01000000", "0000000000000000FFFF00000100007F")
found, seen, ends = set(), set(), time.time() + 60
def sockets(pid):
    for fd in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            yield os.readlink(fd)
        except OSError:
            pass
while time.time() < ends and not os.path.exists(f"{sys.argv[1]}/results.json"):
    rows = [line.split() for f in ("tcp", "tcp6") if os.path.exists(f"/proc/net/{f}") for line in open(f"/proc/net/{f}")][1:]
    abroad = {f"socket:[{r[9]}]": r[1] for r in rows if r[3] == LISTEN and r[1].split(":")[0] not in LOOPBACK}
    for name in glob.glob(f"{sys.argv[1]}/logs/*/rank-*.pid"):
        try:
            pid = open(name).read().strip()
        except OSError:
            continue
        seen |= {name} if pid else set()
        found |= {abroad[s] for s in sockets(pid) if s in abroad}
    time.sleep(0.05)
print(len(seen), *found)
END
}

@test "ranks of one host listen at no address of its networks" {
    local launcher launchers=("own --comm tcp")
    ! has_mpirun || launchers+=(mpirun)
    for launcher in "${launchers[@]}"; do
        # shellcheck disable=SC2086 # several words
        "$EVENLOAD" run "${QUICK[@]}" --min-time 0.3 --mode ddp --launcher $launcher --out "r $launcher" --quiet >/dev/null 3>&- &
        [[ $(listens_abroad "r $launcher") == 2 ]]
        wait $!
    done
}

@test "--launcher mpirun without mpirun: refused, with what to install" {
    refuses "mpirun: not found on PATH: install openmpi-bin" env PATH="$(path_without_mpirun)" "$EVENLOAD" run "${QUICK[@]}" --mode ddp --launcher mpirun
}

@test "mpirun that fails: the row has mpirun's own words" {
    need_mpirun
    local reason try # bats has an i of its own
    # mpirun loses these words now and then, to an error of its own ("Data unpack would read past end of buffer").
    for try in 1 2 3 4; do
        run --separate-stderr env OMPI_MCA_pml=nonsense "$EVENLOAD" run "${QUICK[@]}" --mode ddp --launcher mpirun --out "r$try"
        [[ $status -eq 1 && $stderr == *"last lines of r$try/logs/"*"launcher.log"* ]] || show
        reason=$(json "r$try/results.json" 'd["trials"][0]["reason"]')
        [[ $reason != "mpirun ended with exit status 1: A requested component was not found"*"Component: nonsense" ]] || return 0
        [[ $reason == "mpirun ended with exit status 1"* ]] || show
    done
    show
}

# Each of these two left mpirun's ranks waiting for one another.
@test "mpirun where /dev/shm is small: its shared memory lies in /tmp" {
    need_mpirun
    unshare -m true 2>why.txt || skip "no mount namespaces here: $(cat why.txt)"
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m bash -c 'mount -t tmpfs -o size=8m none /dev/shm && exec "$@"' bash \
        "$EVENLOAD" run "${QUICK[@]}" --mode ddp --launcher mpirun --timeout 60 --out r --quiet
    [[ $(json r/results.json 'd["trials"][0]["status"]') == ok ]]
}

@test "few open files: refused, with the limit" {
    for command in compare run devices plot; do
        refuses "32 open files are needed, and 10 are allowed: raise the limit (ulimit -n)" \
            bash -c 'ulimit -n 10 && exec "$@"' bash "$EVENLOAD" "$command"
    done
    [[ ! -e results ]] || show
}

@test "files for one process, not for the ranks of a job: refused before anything is started" {
    too_few() { (ulimit -n 33 && "$@"); }
    for command in "run ${QUICK[*]} --mode ddp --launcher own" "comm all_reduce --devices 2 --maxbytes 1K --launcher own"; do
        # shellcheck disable=SC2086 # words
        refuses "2 ranks need 34 open files on rank 0, and 33 are allowed" too_few "$EVENLOAD" $command --out r
        [[ ! -e r ]] || show
    done
}

@test "a small stack: refused, with the limit" {
    little() { (ulimit -s "$1" && "${@:2}"); }
    for command in "run --model toy" devices "worker x"; do
        # shellcheck disable=SC2086 # words
        refuses "1024 KiB of stack are needed, and 128 are allowed: raise the limit (ulimit -s)" little 128 "$EVENLOAD" $command
    done
    little 1024 "$EVENLOAD" run "${QUICK[@]}" --mode ddp --quiet --out r >/dev/null
}

@test "mpirun with few files: refused, with the limit" {
    need_mpirun
    few() { (ulimit -n 40 && "$@"); }
    refuses "mpirun needs 42 open files for 2 ranks, and 40 are allowed: raise the limit (ulimit -n)" \
        few "$EVENLOAD" run "${QUICK[@]}" --mode ddp --launcher mpirun --timeout 60
}

@test "run without mpirun: processes all the same" {
    env PATH="$(path_without_mpirun)" "$EVENLOAD" run "${QUICK[@]}" --mode ddp --out r --quiet
    [[ $(json r/results.json 'd["trials"][0]["status"], len(d["trials"][0]["processes"])') == "('ok', 2)" ]]
}

@test "one process needs no mpirun" {
    env PATH="$(path_without_mpirun)" "$EVENLOAD" run "${QUICK[@]}" --mode ddp --procs 1 --out r --quiet
    [[ $(json r/results.json 'd["trials"][0]["status"]') == ok ]]
}

@test "compare without mpirun: all rows are measured" {
    env PATH="$(path_without_mpirun)" "$EVENLOAD" compare "${QUICK[@]}" --repeats 1 --out c --quiet
    [[ $(json c/results.json '[t["status"] for t in d["trials"]]') == "['ok', 'ok', 'ok']" ]]
}

@test "compare without the mpirun it was asked to take: that row is absent, the others are measured" {
    run --separate-stderr env PATH="$(path_without_mpirun)" "$EVENLOAD" compare "${QUICK[@]}" --repeats 1 --launcher mpirun --out c
    [[ $status -eq 2 && $stderr == *"mpirun: not found on PATH"* ]] || show
    [[ $(json c/results.json '[t["status"] for t in d["trials"]]') == "['ok', 'ok', 'absent']" ]]
}

@test "a folder that is called mpirun or gnuplot is no program" {
    mkdir -p folders/mpirun folders/gnuplot
    env PATH="$PWD/folders:$(path_without_mpirun)" "$EVENLOAD" run "${QUICK[@]}" --out r --quiet
    [[ $(json r/results.json 'd["environment"]["mpirun"], d["environment"]["gnuplot"]') == "(None, None)" ]]
}

# The container's own group, as cgroup v1 mounts it: the program's cores, the record and a fingerprint have one source.
@test "a quota of the cgroup is the same to devices and to the record" {
    [[ $(id -u) -eq 0 ]] || skip "only root can mount"
    mkdir -p 'fake/cpu,cpuacct'
    echo 100000 | tee 'fake/cpu,cpuacct/cpu.cfs_quota_us' >'fake/cpu,cpuacct/cpu.cfs_period_us'
    unshare -m mount --bind fake /sys/fs/cgroup 2>why.txt || skip "cannot mount here: $(cat why.txt)"
    # shellcheck disable=SC2016 # for the inner shell
    run --separate-stderr unshare -m bash -c 'mount --bind fake /sys/fs/cgroup && "$@" && exec "$1" devices' - \
        "$EVENLOAD" run "${QUICK[@]}" --out r
    [[ $status -eq 0 && $output == *"cgroup quota 1"* ]] || show
    [[ $(json r/results.json 'd["environment"]["cgroup_cores"]') == 1.0 ]]
}
