# The program on cards that are none (tests/cards), in one process: what a record says of a card's memory, and what becomes of a run when a card
# fails. What modes compute there is in tests/cards; ranks in several processes: cards_ranks.bats and tests/faults/cards.bats.
load common
PICTURES=no

CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
SHORT=("${QUICK[@]}" --control none --quiet --procs 1 --timeout 60)

export FAKE_CARDS=2

# ends STATUS WORDS OPTIONS...: within seconds, with these words in what it says, and nothing of the fakes' own.
ends() {
    local wanted=$1 words=$2
    shift 2
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    rm -rf run
    run --separate-stderr timeout 120 "$CARDS" run "${SHORT[@]}" --out run "$@"
    [[ $status == "$wanted" && $(tr -s ' \n' ' ' <<<"$output$stderr") == *"$words"* ]] || show
    ! grep -rE 'fakecards|Sanitizer' run/logs || show
}

# train_alike MODES OPTIONS...: on $DEVICES (two cards) as on two CPU devices, where a step's memory lies in one place.
train_alike() {
    local with=(--warmup 2 --min-time 0 --control none --quiet --precision f64 --procs 1 --json "${@:2}")
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    for mode in $1; do
        timeout 240 "$CARDS" run "${with[@]}" --mode "$mode" --devices "${DEVICES:-cuda:2}" --out "c-$mode" >cards.json
        "$EVENLOAD" run "${with[@]}" --mode "$mode" --devices 2 --out "m-$mode" >cpu.json
        python3 - <<'END'
import json, os
cards, cpu = (json.load(open(name)) for name in ("cards.json", "cpu.json"))
assert max(abs(a - b) for a, b in zip(cards["loss"], cpu["loss"], strict=True)) < 1e-12
for device in cpu["per_device"]:
    assert "DEVICES" in os.environ or device["memory"]["reserved_bytes"] < 1.05 * device["memory"]["peak_bytes"], device["memory"]
END
    done
}

@test "batches of unlike length: cards train as CPU devices do, and a step's memory lies in one place" {
    train_alike "dp ddp zero2" --model textcnn --vocab 60 --embed 8 --filters 4 --model dropout=0 --batch 16 --steps 20 --data dummy --lengths 4-64 \
        --lengths pad=batch
}

@test "a transformer, in copies, in parts, and cut by its heads: cards train as CPU devices do" {
    train_alike "ddp zero3 tp" --model gpt --layers 2 --embed 16 --heads 2 --vocab 256 --seq 10 --batch 6 --steps 4
}

@test "a transformer in every mode of two devices, both on one card, trains as on CPU devices" {
    [[ ${EVENLOAD_LONG:-} == 1 ]] || skip "long: 10 modes, 10 s"
    DEVICES=cuda:0,cuda:0 train_alike "dp ddp manual spmg mp pipeline tp zero1 zero2 zero3" --model gpt --layers 2 --embed 16 --heads 2 --vocab 256 --seq 10 \
        --batch 6 --steps 4
}

@test "a card's memory in the record is the driver's and the cards', and nothing is left" {
    NVIDIA_TF32_OVERRIDE=0 FAKE_CARDS_REPORT=$PWD/cards.txt ends 0 "" --mode single --devices cuda:1
    [[ $(json run/results.json 'd["environment"]["gpu_variables"]["NVIDIA_TF32_OVERRIDE"]') == 0 ]]
    cat cards.txt
    python3 - <<'END'
import json, re
cards = re.findall(r"card \d: most (\d+) bytes, left (\d+) bytes, (\d+) of libraries, (\d+) of \d+ streams, (\d+) of \d+ events", open("cards.txt").read())
devices = json.load(open("run/results.json"))["trials"][0]["per_device"]
assert len(cards) == len(devices) == 1
for (most, *left), device in zip(cards, devices):
    memory = device["memory"]
    context = int(left[1])
    libraries = 2 << 20
    assert memory["reserved_bytes"] == int(most) >= memory["peak_bytes"], (most, memory)
    assert memory["driver_bytes"] == int(most) + context + libraries, (most, left, memory)
    assert [int(left[0])] + [int(x) for x in left[2:]] == [0, 0, 0], left
assert "host: 0 bytes pinned" in open("cards.txt").read()
END
}

# Parameters behind a bias of 30 would lie askew on the replica.
@test "a card that is faster than its launches: the host is named, and how busy it was is not told but at most" {
    FAKE_CARDS_SLOW=launch=3 ends 0 "cuda:0 may wait for the host" --mode single --devices cuda:1
    [[ $(json run/results.json '[d["trials"][0]["per_device"][0]["utilization"][k] is None for k in ("busy_pct", "busy_at_most_pct", "busy_ci95")]') == "[True, False, True]" ]] || show
}

@test "a replica's convolutions are done as the master's" {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    FAKE_CARDS_CALLS=$PWD/calls.txt timeout 120 "$CARDS" run --model textcnn --vocab 50 --embed 8 --seq 12 --filters 30 --batch 8 --steps 2 --warmup 0 \
        --min-time 0 --control none --quiet --procs 1 --timeout 60 --mode dp --devices cuda:2 --out run >/dev/null
    python3 - <<'END'
import json, re
ways = [{op["implementation"] for op in device["ops"] if op["implementation"]}
        for device in json.load(open("run/results.json"))["trials"][0]["per_device"]]
assert ways[0] == ways[1] and len(ways[0]) == 3 and all(way.startswith("cuDNN ") for way in ways[0]), ways
# NVML is started once a process. cuDNN is asked once a card about each of 9 convolutions: for one answer, and for all where it may not be taken.
calls = open("calls.txt").read()
assert set(re.findall(r"nvmlInit_v2 \d (\d+)", calls)) == {"1"}, calls
for card in "01":
    asked = sum(map(int, re.findall(rf"cudnnGetConvolution\w+Algorithm_v7 {card} (\d+)", calls)))
    assert asked == 3 * (2 + 2 + 1), (card, asked)
END
}

@test "a card that fails ends a process with several in seconds, with the reason" {
    FAKE_CARDS_FAIL=kernel:1:30 ends 1 "an illegal memory access" --mode ddp --devices cuda:2
    FAKE_CARDS_FAIL='cudaStreamSynchronize:0:12=214' ends 1 "uncorrectable ECC error" --mode dp --devices cuda:2
}

@test "pinned and pageable memory, and a copy that is waited for or goes ahead, are trials of a comparison" {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    for i in $(seq 40); do echo "$((i % 3)) word$i common word$((i / 2))"; done >text.txt
    tiny=(--model mlp --features 16 --hidden 8 --batch 8 --warmup 1 --steps 6 --min-time 0 --control none --quiet --data text.txt)
    several=("$CARDS" compare --modes single "${tiny[@]}" --devices cuda:1 --workers "0,1" --repeats 1)
    "${several[@]}" --non-blocking pin=on,off --out both
    "${several[@]}" --non-blocking ahead --out ahead
    run python3 "${BATS_TEST_DIRNAME:-tests/cli}/../../scripts/gpu-check.d/figures.py" loading both/results.json ahead/results.json
    [[ $status -eq 0 && $output == "pinned w0 h2d "*"; pageable w0 "*"; pinned ahead w1 h2d "* ]] || show
    refuses "--non-blocking pin=off out" "${several[@]}" --non-blocking ahead,pin=off
    refuses "leave --accumulate out" "$CARDS" run "${tiny[@]}" --mode single --devices cuda:1 --accumulate 2 --non-blocking ahead
    refuses "--non-blocking is for GPUs" "$CARDS" run "${tiny[@]}" --devices 1 --non-blocking off
    refuses "--non-blocking pin is for GPUs" "$CARDS" run "${tiny[@]}" --devices 1 --non-blocking pin=off
}

# The worker of `verify --quick --modes single`, as far as resnet18's cell in f32: what follows takes ten times as long here.
@test "verify refuses a cuDNN that is 3 % wrong, TF32 that nobody asked for, and a swapped cast to bf16, each in a cell of its own" {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    # not by rand(): awks seed it by the clock
    awk 'BEGIN { for (i = 0; i < 720; i++) { printf "%d", i % 4
                     for (n = 4 + i % 8; n > 0; n--) { x = (x * 69069 + 1) % 4294967296; printf " w%d", x / 4294967296 * 58 }
                     print "" } }' >words.txt
    FAKE_CARDS_WRONG=cudnn,cublas,cast timeout 120 "$CARDS" worker verify cells.jsonl words.txt cuda 1 --quick --modes single >log 2>&1 &
    local worker=$!
    until grep -q '"resnet18","kind":"f32"' cells.jsonl 2>/dev/null || ! kill -0 $worker 2>/dev/null; do sleep 0.05; done
    kill $worker || { cat log && false; }
    python3 - <<'END'
import json
cells = {}
for c in map(json.loads, open("cells.jsonl")):
    cells[c["model"], c["kind"], c["variant"]] = c
    if (c["model"], c["kind"]) == ("resnet18", "f32"): break # the worker may have gone on, or ended within a line
failed = {key[:2]: c["gradient_difference"] for key, c in cells.items() if c["status"] == "failed" and "--freeze" not in key[2]}
print(failed)
assert set(failed) == {("textcnn", "f32"), ("mlp", "f32"), ("mlp", "bf16"), ("resnet18", "f32")}, failed
assert 0.029 < failed["textcnn", "f32"] < 0.031 and 0.029 < failed["resnet18", "f32"] < 0.031, failed # cuDNN
assert 1e-4 < failed["mlp", "f32"] < 3e-3 < 0.5 < failed["mlp", "bf16"], failed                       # cuBLAS, the cast
assert {c["status"] for key, c in cells.items() if key[1] in ("sgd", "momentum", "adam")} == {"ok"}
END
}

@test "compare times no mode whose convolutions are 3 % wrong, and asks with other seeds before it says so" {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    tiny=(--model textcnn --vocab 60 --embed 8 --filters 4 --batch 16 --steps 2 --warmup 0 --min-time 0 --repeats 1 --control none --quiet --data dummy)
    FAKE_CARDS_WRONG=cudnn run --separate-stderr "$CARDS" compare "${tiny[@]}" --modes single --devices cuda:1 --out wrong
    [[ $(json wrong/results.json 'd["trials"][0]["status"], round(d["gate"][0]["worst"], 3)') == "('failed', 0.03)" ]] || show
    [[ $(json wrong/results.json 'd["trials"][0]["reason"]') == *"differs from the reference by 0.03 (at most 0.0001)"* ]] || show
}

@test "losses of two steps in f32 show a cuDNN that is 3 % wrong to gpu-check" {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    local tiny=(run --mode single --model resnet18 --image 32 --width 8 --batch 8 --lr 0.001 --steps 3 --warmup 0 --min-time 0 --control none --quiet --data dummy)
    "$EVENLOAD" "${tiny[@]}" --devices cpu:1 --out cpu >/dev/null
    for wrong in none cudnn; do FAKE_CARDS_WRONG=$wrong "$CARDS" "${tiny[@]}" --devices cuda:1 --out $wrong >/dev/null; done
    losses() { python3 "$BATS_TEST_DIRNAME/../../scripts/gpu-check.d/figures.py" losses f32:resnet18:cpu:cpu/results.json "f32:resnet18:single:$1/results.json"; }
    losses none
    run losses cudnn
    [[ $status -eq 1 && $output == *"f32 resnet18 single "*" > 2e-05"* ]] || show
}
