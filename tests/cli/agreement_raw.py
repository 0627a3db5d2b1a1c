"""What a run's figures have to be: from its raw launches by docs/metrics.md, and as tables write them. For agreement.py."""
import math

T95 = {5: 2.7764451051977987, 6: 2.5705818366147395}  # Student's t of n launches
TAGS = ("param grad optimizer buffer activation input output replica cast bucket mailbox workspace allowance padding").split()


# ---- figures as they are printed ----

def figure(value):
    if value is None:
        return "-"
    size = abs(value)
    if 99.95 <= size < 1e12:
        return f"{value:,.0f}"
    if size >= 1e12:
        return f"{value:.3g}"
    if size >= 9.995 or size == 0:
        return f"{value:.1f}" if size else "0"
    return f"{value:.2f}" if size >= 0.0995 else f"{value:.2g}"


def mib(value):
    if value is None:
        return "-"
    value /= 1048576
    return f"{value:.1f}" if 0.995 <= abs(value) < 999.95 else figure(value)


def interval(pair):
    if pair is None:
        return "none"
    return f"{figure(pair[0])} {'to' if pair[0] < 0 else '-'} {figure(pair[1])}"


# ---- statistics ----

def mean(x):
    return sum(x) / len(x) if x else None


def geometric(x):
    return math.exp(sum(map(math.log, x)) / len(x)) if x else None


def median(x):
    x = sorted(v for v in x if v is not None)
    n = len(x)
    return None if n == 0 else x[n // 2] if n % 2 else (x[n // 2 - 1] + x[n // 2]) / 2


def p95(x):
    return sorted(x)[max(0, math.ceil(0.95 * len(x) - 1e-9) - 1)]


def spread(x):
    return math.sqrt(sum((v - mean(x)) ** 2 for v in x) / (len(x) - 1))


def log_interval(x):
    if len(x) < 5 or spread(list(map(math.log, x))) / math.sqrt(len(x)) <= 1e-9:
        return None
    logs = list(map(math.log, x))
    half = T95[len(x)] * spread(logs) / math.sqrt(len(x))
    return [math.exp(mean(logs) - half), math.exp(mean(logs) + half)]


def plain_interval(x):
    if len(x) < 5 or max(x) == min(x):
        return None
    half = T95[len(x)] * spread(x) / math.sqrt(len(x))
    return [mean(x) - half, mean(x) + half]


def at(value, path):
    for key in path.split("."):
        if value is None:
            return None
        value = value[int(key)] if isinstance(value, list) else value.get(key)
    return value


def same(got, wanted, what):
    if isinstance(wanted, list) and isinstance(got, list):
        assert len(got) == len(wanted), f"{what}: {got}, wanted {wanted}"
        for a, b in zip(got, wanted):
            same(a, b, what)
        return
    alike = got == wanted or (isinstance(got, (int, float)) and isinstance(wanted, (int, float)) and
                              abs(got - wanted) <= 1e-9 * max(abs(got), abs(wanted)) + 1e-12)
    assert alike, f"{what}: {got}, wanted {wanted}"


# ---- what raw launches come to ----

def unevenness(values):
    n, high, average = len(values), max(values), mean(values)
    deviation = math.sqrt(sum((v - average) ** 2 for v in values) / n)
    rest = mean(values[1:])
    if not average:
        return [None] * 5
    return [high / average - 1, (high - average) / high * n / (n - 1) * 100, average / high, deviation / average,
            values[0] / rest if rest else None]


MEASURES = ["max_over_mean_minus_1", "pct", "lb", "cv", "first_over_rest"]
OF_DEVICE = {"device_step_ms": "step_ms", "device_idle_ms": "idle_ms", "device_bubble_ms": "bubble_ms", "device_window_ms": "window_ms",
             "device_comm_total_ms": "comm.total_ms", "device_comm_exposed_ms": "comm.exposed_ms", "device_comm_wait_ms": "comm.wait_ms",
             "device_comm_transfer_ms": "comm.transfer_ms", "device_comm_cpu_ms": "comm.cpu_ms", "device_busy_pct": "utilization.busy_pct",
             "device_sent_bytes": "sent_bytes", "device_received_bytes": "received_bytes"}
OF_SLOWEST = {"idle_ms": "device_idle_ms", "comm_total_ms": "device_comm_total_ms", "comm_exposed_ms": "device_comm_exposed_ms",
              "comm_wait_ms": "device_comm_wait_ms", "comm_transfer_ms": "device_comm_transfer_ms"}


def over_launches(launches, position, path):
    return median([at(launch["members"][position], path) for launch in launches])


def device_figures(launches, d):
    first = launches[0]["members"][d]
    row = {name: over_launches(launches, d, path) for name, path in OF_DEVICE.items()}
    for name in ("device_sent_bytes", "device_received_bytes"):
        row[name] = None if row[name] is None else math.floor(row[name] + 0.5)
    for phase in first["busy_ms"]:
        row[f"device_{phase}_ms"] = over_launches(launches, d, f"busy_ms.{phase}")
    for tag in TAGS:
        row[f"at_peak_{tag}_bytes"] = first["memory"]["at_peak_by_tag"][tag]
    row["device_peak_bytes"] = sum(first["memory"]["at_peak_by_tag"].values())
    line = first["memory"]["timeline"]
    moments = [sum(column[i] for column in line["bytes"].values()) for i in range(len(line["ms"]))]
    same(max(moments), row["device_peak_bytes"], f"device {d}: highest moment of the timeline against the tags at the peak")
    return row


def parts_of_blocks(launches, d):
    blocks = [launch["members"][d]["control"] for launch in launches]
    if not all(blocks):
        return None
    on, off = [b["on"] for b in blocks], [b["off"] for b in blocks]
    costs = [a["step_ms"] - b["step_ms"] for a, b in zip(on, off)]
    slower = [a["compute_ms"] - b["compute_ms"] for a, b in zip(on, off)]
    return {"on": mean([b["step_ms"] for b in on]), "costs": mean(costs), "costs_ci": plain_interval(costs), "contention": mean(slower),
            "contention_ci": plain_interval(slower), "alone": mean([b["compute_ms"] for b in off])}


def bus(launch):
    ours = [c for c in launch.get("collectives", []) if c["phase"] == "comm"]
    n, ms = len(launch["members"]), sum(c["transfer_ms"] for c in ours)
    stages = [at(m, "layout.stage") for m in launch["members"]]
    n /= 1 + max((s for s in stages if s), default=0)
    return 2 * (n - 1) / n * sum(c["bytes"] for c in ours) / ms * 1e-6 if ours and ms > 0 else None


def figures_of(trial, launches):
    """The trial's figures by their columns, its devices' likewise, and what its blocks come to."""
    batch, steps = trial["global_batch"], [launch["step_ms"] for launch in launches]
    rates = [batch / mean(s) * 1e3 for s in steps]
    ci = None if trial["simulated"] else log_interval(rates)
    devices = [device_figures(launches, d) for d in range(len(launches[0]["members"]))]
    work = [sum(v for k, v in row.items() if k in [f"device_{p}_ms" for p in launches[0]["members"][0]["busy_ms"] if p != "comm"])
            for row in devices]
    slowest = work.index(max(work))
    own, blocks = devices[slowest], parts_of_blocks(launches, slowest)
    row = {"samples_per_s": geometric(rates), "samples_per_s_ci95_low": ci and ci[0], "samples_per_s_ci95_high": ci and ci[1],
           "step_mean_ms": geometric([mean(s) for s in steps]), "step_median_ms": geometric([median(s) for s in steps]),
           "step_p95_ms": geometric([p95(s) for s in steps]), "comm_busbw_gb_per_s": median([bus(launch) for launch in launches]),
           "comm_bytes": sum(over_launches(launches, d, "comm.bytes") for d in range(len(devices))),
           "comm_exposed_step_ms": blocks and blocks["costs"], "comm_contention_ms": blocks and blocks["contention"],
           "compute_alone_ms": blocks and blocks["alone"]}
    row.update({name: own[of] for name, of in OF_SLOWEST.items()})
    row.update({f"phase_{p}_ms": own[f"device_{p}_ms"] for p in launches[0]["members"][0]["busy_ms"]})
    windows = [[sum(m[k] or 0 for m in launch["members"]) for k in ("bubble_ms", "window_ms")] for launch in launches]
    row["bubble_pct"] = median([100 * b / w for b, w in windows if w > 0])
    values = {"memory": lambda m: m["memory"]["peak_bytes"], "busy": lambda m: m["utilization"]["busy_pct"] / 100 * m["step_ms"],
              "bytes": lambda m: m["sent_bytes"]}
    for kind, value in values.items():
        each = [unevenness([value(m) for m in launch["members"]]) for launch in launches if len(devices) > 1]
        for k, name in enumerate(MEASURES):
            row[f"imbalance_{kind}_{name}"] = median([e[k] for e in each])
    return {"row": row, "devices": devices, "slowest": slowest, "blocks": blocks}
