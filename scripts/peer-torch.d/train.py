#!/usr/bin/env python3
"""One launch of PyTorch's training for scripts/peer-torch --record: plain, under DDP or under DataParallel, on evenload's weights and batches.

CPU: gloo, a rank per core, one compute thread each. CUDA: nccl, a rank per GPU; DataParallel has all GPUs in one process. CUDA has never been tried.
What the host costs is asked of torch.profiler, in steps of its own after the timed ones: the part of a step in which no op runs (CPU: no op that has
none inside it; CUDA: no kernel or copy on the first GPU). The profiler's own cost is in it.

usage: train.py JOB.json     a job: see record.py; rank 0 prints one JSON line
"""
import contextlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/torch"))
import weights  # noqa: E402: evenload's models as PyTorch modules
from batches import DummyImages, Sentences, rows_of  # noqa: E402: and its batches

PROFILED = 5


def make_model(job):
    sizes = job["sizes"]
    if job["model"] == "textcnn":
        model = weights.TextCNN(sizes["vocab"], sizes["embed"], sizes["filters"], sizes["classes"])
    elif job["model"] == "mlp":
        model = weights.MLP(sizes["features"], sizes["hidden"], sizes["classes"])
    else:
        model = weights.ResNet(int(job["model"][6:]), sizes["width"], sizes["classes"])
    model.load_state_dict(weights.load(job["weights"]))
    return model


def make_batches(job, rank, of):
    """Each step's batch of this rank: every `of`-th sample of the global one."""
    if job["model"].startswith("resnet"):
        data = DummyImages(job["sizes"]["image"], job["sizes"]["classes"], job["seed"])
        inputs = lambda rows: data.images(rows).float().contiguous(memory_format=torch.channels_last)
    else:
        data = Sentences(*job["sentences"])
        every = data.ids() if job["model"] == "textcnn" else data.bags(job["sizes"]["features"]).float()
        inputs = lambda rows: every[rows]
    steps = job["warmup"] + job["steps"] + PROFILED
    rows = [rows_of(i, len(data), job["global_batch"], job["seed"])[rank::of] for i in range(steps)]
    return [(inputs(r), data.labels[r]) for r in rows]


def union_ms(spans, begin, end):
    covered, at = 0, begin
    for a, b in sorted(spans):
        a, b = max(a, at), min(b, end)
        covered, at = covered + max(0, b - a), max(at, b)
    return covered / 1e3


def host_ms(step, batches, cuda):
    """Of a step, the mean of some: what no op covers."""
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]) as told:
        for batch in batches:
            with record_function("peer_step"):
                step(*batch)
    events = told.events()
    on_card = [e for e in events if e.device_type == torch.autograd.DeviceType.CUDA and e.device_index == 0]
    # "gloo:all_reduce" is how PyTorch names the work of its communication threads
    ops = [e for e in events if not e.cpu_children and e.name.startswith(("aten::", "gloo:"))]
    spans = [(e.time_range.start, e.time_range.end) for e in (on_card if cuda else ops)]
    steps = [(e.time_range.start, e.time_range.end) for e in events if e.name == "peer_step" and e.device_type == torch.autograd.DeviceType.CPU]
    return sum((b - a) / 1e3 - union_ms(spans, a, b) for a, b in steps) / len(steps)


def wrap(model, job, rank, device):
    if job["mode"] == "ddp":
        cuda = device.type == "cuda"
        dist.init_process_group("nccl" if cuda else "gloo", init_method="file://" + job["meeting"], rank=rank, world_size=job["ranks"])
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank] if cuda else None)
    return torch.nn.DataParallel(model, list(range(job["ranks"]))) if job["mode"] == "dp" else model


def train(rank, job):
    cuda, shares = job["device"] == "cuda", job["ranks"] if job["mode"] == "ddp" else 1
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if not cuda:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
        torch.set_num_threads(1)
    model = make_model(job).to(device)
    if job["model"].startswith("resnet"):
        model = model.to(memory_format=torch.channels_last)
    param_bytes = sum(p.numel() * p.element_size() for p in model.parameters())
    batches = make_batches(job, rank, shares)
    model = wrap(model, job, rank, device)
    optimizer = torch.optim.SGD(model.parameters(), job["lr"], momentum=job["momentum"])
    wait = torch.cuda.synchronize if cuda else contextlib.nullcontext

    def step(inputs, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        wait()
        return loss.detach()

    times, losses = [], []
    for i in range(job["warmup"] + job["steps"]):
        began = time.perf_counter()
        loss = step(*batches[i])
        times.append(1e3 * (time.perf_counter() - began))
        losses.append(loss)
    every = torch.stack(losses)
    if shares > 1:
        dist.all_reduce(every)  # the mean of the ranks' means is what ddp trains on
        every /= shares
    told = {"torch": torch.__version__, "param_bytes": param_bytes, "step_ms": times, "loss": every.tolist()}
    told["peak_bytes"] = [torch.cuda.max_memory_allocated(d) for d in range(job["ranks"])] if cuda and shares == 1 else None
    if cuda and shares > 1:
        peaks = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(shares)]
        dist.all_gather(peaks, torch.tensor([torch.cuda.max_memory_allocated(device)], device=device))
        told["peak_bytes"] = [int(p) for p in peaks]
    told["host_ms"] = host_ms(step, batches[-PROFILED:], cuda)
    if shares > 1:
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps(told))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        JOB = json.load(file)
    if JOB["device"] == "cuda" and torch.cuda.device_count() < JOB["ranks"]:
        sys.exit(f"PyTorch sees {torch.cuda.device_count()} CUDA devices here, not {JOB['ranks']}")
    if JOB["mode"] == "ddp":
        # a fork need not import PyTorch once more; CUDA does not survive one
        torch.multiprocessing.start_processes(train, args=(JOB,), nprocs=JOB["ranks"], start_method="spawn" if JOB["device"] == "cuda" else "fork")
    else:
        train(0, JOB)
