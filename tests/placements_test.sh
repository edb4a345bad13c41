#!/usr/bin/env bash
# Bounds of random placements: what the window engine proves, zbcheck redoes from its own reading of the rules, and
# a bound that is one too large it refuses. So it does where the bound is to hold by fluid-fronts; the optimum it
# then accepts, unless pouring W costs less. 60 profiles; 1,000 in a long run, 15 where another build has passed 60.
set -u
zbsolve=${ZBSOLVE:-build/zbsolve}
zbcheck=${ZBCHECK:-build/zbcheck}
work=${SCRATCH:-$(mktemp -d)}
profiles=60
if [ -n "${ZB_AGAIN:-}" ]; then profiles=15; fi
if [ -n "${ZB_LONG:-}" ]; then profiles=1000; fi
seed=${SEED:-$(($(date +%s) % 32768))}
RANDOM=$seed
passed=0 failed=0 proven=0 refused=0 poured=0 poured_less=0

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
  alike=$((RANDOM % 3)) # 0: W differ
  if [ $alike = 0 ]; then w=$(values $s 0 6); else w=$((RANDOM % 7)); fi
  cat <<END
{"zbsolve_profile": 1, "devices": $p, "microbatches": $m, "chunks": $v, "placement": $placement,
 "time": {"unit": "ns", "f": $(values $s 1 9), "b": $(values $s 0 9), "w": $w, "comm": $((RANDOM % 3))},
 "memory": {"unit": "B", "f": $kept, "b": -1, "w": -$((kept - 1)), "limit": $((v * kept * (2 + RANDOM % 2 * m) / 2))}}
END
}

# raised BOUND [FIELD]: a file with that bound and no schedule
raised() {
  echo '{"zbsolve_schedule": 1, "method": "window", "objective": "'"$objective"'", "status": "unknown",'
  echo ' "bound_ns": '"$1,${2:-}"' "profile": '"$(cat "$here/profile.json")"'}'
}

# ask BOUND: code and words of zbcheck on that bound by fluid-fronts; `zbsolve check` ends alike
ask() {
  local other
  raised "$1" ' "relaxation": "fluid-fronts",' >"$here/raised.json"
  said=$("$zbcheck" "$here/raised.json" 2>&1)
  code=$?
  "$zbsolve" check -q "$here/raised.json" >"$here/said" 2>&1
  other=$?
  if [ $other != $code ]; then
    fail "fluid-fronts, $objective $1: zbcheck ends with $code: $said; zbsolve check with $other: $(cat "$here/said")"
  fi
}

# by_fluid_fronts OPTIMUM: asks for it, and for 1 ns more, where that search is for the profile
by_fluid_fronts() {
  local said code
  ask $(($1 + 1))
  case "$code $objective $alike $placement $said" in
    '4 period '*'which is for span and makespan'*) return ;;
    '4 '*' 0 '*'but W of stages '*) return ;;
    "4 span $alike ["*'but the span depends on when device '*) return ;;
    '4 '*"with W poured a schedule of cost $1 or less was found"*) poured=$((poured + 1)) ;;
    *) fail "fluid-fronts, $objective $1 + 1: exit code $code: $said" ;;
  esac
  ask "$1"
  case "$code $said" in
    '0 holds: no schedule, bound '*) ;;
    '4 '*"with W poured a schedule of cost $(($1 - 1)) or less was found"*) poured_less=$((poured_less + 1)) ;;
    *) fail "fluid-fronts, $objective $1: exit code $code: $said" ;;
  esac
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
  raised $((bound + 1)) >"$here/raised.json"
  for program in "$zbcheck" "$zbsolve check"; do
    $program -q "$here/raised.json" >"$here/said" 2>&1
    code=$?
    if [ $code = 4 ]; then refused=$((refused + 1)); else fail "$program, $objective $bound + 1: exit code $code: $(cat "$here/said")"; fi
  done
  by_fluid_fronts "$bound"
done
# A run in which hardly anything is proven has tested nothing.
if [ $((2 * proven)) -lt $profiles ]; then fail "only $proven of $profiles are proven optimal"; fi
if [ $profiles -ge 60 ] && [ $((6 * poured)) -lt $profiles ]; then
  fail "only $poured of $profiles were asked for by fluid-fronts"
fi
if [ $profiles -ge 60 ] && [ $((4 * poured_less)) -gt "$poured" ]; then
  fail "pouring W costs less than $poured_less of $poured optima"
fi
echo "$proven of $profiles proven, $refused bounds refused; $poured by fluid-fronts, $poured_less of them cost less (seed $seed)"
echo "$((passed + refused + 2 * poured)) passed, $failed failed"
[ $failed = 0 ]
