#!/usr/bin/env python3
"""bf16: evenload's --precision bf16 learns as PyTorch's autocast does from the same weights and batches.

Two runs in bf16 do not stay together to the last digit, so the losses' means over windows of WINDOW steps are compared. They may be as far apart as half of
what PyTorch's own runs are from each other that begin with other weights.

usage: precision.py EVENLOAD FOLDER      prints a line a comparison; exit status 1 where one is over its limit
"""
import os
import sys

import torch

import gpt
import parity

STEPS, WINDOW, SEEDS, FIRST = 200, 20, 5, 5e-3


def redrawn(case, seed):
    """Other weights of the same deviations."""
    torch.manual_seed(seed)
    return {n: t.flatten()[torch.randperm(t.numel())].reshape(t.shape) if t.is_floating_point() else t for n, t in case.state.items()}


def train(case, state):
    model = case.module()
    model.load_state_dict({n: t.float() if t.is_floating_point() else t for n, t in state.items()})
    optimizer = torch.optim.Adam(model.parameters(), case.rate("adam"))
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = case.batch_loss(model, case.rows(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def windows(losses):
    return torch.tensor(losses).reshape(-1, WINDOW).mean(1)


def compare(case, program):
    theirs = train(case, case.state)
    others = torch.stack([windows(train(case, redrawn(case, seed))) for seed in range(SEEDS)] + [windows(theirs)])
    spread = (others.max(0).values - others.min(0).values) / 2
    over = 0
    for precision in ("bf16", "bf16-pure"):
        ours = program.run(case, "--precision", precision, "--optimizer", "adam", "--lr", str(case.rate("adam")), dtype="f32", steps=STEPS)
        apart = (windows(ours) - windows(theirs)).abs()
        worst = int((apart / spread).argmax())
        first = abs(ours[0] - theirs[0]) / theirs[0]
        # A parameter that is stored in bf16 does not take small steps: it is told, not judged.
        good = (first <= FIRST and bool((apart <= spread).all())) or precision == "bf16-pure"
        over += not good
        print(
            f"{case.name:8} {precision:9} first loss {first:.1e}; window {worst}: {apart[worst]:.2g} apart, PyTorch's seeds {spread[worst]:.2g}; "
            f"last {windows(ours)[-1]:.4f}, PyTorch {windows(theirs)[-1]:.4f}{'' if good else '  OVER'}",
            flush=True,
        )
    return over


def main():
    program = parity.Program(os.path.abspath(sys.argv[1]), sys.argv[2])
    torch.set_num_threads(1)
    cases = gpt.make_case(), parity.CASES["textcnn"]("textcnn")
    sys.exit(sum(compare(case, program) for case in cases) > 0)


if __name__ == "__main__":
    main()
