# Bounds that need a tree: in the schedule, in a file of its own, and every way to spoil them. Both programs look.
both() { # FILE
  "$ZBSOLVE" check "$1" -q 2>said
  first=$?
  "$ZBCHECK" -q "$1" 2>/dev/null
  echo "exit codes $first and $?: $1"
  sed -E 's/leaf [0-9]+ is not refuted for a cost of .*/leaf N is not refuted/; s/after [0-9]+ items/after N items/; s/the path .*/the path/
    s/proof\[[0-9]+\]/proof[N]/; s/[0-9a-f]{64}/DIGEST/g' said
}
# Propagation alone leaves this one open.
cat >profile.json <<END
{"zbsolve_profile": 1, "devices": 4, "microbatches": 6,
 "time": {"unit": "ns", "f": [5, 10, 10, 11], "b": [6, 7, 7, 12], "w": [3, 5, 2, 6], "comm": 1},
 "memory": {"unit": "B", "f": 10, "b": -6, "w": -4, "limit": 20}}
END
echo '{"old": 1}' >old.json
"$ZBSOLVE" solve profile.json -q -o inline.json
grep -o '"proof": \[\["n"' inline.json
both inline.json
"$ZBSOLVE" solve profile.json -q -o beside.json --proof tree.proof
grep -o '"proof": {"file": "tree.proof", "sha256"' beside.json
both beside.json
"$ZBSOLVE" solve profile.json -q -o beside.json --proof tree.proof
both beside.json
"$ZBCHECK" -q inline.json --proof tree.proof
echo "exit code $?: the same tree for the other"

# Spoilt bounds.
bound=$(sed -nE 's/.*"bound_ns": ([0-9]+),.*/\1/p' inline.json)
sed -E "s/\"cost_ns\": $bound, \"bound_ns\": $bound/\"cost_ns\": $bound, \"bound_ns\": $((bound + 1))/" inline.json >bad-above.json
both bad-above.json
# A schedule for half the memory, put under the full limit, leaves room between cost and bound.
"$ZBSOLVE" solve profile.json -q --method greedy --memory-limit 10B -o half.json
raised() { # BOUND PROOF
  cost=$(sed -nE 's/.*"cost_ns": ([0-9]+),.*/\1/p' half.json)
  gap=$(awk -v c="$cost" -v b="$1" 'BEGIN {printf "%.6f", (c - b) / c}')
  sed -E "s/\"bound_ns\": [0-9]+, \"gap\": [0-9.]+/\"bound_ns\": $1, \"gap\": $gap/; s/\"limit\": 10/\"limit\": 20/; \$d" half.json |
    sed "\$s/\$/$2/"
  echo "}"
}
tree=$(sed -nE 's/.*"proof": (\[.*)/\1/p' inline.json | sed 's/[][]/\\&/g')
raised "$bound" ", \"proof\": $tree" >transplanted.json
both transplanted.json
raised "$((bound + 1))" ", \"proof\": $tree" >bad-raised.json
both bad-raised.json
raised "$bound" "" >bad-bare.json
both bad-bare.json

# Spoilt trees.
spoil() { # NAME EXPRESSION
  sed -E "$2" inline.json >"bad-$1.json"
  cmp -s inline.json "bad-$1.json" && echo "nothing changed: $1"
  both "bad-$1.json"
}
spoil half '/"proof"/s/,0\]$/]/'
spoil more '/"proof"/s/,0\]$/,0,0]/'
spoil empty '/"proof"/s/: .*/: []/'
spoil leaf '/"proof"/s/: .*/: [0]/'
spoil item '/"proof"/s/,0\]$/,1]/'
spoil five '/"proof"/s/\["n",[0-9]+,/["n",/'
spoil device '/"proof"/s/\["n",[0-9]+,/["n",4,/'
spoil word '/"proof"/s/\["n",/["m",/'
spoil offset '/"proof"/s/\["n",[^]]*\]/["offset",1,"","",0,5]/'
cp tree.proof kept
echo >>tree.proof
both beside.json
rm tree.proof
both beside.json
cp kept tree.proof
both beside.json
sed 's/"tree.proof"/"..\/tree.proof"/' beside.json >bad-path.json
both bad-path.json

# Usage.
mkdir elsewhere
try() {
  "$ZBSOLVE" solve profile.json -q "$@"
  echo "exit code $?: $*"
}
try --proof tree.proof
try --proof tree.proof -o - | tail -n 1
try --proof elsewhere/tree.proof -o schedule.json
try --proof schedule.json -o schedule.json
try --proof elsewhere/tree.proof -o elsewhere/schedule.json
both elsewhere/schedule.json
try --proof nowhere/tree.proof -o nowhere/schedule.json
try --method greedy --proof none.proof -o unproven.json
[ -e none.proof ] && echo "a proof file without a proof"
ls -a | grep tmp
cat old.json
