# One JSON object on stdout for every way in which a solve can end.
profile=$CONFIGS/table5-1.5b-p8-m24.json
run() {
  "$ZBSOLVE" solve "$profile" --json "$@" 2>/dev/null | sed -E 's/"seconds": [0-9.]+/"seconds": 0/'
  echo "exit code ${PIPESTATUS[0]}"
}
run --method zb-h1 -o schedule.json
run --method zb-h1 --require-optimal
run --method 1f1b-interleaved --chunks 3 --objective period
run --method zb-h2 --memory-limit 1x
run --memory-limit 0.1x
