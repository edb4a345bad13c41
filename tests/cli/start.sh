# An imported schedule is searched on from, and never made worse.
profile=$CONFIGS/zb-measured-4-stage.json
try() {
  "$ZBSOLVE" solve "$@"
  echo "exit code $?"
}
"$ZBSOLVE" solve "$profile" -q -o best.json
"$ZBSOLVE" export best.json --to node-list -q -o best.nodes
"$ZBSOLVE" import best.nodes --from node-list --profile "$profile" -o imported.json -q
try "$profile" --start imported.json --method window -q -o again.json
try "$profile" --start imported.json --objective makespan -q
try "$profile" --start imported.json --method zb-h1
try "$profile" --start imported.json --microbatches 13
try "$profile" --start imported.json --memory-limit 2MiB
try "$profile" --start "$profile"
"$ZBSOLVE" solve "$profile" --method zb-v -q -o v.json >/dev/null
try "$profile" --start v.json
