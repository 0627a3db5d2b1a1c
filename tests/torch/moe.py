#!/usr/bin/env python3
"""A mixture of experts in PyTorch, and evenload's moe: the same weights and batches give the same losses and gradients in f64.

Experts is plain PyTorch: token by token, with capacity, auxiliary loss and router z loss. Where transformers is there, Mixtral's own block takes its place (without its rounding of
the router's softmax to f32). FarExperts has half of the experts on each of two ranks of gloo and sends tokens by all_to_all_single.

usage: moe.py EVENLOAD FOLDER      prints a line a comparison; exit status 1 where one is over its limit
"""
import json
import math
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import gpt
import parity
from gpt import GPT, HEADS, SEQ, WIDTH, attend
from parity import RATE, Case, Program, farthest, relative

EXPERTS, HIDDEN, STEPS, LIMIT = 4, 24, 8, 1e-12


class Experts(nn.Module):
    """What Mixtral's block computes, of whole sequences, whose capacity is their own."""

    def __init__(self, k=2, capacity=0.0, aux=0.01, z=0.0):
        super().__init__()
        self.k, self.aux, self.z = k, aux, z
        self.most = math.ceil(capacity * k * SEQ / EXPERTS) if capacity else k * SEQ
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.Module()
        self.experts.gate_up_proj = nn.Parameter(torch.randn(EXPERTS, 2 * HIDDEN, WIDTH) * 0.2)
        self.experts.down_proj = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * 0.2)
        self.extra = 0

    def route(self, x):
        """Of one sequence: experts and weights of each token's choices, and which of them are kept."""
        logits = self.gate(x)
        chosen = logits.topk(self.k).indices
        shares = logits.softmax(-1)
        weights = shares.gather(1, chosen) if self.k == 1 else logits.gather(1, chosen).softmax(-1)
        kept, taken = torch.zeros_like(chosen, dtype=torch.bool), [0] * EXPERTS
        for choice in range(self.k):  # first choices have the first places
            for token in range(SEQ):
                expert = int(chosen[token, choice])
                kept[token, choice] = taken[expert] < self.most
                taken[expert] += 1
        self.extra = self.extra + self.aux * EXPERTS * (F.one_hot(chosen, EXPERTS).sum((0, 1)) / SEQ * shares.mean(0)).sum()
        self.extra = self.extra + self.z * logits.logsumexp(-1).square().mean()
        return chosen, weights, kept

    def expert(self, e, rows):
        gate, up = F.linear(rows, self.experts.gate_up_proj[e]).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.experts.down_proj[e])

    def forward(self, x):
        self.extra, y = 0, torch.zeros_like(x)
        for s in range(len(x)):
            chosen, weights, kept = self.route(x[s])
            for e in range(EXPERTS):
                token, choice = torch.where((chosen == e) & kept)
                y[s] = y[s].index_add(0, token, self.expert(e, x[s][token]) * weights[token, choice, None])
        self.extra = self.extra / len(x)
        return y


class FarExperts(Experts):
    """Each of two ranks has half of the experts; all have all parameters, and use theirs."""

    def exchange(self, rows, sent, received):
        from torch.distributed.nn.functional import all_to_all_single

        return all_to_all_single(rows.new_empty(sum(received), *rows.shape[1:]), rows, received, sent)

    def forward(self, x):
        ranks, rank, self.extra, places = dist.get_world_size(), dist.get_rank(), 0, []
        own = EXPERTS // ranks
        for s in range(len(x)):
            chosen, weights, kept = self.route(x[s])
            places += [(int(chosen[t, c]), s, t, weights[t, c]) for t in range(SEQ) for c in range(self.k) if kept[t, c]]
        self.extra = self.extra / len(x)
        places.sort(key=lambda place: place[0])
        rows = torch.stack([x[s, t] for _, s, t, _ in places]) if places else x.new_empty(0, WIDTH)
        counts = torch.bincount(torch.tensor([e for e, *_ in places], dtype=torch.long), minlength=EXPERTS)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        sent, received = counts.view(ranks, own).sum(1).tolist(), arriving.view(ranks, own).sum(1).tolist()
        here = self.exchange(rows, sent, received)
        done = [self.expert(rank * own + i % own, part) for i, part in enumerate(here.split(arriving.tolist()))]
        back, y = self.exchange(torch.cat(done), received, sent), torch.zeros_like(x).flatten(0, 1)
        for i, (_, s, t, weight) in enumerate(places):
            y = y.index_add(0, torch.tensor([s * SEQ + t]), (back[i] * weight)[None])
        return y.view_as(x)


def mixtral(kind="eager"):
    """Hugging Face's block, by one of its ways, or None. Its router rounds to f32 by .float(), which is left out here."""
    try:
        from transformers import MixtralConfig
        from transformers.models.mixtral import modeling_mixtral
    except ImportError:
        return None
    config = MixtralConfig(hidden_size=WIDTH, intermediate_size=HIDDEN, num_local_experts=EXPERTS, num_experts_per_tok=2)
    config._experts_implementation = kind

    class Block(modeling_mixtral.MixtralSparseMoeBlock):
        def __init__(self):
            super().__init__(config)
            self.extra = 0
            for parameter in self.parameters():
                nn.init.normal_(parameter, std=0.2)

        def forward(self, x):
            if x.dtype != torch.float64:
                return super().forward(x)
            rounded, torch.Tensor.float = torch.Tensor.float, lambda tensor: tensor
            try:
                return super().forward(x)
            finally:
                torch.Tensor.float = rounded

    return Block


def block_of(experts):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-5), nn.LayerNorm(WIDTH, eps=1e-5)
            self.attn = nn.ModuleDict({"c_attn": gpt.Conv1D(WIDTH, 3 * WIDTH), "c_proj": gpt.Conv1D(WIDTH, WIDTH)})
            self.mlp = experts()

        def forward(self, x):
            x = x + self.attn["c_proj"](attend(*self.attn["c_attn"](self.ln_1(x)).chunk(3, -1), HEADS))
            return x + self.mlp(self.ln_2(x))

    return Block


class MoeCase(Case):
    """The losses of both sides are without the auxiliary ones, which gradients are of too."""

    def __init__(self, experts, options):
        data = gpt.Text()
        sizes = (*gpt.SIZES, "--experts", str(EXPERTS), "--expert-hidden", str(HIDDEN), *options, "--data", "data.txt")
        super().__init__("moe", lambda: GPT(block_of(experts)), sizes, data, lambda rows: data.inputs[rows], gpt.loss_of, batch=gpt.BATCH, steps=STEPS)
        for name in ("transformer.wte.weight", "transformer.wpe.weight"):
            self.state[name] = self.state[name] * 0.2

    def losses(self, model, rows):
        loss = self.batch_loss(model, rows)
        return loss, loss + sum(block.mlp.extra for block in model.transformer["h"])


KINDS = {
    "plain": (lambda: Experts(), ("--model", "aux=0.01")),
    "auxiliary and z loss": (lambda: Experts(aux=0.3, z=0.1), ("--model", "aux=0.3,z=0.1")),
    "capacity 1": (lambda: Experts(capacity=1.0), ("--model", "capacity=1")),
    "capacity 0.5": (lambda: Experts(capacity=0.5, aux=0.1), ("--model", "capacity=0.5,aux=0.1")),
    "top 1": (lambda: Experts(k=1, capacity=1.25), ("--model", "capacity=1.25", "--top-k", "1")),
    "top 4 of 4": (lambda: Experts(k=4), ("--top-k", "4")),
}
RUNS = {
    "single": ("--mode", "single"),
    "ddp 2": ("--mode", "ddp", "--devices", "2", "--procs", "1"),
    "ep 2": ("--mode", "ep", "--devices", "2"),
    "ep 4": ("--mode", "ep", "--devices", "4"),
    "ep 2 x dp 2": ("--mode", "ep", "--devices", "4", "--mesh", "ep=2,dp=2"),
}


def train(case, model, rank=0, ranks=1, steps=STEPS):
    """Losses, and the gradients of the first step."""
    optimizer, losses, first = torch.optim.SGD(model.parameters(), 0.1), [], {}
    for step in range(steps):
        optimizer.zero_grad()
        loss, whole = case.losses(model, case.rows(step)[rank::ranks])
        whole.backward()
        mean = loss.detach().clone()
        for parameter in model.parameters() if ranks > 1 else ():
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
        if ranks > 1:
            dist.all_reduce(mean)
        first = first or {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        optimizer.step()
        losses.append(mean.item() / ranks)
    return losses, first


def train_as_rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    found = {}
    for name, capacity in (("plain", 0.0), ("capacity 1", 1.0)):
        case = MoeCase(lambda capacity=capacity: FarExperts(capacity=capacity), ())
        case.state = MoeCase(KINDS[name][0], ()).state
        found[name] = train(case, case.model(), rank, 2)[0]
    dist.barrier()  # or the slower rank may find the other one gone
    dist.destroy_process_group()
    if rank == 0:
        with open(f"{folder}/far.json", "w") as file:
            json.dump(found, file)


def compare(program, folder):
    kinds = dict(KINDS)
    if mixtral():
        kinds["Mixtral's block"] = (mixtral(), ("--model", "aux=0"))
    with open(f"{folder}/far.json") as file:
        far = json.load(file)
    for kind, (experts, options) in kinds.items():
        case = MoeCase(experts, options)
        losses, gradients = train(case, case.model())
        assert losses[-1] < losses[0], "it learns nothing"
        if kind in far:
            yield f"{kind}: two ranks of gloo and one", farthest(far[kind], losses), LIMIT
        for name, run in RUNS.items():
            ours = program.run(case, "--optimizer", "sgd", "--lr", "0.1", *run, steps=STEPS)
            yield f"{kind}, {name}: {STEPS} losses", farthest(ours, losses), LIMIT
            program.run(case, "--optimizer", "sgd", "--lr", str(RATE), *run)
            after = program.after()
            assert sorted(after) == sorted(case.state), "names"
            worst = max((relative((case.state[n] - after[n]) / RATE, g), n) for n, g in gradients.items())
            yield f"{kind}, {name}: gradients, the worst {worst[1]}", worst[0], LIMIT
    case = MoeCase(*KINDS["plain"])
    halves = program.run(case, "--optimizer", "sgd", "--lr", "0.1", "--mode", "ep", "--devices", "2", steps=STEPS, dtype="f32")
    yield "plain, ep 2: losses in f32", farthest(halves, train(case, case.model())[0]), 1e-5


def main():
    folder, over = os.path.abspath(sys.argv[2]), 0
    assert not os.path.exists(f"{folder}/meeting"), "a folder of an earlier run"
    torch.set_num_threads(1)
    torch.multiprocessing.spawn(train_as_rank, args=(folder,), nprocs=2)
    for what, difference, limit in compare(Program(os.path.abspath(sys.argv[1]), folder), folder):
        good = difference <= limit
        over += not good
        print(f"{what:90} {difference:8.1e}  (at most {limit:.2g}){'' if good else '  OVER'}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
