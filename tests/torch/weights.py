"""Models with evenload's names of parameters, as PyTorch modules, and weights in files: what docs/weights.md shows.

The reader and the writer of safetensors are written here from the format's description, so that a test needs nothing but PyTorch; where the
package `safetensors` is installed, parity.py holds all three together.
"""
import json
import struct

import torch
import torch.nn.functional as F
from torch import nn

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}


def save(state, path):
    header, blocks, at = {}, [], 0
    for name, tensor in state.items():
        block = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        kind = next(k for k, dtype in TYPES.items() if dtype == tensor.dtype)
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(block)]}
        blocks.append(block)
        at += len(block)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    state = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            state[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return state


class TextCNN(nn.Module):
    def __init__(self, vocab, embed, filters, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed)
        self.conv3, self.conv4, self.conv5 = (nn.Conv1d(embed, filters, window) for window in (3, 4, 5))
        self.fc = nn.Linear(3 * filters, classes)

    def forward(self, ids):  # [batch, words]
        x = self.embedding(ids).transpose(1, 2)
        return self.fc(torch.cat([F.relu(conv(x)).amax(2) for conv in (self.conv3, self.conv4, self.conv5)], 1))


class MLP(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        widths = [features, *hidden]
        self.n_hidden = len(hidden)
        for i in range(self.n_hidden):
            self.add_module(f"hidden{i + 1}", nn.Linear(widths[i], widths[i + 1]))
        self.out = nn.Linear(widths[-1], classes)

    def forward(self, x):
        for i in range(self.n_hidden):
            x = F.relu(getattr(self, f"hidden{i + 1}")(x))
        return self.out(x)


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.net2 = nn.Linear(10, 10), nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(F.relu(self.net1(x)))


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 10)

    def forward(self, x):
        return self.linear(x)
