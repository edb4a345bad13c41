#!/usr/bin/env bash
# Bounds of random placements: what the window engine proves, zbcheck redoes from its own reading of the rules, and
# a bound that is one too large it refuses. 40 profiles; 1,000 in a long run, 10 where another build has passed 40.
set -u
zbsolve=${ZBSOLVE:-build/zbsolve}
zbcheck=${ZBCHECK:-build/zbcheck}
work=${SCRATCH:-$(mktemp -d)}
profiles=40
if [ -n "${ZB_AGAIN:-}" ]; then profiles=10; fi
if [ -n "${ZB_LONG:-}" ]; then profiles=1000; fi
seed=${SEED:-$(($(date +%s) % 32768))}
RANDOM=$seed
passed=0 failed=0 proven=0 refused=0

here=$work/placements
mkdir -p "$here"

fail() {
  failed=$((failed + 1))
  echo "FAILED (seed $seed) profile $i: $*"
  sed 's/^/  /' "$here/profile.json"
}

values() { # COUNT LOW HIGH
  local n list=
  for ((n = 0; n < $1; n++)); do list+="${list:+, }$(($2 + RANDOM % ($3 - $2 + 1)))"; done
  echo "[$list]"
}

write_profile() {
  local p=$((2 + RANDOM % 2)) v=$((2 + RANDOM % 2)) m=$((1 + RANDOM % 3)) s kept device
  local -a devices
  case $((RANDOM % 3)) in
    0) v=2 placement='"v"' ;;
    1) placement='"loop"' ;;
    *)
      devices=()
      for ((device = 0; device < p; device++)); do
        for ((s = 0; s < v; s++)); do devices+=("$device"); done
      done
      placement=$(printf '%s\n' "${devices[@]}" | shuf --random-source=<(yes $RANDOM) | paste -sd,)
      placement="[$placement]"
      ;;
  esac
  s=$((p * v))
  kept=$((2 + RANDOM % 4))
  cat <<END
{"zbsolve_profile": 1, "devices": $p, "microbatches": $m, "chunks": $v, "placement": $placement,
 "time": {"unit": "ns", "f": $(values $s 1 9), "b": $(values $s 0 9), "w": $(values $s 0 6), "comm": $((RANDOM % 3))},
 "memory": {"unit": "B", "f": $kept, "b": -1, "w": -$((kept - 1)), "limit": $((v * kept * (2 + RANDOM % 2 * m) / 2))}}
END
}

objectives=(span makespan period)
for ((i = 0; i < profiles; i++)); do
  objective=${objectives[RANDOM % 3]}
  answer=$here/answer.json
  write_profile >"$here/profile.json"
  line=$("$zbsolve" solve "$here/profile.json" -o "$answer" --method window --objective "$objective" --time-limit 5 -q 2>"$here/said")
  code=$?
  "$zbcheck" -q "$answer" >>"$here/said" 2>&1
  checked=$?
  if [ $code != 0 ] || [ $checked != 0 ]; then
    fail "$objective: exit codes $code and $checked: $(cat "$here/said")"
    continue
  fi
  passed=$((passed + 1))
  read -r _ status _ bound <<<"$line"
  [ "$status" = OPTIMAL ] || continue
  proven=$((proven + 1))
  cat >"$here/raised.json" <<END
{"zbsolve_schedule": 1, "method": "window", "objective": "$objective", "status": "unknown", "bound_ns": $((bound + 1)),
 "profile": $(cat "$here/profile.json")}
END
  for program in "$zbcheck" "$zbsolve check"; do
    $program -q "$here/raised.json" >"$here/said" 2>&1
    code=$?
    if [ $code = 4 ]; then refused=$((refused + 1)); else fail "$program, $objective $bound + 1: exit code $code: $(cat "$here/said")"; fi
  done
done
# A run in which hardly anything is proven has tested nothing.
if [ $((2 * proven)) -lt $profiles ]; then fail "only $proven of $profiles are proven optimal"; fi
echo "$proven of $profiles proven, $refused bounds refused (seed $seed)"
echo "$((passed + refused)) passed, $failed failed"
[ $failed = 0 ]
