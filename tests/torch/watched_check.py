"""60 jobs of PyTorch with a late rank and 10 without, under `evenload watch`: the rank, the cause, and the milliseconds.

    python tests/torch/watched_check.py EVENLOAD FOLDER [--profile] [WORDS...]       the python is the jobs' one; only jobs with all WORDS in
                                                                        their line; with torch.profiler's traces of twenty steps

A job counts if that rank alone is named, its cause is the planted one and, where it sleeps, the lateness is within 15 %
of when its ranks really came. Of an even job, and of a slow wire, nobody is named. The last line: how many of how many.
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys

STEPS = 60
PARTS = {"data": "data", "forward": "forward", "backward": "backward", "optimizer": "optimizer", "gc": "pause"}
NOTES = {"batch": "as many numbers", "long": "as many numbers", "pinned": "for a processor"}


def jobs():
    for kind in ("ddp", "fsdp", "zero1", "loop"):
        for where in ("data", "forward", "backward", "optimizer"):
            for ms in (20, 50):
                yield kind, 2, where, ms
    for where in ("data", "forward", "backward", "optimizer"):
        yield "ddp", 2, where, 5
        yield "ddp", 4, where, 50
        if where != "data":  # accelerate has rank 0 read all batches
            yield "accelerate", 2, where, 20
        yield "lightning", 2, where, 20
    for kind in ("accumulate", "scaler", "two"):
        yield kind, 2, "backward", 20
    for kind in ("ddp", "fsdp", "zero1", "loop", "accumulate"):
        yield kind, 2, "gc", 20
    for kind in ("ddp", "loop"):
        yield kind, 2, "batch", 8
        yield kind, 2, "pinned", 1
    yield "ddp", 2, "long", 8
    yield "ddp", 2, "wire", 300  # Mbit/s
    for kind in ("ddp", "fsdp", "zero1", "loop", "accumulate", "scaler", "two", "accelerate", "lightning"):
        yield kind, 2, "none", 0
    yield "ddp", 4, "none", 0


def command(kind, world, where, ms):
    tests = os.path.dirname(os.path.abspath(__file__))
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(world), "--master_port", "29417",
             os.path.join(tests, "watched.py"), kind, where, str(ms), str(STEPS)]
    if where != "wire":
        return words
    limit = f"ip link set lo up && tc qdisc add dev lo root tbf rate {ms}mbit burst 256kb latency 2s && exec \"$@\""
    return ["unshare", "-rn", "sh", "-c", limit, "sh", *words]


def really_late(world):
    """In ms, in the mean of the steps but for the first; of several pauses in a step the last one counts."""
    came = [json.load(open(f"came-{rank}.json", encoding="ascii")) for rank in range(world)]
    if came[1]["took_ms"]:
        return sum(came[1]["took_ms"][1:]) / (len(came[1]["took_ms"]) - 1)
    each = len(came[0]["came_ns"]) // STEPS
    late = [of[1] - (sum(of) - of[1]) / (world - 1) for of in zip(*(c["came_ns"][2 * each - 1::each] for c in came))]
    return sum(late) / len(late) / 1e6


def look(folder, where, world):
    """(right, what was said)"""
    training = json.load(open(os.path.join(folder, "results.json"), encoding="utf-8"))["watch"]["training"]
    if training is None or training["late"] is None:
        return False, str(training and training["late_reason"])
    blame, notes = training["late"]["blame"], " ".join(training["notes"])
    named = blame["rank"] if blame["kind"] in ("stays", "at times", "once") or "is late too" in blame["sentence"] else None
    cause = blame["cause"] or {}
    said = f"{named or 'nobody'}, {cause.get('late_ms') or 0:.1f} ms in {cause.get('part')} {notes}"
    if training["trouble"]:
        return False, said + str(training["trouble"])
    if where in ("none", "wire"):
        return named is None, said
    if named != "rank 1":
        return False, said
    if where in NOTES:
        return NOTES[where] in notes, said
    really = really_late(world)
    near = where == "gc" or profile or abs(training["late"]["blame"]["late_ms"] / really - 1) <= 0.15
    return cause["part"] == PARTS[where] and near, said + f"(really {really:.1f})"


evenload, folder, words = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
profile = ["--profile", "wait=20,warmup=2,active=20"] if "--profile" in words else []
words = [word for word in words if word != "--profile"]
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
right = {"late": [0, 0], "even": [0, 0]}
for job in jobs():
    kind, world, where, ms = job
    line = f"{kind:10} {world} {where:9} {ms:3}"
    if not all(word in line.split() for word in words) or (kind in ("accelerate", "lightning") and not importlib.util.find_spec(kind)):
        continue
    if where == "wire" and (not shutil.which("tc") or subprocess.run(["unshare", "-rn", "true"], check=False).returncode):
        continue
    shutil.rmtree("w", ignore_errors=True)
    done = subprocess.run([evenload, "watch", "--quiet", "--no-plot", "--out", "w", *profile, "--", *command(*job)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        ok, said = False, "status " + str(done.returncode) + done.stdout.decode(errors="replace")[-2000:]
    else:
        ok, said = look("w", where, world)
    counts = right["even" if where in ("none", "wire") else "late"]
    counts[0] += ok
    counts[1] += 1
    print("ok  " if ok else "NOT ", line, said, flush=True)
print(f"late: {right['late'][0]} of {right['late'][1]}; even: {right['even'][0]} of {right['even'][1]}")
