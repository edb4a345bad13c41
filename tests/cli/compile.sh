# Schedules to programs: what is printed, what the file holds, and what is refused.
code() {
  "$@"
  echo "exit code $?: ${*:2}"
}
cat >profile.json <<END
{"zbsolve_profile": 1, "name": "three devices", "devices": 3, "microbatches": 3,
 "time": {"unit": "ns", "f": 10, "b": 11, "w": 6, "comm": 2}, "memory": {"unit": "B", "f": 3, "b": -1, "w": -2}}
END
"$ZBSOLVE" solve profile.json --method zb-h1 -q -o schedule.json
code "$ZBSOLVE" compile schedule.json
code "$ZBSOLVE" compile schedule.json --channels edge --optimizer none --json
code "$ZBSOLVE" compile schedule.json -o program.json
cat program.json
code "$ZBSOLVE" compile schedule.json -o program.json -q --optimizer post-validation
sed -n '/"slots"/,$p' program.json
code "$ZBSOLVE" check program.json
code "$ZBSOLVE" check program.json --json
code "$ZBSOLVE" check - <program.json
"$ZBSOLVE" compile schedule.json -o - | cmp - <("$ZBSOLVE" compile - -o - <schedule.json) && echo same

# A V, and several chunks on a loop.
for method in zb-v 1f1b-interleaved; do
  "$ZBSOLVE" solve "$CONFIGS/zb-v-16-layer-8-device.json" --method $method --memory-limit none -q -o placed.json
  code "$ZBSOLVE" compile placed.json -o placed-program.json -v
  code "$ZBSOLVE" check placed-program.json
done

# What is refused, and what stays as it was.
sed 's/"span_ns": [0-9]*/"span_ns": 1/' schedule.json >bad-span.json
sed 's/"channels": "rank"/"channels": "line"/' program.json >bad-channels.json
sed 's/\["0SEND_F0", 1, 0\], //; s/\["0WAIT_SEND_F0", 1, 0\], //' program.json >bad-send.json
cp program.json kept.json
code "$ZBSOLVE" compile bad-span.json -o program.json
code "$ZBSOLVE" compile profile.json -o program.json
code "$ZBSOLVE" compile program.json
code "$ZBSOLVE" compile none.json
code "$ZBSOLVE" compile schedule.json -o none/program.json
code "$ZBSOLVE" compile schedule.json -o - --json
code "$ZBSOLVE" compile schedule.json --channels all
code "$ZBSOLVE" compile schedule.json --optimizer adam
code "$ZBSOLVE" check bad-channels.json
code "$ZBSOLVE" check bad-send.json
code "$ZBSOLVE" check bad-send.json --json
"$ZBSOLVE" solve profile.json --memory-limit 2B -q -o infeasible.json
code "$ZBSOLVE" compile infeasible.json -o program.json
cmp program.json kept.json && echo "the old program is still there"

# Sends and receives that wait for each other, and the same where each direction has its own channel.
cp "${0%/cli/*}/parse/program/hangs-both-ways.json" bad-hangs.json
code "$ZBSOLVE" check bad-hangs.json
code "$ZBSOLVE" check bad-hangs.json --json
sed 's/"channels": "rank"/"channels": "edge"/' bad-hangs.json >bad-edge.json
code "$ZBSOLVE" check bad-edge.json
