#!/usr/bin/env python3
"""Uneven ends by PyTorch's own context manager: DistributedDataParallel by gloo under torch.distributed.algorithms.join.Join, from the program's
initial weights and on its batches, in f64: losses of all steps of three epochs, in each of which one rank has fewer batches.

usage: joins.py EVENLOAD FOLDER      prints a line a case; exit status 1 where losses differ by more than 1e-9 of themselves
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

import parity
from batches import rows_of

BATCH, EPOCHS, RATE = 12, 3, 0.2
# model, ranks, who has fewer batches, how many, momentum, more options
CASES = (
    ("mlp", 2, 0, 3, 0, ()),
    ("mlp", 3, 1, 2, 0.9, ("--bucket-view", "on", "--zero-grad", "keep")),
    ("textcnn", 2, 0, 2, 0.9, ("--first-bucket-mb", "0.001", "--bucket-mb", "0.001")),
)


def train(rank, state, name, ranks, short, fewer, momentum, out):
    """One rank's part, as a script has it."""
    dist.init_process_group("gloo", init_method=f"file://{os.path.abspath(out)}.store", rank=rank, world_size=ranks)
    case = parity.CASES[name](name)
    case.state = state
    model = DistributedDataParallel(case.model())
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=momentum)
    kept = [i for i in range(len(case.data)) if i % 10 != 9]  # every tenth sample is held out
    batches, losses = len(kept) // BATCH, []
    for epoch in range(EPOCHS):
        with Join([model]):
            for i in range(batches - (fewer if rank == short else 0)):
                optimizer.zero_grad()
                rows = rows_of(epoch * batches + i, len(kept), BATCH, parity.SEED)[rank::ranks]
                loss = case.batch_loss(model, [kept[k] for k in rows])
                loss.backward()
                optimizer.step()
                losses.append((epoch * batches + i, loss.item()))
    with open(f"{out}.{rank}", "w") as file:
        json.dump(losses, file)
    dist.destroy_process_group()


def theirs(state, name, ranks, short, fewer, momentum, out):
    """Each step's mean over the ranks that have it."""
    torch.multiprocessing.spawn(train, (state, name, ranks, short, fewer, momentum, out), nprocs=ranks)
    steps = {}
    for rank in range(ranks):
        with open(f"{out}.{rank}") as file:
            for step, loss in json.load(file):
                steps.setdefault(step, []).append(loss)
    return [sum(steps[step]) / len(steps[step]) for step in sorted(steps)]


def ours(program, case, ranks, short, fewer, momentum, more):
    optimizer = ("--optimizer", "momentum", "--momentum", str(momentum)) if momentum else ("--optimizer", "sgd")
    return program.run(case, "--mode", "ddp", "--devices", str(ranks), *optimizer, "--lr", str(RATE), "--batch", str(BATCH), "--epochs",
                       str(EPOCHS), "--uneven", f"join:rank={short},batches={fewer}", *more, steps=None)


def main(path, folder):
    program, failed = parity.Program(path, folder), False
    for n, (name, ranks, short, fewer, momentum, more) in enumerate(CASES):
        case = parity.CASES[name](name)
        a = ours(program, case, ranks, short, fewer, momentum, more)
        b = theirs(case.state, name, ranks, short, fewer, momentum, os.path.join(folder, f"join-{n}"))
        worst = max(abs(x / y - 1) for x, y in zip(a, b)) if len(a) == len(b) else float("inf")
        print(f"{name}, {ranks} ranks, rank {short} has {fewer} fewer, momentum {momentum}: {len(a)} losses, {a[0]:.4f} to {a[-1]:.4f}, "
              f"differ by {worst:.1e}")
        failed = failed or not worst < 1e-9
    return failed


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2]))
