#!/usr/bin/env bash
# Does PyTorch itself run what we write, and do we read what it writes? For each release: `make test-torch`.
#
#   tests/torch/run.sh [RELEASE..]     default: 2.15.0 2.6.0, each in its own virtual environment under build/
#
# Our files: torch loads and validates every schedule of every method, and trains a small model in a choice of them,
# in 2 and 4 processes over gloo, to the losses and parameters of the same model without a pipeline. Its files: each
# built-in schedule, dumped, is imported, checked, timed and held against zbcheck. A file that must fail does.
# Exit 77, with a word, where a release cannot be had.
set -u
cd "$(dirname "$0")/../.." || exit 1
top=$PWD
build=$top/${BUILD:-build}
zbsolve=$build/zbsolve
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

count() { # reads lines "ok .." and "FAIL ..", and shows all others and the failures
  local line
  while IFS= read -r line; do
    case $line in
      'ok '*) passed=$((passed + 1)) ;;
      'FAIL '*) failed=$((failed + 1)); printf '%s\n' "$line" ;;
      *) printf '      %s\n' "$line" ;;
    esac
  done
}

fail() { # TEXT
  failed=$((failed + 1))
  printf 'FAIL  %s\n' "$1"
}

environment() { # RELEASE
  local folder=$build/torch-$1
  if "$folder/bin/python" -c 'import torch' >/dev/null 2>&1; then return; fi
  echo "torch $1 into $folder (about 5 GB)" >&2
  rm -rf "$folder"
  if python3 -m venv "$folder" && nice "$folder/bin/pip" install -q "torch==$1" numpy >"$scratch/pip" 2>&1; then return; fi
  tail -n 3 "$scratch/pip" >&2
  rm -rf "$folder"
  echo "torch $1 cannot be had here"
  exit 77
}

profile() { # DEVICES MICROBATCHES
  printf '{"zbsolve_profile": 1, "devices": %d, "microbatches": %d,\n' "$1" "$2"
  printf ' "time": {"unit": "ms", "f": 3, "b": 4, "w": 2, "comm": 0.5},\n'
  printf ' "memory": {"unit": "MiB", "f": 8, "b": -3, "w": -5}}\n'
}

cases=$scratch/cases
add_case() { # NAME FILE FORMAT DEVICES PLACEMENT MICROBATCHES: one more object in the list $cases
  local stages=$4 rank_of='' s r
  [ "$5" = chain ] || stages=$((2 * $4))
  for ((s = 0; s < stages; s++)); do
    r=$((s % $4))
    if [ "$5" = v ] && [ $s -ge "$4" ]; then r=$((2 * $4 - 1 - s)); fi
    rank_of="$rank_of${rank_of:+, }$r"
  done
  printf '%s{"name": "%s", "file": "%s", "format": "%s", "stages": %d, "microbatches": %d, "rank_of": [%s]}' \
    "$([ -e "$cases" ] && echo ', ')" "$1" "$2" "$3" "$stages" "$6" "$rank_of" >>"$cases"
}

# Every file that we write of a method's schedule, as cases of this release.
ours() { # RELEASE DEVICES MICROBATCHES METHOD PLACEMENT [MEMORY-LIMIT]
  local release=$1 p=$2 m=$3 stem=$scratch/$4-p$2-m$3 format
  if [ ! -e "$stem.json" ]; then
    profile "$p" "$m" >"$scratch/profile.json"
    "$zbsolve" solve "$scratch/profile.json" --method "$4" --memory-limit "${6:-none}" --time-limit 5 -q -o "$stem.json" \
      >/dev/null || { fail "$4 of $p x $m is not solved"; return; }
  fi
  for format in torch-csv torch-comms-csv; do
    "$zbsolve" export "$stem.json" --to $format --target "${release%.*}" -q -o "$stem-$release-$format"
    add_case "${stem##*/}-$format" "$stem-$release-$format" \
      "$([ $format = torch-csv ] && echo compute_only || echo compute_comms)" "$p" "$5" "$m"
  done
}

python_of() { echo "$build/torch-$1/bin/python"; }

accept() { # RELEASE
  local p m
  rm -f "$cases"
  for p in 2 3 4 8; do
    for m in 1 $p $((2 * p + 1)); do
      for method in gpipe 1f1b zb-h1 zb-h2 greedy zb-1p zb-2p; do ours "$1" $p "$m" $method chain; done
      for method in 1f1b-interleaved; do ours "$1" $p "$m" $method loop; done
      for method in 1f1b-v zb-v v-half v-min v-blocks; do ours "$1" $p "$m" $method v; done
    done
  done
  { echo '['; cat "$cases"; echo ']'; } >"$scratch/list"
  echo "torch $1: load and validate"
  timeout 300 "$(python_of "$1")" tests/torch/schedules.py accept "$scratch/list" >"$scratch/said" 2>"$scratch/errors" ||
    tail -n 5 "$scratch/errors"
  count <"$scratch/said"
}

train() { # RELEASE DEVICES MICROBATCHES
  rm -f "$cases"
  ours "$1" "$2" "$3" 1f1b chain
  ours "$1" "$2" "$3" zb-h1 chain
  ours "$1" "$2" "$3" zb-2p chain
  ours "$1" "$2" "$3" window chain 1x
  ours "$1" "$2" "$3" 1f1b-interleaved loop
  ours "$1" "$2" "$3" zb-v v
  ours "$1" "$2" "$3" v-half v
  { echo '['; cat "$cases"; echo ']'; } >"$scratch/list"
  echo "torch $1: train in $2 processes"
  timeout 1200 "$(python_of "$1")" tests/torch/train.py "$scratch/list" "$2" >"$scratch/said" 2>&1
  count <"$scratch/said"
}

# Wrong targets in the pipeline must be noticed on every rank.
notice() { # RELEASE
  rm -f "$cases"
  ours "$1" 2 5 zb-h1 chain
  { echo '['; sed 's/"rank_of"/"spoil": true, "rank_of"/g' "$cases"; echo ']'; } >"$scratch/list"
  timeout 300 "$(python_of "$1")" tests/torch/train.py "$scratch/list" 2 >"$scratch/said" 2>&1
  if [ "$(grep -c '^FAIL.*losses differ.*parameters of stage\|^FAIL.*parameters of stage.*losses differ' "$scratch/said")" = 2 ]; then
    passed=$((passed + 1))
  else
    fail "torch $1: wrong targets go unnoticed"
    cat "$scratch/said"
  fi
}

theirs() { # RELEASE
  local file name p m format
  mkdir -p "$scratch/theirs-$1"
  echo "torch $1: its own schedules"
  timeout 300 "$(python_of "$1")" tests/torch/schedules.py dump "$scratch/theirs-$1" >"$scratch/list" 2>"$scratch/errors" ||
    { tail -n 5 "$scratch/errors"; failed=$((failed + 1)); }
  while IFS= read -r file; do
    name=$(basename "$file" .csv)
    p=$(sed -E 's/.*-p([0-9]+)-.*/\1/' <<<"$name") m=$(sed -E 's/.*-m([0-9]+).*/\1/' <<<"$name") format=torch-csv
    case $name in *.comms) format=torch-comms-csv ;; esac
    profile "$p" "$m" >"$scratch/profile.json"
    if "$zbsolve" import "$file" --from $format --profile "$scratch/profile.json" -q -o "$scratch/theirs.json" \
      >/dev/null 2>"$scratch/errors" && "$build/zbcheck" -q "$scratch/theirs.json" >>"$scratch/errors" 2>&1; then
      passed=$((passed + 1))
    else
      fail "$name: $(tail -n 1 "$scratch/errors")"
    fi
  done <"$scratch/list"
}

[ $# != 0 ] || set -- 2.15.0 2.6.0
for release in "$@"; do environment "$release"; done
for release in "$@"; do
  accept "$release"
  theirs "$release"
  notice "$release"
  train "$release" 2 5
  train "$release" 4 8
done
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
