"""Trains a small model under torch's pipeline runtime, in the orders of CSV files, and compares with no pipeline.

    train.py CASES RANKS      CASES: a JSON list of {"name", "file", "format", "stages", "microbatches", "rank_of"}, and
                              "spoil": true where the pipeline is to get wrong targets

Starts RANKS processes over gloo. Every case gets a fresh model of one layer a stage, runs three steps of SGD, and must
reach the losses and parameters of the same model without a pipeline: allclose at 1e-5. Prints one line a case, and
exits with 1 if one differs, fails or does not end in time.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile

WIDTH, BATCH, STEPS, RATE = 8, 2, 3, 0.1
CASE_SECONDS, START_SECONDS = 30, 120


def layer(torch, stage):
    torch.manual_seed(1000 + stage)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())


def data(torch, microbatches):
    torch.manual_seed(7)
    rows = BATCH * microbatches
    return [(torch.randn(rows, WIDTH), torch.randn(rows, WIDTH)) for _ in range(STEPS)]


def without_pipeline(torch, case):
    """The losses of every step's microbatches, and the parameters after the last step, a list a stage."""
    layers = [layer(torch, s) for s in range(case["stages"])]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for inputs, targets in data(torch, case["microbatches"]):
        optimizer.zero_grad()
        for x, y in zip(inputs.split(BATCH), targets.split(BATCH)):
            loss = torch.nn.functional.mse_loss(model(x), y)
            (loss / case["microbatches"]).backward()
            losses.append(loss.detach())
        optimizer.step()
    return losses, [[p.detach() for p in part.parameters()] for part in layers]


def with_pipeline(torch, case, rank, ranks):
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    device = torch.device("cpu")
    example = torch.zeros(BATCH, WIDTH, requires_grad=True)  # so that gradients are sent
    mine = [s for s, r in enumerate(case["rank_of"]) if r == rank]
    modules = [layer(torch, s) for s in mine]
    stages = [
        PipelineStage(
            m, s, case["stages"], device, input_args=(example if s else example.detach(),), output_args=(example,)
        )
        for s, m in zip(mine, modules)
    ]
    more = {}
    if torch.__version__.startswith("2.6."):  # which does not take the placement from the file
        more["stage_index_to_group_rank"] = dict(enumerate(case["rank_of"]))
    schedule = _PipelineScheduleRuntime(
        stages, case["microbatches"], loss_fn=torch.nn.functional.mse_loss, **more
    )
    schedule._load_csv(case["file"], format=case["format"])
    parameters = [p for m in modules for p in m.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    losses = []
    for inputs, targets in data(torch, case["microbatches"]):
        if case.get("spoil"):
            targets = -targets
        optimizer.zero_grad()
        step_losses = []
        schedule.step(
            *([inputs] if 0 in mine else []),
            target=targets if case["stages"] - 1 in mine else None,
            losses=step_losses if case["stages"] - 1 in mine else None,
        )
        if torch.__version__.startswith("2.6."):  # whose runtime leaves the mean over microbatches to its caller
            scale(torch, stages, parameters, case)
        optimizer.step()
        losses += [loss.detach() for loss in step_losses]
    return mine, losses, [[p.detach() for p in m.parameters()] for m in modules]


def scale(torch, stages, parameters, case):
    for p in parameters:
        p.grad /= case["microbatches"]


def same(torch, found, wanted):
    return len(found) == len(wanted) and all(
        torch.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(found, wanted)
    )


def work(cases, rank, ranks, meeting):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method="file://" + meeting, rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=CASE_SECONDS),
    )
    print("ready", flush=True)
    for case in cases:
        mine, losses, parameters = with_pipeline(torch, case, rank, ranks)
        wanted_losses, wanted = without_pipeline(torch, case)
        faults = []
        if case["stages"] - 1 in mine and not same(torch, losses, wanted_losses):
            faults.append("losses differ")
        for s, found in zip(mine, parameters):
            if not same(torch, found, wanted[s]):
                faults.append(f"parameters of stage {s} differ")
        dist.barrier()
        print(f"{case['name']}: {', '.join(faults) if faults else 'same'}", flush=True)
    dist.destroy_process_group()


def main():
    cases, ranks = sys.argv[1], int(sys.argv[2])
    if len(sys.argv) == 5:
        with open(cases, encoding="utf-8") as file:
            work(json.load(file), int(sys.argv[3]), ranks, sys.argv[4])
        return 0
    with open(cases, encoding="utf-8") as file:
        wanted = json.load(file)
    limit_s = START_SECONDS + CASE_SECONDS * len(wanted)
    with tempfile.TemporaryDirectory() as scratch:
        meeting = os.path.join(scratch, "meeting")
        logs = [open(os.path.join(scratch, f"log{r}"), "w+", encoding="utf-8") for r in range(ranks)]
        workers = [
            subprocess.Popen(
                [sys.executable, __file__, cases, str(ranks), str(r), meeting],
                stdout=logs[r], stderr=subprocess.STDOUT,
                env=dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""),
            )
            for r in range(ranks)
        ]
        failed = False
        for r, worker in enumerate(workers):
            try:
                failed = worker.wait(timeout=limit_s) != 0 or failed
            except subprocess.TimeoutExpired:
                print(f"rank {r} did not end within {limit_s} s")
                failed = True
        for worker in workers:
            worker.kill()
        said = []
        for log in logs:
            log.seek(0)
            said.append(log.read())
        for case in wanted:
            lines = [line for text in said for line in text.splitlines() if line.startswith(case["name"] + ": ")]
            good = len(lines) == ranks and all(line.endswith(": same") for line in lines)
            print(f"{'ok  ' if good else 'FAIL'}  {case['name']}  {'' if good else lines}")
            failed = failed or not good
        if failed:
            for r, text in enumerate(said):
                print(f"-- rank {r}\n{text[-4000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
