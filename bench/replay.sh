#!/usr/bin/env bash
# zbreplay's measured iterations beside the predicted ones, and what an instruction costs: bench/README.md, Replay.
# BUILD names the build directory, RUNNER a command that starts each run (RUNNER='chrt -f 50' on a machine that
# others use too). Exit 1 where a target is missed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
build=${BUILD:-build}
read -ra runner <<<"${RUNNER:-}"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
missed=0

# Runs three times. Prints predicted and the median of the measured iterations, and how many instructions there were.
replay() { # OPTION..
  for _ in 1 2 3; do
    "${runner[@]}" "$build/zbreplay" run "$@" --json || exit 1
  done |
    sed -nE 's/.*"iteration_ns": \{"predicted": ([0-9]+), "measured": ([0-9]+)\}.*"instructions": ([0-9]+).*/\1 \2 \3/p' |
    sort -n -k 2 | sed -n 2p
}

target() { # VALUE MOST
  if awk -v a="$1" -v b="$2" 'BEGIN {exit !(a <= b)}'; then echo met; else echo missed; fi
}

row() { # NAME VALUE MOST FORMAT
  local met
  met=$(target "$2" "$3")
  [ "$met" = met ] || missed=1
  printf "%-44s $4  at most $4: %s\n" "$1" "$2" "$3" "$met"
}

echo "sleep: measured / predicted iteration, Table 5, 1.5B, 2x memory"
for m in 24 32; do
  for optimizer in barrier post-validation; do
    for method in 1f1b zb-2p; do
      "$build/zbsolve" solve "configs/table5-1.5b-p8-m$m.json" --memory-limit 2x --method $method -q \
        -o "$scratch/$method.json" >"$scratch/said" || exit 1
      read -r predicted measured _ <<<"$(replay "$scratch/$method.json" --backend sleep --optimizer $optimizer --steps 4)"
      ratio=$(awk -v p="$predicted" -v m="$measured" 'BEGIN {printf "%.4f", m / p}')
      row "  m $m, $optimizer, $method" "$ratio" 1.02 %.3f
      if [ $method = 1f1b ]; then base="$predicted $measured"; fi
    done
    # shellcheck disable=SC2086
    gain=$(echo $base $predicted $measured |
      awk '{d = 100 * (1 - $3 / $1) - 100 * (1 - $4 / $2); printf "%.3f", d < 0 ? -d : d}')
    row "  m $m, $optimizer, gain of zb-2p, points off" "$gain" 1 %.3f
  done
done

cat >"$scratch/empty.json" <<END
{"zbsolve_profile": 1, "devices": 2, "microbatches": 64, "time": {"unit": "ns", "f": 0, "b": 0, "w": 0, "comm": 0}}
END
"$build/zbsolve" solve "$scratch/empty.json" --method zb-h1 -q -o "$scratch/empty-h1.json" >"$scratch/said" || exit 1
read -r predicted measured instructions <<<"$(replay "$scratch/empty-h1.json" --backend sleep --steps 40)"
us=$(awk -v ns="$measured" -v n="$instructions" 'BEGIN {printf "%.3f", ns / 1000 / (n / 40 / 2)}')
echo
echo "threads: us an instruction on its device, empty ops, 2 devices, 64 microbatches"
row "  zb-h1" "$us" 5 %.3f

cat >"$scratch/model.json" <<END
{"zbsolve_model": 1, "name": "medium", "blocks": 4, "hidden": 256, "heads": 4, "sequence": 128, "samples": 2}
END
"${runner[@]}" "$build/zbreplay" measure "$scratch/model.json" --devices 2 -o "$scratch/medium.json" || exit 1
"$build/zbsolve" solve "$scratch/medium.json" --method zb-2p -q -o "$scratch/medium-2p.json" >"$scratch/said" || exit 1
read -r predicted measured _ <<<"$(replay "$scratch/medium-2p.json" --model "$scratch/model.json" --clip 0 \
  --optimizer post-validation --steps 6)"
echo
echo "cpu: measured / predicted iteration, 2 devices, measured just before"
row "  zb-2p, post-validation" "$(awk -v p="$predicted" -v m="$measured" 'BEGIN {printf "%.4f", m / p}')" 1.05 %.3f
exit $missed
