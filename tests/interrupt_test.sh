#!/usr/bin/env bash
# SIGINT at random moments of a solve: always a whole file that both programs accept, and nothing beside it but its
# proof. The second signal kills, and leaves the old file. 6 moments; 50 in a long run.
set -u
zbsolve=${ZBSOLVE:-build/zbsolve}
zbcheck=${ZBCHECK:-build/zbcheck}
work=${SCRATCH:-$(mktemp -d)}
times=6
if [ -n "${ZB_LONG:-}" ]; then times=50; fi
seed=${SEED:-$(($(date +%s) % 32768))}
RANDOM=$seed
passed=0 failed=0

fail() {
  failed=$((failed + 1))
  echo "FAILED (seed $seed) $*"
}

# Profiles that stay open for long enough, small and large.
profiles=(configs/uneven/uneven-05.json configs/uneven/uneven-23.json configs/uneven/uneven-28.json)
here=$work/interrupt
mkdir -p "$here"
for ((i = 0; i < times; i++)); do
  profile=${profiles[i % 3]}
  delay=$(printf '0.%03d' $((50 + RANDOM % 900)))
  # A shell ignores SIGINT for what it runs in the background, so the program must ask for it.
  "$zbsolve" solve "$profile" --time-limit 20 -q -o "$here/answer.json" >"$work/line" 2>"$work/said" &
  sleep "$delay"
  kill -INT $! 2>/dev/null
  began=$(date +%s%N)
  wait $!
  code=$?
  took_ms=$((($(date +%s%N) - began) / 1000000))
  "$zbsolve" check -q "$here/answer.json" >"$work/check" 2>&1
  first=$?
  "$zbcheck" -q "$here/answer.json" >>"$work/check" 2>&1
  second=$?
  others=$(find "$here" -type f ! -name answer.json ! -name answer.json.proof)
  if [ $code != 0 ] || [ $first != 0 ] || [ $second != 0 ] || [ -n "$others" ]; then
    fail "$profile after $delay s: exit code $code, checks $first and $second: $(cat "$work/said" "$work/check") $others"
  elif [ $took_ms -gt 2000 ]; then
    fail "$profile after $delay s: went on for $took_ms ms"
  else
    passed=$((passed + 1))
  fi
done

# Heuristics run to their end before the first schedule, here for about a second.
echo 'old' >"$here/old.json"
"$zbsolve" solve configs/table5-28.3b-p32-m256.json --microbatches 100000 -q -o "$here/old.json" >"$work/line" 2>"$work/said" &
sleep 0.3
kill -INT $! 2>/dev/null
sleep 0.1
kill -INT $! 2>/dev/null
wait $!
code=$?
if [ $code = 130 ] && [ "$(cat "$here/old.json")" = old ]; then
  passed=$((passed + 1))
else
  fail "the second signal: exit code $code, $(head -c 60 "$here/old.json")"
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
