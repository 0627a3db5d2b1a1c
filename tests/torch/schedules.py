#!/usr/bin/env python3
"""Writes tests/unit/data/schedules/: the compute tables of torch.distributed.pipelining's schedules, by PyTorch's own code.

A schedule is made with stages that are nothing but their numbers; its table is what `_dump_csv` writes as compute_only. GPipe and 1F1B have
no `_dump_csv`: their step is run with a stage that notes what it is told to compute, and that is written the same way. (2.15's
`_get_pipeline_order` of 1F1B is wrong on the last rank: it counts micro-batches from 1.) Files are named by schedule, stages a rank, ranks and
micro-batches. Made with PyTorch 2.15.

usage: schedules.py DIR
"""
import csv
import os
import sys
from types import SimpleNamespace

from torch.distributed.pipelining import schedules as torch_schedules
from torch.distributed.pipelining._utils import generate_rank_to_stage_mapping

# schedule, stages a rank, style, ranks, micro-batches
TABLES = [
    ("GPipe", 1, "loop", 4, 6),
    ("1F1B", 1, "loop", 4, 6),
    ("Interleaved1F1B", 2, "loop", 2, 4),
    ("Interleaved1F1B", 3, "loop", 4, 8),
    ("InterleavedZeroBubble", 1, "loop", 4, 6),
    ("InterleavedZeroBubble", 2, "loop", 2, 6),
    ("ZBVZeroBubble", 2, "v", 2, 4),
    ("ZBVZeroBubble", 2, "v", 4, 8),
    ("DualPipeV", 2, "v", 2, 6),
    ("LoopedBFS", 2, "loop", 2, 4),
]


class Stage(SimpleNamespace):
    """A stage by its number; notes what a step computes, and has nothing to send."""

    def forward_one_chunk(self, micro, *_, **__):
        self.noted.append(f"{self.stage_index}F{micro}")

    def backward_one_chunk(self, micro, **_):
        self.noted.append(f"{self.stage_index}B{micro}")

    def get_fwd_recv_ops(self, _):
        return []

    get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = get_fwd_recv_ops

    def perform_reduce_grad(self, _):
        pass

    def release_fwd_send_outputs(self, _):
        pass


def stages_of(rank, ranks, a_rank, style):
    last = ranks * a_rank - 1
    numbers = generate_rank_to_stage_mapping(ranks, last + 1, style)[rank]
    given = {"group_rank": rank, "group_size": ranks, "num_stages": last + 1, "submod": None, "has_backward": True}
    return [Stage(stage_index=n, is_first=n == 0, is_last=n == last, noted=[], **given) for n in numbers]


def noted(kind, stage, micro):
    schedule = kind(stage, micro)
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches([()] * micro, [{}] * micro)
    return stage.noted


def write(folder, name, a_rank, style, ranks, micro):
    path = os.path.join(folder, f"{name}-{a_rank}x{ranks}-{micro}.csv")
    kind = torch_schedules.get_schedule_class(name)
    if issubclass(kind, torch_schedules.PipelineScheduleSingle):
        with open(path, "w", newline="") as file:
            for rank in range(ranks):
                csv.writer(file).writerow(noted(kind, *stages_of(rank, ranks, a_rank, style), micro))
    else:
        kind(stages_of(0, ranks, a_rank, style), micro)._dump_csv(path, format="compute_only")
    print(path)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for table in TABLES:
        write(sys.argv[1], *table)
