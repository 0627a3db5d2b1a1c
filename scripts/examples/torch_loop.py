#!/usr/bin/env python3
"""A PyTorch training loop that prints its step time, on a GPU or on CPUs: what `evenload regress` launches.

    evenload regress --ab 'python old.py' 'python new.py'
    evenload regress --ab 'python torch_loop.py' 'python torch_loop.py --slow 10'    (10 % of each step is waited on top)
"""
import argparse, time
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--steps', type=int, default=200, help='measured steps, after 20 to warm up')
parser.add_argument('--slow', type=float, default=0, help='per cent of its own time that each step takes longer')
asked = parser.parse_args()

torch.set_num_threads(1)
device = 'cuda' if torch.cuda.is_available() else 'cpu'
sync = torch.cuda.synchronize if device == 'cuda' else lambda: None
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data, labels = torch.randn(64, 512, device=device), torch.randint(0, 10, (64,), device=device)
times = []
for _ in range(20 + asked.steps):
    sync()
    begin = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(data), labels).backward()
    optimizer.step()
    sync()
    end = begin + (time.perf_counter() - begin) * (1 + asked.slow / 100)
    while time.perf_counter() < end:
        pass
    times.append(1e3 * (time.perf_counter() - begin))
# The tenth of the steps that neighbours disturbed least.
print('step_p10_ms', sorted(times[20:])[asked.steps // 10], 'ms')
