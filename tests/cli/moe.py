"""A mixture of experts through the command line: moe.py CHECK; needs EVENLOAD and, for cards, CARDS."""
import json
import os
import subprocess
import sys

LAYERS, WIDTH, SEQ, VOCAB, BATCH, EXPERTS, K, HIDDEN, STEPS = 2, 16, 8, 64, 8, 4, 2, 16, 4
LONG = os.environ.get("EVENLOAD_LONG") == "1"
SIZES = f"--model moe --layers {LAYERS} --embed {WIDTH} --seq {SEQ} --vocab {VOCAB} --heads 2 --experts {EXPERTS} --expert-hidden {HIDDEN}"
COMMON = f"{SIZES} --data dummy --batch {BATCH} --steps {STEPS} --warmup 0 --min-time 0 --control none --json --quiet"


def run(options, program="EVENLOAD", precision="f64"):
    command = [os.environ[program], "run", *COMMON.split(), "--precision", precision, *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return json.loads(done.stdout)


def same(options, wanted, program="EVENLOAD"):
    losses = run(options, program)["loss"]
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted, strict=True))
    assert worst <= 1e-12, f"{options}: losses are {worst} from single's"


def equal():
    """Every mode and mesh is single, in f64, with what is dropped too."""
    routings = ["--routing zipf:1.2 --model capacity=1", "--model capacity=0.6,aux=0.3,z=0.1"]
    routings += ["", "--routing balanced", "--routing rotate --top-k 1", "--routing burst --top-k 4"] if LONG else []
    meshes = ["ep --devices 2", "ep --devices 4", "ep --devices 4 --mesh ep=2,dp=2", "ep --devices 2 --accumulate 2", "ep --devices 2 --procs 1 --overlap off"]
    others = ["ddp --devices 2", "dp --devices 2", "spmg --devices 2 --procs 1", "manual --devices 2", "mp --devices 2", "zero3 --devices 2",
              "pipeline --devices 2 --schedule zero-bubble --schedule micro=4"]
    for i, routing in enumerate(routings):
        wanted = run(f"--mode single --devices 1 {routing}")["loss"]
        for mode in meshes + others[i % 2 :: 2]:
            same(f"--mode {mode} {routing}", wanted)
    wanted = run("--mode single --devices 1 --clip 0.3 --recompute on")["loss"]
    same("--mode ep --devices 4 --mesh dp=2 --clip 0.3 --recompute on", wanted)
    for comm in ("tcp", "mpi", "shm") if LONG else ("tcp", "shm"):
        same(f"--mode ep --devices 2 --comm {comm}", run("--mode single --devices 1")["loss"])


def edges():
    """A rank without tokens, all tokens on one expert, one token a sequence, hot ranks."""
    hot = "--routing hot:1 --top-k 1"
    same(f"--mode ep --devices 4 {hot}", run(f"--mode single --devices 1 {hot}")["loss"])
    kept = [device["routing"]["kept"] for device in run(f"--mode ep --devices 4 {hot}")["per_device"]]
    assert kept == [[0, BATCH // 4 * SEQ * LAYERS * STEPS, 0, 0]] * 4, kept
    all_choices = BATCH * SEQ * LAYERS * STEPS  # first ones to expert 1, second ones to any other
    chosen = run("--mode single --devices 1 --routing hot:1 --recompute on")["per_device"][0]["routing"]["choices"]
    assert chosen[1] == all_choices and sum(chosen) == K * all_choices, chosen
    assert all(0.25 < chosen[e] / all_choices < 0.42 for e in (0, 2, 3)), chosen
    one = "--seq 1 --routing zipf:1"
    same(f"--mode ep --devices 2 {one}", run(f"--mode single --devices 1 {one}")["loss"])
    kept = run("--mode ep --devices 2 --routing hot-rank:1 --top-k 2")["per_device"][0]["routing"]["kept"]
    assert kept[:2] == [0, 0] and sum(kept) == BATCH // 2 * SEQ * LAYERS * K * STEPS, kept


def replays():
    """A file of counts: what is chosen follows it, line by line."""
    with open("counts.txt", "w") as file:
        file.write("# of two steps\n0 0 5 5\n7,7,0,0\n")
    rows = run("--mode ep --devices 2 --routing counts.txt")["per_device"][1]["routing"]["by_step"]
    each = BATCH // 2 * SEQ * LAYERS
    assert rows == [[0, 0, each, each], [each, each, 0, 0]] * 2, rows
    chosen = run("--mode ddp --devices 2 --routing balanced")["per_device"][0]["routing"]["choices"]
    assert len(set(chosen)) == 1, chosen


def bytes_of(n, options):
    """What each rank sends, and the bytes of its parameters, are the closed forms, to the byte."""
    devices = run(f"--mode ep --devices {n} {options}", precision="f32")["per_device"]
    own = EXPERTS // n
    kept = [device["routing"]["kept"] for device in devices]
    shared = VOCAB * WIDTH + SEQ * WIDTH + LAYERS * (4 * WIDTH + 3 * WIDTH * WIDTH + 3 * WIDTH + WIDTH * WIDTH + WIDTH + EXPERTS * WIDTH) + 2 * WIDTH
    sent = wanted = 0
    for rank, device in enumerate(devices):
        out = sum(kept[rank][e] for e in range(EXPERTS) if e // own != rank)
        come = sum(kept[other][e] for other in range(n) if other != rank for e in range(rank * own, (rank + 1) * own))
        rows = (out + come) * (2 * WIDTH + 1) * 4 / STEPS  # a row and its weight, there and back, forward and backward
        wanted += rows + LAYERS * (n - 1) * (BATCH // n) * own * 4
        sent += device["sent_bytes"]
        experts = LAYERS * own * 3 * WIDTH * HIDDEN
        assert device["memory"]["peak_by_tag"]["param"] == 4 * (shared + experts), device["memory"]
    wanted += 2 * (n - 1) * 4 * shared  # all-reduced
    assert abs(sent - wanted) <= 0.5 * n, (sent, wanted)


def kept_by_a_layer(hidden):
    two, three = (run(f"--mode single --devices 1 --layers {n} --expert-hidden {hidden}", precision="f32")["per_device"][0] for n in (2, 3))
    return three["memory"]["peak_by_tag"]["activation"] - two["memory"]["peak_by_tag"]["activation"]


def exact():
    # A layer keeps gate_up's output and the activation's: 3 hidden values of each row.
    assert kept_by_a_layer(32) - kept_by_a_layer(16) == 3 * 16 * K * SEQ * BATCH * 4
    for n, options in ((2, ""), (2, "--routing zipf:1.5"), (4, "--routing hot:1"), (2, "--model capacity=0.7")):
        bytes_of(n, options)


def cards():
    """The same on cards, by NCCL and staged through the host."""
    for options in ("--routing zipf:1.2 --model capacity=1", "")[: 2 if LONG else 1]:
        wanted = run(f"--mode single --devices cpu:1 {options}")["loss"]
        for mode in ("single --devices cuda:1", "ep --devices cuda:2", "ep --devices cuda:2 --comm shm", "ep --devices cuda:2 --procs 1"):
            same(f"--mode {mode} {options}", wanted, "CARDS")


def files():
    """What ep saves, single loads: names and shapes are Mixtral's."""
    run("--mode ep --devices 2 --save moe.safetensors")
    with open("moe.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    shapes = {name.split(".mlp.")[1]: entry["shape"] for name, entry in header.items() if ".h.1.mlp." in name}
    assert shapes == {"gate.weight": [EXPERTS, WIDTH], "experts.gate_up_proj": [EXPERTS, 2 * HIDDEN, WIDTH],
                      "experts.down_proj": [EXPERTS, WIDTH, HIDDEN]}, shapes
    wanted = run("--mode single --devices 1 --load moe.safetensors")["loss"]
    same("--mode ep --devices 4 --load moe.safetensors", wanted)


globals()[sys.argv[1]]()
