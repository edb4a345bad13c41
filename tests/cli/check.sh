# A true file holds; the first false number is named; a bound that is not redone here is said to be so.
profile=$CONFIGS/table5-1.5b-p8-m24.json
try() {
  "$ZBSOLVE" check "$@"
  echo "exit code $?"
}
"$ZBSOLVE" solve "$profile" --method zb-h1 -q -o schedule.json
try schedule.json
try schedule.json --json
false_file() { # EXPRESSION
  sed "$1" schedule.json >bad.json
  cmp -s schedule.json bad.json && echo "nothing changed: $1"
  try bad.json
}
false_file 's/"span_ns": 1310405000/"span_ns": 1310405001/'
false_file 's/"gap": 0\.[0-9]*/"gap": 0.000001/'
false_file 's/"status": "feasible"/"status": "optimal"/'
false_file '0,/"0F1", "0F2"/s//"0F2", "0F1"/'
false_file '0,/"0F1", /s///'
false_file '0,/18522000, /s//18522001, /'
false_file '0,/"idle_ns": [0-9]*/s//"idle_ns": 1/'
false_file '0,/"peak_bytes": [0-9]*/s//"peak_bytes": 1/'
try bad.json --json
sed -E 's/"bound_ns": [0-9]+, "gap": [0-9.]+/"bound_ns": 1310404000, "gap": 0.000001/' schedule.json >bad-bound.json
try bad-bound.json
try bad-bound.json --json
try "$profile"
# The other program agrees about a bound that is one too high, whatever its proof.
for claim in "1310404000 0.000001" "1310405000 0.000000"; do
  set -- $claim
  for status in feasible optimal; do
    sed -E "s/\"bound_ns\": [0-9]+, \"gap\": [0-9.]+/\"bound_ns\": $1, \"gap\": $2/; s/\"status\": \"[a-z]+\"/\"status\": \"$status\"/" \
      schedule.json >bad-claim.json
    "$ZBSOLVE" check bad-claim.json -q 2>/dev/null
    first=$?
    "$ZBCHECK" -q bad-claim.json 2>/dev/null
    echo "bound $1, $status: exit codes $first and $?"
  done
done
