"""What `evenload trace-stats` says of the jobs of planted.py: the rank, how late it is, and what a step gains without it.

    python3 tests/torch/planted_check.py EVENLOAD FOLDER/KIND-WORLD/CASE...

A job with a late rank: it is named, and its lateness is within 10 % of when its ranks really came. An even one: nobody
is named. The gain is held against the same kind's even job, in FOLDER/KIND-WORLD/even, where ranks have a core each;
that only stands in the table.
"""
import glob
import json
import os
import subprocess
import sys


def came(folder):
    files = sorted(glob.glob(os.path.join(folder, "came-*.txt")), key=lambda name: int(name.rsplit("-", 1)[1][:-4]))
    return [json.load(open(name, encoding="ascii")) for name in files]


def step_ms(ranks):
    return sum(r["step_ms"] for r in ranks) / len(ranks)


def named(job):
    blame = job["blame"]
    return blame["rank"] if blame["kind"] in ("stays", "at times", "once") or "is late too" in blame["sentence"] else None


bad, errors = 0, []
for folder in sys.argv[2:]:
    parent, case = os.path.split(folder.rstrip("/"))
    late = int(case.split("-")[0]) if case != "even" else -1
    asked = [] if late < 0 else ["--without", f"rank:{late}"]
    d = json.loads(subprocess.run([sys.argv[1], "trace-stats", folder, "--json", *asked], check=True, stdout=subprocess.PIPE).stdout)
    job, ranks = d["job"], came(folder)
    line = f"{os.path.basename(parent) + '/' + case:24} {str(named(job)):7}"
    if late < 0:
        ok = named(job) is None
        line += f" step {job['step_ms']:6.1f}: {job['blame']['sentence']}"
    else:
        others = [r["came_ns"] for i, r in enumerate(ranks) if i != late]
        own = ranks[late]["came_ns"]
        really = sum(ns - sum(o[i] for o in others) / len(others) for i, ns in enumerate(own)) / len(own) / 1e6
        found, gain = job["ranks"][late]["late_ms"], d["without"][0]["gain_ms"]
        gained = step_ms(ranks) - step_ms(came(os.path.join(parent, "even")))
        if len(ranks) <= os.cpu_count():  # else the others get a core while it sleeps, and the even job is another one
            errors.append(abs(gain / gained - 1))
        ok = named(job) == f"rank {late}" and abs(found / really - 1) <= 0.1
        line += f" really late {really:5.1f} found {found:5.1f}; gain without it: predicted {gain:5.1f} measured {gained:5.1f}"
    bad += not ok
    print("ok  " if ok else "NOT ", line)
errors.sort()
if errors:
    print(f"gain of {len(errors)} jobs, predicted against measured: median error {100 * errors[len(errors) // 2]:.0f} %, 9 of 10 below {100 * errors[len(errors) * 9 // 10]:.0f} %")
sys.exit(bad > 0)
