"""What `evenload trace-stats FOLDER --json` says of each case of late.py, against when its ranks really came.

    python3 tests/torch/late_check.py EVENLOAD FOLDER/RANK-MS...
"""
import json
import subprocess
import sys

bad = 0
for folder in sys.argv[2:]:
    late, ms = (int(n) for n in folder.rstrip("/").rsplit("/", 1)[1].split("-"))
    job = json.loads(subprocess.run([sys.argv[1], "trace-stats", folder, "--json"], check=True, stdout=subprocess.PIPE).stdout)["job"]
    came = [[int(line) for line in open(f"{folder}/came-{rank}.txt", encoding="ascii")] for rank in range(len(job["ranks"]))]
    others = [times for rank, times in enumerate(came) if rank != late]
    really = sum(own - sum(o[i] for o in others) / len(others) for i, own in enumerate(came[late])) / len(came[late]) / 1e6
    found, most = job["ranks"][late]["late_ms"], max(job["ranks"], key=lambda r: r["caused_ms"])["rank"]
    ok = abs(found / really - 1) <= 0.1 and most == f"rank {late}" and f"rank {late} " in job["blame"]["sentence"]
    bad += not ok
    print(f"{'ok' if ok else 'NOT'}  {folder}: {ms} planted, {really:.2f} ms really, {found:.2f} found: {job['blame']['sentence']}")
sys.exit(bad > 0)
