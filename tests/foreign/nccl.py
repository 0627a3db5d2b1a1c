#!/usr/bin/env python3
"""Writes what nccl-tests and NCCL Inspector print, by the definition of their forms (src/util.cu of nccl-tests 2.19,
plugins/profiler/inspector of NCCL): no GPU is here to run them.

usage: nccl.py text FILE [old|timestamps]      all_reduce of 8 ranks: 10 us and 200 GB/s of algorithm
       nccl.py json FILE [ranks]               the same as -J; with -I 1: each process's times, rank 2 of 4 is slow
       nccl.py inspector FOLDER [late]         4 ranks' logs, 20 calls a size; late: rank 2 comes 500 us late to 19

Times follow 10 us + bytes / 200 GB/s out of place, 8 us + bytes / 200 GB/s in place; Inspector's 20 us + bytes / 100."""
import json, os, sys

RANKS = 8
SIZES = [8 << i for i in range(0, 25, 2)]
HEAD = ("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}" + "  {:>7}  {:>6}  {:>6}  {:>6}" * 2 + " {}").format


def us(size, in_place):
    return (8 if in_place else 10) + size / 200e3


def width(value, n):
    for form in "{:.2f}", "{:.1f}", "{:.0f}":
        if len(form.format(value)) <= n:
            return form.format(value)
    return "{:.1e}".format(value)


def place(size, in_place):
    t = us(size, in_place)
    algbw = size / t / 1e3
    return t, algbw, algbw * 2 * (RANKS - 1) / RANKS


def text(path, how=""):
    old = how == "old"
    out = []
    if not old:
        out += ["# nccl-tests version 2.19.6 nccl-headers=22808 nccl-library=22808",
                "# Collective test starting: all_reduce_perf"]
    out += ["# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 4(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0",
            "#", "# Using devices"]
    for rank in range(RANKS):
        group = "" if old else " Group  0"
        out.append(f"#  Rank {rank:2d}{group} Pid   4711 on {'node-1':>10s} device {rank:2d} [{0:04x}:{rank + 1:02x}:00] NVIDIA H100 80GB HBM3")
    stamp = "timestamp" if how == "timestamps" else ""
    words = ["time", "algbw", "busbw", "error" if old else "#wrong"]
    out += ["#", HEAD("size", "count", "type", "redop", "" if old else "root", *words, *words, stamp),
            HEAD("(B)", "(elements)", "", "", "", *["(us)", "(GB/s)", "(GB/s)", ""] * 2, "")]
    rates = []
    for size in SIZES:
        line = f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum':>6s}" + ("" if old else f"  {-1:6d}")
        for in_place in False, True:
            t, algbw, busbw = place(size, in_place)
            busbw /= 2 if "all_gather" in path else 1
            rates.append(busbw)
            line += f"  {width(t, 7):>7s}  {width(algbw, 6):>6s}  {width(busbw, 6):>6s}  {'0e+00' if old else '     0'}"
        out.append(line + ("  2026-01-02 03:04:05" if stamp else ""))
    out += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {sum(rates) / len(rates):.6g} ", "#"]
    open(path, "w").write("\n".join(out) + "\n")


def nccl_json(path, how=""):
    n = 4 if how else RANKS
    devices = [dict(rank=r, group=0, pid=100 + r, hostname="node-1", device=r, device_hex="0000:01:00",
                    device_info="NVIDIA H100 80GB HBM3") for r in range(n if how else 1)]
    results = []
    for size in SIZES[-3:] if how else SIZES:
        row = dict(size=size, count=size // 4, type="float", redop="sum", root="    -1")
        for in_place in False, True:
            t, algbw, busbw = place(size, in_place)
            key = "in_place" if in_place else "out_of_place"
            row[key] = dict(time=t, alg_bw=algbw, bus_bw=busbw, nwrong=0.0)
            if how:
                each = [[t * (1.5 if r == 2 else 1) + i for i in range(5)] for r in range(n)]
                row[key + "_per_iter"] = dict(skipped_iterations=0, times_us=[max(c) for c in zip(*each)],
                                              per_process_max_times_us=each)
        row.update(actual_iterations=20, experiment_name="")
        results.append(row)
    document = dict(version=3, start_time="2026-01-02 03:04:05", args=["./build/all_reduce_perf", "-J", "x.json"], env=["A=b"],
                    nccl_version=22808, config=dict(nthreads=1, ngpus=1 if how else RANKS, minimum_bytes=8, maximum_bytes=SIZES[-1],
                                                    step_factor=4, devices=devices), results=results,
                    out_of_bounds=dict(count=0, okay="true"), errors=[])
    json.dump(document, open(path, "w"))


def inspector(folder, how=""):
    os.makedirs(folder, exist_ok=True)
    for rank in range(4):
        with open(f"{folder}/node-1-pid{100 + rank}.log", "w") as file:
            number = 0
            for size in 65536, 1048576, 16777216:
                for call in range(20):
                    number += 1
                    transfer = round(20 + size / 100e3)
                    # the last rank's kernel has no wait in it
                    last = (2 if call else 0) if how else call % 4
                    t = transfer if rank == last else transfer + (500 if how else 3)
                    for coll, key in ("AllReduce", number), ("AllGather", number):
                        perf = dict(coll=coll, coll_sn=key, coll_msg_size_bytes=size, coll_exec_time_us=t,
                                    coll_timing_source="kernel_gpu", coll_algobw_gbs=size / t / 1e3, coll_busbw_gbs=0.0)
                        file.write(json.dumps(dict(header=dict(id="0x7f8c496ae9f661", comm_name="unknown", rank=rank, n_ranks=4, nnodes=1),
                                                   metadata=dict(inspector_output_format_version="v4.0", git_rev="", hostname="node-1",
                                                                 rec_mechanism="nccl_profiler_interface", dump_timestamp_us=1, pid=100 + rank),
                                                   coll_perf=perf)) + "\n")


dict(text=text, json=nccl_json, inspector=inspector)[sys.argv[1]](*sys.argv[2:])
