#!/usr/bin/env bash
# bench/gpu.sh where there is no GPU: says so. A long run goes through all of it with the stand-in device.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
check() { # WHAT CONDITION..
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $what"; tail -n 20 "$scratch/out"; fi
}
if ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
  bench/gpu.sh >"$scratch/out" 2>&1
  code=$?
  check "no GPU: exit code $code" test $code = 77
  check "no GPU: says so" grep -qx 'no GPU' "$scratch/out"
fi
if [ -n "${ZB_LONG:-}" ] && [ -x "$BUILD/standin/zbreplay" ]; then
  ZB_GPU_STANDIN=1 bench/gpu.sh >"$scratch/out" 2>&1
  code=$?
  check "stand-in: exit code $code" test $code = 0
  check "stand-in: nothing is wrong" grep -q ' checks in .*, 0 wrong' "$scratch/out"
  for part in right kernels 'one GPU' '4 GPUs'; do check "stand-in: $part" grep -qx "$part" "$scratch/out"; done
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
