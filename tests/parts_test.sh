#!/bin/sh
# What .ci/parts says about CUDA and NCCL where they are left out, missing, or asked for and missing; and what a
# build without CUDA says about a backend that it has not.
set -u
failed=0
export GLPK=0 ZLIB=0 BLAS=0 MPI=0 CMOCKA=0
off="glpk off, zlib off, blas off, mpi off"

expect() { # CODE TEXT NAME=VALUE..
  code=$1 text=$2
  shift 2
  rm -f "$SCRATCH/parts.mk"
  env "$@" .ci/parts write "$SCRATCH/parts.mk" 2>"$SCRATCH/said"
  got=$?
  if [ $got != "$code" ] || [ "$(cat "$SCRATCH/said")" != "$text" ]; then
    printf '%s: exit code %s, expected %s\n%s\nexpected:\n%s\n' "$*" $got "$code" "$(cat "$SCRATCH/said")" "$text"
    failed=1
  fi
}

get="CUDA_HOME=DIR, where NVIDIA's toolkit is and a C++ compiler beside it"
expect 0 "parts: $off, cuda off, nccl off, cmocka off" CUDA=0 NCCL=auto
expect 0 "parts: $off, cuda no ($get), nccl off, cmocka off" CUDA=auto NCCL=auto CUDA_HOME=/nowhere NVCC=
expect 1 "parts: CUDA=1, but cuda does not link: $get" CUDA=1 NCCL=auto CUDA_HOME=/nowhere NVCC=
expect 1 "parts: NCCL=1 needs CUDA: $get" CUDA=0 NCCL=1
expect 1 "parts: CUDA=maybe: expected auto, 1 or 0" CUDA=maybe NCCL=auto

if ! grep -q '^PART_CUDA = yes' "$BUILD/parts.mk"; then
  echo '{"zbsolve_profile":1,"name":"two","devices":2,"microbatches":2,"time":{"unit":"ms","f":1,"b":1,"w":1,"comm":0}}' \
    >"$SCRATCH/two.json"
  "$ZBSOLVE" solve "$SCRATCH/two.json" -q -o "$SCRATCH/schedule.json" >/dev/null
  "$ZBREPLAY" run "$SCRATCH/schedule.json" --backend cuda >"$SCRATCH/said" 2>&1
  got=$?
  want="zbreplay: --backend cuda: this build has no CUDA (install NVIDIA's toolkit, then make CUDA_HOME=DIR)"
  if [ $got != 2 ] || [ "$(cat "$SCRATCH/said")" != "$want" ]; then
    printf -- '--backend cuda: exit code %s\n%s\n' $got "$(cat "$SCRATCH/said")"
    failed=1
  fi
fi
exit $failed
