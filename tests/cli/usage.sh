# Bad usage: one line on stderr, nothing on stdout, exit code 2.
try() {
  "$ZBSOLVE" "$@"
  code=$?
  [ $code = 2 ] || echo "exit code $code: $*"
}
profile=$CONFIGS/table5-1.5b-p8-m24.json
try
try sovle
try tuna "$profile"
try --json solve "$profile"
try help sovle
try help solve show
try solve
try solve "$profile" "$profile"
try solve "$profile" --metod zb-h1
try solve "$profile" --frobnicate
try solve "$profile" --width 80
try solve "$profile" -x
try solve "$profile" -qv
try solve "$profile" --method
try solve "$profile" --method=
try solve "$profile" --method zb-h3
try solve "$profile" --method window-of-the-future
try solve "$profile" -q --quiet
try solve "$profile" --seed 1 --seed=2
try solve "$profile" --json=yes
try solve "$profile" --objective cost
try solve "$profile" --microbatches 0
try solve "$profile" --microbatches 1e3
try solve "$profile" --microbatches 99999999999999999999
try solve "$profile" --time-limit -1
try solve "$profile" --time-limit soon
try solve "$profile" --memory-limit 40
try solve "$profile" --memory-limit 40GiBs
try solve "$profile" --memory-limit -1GiB
try solve "$profile" --memory-limit 0.5B
try solve "$profile" --memory-limit 1.0000001x
try solve "$profile" --memory-limit 9999999x
try solve "$profile" --memory-limit lots
try solve "$profile" --method 1f1b --chunks 2
try solve "$profile" --json -o -
try solve absent.json
try solve -- --json
try compare "$profile" --methods 1f1b,
try compare "$profile" --methods 1f1b,zb-h1,1f1b
try frontier "$profile" --memory-limit 1x
try frontier "$profile" --from 2x --to 1x
try frontier "$profile" --step 0x
try frontier "$profile" --step 0.0001x
try frontier "$profile" --to 2
try frontier "$CONFIGS/pipedream-gnmt-4-stage.json"
try solve "$CONFIGS/pipedream-gnmt-4-stage.json" --memory-limit 1x
try check
try show "$profile"
try show "$profile" --width 10
try show "$profile" --color sometimes
