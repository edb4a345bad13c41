# A gigabyte on one line, from a file and from a pipe: one line of complaint, and soon.
truncate -s 1G zeros.csv
for format in torch-csv torch-comms-csv node-list schedule; do
  timeout 20 "$ZBSOLVE" import zeros.csv --from $format --profile "$CONFIGS/zb-measured-4-stage.json"
  echo "exit code $?"
  yes 0F0, | tr -d '\n' | timeout 20 "$ZBSOLVE" import - --from $format --profile "$CONFIGS/zb-measured-4-stage.json"
  echo "exit code $?"
done
rm zeros.csv
