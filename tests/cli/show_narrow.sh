# 80 columns, letters only.
"$ZBSOLVE" solve "$CONFIGS/table5-1.5b-p8-m24.json" --method zb-h1 -q -o schedule.json
"$ZBSOLVE" show schedule.json --width 80
"$ZBSOLVE" show schedule.json --width 40 -q
"$ZBSOLVE" solve "$CONFIGS/table5-28.3b-p32-m96.json" --method 1f1b -q -o many.json
COLUMNS=80 "$ZBSOLVE" show many.json
