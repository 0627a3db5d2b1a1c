#!/usr/bin/env python3
"""A part's key figure, in one line, from the records it left. It measures nothing, and judges no speed; its status
is 1 where losses disagree, a trial failed or no GPU was watched.

usage: figures.py WHAT FILE...    WHAT: losses, verify, compare, graph, limits, torch, overhead, loading, watch, published
"""
import json
import os
import sys

MIB = 2**20
# f64: the semantics' gate, over all steps. f32: two steps, so that one follows an update; bf16: the first. Later ones drift apart where a maximum switches.
TOLERANCE = {"f64": 1e-7, "f32": 2e-5, "bf16": 1e-2}
STEPS = {"f64": None, "f32": 2, "bf16": 1}


def load(path):
    with open(path) as file:
        return json.load(file)


def trial_of(path):
    if not os.path.exists(path):
        return {"status": "failed", "reason": "no record"}
    return load(path)["trials"][0]


def losses(*named):
    """TYPE:MODEL:MODE:FILE of the same training; each mode against the run of its type and model on the CPU."""
    runs = {tuple(name.split(":", 3)[:3]): trial_of(name.split(":", 3)[3]) for name in named}
    words, bad = [], []
    for dtype, tolerance in TOLERANCE.items():
        worst, n = 0.0, 0
        for (of, model, mode), run in runs.items():
            truth = runs.get((dtype, model, "cpu"))
            if of != dtype or mode == "cpu" or truth is None:
                continue
            if run["status"] != "ok" or truth["status"] != "ok":
                bad.append(f"{dtype} {model} {mode}: {run['status']} ({run.get('reason') or truth.get('reason')})")
                continue
            off = max((abs(a - b) for a, b in list(zip(run["loss"], truth["loss"]))[: STEPS[dtype]]), default=float("inf"))
            worst, n = max(worst, off), n + 1
            if not off <= tolerance:
                bad.append(f"{dtype} {model} {mode} {off:.1e} > {tolerance:.0e}")
        if n:
            words.append(f"{dtype} {worst:.1e} in {n} runs")
    by = sorted({run["communicator"] for (_, _, mode), run in runs.items() if mode != "cpu" and run.get("communicator")})
    print("losses off the CPU's by at most: " + ", ".join(words) + (f", by {' and '.join(by)}" if by else "") + "".join("; " + one for one in bad[:4]) + (f"; {len(bad) - 4} more" if len(bad) > 4 else ""))
    return bool(words) and not bad


def verify(path):
    d = load(path)
    on_cards = [c for c in d["cells"] if c["backend"] == "cuda"]
    bad = [c for c in d["cells"] if c["status"] == "failed"]
    named = "; ".join(f"{c['backend']} {c.get('mode', '')} {c.get('reason') or ''}".strip() for c in bad[:3])
    cut = ", then interrupted" if d.get("interrupted") else ""
    print(f"{d['checks'] - d['failed']} of {d['checks']} checks passed, {len(on_cards)} cells on cards{cut}" + (f": {named}" if bad else ""))
    return bool(on_cards) and not bad and not cut


def compare(path):
    trials = load(path)["trials"]
    words = []
    largest = max(t["global_batch"] for t in trials)
    for trial in trials:
        if trial["global_batch"] == largest:
            rate = (trial.get("throughput") or {}).get("samples_per_s")
            peaks = [f"{d['memory']['peak_bytes'] / MIB:.0f}" for d in trial.get("per_device") or []]
            said = f"{rate:,.0f} samples/s, peak {'/'.join(peaks)} MiB" if rate else f"{trial['status']}: {trial['reason']}"
            words.append(f"{trial['mode']} {said}")
    ok = sum(t["status"] == "ok" for t in trials)
    # What cuDNN chose, or why it did not; without the bytes of scratch, which differ from one convolution to the next.
    ops = [o for t in trials for d in t.get("per_device") or [] for o in d.get("ops") or []]
    chosen = sorted({", ".join(o["implementation"].split(", ")[:2]) for o in ops if (o.get("implementation") or "").startswith("cu")})
    print(f"{ok} of {len(trials)} trials; at batch {largest}: " + "; ".join(words) + "".join(f"; {c}" for c in chosen))


def graph(off, on):
    """Records of the same training, queued op by op and as CUDA graphs."""
    said, graphs = [], 0
    for name, path in (("off", off), ("on", on)):
        trial = trial_of(path)
        rate = (trial.get("throughput") or {}).get("samples_per_s")
        said.append(f"{name} {rate:,.0f}" if rate else f"{name} {trial['status']} ({trial['reason']})")
        graphs = sum(r.get("graph_steps") or 0 for r in trial.get("repeats") or [])
    print(f"samples/s with --graph {', '.join(said)} ({graphs} steps were graphs)")
    return graphs > 0


def limits(path):
    d = load(path)

    def share(what, unit, scale, label):
        limit, ours = d[f"{what}_limit_{unit}"], d[f"{what}_ours_{unit}"]
        return f"{label} {ours / scale:.1f} of {limit / scale:.1f} ({100 * ours / limit:.0f} %)"

    print(
        share("host_to_device", "bytes_per_s", 1e9, "h2d GB/s") + ", "
        + share("within_device", "bytes_per_s", 1e9, "d2d GB/s") + ", "
        + share("product_f32", "flops_per_s", 1e12, "f32 product TFLOP/s")
        + f", tf32 limit {d['product_tf32_limit_flops_per_s'] / 1e12:.1f}; "
        + ", ".join(f"{k} {v / MIB:.0f} MiB" for k, v in d["library_bytes"].items())
    )


def torch(path):
    d = load(path)
    words = []
    for way, r in d["against"].items():
        if "failed" in r:
            words.append(f"{way}: {r['failed']}")
            continue
        words.append(f"{way} {r['ratio_median']:.2f} ({r['ratio_min']:.2f} to {r['ratio_max']:.2f}; {r['evenload_ms']:.3f} to {r['torch_ms']:.3f} ms, {len(r['turns_ms'])} pairs)")
    print(f"step at batch {d['batch']}, ratio to torch {d['torch']}: " + ", ".join(words))


def overhead(path):
    words, trials = [], load(path)["trials"]
    for trial in trials:
        recorder, band = trial.get("recorder") or {}, (trial.get("recorder") or {}).get("toggled_pct_ci95")
        if recorder.get("toggled_us") is None:
            words.append(f"{trial['mode']}: {trial['status']} ({trial['reason']})")
            continue
        said = f"{recorder['toggled_us']:.1f} us of {trial['step_ms']['median']:.3f} ms, {recorder['toggled_pct']:.2f} %"
        words.append(f"{trial['mode']}: {said}" + (f" ({band[0]:.2f} to {band[1]:.2f})" if band else ", no interval"))
    print("; ".join(words))
    return all(trial["status"] == "ok" for trial in trials)


def loading(*paths):
    """Without workers a batch is made where it is copied from; with them it comes out of their queue."""
    words, good = [], set()
    for trial in (t for path in paths for t in load(path)["trials"]):
        how, device = trial["config"], trial["per_device"][0] if trial["status"] == "ok" else None
        way = ("pinned" if how["pin_memory"] == "on" else "pageable") + (" ahead" if how["non_blocking"] == "ahead" else "")
        words.append(f"{way} w{how['workers']} " + trial["status"])
        if device:
            good.add(way)
            words[-1] = f"{way} w{how['workers']} h2d {device['busy_ms']['h2d']:.2f}, exposed {device['loading']['exposed_ms']:.2f} of {trial['step_ms']['median']:.2f} ms"
    print("; ".join(words))
    return {"pinned", "pageable", "pinned ahead"} <= good


def watch(path):
    d = load(path)["watch"]
    if not d["gpus"]:
        print(f"no GPU was looked at: {d['gpu_reason']}")
        return False

    def mib(what, unknown):
        return unknown if what is None else f"{what / MIB:.0f} MiB"

    cards = [
        f"gpu:{g['gpu']} ours {mib(g['ours_peak_bytes'], 'none')} of {mib(g['used_peak_bytes'], 'unknown')}, busy "
        + ("unknown" if g["busy_pct"] is None else f"{g['busy_pct']:.0f} %")
        for g in d["gpus"]
    ]
    print(
        f"{len(d['gpu_processes'])} processes of ours found on GPUs, compared: {d['compared']['what']}; {'; '.join(cards)}; watching took "
        f"{d['sampler']['cpu_s']:.3f} s of CPU time in {d['seconds']:.1f} s"
    )
    return True


def published(path, measured=None):
    """What a card holds outside tensors, from a run on the cards, or else from the limits'."""
    d = load(path)
    rows = d["published"]["rows"]
    left = [(row[f"published_{card}_bytes"] - row[f"{card}_bytes"]) / MIB for row in rows for card in ("first", "second")]
    leaves = f"the published table leaves {min(left):.0f} to {max(left):.0f} MiB for it"
    if not d["predicted"]:
        cards = d["trials"][-1]["cards"]
        held = " and ".join(f"{sum(c['library_bytes'].values()) / MIB:.0f}" for c in cards)
        holds = [abs(row["difference_off_pct"]) <= 3 for row in rows]
        print(
            f"measured on {' and '.join(c['device'] for c in cards)}: outside tensors {held} MiB; {leaves}; "
            f"main minus second holds at {sum(holds)} of {len(holds)} batches"
        )
        return
    libraries = load(measured)["library_bytes"]
    held = sum(libraries.values()) / MIB
    print(f"outside tensors this card holds {held:.0f} MiB ({', '.join(f'{k} {v / MIB:.0f}' for k, v in libraries.items())}); {leaves}")


def main():
    known = {f.__name__: f for f in (losses, verify, compare, graph, limits, torch, overhead, loading, watch, published)}
    if len(sys.argv) < 3 or sys.argv[1] not in known:
        sys.exit(__doc__)
    return 1 if known[sys.argv[1]](*sys.argv[2:]) is False else 0


if __name__ == "__main__":
    sys.exit(main())
