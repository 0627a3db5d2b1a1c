#!/usr/bin/env python3
"""What ranks count in an evaluation as PyTorch's scripts do it: DataLoader and DistributedSampler over the test set, with the weights that the
program has saved; by rank, and the sums as after an all-reduce.

usage: evaluation.py EVENLOAD FOLDER      prints a line a world; exit status 1 where a rank has counted something else
"""
import json
import os
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import weights
from batches import Sentences

FEATURES, HIDDEN, CLASSES, SEED = 32, (24, 16), 3, 7
WORLDS = ((23, 2), (23, 3), (23, 4), (24, 4), (2, 3), (1, 4))  # test samples, ranks


def ours(program, folder, data, n, ranks):
    """The record, and the weights that were evaluated."""
    with open(os.path.join(folder, "test.txt"), "w") as file:
        file.writelines(data.lines[:n])
    command = [program, "run", "--mode", "ddp", "--devices", str(ranks), "--procs", "1", "--model", "mlp", "--features", str(FEATURES)]
    command += ["--hidden", ",".join(map(str, HIDDEN)), "--data", "data.txt", "--test", "test.txt", "--batch", "12", "--epochs", "2"]
    command += ["--precision", "f64", "--lr", "0.5", "--seed", str(SEED), "--epochs", "eval=padded", "--save", f"{n}-{ranks}.st"]
    command += ["--out", f"eval-{n}-{ranks}", "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout), weights.load(os.path.join(folder, f"{n}-{ranks}.st"))


def theirs(model, test, ranks, rank):
    """As a script's evaluation on one rank."""
    sampler = DistributedSampler(test, num_replicas=ranks, rank=rank, shuffle=False)
    correct = counted = loss = 0
    with torch.no_grad():
        for x, labels in DataLoader(test, batch_size=5, sampler=sampler):
            outputs = model(x)
            correct += (outputs.argmax(1) == labels).sum().item()
            counted += len(labels)
            loss += F.cross_entropy(outputs, labels, reduction="sum").item()
    return correct, counted, loss / counted


def main(program, folder):
    data = Sentences(64, CLASSES, 60, 12, SEED)
    data.write(os.path.join(folder, "data.txt"))
    failed = False
    for n, ranks in WORLDS:
        record, state = ours(program, folder, data, n, ranks)
        model = weights.MLP(FEATURES, HIDDEN, CLASSES).double()
        model.load_state_dict(state)
        test = TensorDataset(data.bags(FEATURES)[:n], data.labels[:n])
        wanted = [theirs(model, test, ranks, rank) for rank in range(ranks)]
        got = [(r["correct"], r["counted"], r["loss"]) for r in record["evaluation"]["ranks"]]
        accuracy = sum(w[0] for w in wanted) / sum(w[1] for w in wanted)
        same = len(got) == ranks and all(g[:2] == w[:2] and abs(g[2] / w[2] - 1) < 1e-12 for g, w in zip(got, wanted))
        same = same and record["accuracy"] == accuracy
        print(f"{n} samples, {ranks} ranks: accuracy {record['accuracy']:.6f}, PyTorch {accuracy:.6f}, right by rank {[g[0] for g in got]}"
              + ("" if same else f" of {got}, PyTorch {wanted}"))
        failed = failed or not same
    return failed


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2]))
