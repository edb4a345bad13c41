# By how much the memory of the interleaved order can be used better, small enough for proofs: what compare says is
# what solve finds, and proves, under limits that are its peaks.
for case in "2 4 2 3 4 2 9" "3 3 2 2 2 1 3" "2 2 3 2 2 1 3" "2 4 2 3 4 2 5" "2 1 2 3 4 2 6" "1 3 2 2 2 1 3"; do
  set -- $case
  name=${case// /-}
  profile() { # LIMIT
    cat <<END
{"zbsolve_profile": 1, "devices": $1, "microbatches": $2, "chunks": $3, "placement": "loop",
 "time": {"unit": "us", "f": $4, "b": $5, "w": $6, "bw": $7, "comm": 1},
 "memory": {"unit": "B", "f": 8, "b": -3, "w": -5, "limit": $8}}
END
  }
  profile "$@" null >profile.json
  echo "p=$1 m=$2 v=$3, f/b/w/bw $4/$5/$6/$7:"
  "$ZBSOLVE" compare -q profile.json --methods 1f1b-interleaved | grep '^On loop\|is optimal on'
  "$ZBSOLVE" solve -q profile.json --method 1f1b-interleaved -o "theirs-$name.json"
  profile "$@" "$(grep -o '"peak_bytes": [0-9]*' "theirs-$name.json" | sed 's/.*: //' | paste -sd, | sed 's/.*/[&]/')" >tight.json
  "$ZBSOLVE" solve -q tight.json -o "ours-$name.json"
done
