#!/usr/bin/env python3
"""A record of PyTorch's training in evenload's form, for scripts/peer-torch --record: what `evenload explain A B` and `compare --peer` take.

Model, weights and batches are evenload's: it draws the weights by its seed and saves them, and says by its own record what was resolved; train.py
trains on them in fresh processes. So the losses of both are the same to rounding, and times stand against times of the same work.
"""
import argparse
import hashlib
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

SEED, LR, MOMENTUM, SAMPLES, WORDS, LONGEST, WARMUP = 1, 0.01, 0.9, 1024, 20000, 64, 5
CLASSES = {"textcnn": 2, "mlp": 10, "resnet18": 1000, "resnet50": 1000}
VERDICT = "PyTorch's own times: nothing of them was checked but the losses, which can be compared"


def fail(text):
    sys.exit(print("peer-torch: " + text, file=sys.stderr) or 2)


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"failed with status {done.returncode}: {' '.join(words)}\n{done.stderr.strip()[-800:]}")
    return json.loads(done.stdout.strip().splitlines()[-1] if words[0] != ARGS.evenload else done.stdout)


def write_sentences(path, shape):
    """As tests/torch/batches.py draws them, whose rules train.py reads them by."""
    samples, classes, words, longest, seed = shape
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for i, line in enumerate([[f"w{draw.randrange(words)}" for _ in range(draw.randint(5, longest))] for _ in range(samples)]):
            file.write(f"{i % classes} {' '.join(line)}\n")


def ours(data):
    """The options that make evenload do the same."""
    mode, device = ARGS.mode, "cuda:" if ARGS.device == "cuda" else ""
    words = ["run", "--mode", mode, "--devices", f"{device}{ARGS.ranks}", "--model", ARGS.model, "--batch-per-device", str(ARGS.batch), "--optimizer", "momentum"]
    words += ["--data", data, "--seed", str(SEED), "--lr", str(LR), "--optimizer", f"momentum={MOMENTUM}", "--classes", str(CLASSES[ARGS.model])]
    words += ["--model", "dropout=0"] if ARGS.model == "textcnn" else ["--image", str(ARGS.image)] if ARGS.model.startswith("resnet") else []
    return words + ([] if ARGS.model != "textcnn" else ["--model", "max-norm=0"])


def interval(values):
    """95 %, by Student's t on logarithms, as evenload's over launches; None under five."""
    quantiles = {5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
    if len(values) < 5:
        return None
    logs, middle = [v / statistics.geometric_mean(values) for v in values], statistics.geometric_mean(values)
    half = quantiles.get(len(values), 2.262) * statistics.stdev(logs) / len(values) ** 0.5
    return [middle * (1 - half), middle * (1 + half)]


def trial_of(resolved, launches, data):
    """evenload's resolved trial, with what PyTorch measured in place of its own."""
    kept = ("model", "devices", "device_names", "dtype", "global_batch", "batch_per_device", "seed", "optimizer", "config", "param_bytes", "trained_bytes")
    trial, batch = {key: resolved[key] for key in kept}, resolved["global_batch"]
    repeats = []
    for i, told in enumerate(launches):
        steps = told["step_ms"][WARMUP:]
        rate = 1e3 * batch / statistics.mean(steps)
        repeats.append({"repeat": i, "order": i, "status": "ok", "reason": None, "samples_per_s": rate, "step_ms": steps, "recorded_step_ms": [],
                        "warmup_step_ms": told["step_ms"][:WARMUP], "host_ms": told["host_ms"], "system": {}})  # fmt: skip
    rates, steps = [r["samples_per_s"] for r in repeats], [r["step_ms"] for r in repeats]
    middle = statistics.geometric_mean
    peaks = launches[0]["peak_bytes"] or [None] * ARGS.ranks
    ddp = ARGS.mode == "ddp"
    trial |= {
        "id": hashlib.sha256(json.dumps([sys.argv[1:], launches[0]["torch"]]).encode()).hexdigest()[:16],
        "mode": "torch-" + ARGS.mode, "procs": ARGS.ranks if ddp else 1, "order": 0,
        "command": f"scripts/peer-torch --record {ARGS.record} --mode {ARGS.mode} --models {ARGS.model} --ranks {ARGS.ranks} --batch {ARGS.batch}",
        "status": "ok", "reason": None, "verdict": "unchecked", "warnings": [VERDICT], "warning_rules": ["torch"], "simulated": False,
        "communicator": None if not ddp else "nccl" if ARGS.device == "cuda" else "gloo",
        "throughput": {"samples_per_s": middle(rates), "ci95": interval(rates), "ci_reason": None if len(rates) > 4 else "fewer than 5 repeats", "wall_samples_per_s": None},
        "step_ms": {"median": middle(map(statistics.median, steps)), "mean": middle(map(statistics.mean, steps)),
                    "p95": middle(sorted(s)[min(len(s) - 1, -(-95 * len(s) // 100) - 1)] for s in steps)},
        "slowest_member": None, "phases_ms": {}, "idle_ms": None, "comm": {}, "breakdown": None, "collectives": [], "imbalance": None,
        "per_device": [{"device": d, "memory": {"peak_bytes": p}} for d, p in zip(resolved["device_names"], peaks)],
        "processes": [], "loss": launches[0]["loss"], "epochs": [], "accuracy": None, "flops_per_step": None, "repeats": repeats,
    }  # fmt: skip
    trial["config"] |= {"warmup": WARMUP, "steps": ARGS.steps, "data": data}
    return trial


def environment(version):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"framework": "PyTorch " + version, "python": platform.python_version(), "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "hostname": platform.node(), "kernel": platform.release(), "machine": platform.machine(), "cpu_model": names[0] if names else None,
            "cores_online": os.cpu_count(), "warnings": []}  # fmt: skip


def measure():
    os.makedirs(ARGS.record, exist_ok=True)
    data, sentences = "dummy", None
    if not ARGS.model.startswith("resnet"):
        data, sentences = os.path.join(ARGS.record, "data.txt"), (SAMPLES, CLASSES[ARGS.model], WORDS, LONGEST, SEED)
        write_sentences(data, sentences)
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "weights.safetensors")
        quick = ["--warmup", "0", "--steps", "1", "--min-time", "0", "--control", "none", "--json", "--quiet", "--out", os.path.join(folder, "run")]
        words = ours(data)
        words[words.index("--lr") + 1] = "0"
        resolved = run([ARGS.evenload, *words, *quick, "--save", weights])
        resolved["config"]["lr"] = LR
        job = {"mode": ARGS.mode, "device": ARGS.device, "ranks": ARGS.ranks, "model": ARGS.model, "sizes": resolved["config"]["model_sizes"], "weights": weights,
               "sentences": sentences, "seed": SEED, "global_batch": resolved["global_batch"], "warmup": WARMUP, "steps": ARGS.steps, "lr": LR, "momentum": MOMENTUM}  # fmt: skip
        launches = []
        for i in range(ARGS.launches):
            path = os.path.join(folder, f"job-{i}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(job | {"meeting": os.path.join(folder, f"meeting-{i}")}, file)
            launches.append(run([ARGS.python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py"), path]))
    if launches[0]["param_bytes"] != resolved["param_bytes"]:
        fail(f"not the same model: {resolved['param_bytes']} bytes of parameters in evenload, {launches[0]['param_bytes']} in PyTorch")
    return {"schema": 2, "environment": environment(launches[0]["torch"]), "trials": [trial_of(resolved, launches, data)]}, data


def main():
    document, data = measure()
    path = os.path.join(ARGS.record, "results.json")
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(path + ".tmp", path)
    trial = document["trials"][0]
    print(f"{trial['mode']}: {trial['step_ms']['mean']:.2f} ms per step, of it {statistics.mean(r['host_ms'] for r in trial['repeats']):.2f} ms in which no op runs; {path}")
    print(f"The same in evenload, and where the difference lies:\n  evenload {' '.join(ours(data))} --repeats {ARGS.launches} --out results/ours")
    print(f"  evenload explain results/ours {ARGS.record}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    for name in ("evenload", "python", "record", "mode", "device", "model"):
        p.add_argument("--" + name, required=True)
    for name in ("ranks", "batch", "image", "steps", "launches"):
        p.add_argument("--" + name, type=int, required=True)
    ARGS = p.parse_args()
    main()
