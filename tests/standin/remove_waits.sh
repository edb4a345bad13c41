#!/usr/bin/env bash
# Is every wait of the runtime needed, and would the tests notice if one were missing? Each event record, event wait,
# synchronisation, query and wait in runtime/*.c is taken out in turn (it does nothing, and says that all is well), and
# the tests that use the stand-in device must fail. Prints a table: what was taken out, and the test that noticed. Exit 1
# where none did.
#
#   tests/standin/remove_waits.sh [--list] [PATTERN]     PATTERN: only those whose FILE:NUMBER:LINE:NAME has it
#
# Works on a copy of the tree in which every such call asks whether it is the one that ZB_REMOVED names, so all is built
# once. A test is over at its first failure; a hang counts as one.
# Words of calls are lists.
# shellcheck disable=SC2086
set -u
cd "$(dirname "$0")/../.." || exit 1
list="" pattern=""
for word in "$@"; do
  case $word in --list) list=1 ;; *) pattern=$word ;; esac
done
# What has no waits for a device of its own: the transport between processes and the backends that run at once.
files=$(find runtime -name '*.c' | grep -vE '_stub|transport_mpi|compute_cpu|compute_sleep' | sort)

# What is taken out, and what it says instead: CUDA's own calls; the backend's and the transport's; ours around them.
# `finish` also says that all is done.
calls='cudaEventRecord=cudaSuccess cudaEventRecordWithFlags=cudaSuccess cudaStreamWaitEvent=cudaSuccess
  cudaStreamSynchronize=cudaSuccess cudaEventSynchronize=cudaSuccess cudaDeviceSynchronize=cudaSuccess
  cudaStreamQuery=cudaSuccess cudaEventQuery=cudaSuccess
  await=ZB_OK follow=ZB_OK finish=ZB_OK wait=ZB_OK
  wait_slot=ZB_OK wait_line=ZB_OK wait_ticket=ZB_OK settle=ZB_OK zb_rank_finish=ZB_OK zb_rank_keep_near=ZB_OK
  zb_compute_finish=ZB_OK wait_outcome=DONE
  look_at_stream=ZB_OK zb_nccl_settle=ZB_OK settle_all=ZB_OK expect_tokens=ZB_OK has_ended=true'

# Without a number: lists the calls of a file as LINE:NAME. With the number of its first: prints the file in which each
# can be taken out.
call() { # FILE [FIRST]
  CALLS=$calls perl -0777 -e '
    my ($file, $first) = @ARGV;
    my %value = map { split /=/ } split " ", $ENV{CALLS};
    my $names = join "|", sort { length $b <=> length $a } keys %value;
    open my $in, "<", $file or die; my $text = <$in>;
    my ($k, $head) = (0, "");
    # Comments and strings are skipped, and so are declarations: a name behind a type.
    $text =~ s{(//[^\n]*|"(?:[^"\\]|\\.)*")|((?:\b(?!return\b)\w+[\s*]+)?)((?:\w+(?:\[\w+\])?(?:->|\.))*)\b($names)\b\s*(\((?:[^()]++|(?5))*\))}{
      my ($whole, $before, $path, $name, $list, $at) = ($&, $2, $3, $4, $5, $-[4]);
      if (!defined $name || $before ne "" && $before !~ /^(else|case)\s/) { $whole }
      elsif (!defined $first) { my $line = 1 + (substr($text, 0, $at) =~ tr/\n//); print "$line:$name\n"; $whole }
      else {
        my $number = $first + $k++;
        my $instead = $value{$name};
        $instead = "(*($1) = true, ZB_OK)" if $name eq "finish" && $list =~ /(\S+),\s*\S+\)$/;
        # Errors are named by the text of the call, which a macro leaves as it is up to its bracket.
        if ($path eq "") {
          $head .= "#define ${name}_$number(...) (zb_removed($number) ? $instead : $name(__VA_ARGS__))\n";
          "$before${name}_$number$list"
        } else { "$before(zb_removed($number) ? $instead : $path$name$list)" }
      }
    }ge;
    print "#include <stdbool.h>\nbool zb_removed(int number);\n$head#line 1\n$text" if defined $first;
  ' "$@"
}
all() { # FILE:NUMBER:LINE:NAME of every call
  local file number=0
  for file in $files; do
    while IFS= read -r found; do
      echo "$file:$number:$found"
      number=$((number + 1))
    done < <(call "$file")
  done
}
waits=$(all)
chosen=$(echo "$waits" | grep -e "${pattern:-.}")
if [ -n "$list" ]; then echo "$chosen"; exit 0; fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
git ls-files -co --exclude-standard | tar -cf - -T - | tar -xf - -C "$scratch"
for file in $files; do
  first=$(echo "$waits" | grep -m 1 "^$file:" | cut -d: -f2)
  [ -z "$first" ] || call "$file" "$first" >"$scratch/$file"
done
cat >"$scratch/runtime/removed.c" <<END
#include <stdbool.h>
#include <stdlib.h>
bool zb_removed(int number);
bool zb_removed(int number) {
  const char *chosen = getenv("ZB_REMOVED");
  return chosen && atoi(chosen) == number;
}
END
# For a transport those of the transport come first, else those of the backend.
nccl_first="test_nccl test_interleavings test_cuda_state test_cuda test_cuda_faults"
cuda_first="test_cuda_state test_cuda test_cuda_faults test_interleavings test_nccl"
parts=$(cd "$scratch" && make -s -j"$(nproc)" WERROR=0 ${cuda_first//test_/build/tests/test_} build/standin/zbreplay 2>&1) ||
  { echo "${parts: -2000}"; exit 77; }
fails() { # COMMAND..
  local pid code
  # Or the failure of the one before would be this one's.
  : >"$scratch/log" || exit 1
  (cd "$scratch" && SCRATCH=$scratch exec timeout -k 2 "${LIMIT_S:-200}" stdbuf -oL -eL "$@") >"$scratch/log" 2>&1 </dev/null &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    if grep -q '^\[  FAILED  \]' "$scratch/log"; then
      kill $pid 2>/dev/null
      break
    fi
    sleep 0.05
  done
  wait $pid
  code=$?
  # A test that cannot be started notices nothing.
  case $code in 126 | 127) tail -n 1 "$scratch/log"; exit 1 ;; esac
  [ $code != 0 ]
} 2>/dev/null
suite() { # TEST..: ends with the first that fails, and names it in `noticed`
  local test
  for test; do
    noticed=$test
    fails "build/tests/$test" && return 1
  done
  # What another process waits for.
  if command -v mpirun >/dev/null; then
    for test in 1 2 3; do
      noticed="test_nccl under mpirun"
      ZB_STANDIN=seed=$test fails mpirun -n 4 build/tests/test_nccl mpi order && return 1
    done
  fi
  noticed=none
} 2>/dev/null
suite $cuda_first || { echo "the tests fail as it is: $noticed"; tail "$scratch/log"; exit 1; }

count=0 survivors=0
while IFS=: read -r file number line name; do
  export ZB_REMOVED=$number
  count=$((count + 1))
  case $file in *nccl*) order=$nccl_first ;; *) order=$cuda_first ;; esac
  suite $order && survivors=$((survivors + 1))
  # The test that failed, or that was running at the end.
  why=$(sed -n 's/^\[  FAILED  \] //p' "$scratch/log" | head -n 1)
  [ -n "$why" ] || why=$(sed -n 's/^\[ RUN      \] //p' "$scratch/log" | tail -n 1)
  [ "$noticed" = none ] || noticed="$noticed $why"
  printf '%-36s %-26s %s\n' "$file:$line" "$name" "$noticed"
done <<<"$chosen"
echo "$count waits taken out, $survivors not noticed"
[ $survivors = 0 ]
