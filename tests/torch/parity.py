#!/usr/bin/env python3
"""The same weights and batches give PyTorch's loss, gradients and training.

Weights go to the program in safetensors (--load) and come back (--save); batches are made here anew from the documented rules (batches.py).
A gradient is what one step of SGD with a large learning rate took off the weights, divided by that rate: in f64 it is exact to some 1e-16 of itself
and of the weight. Three comparisons, each in f64:

  gradients  of one step, each parameter's relative L2 norm; and the loss in f32
  single     losses of 20 steps with sgd, momentum and adam
  ddp        the same on two ranks, PyTorch's DistributedDataParallel by gloo

usage: parity.py EVENLOAD FOLDER [MODEL...]      prints a line a comparison; exit status 1 where one is over its limit
"""
import json
import os
import socket
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import weights
from batches import Sentences, rows_of

SEED, STEPS, RATE = 7, 20, 512
LIMITS = {"gradients": 1e-9, "f32 loss": 1e-4, "losses": 1e-9}
OPTIMIZERS = {
    "sgd": (0.1, lambda p, lr: torch.optim.SGD(p, lr)),
    "momentum": (0.05, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9)),
    "adam": (0.001, lambda p, lr: torch.optim.Adam(p, lr)),
}


class Case:
    """A model on both sides: options for the program, a module, all inputs by sample, and the loss of a batch."""

    def __init__(self, name, module, options, data, inputs, loss, batch=16):
        self.name, self.options, self.data, self.inputs, self.loss, self.batch = name, options, data, inputs, loss, batch
        torch.manual_seed(SEED)
        self.state = module().double().state_dict()
        self.module = module

    def model(self, dtype=torch.float64):
        model = self.module().to(dtype)
        model.load_state_dict(self.state)
        return model

    def batch_loss(self, model, rows):
        x = self.inputs[rows]
        if x.is_floating_point():
            x = x.to(next(model.parameters()).dtype)
        return self.loss(model(x), self.data.labels[rows])


def one_hot_error(outputs, labels):
    return F.mse_loss(outputs, F.one_hot(labels, outputs.shape[1]).to(outputs.dtype))


def cases():
    three, ten = Sentences(64, 3, 60, 12, SEED), Sentences(64, 5, 60, 12, SEED)
    vocab = len(three.number) + 2
    text = ("--dropout", "0", "--embed", "16", "--filters", "8")
    return [
        Case("textcnn", lambda: weights.TextCNN(vocab, 16, 8, 3), text, three, three.ids(), F.cross_entropy),
        Case("mlp", lambda: weights.MLP(32, (24, 16), 3), ("--features", "32", "--hidden", "24,16"), three, three.bags(32), F.cross_entropy),
        Case("toy", weights.Toy, (), ten, ten.bags(10), one_hot_error),
        Case("linear", weights.Linear, (), ten, ten.bags(10), one_hot_error),
    ]


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.runs = path, folder, 0

    def file(self, name):
        return os.path.join(self.folder, name)

    def run(self, case, *options, dtype="f64", steps=1):
        """Trains from the case's weights; returns the losses."""
        state = {name: t.to(torch.float32) if dtype == "f32" and t.is_floating_point() else t for name, t in case.state.items()}
        weights.save(state, self.file("before.safetensors"))
        case.data.write(self.file("data.txt"))
        self.runs += 1
        command = [self.path, "run", "--model", case.name, *case.options, "--data", self.file("data.txt"), "--batch", str(case.batch)]
        command += ["--dtype", dtype, "--warmup", "0", "--steps", str(steps), "--min-time", "0", "--control", "none", "--no-record"]
        command += ["--seed", str(SEED), "--load", self.file("before.safetensors"), "--save", self.file("after.safetensors")]
        command += ["--out", self.file(f"run-{self.runs}"), "--json", "--quiet", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}{done.stdout[:2000]}")
        return json.loads(done.stdout)["loss"]

    def after(self):
        return weights.load(self.file("after.safetensors"))


# ---- what is compared ----


def relative(x, reference):
    return ((x - reference).norm() / reference.norm()).item() if reference.norm() > 0 else (x - reference).norm().item()


def compare_gradients(case, program):
    """The worst parameter's difference, and the losses'."""
    rows = rows_of(0, len(case.data), case.batch, SEED)
    model = case.model()
    loss = case.batch_loss(model, rows)
    loss.backward()
    [ours] = program.run(case, "--optimizer", "sgd", "--lr", str(RATE))
    after = program.after()
    assert list(after) == list(case.state), "names, and their order"
    worst = max((relative((case.state[n] - after[n]) / RATE, p.grad), n) for n, p in model.named_parameters())
    yield "gradients", f"gradients, the worst {worst[1]}", worst[0]
    yield "losses", "loss", abs(ours - loss.item()) / abs(loss.item())
    single = case.batch_loss(case.model(torch.float32), rows).item()
    [ours] = program.run(case, "--optimizer", "sgd", "--lr", "0", dtype="f32")
    yield "f32 loss", "loss in f32", abs(ours - single) / abs(single)


def train(case, name, rank=0, ranks=1):
    """PyTorch's losses: the mean over ranks of each one's mean."""
    lr, make = OPTIMIZERS[name]
    model = case.model()
    if ranks > 1:
        model = DistributedDataParallel(model)
    optimizer = make(model.parameters(), lr)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = case.batch_loss(model, rows_of(step, len(case.data), case.batch, SEED)[rank::ranks])
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if ranks > 1:
            dist.all_reduce(mean)
        losses.append(mean.item() / ranks)
    return losses


def compare_training(case, program, of_ranks):
    for mode, theirs in (("single", {o: train(case, o) for o in OPTIMIZERS}), ("ddp", of_ranks[case.name])):
        for name, (lr, _) in OPTIMIZERS.items():
            more = ("--mode", "ddp", "--devices", "2", "--procs", "1") if mode == "ddp" else ("--mode", "single")
            ours = program.run(case, "--optimizer", name, "--lr", str(lr), *more, steps=STEPS)
            worst = max(abs(x - y) / abs(y) for x, y in zip(ours, theirs[name], strict=True))
            yield "losses", f"{mode}: {STEPS} losses with {name}", worst


# ---- PyTorch's ranks ----


def train_as_rank(rank, port, names, path):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    losses = {case.name: {o: train(case, o, rank, 2) for o in OPTIMIZERS} for case in cases() if case.name in names}
    dist.destroy_process_group()
    if rank == 0:
        with open(path, "w") as file:
            json.dump(losses, file)


def train_on_ranks(names, path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    torch.multiprocessing.spawn(train_as_rank, args=(port, names, path), nprocs=2)
    with open(path) as file:
        return json.load(file)


def main():
    program = Program(sys.argv[1], sys.argv[2])
    torch.set_num_threads(1)
    chosen = [case for case in cases() if case.name in sys.argv[3:] or len(sys.argv) == 3]
    of_ranks = train_on_ranks([case.name for case in chosen], program.file("ranks.json"))
    over = 0
    for case in chosen:
        for kind, what, difference in (*compare_gradients(case, program), *compare_training(case, program, of_ranks)):
            good = difference <= LIMITS[kind]
            over += not good
            print(f"{case.name:9} {what:44} {difference:8.1e}  (at most {LIMITS[kind]:g}){'' if good else '  OVER'}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
