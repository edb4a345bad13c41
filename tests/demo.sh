#!/bin/sh
# What `make demo` shows: one published setting solved, checked by the second program, compared with every
# classic schedule, drawn, and put into a report; then a small model measured, scheduled and trained, every bit checked.
# Each command is printed before it runs. Run from the top of the tree.
set -eu
build=${BUILD:-build}
profile=configs/table5-1.5b-p8-m24.json
schedule=$build/demo/schedule.json

step() {
  printf '\n$ %s\n' "$*"
  "$@"
}

mkdir -p "$build/demo"
step "$build/zbsolve" solve "$profile" --memory-limit 2x -o "$schedule"
step "$build/zbcheck" "$schedule"
step "$build/zbsolve" compare "$profile" --memory-limit 2x
step "$build/zbsolve" show "$schedule"
step "$build/zbsolve" export "$schedule" --to html --time-limit 12 -q -o "$build/demo/report.html"
printf '\nthe report, for a browser: %s/demo/report.html\n' "$build"

model=configs/models/small.json
step "$build/zbreplay" measure $model --devices 2 -o "$build/demo/measured.json"
step "$build/zbsolve" solve "$build/demo/measured.json" --time-limit 5 -o "$build/demo/replayed.json"
step "$build/zbreplay" run "$build/demo/replayed.json" --model $model --steps 5 --verify
