#!/usr/bin/env bash
# --backend cuda --transport nccl on the stand-in device, in one process and with a process a device under mpirun: the
# same bits as no pipeline in any legal order of things, one line for what is wrong before the first step, and how it
# ends when a communicator fails, a peer is not seen any more, or a rank is killed.
# Options are lists of words.
# shellcheck disable=SC2086
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
program=$BUILD/standin/zbreplay
if ! [ -x "$program" ] || ! "$program" --version | grep -q 'NCCL yes'; then
  echo "no CUDA toolkit with NCCL"
  exit 77
fi
passed=0 failed=0 skipped=0
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
many() { if [ -n "${ZB_LONG:-}" ]; then echo "$2"; else echo "$1"; fi; }
check() { # WHAT CONDITION..
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $what"; tail -n 20 "$scratch/err"; fi
}
run() { # STAND-IN OPTION..: out, err and code
  local standin=$1
  shift
  ZB_STANDIN=$standin timeout 300 "$program" run --backend cuda --transport nccl "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
}
mpi() { # STAND-IN RANKS COMMAND..
  local standin=$1 ranks=$2
  shift 2
  ZB_STANDIN=$standin timeout 120 mpirun -n "$ranks" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
}
ended() { [ "$code" = "$1" ]; }
says() { # CODE LINE: that line alone
  [ "$code" = "$1" ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -q "$2" "$scratch/err"
}
to_the_bit() { ended 0 && grep -q '^verified: .* to the bit' "$scratch/out"; }
when() { set -- random eager late; shift $((RANDOM % 3)); echo "seed=$RANDOM,when=$1"; }

for p in 2 4 8; do
  cat >"$scratch/profile$p.json" <<END
{"zbsolve_profile": 1, "devices": $p, "microbatches": $((p + 2)), "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0.1},
 "memory": {"unit": "MiB", "f": 3, "b": -1, "w": -2}}
END
  for method in 1f1b zb-h1 zb-v; do
    "$ZBSOLVE" solve "$scratch/profile$p.json" -q --method $method -o "$scratch/$method-$p.json" >/dev/null || exit 1
    "$ZBCHECK" "$scratch/$method-$p.json" --no-bound >/dev/null 2>&1
    [ $? = 10 ] || { echo "zbcheck: $method-$p.json"; exit 1; }
  done
done

# One process.
for round in $(seq "$(many 1 50)"); do
  for p in $(many 4 "2 4 8"); do
    for method in zb-h1 zb-v; do
      for optimizer in barrier "post-validation --clip 1"; do
        [ "$(many $method-${optimizer%% *} all)" = zb-h1-barrier ] && continue
        [ -n "${ZB_AGAIN:-}" ] && [ $method-${optimizer%% *} = zb-v-post-validation ] && continue
        how=$(when)
        run "$how" "$scratch/$method-$p.json" --optimizer $optimizer --verify -q
        check "$method, $p devices, $optimizer, $how, round $round" to_the_bit
      done
    done
    how=$(when)
    run "$how" "$scratch/zb-v-$p.json" --graph --steps 4 --verify -q
    check "as graphs, $p devices, $how, round $round" to_the_bit
  done
done

# What is wrong before the first step.
run devices=2 "$scratch/zb-h1-4.json"
check "too few GPUs" says 2 'shows 2 GPUs to its 4 devices; --transport nccl needs one for each: devices 0 and 2 would share'
ZB_STANDIN=seed=1 "$program" run --transport nccl "$scratch/zb-h1-2.json" >"$scratch/out" 2>"$scratch/err"
code=$?
check "another backend" says 2 'transport nccl.* --backend cpu'
run no_driver=1 "$scratch/zb-h1-2.json"
check "no driver" test $code != 0 -a "$(wc -l <"$scratch/err")" = 1
run visible=11 "$scratch/zb-h1-2.json"
check "a GPU is visible twice" says 2 'no GPU here'

# What goes wrong later. Each device has one line, which says where it was.
reports() { # DEVICES
  local d
  for d in $(seq 0 $(($1 - 1))); do
    [ "$(grep -c "^zbreplay: device $d, step [0-9]*: finished " "$scratch/err")" = 1 ] || { echo "device $d"; return 1; }
  done
}
for p in $(many 4 "2 4"); do
  begin_ms=$(date +%s%3N)
  run "$(when),fail_communicator=$((100 + RANDOM % 50))" "$scratch/zb-h1-$p.json" --steps 50
  check "a communicator fails, $p devices: exit code $code" ended 1
  check "a communicator fails, $p devices: reports" reports $p
  check "a communicator fails, $p devices: at once" test $(($(date +%s%3N) - begin_ms)) -lt 20000
  run "$(when),vanish=$((100 + RANDOM % 50))" "$scratch/zb-h1-$p.json" --steps 50 --timeout 1
  check "a peer is not seen, $p devices: exit code $code" ended 1
  check "a peer is not seen, $p devices: reports" reports $p
  check "a peer is not seen, $p devices: waits" grep -q 'waiting for .* device .*, [0-9]* bytes: .* in time' "$scratch/err"
done

# A process a device.
if ! command -v mpirun >/dev/null || "$program" --version | grep -q 'MPI none'; then
  skipped=$((skipped + 1))
  echo "no MPI: apt-get install libmpich-dev mpich"
else
  for script in order:4 deadline:2 abandon:3; do
    mpi "$(when)" "${script#*:}" "$BUILD/tests/test_nccl" mpi "${script%:*}"
    # After abandon a process ends as it can, and a launcher may end the others then. Lines of two ranks may mix.
    [ "${script%:*}" = order ] && check "mpi: $script" ended 0
    check "mpi: $script, every device" test "$(grep -o passed "$scratch/out" | wc -l)" = "${script#*:}"
  done
  nccl="$program run --backend cuda --transport nccl"
  for p in $(many 2 "2 4"); do
    for method in zb-h1 zb-v; do
      options="$scratch/$method-$p.json --steps 3 --clip 1 --optimizer post-validation --verify --json"
      run seed=1 $options
      grep -o '"loss.*' "$scratch/out" >"$scratch/threads"
      mpi "$(when)" $p $nccl $options
      check "mpi: $method, $p ranks" ended 0
      grep -o '"loss.*' "$scratch/out" >"$scratch/mpi"
      check "mpi: $method, $p ranks: the losses of one process" cmp -s "$scratch/threads" "$scratch/mpi"
    done
  done
  mpi seed=1 3 $nccl "$scratch/zb-h1-4.json"
  check "mpi: another number of processes" says 2 'the launcher started 3 processes, the program is for 4: mpirun -n 4'
  mpi devices=1 2 $nccl "$scratch/zb-h1-2.json"
  check "mpi: one GPU for two" grep -q '^zbreplay: .* shows 1 GPU to its 2 devices; .* devices 0 and 1 would share' "$scratch/err"
  check "mpi: one GPU for two: exit code $code" ended 2
  # What each process sees of the machine, and with which NCCL.
  each() { # STAND-IN..: of each rank
    local words=() d=$#
    for standin; do words+=(: -n 1 env "ZB_STANDIN=$standin" $nccl "$scratch/zb-h1-$d.json" --verify -q); done
    timeout 120 mpirun "${words[@]:1}" >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
  }
  refused() { # LINE: that one, and no other but of who is where
    [ "$code" = 2 ] && [ "$(grep -vc '^device [0-9]: rank' "$scratch/err")" = 1 ] && grep -qE "^zbreplay: $1\$" "$scratch/err"
  }
  each visible=2 visible=1
  check "a GPU to each" to_the_bit
  each visible=21 visible=21
  check "both GPUs to both" to_the_bit
  each visible=1 visible=1
  check "the same GPU to both" refused '.* shows 1 GPU to its 2 devices; .* devices 0 and 1 would share 0000:01:00.0'
  each visible=12 visible=21
  check "both GPUs to both, in another order" refused 'devices 0 and 1 are both on GPU 0000:01:00.0 of .*; --transport nccl needs one for each'
  each visible=12 visible=1
  check "both GPUs to one, one to the other" refused 'devices 0 and 1 are both on GPU 0000:01:00.0 of .*; .*'
  each visible=3 visible=1 visible=2 visible=1
  check "the same GPU to two of four" refused 'devices 1 and 3 are both on GPU 0000:01:00.0 of .*; .*'
  each nccl_version=22703 nccl_version=22703
  check "another NCCL than this tree was compiled with" to_the_bit
  each nccl_version=22703 nccl_version=22703 nccl_version=22809 nccl_version=22703
  check "one has another NCCL" refused 'device 2 on .* has NCCL 2.28.9, device 0 on .* has NCCL 2.27.3'
  # The same place on two hosts is two GPUs.
  other="unshare --uts sh -c"
  if $other 'hostname other' 2>/dev/null; then
    options="$scratch/zb-h1-2.json --verify -q"
    timeout 120 mpirun -n 1 env ZB_STANDIN=visible=1 $nccl $options : -n 1 $other "hostname other
      ZB_STANDIN=visible=1,host=1 exec $nccl $options" >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
    check "the same place on two hosts" to_the_bit
  else
    skipped=$((skipped + 1))
    echo "two hosts: no host names of their own here"
  fi
  cp "$scratch/zb-h1-4.json" "$scratch/kill.json"
  gone() { ! ps -eo stat=,args= | grep -v '^Z' | grep -v grep | grep -q "$scratch/kill.json"; }
  for victim in $(seq 0 "$(many 0 3)"); do
    : >"$scratch/err"
    ZB_STANDIN=$(when),unchecked=1 timeout 60 mpirun -n 4 $nccl "$scratch/kill.json" --steps 100000 --timeout 1 >"$scratch/out" 2>"$scratch/err" </dev/null &
    launcher=$!
    for _ in $(seq 200); do
      [ "$(grep -c '^device [0-9]: rank' "$scratch/err")" = 4 ] && break
      sleep 0.05
    done
    sleep 0.$((500 + RANDOM % 400))
    kill -KILL "$(sed -n "s/^device $victim: .* process \([0-9]*\) on .*/\1/p" "$scratch/err")"
    begin_ms=$(date +%s%3N)
    wait $launcher
    code=$?
    took_ms=$(($(date +%s%3N) - begin_ms))
    for _ in $(seq 20); do gone && break; sleep 0.05; done
    check "kill of rank $victim: names it" grep -q "^zbreplay: device $victim, .*: this process was ended" "$scratch/err"
    check "kill of rank $victim: ends in $took_ms ms" test "$took_ms" -lt 6000
    check "kill of rank $victim: exit code $code" test "$code" != 0 -a "$code" != 124
    check "kill of rank $victim: nothing is left" gone
  done
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
