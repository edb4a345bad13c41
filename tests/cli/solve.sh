# What a person sees: a summary without -o, only the last line with it, the schedule on stdout with -o -.
profile=$CONFIGS/table5-1.5b-p8-m24.json
"$ZBSOLVE" solve "$profile"
"$ZBSOLVE" solve "$profile" --memory-limit=1x --method=zb-h1
"$ZBSOLVE" solve "$CONFIGS/zb-uneven-8-stage.json" --method 1f1b
"$ZBSOLVE" solve "$CONFIGS/pipedream-gnmt-4-stage.json" --objective makespan
"$ZBSOLVE" solve -q "$profile"
"$ZBSOLVE" solve "$profile" -o schedule.json
"$ZBSOLVE" solve "$profile" -o - --method zb-h1 >bytes.json
"$ZBSOLVE" solve "$profile" -o again.json --method zb-h1 --threads 2 --seed 7 >last-line
cmp bytes.json again.json
"$ZBSOLVE" solve - --method gpipe <"$profile"
