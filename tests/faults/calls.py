"""Each call of CUDA, cuBLAS, cuDNN, NCCL and NVML that a job makes fails once (tests/cards): the first, and one in the middle of its calls.

    python3 calls.py PROGRAM MODULES NVML_NAMES [--all]

Prints the calls that fail, what came of it, and what is wrong (exit status 1 then; problems() has what must hold each time). Without --all
each call fails once, in the first job that makes it. Every function that MODULES and NVML_NAMES name is either called by a job or stands below
with the reason why not."""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT_S = 15
TINY = "--data dummy --batch 8 --warmup 1 --steps 6 --min-time 0 --control none --launcher own --quiet --timeout 12"
MLP, TEXT = "--model mlp --features 16 --hidden 8", "--vocab 20 --embed 8 --seq 8"
JOBS = {
    "ddp": f"run --mode ddp {MLP} --devices cuda:2 --procs 2 {TINY}",
    "graph": f"run --mode single {MLP} --devices cuda:0, --graph on {TINY}",
    "images": f"run --mode single --model resnet18 --image 8 --width 2 --devices cuda:0, {TINY}",
    "pipeline": f"run --mode pipeline {MLP} --devices cuda:2 --procs 2 {TINY}",
    "zero3": f"run --mode zero3 {MLP} --devices cuda:2 --procs 2 {TINY}",
    "dp": f"run --mode dp {MLP} --devices cuda:2 {TINY}",
    "shm": f"run --mode ddp {MLP} --devices cuda:0,cuda:0 --procs 2 {TINY}",
    "gpt": f"run --mode single --model gpt {TEXT} --layers 1 --heads 2 --precision bf16 --devices cuda:0, {TINY}",
    "f64": f"run --mode single {MLP} --precision f64 --devices cuda:0, {TINY}",
    "devices": "devices",
    "devices-a100": "devices",
    "watch": "watch --quiet -- sleep 0.2",
    "single": f"run --mode single {MLP} --devices cuda:0, {TINY}",
    "threads": f"run --mode ddp {MLP} --devices cuda:2 --procs 1 {TINY}",
    "spmg": f"run --mode spmg {MLP} --devices cuda:2 {TINY}",
    "stages": f"run --mode pipeline {MLP} --devices cuda:2 {TINY}",
    "tp": f"run --mode tp {MLP} --devices cuda:2 --procs 2 {TINY}",
    "textcnn": f"run --mode single --model textcnn {TEXT} --filters 2 --devices cuda:0, {TINY}",
    "power": f"run --mode single {MLP} --devices cuda:0, {TINY} --min-time 1.3",
}
LONG_JOBS = {"power"}  # what takes seconds

# Two failures: the second call is made only after the first has failed.
AFTER = {"ncclCommAbort": ("ddp", "ncclAllReduce:1:5,ncclCommAbort:*:1")}
NO_CALL = {
    "cudaEventQuery": "made only where a step copies from memory of the host that no feed filled",
    "cudaEventSynchronize": "made only where 32 copies from the host are under way at once",
    "nvmlDeviceGetMaxPcieLinkWidth": "the stand-in has none, as a driver may have none",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": "the stand-in's links lead to switches",
    "nvmlDeviceGetFieldValues": "the stand-in has none, as a driver may have none",
    "nvmlDeviceGetProcessUtilization": "the stand-in has none, as a driver may have none",
}
CANNOT_FAIL = r".*Get(Error|Status|LastError)(Name|String)|ncclGetLastError|nvmlErrorString|cudnnGetVersion|cudaPeekAtLastError"

# What a reason calls it, where that is not the function's name. NCCL's are named as comm_nccl.c does.
WORDS = [(r"cuda(EventCreate|StreamCreate|GraphInstantiate)WithFlags", r"cuda\1"), (r"cuda(LaunchKernel|GetLastError)", "cuda kernel"), (r"nccl.*", "nccl ")]
# Of the process, not of a card, or of all its cards at once.
NO_CARD = r"cudaGetDeviceCount|ncclGetUniqueId|ncclGroupStart|ncclGroupEnd"
# A failure that may be passed over, and why. Ends of something have ended it (calls.h).
PASSED = [
    (r".*(Destroy\w*|Free|FreeHost|Deregister|Shutdown|Abort)", "it has ended"),
    (r"cuda(Runtime|Driver)GetVersion|cublasGetProperty|ncclGetVersion", "the record says unknown, or why"),
    ("cudaDeviceEnablePeerAccess", "the driver's own staging serves"),
    ("cudaEventQuery", "taken for busy: another piece serves"),
    ("cudaGetLastError", "where it only forgets an error"),
    ("cudaMalloc", "a second try, when what is cached was given back"),
    ("cudaMemGetInfo", "what a library took stays unattributed"),
    ("cudnn(?!Convolution).*", "cuBLAS does it"),
    ("nvml.*", "its figure is missing"),
]
# Of these the output or the record has the driver's words, where the first call fails.
SAID = r"nvmlDeviceGet(Count_v2|HandleByIndex_v2|Name|UUID|PciInfo_v3|Curr\w+|MaxPcieLinkGeneration|NvLinkVersion|NvLinkRemoteDeviceType|TopologyCommonAncestor)"
SAID += "|cudaGetDeviceProperties|cudaGetDeviceCount|cublasGetProperty"


class Run:
    """A job in a folder of its own."""

    def __init__(self, program, job, rule=""):
        self.job, self.rule, self.folder = job, rule, tempfile.mkdtemp(prefix="calls-", dir=os.getcwd())
        command = [program] + JOBS[job].split()
        at = command.index("--") if "--" in command else len(command)
        command[at:at] = [] if job[:7] == "devices" else ["--out", self.folder + "/o"]
        settings = {"": "2", "_CALLS": self.folder + "/calls", "_REPORT": self.folder + "/report", "_FAIL": rule}
        settings["_MODEL"] = "A100" if job == "devices-a100" else "H200"
        environment = dict(os.environ, **{"FAKE_CARDS" + name: value for name, value in settings.items()})
        environment["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:log_path={self.folder}/sanitizer"
        began = time.monotonic()
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            self.status, self.out, self.err = -1, "", ""
        self.seconds = time.monotonic() - began
        self.record = self.read("o/results.json")
        trials = json.loads(self.record)["trials"] if self.record.endswith("}\n") else []
        self.reason = (trials[0].get("reason") or "") if trials else self.err.strip()

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def counts(self):
        """Of each call and card, the most that one process made."""
        most = collections.Counter()
        for line in self.read("calls").splitlines():
            name, card, n = line.split()
            most[name, int(card)] = max(most[name, int(card)], int(n))
        return most

    def is_reached(self):
        name, card, k = re.match(r"(\w+):(.):(\d+)", self.rule).groups()
        return any(one == name and n >= int(k) and card in ("*", str(at)) for (one, at), n in self.counts().items())

    def processes_left(self):
        """Those that have the folder among their arguments; what is being reaped has a moment."""
        for _ in range(20):
            left = [path for path in glob.glob("/proc/[0-9]*/cmdline") if self.folder.encode() in arguments_of(path)]
            if not left:
                break
            time.sleep(0.05)
        return left


def arguments_of(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def passed(name):
    return any(re.fullmatch(pattern, name) for pattern, _ in PASSED)


def problems(run, name):
    """What does not hold of a job in which a call of this name failed once."""
    said = run.out + run.err + "".join(run.read(os.path.relpath(path, run.folder)) for path in glob.glob(run.folder + "/o/logs/*/*"))
    if run.status not in (0, 1, 2):
        yield f"exit status {run.status} after {run.seconds:.0f} s"
    if run.seconds > LIMIT_S / 2:
        yield f"took {run.seconds:.0f} s"
    for word in ("fakecards:", "Sanitizer", "runtime error", "was killed by", "timed out"):
        if word in said:
            yield f"'{word}'"
    if glob.glob(run.folder + "/sanitizer*"):
        yield "the sanitizer: " + run.read(os.path.basename(glob.glob(run.folder + "/sanitizer*")[0]))[:2000]
    if run.record and not run.record.endswith("}\n"):
        yield "a record that is half written"
    left = re.findall(r"left [1-9]\d* bytes|[1-9]\d* of \d+ (?:streams|events)|host: [1-9]\d* bytes", run.read("report"))
    if left or run.processes_left():
        yield f"left behind: {left} {run.processes_left()}"
    if run.status > 0:
        word = next((re.sub(pattern, word, name) for pattern, word in WORDS if re.fullmatch(pattern, name)), name)
        if "\n" in run.reason or word not in run.reason:
            yield f"one line that names {word}"
        if not re.search(r"cuda:\d|rank \d", run.reason) and not re.fullmatch(NO_CARD, name):
            yield "a reason that names no card or rank"
    elif not passed(name) and not (run.job[:7] == "devices" and re.fullmatch(SAID, name)):
        yield "passed over"
    elif re.fullmatch(SAID, name) and run.rule.endswith(":0:1") and not re.search("Unknown Error|unknown", said + run.record, re.I):
        if run.job[:7] != "devices" and run.job != "watch" and "cudaGetDevice" not in name:
            yield "nothing says what is missing"


def rules_of(counts):
    """(call, rule): the first call, and one in the middle, on the last card that has it; no memory may be had at a second try: another error;
    a card that is lost, so that what ends cannot turn to it either."""
    for name in sorted({name for name, _ in counts}):
        card = max(card for one, card in counts if one == name)
        n = counts[name, card]
        yield name, f"{name}:{card}:1"
        if name == "cudaSetDevice":
            yield name, f"{name}:{card}:{n * 6 // 10}/1"
        if n > 1:
            yield name, f"{name}:{card}:{max(2, n * 6 // 10)}" + ("=719" if name == "cudaMalloc" else "")


def plan(counts, whole):
    """(job, call, rule) of what is tried, and all calls that were seen."""
    planned, seen = [], set()
    for job, of_job in counts.items():
        new = set()
        for name, rule in rules_of(of_job):
            if whole or name not in seen | new:
                planned.append((job, name, rule))
            new.add(name)
        seen |= new
    return planned + [(job, name, rule) for name, (job, rule) in AFTER.items()], seen | set(AFTER)


def resolved(modules, source):
    """The functions of the libraries that the program asks for, and that may fail."""
    symbols = subprocess.run(["nm", "-D", "--undefined-only", *modules], capture_output=True, text=True, check=True).stdout
    with open(source, encoding="utf-8") as file:
        rows = re.findall(r'ROW\(.*?"(nvml\w+)"', file.read())
    names = set(re.findall(r" U ((?:cuda|cublas|cudnn|nccl)\w+)", symbols)) | set(rows)
    return {name for name in names if not re.fullmatch(CANNOT_FAIL, name)}


def try_one(program, job, name, rule):
    run = Run(program, job, rule)
    outcome = "not reached" if run.status == 0 and not run.is_reached() else ["passed over", "failed", "refused"][run.status] if run.status in (0, 1, 2) else "other"
    wrong = [] if outcome == "not reached" else list(problems(run, name))
    text = f"{job} {rule}: status {run.status}, '{run.reason}': {'; '.join(wrong)}" if wrong else None
    shutil.rmtree(run.folder, ignore_errors=True)
    return outcome, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("modules")
    parser.add_argument("nvml_names")
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    outcomes, wrong = collections.Counter(), []
    jobs = [job for job in JOBS if given.all or job not in LONG_JOBS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plain = dict(zip(jobs, pool.map(lambda job: Run(given.program, job), jobs)))
        wrong += [f"{job}, where nothing fails: status {run.status}: {run.reason}" for job, run in plain.items() if run.status != 0]
        planned, seen = plan({job: run.counts() for job, run in plain.items()}, given.all)
        for run in plain.values():
            shutil.rmtree(run.folder)
        for outcome, text in pool.map(lambda one: try_one(given.program, *one), planned):
            outcomes[outcome] += 1
            wrong += [text] if text else []
    names = resolved(glob.glob(given.modules + "/el_[cn]*.so"), given.nvml_names)
    late = {"nvmlDeviceGetPowerUsage"} if not given.all else set()
    wrong += [f"{name} is never called" for name in sorted(names - seen - set(NO_CALL) - late)]
    wrong += [f"{name} is called, and listed as not called" for name in sorted(seen & set(NO_CALL))]
    print(f"{len(jobs)} jobs, {len(seen)} functions called, {len(planned)} failures:", ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())))
    print("not called:", "; ".join(f"{name} ({why})" for name, why in NO_CALL.items()))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
