"""What torch's own schedule code makes of files, without running them: one process, no communication.

    schedules.py accept CASES     torch loads every file of the JSON list (as train.py has it), validates it, and its
                                  simulation of the communication ends. One line a case; exits with 1 if one is refused
    schedules.py dump FOLDER      torch's built-in schedules as files FOLDER/NAME-pP-mM.csv and, where this release can,
                                  .comms.csv; prints their paths
"""

import json
import os
import re
import sys

import torch
from torch.distributed.pipelining import schedules

OLDEST = torch.__version__.startswith("2.6.")


class Stage:
    """As much of a stage as building a schedule looks at."""

    def __init__(self, index, stages, rank, ranks, rank_of):
        self.stage_index, self.num_stages = index, stages
        self.group_rank, self.group_size = rank, ranks
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.stage_index_to_group_rank = dict(enumerate(rank_of))
        self.submod = torch.nn.Identity()
        self.has_backward = True


def stages_of(rank_of, rank=0):
    ranks = max(rank_of) + 1
    return [Stage(s, len(rank_of), rank, ranks, rank_of) for s, r in enumerate(rank_of) if r == rank]


def load(case):
    more = {"stage_index_to_group_rank": dict(enumerate(case["rank_of"]))} if OLDEST else {}
    runtime = schedules._PipelineScheduleRuntime(
        stages_of(case["rank_of"]), case["microbatches"], loss_fn=lambda *_: None, **more
    )
    runtime._load_csv(case["file"], format=case["format"])
    known = ("F", "I", "W", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B")  # to its simulation of one step
    order = {
        rank: [a for a in actions if re.sub("[0-9]", "", str(a)) in known]
        for rank, actions in runtime.pipeline_order_with_comms.items()
    }
    schedules._simulate_comms_compute(order, lambda s: case["rank_of"][s], len(case["rank_of"]))


def accept(path):
    failed = False
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    for case in cases:
        try:
            load(case)
            print(f"ok    {case['name']}")
        except Exception as error:  # whatever torch says, it does not accept the file
            print(f"FAIL  {case['name']}: {type(error).__name__}: {str(error)[:300]}")
            failed = True
    return 1 if failed else 0


def placements(ranks):
    loop = [s % ranks for s in range(2 * ranks)]
    v = [s if s < ranks else 2 * ranks - 1 - s for s in range(2 * ranks)]
    return {
        "ScheduleLoopedBFS": loop, "ScheduleInterleaved1F1B": loop, "ScheduleInterleavedZeroBubble": loop,
        "ScheduleZBVZeroBubble": v, "ScheduleDualPipeV": v,
    }


def write_rows(path, order):
    with open(path, "w", encoding="utf-8", newline="") as file:
        for rank in sorted(order):
            file.write(",".join("" if a is None else str(a) for a in order[rank]) + "\r\n")


def dump(folder):
    for ranks in (2, 4):
        for name, rank_of in placements(ranks).items():
            kind = getattr(schedules, name, None)
            if kind is None:
                continue
            microbatches = 2 * ranks + (2 if name == "ScheduleDualPipeV" else 0)
            schedule = kind(stages_of(rank_of), microbatches, loss_fn=lambda *_: None)
            path = os.path.join(folder, f"{name}-p{ranks}-m{microbatches}")
            write_rows(path + ".csv", schedule.pipeline_order)
            print(path + ".csv")
            if OLDEST:  # whose built-in schedules have no communication actions
                continue
            schedule._dump_csv(path + ".comms.csv", format="compute_comms")
            print(path + ".comms.csv")
    return 0


if __name__ == "__main__":
    sys.exit(accept(sys.argv[2]) if sys.argv[1] == "accept" else dump(sys.argv[2]))
