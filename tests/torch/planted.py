"""Jobs of PyTorch (gloo) in which one rank comes late, of several kinds: OUT/CASE/*.pt.trace.json, and CASE/truth.json.

    python tests/torch/planted.py OUT KIND WORLD CASE...

KIND: ddp, fsdp (fully_shard), hsdp (fully_shard on a mesh of 2 x WORLD/2), zero1 (ZeroRedundancyOptimizer) or loop
(all_reduce by hand). CASE: even, or RANK-WHERE-MS; in each step that rank sleeps MS milliseconds in its data, forward,
backward or optimizer. truth.json: the rank, where, how long it really slept, and the mean step (ms).
"""
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

WARMUP, STEPS, WIDTH = 2, 8, 256
plan = {"where": None, "s": 0.0, "slept": 0.0}


def pause(where):
    if plan["where"] == where:
        begin = time.perf_counter()
        time.sleep(plan["s"])
        plan["slept"] += time.perf_counter() - begin


class Sleeper(torch.autograd.Function):
    """In the middle of the model: forward and backward pass through it."""

    @staticmethod
    def forward(_, x):
        pause("forward")
        return x.clone()

    @staticmethod
    def backward(_, gradient):
        pause("backward")
        return gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(4))
        self.head = torch.nn.Linear(WIDTH, 8)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i == 1:
                x = Sleeper.apply(x)
        return self.head(x)


def make(kind, world):
    torch.manual_seed(0)
    model = Model()
    if kind in ("fsdp", "hsdp"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (world,)) if kind == "fsdp" else init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("copies", "shards"))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif kind != "loop":
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.3)
    if kind == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.01)
    return model, torch.optim.SGD(model.parameters(), 0.01)


def step(kind, model, optimizer):
    pause("data")
    x, y = torch.randn(64, WIDTH), torch.randint(0, 8, (64,))
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    if kind == "loop":
        for p in model.parameters():
            dist.all_reduce(p.grad)
    pause("optimizer")
    optimizer.step()


def work(rank, kind, world, port, out, cases):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model, optimizer = make(kind, world)
    for case in cases:
        late, where, ms = case.split("-") if case != "even" else (-1, None, 0)
        folder = os.path.join(out, case)
        plan.update(where=where if rank == int(late) else None, s=float(ms) / 1e3)
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=WARMUP, active=STEPS, repeat=1),
                     on_trace_ready=tensorboard_trace_handler(folder, worker_name=f"rank{rank}")) as profiler:
            for i in range(WARMUP + STEPS):
                if i == WARMUP:
                    plan["slept"], begin = 0.0, time.perf_counter()
                step(kind, model, optimizer)
                if i + 1 == WARMUP + STEPS:
                    took = time.perf_counter() - begin
                profiler.step()
        if rank == max(int(late), 0):
            truth = {"rank": int(late), "where": where, "ms": 1e3 * plan["slept"] / STEPS, "step_ms": 1e3 * took / STEPS}
            with open(os.path.join(folder, "truth.txt"), "w", encoding="ascii") as file:
                json.dump(truth, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    out, kind, world = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, (kind, world, port, out, sys.argv[4:]), nprocs=world)
