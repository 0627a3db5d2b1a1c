"""Traces of a job of PyTorch (gloo) in which one rank comes late: OUT/RANK-MS/*.pt.trace.json, as torch.profiler's
tensorboard_trace_handler writes them. Beside them came-RANK.txt has, for each step, when that rank really came (ns).

    python tests/torch/late.py OUT WORLD STEPS PARAMETERS RANK-MS...

In each step of RANK-MS that rank sleeps MS milliseconds before its all-reduce. The parameters are one bucket of ddp's;
where they are many, the wire has more to do than the ranks.
"""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

WARMUP = 2


def work(rank, world, port, out, steps, parameters, cases):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(15, parameters // 16), torch.nn.ReLU())
    model = torch.nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=1024)
    optimizer, x = torch.optim.SGD(model.parameters(), 0.01), torch.randn(4, 15)
    sleep_s, came = 0, []

    def come_late(state, bucket):
        time.sleep(sleep_s)
        came.append(time.time_ns())
        return allreduce_hook(state, bucket)

    model.register_comm_hook(None, come_late)
    for case in cases:
        late, ms = (int(n) for n in case.split("-"))
        folder = os.path.join(out, case)
        sleep_s = ms / 1e3 if rank == late else 0
        came.clear()
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=WARMUP, active=steps, repeat=1),
                     on_trace_ready=tensorboard_trace_handler(folder, worker_name=f"rank{rank}")) as profiler:
            for _ in range(WARMUP + steps):
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                profiler.step()
        with open(os.path.join(folder, f"came-{rank}.txt"), "w", encoding="ascii") as file:
            file.writelines(f"{ns}\n" for ns in came[WARMUP:])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    out, world, steps, parameters = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, (world, port, out, steps, parameters, sys.argv[5:]), nprocs=world)
