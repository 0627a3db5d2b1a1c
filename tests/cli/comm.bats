# `comm`: what it prints, writes and refuses, in one process, in several, and under mpirun and torchrun's variables. Its arithmetic
# is tests/unit/test_wire's. Times are looked at in one test only, where they were made long on purpose.
PICTURES=no
load common

SHORT=(-e 4K -f 16 -n 2 -w 1 --quiet)

# rows FILE: nccl-tests' rows, without comments and what stands below them.
rows() { grep -E '^ +[0-9]+ +[0-9]+ +(float|double|int32|uint8) ' "$1"; }

@test "comm prints nccl-tests' columns, and writes its record" {
    run --separate-stderr "$EVENLOAD" comm "${SHORT[@]}" --comm local --out r
    printf '%s\n' "$output" >out.txt
    [[ $output == *"       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"* ]] || show
    [[ $(rows out.txt | awk '{print $1, $2, $3, $4, $5, NF}') == $'8 2 float sum -1 13\n128 32 float sum -1 13\n2048 512 float sum -1 13' ]] || show
    [[ $output == *"r/comm.json"* && $output == *"r/comm.csv"* && ${lines[-1]} == "Next: "*"comm "*"--comm-algorithm all"* ]] || show
    python3 - <<'END'
import csv, json
d = json.load(open("r/comm.json"))
assert (d["schema"], d["kind"], d["ranks"], d["processes"], d["backend"]) == (1, "comm", 2, 1, "local"), d
c = d["curves"][0]
for p, k in zip(c["points"], d["copy"]):
    assert p["bytes"] == k["bytes"] and k["gb_per_s"] > 0
    for place in "out_of_place", "in_place":
        f = p[place]
        slowest = sorted(max(call) for call in zip(*f["samples_us"]))
        assert len(f["samples_us"]) == 2 and abs(f["time_us"] - sum(slowest) / 2) < 1e-6, f
        assert abs(f["algbw_gb_per_s"] - p["bytes"] / f["time_us"] / 1e3) < 1e-9 and f["busbw_gb_per_s"] == f["algbw_gb_per_s"]
    assert p["in_place"]["wrong"] == 0
rows = list(csv.DictReader(open("r/comm.csv")))
assert len(rows) == 6 and rows[1]["place"] == "in_place" and float(rows[1]["time_us"]) == c["points"][0]["in_place"]["time_us"]
END
}

@test "two processes: --json and --csv alone on standard output" {
    run --separate-stderr "$EVENLOAD" comm broadcast "${SHORT[@]}" --comm shm -d int32 -r 1 --json --out j
    printf '%s' "$output" >j.json
    [[ -z $stderr && $(json j.json 'd["processes"], d["backend"], d["curves"][0]["operation"], d["datatype"], d["root"]') == "(2, 'shm', 'broadcast', 'int32', 1)" ]] || show
    [[ $(json j.json '[p["in_place"]["wrong"] for p in d["curves"][0]["points"]]') == "[0, 0, 0]" ]] || show
    run --separate-stderr "$EVENLOAD" comm reduce "${SHORT[@]}" --comm tcp --launcher own -o max -c 0 --csv --out c
    [[ ${lines[0]} == operation,algorithm,* && ${#lines[@]} -eq 7 && ${lines[1]} == reduce,auto,*,8,2,float,out_of_place,* && ${lines[1]} == *, ]] || show
}

@test "every operation by every algorithm: no element is wrong, and parts are counted as nccl-tests does" {
    run --separate-stderr "$EVENLOAD" comm all -b 1K -e 1K --comm tcp --launcher own --devices 3 --comm-algorithm all -n 1 -w 0 --quiet --json --out a
    printf '%s' "$output" >a.json
    [[ $status -eq 0 && $(json a.json '{c["operation"] for c in d["curves"]} == set("all_reduce broadcast reduce all_gather reduce_scatter alltoall scatter gather sendrecv".split())') == True ]] || show
    [[ $(json a.json '{(c["operation"], p["bytes"], p["count"]) for c in d["curves"] for p in c["points"] if c["operation"] in ("all_gather", "all_reduce")}') == *"('all_gather', 1008, 84)"* ]] || show
    [[ $(json a.json 'sum(p[k]["wrong"] for c in d["curves"] for p in c["points"] for k in ("out_of_place", "in_place") if p[k])') == 0 ]] || show
}

@test "messages go through mailboxes, of ranks of a host and of threads of a process" {
    for how in "--comm shm --launcher own" "--comm local"; do
        # shellcheck disable=SC2086
        run --separate-stderr "$EVENLOAD" comm sendrecv -b 1K -e 64K --devices 3 -n 70 -w 1 --quiet --json --out "m${#how}" $how
        printf '%s' "$output" >m.json
        [[ $status -eq 0 && $(json m.json '[p["out_of_place"]["wrong"] for c in d["curves"] for p in c["points"]]') == "[0, 0, 0, 0, 0, 0, 0]" ]] || show
        [[ $(json m.json '[bool(p["cold"]) for c in d["curves"] for p in c["points"]], sum(bool(k["cold"]) for k in d["copy"])') == "([False, False, False, False, False, False, True], 1)" ]] || show
    done
}

@test "p2p: each pair has a latency and a bandwidth" {
    run --separate-stderr "$EVENLOAD" comm p2p --comm tcp --launcher own --devices 3 -e 64K -n 2 -w 1 --quiet --out p
    [[ $status -eq 0 && $output == *"Out of bounds values : 0 OK"* && $output == *"Bandwidth of each pair"* && $output == *"Slowest pair: ranks "* ]] || show
    [[ $(nproc) -ge 3 || $output == *"Devices share a core here, which can make a pair slow"* ]] || show
    [[ $(json p/comm.json '[(p["a"], p["b"]) for p in d["pairs"]]') == "[(0, 1), (0, 2), (1, 2)]" ]] || show
    [[ $(json p/comm.json 'all(abs(p["gb_per_s"] - 2 * 65536 / (sum(p["there_and_back_us"][1]) / 2) / 1e3) < 1e-9 for p in d["pairs"])') == True ]] || show
    [[ $(wc -l <p/comm.csv) -eq 4 ]] || show
    refuses "one rank has no partner" "$EVENLOAD" comm p2p --devices 1
}

@test "as ranks of mpirun, and by torchrun's variables" {
    MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port)
    export MASTER_ADDR MASTER_PORT WORLD_SIZE=2
    RANK=1 LOCAL_RANK=1 "$EVENLOAD" comm "${SHORT[@]}" --out t >one.txt &
    RANK=0 LOCAL_RANK=0 run --separate-stderr "$EVENLOAD" comm "${SHORT[@]}" --out t
    wait $!
    [[ $output == *"2 ranks in 2 processes, communicator shm"* && ! -s one.txt && -s t/comm.json ]] || show
    unset MASTER_ADDR MASTER_PORT WORLD_SIZE RANK
    need_mpirun
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run --separate-stderr mpirun -n 2 --oversubscribe --bind-to core:overload-allowed "$EVENLOAD" comm "${SHORT[@]}" --comm mpi --out m
    [[ $output == *"2 ranks in 2 processes, communicator mpi"* && -s m/comm.json ]] || show
    # Each rank sees one core, and has it to itself.
    [[ $(nproc) -lt 2 || $(json m/comm.json 'd["shared_cores"]') == False ]] || show
}

@test "a rank that stops is named before --timeout ends the job" {
    [[ ${EVENLOAD_LONG:-} == 1 ]] || {
        echo "# long: a rank of comm that stops" >&3
        skip "takes 20 s"
    }
    "$EVENLOAD" comm -b 1M -e 4M -n 300 -w 0 -c 0 --comm tcp --launcher own --timeout 18 --out s 2>err >out 3>&- &
    local job=$! pid code=0
    until grep -qs '^.2/2' s/logs/comm/rank-0.log || ! kill -0 "$job"; do sleep 0.1; done
    read -r pid <s/logs/comm/rank-1.pid
    kill -STOP "$pid"
    wait "$job" || code=$?
    [[ $code -ne 0 ]]
    grep "^evenload: the .* of rank 0: tcp communicator: rank 0 waited .* for rank 1 (host " err
}

@test "a wire that takes longer on purpose is seen to" {
    run --separate-stderr "$EVENLOAD" comm -b 64K -e 64K -n 3 -w 0 --quiet --comm local --inject wire=640 --json --out w
    printf '%s' "$output" >w.json
    [[ $(json w.json 'all(min(s) >= 40000 for s in d["curves"][0]["points"][0]["in_place"]["samples_us"])') == True ]] || show
}

@test "comm refuses in a line what it cannot do" {
    refuses "did you mean 'all_reduce'" "$EVENLOAD" comm allreduce
    refuses "there is no device 9 in a trial of 2" "$EVENLOAD" comm --devices 2 --inject straggler=9:2
    refuses "--comm nccl is for GPUs, and the devices are cpu" "$EVENLOAD" comm --devices 2 --comm nccl
    refuses "--comm mpi needs mpirun" "$EVENLOAD" comm --devices 2 --comm mpi --launcher own
    refuses "simulated devices move nothing" "$EVENLOAD" comm --devices sim:2
    refuses "'x' is not bytes" "$EVENLOAD" comm -b x
    refuses "-n needs a value" "$EVENLOAD" comm -n
    refuses "no rank 2 of 2" "$EVENLOAD" comm -r 2
    refuses "unexpected argument 'now'" "$EVENLOAD" comm all_reduce now
    refuses "MiB are free" "$EVENLOAD" comm -e 900G
    refuses "no launcher started this process" "$EVENLOAD" comm --launch rank
    [[ ! -e results ]]
    mkdir taken && touch taken/command.json
    refuses "taken holds a run already" "$EVENLOAD" comm --out taken
    mkdir other && echo '{"kind": "comm", "schema": 99}' >other/comm.json
    refuses "is nothing that 'evenload comm' of this version wrote" "$EVENLOAD" plot other
}

@test "the page's examples run, and a folder is drawn again" {
    page=$BATS_TEST_DIRNAME/../../docs/comm.md
    ln -s "$EVENLOAD" evenload
    n=0
    while read -r command; do
        read -ra words <<<"${command#evenload }"
        "$EVENLOAD" "${words[@]}" -n 2 -w 1 --quiet -b 1K -e 4K >out.txt 2>err.txt || [[ $? -eq 1 ]] || { cat err.txt && false; }
        n=$((n + 1))
    done < <(grep -E '^    evenload comm' "$page" | grep -v -e --from | sed 's/ *#.*//')
    [[ $n -ge 3 ]]
    with_gnuplot
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    local folders=(results/*-comm)
    run --separate-stderr "$EVENLOAD" plot "${folders[0]}"
    [[ $status -eq 0 && $output == *"plots/comm.svg"* ]] || show
}

@test "machine measures this machine's rates, and simulated devices take them" {
    run --separate-stderr "$EVENLOAD" machine --out mine.json
    [[ $status -eq 0 && $output == *"Next: "*" compare --devices sim:8 --machine mine.json" && -z $stderr ]] || show
    [[ $(json mine.json 'min(v for v in d.values() if isinstance(v, float)) >= 0, d["f32_tflop_per_s"] > 0 < d["link_gb_per_s"], "measured by" in d["source"], "network_gb_per_s" in d') == \
        "(True, True, True, False)" ]] || { cat mine.json && false; }
    run "$EVENLOAD" run --mode ddp --devices sim:4 --model mlp --data dummy --machine mine.json --dry-run
    [[ $status -eq 0 && $output == *"by the rates of machine $(json mine.json 'd["name"]') (f32 "* ]] || show
    refuses "links need two devices" "$EVENLOAD" machine --devices 1
    refuses "sim devices do no work that could be timed" "$EVENLOAD" machine --devices sim:2
}
