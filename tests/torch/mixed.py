#!/usr/bin/env python3
"""--precision bf16-mixed is PyTorch's fully_shard with MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=...): losses and f32 weights after a few steps.

A multilayer perceptron rounds to bf16 at the same places on both sides, so what is stored in f32 must agree as f32 does; but where whole gradients are kept
in f32 (zero1, ddp) they are not rounded before they are reduced. PyTorch's GPT-2 rounds within attention and layer norms where evenload does not: the two may
be AS_OTHERS times as far apart as PyTorch's own training in f32 is.

usage: mixed.py EVENLOAD FOLDER      prints a line a comparison; exit status 1 where one is over its limit
"""
import dataclasses
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import gpt
import parity
from parity import Program, farthest, relative

STEPS, AS_F32, NOT_ROUNDED, AS_OTHERS = 5, 1e-6, 1e-4, 2
HOOKS = {"f32": (), "bf16": ("--comm-hook", "bf16")}
MODES = {
    "zero3": ("--mode", "zero3"),
    "zero2": ("--mode", "zero2"),
    "zero1": ("--mode", "zero1"),
    "ddp": ("--mode", "ddp", "--procs", "1"),
    "zero3 dp=2": ("--mode", "zero3", "--mesh", "dp=2"),
    "zero2 dp=2": ("--mode", "zero2", "--mesh", "dp=2"),
}


def make_cases():
    mlp, text = parity.CASES["mlp"]("mlp"), gpt.make_case()
    mlp.steps = text.steps = STEPS
    return mlp, text


def train(case, optimizer, mesh, reduced):
    model = case.model(torch.float32)
    policy = MixedPrecisionPolicy(torch.bfloat16, reduced) if reduced else MixedPrecisionPolicy()
    for unit in model.transformer["h"] if case.name == "gpt" else model.children():
        fully_shard(unit, mesh=mesh, mp_policy=policy)
    model = fully_shard(model, mesh=mesh, mp_policy=dataclasses.replace(policy, output_dtype=torch.float32))
    losses = parity.train(case, optimizer, model, mesh.get_rank(), mesh.size(), wrap=lambda model: model)
    return losses, {name: weight.full_tensor().detach().double() for name, weight in model.named_parameters()}


def train_as_rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mesh, found = init_device_mesh("cpu", (2,)), {}
    for case in make_cases():
        for optimizer in ("sgd", "adam"):
            for name, reduced in (("f32", torch.float32), ("bf16", torch.bfloat16), ("no", None)):
                found[f"{case.name} {optimizer} {name}"] = train(case, optimizer, mesh, reduced)
    dist.destroy_process_group()
    if rank == 0:
        torch.save(found, f"{folder}/sharded.pt")


def apart(ours, theirs):
    return relative(*(torch.cat([state[name].flatten() for name in sorted(theirs)]) for state in (ours, theirs)))


def compare(program, theirs):
    mlp, text = make_cases()
    runs = [(mlp, mode, hook, optimizer) for mode in MODES for hook in HOOKS for optimizer in ("sgd", "adam")]
    for case, mode, hook, optimizer in [*runs, *((text, "zero3", hook, "sgd") for hook in HOOKS)]:
        losses, state = theirs[f"{case.name} {optimizer} {hook}"]
        options = ("--precision", "bf16-mixed", "--optimizer", optimizer, "--lr", str(case.rate(optimizer)), "--devices", "2")
        ours = program.run(case, *options, *MODES[mode], *HOOKS[hook], dtype="f32", steps=STEPS)
        limit = AS_F32 if hook == "bf16" or mode not in ("zero1", "ddp") else NOT_ROUNDED
        if case is text:
            limit = AS_OTHERS * apart(theirs[f"{case.name} {optimizer} no"][1], state)
        yield f"{case.name} {mode} {optimizer}, reduced in {hook}", apart(program.after(), state), farthest(ours, losses), limit


def main():
    folder, over = os.path.abspath(sys.argv[2]), 0
    torch.set_num_threads(1)
    torch.multiprocessing.spawn(train_as_rank, args=(folder,), nprocs=2)
    for what, weights, losses, limit in compare(Program(os.path.abspath(sys.argv[1]), folder), torch.load(f"{folder}/sharded.pt")):
        good = weights <= limit
        over += not good
        print(f"{what:40} weights {weights:8.1e}  (at most {limit:.2g}); losses {losses:.1e}{'' if good else '  OVER'}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
