# The edge of memory: exactly one microbatch, one byte less, nothing at all.
profile() { # LIMIT STATIC
  cat >profile.json <<END
{"zbsolve_profile": 1, "devices": 3, "microbatches": 5, "time": {"unit": "us", "f": 3, "b": 3, "w": 2, "comm": 1},
 "memory": {"unit": "B", "f": 1000, "b": -700, "w": -300, "limit": $1, "static": $2}}
END
}
try() {
  for method in auto greedy 1f1b; do
    "$ZBSOLVE" solve profile.json -q --method $method -o $method.json
    echo "exit code $?: $method, limit $1, static $2"
  done
}
for case in "1000 0" "999 0" "0 0" "1500 500" "1499 500" "null 500"; do
  set -- $case
  profile "$1" "$2"
  try "$1" "$2"
done
