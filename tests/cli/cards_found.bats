# Which cards a command takes, and what it says where it cannot: on cards that are none (tests/cards).
load common
PICTURES=no
stderr='' # set by run

CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
TINY=(--vocab 50 --embed 4 --filters 3 --seq 12 --batch 8 --steps 6 --warmup 1 --min-time 0 --control none --quiet --timeout 60)

need_cards() {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    export FAKE_CARDS=2
}

# What Python makes of the first trial of a run in folder `out`.
of_trial() { # of_trial EXPRESSION
    python3 -c "import json; t = json.load(open('out/results.json'))['trials'][0]; print($1)"
}

@test "a driver that fails is told in one line, and no CPU devices are taken" {
    need_cards
    local command code
    for code in 802 999; do
        export FAKE_CARDS_FAIL="cudaGetDeviceCount:*:1/1=$code"
        for command in run compare scale imbalance verify "run --devices cuda:2"; do
            # shellcheck disable=SC2086 # words
            refuses "there is a driver, and it fails: cudaGetDeviceCount" "$CARDS" $command --out out
            [[ ${#stderr_lines[@]} -eq 1 && ! -e out ]] || show
        done
    done
    FAKE_CARDS_FAIL="cudaGetDeviceCount:*:1/1=804" refuses "(cuda-compat) does not go with this card" "$CARDS" run --out out
    "$CARDS" run --devices cpu:1 "${TINY[@]}" --out out >/dev/null
}

@test "without a card, and with CUDA_VISIBLE_DEVICES empty, CPU devices are taken" {
    need_cards
    CUDA_VISIBLE_DEVICES='' "$CARDS" run "${TINY[@]}" --out out >/dev/null
    [[ $(of_trial 't["device_names"][0]') == cpu:0 ]] || show
    FAKE_CARDS=0 "$CARDS" run "${TINY[@]}" --out none >/dev/null
}

@test "a card that another process has for itself is a row that says so" {
    need_cards
    FAKE_CARDS_FAIL='cudaFree:*:1/1=46' run "$CARDS" run --mode single "${TINY[@]}" --out out
    [[ $status -eq 2 && $(of_trial 't["status"], t["reason"]') == "absent "*"another process has the card for itself"* ]] || show
}

# By the beginning of their names too, as CUDA takes them; one that is named twice hides all.
@test "cards are taken in the order in which CUDA_VISIBLE_DEVICES names them" {
    need_cards
    local names
    names=$(python3 -c 'print(*["GPU-%02x%02x" % tuple((0xfa + 17 * i + n) % 256 for i in range(2)) for n in (1, 0)], sep=",")')
    CUDA_VISIBLE_DEVICES=$names "$CARDS" run --mode single "${TINY[@]}" --devices cuda:0, --out out >/dev/null
    [[ $(of_trial 't["per_device"][0]["uuid"]') == "${names%,*}"* ]] || { of_trial 't["per_device"][0]' && show; }
    CUDA_VISIBLE_DEVICES=0,0 refuses "no GPU that this process may use" "$CARDS" run --mode single --devices cuda:0, --out none
    CUDA_VISIBLE_DEVICES='[0,1]' refuses "(it is '[0,1]', and CUDA takes '[0' for no GPU)" "$CARDS" run --devices cuda:0, --out none
    CUDA_VISIBLE_DEVICES='0,=1' refuses "(it is '0,=1', and CUDA takes '=1' for no GPU)" "$CARDS" run --devices cuda:2 --out none
    run --separate-stderr "$CARDS" run --mode single --devices cuda:1 --model toy --steps 2 --min-time 0 --control none --out one
    [[ $status -eq 0 && $stderr == *"--devices cuda:1 is one GPU, cuda:0; GPU 1 alone is --devices cuda:1,"* ]] || show
}

@test "devices tells how cards are joined, and what is not reported; the record has it" {
    need_cards
    [[ $(FAKE_CARDS=3 FAKE_CARDS_MODEL=T4 "$CARDS" devices) == *"GPU0       Tesla T4, PCIe 4 x16, NUMA ?, NVLinks 0"*"
  GPU1         PIX     X   SYS
  GPU2         SYS   SYS     X" ]] || { FAKE_CARDS_MODEL=T4 FAKE_CARDS=3 "$CARDS" devices && show; }
    "$CARDS" devices --json >devices.json
    [[ $(json devices.json 'd["gpu_links"]["gpus"][1]["nvlinks"]["to"]') == "{'switch': 17}" ]]
    FAKE_CARDS_REPLAYS=3 "$CARDS" run --mode single "${TINY[@]}" --out out >/dev/null
    python3 - <<'END'
import json
run = json.load(open("out/results.json"))
gpus, trial = run["environment"]["gpu_links"]["gpus"], run["trials"][0]
assert [g["to"] for g in gpus] == [["X", "NV17"], ["NV17", "X"]], gpus
assert all(g["pcie"]["max_width"] is None and "max_width: not reported" in g["reason"] for g in gpus), gpus
gpu = trial["per_device"][0]["gpu"]
assert (gpu["nvlink_errors"], gpu["pcie_replays"]) == (0, 3), gpu
assert "gpu_links" not in trial["warning_rules"], trial["warnings"]
END
    FAKE_CARDS_REPLAYS=9 "$CARDS" run --mode single "${TINY[@]}" --out more >/dev/null
    [[ $(json more/results.json 'd["trials"][0]["warning_rules"]') == *gpu_links* ]] || show
}

# ranks COMMAND...: two ranks, each with what CUDA_VISIBLE_DEVICES of SEES[rank] shows it.
ranks() {
    local rank port pids=() status=0
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    for rank in 0 1; do
        CUDA_VISIBLE_DEVICES=${SEES[rank]} RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
            MASTER_PORT=$port timeout 240 "$CARDS" "$@" >"rank$rank.out" 2>&1 &
        pids+=($!)
    done
    for rank in 0 1; do wait "${pids[rank]}" || status=$?; done
    return "$status"
}

@test "ranks that see one card each take it; ranks that see the same one are told" {
    need_cards
    SEES=(0 1)
    # NCCL's own setting would make communicators that the fake, as evenload, has no use for.
    NCCL_COMM_BLOCKING=0 ranks run --mode ddp "${TINY[@]}" --out out || { cat rank?.out && false; }
    [[ $(of_trial 't["communicator"]') == nccl && $(of_trial 'len({d["uuid"] for d in t["per_device"]}), t["device_names"], t["status"]') == "2 ['cuda:0', 'cuda:0'] ok" ]] || show
    # Two cards, not one that two devices share.
    [[ $(<rank0.out) != *"cuda:0 sum"* && $(of_trial 't["warning_rules"]') != *shared_gpu* ]] || { cat rank0.out && false; }
    rm -r out
    SEES=(1 1)
    ! ranks run --mode ddp "${TINY[@]}" --out out || show
    [[ $(grep -h evenload: rank?.out) == *"ranks 0 and 1 see the same one card (GPU-"* && ! -e out ]] || { cat rank?.out && false; }
}

@test "the headline is of steps that were not recorded, phases of those that were" {
    need_cards
    "$CARDS" run --mode dp --devices cuda:0,cuda:1 "${TINY[@]}" --out out >/dev/null
    [[ $(of_trial 'len(t["repeats"][0]["step_ms"]), len(t["repeats"][0]["recorded_step_ms"]), len(t["loss"])') == "3 3 7" ]] || show
    [[ $(of_trial '0 < t["throughput"]["wall_samples_per_s"] < t["throughput"]["samples_per_s"]') == True ]] || show
}

@test "a step as a CUDA graph: the same losses, and the record says which steps were one" {
    need_cards
    [[ $("$CARDS" run --mode single --devices cuda:1 "${TINY[@]}" --graph on --out out) == *"single graph"* ]] || show
    "$CARDS" run --mode single --devices cuda:1 "${TINY[@]}" --out plain >/dev/null
    [[ $(of_trial 't["config"]["graph"], t["repeats"][0]["graph_steps"], len(t["repeats"][0]["recorded_step_ms"])') == "on 3 3" ]] || show
    [[ $(of_trial 't["loss"] == json.load(open("plain/results.json"))["trials"][0]["loss"]') == True ]] || show
    [[ $(of_trial 't["per_device"][0]["memory"]["library_bytes"]["graph"] > 0 and "--graph on" in t["command"]') == True ]] || show
    run "$CARDS" run --mode single --devices cuda:1 "${TINY[@]}" --graph on --control record --out both
    [[ $status -eq 2 && $output == *"--graph on and --control record"* && ! -e both ]] || show
    run "$CARDS" run --mode single --devices cuda:1 "${TINY[@]}" --graph on --non-blocking pin=off --out both
    [[ $status -eq 2 && $output == *"--graph on and --non-blocking pin=off"* && ! -e both ]] || show
}

@test "a trace has what the host queued, and arrows from there to what its card did" {
    need_cards
    "$CARDS" run --mode single --devices cuda:1 "${TINY[@]}" --trace t --profile wait=1,active=2,repeat=1 --out out >/dev/null
    python3 - <<'END'
import json
events = json.load(open("t/rank-0.pt.trace.json"))["traceEvents"]
of = lambda ph, *cats: [e for e in events if e["ph"] == ph and e.get("cat") in cats]
launches, works = of("X", "cuda_runtime"), of("X", "kernel", "gpu_memcpy")
assert len(launches) == len(works) > 20 and len(of("X", "kernel")) > 10
assert not any("correlation" in e.get("args", {}) for e in of("X", "cpu_op"))
work, begin, end = ({k(e): e for e in group} for k, group in ((lambda e: e["args"]["correlation"], works), (lambda e: e["id"], of("s", "ac2g")), (lambda e: e["id"], of("f", "ac2g"))))
before = 0
for launch in launches:
    number = launch["args"]["correlation"]
    assert begin[number]["ts"] == launch["ts"] > before and end[number]["ts"] == work[number]["ts"] and launch["dur"] >= 0
    assert launch["tid"] == launch["pid"] and work[number]["pid"] == 0
    before = launch["ts"]
END
}

@test "a disturbance that a GPU cannot have is refused, not left out" {
    need_cards
    run "$CARDS" run --mode single --devices cuda:1 "${TINY[@]}" --inject pause=momentum:5 --out out
    [[ $status -eq 1 ]] || show
    [[ $output == *"kernels can be slowed down or begin later"* ]] || show
}

@test "a convolution that cuDNN cannot do after all goes by cuBLAS, and the record says so" {
    need_cards
    FAKE_CARDS_FAIL=cudnnConvolution:0:1/1=3000 "$CARDS" run --mode single "${TINY[@]}" --out out >/dev/null
    "$CARDS" run --mode single --devices cpu:1 "${TINY[@]}" --out cpu >/dev/null
    by_cublas
    # Without its library, all else is as before.
    mkdir -p bare/modules && ln -s "${CARDS%/*}/lib" bare/lib && ln "$CARDS" bare/ && ln "${CARDS%/*}/modules/el_cuda.so" bare/modules/
    echo 'int el_absent(void) { return 1; }' >absent.c
    echo 'int el_absent(void); int el_cuda_cudnn_module(void) { return el_absent(); }' >cudnn.c
    cc -shared -fPIC -Wl,-soname,libabsent.so.9 -o libabsent.so absent.c && cc -shared -fPIC -o bare/modules/el_cudnn.so cudnn.c libabsent.so
    [[ $(bare/evenload devices) == *"  cuda     yes "*"cudnn: no libabsent.so.9: install it"*"convolutions are done by cuBLAS"* ]] || { bare/evenload devices && false; }
    rm -r out
    bare/evenload run --mode single "${TINY[@]}" --out out >/dev/null
    by_cublas
}

# The trial's convolutions, and its losses.
by_cublas() {
    [[ $(of_trial '{o["implementation"].split(" (")[0] for o in t["per_device"][0]["ops"] if o["op"].startswith("conv1d")}') == "{'cuBLAS, a product over columns'}" ]] ||
        { of_trial '[(o["op"], o["implementation"]) for o in t["per_device"][0]["ops"]]' && false; }
    [[ $(of_trial 'max(abs(a / b - 1) for a, b in zip(t["loss"], json.load(open("cpu/results.json"))["trials"][0]["loss"])) < 1e-5') == True ]] || show
}

@test "a part of a card is found by its own UUID" {
    need_cards
    FAKE_CARDS_MIG=1 "$CARDS" run --mode single "${TINY[@]}" --out out >/dev/null
    [[ $(of_trial 't["per_device"][0]["uuid"][:4], t["per_device"][0]["gpu"] is None') == "MIG- False" ]] || show
    [[ $(of_trial 't["per_device"][0]["memory"]["library_bytes"]') == *context* ]] || show
}

# Five more steps do five times what a row of docs/gpus.md has (ep has none: mlp has no experts). The host asks before it waits, so that its waits depend on the moment.
@test "a step's launches, copies and waits are those of the page's table, in every mode, and the host waits eight times at most" {
    need_cards
    local steps mode cards small n=0 of=11 all='.' page=${BATS_TEST_DIRNAME%/tests/cli}/docs/gpus.md
    [[ ${EVENLOAD_LONG:-} == 1 ]] || { echo "# long: all modes instead of three, 20 s" >&3 && of=3 all='^(ddp|pipeline|zero3)$'; }
    while read -r mode; do
        cards=2
        [[ $mode != single ]] || cards=1
        small=(--features 64 --hidden '64,64')
        [[ ${EVENLOAD_LONG:-} != 1 && $mode != ddp ]] || small=() # whose gradients fill two buckets
        for steps in 3 8; do
            rm -rf "report.$steps" out
            FAKE_CARDS_REPORT=$PWD/report.$steps "$CARDS" run --mode "$mode" --devices "cuda:$cards" --model mlp "${small[@]}" --data dummy --batch 8 \
                --steps "$steps" --warmup 1 --min-time 0 --control none --quiet --timeout 60 --out out >/dev/null
        done
        run python3 - "$mode" "$(grep "^| \`$mode\` | [0-9]" "$page")" <<'END_OF_PYTHON'
import re, sys
def counts(path): # card: [kernels, copies, waits, synchronisations]
    rows = re.findall(r"card (\d): .*; (\d+) kernels, (\d+) copies, (\d+) waits, .* (\d+) synchronisations", open(path).read())
    return {card: [sum(int(row[i]) for row in rows if row[0] == card) for i in range(1, 5)] for card in sorted({row[0] for row in rows})}
less, more = counts("report.3"), counts("report.8")
steps = [[(m - l) / 5 for l, m in zip(less[card], more[card])] for card in less]
told = [[int(word) for word in cell.split(",")] for cell in sys.argv[2].split("|")[2:-1]] # of each column: each card's
columns = list(zip(*steps))
if [list(column) for column in columns[:3]] != told or not all(0 < waits <= 8 for waits in columns[3]):
    print(f"| `{sys.argv[1]}` |", " | ".join(", ".join(f"{value:g}" for value in column) for column in columns), "|")
END_OF_PYTHON
        [[ $status -eq 0 && -z $output ]] || { printf '%s\n' "$output" >>wrong; }
        n=$((n + 1))
    done < <("$EVENLOAD" modes --json | python3 -c 'import json, sys; print(*(row["mode"] for row in json.load(sys.stdin) if row["mode"] != "ep"), sep="\n")' | grep -E "$all")
    [[ $n -eq $of && ! -e wrong ]] || { echo "$n modes" && cat wrong && false; }
}

@test "a step of gpt with four layers is as many launches as the page says, whatever the batch" {
    need_cards
    local batch steps
    for batch in 2 16; do
        for steps in 3 5; do
            rm -rf "report.$steps" out
            FAKE_CARDS_REPORT=$PWD/report.$steps "$CARDS" run --mode single --devices cuda:1 --model gpt --layers 4 --embed 32 --heads 4 --seq 16 --vocab 60 \
                --data dummy --batch $batch --steps $steps --warmup 1 --min-time 0 --control none --quiet --timeout 60 --out out >/dev/null
        done
        [[ $(($(kernels report.5) - $(kernels report.3))) -eq $((2 * 140)) ]] || show
    done
    grep -q 'four layers is 140 kernels' "${BATS_TEST_DIRNAME%/tests/cli}/docs/gpus.md"
}

kernels() {
    grep -oP '\d+(?= kernels)' "$1"
}
