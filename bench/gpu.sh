#!/usr/bin/env bash
# zbreplay on the GPUs of this machine, in at most eight minutes with one of them: bench/README.md, GPU. Builds, checks,
# measures, and leaves a table on stdout and the same numbers in build/bench/gpu.json (a result that is to stay is copied
# to bench/results/). BUILD names the build directory. Exit 1 where something is wrong or a target is missed, 77
# without a GPU. What this machine has no tool or no second GPU for is named at the end, and under "skipped".
#
#   bench/gpu.sh [right] [kernels] [one] [many]     only these parts; all without a word
#
# ZB_GPU_STANDIN=1 goes the same way with the stand-in device of the tests, on small sizes: whether the script works, and no
# more. What it prints of times then means nothing, and stays in build/bench/gpu-standin.json.
# Options are lists of words; what bash -c runs has its words behind it.
# shellcheck disable=SC2086,SC2016
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
build=${BUILD:-build} parts=$*
began_s=$SECONDS limit_s=480 each_s=120
standin=${ZB_GPU_STANDIN:-}
here=$build result=$build/bench/gpu.json insist="CUDA=1 CMOCKA=1"
toolkit=${CUDA_HOME:-/usr/local/cuda}
if [ -n "$standin" ]; then
  here=$build/standin result=$build/bench/gpu-standin.json limit_s=1800 each_s=600
  insist=
  export ZB_STANDIN=${ZB_STANDIN:-seed=1}
elif ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
  echo "no GPU"
  exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$build/bench"
: >"$scratch/rows"
wrong=0 checks=0 skipped=
# Open MPI refuses these where it is asked for nothing.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

left() { # seconds for one more check: what hangs must not take all
  local left=$((limit_s - (SECONDS - began_s)))
  [ $left -lt $each_s ] || left=$each_s
  echo $((left > 1 ? left : 1))
}
row() { # JSON: a line of the result
  printf '%s\n' "$1" >>"$scratch/rows"
}
skip() { # WHAT WHY
  echo "  $1: $2"
  skipped="$skipped${skipped:+, }\"$1: $2\""
}
check() { # NAME COMMAND..: its output is in $scratch/out, its words in $scratch/err
  local name=$1 seconds=$SECONDS code
  shift
  checks=$((checks + 1))
  timeout "$(left)" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  seconds=$((SECONDS - seconds))
  row "{\"check\": \"$name\", \"exit\": $code, \"seconds\": $seconds}"
  [ $code = 0 ] && return 0
  wrong=$((wrong + 1))
  if [ $code = 124 ]; then echo "WRONG  $name: not ended after $seconds s"; else echo "WRONG  $name: exit code $code"; fi
  tail -n 5 "$scratch/err" "$scratch/out" | sed 's/^/       /'
  return 1
}
target() { # NAME VALUE MOST: what is no number is missed
  local met=missed value=$2
  if [[ $value =~ ^-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?$ ]]; then
    met=$(awk -v a="$value" -v b="$3" 'BEGIN {print (a <= b ? "met" : "missed")}')
  else
    value=null
  fi
  [ "$met" = met ] || [ -n "$standin" ] || wrong=$((wrong + 1))
  printf '  %-58s %10s  at most %s: %s\n' "$1" "$value" "$3" "$met"
  row "{\"target\": \"$1\", \"value\": $value, \"at_most\": $3, \"met\": $([ "$met" = met ] && echo true || echo false)}"
}
number() { # NAME: of the JSON in $scratch/out
  sed -nE "s/.*\"$1\": (-?[0-9.]+).*/\1/p" "$scratch/out" | head -n 1
}
measured() { # NAME: likewise of {"predicted": .., "measured": ..}
  sed -nE "s/.*\"$1\": \{\"predicted\": ([0-9]+), \"measured\": ([0-9]+)\}.*/\2/p" "$scratch/out"
}
predicted() { sed -nE "s/.*\"$1\": \{\"predicted\": ([0-9]+), \"measured\": ([0-9]+)\}.*/\1/p" "$scratch/out"; }
ratio() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN {if (a > 0 && b > 0) printf "%.4f", a / b; else print "null"}'; }

build_all() {
  local targets="$build/zbsolve $build/zbcheck $here/zbreplay"
  if [ -n "$standin" ]; then targets="$targets $here/kernels"; else targets="$targets $build/bench/kernels $build/device/test_kernels $build/device/test_compute"; fi
  each_s=$limit_s check "build" make -j"$(nproc)" BUILD="$build" $insist $targets
}
schedule() { # PROFILE METHOD OUTPUT
  check "solve: $2" "$build/zbsolve" solve "$1" --method "$2" --time-limit 5 -q -o "$3" || return 1
  # 10: it holds, and nobody asked for its bound.
  check "zbcheck: $2" bash -c '"$0" "$1" --no-bound; [ $? = 10 ]' "$build/zbcheck" "$3"
}
replay() { # NAME SCHEDULE OPTION..
  local name=$1
  shift
  check "$name" "$here/zbreplay" run "$@" --backend cuda --json
}

# What runs must be right: the backend's own tests, every placement with 1 to 8 devices on one GPU against no
# pipeline, and the losses of the CPU.
same_losses() { # of cpu.json and cuda.json, the first two steps
  local cpu cuda
  cpu=$(sed -nE 's/.*"loss": \[([^]]*)\].*/\1/p' "$scratch/cpu.json")
  cuda=$(sed -nE 's/.*"loss": \[([^]]*)\].*/\1/p' "$scratch/cuda.json")
  awk -v a="$cpu" -v b="$cuda" 'BEGIN {
    n = split(a, x, ", "); split(b, y, ", "); most = 0
    for (k = 1; k <= 2 && k <= n; k++) { d = (x[k] - y[k]) / x[k]; if (d < 0) d = -d; if (!(d <= most)) most = d }
    if (n >= 2) printf "%.3g", most; else print "null" }'
}
schedules() {
  local p method
  for p in 1 2 4 8; do
    cat >"$scratch/profile$p.json" <<END
{"zbsolve_profile": 1, "devices": $p, "microbatches": $((2 * p + 1)), "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0.1},
 "memory": {"unit": "MiB", "f": 3, "b": -1, "w": -2}}
END
    for method in zb-h1 zb-v; do
      [ $p = 1 ] && [ $method = zb-v ] && continue
      schedule "$scratch/profile$p.json" $method "$scratch/$method-$p.json"
    done
  done
}
conformance() {
  local p method optimizer dtype test
  if [ -z "$standin" ]; then
    for test in kernels compute; do check "test_$test" "$build/device/test_$test"; done
  fi
  for p in 1 2 4 8; do
    for method in zb-h1 zb-v; do
      [ $p = 1 ] && [ $method = zb-v ] && continue
      for dtype in fp32 bf16; do
        optimizer=post-validation
        [ $dtype = bf16 ] && optimizer=barrier
        replay "verify: $method, $p devices, $dtype" "$scratch/$method-$p.json" --dtype $dtype --optimizer $optimizer --clip 1 --verify
      done
    done
  done
  "$here/zbreplay" run "$scratch/zb-h1-2.json" --model configs/models/tiny.json --steps 2 --json >"$scratch/cpu.json" 2>"$scratch/err"
  replay "losses: tiny" "$scratch/zb-h1-2.json" --model configs/models/tiny.json --steps 2 && cp "$scratch/out" "$scratch/cuda.json" &&
    target "loss after one step, relative to the CPU's, fp32" "$(same_losses)" 0.00001
}
sanitizer() { # races: in our kernels alone, without a library's
  local tool=$toolkit/bin/compute-sanitizer flags="--error-exitcode 9 --target-processes all"
  command -v compute-sanitizer >/dev/null && tool=compute-sanitizer
  if [ -n "$standin" ] || ! command -v "$tool" >/dev/null; then
    skip "compute-sanitizer" "not here"
    return
  fi
  check "compute-sanitizer memcheck: zbreplay" "$tool" --tool memcheck $flags \
    "$here/zbreplay" run "$scratch/zb-h1-2.json" --backend cuda --steps 1 --timeout 100
  for check in memcheck racecheck; do
    check "compute-sanitizer $check: test_kernels" "$tool" --tool $check $flags "$build/device/test_kernels"
  done
}
kernels() {
  local size='' code program=$build/bench/kernels
  if [ -n "$standin" ]; then size="--hidden 32 --samples 1 --sequence 16 --arena 4" program=$here/kernels; fi
  checks=$((checks + 1))
  timeout "$(left)" "$program" $size --json "$scratch/kernels.json" >"$scratch/out" 2>"$scratch/err"
  code=$?
  row "{\"check\": \"kernels\", \"exit\": $code, \"seconds\": 0}"
  # 1 with numbers: below the floor, where the stand-in always is.
  [ $code = 0 ] || { [ $code = 1 ] && [ -n "$standin" ] && [ -s "$scratch/kernels.json" ]; } || wrong=$((wrong + 1))
  cat "$scratch/out" "$scratch/err"
}

# A model whose GEMMs fill the GPU, alone on one: measured, solved, replayed.
model() { # BLOCKS
  if [ -n "$standin" ]; then
    echo "{\"zbsolve_model\": 1, \"name\": \"small\", \"blocks\": $1, \"hidden\": 16, \"heads\": 2, \"sequence\": 8, \"samples\": 1}"
  else
    echo "{\"zbsolve_model\": 1, \"name\": \"wide\", \"blocks\": $1, \"hidden\": 2048, \"heads\": 16, \"sequence\": 1024, \"samples\": 4}"
  fi
}
one_gpu() {
  local dtype model=$scratch/wide.json
  model 2 >"$model"
  for dtype in fp32 bf16; do
    check "measure: $dtype" "$here/zbreplay" measure "$model" --backend cuda --dtype $dtype --devices 1 --microbatches 8 \
      --repeats 5 -o "$scratch/wide-$dtype.json" || continue
    schedule "$scratch/wide-$dtype.json" zb-h1 "$scratch/wide-h1.json" || continue
    replay "replay: $dtype" "$scratch/wide-h1.json" --model "$model" --dtype $dtype --steps 5 --timeout 100 || continue
    target "$dtype: measured / predicted iteration" "$(ratio "$(measured iteration_ns)" "$(predicted iteration_ns)")" 1.1
    target "$dtype: iteration / sum of its ops" "$(ratio "$(measured iteration_ns)" "$(measured work_ns)")" 1.1
    target "$dtype: host time / device time" "$(ratio "$(number host_ns)" "$(measured work_ns)")" 1
  done
}

# A GPU a device: nccl, in one process and, where there is MPI, in one a device; and what the paper promises.
many_gpus() { # DEVICES
  local p=$1 method optimizer base predicted_base took foretold model=$scratch/deep.json chunks transport mpi=
  check "nccl in this build" bash -c '"$0" --version | grep "NCCL yes"' "$here/zbreplay" || return
  command -v mpirun >/dev/null && ! "$here/zbreplay" --version | grep -q 'MPI none' && mpi=yes
  [ -n "$mpi" ] || skip "nccl, a process a device" "no MPI"
  for method in zb-h1 zb-v; do
    for optimizer in barrier post-validation; do
      replay "nccl: $method, $p GPUs, $optimizer" "$scratch/$method-$p.json" --transport nccl --optimizer $optimizer --clip 1 --verify
    done
    replay "nccl: $method, $p GPUs, graphs" "$scratch/$method-$p.json" --transport nccl --graph --steps 4 --verify
    [ -z "$mpi" ] ||
      check "nccl: $method, $p processes" mpirun -n $p "$here/zbreplay" run "$scratch/$method-$p.json" --backend cuda --transport nccl --verify
  done
  model $((2 * p)) >"$model"
  for chunks in 1 2; do
    check "measure: $p GPUs, $chunks chunks" "$here/zbreplay" measure "$model" --backend cuda --dtype bf16 --devices $p --chunks $chunks \
      --placement "$([ $chunks = 1 ] && echo chain || echo v)" --microbatches $((4 * p)) --repeats 3 -o "$scratch/deep$chunks.json" || return
  done
  for transport in nccl threads; do
    base=
    for method in 1f1b zb-2p zb-v; do
      chunks=1
      [ $method = zb-v ] && chunks=2
      schedule "$scratch/deep$chunks.json" $method "$scratch/deep-$method.json" || continue
      replay "$transport: $method" "$scratch/deep-$method.json" --model "$model" --dtype bf16 --transport $transport --steps 5 --timeout 60 || continue
      took=$(measured iteration_ns) foretold=$(predicted iteration_ns)
      if [ $method = 1f1b ]; then base=$took predicted_base=$foretold; fi
      printf '  %-24s measured %12s ns, predicted %12s ns, of 1f1b %s, predicted %s\n' "$transport: $method" "$took" "$foretold" \
        "$(ratio "$took" "$base")" "$(ratio "$foretold" "$predicted_base")"
      row "{\"gain\": \"$method\", \"transport\": \"$transport\", \"devices\": $p, \"measured_ns\": ${took:-null}, \"predicted_ns\": ${foretold:-null}, \"one_f_one_b_ns\": ${base:-null}}"
      if [ $method != 1f1b ] && [ $transport = nccl ] && [ -n "$base" ]; then
        target "$transport: $method / 1f1b, $p GPUs" "$(ratio "$took" "$base")" 1
      fi
    done
  done
}

[ -n "$standin" ] && echo "STAND-IN: only whether this script works; its times mean nothing"
build_all || exit 1
if [ -n "$standin" ]; then gpus=4 name=stand-in; else
  "$build/bench/kernels" --list >"$scratch/gpus" 2>"$scratch/err" || { cat "$scratch/err"; exit 1; }
  gpus=$(wc -l <"$scratch/gpus") name=$(head -n 1 "$scratch/gpus")
fi
echo "$gpus x $name"
schedules
wanted() { # PART
  [ -z "$parts" ] || [[ " $parts " = *" $1 "* ]] || { skip "$1" "not asked for"; return 1; }
  echo "$2"
}
if wanted right right; then
  conformance
  sanitizer
fi
if wanted kernels kernels; then kernels; fi
if wanted one "one GPU"; then one_gpu; fi
p=1
while [ $((2 * p)) -le "$gpus" ] && [ $p -lt 8 ]; do p=$((2 * p)); done
if [ $p = 1 ]; then
  skip "nccl, and the gain over 1f1b" "one GPU only"
elif wanted many "$p GPUs"; then
  limit_s=$((limit_s + 300))
  many_gpus $p
fi
seconds=$((SECONDS - began_s))
[ $seconds -le $limit_s ] || wrong=$((wrong + 1))
{
  printf '{\n"gpus": %s, "name": "%s", "standin": %s, "seconds": %s, "checks": %s, "wrong": %s, "skipped": [%s],\n"rows": [\n' "$gpus" "$name" \
    "$([ -n "$standin" ] && echo true || echo false)" $seconds $checks $wrong "$skipped"
  paste -sd, "$scratch/rows" | sed 's/},{/},\n{/g'
  printf '],\n"kernels": '
  if [ -s "$scratch/kernels.json" ]; then cat "$scratch/kernels.json"; else echo null; fi
  printf '}\n'
} >"$result.tmp" && mv "$result.tmp" "$result" || wrong=$((wrong + 1))
[ -z "$skipped" ] || echo "not looked at: $skipped"
echo "$checks checks in $seconds s, $wrong wrong: $result"
[ $wrong = 0 ]
