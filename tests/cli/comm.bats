# `comm`: what it prints, writes and refuses, in one process, in several, and under mpirun and torchrun's variables. Its arithmetic
# is tests/unit/test_wire's. Times are looked at in one test only, where they were made long on purpose.
PICTURES=no
load common

SHORT=(-e 4K -f 16 -n 2 -w 1 --quiet)

# rows FILE: nccl-tests' rows, without comments and what stands below them.
rows() { grep -E '^ +[0-9]+ +[0-9]+ +(float|double|int32|uint8|half|bfloat16) ' "$1"; }

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
    [[ ${lines[0]} == operation,algorithm,* && ${#lines[@]} -eq 7 && ${lines[1]} == reduce,auto,*,8,2,float,out_of_place,* && ${lines[1]} == *,,max,0,0 ]] || show
}

@test "every operation by every algorithm: no element is wrong, and parts are counted as nccl-tests does" {
    run --separate-stderr "$EVENLOAD" comm all -b 1K -e 1K --comm tcp --launcher own --devices 3 --comm-algorithm all -n 1 -w 0 --quiet --json --out a
    printf '%s' "$output" >a.json
    [[ $status -eq 0 && $(json a.json '{c["operation"] for c in d["curves"]} == set("all_reduce broadcast reduce all_gather reduce_scatter alltoall alltoallv scatter gather sendrecv barrier".split())') == True ]] || show
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

@test "--from A,B: two records, size by size, with intervals" {
    "$EVENLOAD" comm -e 4K -f 16 -n 6 -w 1 --quiet --comm local --out a >/dev/null
    python3 - <<'.' # B takes 3 times as long, and has a size less
import json
d = json.load(open("a/comm.json"))
d["curves"][0]["points"].pop()
for point in d["curves"][0]["points"]:
    for place in point["out_of_place"], point["in_place"]:
        place["samples_us"] = [[3 * us for us in rank] for rank in place["samples_us"]]
json.dump(d, open("b.json", "w"))
.
    run --separate-stderr "$EVENLOAD" comm --from a,b.json
    [[ $status -eq 0 && $output == "A: a, 2 ranks, communicator local"*"B: b.json, 2 ranks"*"The intervals cover the calls of one launch of each"* ]] || show
    run --separate-stderr "$EVENLOAD" comm --from a,b.json --json
    [[ $(json /dev/stdin '[(r["bytes"], r["place"], round(r["ratio"], 9), r["ratio_ci95"][0] < 3 < r["ratio_ci95"][1]) for r in d["rows"]]' <<<"$output") == \
        "[(8, 'out of', 3.0, True), (8, 'in', 3.0, True), (128, 'out of', 3.0, True), (128, 'in', 3.0, True)]" ]] || show
    refuses "nowhere: No such file" "$EVENLOAD" comm --from a,nowhere
    refuses "unexpected argument 'b': --from takes a list, as --from a,b" "$EVENLOAD" comm --from a b
    refuses "a has a record of comm: 'evenload comm --from A,B' compares two" "$EVENLOAD" explain a a
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
    long "a rank of comm that stops"
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
    # -m has two operations in a call, whose time is of one; with -z 0 a call lasts from the end of the one before.
    run --separate-stderr "$EVENLOAD" comm -b 64K -e 64K -n 3 -w 0 -m 2 -z 0 --quiet --comm local --inject wire=640 --json --out m
    printf '%s' "$output" >m.json
    us='[u for s in d["curves"][0]["points"][0]["in_place"]["samples_us"] for u in s]' # on a busy machine some take longer
    [[ $(json m.json "len($us), min($us) >= 40000, min($us) < 70000") == "(6, True, True)" ]] || show
}

@test "--overlap: each operation beside a computation, and the share that it hides" {
    long "each operation beside a computation, 6 s"
    run --separate-stderr "$EVENLOAD" comm all -b 1K -e 64K -f 64 --comm local -n 3 -w 1 --overlap on --quiet --json --out v
    printf '%s' "$output" >v.json
    [[ $status -eq 0 ]] || show
    python3 - <<'END'
import csv, json
d = json.load(open("v.json"))
rows = list(csv.DictReader(open("v/comm.csv")))
n = 0
assert d["overlap"] is True and len(d["curves"]) == 11
for c in d["curves"]:
    for p in c["points"]:
        assert not p["cold"] or p["cold"]["overlap"] is None
        for place in "out_of_place", "in_place":
            if not p[place]:
                continue
            o = p[place]["overlap"]
            for key in "compute", "overall":
                slowest = sorted(max(call) for call in zip(*o[key + "_samples_us"]))
                assert len(slowest) == 3 and slowest[0] > 0 and abs(o[key + "_us"] - slowest[1]) < 1e-6, o
            pct = 100 * (1 - (o["overall_us"] - o["compute_us"]) / p[place]["time_us"])
            assert p[place]["wrong"] == 0 and abs(o["overlap_pct"] - min(100, max(0, pct))) < 1e-6, p[place]
            row, = (r for r in rows if (r["operation"], float(r["size"]), r["place"]) == (c["operation"], p["bytes"], place))
            assert abs(float(row["overlap_pct"]) - o["overlap_pct"]) < 1e-6 and row["compute_us"] and row["overall_us"], row
            n += 1
assert n == 37, n
assert all(not r["overlap_pct"] for r in rows if r["place"] == "cold")
END
    # A wire and a computation that both sleep: 20 ms and 30 ms take 30 ms together, whatever else runs.
    run --separate-stderr "$EVENLOAD" comm -b 64K -e 64K -n 3 -w 0 --comm shm --launcher own --inject wire=320,pause=computation:30 --overlap on --quiet --out h
    [[ $status -eq 0 && $output == *"# Overlap with a computation:"* && $output == *"Does it overlap? all_reduce of "* ]] || show
    [[ $(json h/comm.json 'min(d["curves"][0]["points"][0][p]["overlap"]["overlap_pct"] for p in ("out_of_place", "in_place")) > 50') == True ]] || show
    if [[ -x $EVENLOAD_BUILD/cards/evenload ]]; then
        FAKE_CARDS=2 "$EVENLOAD_BUILD/cards/evenload" comm --devices cuda:2 -e 8 -n 2 --overlap on --quiet --out g
        [[ $(json g/comm.json 'd["backend"], d["curves"][0]["points"][0]["in_place"]["overlap"]["compute_us"] > 0') == "('nccl', True)" ]]
    fi
    refuses "--overlap: 'maybe' is not one of off|on" "$EVENLOAD" comm --overlap maybe
    refuses "null devices compute nothing" "$EVENLOAD" comm --overlap on --devices null:2
}

# All flags that nccl-tests' README and its -h have (July 2026): letter, name, a value, and whether comm takes it.
NCCL_TESTS_FLAGS="t nthreads 1 yes:g ngpus 2 yes:b minbytes 8 yes:e maxbytes 1K yes:i stepbytes 1M yes:f stepfactor 2 yes:o op all yes:d datatype all yes"
NCCL_TESTS_FLAGS+=":r root all yes:n iters 20 yes:w warmup_iters 1 yes:m agg_iters 2 yes:N run_cycles 2 yes:a average 1 yes:c check 1 yes:z blocking 1 yes"
NCCL_TESTS_FLAGS+=":J output_file a.json no:T timeout 9 yes:p parallel_init 1 no:G cudagraph 2 no:C report_cputime 1 no:R local_register 1 no:S report_timestamps 1 no"
NCCL_TESTS_FLAGS+=":D device_implementation 1 no:V device_cta_count 16 no:M memory 1 no:u unalign 1 no:x cta_policy 1 no:y stream_null 1 no"
NCCL_TESTS_FLAGS+=":I per_iter_timing 1 no:K per_iter_skip 1 no:"

@test "each flag of nccl-tests is taken, or refused with a reason, and the page's table says so" {
    page=$BATS_TEST_DIRNAME/../../docs/comm.md
    n=0
    while read -r -d: letter name value taken; do
        says=$([[ $taken == yes ]] && echo taken || echo refused)
        grep -q "^| \`-$letter\`, \`--$name\` | $says" "$page" || { echo "docs/comm.md does not say that $letter is $says" && false; }
        for flag in "-$letter" "--$name"; do
            if [[ $taken == yes ]]; then
                run --separate-stderr "$EVENLOAD" comm "$flag" "$value" --help
                [[ $status -eq 0 && -z $stderr ]] || show
            else
                refuses "unknown option '$flag': " "$EVENLOAD" comm "$flag" "$value"
                [[ $stderr != *"lists them"* && $stderr != *"did you mean"* ]] || show
            fi
        done
        n=$((n + 1))
    done <<<"$NCCL_TESTS_FLAGS"
    [[ $n -eq 31 && $(grep -cE '^\| `-[a-zA-Z]`, `--[a-z_]+` \| (taken|refused)' "$page") -eq 31 ]]
}

@test "nccl-tests' flags do what they say" {
    run --separate-stderr "$EVENLOAD" comm reduce -t 1 -g 3 -b 48 -e 144 -i 48 -d half -o max -r all -n 3 -w 1 -m 2 -N 2 -z 1 -a 1 -T 60 --quiet --out f
    printf '%s\n' "$output" >out.txt
    [[ $status -eq 0 && $output == *"# a call is 2 operations"* && $output == *"barrier behind each operation"* ]] || show
    [[ $(rows out.txt | awk '{print $1, $2, $3, $4, $5, $9, $13}' | sort -u | tr '\n' ,) == "144 72 half max 0 0 0,144 72 half max 1 0 0,144 72 half max 2 0 0,48 24 half max 0 0 0,48 24 half max 1 0 0,48 24 half max 2 0 0,96 48 half max 0 0 0,96 48 half max 1 0 0,96 48 half max 2 0 0," ]] || show
    [[ $(json f/comm.json 'd["backend"], d["processes"], d["ranks"], d["agg_iters"], d["cycles"], d["blocking"], [c["cycle"] for c in d["curves"]]') == "('local', 1, 3, 2, 2, 1, [0, 1, 0, 1, 0, 1])" ]] || show
    run --separate-stderr "$EVENLOAD" comm alltoall -d all -b 1K -e 1K -n 2 -w 1 -z 0 --comm local --json --out a
    printf '%s' "$output" >a.json
    [[ $(json a.json '[c["datatype"] for c in d["curves"]], sum(p["out_of_place"]["wrong"] for c in d["curves"] for p in c["points"])') == "(['float', 'double', 'int32', 'uint8', 'half', 'bfloat16'], 0)" ]] || show
    [[ $(json a.json '[c["points"][0]["in_place"] for c in d["curves"]][4]') == None ]] || show
    refuses "sizes grow in one way" "$EVENLOAD" comm -i 8 -f 2
    refuses "--devices says which devices" "$EVENLOAD" comm -g 2 --devices 2
    refuses "at most 64" "$EVENLOAD" comm -g 64 -t 2
    refuses "--blocking 2: " "$EVENLOAD" comm -z 2
    refuses "--precision: 'bfloat16' is not one of" "$EVENLOAD" run --precision bfloat16
}

@test "--group: only its ranks communicate, or all in groups at the same time" {
    for how in "--comm local" "--comm shm --launcher own"; do
        # shellcheck disable=SC2086
        run --separate-stderr "$EVENLOAD" comm all --devices 4 --group "mod 2" -b 1K -e 1K -n 2 -w 1 --quiet --json --out "g${#how}" $how
        printf '%s' "$output" >g-out.json
        [[ $status -eq 0 && $(json g-out.json 'd["ranks"], d["group"], d["groups"], [m["group"] for m in d["members"]], {len(p["out_of_place"]["samples_us"]) for c in d["curves"] for p in c["points"]}') == "(2, 'mod 2', 2, [0, 1, 0, 1], {4})" ]] || show
        [[ $(json g-out.json 'sum(p[k]["wrong"] for c in d["curves"] for p in c["points"] for k in ("out_of_place", "in_place") if p[k]), [p["count"] for p in d["curves"][3]["points"]]') == "(0, [128])" ]] || show
    done
    run --separate-stderr "$EVENLOAD" comm all_gather --devices 3 --group 2 -b 1K -e 1K -n 2 -w 1 --quiet --comm tcp --launcher own --out one
    [[ $status -eq 0 && $output == *"--group 2: 1 group of that many ranks"* && $(json one/comm.json 'd["ranks"], [m["group"] for m in d["members"]]') == "(1, [-1, -1, 0])" ]] || show
    refuses "groups of 2 and of 1 ranks" "$EVENLOAD" comm --devices 3 --group "mod 2"
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
    refuses "no launcher started this process" "$EVENLOAD" comm --launcher rank
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
    long "this machine's rates, 15 s"
    run --separate-stderr "$EVENLOAD" machine --out mine.json
    [[ $status -eq 0 && $output == *"Next: "*" compare --devices sim:8 --machine mine.json" ]] || show
    [[ -z $stderr || $stderr == "evenload: other processes use "*" of the cores now: "* ]] || show
    [[ $(json mine.json 'min(v for v in d.values() if isinstance(v, float)) >= 0, d["f32_tflop_per_s"] > 0 < d["link_gb_per_s"], "measured by" in d["source"], "network_gb_per_s" in d, {r["dtype"] for r in d["products"]} == {r["dtype"] for r in d["attention"]} == {"f32", "bf16"}') == \
        "(True, True, True, False, True)" ]] || { cat mine.json && false; }
    run "$EVENLOAD" run --mode ddp --devices sim:4 --model mlp --data dummy --machine mine.json --dry-run
    [[ $status -eq 0 && $output == *"by the rates of machine $(json mine.json 'd["name"]') (f32 "* ]] || show
    run "$EVENLOAD" plan --model mlp --devices 2 --machine mine.json
    [[ $status -eq 0 && $output == *"Not modelled: the network: "* && $output != *"products of each size"* ]] || show
    sed 's/"seq"/"tokens"/' mine.json >bad.json
    refuses "each of 'attention' must have dtype (f32, f64, bf16), seq, head and tflop_per_s above 0" \
        "$EVENLOAD" run --devices sim:2 --machine bad.json
    refuses "links need two devices" "$EVENLOAD" machine --devices 1
    refuses "sim devices do no work that could be timed" "$EVENLOAD" machine --devices sim:2
}
