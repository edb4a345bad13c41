# Which placement, given the memory: the same methods on several, side by side, and one frontier each.
profile=$CONFIGS/table5-1.5b-p8-m24.json
compare() { "$ZBSOLVE" compare -q "$@" | sed -E 's/ +[0-9]+\.[0-9]{3}$//; /auto takes .* less/d'; }
compare "$profile" --methods 1f1b,1f1b-interleaved,zb-v --placements loop,v --chunks 3 | sed '1,2d'
echo
"$ZBSOLVE" compare -q "$profile" --methods auto,zb-h1 --placements all --time-limit 1 --json | grep -o '"method": "auto", [^,]*, [^,]*' |
  sed 's/"status": "[a-z]*", //' | sort
# On a V the head lies on device 0, and so may what it keeps.
sed -E 's/"memory": \{/&"static": [60000, 50000, 50000, 50000, 50000, 50000, 50000, 90000], /' "$profile" >static.json
for limit in none 1x 1.1x; do
  "$ZBSOLVE" compare -q static.json --methods zb-v,1f1b --memory-limit $limit | grep 'last stage'
done
# The profile on a V, asked for a chain: neighbours are merged.
compare "$CONFIGS/table8-6.2b-p16-m48.json" --methods 1f1b,zb-v,greedy --placements chain | sed '1,2d'
echo
frontier() { "$ZBSOLVE" frontier -q "$profile" "$@"; }
frontier --methods 1f1b,zb-h1,zb-v,v-half,v-min,1f1b-interleaved --from 0.05x --to 1.55x --step 0.25x -o chart.svg
frontier --methods 1f1b,zb-v --from 0.05x --to 1.05x --step 1x --json | sed -E 's/"seconds": [0-9.]+/"seconds": 0/g; s/\}, /},\n/g'
sed -E 's/^ *//; s/<title>[^<]*<\/title>//' chart.svg | grep -E '^<(svg|polyline|rect|circle class="best")|^<g .*on '
# Whatever the time does: no curve rises, and the best is never above one of them.
for limit in 0.01 2; do
  frontier --method auto --placements all --from 0.0625x --to 2x --step 0.125x --time-limit $limit --json >frontier.json
  sed 's/"method"/\n&/g; s/}, /}\n/g' frontier.json | sed -nE '/"curves"|"comm_count"/s/.*/curve/p; s/.*"cost_ns": ([0-9]+), "bound_ns": ([0-9]+).*/\1 \2/p' |
    awk '/curve/ {cost = bound = 1e18; next} $1 > cost || $2 > bound || $2 > $1 {print "rises: " $0} {cost = $1; bound = $2; n++} END {print n " points"}'
done
fail() { "$ZBSOLVE" "$@"; echo "exit code $?"; }
fail compare "$profile" --placements v --methods 1f1b
fail compare "$profile" --placements w
fail compare "$profile" --placements v,chain,v
fail compare "$profile" --placements list
fail frontier "$profile" --method zb-h1 --methods zb-h1,zb-v
fail frontier "$profile" --methods zb-v,zb-v
