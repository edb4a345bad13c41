"""OR-Tools CP-SAT on one profile: peers_cpsat.py PROFILE LIMIT_S THREADS SCHEDULE

The model that a user of CP-SAT would write for the span: an interval an op, no overlap on a device, precedences between
devices with their communication, microbatches in order within each kind (which is no loss), each device's start fixed
at the arrival of microbatch 0, and memory as cumulative resources. Times, and each device's memory, are divided by their common divisor.
Prints one JSON object; the best schedule goes to SCHEDULE.
"""

import json
import math
import sys

from ortools.sat.python import cp_model

from peers_schedule import Chain, write_schedule


def common_divisor(chain):
    times = chain.forward + chain.backward
    for kind in "FBW":
        times = times + chain.time[kind]
    return math.gcd(*times) or 1


def build(chain, tick):
    p, m = chain.p, chain.m
    model = cp_model.CpModel()
    time = {kind: [t // tick for t in chain.time[kind]] for kind in "FBW"}
    forward, backward = [t // tick for t in chain.forward], [t // tick for t in chain.backward]
    horizon = sum(sum(time[kind]) for kind in "FBW") * m + (sum(forward) + sum(backward)) * m
    start, end, interval = {}, {}, {}
    for i in range(p):
        for kind in "FBW":
            for j in range(m):
                op = (kind, i, j)
                start[op] = model.new_int_var(0, horizon, f"{kind}{i}_{j}")
                interval[op] = model.new_fixed_size_interval_var(start[op], time[kind][i], f"i{kind}{i}_{j}")
                end[op] = start[op] + time[kind][i]
                if j > 0:
                    model.add(start[op] >= end[(kind, i, j - 1)])
    span = model.new_int_var(0, horizon, "span")
    for i in range(p):
        model.add_no_overlap([interval[(kind, i, j)] for kind in "FBW" for j in range(m)])
        model.add(start[("F", i, 0)] == chain.offset(i) // tick)
        model.add(span >= m * sum(time[kind][i] for kind in "FBW"))
        for kind in "BW":
            model.add(span >= end[(kind, i, m - 1)] - start[("F", i, 0)])
        for j in range(m):
            if i > 0:
                model.add(start[("F", i, j)] >= end[("F", i - 1, j)] + forward[i - 1])
            if i + 1 < p:
                model.add(start[("B", i, j)] >= end[("B", i + 1, j)] + backward[i])
            model.add(start[("B", i, j)] >= end[("F", i, j)])
            model.add(start[("W", i, j)] >= end[("B", i, j)])
        add_memory(model, chain, i, start, end, horizon)
    model.minimize(span)
    return model, start, span


def add_memory(model, chain, device, start, end, horizon):
    """What B gives back is kept from the start of F to the end of B, what W gives back to the end of W."""
    if chain.limit[device] is None:
        return
    kept, demands = [], []
    unit = math.gcd(*(chain.keeps[kind][device] for kind in "BW")) or 1
    for kind in "BW":
        amount = -chain.keeps[kind][device] // unit
        for j in range(chain.m if amount > 0 else 0):
            first, last = start[("F", device, j)], end[(kind, device, j)]
            size = model.new_int_var(0, horizon, "")
            kept.append(model.new_interval_var(first, size, last, ""))
            demands.append(amount)
    if kept:
        model.add_cumulative(kept, demands, (chain.limit[device] - chain.static[device]) // unit)


def orders_of(chain, solver, start):
    orders = []
    for i in range(chain.p):
        ops = [(solver.value(start[(kind, i, j)]), "FBW".index(kind), j) for kind in "FBW" for j in range(chain.m)]
        orders.append([("FBW"[kind], j) for _, kind, j in sorted(ops)])
    return orders


def main(profile_path, limit_s, threads, schedule_path):
    with open(profile_path, encoding="utf-8") as file:
        chain = Chain(json.load(file))
    tick = common_divisor(chain)
    model, start, span = build(chain, tick)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = float(limit_s)
    solver.parameters.num_workers = int(threads)
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    result = {"status": solver.status_name(status).lower(), "closed": status == cp_model.OPTIMAL,
              "seconds": solver.wall_time, "bound_ns": math.ceil(solver.best_objective_bound - 1e-6) * tick}
    if found:
        result["cost_ns"] = solver.value(span) * tick
        result["schedule_ns"] = write_schedule(schedule_path, chain, orders_of(chain, solver, start), "cp-sat")
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
