# What export writes is read back, checked, timed and bounded, and written again with the same bytes.
profile=$CONFIGS/zb-measured-4-stage.json
import() {
  "$ZBSOLVE" import "$@"
  echo "exit code $?"
}
for method in 1f1b zb-h1 zb-h2 greedy 1f1b-interleaved zb-v v-half; do
  "$ZBSOLVE" solve "$profile" --memory-limit none --method $method -q -o $method.json >/dev/null
  for format in torch-csv node-list schedule; do
    "$ZBSOLVE" export $method.json --to $format -q -o $method-$format
    echo "-- $method $format"
    import $method-$format --from $format --profile "$profile" --memory-limit none -o back.json
    "$ZBSOLVE" export back.json --to $format -q -o again
    cmp again $method-$format
  done
done
echo "-- ways to ask"
import zb-h1-torch-csv --from torch-csv --profile "$profile"
import zb-h1-torch-csv --from torch-csv --profile "$profile" --objective period --json -o period.json | sed -E 's/"seconds": [0-9.]+/"seconds": S/'
import - --from torch-csv --profile "$profile" <zb-h1-torch-csv -q
import zb-h2-torch-csv --from torch-csv --profile "$profile" --memory-limit 1x
import zb-h1-torch-csv --from torch-csv --profile "$profile" --microbatches 13
import zb-h1-torch-csv --from torch-csv --profile "$CONFIGS/table5-1.5b-p8-m24.json"
import zb-h1-torch-csv --from torch --profile "$profile"
import zb-h1-torch-csv --from torch-csv
import zb-h1-torch-csv --profile "$profile"
import absent.csv --from torch-csv --profile "$profile"
import . --from torch-csv --profile "$profile"
