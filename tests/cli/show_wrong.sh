# A file that is wrong is drawn as its orders really run, and then told off.
"$ZBSOLVE" solve "$CONFIGS/zb-toy-tight-memory.json" -q --method greedy -o schedule.json
sed -E 's/"span_ns": [0-9]+/"span_ns": 1/' schedule.json >bad.json
"$ZBSOLVE" show bad.json --width 80
echo "exit code $?"
sed -E '0,/"[0-9]+F0", /s///' schedule.json >bad.json
"$ZBSOLVE" show bad.json --width 80
echo "exit code $?"
