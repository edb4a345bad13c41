# Colours: half cells with block characters where the locale has them, letters on colour where not.
cat >profile.json <<'END'
{"zbsolve_profile": 1, "name": "small", "devices": 3, "microbatches": 3, "time": {"unit": "ms", "f": 3, "b": 3, "w": 2, "comm": 0.5}}
END
"$ZBSOLVE" solve profile.json -q --method zb-h1 -o schedule.json
"$ZBSOLVE" show schedule.json --width 60 --color always | sed 's/\x1b/^/g'
LC_ALL= LC_CTYPE=en_US.utf8 "$ZBSOLVE" show schedule.json --width 60 --color always -q | sed 's/\x1b/^/g'
NO_COLOR=1 "$ZBSOLVE" show schedule.json --width 60 -q
