# 160 columns: microbatch numbers where they fit, different limits, a fused backward, several stages a device.
"$ZBSOLVE" solve "$CONFIGS/table5-1.5b-p8-m24.json" --method zb-h1 -q -o schedule.json
"$ZBSOLVE" show schedule.json --width 160
cat >profile.json <<'END'
{"zbsolve_profile": 1, "name": "small", "devices": 3, "microbatches": 4, "chunks": 2, "placement": "loop",
 "time": {"unit": "ms", "f": 3, "b": 3, "w": 2, "bw": 4.5, "comm": 0.5},
 "memory": {"unit": "MiB", "f": 10, "b": -6, "w": -4, "limit": [100, 80, null]}}
END
"$ZBSOLVE" solve profile.json -q --method 1f1b-interleaved -o loop.json
LC_ALL=C.UTF-8 "$ZBSOLVE" show loop.json --width 160
"$ZBSOLVE" show loop.json --width 160 --json
