"""Jobs of PyTorch (gloo) in which one rank comes late, of several kinds: OUT/CASE/*.pt.trace.json, as torch.profiler's
tensorboard_trace_handler writes them, and CASE/came-RANK.txt: when that rank had passed the place in each step (ns).

    python tests/torch/planted.py OUT KIND WORLD CASE...

KIND: ddp, fsdp (fully_shard), hsdp (fully_shard on a mesh of 2 x WORLD/2), zero1 (ZeroRedundancyOptimizer) or loop
(all_reduce by hand). CASE: even, or RANK-WHERE-MS: in each step that rank sleeps MS milliseconds in its data (of a
DataLoader), forward, backward or optimizer.
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
plan = {"where": None, "s": 0.0, "came": []}


def pause(where):
    if plan["where"] == where:
        time.sleep(plan["s"])
        plan["came"].append(time.time_ns())


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
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=2 if kind == "compile" else 0.3)  # torch.compile asks for 1 or more
    if kind == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.01)
    return model, torch.optim.SGD(model.parameters(), 0.01)


class Batches(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            pause("data")
            yield torch.randn(64, WIDTH), torch.randint(0, 8, (64,))


def step(kind, model, optimizer, batches):
    x, y = next(batches)
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
    batches = iter(torch.utils.data.DataLoader(Batches(), batch_size=None))
    for case in cases:
        late, where, ms = case.split("-") if case != "even" else (-1, None, 0)
        folder = os.path.join(out, case)
        plan.update(where=where, s=float(ms) / 1e3 if rank == int(late) else 0, came=[])
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=WARMUP, active=STEPS, repeat=1),
                     on_trace_ready=tensorboard_trace_handler(folder, worker_name=f"rank{rank}")) as profiler:
            for i in range(WARMUP + STEPS):
                if i == WARMUP:
                    begin = time.perf_counter()
                step(kind, model, optimizer, batches)
                if i + 1 == WARMUP + STEPS:
                    took = time.perf_counter() - begin
                profiler.step()
        with open(os.path.join(folder, f"came-{rank}.txt"), "w", encoding="ascii") as file:
            json.dump({"came_ns": plan["came"][WARMUP:], "step_ms": 1e3 * took / STEPS}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    out, kind, world = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, (kind, world, port, out, sys.argv[4:]), nprocs=world)
