#!/usr/bin/env bash
# Runs the tests of a build and ends with one line that sums them: N passed, N failed[, N skipped].
#
#   tests/run.sh fast|long|golden [PATTERN]     BUILD names the build directory; PATTERN: only these, e.g. 'cli/*'
#
#   unit/NAME      build/tests/NAME, a cmocka program; each of its tests counts
#   fuzz/NAME      build/fuzz/NAME reads the kept corpus and lives
#   NAME_test.sh   tests/NAME_test.sh (long: tests/NAME_long.sh too), run at the top of the tree. Exit 0 passes, 77
#                  skips (its last line says why); where its last line is a sum like ours, that counts
#   cli/NAME       tests/cli/NAME.sh, run in a directory of its own; its output must be NAME.out, its errors NAME.err
#                  and its exit code what NAME.code says (no .err: none; no .code: 0). bugs/NAME likewise.
#                  Every schedule it leaves goes through zbcheck, except files called bad*
#   parse/NAME     tests/parse/NAME.json is refused by `zbsolve solve` with the one line NAME.err and exit code 2,
#                  or what NAME.code says, and leaves no schedule
#   import/NAME    `zbsolve import` refuses tests/parse/import/NAME (.csv: torch-csv, .comms.csv: torch-comms-csv, .json:
#                  node-list) with the one line of its .err and exit code 2, or what its .code says
#   profile/NAME   `zbsolve profile` refuses tests/parse/profile/NAME (trace-*: torch-trace, zblog-*: zb-log, timers-*:
#                  megatron-timers, csv-*: csv) with the one line of its .err and exit code 2
#   schedule/NAME  `zbsolve check` on tests/parse/schedule/NAME.json: NAME.out, NAME.err, NAME.code (default 2);
#                  zbcheck ends with the same code
#   program/NAME   `zbsolve check` on tests/parse/program/NAME.json: NAME.out, NAME.err, NAME.code (default 2)
#
# Tests find ZBSOLVE, ZBCHECK, CONFIGS (the name `configs`, so that messages carry no path of the machine) and
# SCRATCH (a directory of their own), both programs on PATH, and ZB_LONG=1 in a long run. `golden` rewrites the
# expected files of cli, bugs, parse, import, profile, schedule and program instead of comparing. ZB_AGAIN=1: another
# build of the same tree has passed all; scripts leave out what only repeats that (the browser, most kills of processes).
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
build=${BUILD:-build}
case $build in /*) ;; *) build=$top/$build ;; esac

export BUILD=$build ZBSOLVE=$build/zbsolve ZBCHECK=$build/zbcheck ZBREPLAY=$build/zbreplay CONFIGS=configs PATH=$build:$PATH
export LC_ALL=C TZ=UTC TERM=dumb COLUMNS=100
unset NO_COLOR CLICOLOR_FORCE

# One test: prints its block and leaves `passed failed skipped` in $results/COUNTS and failures by name.

results=${RUN_RESULTS:-}
limit_s=${TEST_LIMIT_S:-600}

note() { # PASSED FAILED SKIPPED
  printf '%s %s %s\n' "$1" "$2" "$3" >"$results/${test//\//:}.count"
}

pass() {
  note "${1:-1}" 0 "${2:-0}"
  printf 'ok    %s%s\n' "$test" "${3:+  ($3)}"
}

skip() { # WHY
  note 0 0 1
  printf '%s: %s\n' "$test" "$1" >>"$results/skipped"
  printf 'skip  %s  (%s)\n' "$test" "$1"
}

fail() { # PASSED FAILED SKIPPED FILE-WITH-DETAILS
  note "$1" "$2" "$3"
  printf '%s\n' "$test" >>"$results/failed"
  printf 'FAIL  %s\n%s\n' "$test" "$(sed 's/^/      /' "$4" | tail -n 60)"
}

fail_text() { # TEXT..
  printf '%s\n' "$@" >"$scratch/said"
  fail 0 1 0 "$scratch/said"
}

unit() { # NAME
  local passed failed skipped planned code
  (SCRATCH=$scratch CMOCKA_MESSAGE_OUTPUT=TAP timeout "$limit_s" "$build/tests/$1") >"$scratch/log" 2>&1
  code=$?
  skipped=$(grep -cE '^(not )?ok [0-9]+ .*# SKIP' "$scratch/log")
  passed=$(grep -E '^ok [0-9]+' "$scratch/log" | grep -cv '# SKIP')
  failed=$(grep -E '^not ok [0-9]+' "$scratch/log" | grep -cv '# SKIP')
  planned=$(sed -n 's/^1\.\.\([0-9][0-9]*\)$/\1/p' "$scratch/log" | awk '{n += $1} END {print n + 0}')
  if [ $((passed + failed + skipped)) -lt "$planned" ] || [ "$planned" = 0 ] ||
    { [ $code != 0 ] && [ "$failed" = 0 ]; }; then
    echo "ended with exit code $code after $((passed + failed + skipped)) of $planned tests" >>"$scratch/log"
    failed=$((failed + 1))
  fi
  if [ "$skipped" != 0 ]; then
    sed -nE "s|^(not )?ok [0-9]+ .*# SKIP *|$test: |p" "$scratch/log" >>"$results/skipped"
  fi
  if [ "$failed" = 0 ]; then pass "$passed" "$skipped" "$passed tests"; else fail "$passed" "$failed" "$skipped" "$scratch/log"; fi
}

fuzz() { # NAME
  local corpus=tests/fuzz/corpus/$1
  if [ -z "$(ls -A "$corpus" 2>/dev/null)" ]; then fail_text "no corpus in $corpus"; return; fi
  if timeout "$limit_s" "$build/fuzz/$1" "$corpus"/* >"$scratch/log" 2>&1; then
    pass 1 0 "$(find "$corpus" -type f | wc -l) inputs"
  else
    echo "exit code $?" >>"$scratch/log"
    fail 0 1 0 "$scratch/log"
  fi
}

driver() { # SCRIPT
  local code sum
  SCRATCH=$scratch timeout "$limit_s" "$1" >"$scratch/log" 2>&1
  code=$?
  sum=$(tail -n 1 "$scratch/log" |
    sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 0\4/p')
  if [ -n "$sum" ]; then
    # shellcheck disable=SC2086
    set -- $sum
    if [ "$2" = 0 ] && [ $code = 0 ] && [ "$1" != 0 ]; then pass "$1" "$((10#$3))" "$1 tests"; return; fi
    if [ "$2" = 0 ]; then echo "exit code $code" >>"$scratch/log"; set -- "$1" 1 "$3"; fi
    fail "$1" "$2" "$((10#$3))" "$scratch/log"
  elif [ $code = 0 ]; then
    pass
  elif [ $code = 77 ]; then
    skip "$(tail -n 1 "$scratch/log")"
  else
    echo "exit code $code" >>"$scratch/log"
    fail 0 1 0 "$scratch/log"
  fi
}

# Compares got/out, got/err and got/code with STEM.out, STEM.err and STEM.code, or rewrites those.
settle() { # STEM DEFAULT-CODE
  local part want=$scratch/want
  if [ "${RUN_MODE:-}" = golden ]; then
    cp "$scratch/got/out" "$1.out"
    for part in err code; do
      cp "$scratch/got/$part" "$1.$part"
      if [ ! -s "$1.$part" ] || { [ $part = code ] && [ "$(cat "$1.code")" = "$2" ]; }; then rm -f "$1.$part"; fi
    done
    if ! [ -s "$1.out" ] && [ -e "$1.err" ]; then rm "$1.out"; fi
    pass
    return
  fi
  mkdir -p "$want"
  if [ -e "$1.code" ]; then cp "$1.code" "$want/code"; else echo "$2" >"$want/code"; fi
  for part in out err; do
    if [ -e "$1.$part" ]; then cp "$1.$part" "$want/$part"; else : >"$want/$part"; fi
  done
  if ! [ -e "$1.out" ] && ! [ -e "$1.err" ]; then
    fail_text "neither $1.out nor $1.err: make golden writes them"
  elif diff -r -u "$want" "$scratch/got" >"$scratch/diff" 2>&1; then
    pass
  else
    sed -i -E "s|^(---\|\+\+\+) $scratch/([a-z]+/[a-z]+).*|\1 \2|; /^diff -r/d" "$scratch/diff"
    fail 0 1 0 "$scratch/diff"
  fi
}

# The second program must agree to every schedule that a test leaves behind.
recheck() { # DIRECTORY
  local file code
  find "$1" -type f -name '*.json' ! -name 'bad*' | sort | while IFS= read -r file; do
    grep -q '"zbsolve_schedule"' "$file" || continue
    (cd "$(dirname "$file")" && "$ZBCHECK" "$(basename "$file")") >"$scratch/rechecked" 2>&1
    code=$?
    case $code in
      0 | 10 | 20) ;;
      *) echo "zbcheck ${file#"$1"/}: exit code $code"; cat "$scratch/rechecked" ;;
    esac
  done
}

script() { # STEM
  mkdir -p "$scratch/here" "$scratch/got"
  ln -s "$top/configs" "$scratch/here/configs"
  (cd "$scratch/here" && SCRATCH=$scratch/here timeout "$limit_s" bash "$top/$1.sh") \
    >"$scratch/got/out" 2>"$scratch/got/err" </dev/null
  echo $? >"$scratch/got/code"
  recheck "$scratch/here" >"$scratch/lies"
  if [ -s "$scratch/lies" ]; then fail 0 1 0 "$scratch/lies"; return; fi
  settle "$1" 0
}

parse() { # NAME
  mkdir -p "$scratch/got"
  (cd tests/parse && timeout "$limit_s" "$ZBSOLVE" solve "$1.json" -q -o "$scratch/answer.json") \
    >"$scratch/got/out" 2>"$scratch/got/err" </dev/null
  echo $? >"$scratch/got/code"
  if [ "$(cat "$scratch/got/code")" = 2 ]; then
    if [ -e "$scratch/answer.json" ]; then fail_text "exit code 2, and yet a schedule was written"; return; fi
    if [ "$(wc -l <"$scratch/got/err")" != 1 ]; then
      echo "(expected one line)" >>"$scratch/got/err"
      fail 0 1 0 "$scratch/got/err"
      return
    fi
  fi
  settle "tests/parse/$1" 2
}

import() { # NAME
  local format=torch-csv
  case $1 in *.comms.csv) format=torch-comms-csv ;; *.json) format=node-list ;; esac
  mkdir -p "$scratch/got"
  (cd tests/parse/import && timeout "$limit_s" "$ZBSOLVE" import "$1" --from $format --profile two-devices.profile -q \
    -o "$scratch/answer.json") >"$scratch/got/out" 2>"$scratch/got/err" </dev/null
  echo $? >"$scratch/got/code"
  if [ -e "$scratch/answer.json" ]; then fail_text "a schedule was written"; return; fi
  if [ "$(wc -l <"$scratch/got/err")" != 1 ]; then
    echo "(expected one line)" >>"$scratch/got/err"
    fail 0 1 0 "$scratch/got/err"
    return
  fi
  settle "tests/parse/import/$1" 2
}

profile() { # NAME
  local format
  case $1 in trace-*) format=torch-trace ;; zblog-*) format=zb-log ;; timers-*) format=megatron-timers ;; *) format=csv ;; esac
  mkdir -p "$scratch/got"
  (cd tests/parse/profile && timeout "$limit_s" "$ZBSOLVE" profile "$1" --from $format --microbatches 4 -q \
    -o "$scratch/answer.json") >"$scratch/got/out" 2>"$scratch/got/err" </dev/null
  echo $? >"$scratch/got/code"
  if [ -e "$scratch/answer.json" ]; then fail_text "a profile was written"; return; fi
  if [ "$(wc -l <"$scratch/got/err")" != 1 ]; then
    echo "(expected one line)" >>"$scratch/got/err"
    fail 0 1 0 "$scratch/got/err"
    return
  fi
  if [ "${1%.gz}" != "$1" ] && ! "$ZBSOLVE" --version | grep -q 'zlib yes'; then
    if grep -q 'this build cannot read' "$scratch/got/err"; then pass; else fail 0 1 0 "$scratch/got/err"; fi
    return
  fi
  settle "tests/parse/profile/$1" 2
}

schedule() { # NAME
  local code
  mkdir -p "$scratch/got"
  cd tests/parse/schedule || exit 1
  timeout "$limit_s" "$ZBSOLVE" check "$1.json" >"$scratch/got/out" 2>"$scratch/got/err" </dev/null
  echo $? >"$scratch/got/code"
  timeout "$limit_s" "$ZBCHECK" "$1.json" >"$scratch/log" 2>&1 </dev/null
  code=$?
  cd "$top" || exit 1
  if [ $code != "$(cat "$scratch/got/code")" ]; then
    { echo "zbsolve check: exit code $(cat "$scratch/got/code")"; cat "$scratch/got/out" "$scratch/got/err"
      echo "zbcheck: exit code $code"; cat "$scratch/log"; } >"$scratch/said"
    fail 0 1 0 "$scratch/said"
    return
  fi
  settle "tests/parse/schedule/$1" 2
}

program() { # NAME
  mkdir -p "$scratch/got"
  (cd tests/parse/program && timeout "$limit_s" "$ZBSOLVE" check "$1.json") \
    >"$scratch/got/out" 2>"$scratch/got/err" </dev/null
  echo $? >"$scratch/got/code"
  settle "tests/parse/program/$1" 2
}

one() { # TEST
  test=$1
  scratch=$(mktemp -d) || exit 1
  trap 'rm -rf "$scratch"' EXIT
  local began=${EPOCHREALTIME/./}
  case $test in
    unit/*) unit "${test#unit/}" ;;
    fuzz/*) fuzz "${test#fuzz/}" ;;
    cli/* | bugs/*) script "tests/$test" ;;
    parse/*) parse "${test#parse/}" ;;
    import/*) import "${test#import/}" ;;
    profile/*) profile "${test#profile/}" ;;
    schedule/*) schedule "${test#schedule/}" ;;
    program/*) program "${test#program/}" ;;
    *.sh) driver "tests/$test" ;;
  esac
  printf '%7d ms  %s\n' $(((${EPOCHREALTIME/./} - began) / 1000)) "$test" >>"$results/took"
}

list() { # MODE: the names of the tests, slowest kinds first
  local file
  shopt -s nullglob
  if [ "$1" != golden ]; then
    if [ "$1" = long ]; then for file in tests/*_long.sh; do echo "${file#tests/}"; done; fi
    for file in tests/*_test.sh; do echo "${file#tests/}"; done
    for file in tests/unit/test_*.c; do
      file=$(basename "$file" .c)
      if [ -e "$build/tests/$file" ]; then echo "unit/$file"; fi
    done
    for file in tests/fuzz/*.c; do
      file=$(basename "$file" .c)
      if [ "$file" != replay ]; then echo "fuzz/$file"; fi
    done
  fi
  for file in tests/cli/*.sh tests/bugs/*.sh; do
    file=${file#tests/}
    echo "${file%.sh}"
  done
  for file in tests/parse/*.json; do echo "parse/$(basename "$file" .json)"; done
  for file in tests/parse/import/*.csv tests/parse/import/*.json; do echo "import/$(basename "$file")"; done
  for file in tests/parse/profile/*; do
    case $file in *.err | *.code | *.out) ;; *) echo "profile/$(basename "$file")" ;; esac
  done
  for file in tests/parse/schedule/*.json; do echo "schedule/$(basename "$file" .json)"; done
  for file in tests/parse/program/*.json; do echo "program/$(basename "$file" .json)"; done
}

main() { # MODE [PATTERN]
  local name lacks counted passed failed skipped
  results=$(mktemp -d) || exit 1
  trap 'rm -rf "$results"' EXIT
  export RUN_RESULTS=$results RUN_MODE=$1
  if [ "$1" = long ]; then export ZB_LONG=1 TEST_LIMIT_S=${TEST_LIMIT_S:-7200}; fi

  list "$1" | while IFS= read -r name; do
    # shellcheck disable=SC2254
    case $name in ${2:-*}) echo "$name" ;; esac
  done >"$results/list"
  xargs -r -d '\n' -n 1 -P "${JOBS:-$(nproc 2>/dev/null || echo 2)}" tests/run.sh one <"$results/list"

  # A unit program that was not built is named, whatever the reason.
  if [ "$1" != golden ]; then
    for name in tests/unit/test_*.c; do
      [ -e "$name" ] || continue
      name=$(basename "$name" .c)
      # shellcheck disable=SC2254
      case unit/$name in ${2:-*}) ;; *) continue ;; esac
      if ! [ -e "$build/tests/$name" ]; then
        echo "0 0 1" >"$results/$name.absent.count"
        lacks=cmocka
        if grep -qE 'include "(kernels/kernels|tests/standin/|tests/unit/kernel_trial)' "tests/unit/$name.c"; then lacks="cmocka or CUDA's toolkit"; fi
        if grep -q 'include <nccl.h>' "tests/unit/$name.c"; then lacks="cmocka, CUDA's toolkit or NCCL"; fi
        echo "unit/$name: not built, $lacks is missing or off" >>"$results/skipped"
      fi
    done
  fi

  while IFS= read -r name; do
    [ -e "$results/${name//\//:}.count" ] && continue
    echo "0 1 0" >"$results/${name//\//:}.count"
    echo "$name (ended without a result)" >>"$results/failed"
  done <"$results/list"

  printf '\nlongest:\n'
  sort -rn "$results/took" | head -n 20
  if [ -e "$results/skipped" ]; then printf '\nskipped:\n'; sort -u "$results/skipped" | sed 's/^/  /'; fi
  if [ -e "$results/failed" ]; then printf '\nfailed:\n'; sort -u "$results/failed" | sed 's/^/  /'; fi
  counted=$(find "$results" -name '*.count' -exec cat '{}' + | awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
  read -r passed failed skipped <<<"$counted"
  if [ $((passed + failed)) = 0 ]; then echo "no test ran"; fi
  printf '\n%s passed, %s failed' "$passed" "$failed"
  if [ "$skipped" != 0 ]; then printf ', %s skipped' "$skipped"; fi
  printf '\n'
  [ "$failed" = 0 ] && [ "$passed" != 0 ]
}

case ${1:-} in
  one) one "$2" ;;
  fast | long | golden) main "$@" ;;
  *) echo "usage: tests/run.sh fast|long|golden [PATTERN]" >&2; exit 2 ;;
esac
