"""zbsolve beside OR-Tools CP-SAT and HiGHS on the same instances in the same run; bench/peers.sh sets it up.

    peers.py [--count N] [--limit S] [--threads N] [--seed N] [--peers A,B,..] [--json FILE]

Run at the top of the tree; BUILD names the build directory. bench/README.md defines rows and columns. Every instance is
solved by the command line first and checked; the peers then get the profile that is written in that schedule. Exit 1
where a check failed, results contradict each other, or a goal is missed.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path(os.environ.get("BUILD", "build"))
FOLDER = BUILD / "bench" / "peers-files"
PEERS = ("cpsat", "highs", "highs-windows")
GRACE_S = 60  # reading and building come on top of a peer's own limit
FACTOR = 50  # goal: how many times faster than CP-SAT, in the geometric mean


def draw(seed, names, count):
    """`count` of the names; the same seed draws the same ones everywhere."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).hexdigest())[:count]


def list_instances(seed):
    """60 of the sets of bench/exact.c, as (set, profile path, limit or None): 30 uneven, 30 of the others."""
    known = json.loads(Path("bench/published-known.json").read_text())
    table5 = [f"configs/{name}.json" for name in known["table5"]]
    subprocess.run([BUILD / "bench" / "uneven", "--seed", str(seed), "--count", "200", "-d", FOLDER], check=True)
    sets = [
        ("uneven", 30, [(f"{FOLDER}/uneven-{seed}-{k}.json", None) for k in range(200)]),
        ("curve", 8, [(path, f"{1 + k / 8:g}x") for path in table5 for k in range(1, 17) if k != 8]),
        ("below", 8, [(path, f"0.{k}x") for path in table5 for k in range(4, 10)]),
        ("table5", 6, [(path, f"{k}x") for path in table5 for k in (1, 2)]),
        ("public", 8, list(public_profiles())),
    ]
    instances = []
    for name, count, members in sets:
        members = {f"{path} {limit}": (name, path, limit) for path, limit in members}
        instances += [members[key] for key in draw(seed, members, count)]
    return instances


def public_profiles():
    for path in sorted(Path("configs").glob("*.json")):
        profile = json.loads(path.read_text())
        if path.name.startswith("table") or profile.get("placement", "chain") != "chain":
            continue
        yield str(path), None
        memory = profile.get("memory", {})
        if isinstance(memory.get("limit"), (int, float)):
            unit = "MB" if memory.get("unit", "unit") == "unit" else memory["unit"]
            yield str(path), f"{memory['limit'] / 2:.15g}{unit}"


def ops_of(instance):
    profile = json.loads(Path(instance[1]).read_text())
    return 3 * profile["devices"] * profile["microbatches"]


def zbcheck(path):
    return subprocess.run([BUILD / "zbcheck", path], capture_output=True, check=False).returncode


def run_zbsolve(instance, options, *more):
    """Header of the solve with its wall-clock seconds, from start to exit; `good` says that zbcheck agrees."""
    _, path, limit = instance
    schedule = FOLDER / "zbsolve.json"
    schedule.unlink(missing_ok=True)
    command = [BUILD / "zbsolve", "solve", path, "--json", "-q", "-o", schedule, "--time-limit", str(options.limit),
               "--threads", str(options.threads), *more] + (["--memory-limit", limit] if limit else [])
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    result = json.loads(done.stdout) if done.stdout else {"status": "failed"}
    result["seconds"] = seconds
    result["closed"] = result["status"] == "optimal"
    result["good"] = done.returncode == 0 and zbcheck(schedule) == 0
    return result, schedule


def run_cpsat(profile, options):
    schedule = FOLDER / "cpsat.json"
    schedule.unlink(missing_ok=True)
    command = [sys.executable, "bench/peers_cpsat.py", profile, str(options.limit), str(options.threads), schedule]
    result = run_command(command, options)
    if "cost_ns" in result:
        # Orders timed anew can only be as good or better; the schedule of a closed model is exactly its optimum.
        cost, timed = result["cost_ns"], result["schedule_ns"]
        result["good"] = zbcheck(schedule) == 0 and (timed == cost if result["closed"] else timed <= cost)
        result["cost_ns"] = timed
    return result


def run_highs(profile, greedy_ns, windows, options):
    program = FOLDER / "program.lp"
    writer = BUILD / "bench" / "write_lp"
    command = [writer, profile, "profile", str(greedy_ns), program] + ([] if windows else ["--no-windows"])
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return {"status": "no program", "closed": False, "seconds": options.limit, "bound_ns": 0}
    command = [sys.executable, "bench/peers_highs.py", program, str(options.limit), str(options.threads)]
    return run_command(command, options)


def run_command(command, options):
    """The JSON that a peer prints last. One that does not come back is stopped, and stays open."""
    result = {"closed": False, "seconds": options.limit, "bound_ns": 0}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * options.limit + GRACE_S)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"status": "stopped", **result}
    except (IndexError, ValueError):
        return {"status": "failed", **result, "trouble": done.stderr[-400:]}


def contradictions(results):
    """Pairs of a bound and a smaller cost, and optima that differ."""
    found = []
    for a, one in results.items():
        for b, other in results.items():
            if one.get("bound_ns", 0) > other.get("cost_ns", math.inf):
                found.append(f"{a}'s bound {one['bound_ns']} above {b}'s cost {other['cost_ns']}")
    return found


def run_instance(instance, options):
    # A heuristic's cost is what a user of the integer program would have as a cutoff.
    greedy, _ = run_zbsolve(instance, options, "--method", "greedy")
    results = {}
    results["zbsolve"], schedule = run_zbsolve(instance, options)
    if not results["zbsolve"]["good"]:
        return results
    profile = FOLDER / "profile.json"
    profile.write_text(json.dumps(json.loads(schedule.read_text())["profile"]))
    for peer in options.peers:
        if peer == "cpsat":
            results[peer] = run_cpsat(profile, options)
        else:
            results[peer] = run_highs(profile, greedy.get("cost_ns", 0), peer == "highs-windows", options)
    return results


def show(result):
    if result["closed"]:
        return f"{result['seconds']:.3f} s"
    if "cost_ns" not in result:
        return result["status"]
    cost, bound = result["cost_ns"], result["bound_ns"]
    return f"{cost} {100 * (cost - bound) / cost:.2f}%"


def factor(results, peer, limit):
    """How many times longer than zbsolve; where one of them does not close, it counts with the limit."""
    spent = [min(r["seconds"], limit) if r["closed"] else limit for r in (results[peer], results["zbsolve"])]
    return spent[0] / spent[1]


def summarize(rows, options):
    """Per peer: closed, geometric mean of the factor, and what it closes sooner than zbsolve. Prints and returns."""
    summary = {"zbsolve": {"closed": sum(row["results"]["zbsolve"]["closed"] for row in rows)}}
    print(f"\n  zbsolve closes {summary['zbsolve']['closed']} of {len(rows)}")
    for peer in options.peers:
        pairs = [row["results"] for row in rows if peer in row["results"]]
        closed = sum(results[peer]["closed"] for results in pairs)
        mean = math.exp(sum(math.log(factor(r, peer, options.limit)) for r in pairs) / max(len(pairs), 1))
        sooner = sum(r[peer]["closed"] and not (r["zbsolve"]["closed"] and r["zbsolve"]["seconds"] < r[peer]["seconds"])
                     for r in pairs)
        summary[peer] = {"closed": closed, "geometric_mean": mean, "sooner_than_zbsolve": sooner}
        print(f"  {peer} closes {closed} of {len(pairs)}, {sooner} of them no later than zbsolve; "
              f"it takes {mean:.1f} times as long (geometric mean)")
    return summary


def missed_goals(summary, options):
    if "cpsat" not in options.peers:
        return []
    missed = []
    if summary["cpsat"]["sooner_than_zbsolve"]:
        missed.append("an instance that CP-SAT closes takes zbsolve no less time")
    if summary["cpsat"]["geometric_mean"] <= FACTOR:
        missed.append(f"the geometric mean against CP-SAT is not above {FACTOR}")
    return missed


def read_options():
    parser = argparse.ArgumentParser(prog="bench/peers.sh", allow_abbrev=False)
    parser.add_argument("--count", type=int, default=60, help="the N instances with the fewest ops (60: all)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each solver and instance (60)")
    parser.add_argument("--threads", type=int, default=2, help="of each solver (2)")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing and of the uneven profiles (1)")
    parser.add_argument("--peers", default=",".join(PEERS), help="some of " + ",".join(PEERS))
    parser.add_argument("--json", type=Path, help="where the same numbers go as JSON")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    if not set(options.peers) <= set(PEERS) or options.limit <= 0 or options.count <= 0:
        parser.error("no such peer, limit or count")
    return options


def main():
    options = read_options()
    FOLDER.mkdir(parents=True, exist_ok=True)
    instances = sorted(list_instances(options.seed), key=ops_of)[: options.count]
    print(f"zbsolve beside its peers: {len(instances)} instances, {options.limit:g} s and {options.threads} threads each")
    print(f"  {'set':7} {'profile':32} {'limit':>10} {'ops':>6} " +
          " ".join(f"{name:>22}" for name in ("zbsolve", *options.peers)))
    rows, wrong = [], 0
    for instance in instances:
        results = run_instance(instance, options)
        trouble = contradictions(results) + [f"{name}'s schedule does not hold" for name, result in results.items()
                                             if not result.get("good", True)]
        wrong += bool(trouble)
        name, path, limit = instance
        print(f"  {name:7} {Path(path).stem:32} {limit or '-':>10} {ops_of(instance):>6} " +
              " ".join(f"{show(result):>22}" for result in results.values()), flush=True)
        for line in trouble:
            print(f"    WRONG: {line}", flush=True)
        rows.append({"set": name, "profile": Path(path).stem, "limit": limit, "ops": ops_of(instance),
                     "results": results, "wrong": trouble})
    summary = summarize(rows, options)
    missed = missed_goals(summary, options)
    for line in missed:
        print(f"  MISSED: {line}")
    if options.json:
        text = {"limit_s": options.limit, "threads": options.threads, "seed": options.seed, "rows": rows,
                "summary": summary, "missed": missed}
        options.json.write_text(json.dumps(text, indent=1) + "\n")
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    sys.exit(main())
