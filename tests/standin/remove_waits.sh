#!/usr/bin/env bash
# Is every wait of the runtime needed, and would the tests notice if one were missing? Each event record, event wait,
# synchronisation, query and wait in the files that use a device is taken out in turn (it does nothing, and says that all
# is well), and the tests that use the stand-in device must fail. Lists the survivors; exit 1 where there are any.
#
#   tests/standin/remove_waits.sh [--list] [PATTERN]     PATTERN: only those whose FILE:NUMBER:NAME has it
#
# Works on a copy of the tree, with as little built anew as possible; one takes seconds, a survivor a minute.
# Words of calls are lists.
# shellcheck disable=SC2086
set -u
cd "$(dirname "$0")/../.." || exit 1
list="" pattern=""
for word in "$@"; do
  case $word in --list) list=1 ;; *) pattern=$word ;; esac
done
files=$(find runtime -name 'compute_cuda*.c' -o -name 'transport_nccl*.c' -o -name transport_threads.c -o -name 'rank*.c' \
  -o -name straight.c -o -name measure.c | grep -v _stub | sort)

# What is taken out, and what it says instead: CUDA's own calls; the backend's and the transport's; ours around them.
calls='cudaEventRecord=cudaSuccess cudaEventRecordWithFlags=cudaSuccess cudaStreamWaitEvent=cudaSuccess
  cudaStreamSynchronize=cudaSuccess cudaEventSynchronize=cudaSuccess cudaDeviceSynchronize=cudaSuccess
  cudaStreamQuery=cudaSuccess cudaEventQuery=cudaSuccess
  await=ZB_OK follow=ZB_OK finish=ZB_OK wait=ZB_OK
  wait_slot=ZB_OK wait_line=ZB_OK wait_ticket=ZB_OK settle=ZB_OK zb_rank_finish=ZB_OK zb_compute_finish=ZB_OK
  zb_nccl_settle=ZB_OK settle_all=ZB_OK zb_nccl_drain=ZB_OK expect_tokens=ZB_OK'

# Without a number: lists the calls of a file as LINE:NAME. With one: prints the file without that call.
call() { # FILE [NUMBER]
  CALLS=$calls perl -0777 -e '
    my ($file, $number) = @ARGV;
    my %value = map { split /=/ } split " ", $ENV{CALLS};
    my $names = join "|", keys %value;
    open my $in, "<", $file or die; my $text = <$in>;
    my $k = 0;
    # Comments and strings are skipped, and so are declarations: a name behind a type.
    $text =~ s{(//[^\n]*|"(?:[^"\\]|\\.)*")|((?:\b(?!return\b)\w+[\s*]+)?)((?:\w+(?:->|\.))*)\b($names)\b\s*(\((?:[^()]++|(?5))*\))}{
      my ($whole, $before, $name, $at) = ($&, $2, $4, $-[4]);
      if (!defined $name || $before ne "" && $before !~ /^(else|case)\s/) { $whole }
      elsif (defined $number) { $k++ == $number ? "$before$value{$name}" : $whole }
      else { my $line = 1 + (substr($text, 0, $at) =~ tr/\n//); print "$line:$name\n"; $whole }
    }ge;
    print $text if defined $number;
  ' "$@"
}
all() { # FILE:NUMBER:LINE:NAME of every call
  local file number
  for file in $files; do
    number=0
    while IFS= read -r found; do
      echo "$file:$number:$found"
      number=$((number + 1))
    done < <(call "$file")
  done
}
mutants=$(all | grep -e "${pattern:-.}")
if [ -n "$list" ]; then echo "$mutants"; exit 0; fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
git ls-files -co --exclude-standard | tar -cf - -T - | tar -xf - -C "$scratch"
tests=$(cd "$scratch" && grep -l 'include "tests/standin/' tests/unit/test_*.c | xargs grep -l 'include "runtime/' |
  sed 's|tests/unit/\(.*\)\.c|build/tests/\1|' | sort -r)
[ -n "$tests" ] || { echo "no test uses the stand-in device"; exit 77; }
build() { make -C "$scratch" -j"$(nproc)" -s WERROR=0 $tests; }
# A test is over at its first failure, a hang counts as one.
fails() { # COMMAND..
  local pid code
  (cd "$scratch" && SCRATCH=$scratch exec timeout -k 2 "${LIMIT_S:-200}" stdbuf -oL -eL "$@") >"$scratch/log" 2>&1 </dev/null &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    if grep -q '^\[  FAILED  \]' "$scratch/log"; then
      kill $pid 2>/dev/null
      break
    fi
    sleep 0.1
  done
  wait $pid
  code=$?
  [ $code != 0 ]
}
suite() { # ends with the first test that fails
  local test
  for test in $tests; do fails "$test" && return 1; done
  # What another process waits for.
  if command -v mpirun >/dev/null; then
    for test in 1 2 3; do
      ZB_STANDIN=seed=$test fails mpirun -n 4 build/tests/test_nccl mpi order && return 1
    done
  fi
  return 0
} 2>/dev/null
build >"$scratch/log" 2>&1 || { tail "$scratch/log"; exit 1; }
suite || { echo "the tests fail as it is:"; tail "$scratch/log"; exit 1; }

count=0 survivors=0
while IFS=: read -r file number line name; do
  call "$file" "$number" >"$scratch/$file"
  count=$((count + 1))
  if ! build >"$scratch/log" 2>&1; then
    echo "$file:$line: without $name: does not compile"
    survivors=$((survivors + 1))
  elif suite; then
    echo "$file:$line: without $name: no test notices"
    survivors=$((survivors + 1))
  fi
  cp "$file" "$scratch/$file"
done <<<"$mutants"
echo "$count waits taken out, $survivors survive"
[ $survivors = 0 ]
