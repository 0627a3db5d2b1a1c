"""Plays NCCL's calls of a profiler (interface 5) for a job of PyTorch's: usage: played.py LIBRARY RANKS

In this process, of each rank: 20 all-reduces a size, of 64 KiB by a tree and of 16 MiB by a ring; a kernel takes
20 us + bytes / 100 GB/s, and on all ranks but the last one 500 us longer."""
import ctypes as c
import sys


class Collective(c.Structure):
    _fields_ = [("number", c.c_uint64), ("function", c.c_char_p), ("sent", c.c_void_p), ("received", c.c_void_p), ("count", c.c_size_t),
                ("root", c.c_int), ("datatype", c.c_char_p), ("channels", c.c_uint8), ("warps", c.c_uint8), ("algorithm", c.c_char_p),
                ("protocol", c.c_char_p), ("group", c.c_void_p)]


class Channel(c.Structure):
    _fields_ = [("channel", c.c_uint8), ("gpu_ns", c.c_uint64)]


class Of(c.Union):
    _fields_ = [("collective", Collective), ("channel", Channel)]


class Event(c.Structure):
    _fields_ = [("type", c.c_uint64), ("parent", c.c_void_p), ("rank", c.c_int), ("of", Of)]


class Profiler(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("init", c.CFUNCTYPE(c.c_int, c.POINTER(c.c_void_p), c.c_uint64, c.POINTER(c.c_int), c.c_char_p, c.c_int, c.c_int, c.c_int, c.c_void_p)),
                ("start", c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Event))),
                ("stop", c.CFUNCTYPE(c.c_int, c.c_void_p)),
                ("state", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.POINTER(c.c_uint64))),
                ("finalize", c.CFUNCTYPE(c.c_int, c.c_void_p))]


plugin = Profiler.in_dll(c.CDLL(sys.argv[1]), "ncclProfiler_v5")
ranks = int(sys.argv[2])


def start(context, event):
    handle = c.c_void_p()
    plugin.start(context, handle, event)
    return handle


for rank in range(ranks):
    context, mask, number = c.c_void_p(), c.c_int(), 0
    plugin.init(context, 0xabc, mask, b"default_pg", 1, ranks, rank, None)
    for size, algorithm, protocol in (65536, b"TREE", b"LL"), (16777216, b"RING", b"SIMPLE"):
        for _ in range(20):
            call = start(context, Event(type=2, rank=rank, of=Of(collective=Collective(
                number=number, function=b"AllReduce", count=size // 2, datatype=b"ncclBfloat16", channels=1, algorithm=algorithm, protocol=protocol))))
            plugin.stop(call)
            begin = 1000000 * (number + 1)
            end = begin + 20000 + size // 100 + (0 if rank == ranks - 1 else 500000)
            channel = start(context, Event(type=64, parent=call.value, of=Of(channel=Channel(0, begin))))
            plugin.state(channel, 22, c.c_uint64(end))
            plugin.stop(channel)
            number += 1
    plugin.finalize(context)
