"""What `evenload watch` has Python run first: records the steps of a training with PyTorch, in the folder EVENLOAD_HOOK.

The folder of this file comes first in PYTHONPATH. After `import torch` each step of one optimizer appends a line to
steps-PID: the time (ns since 1970), the wait for the DataLoader since the last step (ns) and the samples that it gave.
flight_PID_rank_R is the flight recorder's dump (docs/watch.md), written again now and then and at the end.
Whatever goes wrong here is a line in trouble-PID, and the program goes on.
"""
import importlib.machinery
import importlib.util
import os
import sys
import time

FLIGHT_EVERY_NS, FLIGHT_SHARE = 2_000_000_000, 1000  # at most every 2 s, and a thousandth of the time
OTHERS_MAX = 16
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
        self.torch, self.pid, self.file, self.loading, self.samples = torch, os.getpid(), None, 0, 0
        self.flight_due_ns, self.broken, self.first, self.others = time.time_ns() + FLIGHT_EVERY_NS, set(), None, 0

    def guard(self, what, do):
        if what in self.broken:
            return
        try:
            if os.getpid() != self.pid:  # a fork has a file of its own
                self.pid, self.file, self.loading, self.samples = os.getpid(), None, 0, 0
            do()
        except Exception as error:  # noqa: it must not end the program
            self.broken.add(what)
            _say(what, error)

    def enter(self, optimizer):
        if self.first is None:
            self.first = id(optimizer)

    def leave(self, optimizer):
        """One optimizer is the clock: it may hold another one (ZeRO's), or stand beside one (GANs)."""
        self.others = 0 if id(optimizer) == self.first else self.others + 1
        if self.others > OTHERS_MAX:  # it is there no more
            self.first = None
        elif self.others == 0:
            self.step()

    def step(self):
        now = time.time_ns()
        if self.file is None:
            os.makedirs(_folder, exist_ok=True)
            self.file = os.open(os.path.join(_folder, f"steps-{self.pid}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(self.file, b"%d %d %d\n" % (now, self.loading, self.samples))
        self.loading = self.samples = 0
        if now > self.flight_due_ns:
            self.guard("the flight recorder", self.dump)
            took = time.time_ns() - now
            self.flight_due_ns = now + max(FLIGHT_EVERY_NS, FLIGHT_SHARE * took)

    def dump(self):
        distributed = self.torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return
        recorder, backend = self.torch._C._distributed_c10d, distributed.get_backend()
        if backend != "gloo":
            raise RuntimeError(f"with {backend} the host calls collectives before the card comes to them; traces say who is late: evenload trace-stats")
        if not hasattr(recorder, "_dump_fr_trace_json"):
            raise RuntimeError(f"PyTorch {self.torch.__version__} has none for {backend}")
        text = recorder._dump_fr_trace_json(True, False, backend)
        os.makedirs(_folder, exist_ok=True)
        path = os.path.join(_folder, f"flight_{self.pid}_rank_{distributed.get_rank()}")
        with open(path + ".new", "wb") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def took(self, begin, batch):
        self.loading += time.perf_counter_ns() - begin
        first = batch
        while isinstance(first, (list, tuple, dict)) and len(first):
            first = next(iter(first.values())) if isinstance(first, dict) else first[0]
        shape = getattr(first, "shape", None)
        if shape is not None and len(shape):
            self.samples += int(shape[0])


def _install(torch):
    global _hook
    import atexit
    hook = _hook = _Hook(torch)

    def optimizers():
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        register_optimizer_step_pre_hook(lambda optimizer, *_: hook.guard("a step", lambda: hook.enter(optimizer)))
        register_optimizer_step_post_hook(lambda optimizer, *_: hook.guard("a step", lambda: hook.leave(optimizer)))

    def loaders():
        from torch.utils.data.dataloader import _BaseDataLoaderIter
        inner = _BaseDataLoaderIter.__next__

        def timed_next(self):
            begin = time.perf_counter_ns()
            batch = inner(self)
            hook.guard("the DataLoader", lambda: hook.took(begin, batch))
            return batch

        _BaseDataLoaderIter.__next__ = timed_next
        _BaseDataLoaderIter.next = timed_next

    def groups():  # the dump is of groups that are there
        from torch.distributed import distributed_c10d as c10d
        inner = c10d.destroy_process_group

        def destroy(*args, **named):
            hook.guard("the flight recorder", hook.dump)
            return inner(*args, **named)

        c10d.destroy_process_group = torch.distributed.destroy_process_group = destroy

    hook.guard("optimizers", optimizers)
    hook.guard("the DataLoader", loaders)
    if torch.distributed.is_available():
        hook.guard("process groups", groups)
    atexit.register(lambda: hook.guard("the flight recorder", hook.dump))


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
