# -v says on stderr what each method of auto reached, and what the search did besides; -q leaves the last line alone.
"$ZBSOLVE" solve "$CONFIGS/table5-1.5b-p8-m24.json" -v --memory-limit 1x -o schedule.json 2>said
grep -E '^(1f1b|zb|greedy|window)' said | sed -E 's/[0-9.]+ s$/TIME/'
"$ZBSOLVE" compare "$CONFIGS/table5-1.5b-p8-m24.json" -v --methods 1f1b,zb-h1 2>said >/dev/null
sed -E 's/[0-9.]+ s$/TIME/' said
