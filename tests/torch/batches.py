"""The batches of evenload, from its documented rules alone (runtime/base/rng.h, docs/data.md): words by number, bags of words, who gets which
sample of a step. Written anew, so that a test compares two programs and not one with itself."""
import random

import torch

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
SHUFFLE = 3  # el_rng_use


def philox(seed, use, number, a, b):
    """Four words of 32 bits for counter (a, b)."""
    c = [a & MASK32, a >> 32 & MASK32, b & MASK32, b >> 32 & MASK32]
    mixed = seed * 0x9E3779B97F4A7C15 & MASK64 ^ (use << 32 | number) * 0xD6E8FEB86659FD93 & MASK64
    k0, k1 = mixed & MASK32, mixed >> 32
    for _ in range(10):
        m0, m1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [m1 >> 32 ^ c[1] ^ k0, m1 & MASK32, m0 >> 32 ^ c[3] ^ k1, m0 & MASK32]
        k0, k1 = k0 + 0x9E3779B9 & MASK32, k1 + 0xBB67AE85 & MASK32
    return c


def permutation(length, seed, epoch):
    order = list(range(length))
    for i in range(length - 1, 0, -1):
        words = philox(seed, SHUFFLE, epoch, i, 0)
        other = (words[0] << 32 | words[1]) % (i + 1)
        order[i], order[other] = order[other], order[i]
    return order


def rows_of(step, length, batch, seed):
    """Samples of the step's global batch, in order; rank r of n has every n-th of them from r on."""
    steps = length // batch
    first = step % steps * batch
    return permutation(length, seed, step // steps)[first : first + batch]


class Sentences:
    """Random sentences: the file, and what the program makes of it."""

    def __init__(self, samples, classes, words, longest, seed):
        draw = random.Random(seed)
        text = [[f"w{draw.randrange(words)}" for _ in range(draw.randint(5, longest))] for _ in range(samples)]
        self.labels = torch.tensor([i % classes for i in range(samples)])
        self.lines = [f"{label} {' '.join(line)}\n" for label, line in zip(self.labels.tolist(), text)]
        self.number = {}
        for line in text:
            for word in line:
                self.number.setdefault(word, len(self.number) + 2)  # 0 is padding, 1 the unknown word
        self.tokens = [[self.number[word] for word in line] for line in text]
        self.longest = max(map(len, text))

    def write(self, path):
        with open(path, "w") as file:
            file.writelines(self.lines)

    def __len__(self):
        return len(self.tokens)

    def ids(self):  # [samples, longest]
        return torch.tensor([line + [0] * (self.longest - len(line)) for line in self.tokens])

    def bags(self, features):  # [samples, features], each of unit length
        rows = torch.zeros(len(self), features, dtype=torch.float64)
        for i, line in enumerate(self.tokens):
            for token in line:
                rows[i, bin_of(token, features)] += 1
        return rows / rows.square().sum(1, keepdim=True).sqrt()


def bin_of(token, features):
    x = token * 0x9E3779B97F4A7C15 & MASK64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    return (x ^ x >> 31) % features
