# A small schedule as a trace, whole, and as a picture: one rectangle an op, all colours that it needs.
cat >profile.json <<'END'
{"zbsolve_profile": 1, "name": "a <small> & odd ]]> \uFFFFone", "devices": 2, "microbatches": 2,
 "time": {"unit": "us", "f": 3, "b": 2.5, "w": [1, 1.25], "comm": [0.125]},
 "memory": {"unit": "KiB", "f": 4, "b": -1, "w": -3, "limit": [null, 12]}}
END
"$ZBSOLVE" solve profile.json --method zb-h1 -q -o schedule.json
"$ZBSOLVE" export schedule.json --to chrome-trace
"$ZBSOLVE" export schedule.json --to svg -o picture.svg
grep -cE '^<rect class="[fbwx][01]".*<title>' picture.svg
grep -E 'class="(title|bound|limit)"' picture.svg | sed -E 's/ (x|y|x1|x2|y1|y2|d)="[^"]*"//g'
grep -oE '<title>[^<]*' picture.svg
# 8 devices, 24 microbatches: one panel with every name. 32 x 256: shares of time, then strips in which names fit.
"$ZBSOLVE" solve "$CONFIGS/table5-1.5b-p8-m24.json" --method greedy --memory-limit 2x -q -o middle.json
"$ZBSOLVE" export middle.json --to svg -o middle.svg
grep -c '<text class="i[fbw]0"' middle.svg
grep -c '>strip ' middle.svg
"$ZBSOLVE" solve "$CONFIGS/table5-28.3b-p32-m256.json" --method greedy --memory-limit 2x -q -o large.json
"$ZBSOLVE" export large.json --to svg -o large.svg
grep -oE '>strip .*<' large.svg | tail -n 1
grep -c '<text class="i[fbw]0"' large.svg
[ "$(stat -c %s large.svg)" -lt 20000000 ] && echo "below 20 MB"
# More ops than 60 strips hold: shares of time in every strip, from where it begins.
cat >many.json <<'END'
{"zbsolve_profile": 1, "devices": 1, "microbatches": 31000, "time": {"unit": "us", "f": 3, "b": 3, "w": 3, "comm": 0}}
END
"$ZBSOLVE" solve many.json --method zb-h1 -q -o many-solved.json
"$ZBSOLVE" export many-solved.json --to svg -o many.svg
grep -c '^<rect class="[fbwx][01]" x="[0-9.]*" y="[0-9.]*" width="[0-9.]*" height="24.0"' many.svg
grep -c '^<path class="[fbw]0"' many.svg
grep -oE '>strip .*<' many.svg | tail -n 1
# What cannot be written says so.
"$ZBSOLVE" export schedule.json --to svg -o nowhere/picture.svg
echo "exit code $?"
