"""Models with evenload's names of parameters, as PyTorch modules, and weights in files: what docs/data.md describes.

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


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.downsample = downsample(inputs, width, stride)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = downsample(inputs, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.bn3(self.conv3(y)) + (self.downsample(x) if self.downsample else x))


def downsample(inputs, outputs, stride):
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """torchvision's resnet18 and resnet50, with any width of the first stage."""

    def __init__(self, depth, width, classes):
        super().__init__()
        block, counts = {18: (BasicBlock, (2, 2, 2, 2)), 50: (Bottleneck, (3, 4, 6, 3))}[depth]
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        inputs = width
        for stage, count in enumerate(counts):
            blocks = []
            for i in range(count):
                blocks.append(block(inputs, width << stage, 2 if stage and i == 0 else 1))
                inputs = (width << stage) * block.expansion
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):  # [batch, 3, height, width]
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))
