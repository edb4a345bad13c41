# A method that needs more than the limit: nothing is written, the old file stays, and the limit it names is the
# least that does.
profile=$CONFIGS/table5-1.5b-p8-m24.json
echo '{"old": 1}' >schedule.json
"$ZBSOLVE" solve "$profile" --method zb-h2 --memory-limit 1x -o schedule.json
echo "exit code $?"
cat schedule.json
"$ZBSOLVE" solve "$profile" --method zb-h2 --memory-limit 1.875x -q
"$ZBSOLVE" solve "$profile" --method zb-h2 --memory-limit 1.874999x -q
"$ZBSOLVE" solve "$profile" --method zb-h2 --memory-limit 3018240B -q
"$ZBSOLVE" solve "$profile" --method zb-h2 --memory-limit 3018239B -q
cat >limits.json <<'END'
{"zbsolve_profile": 1, "devices": 3, "microbatches": 6, "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0},
 "memory": {"unit": "MiB", "f": 10, "b": -6, "w": -4, "limit": [100, 15, null], "static": [5, 1, 0]}}
END
"$ZBSOLVE" solve limits.json --method 1f1b
"$ZBSOLVE" solve limits.json --method gpipe --memory-limit none -q
