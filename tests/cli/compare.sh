# The table and the words, without the last column, which is the time it took, and without ilp, which a build may lack.
compare() {
  "$ZBSOLVE" compare -q "$@" | sed -E 's/ +[0-9]+\.[0-9]{3}$//; /^[* ]  ilp /d; /auto takes .* less than 1f1b-interleaved/d'
  echo
}
profile=$CONFIGS/table5-1.5b-p8-m24.json
# Of several stages a device, how far a search gets depends on the machine, and with it the causes.
constructed=gpipe,1f1b,1f1b-interleaved,zb-h1,zb-h2,greedy,zb-1p,zb-2p,1f1b-v,zb-v,v-half,v-min,v-blocks
compare "$profile" --memory-limit 2x --methods $constructed
compare "$profile" --memory-limit 1x --methods 1f1b,zb-h1,zb-h2,1f1b-interleaved --chunks 3
compare "$profile" --objective makespan --methods gpipe,1f1b
compare "$CONFIGS/table8-6.2b-p16-m48.json" --methods $constructed | grep -v '^What binds it'
# Whether the heuristic was optimal. Of what a search finds only the cost is certain.
words() {
  "$ZBSOLVE" compare -q "$@" >table
  sed -nE 's/^([* ]  (greedy|window) .*%)  .*/\1/p; / is optimal|optimum/p' table | sed -E 's/ +[0-9.]+%$//'
}
words "$CONFIGS/table5-1.5b-p8-m32.json" --memory-limit 2x --methods greedy,1f1b,window
words "$CONFIGS/table5-1.5b-p8-m32.json" --memory-limit 1x --methods greedy,1f1b,window
# Not closed in this time, whoever was faster.
words "$CONFIGS/uneven/uneven-05.json" --time-limit 0.3 --methods greedy,window | grep -cE '^greedy .* at most .*% from the optimum'
