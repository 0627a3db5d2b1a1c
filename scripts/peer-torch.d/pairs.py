#!/usr/bin/env python3
"""evenload's step against PyTorch's, launch by launch in turns, for scripts/peer-torch; writes peer-torch.csv and prints ratios.

A pair is a launch of each, next to each other in time; which comes first changes from pair to pair, so that a drift of the machine favours
none. The ratio of a pair is evenload's median step over PyTorch's: below 1 evenload is faster. One more pair comes first and is not kept.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

COLUMNS = ("model", "image", "mode", "ranks", "precision", "batch", "bucket_view", "pair", "first", "evenload_ms", "torch_ms", "ratio", "torch", "cpu")
OURS, THEIRS, RATIO = (COLUMNS.index(name) for name in ("evenload_ms", "torch_ms", "ratio"))


def is_resnet(model):
    return model.startswith("resnet")


def warmup(model):
    return 3 if is_resnet(model) else 10


def fail(text):
    sys.exit(print("peer-torch: " + text, file=sys.stderr) or 2)


def last_line(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"failed with status {done.returncode}: {' '.join(words)}\n{done.stderr[-800:]}")
    return done.stdout


def batch_of(a, model):
    return a.batch or (8 if model == "gpt" else 64)


def evenload(a, model, mode):
    """The median step in ms, and the parameters' bytes."""
    ranks = 1 if mode == "single" else a.ranks
    with tempfile.TemporaryDirectory() as folder:
        words = [a.evenload, "run", "--mode", mode, "--devices", str(ranks), "--model", model, "--optimizer", "adam" if model == "gpt" else "momentum"]
        words += ["--batch", str(batch_of(a, model) * (1 if mode == "tp" else ranks)), "--data", "dummy", "--warmup", str(warmup(model))]
        words += ["--bucket-mb", f"view={a.bucket_view}"] if mode == "ddp" else []
        words += ["--precision", a.precision]
        words += ["--model", "dropout=0"] if model == "textcnn" else ["--image", str(a.image)] if is_resnet(model) else []
        words += [] if model == "gpt" else ["--classes", {"textcnn": "2", "mlp": "10"}.get(model, "1000")]
        words += ["--steps", str(a.steps), "--min-time", "0", "--control", "none"]
        trial = json.loads(last_line(words + ["--no-record", "--json", "--quiet", "--out", os.path.join(folder, "run")]))
    return trial["step_ms"]["median"], trial["param_bytes"]


def torch_step(a, model, mode):
    ranks = 1 if mode == "single" else a.ranks
    step = os.path.join(os.path.dirname(os.path.abspath(__file__)), "step.py")
    told = json.loads(last_line([a.python, step, model, *map(str, (ranks, batch_of(a, model), warmup(model), a.steps, a.image, a.bucket_view, mode, a.precision))]).splitlines()[-1])
    return told["step_ms"], told["param_bytes"], told["torch"]


def pair(a, model, mode, number):
    """One row of the file."""
    ours_first = number % 2 == 0
    if ours_first:
        ours = evenload(a, model, mode)
    theirs = torch_step(a, model, mode)
    if not ours_first:
        ours = evenload(a, model, mode)
    if mode in ("single", "ddp") and ours[1] != theirs[1]:
        fail(f"{model}: not the same model: {ours[1]} bytes of parameters in evenload, {theirs[1]} in PyTorch")
    first = "evenload" if ours_first else "torch"
    of = (model, a.image if is_resnet(model) else "", mode, 1 if mode == "single" else a.ranks, a.precision, batch_of(a, model))
    return (*of, a.bucket_view, number, first, round(ours[0], 4), round(theirs[0], 4), round(ours[0] / theirs[0], 4), theirs[2], cpu_model())


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown"


def report(rows):
    ratios = sorted(row[RATIO] for row in rows)
    ours, theirs = (statistics.median(row[column] for row in rows) for column in (OURS, THEIRS))
    model, mode, ranks = (rows[0][COLUMNS.index(name)] for name in ("model", "mode", "ranks"))
    print(f"{model:8} {mode:6} {ranks:>5} {statistics.median(ratios):8.2f}   ({ratios[0]:.2f} to {ratios[-1]:.2f})   {ours:9.2f} {theirs:9.2f}", flush=True)


def write(folder, rows):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "peer-torch.csv")
    with open(path + ".tmp", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    os.replace(path + ".tmp", path)
    print(path)


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main():
    p = argparse.ArgumentParser()
    for name in ("evenload", "python", "out", "models", "modes", "precision", "bucket-view"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--batch", type=int, required=True)  # 0: the model's
    for name in ("pairs", "steps", "image", "ranks"):
        p.add_argument("--" + name, type=positive, required=True)
    a = p.parse_args()
    rows = []
    print(f"{'model':8} {'mode':6} {'ranks':>5} {'evenload / PyTorch':>27}   {'evenload':>9} {'PyTorch':>9}  (median pair, lowest and highest; ms per step)")
    for model in a.models.split(","):
        for mode in a.modes.split(","):
            pairs = [pair(a, model, mode, number) for number in range(a.pairs + 1)][1:]
            report(pairs)
            rows += pairs
    write(a.out, rows)


if __name__ == "__main__":
    main()
