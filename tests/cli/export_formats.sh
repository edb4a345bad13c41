# Each format of a schedule on a chain, a loop, a V and a list: the file, or why it cannot be.
for method in zb-h1 1f1b-interleaved zb-v; do
  "$ZBSOLVE" solve "$CONFIGS/zb-measured-4-stage.json" --microbatches 4 --memory-limit none --method $method -q -o $method.json >/dev/null
  for format in torch-csv node-list megatron-layout; do
    echo "-- $method $format"
    "$ZBSOLVE" export $method.json --to $format $([ $format != megatron-layout ] || echo --layers 26) -o out 2>notes
    [ $format != node-list ] || sed -n 1,4p out
    [ $format = node-list ] || [ ! -e out ] || cat out
    cat notes
    rm -f out
  done
done
echo "-- torch-csv --json"
"$ZBSOLVE" export zb-v.json --to torch-csv --target 2.6 --json
echo "-- a list"
cat >list.json <<'JSON'
{"zbsolve_profile": 1, "devices": 2, "microbatches": 2, "chunks": 2, "placement": [0, 0, 1, 1],
 "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0}}
JSON
"$ZBSOLVE" solve list.json -q -o listed.json >/dev/null
for format in torch-csv torch-comms-csv node-list megatron-layout; do
  "$ZBSOLVE" export listed.json --to $format
  echo "exit code $?"
done
"$ZBSOLVE" export zb-h1.json --to megatron-layout
echo "exit code $?"
