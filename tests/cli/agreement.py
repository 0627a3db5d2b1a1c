"""Random small runs whose every output is held to the raw measurements in repeats/: tables, CSV, data files of plots, page,
Markdown and sentences, by the definitions of docs/metrics.md.

agreement.py PROGRAM SEED N: N runs in the current folder. The first has each of its outputs falsified too, one at a time: every
check must see it. A contradiction prints the seed, the command and what disagrees."""
import csv
import glob
import html
import json
import random
import re
import subprocess
import sys

from agreement_raw import (TAGS, figure, figures_of, geometric, interval, log_interval, mean, mib, over_launches, plain_interval,
                           same)


# ---- what is printed ----

def ratio_to_single(run, trial):
    rates = [known["row"]["samples_per_s"] for other, known in zip(run.trials, run.known)
             if other["mode"] == "single" and other["global_batch"] == trial["global_batch"]]
    return run.of(trial)["row"]["samples_per_s"] / rates[0] if rates else None


def trial_cells(run, trial):
    row = run.of(trial)["row"]
    ci = None if row["samples_per_s_ci95_low"] is None else [row["samples_per_s_ci95_low"], row["samples_per_s_ci95_high"]]
    return [figure(row["samples_per_s"]), interval(ci), figure(ratio_to_single(run, trial)), figure(row["step_mean_ms"]),
            figure(row["step_p95_ms"]), figure(row["comm_exposed_ms"]), trial["verdict"]]


def step_cells(run, trial, d):
    known, launches = run.of(trial), run.launches[trial["id"]]
    row = known["devices"][d]
    total, hidden = row["device_comm_total_ms"], over_launches(launches, d, "comm.overlapped_ms")
    device = launches[0]["members"][d]["device"] + ("*" if d == known["slowest"] else "")
    return [device] + [figure(v) for v in (
        over_launches(launches, d, "compute_ms"), row["device_comm_exposed_ms"], over_launches(launches, d, "other_ms"), row["device_idle_ms"],
        row["device_comm_wait_ms"], row["device_comm_transfer_ms"], 100 * hidden / total if total else None, row["device_bubble_ms"],
        row["device_comm_cpu_ms"], known["row"]["comm_busbw_gb_per_s"] if d == known["slowest"] else None)]


def block_cells(run, trial):
    b = run.of(trial)["blocks"]
    return [figure(b["on"]), figure(b["on"] - b["costs"]), figure(b["costs"]), interval(b["costs_ci"]), figure(b["contention"]),
            interval(b["contention_ci"])]


def ends_with(line, cells, what):
    wanted = " ".join(cells).split()
    assert line.split()[-len(wanted):] == wanted, f"{what}: '{line}', wanted {cells}"


def check_tags(text, row, what):
    """'param/grad 10.4 each, other 8.7': each the tag's own, and the rest."""
    left = row["device_peak_bytes"]
    for part in text.split(", "):
        names, value = part.replace(" each", "").split(" ")
        if names == "other":
            assert value == mib(left), f"{what}: {part}, wanted {mib(left)}"
            continue
        for name in names.split("/"):
            assert value == mib(row[f"at_peak_{name}_bytes"]), f"{what}: {part}, wanted {mib(row[f'at_peak_{name}_bytes'])}"
            left -= row[f"at_peak_{name}_bytes"]


def check_device_line(line, row, what):
    tokens = line.split()
    assert tokens[1] == mib(row["device_peak_bytes"]), f"{what}: peak in '{line}', wanted {mib(row['device_peak_bytes'])}"
    assert tokens[-2:] == [figure(row["device_busy_pct"]), mib(row["device_sent_bytes"])], f"{what}: '{line}'"
    check_tags(" ".join(tokens[2:-2]), row, what)


def communicates(trial):
    return trial["breakdown"] is not None or trial["comm"]["wait_ms"] is not None


def check_tables(run):
    lines = run.text.splitlines()
    rest = iter(lines[next(i for i, line in enumerate(lines) if line.startswith("mode     global batch    samples/s")) + 2:])
    for trial in run.trials:
        what = f"table of {trial['mode']}"
        line = next(rest)
        if not line.endswith(trial["verdict"]):  # a long name has a line of its own
            line = next(rest)
        ends_with(line, trial_cells(run, trial), what)
        for row in run.of(trial)["devices"]:
            check_device_line(next(rest), row, what)
    if any(map(communicates, run.trials)):
        rest = iter(lines[next(i for i, line in enumerate(lines) if line.startswith("Where a step goes")) + 2:])
    for trial in filter(communicates, run.trials):
        next(rest)
        for d in range(len(trial["per_device"])):
            ends_with(next(rest), step_cells(run, trial, d), f"where a step goes, {trial['mode']}, device {d}")
    blocks = [trial for trial in run.trials if trial["breakdown"] is not None]
    if blocks:
        rest = iter(lines[next(i for i, line in enumerate(lines) if line.startswith("What communication costs")) + 2:])
    for trial in blocks:
        ends_with(next(rest), block_cells(run, trial), f"what communication costs, {trial['mode']}")


def check_csv(run):
    trials, devices = list(csv.DictReader(run.trials_csv.splitlines())), list(csv.DictReader(run.devices_csv.splitlines()))
    assert len(trials) == len(run.trials)
    cell = lambda row, name: None if row[name] == "" else float(row[name])
    for row, trial in zip(trials, run.trials):
        for name, wanted in run.of(trial)["row"].items():
            same(cell(row, name), wanted, f"trials.csv, {trial['mode']}, {name}")
    wanted = [(trial, own) for trial in run.trials for own in run.of(trial)["devices"]]
    assert len(devices) == len(wanted)
    for row, (trial, own) in zip(devices, wanted):
        for name, value in own.items():
            same(cell(row, name), value, f"devices.csv, {trial['mode']} {row['device']}, {name}")
    steps = [float(row["ms"]) for row in csv.DictReader(run.steps_csv.splitlines())]
    same(steps, [ms for t in run.trials for launch in run.launches[t["id"]] for ms in launch["step_ms"]], "steps.csv")


def block_of(text, name):
    """The rows of a data file's block, as lists of cells."""
    for part in re.split(r"\n\n\n", text):
        lines = part.strip("\n").split("\n")
        if lines[0] == f"# {name}":
            return [line.split("\t") for line in lines[1:] if line and not line.startswith("#")]
    return []


def tops(text):
    """The upper end of each bar by its place, and its parts' lengths."""
    top, parts = {}, {}
    for x, _, _, low, high, name in (row[:6] for row in block_of(text, "bars")):
        top[float(x)] = max(top.get(float(x), 0), float(high))
        parts[float(x), name] = float(high) - float(low)
    return top, parts


def near_drawn(got, wanted, what, top=0):
    """Six digits are written, of both ends of a part."""
    assert abs(got - wanted) <= 2e-5 * abs(wanted) + 2e-5 * top + 1e-12, f"{what}: {got} drawn, wanted {wanted}"


def check_plots(run):
    in_order = sorted(run.trials, key=lambda t: [u["global_batch"] for u in run.trials].index(t["global_batch"]))
    top, parts = tops(run.plots["step"])
    for (x, drawn), trial in zip(sorted(top.items()), in_order):
        row = run.of(trial)["row"]
        near_drawn(drawn, row["step_mean_ms"], f"step.dat, {trial['mode']}")
        exposed = sum(parts.get((x, name), 0) for name in ("comm", "wait"))
        if trial["mode"] in ("ddp", "manual") and row["comm_exposed_ms"] < row["step_mean_ms"]:  # it is all of theirs, and fits
            near_enough = 2e-5 * (row["comm_exposed_ms"] + drawn)
            assert abs(exposed - row["comm_exposed_ms"]) <= near_enough, f"step.dat draws {exposed} exposed, not {row['comm_exposed_ms']}"
    drawn = sorted(tops(run.plots["throughput"])[0].items())
    for (_, value), trial in zip(drawn, in_order):
        near_drawn(value, run.of(trial)["row"]["samples_per_s"], f"throughput.dat, {trial['mode']}")
    bars, parts = tops(run.plots["memory"])
    devices = [row for trial in in_order for row in run.of(trial)["devices"]]
    assert len(bars) == len(devices), "memory.dat: a bar per device"
    for x, row in zip(sorted(bars), devices):
        for tag in TAGS:
            near_drawn(parts.get((x, tag), 0), row[f"at_peak_{tag}_bytes"] / 1048576, f"memory.dat, {tag}", bars[x])
    for label in re.findall(r"peak (\S+) MiB", run.plots.get("timeline", "")):
        assert label in [mib(row["device_peak_bytes"]) for row in devices], f"timeline.dat: peak {label} MiB is no device's"


def rows_of_page(text, section):
    part = re.search(rf'<section id="{section}">(.*?)</section>', text, re.S)
    body = re.search(r"<tbody>(.*?)</tbody>", part.group(1), re.S) if part else None
    rows = re.findall(r"<tr>(.*?)</tr>", body.group(1), re.S) if body else []
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.S)] for row in rows]


def check_page(run):
    rows = rows_of_page(run.page, "throughput")
    assert len(rows) == len(run.trials), "report.html: a row per trial"
    for cells, trial in zip(rows, run.trials):
        assert cells[2:] == trial_cells(run, trial), f"report.html, {trial['mode']}: {cells}, wanted {trial_cells(run, trial)}"
    devices = [row for trial in run.trials for row in run.of(trial)["devices"]]
    for cells, row in zip(rows_of_page(run.page, "memory"), devices):
        check_device_line(" ".join(cells[2:]), row, "report.html, memory")
    wanted = [step_cells(run, t, d) for t in run.trials if communicates(t) for d in range(len(t["per_device"]))]
    assert [cells[2:] for cells in rows_of_page(run.page, "time")] == wanted, f"report.html, time: wanted {wanted}"
    wanted = [block_cells(run, t) for t in run.trials if t["breakdown"] is not None]
    assert [cells[2:] for cells in rows_of_page(run.page, "communication")] == wanted, f"report.html, communication: wanted {wanted}"


def check_markdown(run):
    rows = [line.replace("\\", "").strip("| ").split(" | ") for line in run.markdown.splitlines() if line.startswith("| ")][1:]
    assert [row[2:] for row in rows] == [trial_cells(run, t) for t in run.trials], f"Markdown: {rows}"


# ---- sentences ----

def sentences(text):
    found = []
    for line in text.splitlines():
        if line.startswith("* "):
            found.append(line[2:])
        elif line.startswith("  ") and found and not found[-1].endswith("\0"):
            found[-1] += " " + line.strip()
        elif found:
            found[-1] += "\0"  # it has ended
    return [sentence.rstrip("\0") for sentence in found]


def trial_of(run, mode, batch):
    return next(t for t in run.trials if t["mode"] == mode and t["global_batch"] == int(batch))


def paired(run, a, b):
    rates = lambda t: [t["global_batch"] / mean(launch["step_ms"]) * 1e3 for launch in run.launches[t["id"]]]
    x, y = rates(a), rates(b)
    simulated = a["simulated"] or b["simulated"]
    return geometric(x) / geometric(y), None if simulated else log_interval([p / q for p, q in zip(x, y)])


def is_doubted(*trials):
    return any(t["verdict"] not in ("valid", "simulated") for t in trials)


def check_pair(run, sentence):
    match = re.match(r"(\w+) against (\w+)(?: on (?:\d+ )?(?:simulated )?devices?)?, samples/s: (.*)", sentence)
    if not match:
        return
    for said, batch, reach in re.findall(r"([\d.]+ times|no significant difference|no ratio) at batch (\d+)(?: on \d+)?(?: \(([^)]*)\))?", match[3]):
        a, b = trial_of(run, match[1], batch), trial_of(run, match[2], batch)
        ratio, ci = paired(run, a, b)
        if said.endswith("times"):
            assert said == f"{ratio:.2f} times", f"'{sentence}': the ratio is {ratio}"
        assert (said == "no significant difference") == bool(ci and ci[0] <= 1 <= ci[1]), f"'{sentence}': {ci}"
        if ci:
            assert reach.startswith(f"{ci[0]:.3f} to {ci[1]:.3f}"), f"'{sentence}': {ci}"
        doubted = is_doubted(a, b)
        assert doubted == ("suspect" in reach or "unchecked" in reach), f"'{sentence}': verdicts {a['verdict']}, {b['verdict']}"
        assert ci or not doubted or said == "no ratio", f"'{sentence}': a ratio in doubt, without an interval"


def check_sentences(run):
    for sentence in sentences(run.text):
        check_pair(run, sentence)
        match = re.match(r"In (\w+) the first device \(\S+\) peaks at (\S+) MiB.*?, (\S+) times the .*? \(batch (\d+)\)", sentence)
        if match:
            known = run.of(trial_of(run, match[1], match[4]))
            assert match[2] == mib(known["devices"][0]["device_peak_bytes"]), sentence
            assert match[3] == figure(known["row"]["imbalance_memory_first_over_rest"]), sentence
        match = re.search(r"(\S+) MiB sent per step by all devices in (\w+)", sentence)
        if match:
            batch = max(t["global_batch"] for t in run.trials if t["mode"] == match[2])
            assert match[1] == mib(run.of(trial_of(run, match[2], batch))["row"]["comm_bytes"]), sentence
        match = re.search(r"(\S+) MiB for each copy of the parameters", sentence)
        if match:
            assert match[1] == mib(run.trials[-1]["param_bytes"]), sentence
    assert not re.search(r"\de-1\d", run.text), "a rounding residue is printed: " + re.search(r".*\de-1\d.*", run.text)[0]


# ---- scaling ----

def check_scaling(run):
    plain, rows = run.trials[0], run.scaling["rows"]
    for trial, row in zip(run.trials, rows):
        own, step = run.of(trial)["row"], row["step"]
        same(row["samples_per_s"], own["samples_per_s"], "scale: samples/s")
        same(step["step_ms"], own["step_mean_ms"], "scale: step")
        same(step["ideal_ms"] + step["lost_ms"], step["step_ms"], "scale: ideal + lost")
        if step["compute_ms"] is not None:
            same(step["exposed_ms"], own["comm_exposed_ms"], "scale: exposed")
            same(sum(step[k] for k in ("compute_ms", "contention_ms", "exposed_ms", "idle_ms")), step["lost_ms"], "scale: parts")
        if trial is not plain:
            ratio, ci = paired(run, trial, plain)
            same([row["plain"]["speedup"], row["plain"]["speedup_ci95"]], [ratio, ci], "scale: speed-up")
            same(row["plain"]["efficiency"], ratio / trial["devices"], "scale: efficiency")
        line = next(line for line in run.text.splitlines() if re.match(rf"{trial['mode']} +{trial['devices']}\*? ", line))
        cells = [figure(own["samples_per_s"])] + ([] if trial is plain else [figure(row["plain"]["speedup"])])
        assert line.split()[2:2 + len(cells)] == cells, f"scale: '{line}', wanted {cells}"
    for sentence in sentences(run.text):
        match = re.match(r"(\w+) on (\d+) (?:simulated )?devices: (?:(\S+) times plain single|(no speed-up is stated))", sentence)
        if match:
            trial = next(t for t in run.trials if t["mode"] == match[1] and t["devices"] == int(match[2]))
            ratio, ci = paired(run, trial, plain)
            assert not match[3] or match[3] == figure(ratio), f"'{sentence}': the speed-up is {ratio}"
            assert is_doubted(trial, plain) == ("suspect" in sentence or "unchecked" in sentence), sentence
            assert ci or bool(match[4]) == is_doubted(trial, plain), sentence


# ---- from one trial to another ----

def check_difference(run):
    """`explain` of the first two trials: parts and rest make up each step, and their differences the whole."""
    if run.difference is None:
        return
    document, (a, b) = run.difference, run.trials[:2]
    steps = [[mean(launch["step_ms"]) for launch in run.launches[t["id"]]] for t in (a, b)]
    same([document["a"]["step_ms"], document["b"]["step_ms"]], list(map(mean, steps)), "explain: steps")
    same(document["whole"]["ms"], mean(steps[1]) - mean(steps[0]), "explain: whole")
    same(document["whole"]["ci95"], plain_interval([y - x for x, y in zip(*steps)]), "explain: interval of the whole")
    rows = document["parts"] + [document["rest"]]
    same(sum(row["ms"] for row in rows), document["whole"]["ms"], "explain: parts and rest")
    for side in ("a", "b"):
        same(sum(row[f"{side}_ms"] for row in rows), document[side]["step_ms"], f"explain: parts of {side}")
    for row, of_a, of_b in zip(document["memory"], *(run.of(t)["devices"] for t in (a, b))):
        same([row["a_bytes"], row["b_bytes"]], [of_a["device_peak_bytes"], of_b["device_peak_bytes"]], "explain: memory")


# ---- runs ----

class Run:
    def __init__(self, program, options, folder):
        self.options, self.folder = options, folder
        self.command = [program] + options + ["--out", folder]
        self.text = self.call(self.command)
        self.results = json.load(open(f"{folder}/results.json"))
        self.trials = self.results["trials"]
        self.launches = {t["id"]: self.raw(t["id"], len(t["repeats"])) for t in self.trials}
        self.known = [figures_of(t, self.launches[t["id"]]) for t in self.trials]
        self.trials_csv, self.devices_csv, self.steps_csv = (open(f"{folder}/{n}.csv").read() for n in ("trials", "devices", "steps"))
        self.plots = {path.split("/")[-1][:-4]: open(path).read() for path in glob.glob(f"{folder}/plots/*.dat")}
        self.is_scaling = options[0] == "scale"
        if self.is_scaling:
            self.scaling = json.loads(self.call([program, "scale", folder, "--json"]))
            return
        self.difference = None
        if len(self.trials) > 1:
            two = [f"{folder}:{t['id']}" for t in self.trials[:2]]
            self.difference = json.loads(self.call([program, "explain", *two, "--json", "--out", f"{folder}/explain"]))
        self.call([program, "report", folder])
        self.page = open(f"{folder}/report.html").read()
        self.call([program, "report", folder, "--markdown", f"{folder}/page.md"])
        self.markdown = open(f"{folder}/page.md").read()

    def call(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        assert done.returncode == 0, f"status {done.returncode} of {' '.join(command)}: {done.stderr}"
        return done.stdout

    def raw(self, trial, n):
        return [json.load(open(f"{self.folder}/repeats/{trial}-{i}.json")) for i in range(n)]

    def of(self, trial):
        return self.known[[t["id"] for t in self.trials].index(trial["id"])]

    def check(self):
        check_csv(self)
        if self.is_scaling:
            check_scaling(self)
            return
        check_tables(self)
        if self.options[0] == "compare":
            check_plots(self)
        check_page(self)
        check_markdown(self)
        check_sentences(self)
        check_difference(self)


def options_of(rng, kind):
    """A small run: of simulated, null or CPU devices; one in three is a study of scaling, one a single trial."""
    command = kind % 3
    backend = rng.choice(["sim", "null"] if command == 1 else ["sim", "cpu", "cpu"])
    n = rng.choice([2, 2, 3, 4]) if backend != "cpu" else 2
    modes = rng.sample(["single", "dp", "ddp", "manual", "spmg", "mp", "pipeline"], 3 if backend != "cpu" else 2)
    batch = n * rng.choice([4, 6, 8])
    launches = rng.choice([1, 2] if backend == "cpu" and command == 0 else [1, 2, 5])
    mlp = ["mlp", "--features", str(rng.choice([5, 16])), "--hidden", rng.choice(["8,8,8", "12,7,9,8"]), "--classes", "4"]
    model = rng.choice([mlp, mlp, mlp, ["toy"] if n == 2 else mlp])  # toy has two layers, so two stages at most
    options = ["--model", *model, "--data", "dummy", "--warmup", "1", "--steps", str(rng.choice([2, 5])), "--min-time", rng.choice(["0", "0.004"]),
               "--optimizer", rng.choice(["sgd", "adam"]), "--seed", str(rng.randrange(100)), "--repeats", str(launches),
               "--control", "pairs=2"]
    if command == 1:
        return ["scale", "--modes", rng.choice(["ddp", "dp", "ddp,manual"]), "--devices", f"{backend}:1,{n}", "--batch-per-device", "4"] + options
    options += ["--batch", str(batch), "--devices", f"{backend}:{n}"]
    if command == 2:
        return ["run", "--mode", rng.choice(["dp", "ddp", "spmg", "pipeline"])] + options
    if "ddp" in modes and rng.random() < 0.5:
        options += ["--bucket-mb", "0.001,0.002"]
    return ["compare", "--modes", ",".join(modes)] + options


# ---- planted contradictions ----

def planted(run):
    """Each output of the run with one figure changed, and what must see it."""
    trial = run.trials[-1]
    row = run.of(trial)["row"]
    shown, changed = figure(row["step_mean_ms"]), figure(row["step_mean_ms"] * 1.5)
    index = next(i for i, r in enumerate(csv.DictReader(run.trials_csv.splitlines())) if r["trial"] == "t-" + trial["id"])
    lines = run.trials_csv.splitlines()
    cells = next(csv.reader([lines[index + 1]]))
    cells[lines[0].split(",").index("step_mean_ms")] = repr(row["step_mean_ms"] * 1.5)
    lines[index + 1] = ",".join(f'"{c}"' if "," in c else c for c in cells)
    yield "trials_csv", "\n".join(lines), check_csv
    yield "text", re.sub(rf"(?m)^({trial['mode']}\b.*) {re.escape(shown)} ", rf"\1 {changed} ", run.text), check_tables
    yield "page", run.page.replace(f"<td>{shown}</td>", f"<td>{changed}</td>"), check_page
    yield "markdown", run.markdown.replace(f" {shown} |", f" {changed} |"), check_markdown
    bar = block_of(run.plots["throughput"], "bars")[0]
    drawn = run.plots["throughput"].replace("\t".join(bar), "\t".join(bar[:4] + [str(float(bar[4]) * 1.5)] + bar[5:]))
    yield "plots", dict(run.plots, throughput=drawn), check_plots
    yield "text", re.sub(r"([\d.]+)( MiB for each copy)", r"9\1\2", run.text), check_sentences


def plant(run):
    for name, text, check in planted(run):
        whole = getattr(run, name)
        assert text != whole, f"nothing was planted in {name}"
        setattr(run, name, text)
        try:
            check(run)
            raise SystemExit(f"a figure was changed in {name}, and {check.__name__} did not see it")
        except AssertionError:
            setattr(run, name, whole)


def main():
    program, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for i in range(n):
        options = options_of(random.Random(f"{seed}-{i}"), i)
        try:
            run = Run(program, options, f"run-{i}")
            run.check()
            if i == 0:
                plant(run)
        except AssertionError as error:
            sys.exit(f"seed {seed}, run {i} of {n}: {error}\n{program} {' '.join(options)}")
    print(f"{n} runs agree")


main()
