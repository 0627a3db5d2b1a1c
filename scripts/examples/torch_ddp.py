#!/usr/bin/env python3
"""A small PyTorch job to watch: DistributedDataParallel on CPUs, in which rank 0 keeps data that the others do not.

    evenload watch -- torchrun --nproc_per_node 2 scripts/examples/torch_ddp.py
    evenload watch -- torchrun --nproc_per_node 2 scripts/examples/torch_ddp.py --seconds 60 --validation 0
"""
import argparse, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument('--seconds', type=float, default=5, help='how long to train')
parser.add_argument('--validation', type=int, default=200, help='MiB that rank 0 keeps to validate on')
parser.add_argument('--say', action='store_true', help='rank 0 prints the milliseconds of each step: wall time and CPU time')
asked = parser.parse_args()

torch.set_num_threads(1)
dist.init_process_group('gloo')
rank = dist.get_rank()
kept = torch.ones(asked.validation << 18) if rank == 0 else None # floats of 4 bytes
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data, labels = torch.randn(64, 1024), torch.randint(0, 10, (64,))
go_on, end = torch.ones(1), time.monotonic() + asked.seconds
while go_on.item():
    begin, begin_cpu = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(data), labels).backward()
    optimizer.step()
    if rank == 0 and asked.say:
        print((time.perf_counter() - begin) * 1e3, (time.process_time() - begin_cpu) * 1e3, flush=True)
    go_on.fill_(rank != 0 or time.monotonic() < end)
    dist.all_reduce(go_on, dist.ReduceOp.MIN)
dist.destroy_process_group()
