# What binds a profile, in words: each profile here is made to be held by one thing.
profile() { # NAME M F COMM LIMIT
  cat >profile.json <<END
{"zbsolve_profile": 1, "devices": 4, "microbatches": $2, "time": {"unit": "us", "f": $3, "b": 10, "w": 10, "comm": $4},
 "memory": {"unit": "MB", "f": 10, "b": -5, "w": -5, "limit": $5}}
END
  echo "$1:"
  "$ZBSOLVE" compare profile.json --methods gpipe,1f1b,zb-h1,zb-h2,greedy | sed '1,/^$/d' | sed '1,/^$/d; s/^/  /'
}
profile "slowest stage" 32 "[10, 10, 20, 10]" 0 null
profile "memory" 32 10 0 20
profile "communication" 4 10 30 null
profile "memory and communication" 32 10 30 40
profile "too few microbatches" 2 10 0 null
profile "the work itself" 1000 10 0 null
"$ZBSOLVE" compare profile.json --methods gpipe,1f1b --microbatches 8 | tail -n 5
