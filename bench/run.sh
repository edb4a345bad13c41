#!/usr/bin/env bash
# Runs everything that bench/README.md defines: tables on stdout and in build/bench/results.txt, the same numbers in
# build/bench/results.json. BUILD names the build directory. Exit 1 where something missed its target.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} LC_ALL=C
out=$BUILD/bench
rm -f "$out/core.json" "$out/growth.json"

machine() {
  local cpu
  cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
  echo "${cpu:-unknown CPU}, $(nproc) processors, load $(cut -d ' ' -f 1 /proc/loadavg); $(${CC:-cc} --version | head -n 1)"
}

all() {
  local missed=0 code=0
  printf '%s\n\n' "$machine"
  "$out/core" --json "$out/core.json" || missed=1
  echo "growth of instructions"
  bench/growth.sh --json "$out/growth.json" || code=$?
  [ $code = 0 ] || [ $code = 77 ] || missed=1
  return $missed
}

machine=$(machine)
all | tee "$out/results.txt"
code=$?
part() { if [ -s "$out/$1.json" ]; then cat "$out/$1.json"; else echo null; fi; }
printf '{\n"machine": "%s",\n"core": %s,\n"growth": %s\n}\n' "$machine" "$(part core)" "$(part growth)" \
  >"$out/results.json.tmp" && mv "$out/results.json.tmp" "$out/results.json" || code=1
exit $code
