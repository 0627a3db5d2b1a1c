"""Jobs of PyTorch (gloo) that hang on purpose, and what `evenload trace-stats` makes of their flight recorders' dumps.

    python hangs.py EVENLOAD FOLDER          all of them; exit status 1: a cause was not found
    python hangs.py --rank KIND FOLDER       one rank of one (environment: RANK, WORLD_SIZE, WHO, FORM)
"""
import json, os, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

S = 4.0  # until a rank writes its dump
# kind, ranks, the rank that causes it, cause.kind, cause.ranks (None: all).
JOBS = [("skips", 3, 1, "other call", [1]), ("skips", 4, 0, "other call", [0]), ("sleeps", 2, 0, "not entered", [0]),
        ("sleeps", 4, 2, "not entered", [2]), ("sleeps", 3, 0, "not entered", [0]), ("type", 3, 1, "other call", [1]),
        ("other", 4, 3, "other call", [3]), ("other", 2, 1, "other call", None), ("dies", 4, 1, "no dump", [1]), ("group", 4, 1, "not entered", [1]),
        ("group", 4, 2, "not entered", [2]), ("order", 3, 1, "other order", None), ("receives", 3, 1, "not entered", [1]),
        ("late", 3, 2, "none", []), ("even", 3, 0, "none", [])]


def be_rank(kind, folder):
    import torch, torch.distributed as dist
    rank, world, who = (int(os.environ[n]) for n in ("RANK", "WORLD_SIZE", "WHO"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=60), init_method="file://" + folder + "/store",
                            rank=rank, world_size=world)

    def end():
        time.sleep(S)
        recorder = torch._C._distributed_c10d
        if os.environ["FORM"] == "json":
            open(f"{folder}/dump_rank_{rank}.json", "wb").write(recorder._dump_fr_trace_json(True, False, "gloo"))
        else:
            open(f"{folder}/dump_rank_{rank}", "wb").write(recorder._dump_fr_trace(True, True, False, "gloo"))
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    x = torch.ones(1000)
    for _ in range(3):
        dist.all_reduce(x)
        dist.broadcast(x, 0)
    try:
        hang(kind, rank, world, who, x, dist, torch)
    except RuntimeError:
        pass  # a peer is gone, or has another size: gloo says so
    time.sleep(100)


def hang(kind, rank, world, who, x, dist, torch):
    if kind == "skips":
        if rank != who: dist.all_reduce(x)
        dist.barrier()
    elif kind == "sleeps":
        if rank == who: time.sleep(100)
        dist.all_reduce(x)
    elif kind == "type":
        dist.all_reduce(torch.ones(1000, dtype=torch.int32 if rank == who else torch.float32))
    elif kind == "other":
        dist.broadcast(x, 0) if rank == who else dist.all_reduce(x)
        dist.all_reduce(x)
    elif kind == "dies":
        if rank == who: os._exit(3)
        dist.all_reduce(x)
    elif kind == "group":
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        for _ in range(3): dist.all_reduce(x, group=groups[rank // 2])
        if rank == who: time.sleep(100)
        dist.all_reduce(x, group=groups[rank // 2])
        dist.all_reduce(x)
    elif kind == "order":
        groups = [dist.new_group(list(range(world))) for _ in range(2)]
        if rank == who: groups.reverse()
        for group in groups: dist.all_reduce(x, group=group)
    elif kind == "receives":
        if rank == who: dist.recv(x, (who + 1) % world)
        dist.all_reduce(x)
    elif kind == "late":
        for _ in range(6):
            if rank == who: time.sleep(0.1)
            dist.all_reduce(x)
    elif kind == "even":
        for _ in range(20): dist.all_reduce(x)


def run(job):
    kind, ranks, who, form, folder = job
    os.makedirs(folder)
    common = dict(os.environ, TORCH_FR_BUFFER_SIZE="2000", OMP_NUM_THREADS="1", WORLD_SIZE=str(ranks), WHO=str(who), FORM=form)
    jobs = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--rank", kind, folder], env=dict(common, RANK=str(r)),
                             stderr=subprocess.DEVNULL) for r in range(ranks)]
    for job in jobs: job.wait()
    if os.path.exists(folder + "/store"): os.remove(folder + "/store")


def main(evenload, folder):
    right = 0
    folders = [f"{folder}/{i}-{job[0]}" for i, job in enumerate(JOBS)]
    with ThreadPoolExecutor(4) as pool: # they sleep most of the time
        list(pool.map(run, [(*job[:3], ["pickle", "json"][i % 2], folders[i]) for i, job in enumerate(JOBS)]))
    for (kind, ranks, who, cause, blamed), where in zip(JOBS, folders):
        told = subprocess.run([evenload, "trace-stats", where, "--json"], capture_output=True, text=True)
        d = json.loads(told.stdout or "{}")
        its = d.get("cause", {})
        late = (d.get("late") or {}).get("rank")
        ok = its.get("kind") == cause and (blamed is None or its["ranks"] == blamed) and \
            (kind not in ("late", "even") or late == (who if kind == "late" else None))
        right += ok
        print("right" if ok else "WRONG", kind, f"{ranks} ranks:", its.get("sentence", told.stderr), f"late: {late}", flush=True)
    print(f"{right} of {len(JOBS)}")
    return 0 if right == len(JOBS) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--rank": be_rank(*sys.argv[2:])
    else: sys.exit(main(*sys.argv[1:]))
