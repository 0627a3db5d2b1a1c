#!/usr/bin/env python3
"""What PyTorch itself does on the CPU: the peak of its tensors' memory in a step, and the sizes of DDP's buckets.

Memory is the total that PyTorch's allocation events state (torch.profiler, profile_memory) above that from before the model was made. It is
of the last step, when DDP has rebuilt its buckets and the optimizer has its state, in copies of the parameters (P). The model is
evenload's textcnn with a vocabulary that outweighs all else. DDP runs on two processes by gloo; rank 0 is told of.

usage: measure.py peaks|activations|buckets    prints one JSON document: {"single adam keep on": 5.0, ...}, {"mlp sgd": 2.998, ...} (activations
that weigh: a wide mlp with a large batch, plain training) or {"default": [4239400, ...], "5": [...]}
"""
import gc
import itertools
import json
import os
import socket
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function

VOCAB, EMBED, SEQ, FILTERS, WINDOWS, CLASSES, BATCH, STEPS = 20000, 64, 12, 8, (3, 4, 5), 2, 4, 4
LAYERS, WIDTH, LABELS = 4, 1024, 10  # the mlp of the buckets
LARGE_BATCH = 1024
CAPS = ("default", "1", "5", "25")
# The first step's bucket is now and then freed by gloo's thread, which the profiler does not see: then a run is too high by one P.
RUNS = {"single": 1, "ddp": 3}


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMBED)
        self.convs = nn.ModuleList(nn.Conv1d(EMBED, FILTERS, window) for window in WINDOWS)
        self.classifier = nn.Linear(FILTERS * len(WINDOWS), CLASSES)

    def forward(self, ids):  # [batch, words]
        x = self.embedding(ids).transpose(1, 2)  # [batch, EMBED, words]
        return self.classifier(torch.cat([F.relu(conv(x)).amax(dim=2) for conv in self.convs], 1))


def make_optimizer(name, foreach, parameters):
    if name == "adam":
        return torch.optim.Adam(parameters, foreach=foreach)
    return torch.optim.SGD(parameters, 0.01, momentum=0.9 if name == "momentum" else 0, foreach=foreach)


def mlp(layers):
    hidden = [layer for _ in range(layers) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, LABELS))


def train(mode, optimizer_name, kept, foreach, wide=False):
    """Some steps; each one's begin and end are marked. Returns the bytes of the parameters."""
    torch.manual_seed(1)
    model = mlp(LAYERS - 1) if wide else TextCNN()
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    if mode == "ddp":
        model = DistributedDataParallel(model)
    optimizer = make_optimizer(optimizer_name, foreach, model.parameters())
    for _ in range(STEPS):
        with record_function("one step"):
            batch = torch.randn(LARGE_BATCH, WIDTH) if wide else torch.randint(VOCAB, (BATCH, SEQ))
            labels = torch.randint(CLASSES, (len(batch),))
            optimizer.zero_grad(set_to_none=not kept)
            F.cross_entropy(model(batch), labels).backward()
            optimizer.step()
    return size


def peak(mode, optimizer_name, kept, foreach, wide=False):
    """The highest sum of tensors' bytes in the last step, in copies of the parameters."""
    gc.collect()  # what the last model left in a circle of references
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        size = train(mode, optimizer_name, kept, foreach, wide)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    begin = max(e["ts"] for e in events if e["name"] == "one step")
    marks = [e for e in events if e["name"] == "[memory]"]
    first = min(marks, key=lambda e: e["ts"])["args"]
    before = first["Total Allocated"] - first["Bytes"]
    return (max(e["args"]["Total Allocated"] for e in marks if e["ts"] >= begin) - before) / size


def buckets(cap):
    """Bytes of DDP's buckets in the order of their all-reduces, after the rebuild."""
    given = {} if cap == "default" else {"bucket_cap_mb": int(cap)}
    model = DistributedDataParallel(mlp(LAYERS), **given)
    for _ in range(3):
        model(torch.randn(2, WIDTH)).sum().backward()
    return [int(size) for size in model._get_ddp_logging_data()["rebuilt_bucket_sizes"].split(",")]


def all_peaks():
    peaks = {}
    for mode, optimizer, zero, foreach in itertools.product(("single", "ddp"), ("sgd", "momentum", "adam"), ("free", "keep"), ("off", "on")):
        runs = [peak(mode, optimizer, zero == "keep", foreach == "on") for _ in range(RUNS[mode])]
        peaks[f"{mode} {optimizer} {zero} {foreach}"] = round(min(runs), 4)
    return peaks


def measure(rank, port, what):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    if what == "peaks":
        document = all_peaks()
    elif what == "activations":
        document = {f"mlp {optimizer}": round(peak("single", optimizer, False, False, wide=True), 4) for optimizer in ("sgd", "momentum")}
    else:
        document = {cap: buckets(cap) for cap in CAPS}
    dist.destroy_process_group()
    if rank == 0:
        print(json.dumps(document, indent=1))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    torch.multiprocessing.spawn(measure, args=(free_port(), sys.argv[1]), nprocs=2)
