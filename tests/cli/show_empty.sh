# Nothing takes any time: there is nothing to see, and nothing breaks.
cat >profile.json <<'END'
{"zbsolve_profile": 1, "devices": 2, "microbatches": 2, "time": {"unit": "us", "f": 0, "b": 0, "w": 0, "comm": 0}}
END
"$ZBSOLVE" solve profile.json -q -o schedule.json
"$ZBSOLVE" show schedule.json --width 50
