#!/usr/bin/env python3
"""Prints a line for each of some schedules: as --profile takes it, and the steps among 24 in which torch.profiler.schedule records. Writes
trace.json: what torch.profiler says of two steps of a small model on the CPU.

usage: profiles.py
"""
import torch
from torch.profiler import ProfilerAction, ProfilerActivity, profile, schedule

SCHEDULES = [
    dict(wait=1, warmup=1, active=2, repeat=1),
    dict(wait=1, warmup=1, active=2, repeat=2),
    dict(wait=1, warmup=1, active=2),
    dict(wait=0, warmup=0, active=1, repeat=3),
    dict(wait=2, warmup=1, active=3, repeat=2, skip_first=5),
    dict(wait=5, warmup=2, active=3, skip_first=1),
]
RECORDED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def main():
    for words in SCHEDULES:
        action = schedule(**words)
        print(",".join(f"{k}={v}" for k, v in words.items()), [s for s in range(24) if action(s) in RECORDED], sep="\t")
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    write = lambda p: p.export_chrome_trace("trace.json")
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(**SCHEDULES[0]), on_trace_ready=write) as p:
        for _ in range(6):
            model(torch.randn(32, 64)).sum().backward()
            optimizer.step()
            p.step()


if __name__ == "__main__":
    main()
