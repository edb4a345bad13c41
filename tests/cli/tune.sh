# One model of 8 layers, cut for 4 and for 8 devices, with 1 or 2 samples in a microbatch; times are off a straight line,
# as measured ones are.
profile() { # NAME DEVICES MICROBATCHES SAMPLES F B W MEMORY
  cat >"$1.json" <<END
{"zbsolve_profile": 1, "name": "$1", "devices": $2, "microbatches": $3, "samples": $4,
 "time": {"unit": "ms", "f": $5, "b": $6, "w": $7, "comm": 0.5},
 "memory": {"unit": "MiB", "f": $8, "b": -$(($8 / 4)), "w": -$(($8 * 3 / 4)), "limit": 300}}
END
}
profile four 4 16 1 10 11 6 40
profile four-two 4 8 2 18 20 11 80
profile eight 8 16 1 5.2 5.6 3.1 20
profile eight-two 8 8 2 9 10 5.5 40
profile other 8 16 1 52 56 31 200
tune() { "$ZBSOLVE" tune -q "$@"; }
tune four.json four-two.json eight.json eight-two.json
echo
tune four.json four-two.json eight.json --memory-limit 70MiB --method greedy
echo
tune eight.json four.json --memory-limit 100MiB --method zb-h1
echo
tune eight.json other.json four-two.json --memory-limit 1x --method greedy --objective makespan | tail -n 5
echo
tune eight.json four.json --placements all --method auto --time-limit 2 | sed -nE 's/^([* ]) +([a-z]+\.json) .* (chain|loop 2|v 2) .*/\1 \2 \3/p' | sort
json() { tune "$@" --json | sed -E 's/"seconds": [0-9.]+/"seconds": 0/g; s/(\}|\]), /\1,\n/g'; }
json eight.json four.json four-two.json --memory-limit 70MiB --method greedy
# Nothing fits, nothing in the time, and what is not a profile: no row, an error.
tune four.json eight.json --memory-limit 10MiB >said
echo "exit code $?: $(grep "^None" said)"
tune four.json eight.json --memory-limit 70MiB --method 1f1b >said
echo "exit code $?: $(grep "^None" said)"
tune "$CONFIGS/table5-28.3b-p32-m256.json" four.json eight.json --time-limit 0.001 >said
echo "exit code $?: $(grep -c ' unknown ' said) unknown, $(grep 'The time' said)"
echo '{"zbsolve_profile": 2}' >bad.json
for arguments in "four.json bad.json" "four.json absent.json" "" "four.json --methods auto"; do
  # shellcheck disable=SC2086
  tune $arguments
  echo "exit code $?: $arguments"
done
# The first signal gives what is known: every row is there, and one was solved.
profile=$CONFIGS/uneven/uneven-05.json
"$ZBSOLVE" tune "$profile" "$profile" "$profile" --time-limit 60 -v >signalled 2>said-signal &
until [ -s said-signal ]; do sleep 0.01; done
kill -INT $! 2>/dev/null
wait $!
echo "exit code $?: $(grep -c "uneven-05.json  " signalled) rows, $(grep -c " wins: " signalled) winner"
