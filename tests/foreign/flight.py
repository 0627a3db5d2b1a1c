"""Writes made dumps of PyTorch's flight recorder, in the form of NCCL's recorder: flight.py KIND FOLDER [RANKS [FORM]].

FORM: pickle (nccl_trace_rank_N), json (a .json each) or old (PyTorch 2.4: version 2.2, no thread, no is_p2p)."""
import json, os, pickle, sys

kind, folder = sys.argv[1:3]
n = int(sys.argv[3]) if len(sys.argv) > 3 else 8
form = sys.argv[4] if len(sys.argv) > 4 else "pickle"
T0 = 1795864491_000000000
PROGRAM = "/home/user/torch/train.py"


class Rank:
    def __init__(self, rank):
        self.rank, self.entries, self.seq, self.p2p = rank, [], {}, {}
        half = list(range(rank // 4 * 4, rank // 4 * 4 + 4))
        self.groups = {"0": ("default_pg", list(range(n))), "1": ("mesh_shard", half)}

    def call(self, op, size=1000, group="0", t=0.0, state="completed", type="Float", line=42, message=False, out=None):
        count = self.p2p if message else self.seq
        count[group] = count.get(group, 0) + 1
        done = state == "completed"
        frames = [{"name": "all_reduce", "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 4174},
                  {"name": "step", "filename": PROGRAM, "line": line}, {"name": "<module>", "filename": PROGRAM, "line": 99}]
        entry = {"frames": frames, "record_id": len(self.entries), "pg_id": int(group), "process_group": (group, self.groups[group][0]),
                 "collective_seq_id": self.seq.get(group, 0), "p2p_seq_id": self.p2p.get(group, 0), "op_id": len(self.entries) + 1,
                 "profiling_name": "nccl:" + op, "time_created_ns": T0 + int(t * 1e9), "input_sizes": [[size]], "input_dtypes": [type],
                 "output_sizes": [[out or size]], "output_dtypes": [type], "state": state, "retired": done, "timeout_ms": 600000,
                 "time_discovered_started_ns": None if state == "scheduled" else T0 + int(t * 1e9) + 1000,
                 "time_discovered_completed_ns": T0 + int(t * 1e9) + 2000 if done else None}
        if form != "old": entry.update(is_p2p=message, thread_id="1", thread_name="python3")
        self.entries.append(entry)

    def write(self):
        config = {g: {"name": g, "desc": d, "ranks": str(r)} for g, (d, r) in self.groups.items()}
        dump = {"version": "2.2" if form == "old" else "2.10", "pg_config": config, "pg_status": {}, "entries": self.entries}
        os.makedirs(folder, exist_ok=True)
        name = f"{folder}/nccl_trace_rank_{self.rank}"
        if form == "json":
            for e in self.entries: del e["frames"]
            json.dump(dump, open(name + ".json", "w"), sort_keys=True)
        else:
            pickle.dump(dump, open(name, "wb"), 2)


for r in range(n):
    rank, odd = Rank(r), r == 3
    for i in range(6):
        late = 0.02 if kind == "late" and r == 5 else 0.0001 * ((r + i) % n) / n
        rank.call("all_reduce", t=0.1 * i + late)
        rank.call("_reduce_scatter_base", 4000, "1", t=0.1 * i + 0.05 + late, out=1000)
    if kind == "chain" and r < 3: rank.call("_allgather_base", 8, "1", t=0.7, state="started")
    elif kind == "chain" and not odd: rank.call("all_reduce", t=0.7, state="started")
    elif kind in ("not-entered", "dead") and not odd: rank.call("all_reduce", t=0.7, state="started", line=50)
    elif kind == "size": rank.call("all_reduce", 999 if odd else 1000, t=0.7, state="started", line=60 if odd else 50)
    elif kind == "shape": rank.call("all_to_all", 100 + r, t=0.7, state="started")
    elif kind == "not-begun": rank.call("all_reduce", t=0.7, state="scheduled" if odd else "started")
    elif kind == "transport": rank.call("all_reduce", t=0.7, state="started")
    elif kind == "order":
        for group in ("1", "0") if odd else ("0", "1"): rank.call("all_reduce", group=group, t=0.7, state="started" if group == ("1" if odd else "0") else "scheduled")
    elif kind == "send" and r == 0: rank.call("send 0->1", t=0.7, state="started", message=True)
    elif kind == "send" and r > 1: rank.call("all_reduce", t=0.7, state="started")
    elif kind == "ring":
        rank.entries = rank.entries[8:] if odd else rank.entries  # what is older is no longer in the buffer
        rank.call("all_reduce", t=0.7)
    if not (kind == "dead" and odd): rank.write()
