# The first signal and the time limit both end in the best so far, written and whole.
profile=$CONFIGS/table5-28.3b-p32-m256.json
for signal in INT TERM; do
  "$ZBSOLVE" solve "$profile" --microbatches 4000 -v -o $signal.json >line 2>said-$signal &
  until [ -s said-$signal ]; do sleep 0.01; done
  kill -$signal $! 2>/dev/null
  wait $!
  echo "exit code $?: $signal, $(tail -n 1 line | cut -d ' ' -f 1,2)"
  "$ZBSOLVE" check $signal.json -q && echo "holds"
done
"$ZBSOLVE" solve "$profile" --time-limit 0.001 -q -o limit.json | cut -d ' ' -f 1,2
"$ZBSOLVE" check limit.json -q && echo "holds"
"$ZBSOLVE" frontier "$profile" --from 1x --to 2x --step 0.5x --time-limit 0.001 | tail -n 3 | cut -c 1-26
"$ZBSOLVE" compare "$profile" --time-limit 0.001 --methods 1f1b,zb-h1 | sed -n '3,5p' | cut -c 1-42
