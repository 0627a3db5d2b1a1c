#!/usr/bin/env python3
"""The training step in PyTorch on the CPU, for scripts/peer-torch: evenload's textcnn, mlp, gpt or resnets, plain or with other ranks by gloo.

Each rank computes with one thread on a core of its own, as evenload's devices do. A step is forward, cross-entropy, backward and SGD with
momentum (gpt: Adam), on batches that lie in memory, without dropout; gradients are freed between steps. Rank 0 prints one JSON line: the median step of the steps after
the warm-up, in ms, and the bytes of the parameters.

usage: step.py MODEL RANKS BATCH WARMUP STEPS IMAGE on|off MODE f32|bf16    BATCH: of each rank, in tp of all; IMAGE: side of an image; whether
DDP's gradients are views of its buckets; MODE: single, ddp, tp (parallelize_module, Megatron's columns and rows) or zero3 (fully_shard, a unit
per block)
"""
import contextlib
import json
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# The sizes are evenload's defaults; the bytes of the parameters are compared.
GPT_VOCAB = 8192
VOCAB, EMBED, SEQ, FILTERS, WINDOWS, TEXT_CLASSES = 20000, 128, 64, 100, (3, 4, 5), 2
FEATURES, HIDDEN, CLASSES = 1024, 1024, 10
BLOCKS, IMAGE_CLASSES = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}, 1000
LAYERS, WIDTH, HEADS, TOKENS, DEVIATION = 4, 256, 4, 128, 0.02
LR, ADAM_LR, MOMENTUM, BATCHES = 0.01, 0.001, 0.9, 4


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMBED)
        self.convs = nn.ModuleList(nn.Conv1d(EMBED, FILTERS, window) for window in WINDOWS)
        self.classifier = nn.Linear(FILTERS * len(WINDOWS), TEXT_CLASSES)

    def forward(self, ids):  # [batch, words]
        x = self.embedding(ids).transpose(1, 2)  # [batch, EMBED, words]
        return self.classifier(torch.cat([F.relu(conv(x)).amax(dim=2) for conv in self.convs], 1))


class GPTBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))  # apart, so that tp can cut them by heads
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h, heads = self.ln_1(x), lambda y: y.view(*x.shape[:2], -1, WIDTH // HEADS).transpose(1, 2)
        y = F.scaled_dot_product_attention(heads(self.q(h)), heads(self.k(h)), heads(self.v(h)), is_causal=True)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(GPT_VOCAB, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks, self.ln_f = nn.ModuleList(GPTBlock() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, GPT_VOCAB, bias=False)
        self.head.weight = self.wte.weight
        for p in self.parameters():  # GPT-2's: the default's first losses are huge, and its denormals slow
            if p.dim() > 1:
                nn.init.normal_(p, std=DEVIATION)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(TOKENS))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x)).flatten(0, 1)


def conv(inputs, outputs, window, stride=1):
    """A convolution and its batch norm."""
    return [nn.Conv2d(inputs, outputs, window, stride, window // 2, bias=False), nn.BatchNorm2d(outputs)]


class Block(nn.Module):
    """torchvision's: two convolutions, or three round a narrow one, beside a shortcut."""

    def __init__(self, inputs, width, stride, deep):
        super().__init__()
        outputs = 4 * width if deep else width
        if deep:
            layers = [*conv(inputs, width, 1), nn.ReLU(True), *conv(width, width, 3, stride), nn.ReLU(True), *conv(width, outputs, 1)]
        else:
            layers = [*conv(inputs, width, 3, stride), nn.ReLU(True), *conv(width, width, 3)]
        self.way = nn.Sequential(*layers)
        self.shortcut = nn.Sequential(*(conv(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else []))

    def forward(self, x):
        return F.relu(self.way(x) + self.shortcut(x), True)


def resnet(name):
    deep, inputs, layers = name == "resnet50", 64, [*conv(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    for stage, blocks in enumerate(BLOCKS[name]):
        for block in range(blocks):
            layers.append(Block(inputs, 64 << stage, 2 if stage > 0 and block == 0 else 1, deep))
            inputs = (256 if deep else 64) << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, IMAGE_CLASSES))


def make(name, batch, image):
    """The model, and a function that makes a batch."""
    if name in BLOCKS:  # in PyTorch's faster layout for images
        images = lambda: torch.randn(batch, 3, image, image).contiguous(memory_format=torch.channels_last)
        return resnet(name).to(memory_format=torch.channels_last), lambda: (images(), torch.randint(IMAGE_CLASSES, (batch,)))
    if name == "textcnn":
        return TextCNN(), lambda: (torch.randint(VOCAB, (batch, SEQ)), torch.randint(TEXT_CLASSES, (batch,)))
    if name == "gpt":
        ids = lambda: torch.randint(GPT_VOCAB, (batch, TOKENS))
        return GPT(), lambda: (ids(), ids().flatten())
    layers = [nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)]
    return nn.Sequential(*layers), lambda: (torch.randn(batch, FEATURES), torch.randint(CLASSES, (batch,)))


def cut_loss(mode):
    """The loss over logits whose classes are cut."""
    if mode != "tp":
        return contextlib.nullcontext()
    from torch.distributed.tensor.parallel import loss_parallel

    return loss_parallel()


def spread(model, mode, ranks, bucket_view):
    """The model on all ranks."""
    if mode == "ddp":
        return DistributedDataParallel(model, gradient_as_bucket_view=bucket_view == "on")
    mesh = dist.device_mesh.init_device_mesh("cpu", (ranks,))
    if mode == "zero3":
        from torch.distributed.fsdp import fully_shard

        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for block in model.blocks:
        columns, rows = dict.fromkeys(("q", "k", "v", "fc"), ColwiseParallel()), dict.fromkeys(("proj", "out"), RowwiseParallel())
        parallelize_module(block, mesh, columns | rows)
    # The vocabulary is cut too, as evenload cuts it: embedding, head and loss.
    head = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    parallelize_module(model, mesh, {"wte": RowwiseParallel(input_layouts=Replicate()), "head": head})
    model.head.weight = model.wte.weight
    return model


def train(rank, name, ranks, batch, warmup, steps, image, bucket_view, mode, precision, port):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, make_batch = make(name, batch, image)
    param_bytes = sum(p.numel() * p.element_size() for p in model.parameters())
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        model = spread(model, mode, ranks, bucket_view)
    params = model.parameters()
    optimizer = torch.optim.Adam(params, ADAM_LR) if name == "gpt" else torch.optim.SGD(params, LR, momentum=MOMENTUM)
    batches, times = [make_batch() for _ in range(BATCHES)], []
    for i in range(warmup + steps):
        began = time.perf_counter()
        inputs, labels = batches[i % BATCHES]
        optimizer.zero_grad()
        with cut_loss(mode), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - began))
    if ranks > 1:
        dist.barrier()  # gloo aborts where a peer ends first
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "step_ms": statistics.median(times[warmup:]), "param_bytes": param_bytes}))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    ranks, work = int(sys.argv[2]), (sys.argv[1], *map(int, sys.argv[2:7]), *sys.argv[7:10], free_port())
    if ranks == 1:
        train(0, *work)
    else:
        torch.multiprocessing.spawn(train, args=work, nprocs=ranks)
