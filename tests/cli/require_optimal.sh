# --require-optimal tells a proven schedule from one that is only good; both are written.
profile=$CONFIGS/table5-1.5b-p8-m24.json
"$ZBSOLVE" solve "$profile" --method zb-2p --require-optimal -o proven.json
echo "exit code $?"
"$ZBSOLVE" solve "$profile" --method zb-h1 --require-optimal -o good.json
echo "exit code $?"
"$ZBSOLVE" check good.json
