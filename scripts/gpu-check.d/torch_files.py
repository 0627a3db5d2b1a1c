#!/usr/bin/env python3
"""Files that a PyTorch job on one GPU leaves, for the readers of such files: torch.profiler's trace of DDP over NCCL with one rank, a snapshot of
the caching allocator, the Flight Recorder's dump. Prints a line that says what was written.

usage: torch_files.py FOLDER
"""
import gzip
import os
import pickle
import shutil
import sys

folder = sys.argv[1]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", TORCH_NCCL_TRACE_BUFFER_SIZE="200")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402


def train(model, steps, profiler=None):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps):
        x = torch.randn(64, 512, device="cuda")
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()
        if profiler:
            profiler.step()
    torch.cuda.synchronize()


def main():
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    torch.cuda.memory._record_memory_history(max_entries=20000)
    layers = [nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)) for _ in range(4)]
    model = DistributedDataParallel(nn.Sequential(*layers).cuda(), device_ids=[0])
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=4), profile_memory=True) as profiler:
        train(model, 7, profiler)
    trace = os.path.join(folder, "ddp.pt.trace.json")
    profiler.export_chrome_trace(trace)
    with open(trace, "rb") as plain, gzip.open(trace + ".gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    os.remove(trace)
    with open(os.path.join(folder, "memory.pickle"), "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
    dump = getattr(torch._C._distributed_c10d, "_dump_nccl_trace", None)
    if dump:
        with open(os.path.join(folder, "flight-recorder.pickle"), "wb") as file:
            file.write(dump())
    dist.destroy_process_group()
    print(f"torch {torch.__version__}: " + ", ".join(f"{name} {os.path.getsize(os.path.join(folder, name)) >> 10} KiB" for name in sorted(os.listdir(folder))))


if __name__ == "__main__":
    main()
