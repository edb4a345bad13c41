#!/usr/bin/env bash
# zbreplay --backend cuda, linked with the stand-in device: the same bits as without a pipeline, checkpoints, profiles,
# traces; and one line where the device, its memory or the options are not what they should be. The program itself,
# which may find no GPU here, says so.
# Options are lists of words.
# shellcheck disable=SC2086
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
replay=$BUILD/standin/zbreplay
if ! [ -x "$replay" ]; then
  echo "no stand-in: this build has no CUDA"
  exit 77
fi
passed=0 failed=0
seed=${SEED:-$RANDOM}
echo "seed $seed"
check() { # WHAT CONDITION..
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $what"; tail -n 20 "$scratch/err"; fi
}
on() { # STANDIN COMMAND..: out, err and code
  local standin=$1
  shift
  ZB_STANDIN=$standin timeout 120 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
}
ended() { [ "$code" = "$1" ] && ! [ -s "$scratch/err" ]; }
says() { # CODE WORDS: that line alone
  [ "$code" = "$1" ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -qE "$2" "$scratch/err"
}

for p in 1 4; do
  cat >"$scratch/profile$p.json" <<END
{"zbsolve_profile": 1, "devices": $p, "microbatches": 4, "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0.1},
 "memory": {"unit": "MiB", "f": 3, "b": -1, "w": -2}}
END
  for method in zb-h1 1f1b-interleaved zb-v; do
    "$ZBSOLVE" solve "$scratch/profile$p.json" -q --method $method -o "$scratch/$method-$p.json" >/dev/null || exit 1
    "$ZBCHECK" "$scratch/$method-$p.json" --no-bound >/dev/null 2>&1
    [ $? = 10 ] || { echo "zbcheck: $method-$p.json"; exit 1; }
  done
done
run="$replay run --backend cuda"
chain=$scratch/zb-h1-4.json

# Mostly waits, so beside all that follows. Deadlines that a loaded machine does not meet before the kernel is reached:
# only what hangs takes its time.
ZB_STANDIN=hang_kernel=300,unchecked=1 timeout 120 $run "$chain" --timeout 5 >"$scratch/hang.out" 2>"$scratch/hang.err" </dev/null &
hangs=$!

when=(late eager random)
turn=0
for options in "" "--optimizer post-validation --clip 0.5" "--optimizer post-validation --rollback inverse" \
  "--dtype bf16" "--tf32"; do
  for method in zb-h1 1f1b-interleaved zb-v; do
    turn=$((turn + 1))
    # Again: each kind of options once, methods in turn.
    if [ -n "${ZB_AGAIN:-}" ] && [ $(((turn - 1) / 3 % 3)) != $(((turn - 1) % 3)) ]; then continue; fi
    on "seed=$((seed + turn)),when=${when[turn % 3]},devices=$((turn % 2 * 3 + 1))" \
      $run "$scratch/$method-4.json" --verify -q $options
    check "$method $options" ended 0
  done
done
on "seed=$seed" $run "$scratch/zb-h1-1.json" --verify -q --graph --steps 4
check "--graph" ended 0

# A checkpoint is good for another schedule and another number of devices, and not for another dtype.
on "" $run "$chain" --steps 4 --json
whole=$(grep -o '"loss": [^]]*' "$scratch/out" | tr -d '[]' | awk -F', ' '{print $NF}')
on "seed=$seed" $run "$chain" --steps 2 -q --checkpoint "$scratch/kept"
check "a checkpoint" ended 0
on "" $run "$scratch/zb-h1-1.json" --steps 4 -q --checkpoint "$scratch/kept" --dtype bf16
check "a checkpoint of fp32 for bf16" says 2 'another model, .* dtype'
on "seed=$seed" $run "$scratch/zb-v-4.json" --steps 4 --json --checkpoint "$scratch/kept"
check "a checkpoint of another model" says 2 'another model'
on "seed=$seed" $run "$chain" --steps 4 --json --checkpoint "$scratch/kept"
check "goes on in the same bits" test "$(grep -o '"loss": [^]]*' "$scratch/out" | tr -d '[]' | awk -F', ' '{print $NF}')" = "$whole"

# From a model to a profile, to a schedule, and back: the peaks are the profile's, in both dtypes.
for dtype in fp32 bf16; do
  on "seed=$seed" "$replay" measure configs/models/tiny.json --backend cuda --dtype $dtype --devices 2 --repeats 1 \
    -o "$scratch/measured.json"
  check "measure $dtype" ended 0
  cp "$scratch/measured.json" "$scratch/measured-$dtype.json"
  "$ZBSOLVE" solve "$scratch/measured.json" -q --method zb-h1 -o "$scratch/measured-schedule.json" >/dev/null
  on "seed=$seed" $run "$scratch/measured-schedule.json" --model configs/models/tiny.json --dtype $dtype --verify -q
  check "run $dtype" ended 0
done
f_of() { sed -nE 's/.*"memory".*"f": \[([0-9]+).*/\1/p' "$1"; }
check "bf16 keeps less" test $((2 * $(f_of "$scratch/measured-bf16.json"))) -lt $((2 * $(f_of "$scratch/measured-fp32.json") * 2 / 3))

on "seed=$seed" $run "$chain" -q --trace "$scratch/trace.json"
check "a trace" test "$(grep -o '"name": "PP:0F0"' "$scratch/trace.json" | wc -l)" = 3

# What is said before the first step.
on no_driver=1 $run "$chain"
check "no driver" says 2 '^zbreplay: --backend cuda: no driver'
on no_device=1 $run "$chain"
check "no device" says 2 '^zbreplay: --backend cuda: no GPU here'
on devices=1,memory_bytes=1000000 $run "$chain"
check "memory" says 2 'out of memory: the model smallest needs [0-9]+ bytes of GPU 0 for device 0, 1, 2, 3, which has 1000000'
on no_driver=1 "$replay" measure configs/models/tiny.json --backend cuda
check "measure without a driver" says 2 '^zbreplay: --backend cuda: no driver'
on "" $run "$chain" --transport mpi
check "mpi" says 2 '^zbreplay: --transport mpi: does not reach the memory of --backend cuda'
on "" "$replay" run "$chain" --dtype bf16
check "cpu and bf16" says 2 '^zbreplay: --dtype bf16: only --backend cuda'
on "" $run "$chain" --dtype bf16 --tf32
check "bf16 and tf32" says 2 '^zbreplay: --tf32: '
on "" "$replay" run "$chain" --graph
check "cpu and graphs" says 2 '^zbreplay: --graph: only --backend cuda'
on "" $run "$chain" --graph --optimizer post-validation
check "graphs and post-validation" says 2 '^zbreplay: --graph: post-validation'
on "" $run "$chain" --graph
check "graphs and threads" says 2 '^zbreplay: --graph: --transport threads'
on fail_kernel=300,unchecked=1 $run "$chain" --timeout 60
# Whichever call comes next says it, in its library's words.
said='(cuda[A-Za-z_]+: an illegal memory access|cublas[A-Za-z]+: the function failed to launch)'
check "a kernel that fails" grep -qE "^zbreplay: device [0-3], .*$said" "$scratch/err"
wait $hangs
code=$?
cp "$scratch/hang.err" "$scratch/err"
check "a kernel that does not end" test "$code" = 1
check "who waits for what" grep -qE '^zbreplay: device [0-3], step 0: finished [0-3](F|B|W|BW)[0-3], .* has not ended' "$scratch/err"

# The program itself: trains on a GPU where there is one.
on "" "$ZBREPLAY" run "$chain" --backend cuda --verify -q
if [ "$code" = 0 ]; then check "a GPU" ended 0; else check "no GPU" says 2 '^zbreplay: --backend cuda: no (driver|GPU)'; fi

echo "$passed passed, $failed failed"
[ $failed = 0 ]
