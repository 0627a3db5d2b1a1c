#!/usr/bin/env python3
"""Checkpoints go both ways between the program and PyTorch, with the optimizer's state.

  theirs  the program trains 4 steps and writes a checkpoint; a torch module and its optimizer take it and train on
  ours    PyTorch trains 4 steps, write() makes a checkpoint of module and optimizer, and the program goes on from it

Losses of the 4 steps behind it are those of the other side, in f64.

usage: checkpoint.py EVENLOAD FOLDER      prints a line a comparison; exit status 1 where one is over its limit
"""
import json
import os
import shutil
import struct
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file

import parity

AT, STEPS, LIMIT, BLOCK = 4, 8, 1e-9, 1 << 18
BEGIN, PRIME, ALL = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
SLOTS = {"momentum": ["momentum_buffer"], "adam": ["exp_avg", "exp_avg_sq"], "adamw": ["exp_avg", "exp_avg_sq"]}
MAKE = {
    "momentum": lambda p: torch.optim.SGD(p, 0.005, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, 0.001),
    "adamw": lambda p: torch.optim.AdamW(p, 0.001, weight_decay=0.1),
}


def fnv(value, data):
    for byte in data:
        value = (value ^ byte) * PRIME & ALL
    return value


def hash_of_file(path):
    """runtime/base/hash.h: by blocks, in which four lanes take a word in turn."""
    data, whole = open(path, "rb").read(), BEGIN
    for at in range(0, len(data), BLOCK):
        block, lanes = data[at : at + BLOCK], [1, 2, 3, 4]
        for i, (word,) in enumerate(struct.iter_unpack("<Q", block + bytes(-len(block) % 32))):
            value = (lanes[i % 4] ^ word) * PRIME & ALL
            lanes[i % 4] = (value << 29 | value >> 35) & ALL
        whole = fnv(whole, struct.pack("<Q", fnv(BEGIN ^ len(block), struct.pack("<4Q", *lanes))))
    return f"{whole:016x}"


def hash_of_index(index):
    return f"{fnv(BEGIN, json.dumps(index, sort_keys=True, separators=(',', ':')).encode()):016x}"


def write(folder, step, module, states, **of):
    """A checkpoint of a torch module and its optimizer's `state`. `of`: model, optimizer, global_batch, seed, as the program names them."""
    path = os.path.join(folder, f"step-{step}")
    os.makedirs(path)
    arrays = {f"model.{name}": t.contiguous() for name, t in module.state_dict().items()}
    for name, p in module.named_parameters():
        for slot in SLOTS.get(of["optimizer"], []):
            if p in states:
                arrays[f"optimizer.{slot}.{name}"] = states[p][slot].contiguous()
    file = os.path.join(path, "rank-0.safetensors")
    save_file(arrays, file)
    index = {"schema": 2, "mode": "single", "workers": 1, "accumulate": 1, "step": step, "epochs": [], "best_epoch": -1, **of}
    index["files"] = [{"name": "rank-0.safetensors", "bytes": os.path.getsize(file), "hash": hash_of_file(file)}]
    with open(os.path.join(path, "index.json"), "w") as out:
        json.dump({"hash": hash_of_index(index), "checkpoint": index}, out)


def read(folder, step, module, optimizer, name):
    """The other way: module and optimizer go on behind so many steps."""
    state = load_file(os.path.join(folder, f"step-{step}", "rank-0.safetensors"))
    module.load_state_dict({k.removeprefix("model."): t for k, t in state.items() if k.startswith("model.")}, strict=False)
    for key, p in module.named_parameters():
        optimizer.state[p] = {slot: state[f"optimizer.{slot}.{key}"] for slot in SLOTS[name]}
        if name != "momentum":
            optimizer.state[p]["step"] = torch.tensor(float(step))


def train(case, module, optimizer, first, last):
    losses = []
    for step in range(first, last):
        optimizer.zero_grad()
        loss = case.batch_loss(module, case.rows(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(case, program, name, *options):
    shutil.rmtree(program.file("r"), ignore_errors=True)
    rate = "0.005" if name == "momentum" else "0.001"
    command = [program.path, "run", "--model", case.name.split("-")[0], *case.options, "--batch", str(case.batch), "--precision", "f64"]
    command += ["--optimizer", name, "--lr", rate, "--warmup", "0", "--min-time", "0", "--control", "none", "--no-record"]
    command += ["--seed", str(parity.SEED), "--out", "r", "--json", "--quiet", *(("--optimizer", "weight-decay=0.1") if name == "adamw" else ()), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=program.folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}{done.stdout[:2000]}")
    return json.loads(done.stdout)["loss"]


def compare(case, program, name):
    for folder in ("theirs", "ours"):
        shutil.rmtree(program.file(folder), ignore_errors=True)
    parity.weights.save(case.state, program.file("before.safetensors"))
    if "data.txt" in case.options:
        case.data.write(program.file("data.txt"))
    first = ("--load", "before.safetensors", "--steps")
    whole = run(case, program, name, *first, str(STEPS))
    run(case, program, name, *first, str(AT), "--checkpoint", f"theirs,every={AT}")
    module = case.model()
    optimizer = MAKE[name](module.parameters())
    read(program.file("theirs"), AT, module, optimizer, name)
    yield "theirs", parity.farthest(train(case, module, optimizer, AT, STEPS), whole[AT:])
    module = case.model()
    optimizer = MAKE[name](module.parameters())
    train(case, module, optimizer, 0, AT)
    of = {"model": case.name.split("-")[0], "optimizer": name, "global_batch": case.batch, "seed": parity.SEED}
    write(program.file("ours"), AT, module, optimizer.state, **of)
    losses = run(case, program, name, "--steps", str(STEPS), "--resume", "ours")
    yield "ours", parity.farthest(losses, train(case, module, optimizer, AT, STEPS))


def main():
    program, over = parity.Program(*sys.argv[1:3]), 0
    for model in ("textcnn", "mlp", "resnet18-8"):
        for name in SLOTS:
            case = parity.CASES[model](model)
            for way, far in compare(case, program, name):
                over += not far <= LIMIT
                print(f"{model} {name} {way} {far:.1e} {'ok' if far <= LIMIT else 'OVER'}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main()
