#!/usr/bin/env python3
"""Communication hooks of PyTorch's DistributedDataParallel (gloo, 2 ranks) and evenload's --comm-hook train alike: 20 losses, and the weights after
them, from the same weights and on the same batches.

Limits are 1e-6, or ten times what PyTorch itself is off when its weights are one bit up or down at first: a gradient's last bit may round it to the
other of two numbers of f16.

usage: hooks.py EVENLOAD FOLDER      prints a line a case; exit status 1 where one is over its limit
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import parity

LIMIT = 1e-6
BUCKET_MB = 0.001
DRIFT_TIMES = 10
CASES = tuple((model, hook, optimizer) for model in ("mlp", "textcnn") for hook in ("none", "f16", "bf16") for optimizer in ("sgd", "momentum"))


def wrap(model, name):
    wrapped = DistributedDataParallel(model, bucket_cap_mb=BUCKET_MB)
    if name != "none":
        wrapped.register_comm_hook(None, {"f16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}[name])
    return wrapped


def disturb(model):
    torch.manual_seed(parity.SEED)
    for p in model.parameters():
        p.data = torch.nextafter(p.data, torch.where(torch.rand(p.shape) < 0.5, torch.inf, -torch.inf).to(p.dtype))
    return model


def train(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    found = []
    for name, hook, optimizer in CASES:
        case = parity.CASES[name](name)
        for prepare in (lambda m: m, disturb):
            model = prepare(case.model(torch.float32))
            losses = parity.train(case, optimizer, model, rank, 2, wrap=lambda m: wrap(m, hook))
            found.append((losses, {n: p.detach().double() for n, p in model.named_parameters()}))
    if rank == 0:
        torch.save(found, f"{folder}/hooks.pt")
    dist.destroy_process_group()


def distances(a, b):
    """Of losses, and of the parameter that is farthest off."""
    return parity.farthest(a[0], b[0]), max(parity.relative(a[1][n].double(), p) for n, p in b[1].items())


def main(path, folder):
    program, failed = parity.Program(path, folder), False
    torch.multiprocessing.spawn(train, (os.path.abspath(folder),), nprocs=2)
    theirs = torch.load(f"{folder}/hooks.pt")
    for i, (name, hook, optimizer) in enumerate(CASES):
        case = parity.CASES[name](name)
        losses = program.run(case, "--mode", "ddp", "--devices", "2", "--procs", "1", "--comm-hook", hook, "--optimizer", optimizer, "--lr",
                             str(case.rate(optimizer)), "--bucket-mb", str(BUCKET_MB), dtype="f32", steps=case.steps)
        found = distances((losses, program.after()), theirs[2 * i])
        limits = [max(LIMIT, DRIFT_TIMES * drift) for drift in distances(theirs[2 * i + 1], theirs[2 * i])]
        over = not all(x <= limit for x, limit in zip(found, limits))
        failed = failed or over
        print(f"{name:8} {hook:4} {optimizer:9} {len(losses)} losses {found[0]:7.1e} (at most {limits[0]:7.1e}), weights {found[1]:7.1e} "
              f"(at most {limits[1]:7.1e}){'  OVER' if over else ''}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
