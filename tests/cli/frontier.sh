# Costs never rise with the limit, bounds neither; limits that nothing fits say so.
profile=$CONFIGS/table5-1.5b-p8-m24.json
"$ZBSOLVE" frontier "$profile" --from 0x --to 2x --step 0.25x
"$ZBSOLVE" frontier "$profile" --from 0.9x --to 1.2x --step 0.1x --method zb-h1
"$ZBSOLVE" frontier "$profile" --from 1x --to 1x --method zb-h2 --json | sed -E 's/"seconds": [0-9.]+/"seconds": 0/g'
"$ZBSOLVE" frontier "$profile" --from 0.125x --to 1x --step 0.5x --json | sed -E 's/"seconds": [0-9.]+/"seconds": 0/g; s/\}, /},\n/g'
