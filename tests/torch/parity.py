#!/usr/bin/env python3
"""The same weights and batches give PyTorch's loss, gradients and training.

Weights go to the program in safetensors (--load) and come back (--save); batches are made here anew from the documented rules (batches.py).
A gradient is what one step of SGD with a large learning rate took off the weights, divided by that rate: in f64 it is exact to some 1e-16 of itself
and of the weight. Three comparisons, each in f64:

  gradients  of one step, each parameter's relative L2 norm; running statistics likewise; and the loss in f32
  single     losses of 20 steps (resnets: 5) with sgd, momentum, adam, and adamw with clipped gradients and a rate that rises and falls
  ddp        the same on two ranks, PyTorch's DistributedDataParallel by gloo; and with 3 and 1 quarters of each batch: alike as
             DistributedDataParallel has it (--shares weights=equal), by samples as one device trains

A resnet's training in f64 takes rounding errors apart quickly: there losses may be 10 times as far off as those of PyTorch itself from weights
that are disturbed in their last bit. Narrow ones are trained; of the real ones a step is compared.

usage: parity.py EVENLOAD FOLDER [CASE...]      prints a line a comparison; exit status 1 where one is over its limit
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
from batches import DummyImages, Sentences, rows_of, sorted_rows_of

SEED, RATE = 7, 512
LIMITS = {"gradients": 1e-9, "statistics": 1e-9, "f32 loss": 1e-4, "losses": 1e-9}
DRIFT_TIMES, DRIFT_LEAST = 10, 1e-12
OPTIMIZERS = {
    "sgd": (0.1, lambda p, lr: torch.optim.SGD(p, lr)),
    "momentum": (0.05, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9)),
    "adam": (0.001, lambda p, lr: torch.optim.Adam(p, lr)),
    "adamw": (0.001, lambda p, lr: torch.optim.AdamW(p, lr, weight_decay=0.1)),
}
CLIP = 0.1
WITH_ADAMW = ("--optimizer", "weight-decay=0.1", "--clip", str(CLIP))


class Case:
    """A model on both sides: options for the program, a module, the inputs of some samples, and the loss of a batch."""

    def __init__(self, name, module, options, data, inputs, loss=F.cross_entropy, batch=16, steps=20, drifts=False):
        self.name, self.options, self.data, self.inputs, self.loss = name, options, data, inputs, loss
        self.batch, self.steps, self.drifts = batch, steps, drifts
        torch.manual_seed(SEED)
        self.state = module().double().state_dict()
        self.module = module

    def model(self, dtype=torch.float64):
        model = self.module().to(dtype)
        model.load_state_dict(self.state)
        return model

    def rows(self, step):
        if "bucketed" in self.options:
            return sorted_rows_of(step, [len(line) for line in self.data.tokens], self.batch, SEED)
        return rows_of(step, len(self.data), self.batch, SEED)

    def rate(self, optimizer):
        return OPTIMIZERS[optimizer][0] * (0.1 if self.drifts else 1)

    def batch_loss(self, model, rows):
        x = self.inputs(rows)
        if x.is_floating_point():
            x = x.to(next(model.parameters()).dtype)
        return self.loss(model(x), self.data.labels[rows])

    def disturbed(self):
        """Every weight one bit up or down."""
        torch.manual_seed(SEED + 1)
        up = {n: torch.rand(t.shape) < 0.5 for n, t in self.state.items()}
        other = {
            n: torch.nextafter(t, torch.where(up[n], torch.inf, -torch.inf).double()) if t.is_floating_point() and "running" not in n else t
            for n, t in self.state.items()
        }
        model = self.module().double()
        model.load_state_dict(other)
        return model


def one_hot_error(outputs, labels):
    return F.mse_loss(outputs, F.one_hot(labels, outputs.shape[1]).to(outputs.dtype))


def freeze(model, *layers):
    for layer in layers:
        model.get_submodule(layer).requires_grad_(False)
    return model


def of_sentences(name, module, options, data, inputs, loss=F.cross_entropy):
    return Case(name, module, (*options, "--data", "data.txt"), data, lambda rows: inputs[rows], loss)


def resnet(name, depth, width, frozen=(), **more):
    data = DummyImages(32, 10, SEED)
    options = ("--data", "dummy", "--image", "32", "--classes", "10", "--width", str(width), *(("--freeze", ",".join(frozen)) if frozen else ()))
    return Case(name, lambda: freeze(weights.ResNet(depth, width, 10), *frozen), options, data, data.images, drifts=True, **more)


def of_lengths(name, *options):
    """Each rank's batches are padded to their own longest sentence, as a collate function does."""
    options = ("--model", "dropout=0", "--embed", "16", "--filters", "8", "--lengths", "pad=batch", *options, "--data", "data.txt")
    return Case(name, lambda: weights.TextCNN(len(WIDE.number) + 2, 16, 8, 3), options, WIDE, WIDE.cut)


THREE, FIVE, WIDE = Sentences(64, 3, 60, 12, SEED), Sentences(64, 5, 60, 12, SEED), Sentences(70, 3, 60, 40, SEED)
WORDS = len(THREE.number) + 2
CASES = {
    "textcnn": lambda name: of_sentences(
        name, lambda: weights.TextCNN(WORDS, 16, 8, 3), ("--model", "dropout=0", "--embed", "16", "--filters", "8"), THREE, THREE.ids()
    ),
    "textcnn-frozen": lambda name: of_sentences(
        name,
        lambda: freeze(weights.TextCNN(WORDS, 16, 8, 3), "embedding"),
        ("--model", "dropout=0", "--embed", "16", "--filters", "8", "--freeze", "embedding"),
        THREE,
        THREE.ids(),
    ),
    "textcnn-lengths": of_lengths,
    "textcnn-sorted": lambda name: of_lengths(name, "--lengths", "bucketed"),
    "mlp": lambda name: of_sentences(
        name, lambda: weights.MLP(32, (24, 16), 3), ("--features", "32", "--hidden", "24,16"), THREE, THREE.bags(32)
    ),
    "toy": lambda name: of_sentences(name, weights.Toy, (), FIVE, FIVE.bags(10), one_hot_error),
    "linear": lambda name: of_sentences(name, weights.Linear, (), FIVE, FIVE.bags(10), one_hot_error),
    "resnet18-8": lambda name: resnet(name, 18, 8, batch=32, steps=5),
    "resnet50-8": lambda name: resnet(name, 50, 8, batch=32, steps=5),
    "resnet18-frozen": lambda name: resnet(name, 18, 8, frozen=("conv1", "bn1", "layer1", "layer2.0.bn1"), batch=32, steps=5),
    "resnet18": lambda name: resnet(name, 18, 64, steps=0),
    "resnet50": lambda name: resnet(name, 50, 64, steps=0),
}


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.runs = path, folder, 0

    def file(self, name):
        return os.path.join(self.folder, name)

    def run(self, case, *options, dtype="f64", steps=1):
        """Trains from the case's weights; returns the losses. `steps` None: the options say how long."""
        state = {name: t.to(torch.float32) if dtype == "f32" and t.is_floating_point() else t for name, t in case.state.items()}
        weights.save(state, self.file("before.safetensors"))
        if "data.txt" in case.options:
            case.data.write(self.file("data.txt"))
        self.runs += 1
        command = [self.path, "run", "--model", case.name.split("-")[0], *case.options, "--batch", str(case.batch)]
        command += ["--precision", dtype, "--warmup", "0", "--control", "none", "--no-record"]
        command += [] if steps is None else ["--steps", str(steps), "--min-time", "0"]
        command += ["--seed", str(SEED), "--load", "before.safetensors", "--save", "after.safetensors"]
        command += ["--out", f"run-{self.runs}", "--json", "--quiet", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=self.folder)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}{done.stdout[:2000]}")
        return json.loads(done.stdout)["loss"]

    def after(self):
        return weights.load(self.file("after.safetensors"))


# ---- what is compared ----


def relative(x, reference):
    return ((x - reference).norm() / reference.norm()).item() if reference.norm() > 0 else (x - reference).norm().item()


def statistics_of(model):
    return {n.removeprefix("module."): b for n, b in model.named_buffers() if b.is_floating_point()}


def worst_statistic(ours, theirs):
    return max((relative(ours[n], torch.as_tensor(b, dtype=torch.float64)), n) for n, b in theirs.items())


def compare_step(case, program):
    """The worst parameter's difference, the worst statistic's, and the losses'."""
    rows = case.rows(0)
    model = case.model()
    loss = case.batch_loss(model, rows)
    loss.backward()
    [ours] = program.run(case, "--optimizer", "sgd", "--lr", str(RATE))
    after = program.after()
    assert sorted(after) == sorted(case.state), "names"
    assert all(torch.equal(case.state[n], after[n]) for n, p in model.named_parameters() if not p.requires_grad), "frozen weights"
    worst = max((relative((case.state[n] - after[n]) / RATE, p.grad), n) for n, p in model.named_parameters() if p.requires_grad)
    yield f"gradients, the worst {worst[1]}", worst[0], LIMITS["gradients"]
    statistics = statistics_of(model)
    if statistics:
        worst = worst_statistic(after, statistics)
        yield f"statistics, the worst {worst[1]}", worst[0], LIMITS["statistics"]
        assert all(torch.equal(after[n], b) for n, b in model.named_buffers() if n not in statistics), "batches that were counted"
    yield "loss", abs(ours - loss.item()) / abs(loss.item()), LIMITS["losses"]
    single = case.batch_loss(case.model(torch.float32), rows).item()
    [ours] = program.run(case, "--optimizer", "sgd", "--lr", "0", dtype="f32")
    yield "loss in f32", abs(ours - single) / abs(single), LIMITS["f32 loss"]


def part_of(rows, rank, ranks, shares):
    return rows[rank::ranks] if not shares else (rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :])[rank]


def train(case, name, model, rank=0, ranks=1, shares=False, wrap=DistributedDataParallel, make=None):
    """PyTorch's losses: the mean over ranks of each one's mean. `make`: an optimizer of parameters and rate."""
    if ranks > 1:
        model = wrap(model)
    optimizer = (make or OPTIMIZERS[name][1])(model.parameters(), case.rate(name))
    losses = []
    for step in range(case.steps):
        optimizer.zero_grad()
        loss = case.batch_loss(model, part_of(case.rows(step), rank, ranks, shares))
        loss.backward()
        if name == "adamw":
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        mean = loss.detach().clone()
        if ranks > 1:
            dist.all_reduce(mean)
        losses.append(mean.item() / ranks)
    return losses


def train_all(case, rank=0, ranks=1, shares=False):
    """By optimizer the losses, and the limit of how far off they may be."""
    found = {}
    for name in OPTIMIZERS:
        losses, limit = train(case, name, case.model(), rank, ranks, shares), LIMITS["losses"]
        if case.drifts:
            limit = max(DRIFT_TIMES * farthest(train(case, name, case.disturbed(), rank, ranks), losses), DRIFT_LEAST)
        found[name] = (losses, limit)
    return found


def farthest(losses, others):
    return max(abs(x - y) / abs(y) for x, y in zip(losses, others, strict=True))


def compare_training(case, program, of_ranks, statistics, of_shares):
    ranks, alone = ("--mode", "ddp", "--devices", "2", "--procs", "1"), train_all(case)
    runs = [("single", ("--mode", "single"), alone), ("ddp", ranks, of_ranks)]
    if of_shares:
        runs.append(("ddp, 3 to 1, equal", (*ranks, "--shares", "3,1", "--shares", "weights=equal"), of_shares))
    if of_shares and "pad=batch" not in case.options:  # one device pads to another length than ranks do
        runs.append(("ddp, 3 to 1, samples", (*ranks, "--shares", "3,1"), alone))
    for mode, more, theirs in runs:
        for name, (losses, limit) in theirs.items():
            more_of = (*more, *(WITH_ADAMW if name == "adamw" else ()))
            ours = program.run(case, "--optimizer", name, "--lr", str(case.rate(name)), *more_of, steps=case.steps)
            yield f"{mode}: {case.steps} losses with {name}", farthest(ours, losses), limit
    if statistics:
        program.run(case, "--optimizer", "sgd", "--lr", "0", "--mode", "ddp", "--devices", "2", "--procs", "1")
        worst = worst_statistic(program.after(), statistics)
        yield f"ddp: statistics, the worst {worst[1]}", worst[0], LIMITS["statistics"]


# ---- PyTorch's ranks ----


def step_statistics(case, rank):
    """After a forward of this rank's share."""
    model = DistributedDataParallel(case.model())
    case.batch_loss(model, case.rows(0)[rank::2])
    return {n: b.tolist() for n, b in statistics_of(model).items()}


def train_as_rank(rank, port, names, path):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    chosen = [CASES[name](name) for name in names]
    found = {
        case.name: (train_all(case, rank, 2), step_statistics(case, rank), None if case.drifts else train_all(case, rank, 2, shares=True))
        for case in chosen
        if case.steps
    }
    dist.destroy_process_group()
    if rank == 0:
        with open(path, "w") as file:
            json.dump(found, file)


def train_on_ranks(names, path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    torch.multiprocessing.spawn(train_as_rank, args=(port, names, path), nprocs=2)
    with open(path) as file:
        return json.load(file)


def compare(case, program, of_ranks):
    """Prints; returns how many are over their limit."""
    over = 0
    training = compare_training(case, program, *of_ranks[case.name]) if case.steps else ()
    for what, difference, limit in (*compare_step(case, program), *training):
        good = difference <= limit
        over += not good
        print(f"{case.name:15} {what:52} {difference:8.1e}  (at most {limit:.2g}){'' if good else '  OVER'}", flush=True)
    return over


def main():
    program = Program(os.path.abspath(sys.argv[1]), sys.argv[2])
    torch.set_num_threads(1)
    names = sys.argv[3:] or list(CASES)
    of_ranks = train_on_ranks(names, program.file("ranks.json"))
    sys.exit(sum(compare(CASES[name](name), program, of_ranks) for name in names) > 0)


if __name__ == "__main__":
    main()
