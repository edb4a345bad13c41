# No order fits: the device, its limit and the least that any order keeps; the answer is written and holds.
profile=$CONFIGS/table5-1.5b-p8-m24.json
"$ZBSOLVE" solve "$profile" --memory-limit 0.1x -o answer.json
echo "exit code $?"
"$ZBSOLVE" check answer.json
"$ZBSOLVE" show answer.json
"$ZBSOLVE" compare "$profile" --memory-limit 0.1x --methods 1f1b,greedy | sed -E 's/ +[0-9]+\.[0-9]{3}$//'
echo "exit code ${PIPESTATUS[0]}"
