# What zbreplay refuses, in one line, before the first step.
try() {
  "$ZBREPLAY" "$@"
  echo "exit code $?: $*"
}
cat >profile.json <<END
{"zbsolve_profile": 1, "devices": 2, "microbatches": 4, "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0}}
END
"$ZBSOLVE" solve profile.json -q --method 1f1b -o schedule.json >solved
"$ZBSOLVE" compile schedule.json -q --optimizer none -o none.json
"$ZBSOLVE" compile schedule.json -q --optimizer barrier -o program.json
head -c 600 program.json >bad-short.json
sed 's/\["0SEND_F1", 1,/["0SEND_F1", 0,/' program.json >bad-peer.json
try
try walk schedule.json
try run
try run schedule.json again.json
try run absent.json
try run schedule.json --model absent.json
try run schedule.json --data absent.txt
try run profile.json
try run none.json
try run program.json --optimizer post-validation
try run bad-short.json
try run bad-peer.json
try run schedule.json --steps 0
try run schedule.json --steps 2 --warm-up 2
try run schedule.json --backend abacus
try run schedule.json --bend
try run schedule.json --verify --verify
try run schedule.json --backend sleep --verify
try run schedule.json --inject nan:1
try run schedule.json --inject nan:9:0
try run schedule.json --inject nan:0:2
try run schedule.json --trace nowhere/trace.json
printf 'short' >short.txt
try run schedule.json --data short.txt
sed 's/"blocks": 8/"blocks": 8, "stages": [2, 2, 4]/' configs/models/tiny.json >model.json
try run schedule.json --model model.json
sed 's/"heads": 2/"heads": 3/' configs/models/tiny.json >model.json
try run schedule.json --model model.json
try measure model.json
sed 's/"blocks": 8, "hidden": 16/"blocks": 900, "hidden": 16384/' configs/models/tiny.json >model.json
for command in 'run schedule.json --model' measure; do
  # shellcheck disable=SC2086
  try $command model.json 2>said
  sed -E 's/[0-9.]+ GiB/N GiB/g' said
done
try measure configs/models/tiny.json --backend sleep
try measure configs/models/tiny.json --placement v --chunks 3
try measure configs/models/tiny.json -o nowhere/profile.json
