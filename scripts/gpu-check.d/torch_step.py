#!/usr/bin/env python3
"""The step of textcnn, evenload against PyTorch on one GPU, in turns: the same model, sizes, optimizer and batch, in f32 without TF32.

What a step is, on both sides: a batch that lies in pinned host memory is copied to the card, forward, cross-entropy, backward, SGD with
momentum; gradients are freed between steps; the host waits for the card at the step's end. Dropout is off. Judged by medians of
steps, pair by pair: a pair is some steps of each, in alternating order, so that a drift of clocks favours none.

usage: torch_step.py --evenload PROGRAM --folder DIR [--out FILE] [--pairs 5] [--steps 200] [--batch 64] [--device cuda] [--ways eager,compiled]
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, EMBED, SEQ, FILTERS, WINDOWS, CLASSES = 20000, 128, 64, 100, (3, 4, 5), 2
LR, MOMENTUM, WARMUP, BATCHES = 0.01, 0.9, 20, 4


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMBED)
        self.convs = nn.ModuleList(nn.Conv1d(EMBED, FILTERS, window) for window in WINDOWS)
        self.classifier = nn.Linear(FILTERS * len(WINDOWS), CLASSES)

    def forward(self, ids):  # [batch, words]
        x = self.embedding(ids).transpose(1, 2)  # [batch, EMBED, words]
        return self.classifier(torch.cat([F.relu(conv(x)).amax(dim=2) for conv in self.convs], 1))


class Trainer:
    """One way of running the step in PyTorch."""

    def __init__(self, device, batch, compiled):
        torch.manual_seed(1)
        self.device = device
        self.model = TextCNN().to(device)
        self.param_bytes = sum(p.numel() * p.element_size() for p in self.model.parameters())
        self.optimizer = torch.optim.SGD(self.model.parameters(), LR, momentum=MOMENTUM)
        self.forward = torch.compile(self.model) if compiled else self.model
        self.batches = [(self.host(torch.randint(VOCAB, (batch, SEQ))), self.host(torch.randint(CLASSES, (batch,)))) for _ in range(BATCHES)]
        self.steps(WARMUP)

    def host(self, tensor):
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def step(self, i):
        ids, labels = (t.to(self.device, non_blocking=True) for t in self.batches[i % BATCHES])
        self.optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(self.forward(ids), labels).backward()
        self.optimizer.step()
        self.wait()

    def steps(self, n):
        """The median step, in ms."""
        times = []
        for i in range(n):
            began = time.perf_counter()
            self.step(i)
            times.append((time.perf_counter() - began) * 1e3)
        return statistics.median(times)


def evenload_steps(a, number):
    """The median step of a launch of evenload, in ms, and the parameters' bytes."""
    folder = os.path.join(a.folder, str(number))
    shutil.rmtree(folder, ignore_errors=True)
    command = [a.evenload, "run", "--mode", "single", "--devices", "cuda:0," if a.device == "cuda" else "1", "--model", "textcnn"]
    command += ["--vocab", str(VOCAB), "--embed", str(EMBED), "--seq", str(SEQ), "--filters", str(FILTERS), "--classes", str(CLASSES)]
    command += ["--model", "dropout=0", "--optimizer", "momentum", "--optimizer", f"momentum={MOMENTUM}", "--lr", str(LR), "--data", "dummy"]
    command += ["--batch", str(a.batch), "--warmup", str(WARMUP), "--steps", str(a.steps), "--min-time", "0", "--control", "none", "--no-record"]
    done = subprocess.run(command + ["--json", "--quiet", "--out", folder], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"evenload failed ({done.returncode}): {' '.join(command[1:])}\n{done.stderr[-800:]}")
    trial = json.loads(done.stdout)
    return trial["step_ms"]["median"], trial["param_bytes"]


def pair(a, number, trainer):
    """One turn of both: (evenload's ms, PyTorch's)."""
    works = [lambda: evenload_steps(a, number)[0], lambda: trainer.steps(a.steps)]
    if number % 2 == 0:
        return works[0](), works[1]()
    theirs = works[1]()
    return works[0](), theirs


def judge(turns):
    ratios = sorted(ours / theirs for ours, theirs in turns)
    return {
        "evenload_ms": statistics.median(ours for ours, _ in turns),
        "torch_ms": statistics.median(theirs for _, theirs in turns),
        "ratio_median": statistics.median(ratios),
        "ratio_min": ratios[0],
        "ratio_max": ratios[-1],
        "turns_ms": turns,
    }


def compare(a, way, document):
    """evenload against one way of running PyTorch, written after each pair; where that way cannot be made, why."""
    param_bytes, against = document["param_bytes"], document["against"]
    try:
        trainer = Trainer(torch.device(a.device), a.batch, way == "compiled")
    except Exception as error:  # a compiler that is not there, a Triton that does not fit: its own matter
        against[way] = {"failed": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]}"}
        return write(a.out, document)
    if trainer.param_bytes != param_bytes:
        sys.exit(f"not the same model: {trainer.param_bytes} bytes of parameters in PyTorch, {param_bytes} in evenload")
    turns = []
    for number in range(a.pairs):
        turns.append(pair(a, number, trainer))
        against[way] = judge(turns)
        write(a.out, document)


def write(path, document):
    if path:
        with open(path, "w") as file:
            json.dump(document, file, indent=1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--evenload", required=True)
    p.add_argument("--folder", required=True)
    p.add_argument("--out")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--ways", default="eager,compiled")
    for name, value in {"pairs": 5, "steps": 200, "batch": 64}.items():
        p.add_argument(f"--{name}", type=int, default=value)
    a = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    param_bytes = evenload_steps(a, "first")[1]
    document = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if a.device == "cuda" else "cpu",
        "batch": a.batch,
        "steps": a.steps,
        "param_bytes": param_bytes,
        "against": {},
    }
    for way in a.ways.split(","):
        compare(a, way, document)
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
