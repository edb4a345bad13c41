#!/usr/bin/env bash
# zbsolve beside OR-Tools CP-SAT and HiGHS, in one run: bench/peers.sh [--count N] [--limit S] [--threads N] [--seed N]
# [--peers cpsat,highs,highs-windows]
#
# The peers come from PyPI into a virtual environment under the build directory; nothing of them is kept in the tree.
# The table goes to stdout and to build/bench/peers.txt, the same numbers to build/bench/peers.json. Exit 77 with a word
# where python3 is missing or PyPI is out of reach, 1 where something contradicts or a goal is missed.
# bench/README.md defines all of it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} LC_ALL=C
venv=$BUILD/peers-venv
wanted="ortools==9.15.6755 highspy==1.16.0"

skip() { echo "peers: skipped, $1"; exit 77; }

command -v python3 >/dev/null || skip "needs python3"
if [ "$(cat "$venv/wanted" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv" >/dev/null 2>&1 || skip "python3 cannot make a virtual environment (apt-get install python3-venv)"
  # shellcheck disable=SC2086
  "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 15 $wanted >"$venv/log" 2>&1 ||
    skip "PyPI is out of reach, or has no $wanted for this machine ($venv/log)"
  echo "$wanted" >"$venv/wanted"
fi

make -s --no-print-directory "BUILD=$BUILD" "$BUILD/zbsolve" "$BUILD/zbcheck" "$BUILD/bench/uneven" \
  "$BUILD/bench/write_lp" >&2 || exit 1
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
{
  echo "${cpu:-unknown CPU}, $(nproc) processors, load $(cut -d ' ' -f 1 /proc/loadavg); $wanted"
  "$venv/bin/python" -B bench/peers.py --json "$BUILD/bench/peers.json" "$@"
} | tee "$BUILD/bench/peers.txt"
