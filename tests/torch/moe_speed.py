#!/usr/bin/env python3
"""Steps of evenload's moe and of PyTorch's, on two cores: DistributedDataParallel (gloo, a thread a rank) over gpt's block with Mixtral's experts (grouped_mm and eager, as
transformers has them), against ddp and ep. Pairs are interleaved; ratios are of medians.

usage: moe_speed.py EVENLOAD [PAIRS]
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS, WIDTH, HEADS, SEQ, VOCAB, EXPERTS, HIDDEN, BATCH = 4, 256, 4, 128, 1024, 8, 512, 8


def ours(program, mode):
    sizes = f"--layers {LAYERS} --embed {WIDTH} --heads {HEADS} --seq {SEQ} --vocab {VOCAB} --experts {EXPERTS} --expert-hidden {HIDDEN}"
    command = [program, "run", "--mode", mode, "--devices", "2", "--model", "moe", *sizes.split(), "--data", "dummy", "--batch", str(BATCH), "--optimizer", "sgd"]
    command += ["--steps", "10", "--min-time", "3", "--control", "none", "--json", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "--out", f"{folder}/run"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["step_ms"]["median"]


def rank(number, folder, kind):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import gpt
    import moe

    for module in (gpt, moe):
        module.WIDTH, module.HEADS, module.SEQ = WIDTH, HEADS, SEQ
    gpt.LAYERS, gpt.VOCAB, moe.EXPERTS, moe.HIDDEN = LAYERS, VOCAB, EXPERTS, HIDDEN
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}", rank=number, world_size=2)
    block = moe.mixtral(kind)
    model = DistributedDataParallel(gpt.GPT(moe.block_of(block)))
    optimizer, times = torch.optim.SGD(model.parameters(), 0.01), []
    x = torch.randint(VOCAB, (BATCH // 2, SEQ))
    while len(times) < 15 or sum(times) < 4:
        begin = time.perf_counter()
        optimizer.zero_grad()
        gpt.loss_of(model(x), x).backward()
        optimizer.step()
        done = torch.tensor([1.0])
        dist.all_reduce(done)  # both ranks stop after the same step
        times.append(time.perf_counter() - begin)
        more = torch.tensor([float(len(times) < 15 or sum(times) < 4)])
        dist.all_reduce(more)
        if more.item() == 0:
            break
    if number == 0:
        print(1e3 * statistics.median(times[5:]), flush=True)
    dist.destroy_process_group()


def theirs(kind):
    folder = os.path.join(tempfile.mkdtemp(), "meeting")
    ranks = [subprocess.Popen([sys.executable, "-W", "ignore", __file__, "rank", str(r), folder, kind], stdout=subprocess.PIPE, text=True) for r in range(2)]
    text = [process.communicate()[0] for process in ranks]
    return float(text[0])


def main():
    program, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    kinds, found = ("eager", "grouped_mm"), {}
    for _ in range(pairs):
        for kind in kinds:
            try:
                found.setdefault(kind, []).append(theirs(kind))
            except ValueError:
                print(f"{kind}: it cannot run here", file=sys.stderr)
        for mode in ("ddp", "ep"):
            found.setdefault(mode, []).append(ours(program, mode))
    for name, times in found.items():
        print(f"{name:12} {statistics.median(times):8.1f} ms  ({', '.join(f'{t:.1f}' for t in times)})")
    for mode in ("ddp", "ep"):
        for kind in kinds:
            if kind in found:
                print(f"{mode} against {kind}: {statistics.median(b / a for a, b in zip(found[mode], found[kind])):.2f} times as fast")


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        rank(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        main()
