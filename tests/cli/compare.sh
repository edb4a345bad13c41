# The table and the words, without the last column, which is the time it took.
compare() {
  "$ZBSOLVE" compare "$@" | sed -E 's/ +[0-9]+\.[0-9]{3}$//'
  echo
}
profile=$CONFIGS/table5-1.5b-p8-m24.json
compare "$profile" --memory-limit 2x
compare "$profile" --memory-limit 1x --methods 1f1b,zb-h1,zb-h2,1f1b-interleaved --chunks 3
compare "$profile" --objective makespan --methods gpipe,1f1b
compare "$CONFIGS/table8-6.2b-p16-m48.json"
