#!/usr/bin/env bash
# What the exact engine reaches, set by set: bench/exact.sh table5|curve|below|uneven|public|scale|all [OPTION..]
#
# The options are those of bench/exact.c (--limit S, --count N, --seed N, --threads N). Tables go to stdout and to
# build/bench/exact-SET.txt, the same numbers to build/bench/exact-SET.json; BUILD names the build directory. Builds
# what it measures first. Exit 1 where a check failed or a goal is missed. bench/README.md defines all of it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} LC_ALL=C
all="public table5 uneven below curve scale" # quick ones first

if [ $# = 0 ]; then echo "usage: bench/exact.sh table5|curve|below|uneven|public|scale|all [--limit S] [--count N]" >&2; exit 2; fi
sets=$1
shift
if [ "$sets" = all ]; then sets=$all; fi

make -s --no-print-directory "BUILD=$BUILD" "$BUILD/zbsolve" "$BUILD/zbcheck" "$BUILD/bench/exact" >&2 || exit 1
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
machine="${cpu:-unknown CPU}, $(nproc) processors, load $(cut -d ' ' -f 1 /proc/loadavg)"
missed=0
for set in $sets; do
  out=$BUILD/bench/exact-$set
  rm -f "$out.json"
  { echo "$machine"; "$BUILD/bench/exact" "$set" --json "$out.json" "$@"; } | tee "$out.txt"
  code=$?
  if [ $code = 2 ]; then exit 2; fi
  if [ $code != 0 ]; then missed=1; fi
done
exit $missed
