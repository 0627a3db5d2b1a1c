#!/usr/bin/env python3
"""Compares `evenload data --sampler` with torch.utils.data.DistributedSampler: given the same permutation, each rank's samples, for every
length, number of ranks, drop_last and shuffle; after set_epoch, and without it. The permutations themselves differ: the generators do, and
so ours is put in the place of torch.randperm, as it is seen by one rank alone. A line a comparison.

usage: sampler.py EVENLOAD
"""
import json
import subprocess
import sys
from unittest import mock

import torch
from torch.utils.data.distributed import DistributedSampler

CASES = [(10, 3), (10, 4), (12, 3), (2, 5), (1, 3), (53, 8), (101, 2), (7, 7), (1000, 6)]


def ours(length, ranks, drop_last, shuffle):
    flags = ["--drop-last"] * drop_last + ["--no-shuffle"] * (not shuffle)
    command = [sys.argv[1], "data", "--sampler", str(ranks), "--samples", str(length), "--seed", "5", "--json", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def theirs(length, ranks, drop_last, shuffle, permutations, set_epoch):
    lists = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(length), ranks, rank, shuffle, seed=5, drop_last=drop_last)
        if set_epoch:
            sampler.set_epoch(1)
        # torch seeds its generator with seed + epoch: that is the order it asks for.
        drawn = lambda n, generator: torch.tensor(permutations[generator.initial_seed() - 5])
        with mock.patch("torch.randperm", drawn):
            lists.append([int(i) for i in sampler])
    return lists


def main():
    for length, ranks in CASES:
        for drop_last in (False, True):
            for shuffle in (True, False):
                if drop_last and length < ranks:
                    continue  # torch counts below 0 there; ours gives nobody a sample
                alone = ours(length, 1, False, shuffle)["epochs"]
                permutations = [alone[0]["ranks"][0], alone[1]["ranks"][0]]
                mine = ours(length, ranks, drop_last, shuffle)["epochs"]
                for epoch, set_epoch in ((0, False), (1, True), (2, False)):
                    wanted = theirs(length, ranks, drop_last, shuffle, permutations, set_epoch)
                    assert mine[epoch]["ranks"] == wanted, (length, ranks, drop_last, shuffle, epoch, mine[epoch], wanted)
                print(f"{length} samples, {ranks} ranks, drop_last {drop_last}, shuffle {shuffle}: equal")


main()
