#!/usr/bin/env python3
"""Communication hooks of PyTorch's DistributedDataParallel (gloo, 2 ranks) and evenload's --comm-hook train alike: 20 losses, and the weights after
them, from the same weights and on the same batches. Q's first values are evenload's, by the documented rule: PyTorch draws others.

Limits are 1e-6 in f32 and 1e-9 in f64, or ten times what PyTorch itself is off when its weights are one bit up or down at first: a gradient's last bit
may round it to the other of two numbers of f16, and columns that are nearly dependent lose digits.

usage: hooks.py EVENLOAD FOLDER      prints a line a case; exit status 1 where one is over its limit
"""
import math
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import parity
from batches import philox

HOOK = 8  # el_rng_use
TYPES = {"f32": (torch.float32, 1e-6), "f64": (torch.float64, 1e-9)}
DRIFT_TIMES = 10
# Type, model, hook, optimizer, MB of a bucket: one for powerSGD_hook, whose callbacks wait for one another in gloo's two threads.
CASES = tuple(
    (kind, model, hook, optimizer, 25 if hook.startswith("powersgd") else 0.001)
    for kind, hooks in (("f32", ("none", "f16", "bf16", "powersgd:1", "powersgd:2", "powersgd:4")), ("f64", ("powersgd:1", "powersgd:2", "powersgd:4")))
    for model in ("mlp", "textcnn")
    for hook in hooks
    for optimizer in ("sgd", "momentum")
)


def normal(number, n):
    """Standard normal numbers of a parameter, by Box and Muller."""
    u, v = (philox(parity.SEED, HOOK, number, range(n), second)[0] // 256 / 2**24 for second in (0, 1))
    return torch.tensor([math.sqrt(-2 * math.log(1 - a)) * math.cos(2 * math.pi * b) for a, b in zip(u, v)], dtype=torch.float64)


def first_q(param, number, rank):
    """[columns, rank], where a Conv1d's columns are channels by places here, and places by channels there."""
    q = normal(number, param[0].numel() * rank).view(-1, rank)
    return q if param.dim() < 3 else q.view(param.shape[2], param.shape[1], rank).transpose(0, 1).reshape(-1, rank)


def powersgd(model, rank):
    """The hook, and its state: its P and Q are there before it looks for them."""
    state = powerSGD_hook.PowerSGDState(None, rank, start_powerSGD_iter=2)
    numbers = {p: i for i, p in enumerate(model.parameters())}

    def hook(state, bucket):
        if state.iter == 2 and bucket.index() not in state.q_memory_dict:
            shapes, rows = {}, 0
            for p in bucket.parameters():
                n, m, r = p.shape[0], p[0].numel(), min(p.shape[0], p[0].numel(), rank)
                if (n + m) * r * 2 < n * m:
                    shapes.setdefault((n, m), []).append(first_q(p, numbers[p], r).flatten().to(p.dtype))
                    rows += n * r
            state.p_memory_dict[bucket.index()] = torch.empty(rows, dtype=bucket.buffer().dtype)
            state.q_memory_dict[bucket.index()] = torch.cat([q for qs in shapes.values() for q in qs] or [torch.empty(0)])
        return powerSGD_hook.powerSGD_hook(state, bucket)

    return state, hook


def wrap(model, name, mb):
    wrapped = DistributedDataParallel(model, bucket_cap_mb=mb)
    if name.startswith("powersgd"):
        wrapped.register_comm_hook(*powersgd(model, int(name.split(":")[1])))
    elif name != "none":
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
    for kind, name, hook, optimizer, mb in CASES:
        case = parity.CASES[name](name)
        for prepare in (lambda m: m, disturb):
            model = prepare(case.model(TYPES[kind][0]))
            losses = parity.train(case, optimizer, model, rank, 2, wrap=lambda m: wrap(m, hook, mb))
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
    for i, (kind, name, hook, optimizer, mb) in enumerate(CASES):
        case = parity.CASES[name](name)
        losses = program.run(case, "--mode", "ddp", "--devices", "2", "--procs", "1", "--comm-hook", hook, "--optimizer", optimizer, "--lr",
                             str(case.rate(optimizer)), "--bucket-mb", str(mb), dtype=kind, steps=case.steps)
        found = distances((losses, program.after()), theirs[2 * i])
        limits = [max(TYPES[kind][1], DRIFT_TIMES * drift) for drift in distances(theirs[2 * i + 1], theirs[2 * i])]
        over = not all(x <= limit for x, limit in zip(found, limits))
        failed = failed or over
        print(f"{kind} {name:8} {hook:10} {optimizer:9} {len(losses)} losses {found[0]:7.1e} (at most {limits[0]:7.1e}), weights {found[1]:7.1e} "
              f"(at most {limits[1]:7.1e}){'  OVER' if over else ''}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
