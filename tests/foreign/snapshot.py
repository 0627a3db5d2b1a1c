#!/usr/bin/env python3
"""Writes memory snapshots as torch.cuda.memory._dump_snapshot does, by the definition of their form (the dictionaries of
torch/csrc/cuda/memory_snapshot.cpp, pickled): no GPU is here to make one.

usage: snapshot.py dp FILE [PROTOCOL]       DataParallel: a file of one process, two devices
       snapshot.py rank FILE N [PROTOCOL]   ddp with a leak on rank 0: cuda:N alone holds something
       snapshot.py oom FILE FREE            a device that fails to give 90 MiB, with FREE MiB free in each of two pieces
       snapshot.py segments FILE            the list of segments alone, as torch.cuda.memory_snapshot gives it
       snapshot.py traced FILE N            N events of a trace, for time and memory

The answers are known: tests/unit/test_snapshot.c and tests/cli/imbalance.bats have them. MiB below."""
import pickle, sys

MIB = 1 << 20
OWN = {"filename": "/home/me/train.py", "line": 42, "name": "step"}
TORCH = "/usr/lib/python3/site-packages/torch/"


def frames(*where):
    """Innermost first; frames that are equal are one object, as torch makes them."""
    return [dict(filename=TORCH + f if not f.startswith("/") else f, line=n, name=name) for f, n, name in where] + [OWN]


ADAM = frames(("optim/adam.py", 120, "_init_group"), ("optim/optimizer.py", 400, "step"))
GATHER = frames(("nn/parallel/comm.py", 230, "gather"), ("nn/parallel/scatter_gather.py", 70, "gather"))
FORWARD = frames(("nn/modules/linear.py", 116, "forward"), ("nn/modules/module.py", 1511, "_call_impl"))
MODEL = frames(("nn/modules/module.py", 820, "_apply"), ("nn/modules/module.py", 1160, "to"))
MINE = [{"filename": "/home/me/metrics.py", "line": 7, "name": "keep"}, OWN]


class Device:
    """An allocator without reuse: each block has an address of its own."""

    def __init__(self, number):
        self.number, self.next, self.live, self.trace, self.us = number, (number + 1) << 40, {}, [], 0

    def event(self, action, address, size, stack):
        self.us += 10
        self.trace.append(dict(action=action, addr=address, size=size, stream=0, time_us=self.us, frames=stack,
                               compile_context="N/A", user_metadata=""))

    def alloc(self, mib, stack, seen=True):
        size, address = int(mib * MIB), self.next
        self.next += (size + 511) // 512 * 512
        self.live[address] = (size, stack)
        if seen:
            self.event("alloc", address, size, stack)
        return address

    def free(self, address):
        size, _ = self.live.pop(address)
        self.event("free_requested", address, size, [OWN])
        self.event("free_completed", address, size, [OWN])

    def segment(self):
        blocks = [dict(address=a, size=(s + 511) // 512 * 512, requested_size=s, state="active_allocated", frames=f)
                  for a, (s, f) in sorted(self.live.items())]
        used = sum(b["size"] for b in blocks)
        blocks.append(dict(address=self.next, size=4 * MIB, requested_size=0, state="inactive", frames=[]))
        return dict(device=self.number, address=(self.number + 1) << 40, total_size=used + 4 * MIB, allocated_size=used,
                    active_size=used, requested_size=used, stream=0, segment_type="large", segment_pool_id=(0, 0),
                    is_expandable=False, frames=[], blocks=blocks)


def train(device, *extra):
    """20 of model that no trace saw, 30 of activations that go, then what is extra; 8 more that go after the peak."""
    device.alloc(20, MODEL, seen=False)
    activations = device.alloc(30, FORWARD)
    kept = [device.alloc(mib, stack) for mib, stack in extra]
    device.free(activations)
    device.free(device.alloc(8, []))
    return kept


def snapshot(devices, protocol, path, n_traces=2):
    traces = [[] for _ in range(n_traces)]
    for device in devices:
        traces[device.number] = device.trace
    document = dict(segments=[d.segment() for d in devices if d.live], device_traces=traces,
                    allocator_settings=dict(PYTORCH_CUDA_ALLOC_CONF="", max_split_size=-1, expandable_segments=False,
                                            garbage_collection_threshold=0.0), external_annotations=[])
    with open(path, "wb") as file:
        pickle.dump(document, file, protocol=protocol)


def main(what, path, *rest):
    protocol = int(rest[-1]) if len(rest) > (what == "rank") else 4
    if what == "dp":
        main_device, other = Device(0), Device(1)
        train(main_device, (40, ADAM), (12, GATHER))
        train(other)
        return snapshot([main_device, other], protocol, path)
    if what in ("oom", "segments"):
        device = Device(0)
        device.alloc(300, FORWARD)
        temporary = device.alloc(50, MINE)
        if what == "oom":
            device.event("oom", 0, 90 * MIB, frames(("nn/modules/linear.py", 116, "forward")))
            device.trace[-1]["device_free"] = device.trace[-1].pop("addr") + 10 * MIB
        device.free(temporary) # after it failed
        segment = device.segment()
        segment["blocks"][-1:] = [dict(address=device.next + i, size=int(rest[0] if rest else 20) * MIB, requested_size=0,
                                       state="inactive", frames=[]) for i in range(2)]
        document = [segment] if what == "segments" else dict(segments=[segment], device_traces=[device.trace])
        with open(path, "wb") as file:
            return pickle.dump(document, file, protocol=4)
    device = Device(0 if what == "traced" else int(rest[0]))
    if what == "rank":
        train(device, (40, ADAM), *([(16, MINE)] if device.number == 0 else []))
        return snapshot([device], protocol, path)
    for i in range(int(rest[0])):
        block = device.alloc(1, (FORWARD, ADAM, MINE)[i % 3])
        if i % 7:
            device.free(block)
    snapshot([device], 4, path)


main(*sys.argv[1:])
