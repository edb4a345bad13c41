"""HiGHS on a written integer program: peers_highs.py PROGRAM.lp LIMIT_S THREADS

The first line of the program says how long a tick is. Prints one JSON object. What HiGHS calls optimal is optimal
within its tolerances.
"""

import json
import math
import re
import sys
import time

import highspy


def main(path, limit_s, threads):
    with open(path, encoding="ascii") as file:
        tick = int(re.search(r"ticks of (\d+) ns", file.readline()).group(1))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", int(threads))
    highs.setOptionValue("time_limit", float(limit_s))
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 0.5)  # costs are whole ticks
    if highs.readModel(path) != highspy.HighsStatus.kOk:
        print(json.dumps({"status": "unreadable", "closed": False, "seconds": 0.0, "bound_ns": 0}))
        return
    begin = time.monotonic()
    highs.run()
    seconds = time.monotonic() - begin
    status, info = highs.getModelStatus(), highs.getInfo()
    result = {"status": highs.modelStatusToString(status).lower(), "seconds": seconds,
              "closed": status == highspy.HighsModelStatus.kOptimal, "nodes": info.mip_node_count}
    bound = info.mip_dual_bound
    result["bound_ns"] = math.ceil(bound - 1e-6) * tick if math.isfinite(bound) and bound > 0 else 0
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        result["cost_ns"] = round(info.objective_function_value) * tick
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
