# Each exit code of contract.md section 5 that a healthy program can return.
profile=$CONFIGS/table5-1.5b-p8-m24.json
try() {
  "$ZBSOLVE" "$@"
  echo "exit code $?: $1"
}
try solve "$profile" -q --method zb-h1 -o schedule.json
try check schedule.json -q
try solve "$profile" -q -o nowhere/schedule.json
"$ZBSOLVE" solve "$profile" -q --method zb-h1 >/dev/full
echo "exit code $?: full"
try solve absent.json -q
sed 's/"span_ns": 1310405000/"span_ns": 1310404999/' schedule.json >bad.json
try check bad.json -q
try solve "$profile" -q --method zb-h1 --require-optimal
try solve "$profile" -q --memory-limit 0.1x
try solve "$profile" -q --memory-limit 1x --method zb-h2
