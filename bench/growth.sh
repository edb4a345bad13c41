#!/usr/bin/env bash
# How instructions grow with the number of ops, counted by callgrind: a table on stdout, and with --json FILE the
# same numbers there. BUILD names the build directory. Exit 77 without valgrind; bench/README.md defines the columns.
set -euo pipefail
build=${BUILD:-build}
json=/dev/null
if [ "${1:-}" = --json ]; then json=$2; fi
if ! command -v valgrind >/dev/null; then
  echo "growth: needs valgrind (apt-get install valgrind)"
  exit 77
fi
sizes="8x42 16x64 16x256 32x256 64x256 64x1024" # devices x microbatches: 1,008 to 196,608 ops
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

instructions() { # PART DEVICES MICROBATCHES [uneven]: leaves "ops instructions" in $work/row
  local ops
  ops=$(valgrind --quiet --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=measured \
    "$build/bench/growth" "$@")
  echo "$ops $(sed -n 's/^\(summary\|totals\): *//p' "$work/out" | head -n 1)" >"$work/row"
}

for kind in greedy: greedy:uneven zb-v: zb-v:uneven v-half: v-min: 1f1b-v: v-blocks: timeline: timeline:uneven period: period:uneven; do
  for size in $sizes; do
    # shellcheck disable=SC2086
    instructions "${kind%:*}" "${size%x*}" "${size#*x}" ${kind#*:}
    echo "${kind%:*} ${kind#*:} ${size%x*} ${size#*x} $(cat "$work/row")"
  done
done | awk -v json="$json" '
  NF == 5 { $6 = $5; $5 = $4; $4 = $3; $3 = $2; $2 = "even" }
  BEGIN {
    printf "  %-9s %-7s %8s %13s %8s %13s %6s\n", "part", "stages", "devices", "microbatches", "ops", "instructions", "an op"
    printf "[" >json
  }
  {
    each = $6 / $5
    printf "  %-9s %-7s %8d %13d %8d %13d %6.1f\n", $1, $2, $3, $4, $5, $6, each
    printf "%s\n    {\"part\": \"%s\", \"stages\": \"%s\", \"devices\": %d, \"microbatches\": %d, \"ops\": %d, \"instructions\": %d, \"an_op\": %.2f}", \
      (NR > 1 ? "," : ""), $1, $2, $3, $4, $5, $6, each >json
    key = $1 " " $2
    if (!(key in first)) { order[++keys] = key; first[key] = each; first_ops[key] = $5 }
    last[key] = each; last_ops[key] = $5
  }
  END {
    printf "\n  ]" >json
    printf "\n  %-9s %-7s %8s %9s\n", "part", "stages", "ratio", "exponent"
    for (k = 1; k <= keys; k++) {
      key = order[k]
      ratio = last[key] / first[key]
      split(key, name, " ")
      printf "  %-9s %-7s %8.3f %9.3f\n", name[1], name[2], ratio, 1 + log(ratio) / log(last_ops[key] / first_ops[key])
      if (name[1] != "period" && ratio > 1.2) worse = 1
    }
    print (worse ? "  MISSED: one but the period takes more than 1.2 times as many instructions an op" : "  all but the period within 1.2 times linear")
    exit worse
  }'
