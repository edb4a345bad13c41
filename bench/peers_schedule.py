"""A pipeline profile in whole ns and bytes, and orders made into a schedule file that zbcheck can check.

A separate reading of the format, for the peers: times, costs and peaks are computed here from the orders alone.
"""

import json


class Chain:
    """What a peer needs of a profile as zbsolve writes it into its schedules: one stage a device, ns and bytes."""

    def __init__(self, profile):
        if profile["placement"] != "chain" or profile["time"]["unit"] != "ns":
            raise ValueError("not a chain in ns")
        self.profile = profile
        self.p = p = profile["devices"]
        self.m = profile["microbatches"]
        time = profile["time"]
        comm = time["comm"] if isinstance(time["comm"], dict) else {"forward": time["comm"], "backward": time["comm"]}
        self.time = {kind: spread(time[kind.lower()], p) for kind in "FBW"}
        self.forward = spread(comm["forward"], p - 1)
        self.backward = spread(comm["backward"], p - 1)
        memory = profile.get("memory")
        self.keeps = {kind: spread(memory[kind.lower()] if memory else 0, p) for kind in "FBW"}
        self.static = spread(memory.get("static", 0) if memory else 0, p)
        self.limit = spread(memory.get("limit") if memory else None, p)
        fused = spread(time.get("bw"), p)
        for i in range(p):
            split = self.time["B"][i] + self.time["W"][i]
            if (fused[i] is not None and fused[i] < split) or self.keeps["B"][i] > 0:
                raise ValueError("fusing B and W can pay here, and the peers' models leave it out")

    def offset(self, device):
        """When a device starts, against device 0: when microbatch 0 reaches it."""
        return sum(self.time["F"][:device]) + sum(self.forward[:device])


def spread(value, count):
    return list(value) if isinstance(value, list) else [value] * count


def start_times(chain, orders):
    """Starts, each as early as it can be. orders: a device's list of (kind, microbatch)."""
    end, starts = {}, [[] for _ in orders]
    clock = [0] * chain.p
    moved = True
    while moved:
        moved = False
        for i, order in enumerate(orders):
            while len(starts[i]) < len(order):
                kind, j = order[len(starts[i])]
                after = []
                if kind == "F" and i > 0:
                    after.append((("F", i - 1, j), chain.forward[i - 1]))
                if kind == "B":
                    after.append((("F", i, j), 0))
                    if i + 1 < chain.p:
                        after.append((("B", i + 1, j), chain.backward[i]))
                if kind == "W":
                    after.append((("B", i, j), 0))
                if any(op not in end for op, _ in after):
                    break
                start = max([clock[i]] + [end[op] + delay for op, delay in after])
                starts[i].append(start)
                clock[i] = end[(kind, i, j)] = start + chain.time[kind][i]
                moved = True
    if any(len(starts[i]) < len(order) for i, order in enumerate(orders)):
        raise ValueError("the orders wait for each other")
    return starts


def period(chain, orders):
    """The largest mean of a cycle of: longest way from a device's first op to a device's last end (Karp)."""
    p = chain.p
    longest = []
    for source in range(p):
        reach = [{} for _ in range(p)]
        at = [0] * p
        moved = True
        while moved:
            moved = False
            for i, order in enumerate(orders):
                while at[i] < len(order):
                    kind, j = order[at[i]]
                    before = [reach[i].get(order[at[i] - 1])] if at[i] else [0 if i == source else None]
                    if kind == "F" and i > 0:
                        if ("F", j) not in reach[i - 1]:
                            break
                        value = reach[i - 1][("F", j)]
                        before.append(None if value is None else value + chain.forward[i - 1])
                    if kind == "B" and i + 1 < p:
                        if ("B", j) not in reach[i + 1]:
                            break
                        value = reach[i + 1][("B", j)]
                        before.append(None if value is None else value + chain.backward[i])
                    if kind != "F":
                        before.append(reach[i][({"B": "F", "W": "B"}[kind], j)])
                    known = [value for value in before if value is not None]
                    reach[i][(kind, j)] = max(known) + chain.time[kind][i] if known else None
                    at[i] += 1
                    moved = True
        longest.append([reach[i][orders[i][-1]] for i in range(p)])
    least = 0
    for root in range(p):
        walk = [[0 if i == root else None for i in range(p)]]
        for _ in range(p):
            last = walk[-1]
            walk.append([max((last[i] + longest[i][k] for i in range(p) if last[i] is not None and
                              longest[i][k] is not None), default=None) for k in range(p)])
        for k in range(p):
            if walk[p][k] is None:
                continue
            # The least of (walk[p] - walk[n]) / (p - n), rounded up.
            least = max(least, min(-((walk[n][k] - walk[p][k]) // (p - n)) for n in range(p) if walk[n][k] is not None))
    return least


def ratio(whole, part):
    return round((whole - part) / whole, 6) if whole else 0.0


def write_schedule(path, chain, orders, method):
    """Writes the file with a bound that needs no proof, the busiest device's work. Returns the span in ns."""
    starts = start_times(chain, orders)
    devices, spans, ends = [], [], []
    for i, order in enumerate(orders):
        busy = sum(chain.time[kind][i] for kind, _ in order)
        end = starts[i][-1] + chain.time[order[-1][0]][i]
        held = peak = chain.static[i]
        for kind, _ in order:
            grows = chain.keeps[kind][i]
            peak = max(peak, held + max(grows, 0))
            held += grows
        spans.append(end - starts[i][0])
        ends.append(end)
        devices.append({"device": i, "stages": [i], "ops": [f"{i}{kind}{j}" for kind, j in order],
                        "start_ns": starts[i], "peak_bytes": peak, "busy_ns": busy,
                        "idle_ns": end - starts[i][0] - busy})
    cost, work = max(spans), max(device["busy_ns"] for device in devices)
    schedule = {"zbsolve_schedule": 1, "profile": chain.profile, "method": method, "objective": "span",
                "status": "optimal" if cost == work else "feasible", "cost_ns": cost, "bound_ns": work,
                "gap": ratio(cost, work), "bubble_rate": ratio(cost, work), "span_ns": cost,
                "period_ns": period(chain, orders), "makespan_ns": max(ends), "devices": devices}
    with open(path, "w", encoding="ascii") as file:
        json.dump(schedule, file)
        file.write("\n")
    return cost
