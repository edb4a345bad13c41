# Costs never rise with the limit, bounds neither; limits that nothing fits say so. Peaks are left out where a search
# found the schedule: only its cost is certain.
profile=$CONFIGS/table5-1.5b-p8-m24.json
"$ZBSOLVE" frontier -q "$profile" --from 0x --to 2x --step 1x | sed -E 's/ +[0-9.]+ MiB$//; s/ +peak$//'
"$ZBSOLVE" frontier -q "$profile" --from 1x --to 2x --step 0.125x | sed -E '1,3d; s/ +[0-9.]+ MiB$//; s/ +peak$//'
"$ZBSOLVE" frontier "$profile" --from 0.9x --to 1.2x --step 0.1x --method zb-h1
json() {
  "$ZBSOLVE" frontier "$profile" --json "$@" | sed -E 's/"seconds": [0-9.]+/"seconds": 0/g; s/\}, /},\n/g'
}
json --from 1x --to 1x --method zb-h2
json --from 0.125x --to 1.125x --step 0.5x --method greedy
# The chart: an SVG of its own, one circle a point that fits.
"$ZBSOLVE" frontier "$profile" --from 0x --to 2x --step 0.5x --method greedy -q -o chart.svg >table
sed -E 's/^ *//' chart.svg | grep -E '^<(svg|title|circle|poly|rect)|^</svg'
for output in chart.png nowhere/chart.svg; do
  "$ZBSOLVE" frontier "$profile" --to 1x --method greedy -q -o $output
  echo "exit code $?: $output"
done
# Whatever the time does: monotone, and no bound above a cost.
for limit in 0.01 1; do
  "$ZBSOLVE" frontier "$CONFIGS/uneven/uneven-05.json" --from 0.25x --to 1.5x --step 0.125x --time-limit $limit --json -q |
    sed 's/}, /}\n/g' | sed -nE 's/.*"cost_ns": ([0-9]+), "bound_ns": ([0-9]+).*/\1 \2/p' |
    awk 'NR > 1 && ($1 > cost || $2 > bound) || $2 > $1 {print "rises: " $0} {cost = $1; bound = $2} END {print NR " points"}'
done
