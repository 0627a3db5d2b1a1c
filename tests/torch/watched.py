"""A training that knows nothing of evenload, and is late on purpose in one rank: what `evenload watch` is tried on.

    torchrun --nproc_per_node 2 tests/torch/watched.py KIND WHERE MS STEPS [traceml]

KIND: planted.py's ddp, fsdp, zero1, loop; accumulate (two batches a step), scaler (a GradScaler), two (two optimizers),
compile (torch.compile), accelerate, lightning. WHERE, in rank 1: data, forward, backward, optimizer: sleeps MS there;
gc: collects MS of garbage in forward; batch: MS times as many samples; long: MS times as long ones; pinned: shares a
core with another process; wire, none: nothing. traceml: with its two lines.
Writes came-RANK.json: when that rank had passed the place in each step (ns), and how long its collections took.
"""
import contextlib
import gc
import json
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import planted

kind, where, ms, steps = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
late = RANK == 1
took = []


class Node:
    pass


def garbage(ms):
    """Cycles that take about that long to collect."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < 2 * ms / 1e3:
        a, b = Node(), Node()
        a.other, b.other = b, a


class Batches(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            planted.pause("data")
            n, length = 512 if where == "pinned" else 64, ()
            if late and where == "batch":
                n *= int(ms)
            if where == "long":
                length = (8 * int(ms) if late else 8,)
            yield torch.randn(n, *length, planted.WIDTH), torch.randint(0, 8, (n,))


class Model(planted.Model):
    def forward(self, x):
        if late and where == "gc":
            gc.disable()
            garbage(ms)
            begin = time.perf_counter()
            gc.collect()
            took.append(time.perf_counter() - begin)
        y = super().forward(x)
        return y.mean(1) if y.dim() == 3 else y


planted.Model = Model


def loss_of(model, x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


def plain(trace_step):
    dist.init_process_group("gloo")
    model, optimizer = planted.make("ddp" if kind in ("accumulate", "scaler", "two") else kind, WORLD)
    scaler = torch.amp.GradScaler("cpu") if kind == "scaler" else None
    optimizers = [optimizer]
    if kind == "two":
        weights = list(model.parameters())
        optimizers = [torch.optim.SGD(weights[:4], 0.01), torch.optim.AdamW(weights[4:], 0.01)]
    if kind == "compile":
        model.module.compile()
    batches = iter(torch.utils.data.DataLoader(Batches(), batch_size=None))
    for _ in range(steps):
        with trace_step(model):
            if kind in ("fsdp", "zero1", "loop"):
                planted.step(kind, model, optimizer, batches)
                continue
            for part in range(2 if kind == "accumulate" else 1):
                with model.no_sync() if kind == "accumulate" and part == 0 else contextlib.nullcontext():
                    loss = loss_of(model, *next(batches))
                    (scaler.scale(loss) if scaler else loss).backward()
            planted.pause("optimizer")
            for one in optimizers:
                scaler.step(one) if scaler else one.step()
            if scaler:
                scaler.update()
            for one in optimizers:
                one.zero_grad()
    dist.destroy_process_group()


def accelerated(trace_step):
    import accelerate
    accelerator = accelerate.Accelerator(cpu=True)
    torch.manual_seed(0)
    model = Model()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.01), torch.utils.data.DataLoader(Batches(), batch_size=None))
    batches = iter(loader)
    for _ in range(steps):
        with trace_step(model):
            loss = loss_of(model, *next(batches))
            accelerator.backward(loss)
            planted.pause("optimizer")
            optimizer.step()
            optimizer.zero_grad()
    accelerator.end_training()


def lightning(_):
    import lightning as L

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.model = Model()

        def training_step(self, batch, _):
            return loss_of(self.model, *batch)

        def on_before_optimizer_step(self, _):
            planted.pause("optimizer")

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    callbacks = []
    if sys.argv[5:] == ["traceml"]:
        from traceml_ai.integrations.lightning import TraceMLCallback
        callbacks = [TraceMLCallback()]
    trainer = L.Trainer(callbacks=callbacks, accelerator="cpu", devices=WORLD, strategy="ddp", max_steps=steps, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(Batches(), batch_size=None))


def main():
    torch.set_num_threads(1)
    trace_step = lambda _: contextlib.nullcontext()  # noqa: E731
    if sys.argv[5:] == ["traceml"]:
        import traceml_ai as traceml
        traceml.init(mode="auto")
        trace_step = traceml.trace_step
    planted.plan.update(where=where, s=ms / 1e3 if late and where in ("data", "forward", "backward", "optimizer") else 0)
    beside = None
    if where == "pinned":
        os.sched_setaffinity(0, {RANK % os.cpu_count()})
        beside = late and subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    try:
        {"accelerate": accelerated, "lightning": lightning}.get(kind, plain)(trace_step)
    finally:
        if beside:
            beside.kill()
    with open(f"came-{RANK}.json", "w", encoding="ascii") as file:
        json.dump({"came_ns": planted.plan["came"], "took_ms": [1e3 * s for s in took]}, file)


main()
