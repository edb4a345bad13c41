# The file on stdout or in -o; one JSON object; what is refused.
try() {
  "$ZBSOLVE" export "$@"
  echo "exit code $?"
}
"$ZBSOLVE" solve "$CONFIGS/zb-measured-4-stage.json" --method zb-h1 -q -o schedule.json
"$ZBSOLVE" export schedule.json --to schedule | cmp - schedule.json
try schedule.json --to schedule -o again.json
cmp again.json schedule.json
try schedule.json --to schedule -o again.json --json
"$ZBSOLVE" export schedule.json --to schedule --json | head -c 60
echo
try schedule.json
try schedule.json --to shedule
try schedule.json --to schedule -o - --json
try schedule.json --to schedule -o absent/again.json
try absent.json --to schedule
sed 's/"span_ns": [0-9]*/"span_ns": 1/' schedule.json >bad.json
try bad.json --to schedule
try schedule.json --to svg --target 2.6
try schedule.json --to torch-csv --layers 24
try schedule.json --to torch-csv --only-schedule
