# Overrides, exact: what a limit means in bytes, static memory on top of a multiple, and the profile that is written.
limit() {
  "$ZBSOLVE" solve profile.json -q --memory-limit "$1" -o limited.json >/dev/null &&
    echo "$1: $(tr -d ' \n' <limited.json | grep -o '"limit":[^"}]*' | head -n 1)"
}
cat >profile.json <<'END'
{"zbsolve_profile": 1, "name": "overrides", "devices": 2, "microbatches": 4,
 "time": {"unit": "us", "f": [3, 4], "b": 3, "w": 2, "comm": 1},
 "memory": {"unit": "B", "f": [1001, 900], "b": [-601, -500], "w": -400, "limit": null, "static": [7, 11]}}
END
for l in 1x 1.5x 0.75x 1.333333x 5000B 5KB 5KiB "0.005 MB" 0.000005GB 1MiB none; do limit "$l"; done
"$ZBSOLVE" solve profile.json --microbatches 7 --method zb-h1 -q
"$ZBSOLVE" solve profile.json --microbatches 1 --method zb-h1 -q
"$ZBSOLVE" solve profile.json --method 1f1b-interleaved -q -o loop2.json
"$ZBSOLVE" solve profile.json --method 1f1b-interleaved --chunks 3 -q -o loop3.json
"$ZBSOLVE" solve profile.json --chunks 3 --time-limit 1 -q -o auto3.json | cut -d" " -f1,2
grep -h -o '"\(chunks\|placement\)": [^,]*' loop2.json loop3.json auto3.json
