"""What `evenload watch` has Python run first: records the steps of a training with PyTorch, in the folder EVENLOAD_HOOK.

The folder of this file comes first in PYTHONPATH. After `import torch` each step of one optimizer is a line of steps-PID,
written every 20 ms at most: the time (ns since 1970), the wait for the DataLoader since the last step (ns), the samples
and numbers of the batches that it gave, the garbage collection (ns), and the time in which the process waited for a
processor since the line before that was written last (ns, -1: not known). Now and then and at the end these are written
again:

    flight_PID_rank_R   the flight recorder's dump (docs/watch.md)
    marks_PID_rank_R    'KIND BEGIN END' (ns since 1970) of the last data, backward, optimizer and pause (collection)
    memory_PID_rank_R   'DEVICE NAME ALLOCATED RESERVED': the allocator's peaks (bytes) of a GPU

With EVENLOAD_PROFILE torch.profiler records the steps of that schedule: EVENLOAD_TRACES/rank-R.pt.trace.json.
Whatever goes wrong here is a line in trouble-PID, and the program goes on.
"""
import collections
import importlib.machinery
import importlib.util
import os
import sys
import time

LINES_EVERY_NS = 20_000_000
FLIGHT_EVERY_NS, FLIGHT_SHARE = 2_000_000_000, 1000  # at most every 2 s, and a thousandth of the time
OTHERS_MAX, MARKS_MAX, PAUSE_NS = 16, 40_000, 100_000
_folder = os.environ.get("EVENLOAD_HOOK", "")
_hook = None


def _say(what, error):
    try:
        os.makedirs(_folder, exist_ok=True)
        with open(os.path.join(_folder, f"trouble-{os.getpid()}"), "a", encoding="utf-8") as file:
            file.write(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}\n")
    except OSError:
        pass


class _Hook:
    """Of one process."""

    def __init__(self, torch):
        self.torch, self.broken = torch, set()
        self.begin()

    def begin(self):
        self.pid, self.file, self.delays, self.delay = os.getpid(), None, None, 0
        self.lines, self.lines_due_ns = [], 0
        self.loading = self.samples = self.numbers = self.collecting = 0
        self.marks, self.collected_from, self.backward_depth, self.entered = collections.deque(maxlen=MARKS_MAX), 0, 0, 0
        self.flight_due_ns, self.first, self.others = time.time_ns() + FLIGHT_EVERY_NS, None, 0
        self.stepped, self.profiler, self.schedule = False, None, os.environ.get("EVENLOAD_PROFILE", "")

    def guard(self, what, do, *given):
        if what in self.broken:
            return
        try:
            if os.getpid() != self.pid:  # a fork has files of its own, and multiprocessing's ends without atexit
                self.begin()
                from multiprocessing import util
                util.Finalize(None, self.end, exitpriority=0)
            do(*given)
        except Exception as error:  # noqa: it must not end the program
            self.broken.add(what)
            _say(what, error)

    # ---- what is marked ----

    def enter(self, optimizer):
        if self.first is None:
            self.first = id(optimizer)
        if id(optimizer) == self.first:
            self.entered = time.time_ns()

    def leave(self, optimizer):
        """One optimizer is the clock: it may hold another one (ZeRO's), or stand beside one (GANs)."""
        self.others = 0 if id(optimizer) == self.first else self.others + 1
        if self.others > OTHERS_MAX:  # it is there no more
            self.first = None
        elif self.others == 0:
            self.step()

    def took(self, begin, batch):
        now = time.time_ns()
        self.loading += now - begin
        self.marks.append(("data", begin, now))
        first = batch
        while isinstance(first, (list, tuple, dict)) and len(first):
            first = next(iter(first.values())) if isinstance(first, dict) else first[0]
        shape = getattr(first, "shape", None)
        if shape is not None and len(shape):
            self.samples += int(shape[0])
            numbers = 1
            for length in shape:
                numbers *= int(length)
            self.numbers += numbers

    def backward(self, entered):
        """A backward pass within another one (checkpoints) is of it."""
        now = time.time_ns()
        self.backward_depth += 1 if entered else -1
        if entered and self.backward_depth == 1:
            self.backward_from = now
        elif not entered and self.backward_depth == 0:
            self.marks.append(("backward", self.backward_from, now))

    def collects(self, phase, _):
        now = time.time_ns()
        if phase == "start":
            self.collected_from = now
        elif self.collected_from:
            self.collecting += now - self.collected_from
            if now - self.collected_from > PAUSE_NS:
                self.marks.append(("pause", self.collected_from, now))
            self.collected_from = 0

    def step(self):
        now, self.stepped = time.time_ns(), True
        if self.entered:
            self.marks.append(("optimizer", self.entered, now))
        self.lines.append(b"%d %d %d %d %d" % (now, self.loading, self.samples, self.numbers, self.collecting))
        self.loading = self.samples = self.numbers = self.collecting = 0
        if now > self.lines_due_ns:
            self.write_lines()
            self.lines_due_ns = now + LINES_EVERY_NS
        if self.schedule:
            self.guard("torch.profiler", self.profile)
        if now > self.flight_due_ns:
            self.guard("the last figures", self.dump)
            took = time.time_ns() - now
            self.flight_due_ns = now + max(FLIGHT_EVERY_NS, FLIGHT_SHARE * took)

    def write_lines(self):
        if not self.lines:
            return
        if self.file is None:
            os.makedirs(_folder, exist_ok=True)
            self.file = os.open(os.path.join(_folder, f"steps-{self.pid}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self.guard("the wait for a processor", self.open_delays)
        before, self.delay = self.delay, self.delays_ns()
        delay = self.delay - before if self.delay >= 0 else -1
        os.write(self.file, b" 0\n".join(self.lines) + b" %d\n" % delay)  # the last one has the delay of all
        self.lines = []

    def open_delays(self):
        self.delays = os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self.delay = self.delays_ns()

    def delays_ns(self):
        """Of the main thread; -1: the kernel does not tell."""
        return int(os.pread(self.delays, 64, 0).split()[1]) if self.delays is not None else -1

    # ---- what is written again and again ----

    def dump(self):
        self.guard("a step", self.write_lines)
        distributed = self.torch.distributed
        rank = distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else -1
        self.guard("the allocator's peaks", self.write_memory, rank)
        if rank >= 0:
            self.guard("the marks", self.write, "marks", rank, self.marks_text())
            self.guard("the flight recorder", self.write_flight, rank)

    def write(self, what, rank, text):
        os.makedirs(_folder, exist_ok=True)
        path = os.path.join(_folder, f"{what}_{self.pid}_rank_{rank}")
        with open(path + ".new", "wb") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def marks_text(self):
        return b"".join(b"%b %d %d\n" % (kind.encode(), begin, end) for kind, begin, end in self.marks)

    def write_flight(self, rank):
        recorder, backend = self.torch._C._distributed_c10d, self.torch.distributed.get_backend()
        if backend != "gloo":
            raise RuntimeError(f"with {backend} the host calls collectives before the card comes to them; --profile names the late rank")
        if not hasattr(recorder, "_dump_fr_trace_json"):
            raise RuntimeError(f"PyTorch {self.torch.__version__} has none for {backend}; --profile names the late rank")
        self.write("flight", rank, recorder._dump_fr_trace_json(True, False, backend))

    def write_memory(self, rank):
        cuda = getattr(self.torch, "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return
        lines = ""
        for device in range(cuda.device_count()):
            if cuda.max_memory_reserved(device) > 0:
                name = cuda.get_device_properties(device).name.replace(" ", "_")
                lines += f"{device} {name} {cuda.max_memory_allocated(device)} {cuda.max_memory_reserved(device)}\n"
        if lines:
            self.write("memory", rank, lines.encode())

    # ---- torch.profiler ----

    def profile(self):
        """Begins at the end of the first step; a step's end is the optimizer's."""
        if self.profiler is not None:
            self.profiler.step()
            return
        profiler = self.torch.profiler
        plan = {key: int(value) for key, value in (word.split("=") for word in self.schedule.split(","))}
        self.profiler = profiler.profile(schedule=profiler.schedule(**plan), on_trace_ready=self.write_trace, record_shapes=True)
        self.profiler.start()

    def write_trace(self, profiler):
        self.schedule, self.profiler = "", None  # one cycle
        folder, distributed = os.environ["EVENLOAD_TRACES"], self.torch.distributed
        rank = distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rank-{rank}.pt.trace.json")
        profiler.export_chrome_trace(path + ".new.json")
        os.replace(path + ".new.json", path)

    def end(self):
        self.guard("the last figures", self.dump)
        if not self.stepped and any(kind in ("data", "backward") for kind, _, _ in self.marks):
            _say("steps", RuntimeError("none was made by an optimizer of torch.optim"))
        if self.schedule and self.profiler is not None:
            _say("torch.profiler", RuntimeError("the job ended before the schedule's last step"))


def _install(torch):
    global _hook
    import atexit
    import gc
    hook = _hook = _Hook(torch)

    def optimizers():
        module = importlib.import_module("torch.optim.optimizer")
        if hasattr(module, "register_optimizer_step_post_hook"):
            module.register_optimizer_step_pre_hook(lambda optimizer, *_: hook.guard("a step", hook.enter, optimizer))
            module.register_optimizer_step_post_hook(lambda optimizer, *_: hook.guard("a step", hook.leave, optimizer))
            return
        # Before PyTorch 2.1: what puts a wrapper around the class' step, for its profiler.
        name = "_patch_step_function" if hasattr(module.Optimizer, "_patch_step_function") else "_hook_for_profile"
        inner = getattr(module.Optimizer, name)

        def wrap(self):
            inner(self)
            kind = type(self)
            if getattr(kind.step, "evenload", False):
                return
            step = kind.step

            def timed(self, *args, **named):
                hook.guard("a step", hook.enter, self)
                result = step(self, *args, **named)
                hook.guard("a step", hook.leave, self)
                return result

            timed.hooked = timed.evenload = True
            kind.step = timed

        setattr(module.Optimizer, name, wrap)

    def loaders():
        from torch.utils.data.dataloader import _BaseDataLoaderIter
        inner = _BaseDataLoaderIter.__next__

        def timed_next(self):
            begin = time.time_ns()
            batch = inner(self)
            hook.guard("the DataLoader", hook.took, begin, batch)
            return batch

        _BaseDataLoaderIter.__next__ = timed_next
        _BaseDataLoaderIter.next = timed_next

    def passes():
        inner = torch.autograd.backward

        def backward(*args, **named):
            hook.guard("backward", hook.backward, True)
            try:
                return inner(*args, **named)
            finally:
                hook.guard("backward", hook.backward, False)

        torch.autograd.backward = backward

    def groups():  # the dump is of groups that are there
        from torch.distributed import distributed_c10d as c10d
        inner = c10d.destroy_process_group

        def destroy(*args, **named):
            hook.guard("the last figures", hook.dump)
            return inner(*args, **named)

        c10d.destroy_process_group = torch.distributed.destroy_process_group = destroy

    hook.guard("optimizers", optimizers)
    hook.guard("the DataLoader", loaders)
    hook.guard("backward", passes)
    hook.guard("garbage collection", lambda: gc.callbacks.append(lambda phase, info: hook.guard("garbage collection", hook.collects, phase, info)))
    if torch.distributed.is_available():
        hook.guard("process groups", groups)
    atexit.register(hook.end)


class _Finder:
    """Waits for `import torch`, and is gone then."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                _install(module)
            except Exception as error:  # noqa: it must not end the program
                _say("import torch", error)

        try:
            spec.loader.exec_module = exec_module
        except Exception as error:  # noqa: it must not end the program
            _say("import torch", error)
        return spec


def _run_hidden():
    """The sitecustomize that this one hides."""
    own = os.path.dirname(os.path.abspath(__file__))
    rest = [p for p in sys.path if os.path.abspath(p or ".") != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if _folder:
    sys.meta_path.insert(0, _Finder())
_run_hidden()
