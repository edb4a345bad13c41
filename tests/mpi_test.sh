#!/usr/bin/env bash
# --transport mpi under mpirun: what every transport must do, one line for what is wrong before the first step, the
# same bits as threads, and how it ends when a rank is killed or stopped at any moment, or while a checkpoint is
# written. A rank is gone when it is dead, whoever reaps it. Times: what --timeout says, and a moment for the launcher.
# Options are lists of words.
# shellcheck disable=SC2086
set -u
scratch=$(mktemp -d)
ns=zb$$
finish() {
  ip netns del $ns-a 2>/dev/null
  ip netns del $ns-b 2>/dev/null
  rm -rf "$scratch"
}
trap finish EXIT
if ! command -v mpirun >/dev/null || "$ZBREPLAY" --version | grep -q 'MPI none'; then
  echo "no MPI: apt-get install libmpich-dev mpich"
  exit 77
fi
passed=0 failed=0 skipped=0
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
check() { # WHAT CONDITION..
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $what"; tail -n 20 "$scratch/err"; fi
}
many() { if [ -n "${ZB_LONG:-}" ]; then echo "$2"; else echo "$1"; fi; }
again() { [ -n "${ZB_AGAIN:-}" ]; }
mpi() { # RANKS COMMAND..: out, err and code
  local ranks=$1
  shift
  timeout 120 mpirun -n "$ranks" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
}
ended() { [ "$code" = "$1" ]; }
launched() { [ "$code" = 0 ] || grep -q '^\[mpiexec@' "$scratch/err"; }
says() { # CODE LINE: that line alone
  [ "$code" = "$1" ] && [ "$(wc -l <"$scratch/err")" = 1 ] && grep -q "$2" "$scratch/err"
}

# Profiles and schedules; one of 1 ms ops for the kills.
for p in 2 4 8; do
  cat >"$scratch/profile$p.json" <<END
{"zbsolve_profile": 1, "devices": $p, "microbatches": 8, "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0.1},
 "memory": {"unit": "MiB", "f": 3, "b": -1, "w": -2}}
END
  for method in zb-h1 zb-v; do
    "$ZBSOLVE" solve "$scratch/profile$p.json" -q --method $method -o "$scratch/$method-$p.json" >/dev/null || exit 1
    "$ZBCHECK" "$scratch/$method-$p.json" --no-bound >/dev/null 2>&1
    [ $? = 10 ] || { echo "zbcheck: $method-$p.json"; exit 1; }
  done
done
model=configs/models/tiny.json

for script in order:5 deadline:2 abandon:3 disagree:2 delay:2; do
  [ -x "$BUILD/tests/test_transport" ] || break
  mpi "${script#*:}" "$BUILD/tests/test_transport" mpi "${script%:*}"
  # After abandon a process ends as it can, and a launcher may end the others then. Lines of two ranks may mix.
  [ "${script%:*}" = abandon ] || check "transport: $script" ended 0
  check "transport: $script, every device" test "$(grep -o passed "$scratch/out" | wc -l)" = "${script#*:}"
done

run="$ZBREPLAY run --transport mpi"
mpi 3 $run "$scratch/zb-h1-4.json"
check "another number of processes" says 2 'the launcher started 3 processes, the program is for 4: mpirun -n 4'
mpi 4 $run "$scratch/absent.json"
check "a missing file" says 2 'absent.json: cannot open'
head -c 700 "$scratch/zb-h1-4.json" >"$scratch/bad-short.json"
mpi 4 $run "$scratch/bad-short.json"
check "a truncated file" says 2 'bad-short.json'
mpi 1 $run "$scratch/zb-h1-2.json" : -n 1 $run "$scratch/zb-h1-2.json" --seed 2
check "another seed on one device" says 2 'device 1 on .* has another program, model, data, option or build than device 0'
mpi 1 $run "$scratch/zb-h1-2.json" : -n 1 $run "$scratch/absent.json"
check "a file missing on one device" says 2 'absent.json: cannot open'
mpi 2 $run "$scratch/zb-h1-2.json" --checkpoint "$scratch/nowhere/deep"
check "a checkpoint that cannot be written" ended 1

# The same bits as threads, and as no pipeline.
for p in 4 8; do
  for method in zb-h1 zb-v; do
    if again && [ $method-$p != zb-h1-8 ] && [ $method-$p != zb-v-4 ]; then continue; fi
    options="$scratch/$method-$p.json --model $model --steps 4 --clip 1 --optimizer post-validation --verify --json"
    "$ZBREPLAY" run $options | grep -o '"loss.*' >"$scratch/threads"
    mpi $p $run $options
    check "$method, $p ranks" ended 0
    grep -o '"loss.*' "$scratch/out" >"$scratch/mpi"
    check "$method, $p ranks: the losses of threads" cmp -s "$scratch/threads" "$scratch/mpi"
    check "$method, $p ranks: who is where" test "$(grep -c '^device [0-9]: rank [0-9] of' "$scratch/err")" = $p
  done
done
if [ -x "$BUILD/tests/test_matrix" ]; then
  for p in $(if again; then echo 2; else many "2 4" "1 2 4 8"; fi); do
    timeout 3000 mpirun -n "$p" "$BUILD/tests/test_matrix" mpi "$p" >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
    check "matrix, p $p" ended 0
    sort -u "$scratch/out"
  done
fi

# Kills and stops. One trial: each device has one line, all is over in time, nothing is left.
gone() { ! ps -eo stat=,args= | grep -v '^Z' | grep -v grep | grep -q "$scratch/kill.json"; }
reports() { # VICTIM SIGNAL
  local d line
  for d in 0 1 2 3; do
    line=$(grep -c "^zbreplay: device $d, step [0-9]*: finished " "$scratch/err")
    [ "$line" = 1 ] || { echo "device $d has $line lines"; return 1; }
  done
  grep -q "^zbreplay: device $1, step .*: this process was ended" "$scratch/err" || return 1
  [ "$2" = KILL ] || grep -q "waiting for .* bytes: nothing came in time" "$scratch/err"
}
trial() { # SIGNAL VICTIM OPTION..
  local signal=$1 victim=$2 pid launcher begin_ms
  shift 2
  cp "$scratch/zb-h1-4.json" "$scratch/kill.json"
  : >"$scratch/err"
  timeout 60 mpirun -n 4 $run "$scratch/kill.json" --steps 100000 --timeout 1 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
  launcher=$!
  for _ in $(seq 200); do
    [ "$(grep -c '^device [0-9]: rank' "$scratch/err")" = 4 ] && break
    sleep 0.05
  done
  pid=$(sed -n "s/^device $victim: .* process \([0-9]*\) on .*/\1/p" "$scratch/err")
  sleep 0.$((100 + RANDOM % 300))
  kill -"$signal" "$pid"
  begin_ms=$(date +%s%3N)
  wait $launcher
  code=$?
  took_ms=$(($(date +%s%3N) - begin_ms))
  for _ in $(seq 20); do gone && break; sleep 0.05; done
}
trials=0
for round in $(seq "$(many 1 20)"); do
  for signal in KILL STOP; do
    for victim in 0 1 2 3; do
      if [ "$(many x '')$signal$((victim % 2))" = xSTOP1 ]; then continue; fi
      if again && [ $signal$victim != KILL1 ] && [ $signal$victim != STOP2 ]; then continue; fi
      backend=$(((round + victim) % 2))
      if [ $backend = 0 ]; then trial $signal $victim --backend sleep; else trial $signal $victim --model $model; fi
      what="kill -$signal of rank $victim, round $round"
      check "$what: reports" reports $victim $signal
      check "$what: ends in $took_ms ms" test "$took_ms" -lt 4000
      check "$what: exit code $code" test "$code" != 0 -a "$code" != 124
      check "$what: nothing is left" gone
      trials=$((trials + 1))
    done
  done
done
echo "$trials kills and stops"

# Killed while it writes a checkpoint after every step: what is there is whole, and goes on to the same bits, under
# another program too.
halves=0
sed 's/"hidden": 16/"hidden": 64/' $model >"$scratch/model.json"
for round in $(seq "$(if again; then echo 2; else many 4 20; fi)"); do
  rm -rf "$scratch/kept"
  "$ZBREPLAY" run "$scratch/zb-h1-4.json" --model "$scratch/model.json" --steps 100000 --checkpoint "$scratch/kept" --checkpoint-every 1 \
    --optimizer post-validation -q >"$scratch/out" 2>"$scratch/err" &
  launcher=$!
  for _ in $(seq 200); do [ -e "$scratch/kept/checkpoint" ] && break; sleep 0.02; done
  sleep 0.$((100 + RANDOM % 200))
  kill -KILL $launcher
  wait $launcher 2>/dev/null
  step=$(head -c 60 "$scratch/kept/checkpoint" | sed -n 's/^zbsolve_checkpoint 1 step \([0-9]*\) .*/\1/p')
  [ "$(find "$scratch/kept" -type f | wc -l)" = 1 ] || halves=$((halves + 1))
  resume="--model $scratch/model.json --steps $((step + 2)) --checkpoint $scratch/kept --verify -q"
  if [ $((round % 2)) = 0 ]; then mpi 4 $run "$scratch/zb-v-4.json" $resume; else mpi 2 $run "$scratch/zb-h1-2.json" $resume; fi
  check "killed after step $step, resumed" ended 0
  check "killed after step $step, resumed: to the bit" grep -q '^verified: 2 losses, .* to the bit' "$scratch/out"
done
echo "$halves of the kills came in the middle of a write"

# Two hosts: two network namespaces with a name each, joined by one wire; MPI may use nothing else.
hosts() {
  ip netns add $ns-a && ip netns add $ns-b && ip link add name zb0 netns $ns-a type veth peer name zb0 netns $ns-b || return 1
  ip -n $ns-a addr add 10.77.0.1/24 dev zb0 && ip -n $ns-b addr add 10.77.0.2/24 dev zb0 || return 1
  for n in $ns-a $ns-b; do ip -n $n link set lo up && ip -n $n link set zb0 up || return 1; done
  for _ in $(seq 50); do ip -n $ns-b -br link show zb0 | grep -q ' UP ' && break; sleep 0.1; done
  ip netns exec $ns-a unshare --uts true
} >"$scratch/err" 2>&1
if hosts; then
  cat >"$scratch/launch" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in 10.77.0.1) name=a ;; *) name=b ;; esac
shift
exec ip netns exec $ns-\$name unshare --uts sh -c "hostname host-\$name; \$*"
END
  chmod +x "$scratch/launch"
  UCX_TLS=tcp,self UCX_NET_DEVICES=zb0 timeout 100 ip netns exec $ns-a unshare --uts sh -c "hostname host-a; exec mpirun \
    -localhost 10.77.0.1 -launcher ssh -launcher-exec $scratch/launch -hosts 10.77.0.1,10.77.0.2 -n 4 \
    $run $scratch/zb-h1-4.json --verify -q" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  # MPICH's launcher may fail over TCP as ranks leave; the last check says that they were done by then.
  check "two hosts" launched
  check "two hosts: who is where" test "$(grep -c '^device [0-9]: .* on host-[ab]$' "$scratch/err")" = 4
  check "two hosts: both" grep -q 'on host-b' "$scratch/err"
  check "two hosts: to the bit" grep -q '^verified: 3 losses, .* to the bit' "$scratch/out"
else
  skipped=$((skipped + 1))
  echo "two hosts: no network namespaces here: $(tail -n 1 "$scratch/err")"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
