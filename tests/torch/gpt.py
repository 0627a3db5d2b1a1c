#!/usr/bin/env python3
"""GPT-2 in PyTorch, as Hugging Face's GPT2LMHeadModel computes it, and evenload's gpt: the same weights and batches give the same losses in f64.

Every run of RUNS is compared with PyTorch on one device; tp on 2 devices also with PyTorch's own tensor parallelism (parallelize_module, gloo), zero3 with fully_shard and zero1 with
ZeroRedundancyOptimizer. Gradients are those of parity.py: what a step of SGD took off the weights.

usage: gpt.py EVENLOAD FOLDER      prints a line a comparison; exit status 1 where one is over its limit
"""
import json
import os
import random
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import parity
from parity import LIMITS, RATE, SEED, Case, Program, farthest, relative

LAYERS, WIDTH, HEADS, SEQ, VOCAB, SAMPLES, BATCH, STEPS = 2, 32, 4, 16, 256, 48, 8, 10
SIZES = ("--layers", str(LAYERS), "--embed", str(WIDTH), "--heads", str(HEADS), "--seq", str(SEQ), "--vocab", str(VOCAB))
LR = 0.003
OPTIMIZERS = {"adam": (), "adamw": parity.WITH_ADAMW}  # with clipped gradients


class Text:
    """Random bytes: the file, and its samples: SEQ bytes each, and the bytes that follow them as labels."""

    def __init__(self):
        # Not all bytes, so that frequencies can be learned.
        self.bytes = random.Random(SEED).choices(range(32, 64), k=SAMPLES * SEQ + 1)
        tokens = torch.tensor(self.bytes)
        self.inputs, self.labels = tokens[:-1].reshape(SAMPLES, SEQ), tokens[1:].reshape(SAMPLES, SEQ)

    def write(self, path):
        with open(path, "wb") as file:
            file.write(bytes(self.bytes))

    def __len__(self):
        return SAMPLES


class Conv1D(nn.Module):
    """Hugging Face's linear layer, whose weight is [inputs, outputs]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) * 0.2), nn.Parameter(torch.randn(outputs) * 0.1)

    def forward(self, x):
        return x @ self.weight + self.bias


def attend(q, k, v, heads):
    """[batch, tokens, heads * size] each."""
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-5), nn.LayerNorm(WIDTH, eps=1e-5)
        self.attn = nn.ModuleDict({"c_attn": Conv1D(WIDTH, 3 * WIDTH), "c_proj": Conv1D(WIDTH, WIDTH)})
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(WIDTH, 4 * WIDTH), "c_proj": Conv1D(4 * WIDTH, WIDTH)})

    def forward(self, x):
        x = x + self.attn["c_proj"](attend(*self.attn["c_attn"](self.ln_1(x)).chunk(3, -1), HEADS))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, block=Block):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCAB, WIDTH),
            "wpe": nn.Embedding(SEQ, WIDTH),
            "h": nn.ModuleList(block() for _ in range(LAYERS)),
            "ln_f": nn.LayerNorm(WIDTH, eps=1e-5),
        })

    def forward(self, tokens):  # [batch, SEQ] to [batch, SEQ, VOCAB]
        x = self.transformer["wte"](tokens) + self.transformer["wpe"].weight
        for block in self.transformer["h"]:
            x = block(x)
        return self.transformer["ln_f"](x) @ self.transformer["wte"].weight.T


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make_case():
    data = Text()
    case = Case("gpt", GPT, (*SIZES, "--data", "data.txt"), data, lambda rows: data.inputs[rows], loss_of, batch=BATCH, steps=STEPS)
    # Embeddings of a deviation of 1 would leave the blocks little to say.
    for name in ("transformer.wte.weight", "transformer.wpe.weight"):
        case.state[name] = case.state[name] * 0.2
    case.rate = lambda optimizer: LR
    return case


# ---- PyTorch's tensor parallelism ----


class ParallelBlock(nn.Module):
    """The same with PyTorch's linear layers, and query, key and value apart: what parallelize_module can cut."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-5), nn.LayerNorm(WIDTH, eps=1e-5)
        self.q, self.k, self.v, self.proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.ln_1(x)
        heads = HEADS // dist.get_world_size()
        x = x + self.proj(attend(self.q(h), self.k(h), self.v(h), heads))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


def parallel_state(state):
    """The case's weights by the names of ParallelBlock."""
    names = {"attn.c_attn": ("q", "k", "v"), "attn.c_proj": ("proj",), "mlp.c_fc": ("fc",), "mlp.c_proj": ("out",)}
    other = {}
    for name, tensor in state.items():
        for theirs, ours in names.items():
            if theirs in name:
                for part, layer in zip(tensor.chunk(len(ours), -1), ours, strict=True):
                    other[name.replace(theirs, layer)] = part.t().contiguous()
                break
        else:
            other[name] = tensor
    return other


def train_by_tensor(case, kind, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = GPT(ParallelBlock).to(kind)
    model.load_state_dict(parallel_state(case.state))
    for block in model.transformer["h"]:
        plan = {name: ColwiseParallel() for name in ("q", "k", "v", "fc")} | {name: RowwiseParallel() for name in ("proj", "out")}
        parallelize_module(block, mesh, plan)
    return parity.train(case, "adam", model)


def train_by_shard(case, kind, mesh, optimizer, reduce_dtype=None):
    """fully_shard: each block a unit, and the rest one."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model, how = case.model(kind), {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(reduce_dtype=reduce_dtype)}
    for block in model.transformer["h"]:
        fully_shard(block, **how)
    return parity.train(case, optimizer, fully_shard(model, **how), mesh.get_rank(), mesh.size(), wrap=lambda model: model)


def train_by_zero(case, kind, mesh, optimizer):
    """DistributedDataParallel, and its optimizer's state on one of the ranks each."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def shard(params, rate):
        plain = parity.OPTIMIZERS[optimizer][1](params, rate)
        return ZeroRedundancyOptimizer(plain.param_groups[0]["params"], type(plain), lr=rate, weight_decay=plain.defaults["weight_decay"])

    return parity.train(case, optimizer, case.model(kind), mesh.get_rank(), mesh.size(), make=shard)


def train_as_rank(rank, folder):
    from torch.distributed.device_mesh import init_device_mesh

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mesh, case, found = init_device_mesh("cpu", (2,)), make_case(), {}
    for kind in (torch.float64, torch.float32):
        found[f"tp {kind}"] = train_by_tensor(case, kind, mesh)
        for optimizer in OPTIMIZERS:
            found[f"zero1 {optimizer} {kind}"] = train_by_zero(case, kind, mesh, optimizer)
            found[f"zero3 {optimizer} {kind}"] = train_by_shard(case, kind, mesh, optimizer)
    found["zero3 bfloat16"] = train_by_shard(case, torch.float32, mesh, "adam", torch.bfloat16)
    dist.destroy_process_group()
    if rank == 0:
        with open(f"{folder}/parallel.json", "w") as file:
            json.dump(found, file)


# ---- what is compared ----

RUNS = {
    "single": ("--mode", "single"),
    "ddp 2": ("--mode", "ddp", "--devices", "2", "--procs", "1"),
    "tp 2": ("--mode", "tp", "--devices", "2"),
    "tp 4": ("--mode", "tp", "--devices", "4"),
    "tp 2 x dp 2": ("--mode", "tp", "--devices", "4", "--mesh", "dp=2"),
    "mp 2": ("--mode", "mp", "--devices", "2"),
    "pipeline 2": ("--mode", "pipeline", "--devices", "2", "--schedule", "micro=4"),
    "pipeline 2 x tp 2": ("--mode", "pipeline", "--devices", "4", "--mesh", "dp=1,pp=2,tp=2", "--schedule", "micro=4"),
    "zero1 2": ("--mode", "zero1", "--devices", "2"),
    "zero2 2": ("--mode", "zero2", "--devices", "2"),
    "zero3 2": ("--mode", "zero3", "--devices", "2"),
    "zero3 2 x dp 2": ("--mode", "zero3", "--devices", "4", "--mesh", "dp=2"),
}
PEERS = {"zero1 2": "ZeroRedundancyOptimizer", "zero3 2": "fully_shard"}


def compare(case, program, folder):
    model = case.model()
    theirs = {name: parity.train(case, name, case.model()) for name in OPTIMIZERS}
    case.batch_loss(model, case.rows(0)).backward()
    with open(f"{folder}/parallel.json") as file:
        parallel = json.load(file)
    assert theirs["adam"][-1] < 0.9 * theirs["adam"][0], "it learns nothing"
    for name, options in RUNS.items():
        for optimizer, more in OPTIMIZERS.items():
            ours = program.run(case, "--optimizer", optimizer, "--lr", str(LR), *more, *options, steps=STEPS)
            yield f"{name}: {STEPS} losses with {optimizer}", farthest(ours, theirs[optimizer]), LIMITS["losses"]
            if name == "tp 2" and optimizer == "adam":
                yield f"{name}: the same by parallelize_module", farthest(ours, parallel["tp torch.float64"]), LIMITS["losses"]
            if name in PEERS:
                theirs_of = {kind: parallel[f"{name.split()[0]} {optimizer} torch.{kind}"] for kind in ("float64", "float32")}
                yield f"{name}: the same by {PEERS[name]}", farthest(ours, theirs_of["float64"]), 1e-12
                ours = program.run(case, "--optimizer", optimizer, "--lr", str(LR), *more, *options, steps=STEPS, dtype="f32")
                yield f"{name}: the same in f32", farthest(ours, theirs_of["float32"]), 1e-6
        if name == "zero3 2":
            halves = ("--optimizer", "adam", "--lr", str(LR), *options, "--comm-hook", "bf16")
            ours = program.run(case, *halves, steps=STEPS, dtype="f32")
            yield f"{name}: the same with gradients reduced in bf16", farthest(ours, parallel["zero3 bfloat16"]), 1e-5  # f32 is 7e-5 away
        if name == "tp 2":
            [single] = program.run(case, "--optimizer", "sgd", "--lr", "0", *options, dtype="f32")
            yield f"{name}: its first loss in f32", farthest([single], parallel["tp torch.float32"][:1]), 1e-6
        program.run(case, "--optimizer", "sgd", "--lr", str(RATE), *options)
        after = program.after()
        assert sorted(after) == sorted(case.state), "names"
        worst = max((relative((case.state[n] - after[n]) / RATE, p.grad), n) for n, p in model.named_parameters())
        yield f"{name}: gradients, the worst {worst[1]}", worst[0], LIMITS["gradients"]


def main():
    folder, over = os.path.abspath(sys.argv[2]), 0
    assert not os.path.exists(f"{folder}/meeting"), "a folder of an earlier run"
    torch.set_num_threads(1)
    torch.multiprocessing.spawn(train_as_rank, args=(folder,), nprocs=2)
    for what, difference, limit in compare(make_case(), Program(os.path.abspath(sys.argv[1]), folder), folder):
        good = difference <= limit
        over += not good
        print(f"{what:70} {difference:8.1e}  (at most {limit:.2g}){'' if good else '  OVER'}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
