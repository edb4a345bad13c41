#!/usr/bin/env bash
# Every profile in configs/ within a short time: a checked schedule with its bound, and the word optimal nowhere without
# a proof that the second program redoes. A long run takes the limit of 1 s of the contract, also under 0.6x, and holds
# it to its quarter of a second.
set -u
zbsolve=${ZBSOLVE:-build/zbsolve}
zbcheck=${ZBCHECK:-build/zbcheck}
work=${SCRATCH:-$(mktemp -d)}
limit_s=0.2
if [ -n "${ZB_LONG:-}" ]; then limit_s=1; fi
passed=0 failed=0 optimal=0

fail() {
  failed=$((failed + 1))
  echo "FAILED $*"
}

# solve NAME PROFILE OPTION..
solve() {
  local name=$1 profile=$2 line code said status began took_ms
  shift 2
  began=$(date +%s%N)
  line=$("$zbsolve" solve "$profile" --time-limit "$limit_s" -q -o "$work/$name.json" "$@" 2>"$work/said")
  code=$?
  took_ms=$((($(date +%s%N) - began) / 1000000))
  if [ $code != 0 ] || [ -s "$work/said" ]; then
    fail "$name: exit code $code: $line $(cat "$work/said")"
    return
  fi
  said=$("$zbcheck" "$work/$name.json" 2>&1)
  code=$?
  status=$(sed -nE 's/.*"status": "([a-z]+)".*/\1/p' "$work/$name.json")
  case $status in
    optimal) optimal=$((optimal + 1)) ;;
    feasible) ;;
    *) fail "$name: status $status" ;;
  esac
  if [ $code != 0 ]; then
    fail "$name ($status): zbcheck: $said"
  elif [ -n "${ZB_LONG:-}" ] && [ $took_ms -gt 1250 ]; then
    fail "$name: took $took_ms ms"
  else
    passed=$((passed + 1))
  fi
  rm -f "$work/$name.json" "$work/$name.json.proof"
}

for profile in configs/*.json configs/uneven/*.json; do
  name=$(basename "$profile" .json)
  solve "$name" "$profile"
  if [ -n "${ZB_LONG:-}" ] && grep -q '"memory"' "$profile"; then solve "$name-0.6x" "$profile" --memory-limit 0.6x; fi
done
if [ $optimal -lt $((passed / 2)) ]; then fail "only $optimal of $passed are optimal"; fi
echo "$optimal optimal"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
