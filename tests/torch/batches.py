"""The batches of evenload, from its documented rules alone (runtime/base/rng.h, runtime/data/data.h): words by number, bags of words, dummy
images, who gets which sample of a step. Written anew, so that a test compares two programs and not one with itself."""
import functools
import random

import numpy
import torch

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
SHUFFLE, DATA = 3, 4  # el_rng_use


def philox(seed, use, number, counters, second=0):
    """Four words of 32 bits for each counter: [4, n], as integers that can be multiplied."""
    counters = numpy.asarray(counters, dtype=numpy.uint64)
    low, high, half = numpy.uint64(MASK32), numpy.uint64(0), numpy.uint64(32)
    c = [counters & low, counters >> half, numpy.full_like(counters, second), numpy.full_like(counters, high)]
    mixed = seed * 0x9E3779B97F4A7C15 & MASK64 ^ (use << 32 | number) * 0xD6E8FEB86659FD93 & MASK64
    k0, k1 = mixed & MASK32, mixed >> 32
    for _ in range(10):
        m0, m1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [m1 >> half ^ c[1] ^ numpy.uint64(k0), m1 & low, m0 >> half ^ c[3] ^ numpy.uint64(k1), m0 & low]
        k0, k1 = k0 + 0x9E3779B9 & MASK32, k1 + 0xBB67AE85 & MASK32
    return numpy.stack(c)


@functools.cache
def permutation(length, seed, epoch):
    order = list(range(length))
    words = philox(seed, SHUFFLE, epoch, range(length)).tolist()
    for i in range(length - 1, 0, -1):
        other = (words[0][i] << 32 | words[1][i]) % (i + 1)
        order[i], order[other] = order[other], order[i]
    return order


def rows_of(step, length, batch, seed):
    """Samples of the step's global batch, in order; rank r of n has every n-th of them from r on."""
    steps = length // batch
    first = step % steps * batch
    return permutation(length, seed, step // steps)[first : first + batch]


def sorted_rows_of(step, lengths, batch, seed):
    """The same with --lengths bucketed: an epoch's samples by length, in the order of the shuffle where equal, and batches shuffled."""
    steps = len(lengths) // batch
    epoch = step // steps
    order = sorted(permutation(len(lengths), seed, epoch)[: steps * batch], key=lambda i: lengths[i])
    first = permutation(steps, ~seed & MASK64, epoch)[step % steps] * batch
    return order[first : first + batch]


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

    def cut(self, rows):  # [rows, their longest]
        return self.ids()[rows][:, : max(len(self.tokens[i]) for i in rows)]

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


class DummyImages:
    """--data dummy of a model over images: each image begins somewhere in a stretch of noise."""

    NOISE, SAMPLES = 1 << 20, 16384

    def __init__(self, side, classes, seed):
        self.side = side
        words = philox(seed, DATA, 2, range(0, self.NOISE + 3 * side * side, 16))  # [4, n]
        self.noise = words.T.astype("<u4").tobytes()
        words = philox(seed, DATA, 3, range(self.SAMPLES))
        self.starts = (words[0] % numpy.uint64(self.NOISE)).tolist()
        self.labels = torch.from_numpy((words[1] * numpy.uint64(classes) >> numpy.uint64(32)).astype("int64"))

    def __len__(self):
        return self.SAMPLES

    def images(self, rows):  # [rows, 3, side, side]
        n = 3 * self.side * self.side
        pixels = torch.frombuffer(bytearray(b"".join(self.noise[self.starts[i] : self.starts[i] + n] for i in rows)), dtype=torch.uint8)
        tones = pixels.reshape(len(rows), self.side, self.side, 3).double() / 255.0
        tones = (tones - torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64)) / torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64)
        return tones.permute(0, 3, 1, 2)
