#!/usr/bin/env python3
"""gpt learns as well as GPT-2 in PyTorch does by the same recipe, in f32: this project's documents, in bits a byte of some that are held out.

For each of SEEDS both have the same initial values (drawn as GPT-2's), order of samples, AdamW and clipped norm, and choose the epoch by
held-out training samples. With values and orders of their own, trainings this short are up to 0.1 bits apart, in one program as between two.

usage: learns.py EVENLOAD FOLDER      prints a line a seed and the means; exit status 1 where a seed's two are further apart than LIMIT
"""
import glob
import json
import math
import os
import subprocess
import sys

import torch
from torch import nn

import gpt
import weights
from batches import rows_of

SEEDS, LIMIT = (1, 2, 3), 0.02
gpt.LAYERS, gpt.WIDTH, gpt.HEADS, gpt.SEQ = 2, 64, 4, 32
BATCH, EPOCHS, LR, DECAY, CLIP, EVERY = 32, 4, 0.001, 0.1, 1.0, 10


def texts():
    """Training and test."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    named = {name: open(name, "rb").read() for name in sorted(glob.glob(f"{root}/docs/*.md") + glob.glob(f"{root}/*.md")) if not name.endswith(".zh.md")}
    test = [name for i, name in enumerate(named) if i % 6 == 5]
    return [b"".join(text for name, text in named.items() if (name in test) == chosen) for chosen in (False, True)]


def samples(text):
    """[n, SEQ + 1]: a sample and the byte behind it."""
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long().unfold(0, gpt.SEQ + 1, gpt.SEQ)


def ours(program, folder, seed):
    sizes = ("--layers", gpt.LAYERS, "--embed", gpt.WIDTH, "--heads", gpt.HEADS, "--seq", gpt.SEQ, "--vocab", gpt.VOCAB)
    recipe = ("--batch", BATCH, "--epochs", EPOCHS, "--optimizer", f"adamw,weight-decay={DECAY}", "--lr", LR, "--clip", CLIP)
    command = [program, "run", "--model", "gpt", *sizes, "--data", "train.txt", "--test", "test.txt", *recipe, "--seed", seed, "--load", "begin.safetensors"]
    command += ["--control", "none", "--out", f"seed-{seed}", "--json", "--quiet"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{command}\nexit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["evaluation"]["bits_per_byte"]


def begin(seed):
    """With GPT-2's initial values."""
    torch.manual_seed(seed)
    model = gpt.GPT()
    for name, p in model.named_parameters():
        if p.ndim == 2:
            nn.init.normal_(p, std=0.02 / (math.sqrt(2 * gpt.LAYERS) if "c_proj" in name else 1))
        elif name.endswith("bias"):
            nn.init.zeros_(p)
    return model


@torch.no_grad()
def evaluate(model, rows):
    """Bits a byte, and how many are right."""
    loss = right = 0
    for part in rows.split(BATCH):
        logits, labels = model(part[:, :-1]), part[:, 1:]
        loss += gpt.loss_of(logits, labels).item() * labels.numel()
        right += (logits.argmax(-1) == labels).sum().item()
    return loss / rows[:, 1:].numel() / math.log(2), right


def theirs(model, train, test, seed, steps):
    chosen = torch.arange(len(train)) % EVERY == EVERY - 1
    held_out, train = train[chosen], train[~chosen]
    optimizer = torch.optim.AdamW(model.parameters(), LR, weight_decay=DECAY)
    best, found = -1, None
    for epoch in range(EPOCHS):
        for step in range(epoch * steps // EPOCHS, (epoch + 1) * steps // EPOCHS):
            rows = train[rows_of(step, len(train), BATCH, seed)]
            optimizer.zero_grad()
            gpt.loss_of(model(rows[:, :-1]), rows[:, 1:]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
        right = evaluate(model, held_out)[1]
        if right > best:
            best, found = right, evaluate(model, test)[0]
    return found


def main(program, folder):
    torch.set_num_threads(1)
    train, test = texts()
    for name, text in ("train.txt", train), ("test.txt", test):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text)
    train, test = samples(train), samples(test)
    steps = EPOCHS * ((len(train) - len(train) // EVERY) // BATCH)
    pairs = []
    for seed in SEEDS:
        model = begin(seed)
        weights.save(model.state_dict(), os.path.join(folder, "begin.safetensors"))
        pairs.append((ours(program, folder, seed), theirs(model, train, test, seed, steps)))
        print(f"seed {seed}: {pairs[-1][0]:.4f} bits a byte, PyTorch {pairs[-1][1]:.4f}", flush=True)
    own, other = (sum(column) / len(SEEDS) for column in zip(*pairs, strict=True))
    apart = max(abs(a - b) for a, b in pairs)
    print(f"mean: {own:.4f} bits a byte, PyTorch {other:.4f}; apart by {apart:.4f} at most (limit {LIMIT})")
    sys.exit(apart > LIMIT)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
