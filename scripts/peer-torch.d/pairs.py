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

COLUMNS = ("model", "image", "ranks", "batch", "bucket_view", "pair", "first", "evenload_ms", "torch_ms", "ratio", "torch", "cpu")
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


def evenload(a, model, ranks):
    """The median step in ms, and the parameters' bytes."""
    with tempfile.TemporaryDirectory() as folder:
        words = [a.evenload, "run", "--mode", "ddp" if ranks > 1 else "single", "--devices", str(ranks), "--model", model]
        words += ["--batch-per-device", str(a.batch), "--optimizer", "momentum", "--data", "dummy", "--warmup", str(warmup(model))]
        words += ["--bucket-mb", f"view={a.bucket_view}"] if ranks > 1 else []
        words += ["--model", "dropout=0"] if model == "textcnn" else ["--image", str(a.image)] if is_resnet(model) else []
        words += ["--classes", {"textcnn": "2", "mlp": "10"}.get(model, "1000"), "--steps", str(a.steps), "--min-time", "0", "--control", "none"]
        trial = json.loads(last_line(words + ["--no-record", "--json", "--quiet", "--out", os.path.join(folder, "run")]))
    return trial["step_ms"]["median"], trial["param_bytes"]


def torch_step(a, model, ranks):
    step = os.path.join(os.path.dirname(os.path.abspath(__file__)), "step.py")
    told = json.loads(last_line([a.python, step, model, *map(str, (ranks, a.batch, warmup(model), a.steps, a.image, a.bucket_view))]).splitlines()[-1])
    return told["step_ms"], told["param_bytes"], told["torch"]


def pair(a, model, ranks, number):
    """One row of the file."""
    ours_first = number % 2 == 0
    if ours_first:
        ours = evenload(a, model, ranks)
    theirs = torch_step(a, model, ranks)
    if not ours_first:
        ours = evenload(a, model, ranks)
    if ours[1] != theirs[1]:
        fail(f"{model}: not the same model: {ours[1]} bytes of parameters in evenload, {theirs[1]} in PyTorch")
    first = "evenload" if ours_first else "torch"
    return (model, a.image if is_resnet(model) else "", ranks, a.batch, a.bucket_view, number, first, round(ours[0], 4), round(theirs[0], 4), round(ours[0] / theirs[0], 4), theirs[2], cpu_model())


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown"


def report(rows):
    ratios = sorted(row[RATIO] for row in rows)
    ours, theirs = (statistics.median(row[column] for row in rows) for column in (OURS, THEIRS))
    print(f"{rows[0][0]:8} {rows[0][COLUMNS.index('ranks')]:>5} {statistics.median(ratios):8.2f}   ({ratios[0]:.2f} to {ratios[-1]:.2f})   {ours:9.2f} {theirs:9.2f}", flush=True)


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
    for name in ("evenload", "python", "out", "models", "ranks", "bucket-view"):
        p.add_argument("--" + name, required=True)
    for name in ("pairs", "steps", "batch", "image"):
        p.add_argument("--" + name, type=positive, required=True)
    a = p.parse_args()
    rows = []
    print(f"{'model':8} {'ranks':>5} {'evenload / PyTorch':>27}   {'evenload':>9} {'PyTorch':>9}  (median pair, lowest and highest; ms per step)")
    for model in a.models.split(","):
        for ranks in map(positive, a.ranks.split(",")):
            pairs = [pair(a, model, ranks, number) for number in range(a.pairs + 1)][1:]
            report(pairs)
            rows += pairs
    write(a.out, rows)


if __name__ == "__main__":
    main()
