#!/bin/sh
# Tests of zbcheck: files that hold, and small lies told in them one at a time.
#
# ZBCHECK names the program (default build/zbcheck). Each lie is a sed script on one of the files in zbcheck/; the test
# gives the exit code and some words of the message that must come of it. A script that changes nothing is a failure.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=${ZBCHECK:-build/zbcheck}
solver=${ZBSOLVE:-build/zbsolve}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# verdict NAME CODE WORDS ARGUMENT..: runs the program and compares
verdict() {
    name=$1 code=$2 words=$3
    shift 3
    said=$("$program" "$@" 2>&1)
    got=$?
    case "$got:$said" in
    "$code":*"$words"*) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        printf 'FAILED %s: expected exit code %s and "%s", got %s: %s\n' "$name" "$code" "$words" "$got" "$said"
        ;;
    esac
    # `zbsolve check` has its own words, but the same verdict.
    if [ $# = 1 ]; then
        said=$("$solver" check -q "$1" 2>&1)
        got=$?
        if [ $got = "$code" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'FAILED %s: zbcheck ends with %s, zbsolve check with %s: %s\n' "$name" "$code" "$got" "$said"
        fi
    fi
}

# holds FILE WORDS [OPTION..]
holds() {
    file=$1 words=$2
    shift 2
    verdict "$file" 0 "$words" "$here/zbcheck/$file" "$@"
}

# lie FILE SCRIPT CODE WORDS [OPTION..]: the file after a sed script
lie() {
    file=$1 script=$2 code=$3 words=$4
    shift 4
    sed -E "$script" "$here/zbcheck/$file" >"$work/$file"
    if cmp -s "$here/zbcheck/$file" "$work/$file"; then
        failed=$((failed + 1))
        printf 'FAILED %s: "%s" changes nothing\n' "$file" "$script"
        return
    fi
    verdict "$file, $script" "$code" "$words" "$work/$file" "$@"
}

# text NAME TEXT WORDS: a file that is not JSON
text() {
    printf '%b' "$2" >"$work/text.json"
    verdict "$1" 2 "$3" "$work/text.json"
}

cp "$here"/zbcheck/*.proof "$work" || exit 1

# ---- what holds ----
holds chain.json 'holds: span 19875000 ns, bound 19875000 ns, optimal'
holds loop.json 'makespan'
holds v.json 'period'
holds list.json 'period'
holds single.json 'optimal'
holds zero.json 'span 0 ns'
# The span bound is one over orders in which all devices begin with the same microbatch: 101 here, and
# an order in which device 1 begins with another one reaches 99 (zbcheck_window.c, "span").
holds span-first-same-bound.json 'bound 101 ns'
holds span-first-differs.json 'span 99 ns'
holds tree.json 'feasible'
holds tree-file.json 'feasible'
holds tree-file.json 'feasible' --proof "$here/zbcheck/tree-file.proof"
holds tree.json 'feasible' --proof="$here/zbcheck/tree-file.proof"
holds tree-offset.json 'feasible'
holds tree-fused.json 'feasible'
holds tree-placed.json 'optimal'
holds tree-merged.json 'optimal'
holds tree-apart.json 'optimal'
holds tree-v.json 'period 146 ns, bound 146 ns'
holds poured.json 'span 213 ns, bound 213 ns'
holds fronts.json 'span 402000 ns, bound 388000 ns'
holds fronts.json 'zbcheck: fronts: ' -v
holds infeasible.json 'device 1 needs 11 B and its limit is 10 B'
holds unknown.json 'no schedule, bound 9 ns'
holds chain.json '{"verdict": "holds", "exit": 0' --json
holds chain.json 'device sweeps' -v
verdict 'quiet success' 0 '' "$here/zbcheck/chain.json" -q
verdict 'no bound' 10 'not redone' "$here/zbcheck/chain.json" --no-bound
verdict 'missing proof' 10 'not redone' "$here/zbcheck/tree.json" --proof "$work/none"

# the same profile in other units and spellings
lie chain.json 's/"ms", "f": \[1.5, 2, 1.75\]/"ms", "f": [15e-1, 2.000, 0.175E+1]/' 0 holds
lie chain.json 's/"unit": "MiB", "f": 90.5, "b": -20.25, "w": -70.25/"unit": "KiB", "f": 92672, "b": -20736, "w": -71936/;
    s/\[300, null, 200\], "static": \[10, 0, 0.5\]/[307200, null, 204800], "static": [10240, 0, 512]/' 0 holds
lie chain.json 's/"backward": 0.5/"backward": [0.5, 0.5]/' 0 holds
lie chain.json 's/"microbatches"/"micro\\u0062atches"/' 0 holds
lie tree.json 's/"limit": 20/"limit": [20, 20, 20, 20]/' 0 holds

# ---- usage ----
verdict 'no file' 2 'no schedule file'
verdict 'help' 0 'usage: zbcheck SCHEDULE' --help
verdict 'two files' 2 'a second file' a b
verdict 'unknown option' 2 'unknown option' --bound a
verdict 'option twice' 2 'given twice' -q -q a
verdict 'option without a value' 2 'expected a value' a --proof
verdict 'unreadable' 2 'cannot open' "$work/none"
verdict 'directory' 2 'cannot read' "$work"

# ---- grammar ----
text 'empty' '' '1:1: the end of the file, expected a JSON value'
text 'a word' 'nul' "'n', expected a JSON value"
text 'truncated' '{"a": [1,\n 2' "2:3: the end of the file, expected ',' or ']'"
text 'leading zero' '[01]' 'leading zero'
text 'plus' '[+1]' 'expected a JSON value'
text 'bare point' '[1.]' 'expected a digit after the point'
text 'bare exponent' '[1e]' 'expected a digit in the exponent'
text 'not a number' '[NaN]' 'expected a JSON value'
text 'trailing comma' '[1,]' "']', expected a JSON value"
text 'single quotes' "{'a': 1}" 'expected a key in double quotes'
text 'no colon' '{"a" 1}' "expected ':'"
text 'open string' '["a' 'does not end'
text 'newline in a string' '["a\nb"]' 'byte 0x0a in a string'
text 'bad escape' '["\\x"]' 'bad escape'
text 'bad unicode escape' '["\\u12g4"]' 'four hexadecimal digits'
text 'two values' '{} {}' 'expected the end of the file'
text 'byte order mark' '\0357\0273\0277{}' 'byte 0xef, expected a JSON value'
text 'not an object' '[]' 'expected a schedule'
text 'a zero byte' '{"a\\u0000b": 1}' 'zero byte'
awk 'BEGIN { for (i = 0; i < 10000; i++) printf "["; print "" }' >"$work/deep.json"
verdict 'nested 10,000 deep' 2 'nested deeper' "$work/deep.json"

# ---- keys and types ----
lie chain.json 's/"method"/"methods"/' 2 'methods: unknown key'
lie chain.json 's/"status": "optimal",/& "status": "optimal",/' 2 'status: repeated key'
lie chain.json '/"method"/d' 2 'method: missing, expected a string'
lie chain.json '/"cost_ns"/d' 2 'cost_ns: missing'
lie chain.json 's/"bound_ns": [0-9]+/"bound_ns": null/' 2 'bound_ns: missing'
lie chain.json 's/"zbsolve_schedule": 1/"zbsolve_schedule": 2/' 2 'zbsolve_schedule: 2'
lie chain.json 's/"span",/"length",/' 2 'expected one of span, makespan, period'
lie chain.json 's/"status": "optimal"/"status": "best"/' 2 'expected one of optimal'
lie chain.json 's/"cost_ns": 19875000/"cost_ns": "19875000"/' 2 '17:14: cost_ns: a string, expected a number'
lie chain.json 's/"cost_ns": 19875000/"cost_ns": 19875000.5/' 2 'is not an integer'
lie chain.json 's/"cost_ns": 19875000/"cost_ns": 9223372036854775808/' 2 'more than 15 significant digits'
lie chain.json 's/"cost_ns": 19875000/"cost_ns": 9007199254740993/' 2 'is above 2^53'
lie chain.json 's/"cost_ns": 19875000/"cost_ns": 9007199254740992/' 4 'cost_ns says 9007199254740992'
lie chain.json 's/"idle_ns": 0/"idle": 0/' 2 'devices[2].idle: unknown key'
lie chain.json 's/"gap": 0.000000/"gap": 1e-400/' 2 'more than 9 decimals'

# ---- the profile ----
lie chain.json 's/"f": \[1.5, 2/"f": [1.5000005, 2/' 2 'time.f[0]: 1.5000005 is not a whole number of ns'
lie chain.json 's/"w": \[1, 0.75/"w": [1, -0.75/' 2 'time.w[1]: -0.75, expected a time of 0 or more'
lie chain.json 's/"w": \[1, 0.75, 0.5\]/"w": [1, 0.75]/' 2 'time.w: a list of 2, expected 3'
lie chain.json 's/"w": \[1, 0.75/"w": ["1", 0.75/' 2 'time.w[0]: not a number'
lie chain.json 's/"unit": "ms"/"unit": "min"/' 2 'time.unit: unknown unit "min"'
lie chain.json 's/"unit": "ms", //' 2 'time.unit: missing'
lie chain.json 's/"f": \[1.5/"f": [1e400/' 2 'is above 2^53'
lie chain.json 's/"f": \[1.5/"f": [1234567.8901234567/' 2 'more than 15 significant digits'
lie chain.json 's/"f": \[1.5/"f": [4e9/' 2 'more than 2^53 ns'
lie chain.json 's/"forward": \[0.25, 0.125\]/"forward": [0.25]/' 2 'time.comm.forward: a list of 1, expected 2'
lie chain.json 's/"backward": 0.5/"back": 0.5/' 2 'time.comm.back: unknown key'
lie chain.json 's/"b": -20.25/"b": -20.5/' 2 'memory: f + b + w of stage 0 is -262144 B, expected 0'
lie chain.json 's/"f": 90.5/"f": -90.5/' 2 'memory.f: -90.5, expected 0 or more'
lie chain.json 's/"w": -70.25/"w": 70.25/' 2 'memory.w: 70.25, expected 0 or less'
lie chain.json 's/"f": 90.5/"f": 90.00000001/' 2 'is not a whole number of bytes'
lie chain.json 's/"limit": \[300, null, 200\]/"limit": [300, null]/' 2 'memory.limit: a list of 2'
lie chain.json 's/"static": \[10, 0/"static": [10, null/' 2 'memory.static[1]: not a number'
lie chain.json 's/"devices": 3/"devices": 0/' 2 'devices: 0'
lie chain.json 's/"devices": 3/"devices": 2000000/' 2 'devices: 2000000'
lie chain.json 's/"microbatches": 3/"microbatches": 200000000/' 2 'more than'
lie chain.json 's/"microbatches": 3/"microbatches": 20000000/' 4 'the profile needs at least 120000000'
lie chain.json 's/"placement": "chain"/"placement": "ring"/' 2 'expected chain, loop, v or a list'
lie chain.json 's/"placement": "chain"/"placement": "v"/' 2 'v with 1 chunks, expected 2'
lie v.json 's/"placement": "v"/"placement": "chain"/' 2 'chain with 2 chunks, expected 1'
lie list.json 's/\[2, 0, 2, 1, 0, 1\]/[2, 0, 2, 1, 0, 0]/' 2 'device 0 holds 3 stages, expected 2'
lie list.json 's/\[2, 0, 2, 1, 0, 1\]/[2, 0, 2, 1, 0, 3]/' 2 'placement[5]: 3'
lie list.json 's/\[2, 0, 2, 1, 0, 1\]/[2, 0, 2, 1, 0]/' 2 'placement: a list of 5, expected 6'
lie chain.json 's/"source": "made up"/"origin": "made up"/' 2 'profile.origin: unknown key'
lie loop.json 's/"samples": 2/"samples": 0/' 2 'samples: 0'

# ---- ops ----
lie chain.json 's/"1B1"/"1B0"/' 4 'device 1, position 5, 1B0: done already by 1B0 at position 3'
lie chain.json 's/"1B1"/"2B1"/' 4 'device 1, position 5, 2B1: stage 2 is on device 2'
lie chain.json 's/"1B1"/"1BW1"/' 4 'device 1, position 6, 1W1: done already by 1BW1 at position 5'
lie chain.json 's/"1B1"/"1B3"/' 4 'there is no microbatch 3'
lie chain.json 's/"1B1"/"1B01"/' 2 '<microbatch>'
lie chain.json 's/"1B1"/"1I1"/' 2 'expected <stage><F, B, W or BW><microbatch>'
lie chain.json 's/"1B1"/"3B1"/' 4 'there is no stage 3'
lie chain.json 's/"1B1"/7/' 2 'devices[1].ops[5]: not a string'
lie chain.json 's/, "1W2"\]/]/; s/, 17125000\]/]/' 4 'device 1: 1W2 is missing'
lie chain.json 's/, "1W2"\]/]/' 2 'devices[1].start_ns: a list of 9, expected 8'
lie chain.json 's/"device": 1,/"device": 2,/' 4 'device 1: `device` says 2'
lie chain.json 's/"stages": \[1\]/"stages": [2]/' 4 'stages[0] says 2'
lie v.json 's/"stages": \[0, 3\]/"stages": [3, 0]/' 4 'stages[0] says 3, the profile places stage 0 there'
lie chain.json 's/"devices": 3/"devices": 2/; s/"f": \[1.5, 2, 1.75\], "b": \[1.25, 2.5, 1.5\], "w": \[1, 0.75, 0.5\]/"f": 1, "b": 1, "w": 1/;
    s/\[0.25, 0.125\]/1/; s/\[300, null, 200\]/1/; s/\[10, 0, 0.5\]/1/' 4 'devices: a list of 3, the profile has 2'

# ---- orders and times ----
lie chain.json 's/"0B0", "0W0"/"0W0", "0B0"/' 4 'device 0, position 3, 0W0: never starts, it waits for 0B0, which waits for 0W0'
lie chain.json 's/"2F0", "2B0"/"2B0", "2F0"/' 4 'never starts'
lie chain.json 's/"0F0", "0F1", "0F2", "0B0"/"0F0", "0B0", "0F1", "0F2"/; s/"1F0", "1F1", "1F2", "1B0"/"1F1", "1F0", "1B0", "1F2"/' 4 \
    'never starts, it waits for'
lie chain.json 's/10750000, 12000000/10750001, 12000000/' 4 \
    'device 0, position 3, 0B0: start_ns says 10750001, recomputed 10750000'
lie chain.json 's/"0W0", "0B1"/"0B1", "0W0"/' 4 'start_ns says'
lie chain.json 's/"forward": \[0.25/"forward": [0.5/' 4 'device 1, position 0, 1F0: start_ns says 1750000, recomputed 2000000'
lie loop.json 's/"bw": \[2.5/"bw": [2.25/' 4 'start_ns says'
lie chain.json 's/"busy_ns": 15750000/"busy_ns": 15750001/' 4 'device 1: busy_ns says 15750001, recomputed 15750000'
lie chain.json 's/"idle_ns": 375000/"idle_ns": 374999/' 4 'device 1: idle_ns says 374999, recomputed 375000'

# ---- memory ----
lie chain.json 's/"peak_bytes": 284688384/"peak_bytes": 284688383/' 4 'device 1, position 2, 1F2: peak_bytes says 284688383'
lie chain.json 's/\[300, null, 200\]/[281, null, 200]/' 4 'memory reaches 295174144 B, the limit is 294649856 B'
lie chain.json 's/"static": \[10, 0/"static": [11, 0/' 4 'recomputed 296222720'
lie list.json 's/"b": \[-4, -1, 3, -2/"b": [-4, -1, 4, -2/; s/"w": \[-1, -2, -4/"w": [-1, -2, -5/' 4 'device 2, position 6, 2B1: peak_bytes says 29000, recomputed 30000'

# ---- costs, status, ratios ----
lie chain.json 's/"span_ns": 19875000/"span_ns": 19875001/' 4 'span_ns says 19875001, recomputed 19875000'
lie chain.json 's/"makespan_ns": 19875000/"makespan_ns": 19875001/' 4 'makespan_ns says'
lie chain.json 's/"period_ns": 19875000/"period_ns": 19874999/' 4 'period_ns says'
lie list.json 's/"period_ns": 204/"period_ns": 203/' 4 'period_ns says 203, recomputed 204'
lie list.json 's/"objective": "period"/"objective": "makespan"/' 4 'cost_ns says 204, the makespan is 210'
lie chain.json 's/"bound_ns": 19875000/"bound_ns": 19875001/' 4 'bound_ns says 19875001, this schedule costs 19875000'
lie chain.json 's/"status": "optimal"/"status": "feasible"/' 4 'status says feasible'
lie loop.json 's/"status": "feasible"/"status": "optimal"/' 4 'status says optimal'
lie chain.json 's/"status": "optimal"/"status": "infeasible"/' 2 'there is no schedule that it could belong to'
lie chain.json 's/"gap": 0.000000/"gap": 0.000001/' 4 'gap says 0.000001, recomputed 0.000000'
lie chain.json 's/"gap": 0.000000/"gap": -0.000002/' 4 'gap says'
lie chain.json 's/"bubble_rate": 0.207547/"bubble_rate": 0.207548/' 4 'bubble_rate says'

# ---- statuses without a schedule ----
lie infeasible.json 's/"device": 1/"device": 0/' 4 'reason.limit_bytes says 10, the profile 20'
lie infeasible.json 's/"device": 1/"device": 3/' 4 'the profile has 3 devices'
lie infeasible.json 's/"limit": \[20, 10, 20\]/"limit": [20, 11, 20]/; s/"limit_bytes": 10/"limit_bytes": 11/' 4 'not infeasible'
lie infeasible.json 's/"least_peak_bytes": 11/"least_peak_bytes": 12/' 4 'least_peak_bytes says 12, recomputed 11'
lie infeasible.json 's/"limit": \[20, 10, 20\]/"limit": [20, null, 20]/' 4 'the profile has no limit there'
lie infeasible.json 's/"reason".*/"bound_ns": 3/' 2 'reason: missing'
lie infeasible.json 's/"status": "infeasible"/"status": "unknown"/' 2 'only infeasible has one'
lie unknown.json 's/"bound_ns": 9/"bound_ns": 12/' 4 'propagation does not refute 11 and there is no proof tree'
lie unknown.json 's/"bound_ns": 9,//' 0 'no schedule, no bound'
lie unknown.json 's/"bound_ns": 9/"bound_ns": 9, "cost_ns": 9/' 2 'cost_ns: there is no schedule'
lie unknown.json 's/"devices": \[/&{}/' 2 'devices: 1 of them'

# ---- bounds and proofs ----
lie v.json 's/"bound_ns": 57000/"bound_ns": 57001/; s/"gap": [0-9.]+/"gap": 0.136348/' 4 'propagation does not refute 57000'
alone='s/"status": "(optimal|feasible)"/"status": "unknown"/; /"devices": \[/,/^  \],?$/d; /_ns|gap/d; s/^  "proof"/"bound_ns": BOUND,&/'
# bounds one above the optimum, with the tree of the optimum
lie tree-placed.json "$(echo "$alone" | sed 's/BOUND/214/')" 4 'is not refuted for a cost of 213'
lie tree-merged.json "$(echo "$alone" | sed 's/BOUND/145/')" 4 'is not refuted for a cost of 144'
lie tree-apart.json "$(echo "$alone" | sed 's/BOUND/150/')" 4 'is not refuted for a cost of 149'
lie tree-v.json "$(echo "$alone" | sed 's/BOUND/147/')" 4 'is not refuted for a cost of 146'
lie tree.json 's/"limit": 20/"limit": 30/' 4 'is not refuted for a cost of 264'
lie tree.json '/\["n"/d' 4 'proof[0]: leaf 1 is not refuted for a cost of 264: the root'
lie chain.json 's/\[300, null, 200\]/null/' 4 'propagation does not refute 19874999 and there is no proof tree'
lie tree-offset.json '/"offset"/d' 4 'leaf 1 is not refuted for a cost of 145: the root'
lie tree-offset.json '/"offset"/{n;d}' 4 'a half missing: the path offset(1)>8'
lie tree-offset.json 's/^    0,/    0, 0,/' 4 'proof[3]: items after the end of the tree'
lie tree-offset.json 's/"", "", 0, 8\]/"", "", 0, 7]/' 4 'leaf 2 is not refuted for a cost of 145: the path offset(1)>7'
lie tree-offset.json 's/\["offset", 1/["offset", 0/' 2 'an offset that is fixed'
lie tree-offset.json 's/\["offset", 1/["offset", 3/' 2 'proof[0]: 3'
lie tree-offset.json 's/\["offset", 1, "", "", 0, 8\]/["wait", 1, "", "", 0, 8]/' 2 'proof[0]: expected ["n"'
lie tree-offset.json 's/\["offset", 1, "", "", 0, 8\]/["offset", 1, 8]/' 2 'proof[0]: a list of 3, expected 6'
lie tree-offset.json 's/^    0,/    1,/' 2 'proof[1]: expected 0 or a list'
lie tree-fused.json 's/\["fused", ([0-9]), "B", "", ([0-9]), 0\]/["fused", \1, "W", "", \2, 0]/' 2 'expected ["n"'
# several stages a device: a missing half, a leaf that does not refute, values and words
lie tree-placed.json 's/,0,0,0\]/,0,0]/' 4 'a half missing: the path offset(2)>15'
lie tree-placed.json 's/"",0,14\]/"",0,8]/' 4 'leaf 2 is not refuted for a cost of 212: the path offset(2)<=15 offset(2)>8'
lie tree-placed.json 's/"proof": .*/"proof": [0]/' 4 'leaf 1 is not refuted for a cost of 212: the root'
lie tree-placed.json 's/\["offset",2/["offset",0/' 2 'proof[0]: an offset that is fixed'
lie tree-placed.json 's/\["offset",2/["offset",1/' 2 'proof[0]: an offset that is fixed'
lie tree-placed.json 's/"objective": "span"/"objective": "makespan"/; s/"cost_ns": 213, "bound_ns": 213, "gap": 0.000000, "bubble_rate": 0.061033/"cost_ns": 223, "bound_ns": 213, "gap": 0.044843, "bubble_rate": 0.103139/; s/optimal/feasible/' 2 'an offset that is fixed'
lie tree-merged.json 's/,0,0\]$/,0]/' 4 'a half missing: the path n(0,1B,0B,0)>1'
lie tree-merged.json 's/"0F","0B",2,3\]/"0F","0B",2,4]/' 4 'leaf 3 is not refuted'
lie tree-merged.json 's/"1B","0B"/"1B","B"/' 2 'proof[0]: expected ["n"'
lie tree-merged.json 's/"1B","0B"/"2B","0B"/' 2 'proof[0]: expected ["n"'
lie tree-merged.json 's/"1B","0B"/"01B","0B"/' 2 'proof[0]: expected ["n"'
lie tree-merged.json 's/"1B","0B"/"0B","0B"/' 2 'proof[0]: expected ["n"'
lie tree-merged.json 's/"proof": \[/&["n",0,"W","0F",3,4],0,/' 4 'leaf 1 is not refuted for a cost of 143: the path n(0,W,0F,3)<=4'
lie tree-merged.json 's/"proof": \[/&["n",0,"1F","W",9,4],0,/' 0 'holds'
lie tree-merged.json 's/"proof": \[/&["n",0,"1F","W",10,4],0,/' 2 'proof[0]: 10'
lie tree-merged.json 's/"proof": \[/&["n",0,"0W","0F",3,-1],0,/' 2 'proof[0]: expected ["n"'
lie tree-merged.json 's/"proof": \[/&["fused",0,"1B","",4,0],0,/' 4 'the path fused(0,1B,4)<=0'
lie tree-merged.json 's/"proof": \[/&["fused",0,"B","",4,-1],0,/' 2 'expected ["n"'
lie tree-merged.json 's/"proof": \[/&["fused",0,"1B","",5,-1],0,/' 2 'proof[0]: 5'
lie tree-apart.json 's/,0,0\]$/,0]/' 4 'a half missing: the path n(0,1B,0B,0)>1'
lie tree-apart.json 's/"0B",2,3\]/"0B",2,4]/' 4 'leaf 3 is not refuted'
lie tree-apart.json 's/"proof": \[/&["n",1,"0W","1F",1,-1],0,/' 0 'holds'
lie tree-apart.json 's/"proof": \[/&["n",1,"1B","0W",3,3],0,/' 0 'holds'
lie tree-apart.json 's/"proof": \[/&["n",1,"W","1F",1,-1],0,/' 2 'expected ["n"'
lie tree-v.json 's/\["offset",2,"","",0,7\]/["offset",2,"","",0,4]/' 4 'is not refuted for a cost of 145'
cat >"$work/many.json" <<'END'
{"zbsolve_schedule": 1, "method": "test", "objective": "span", "status": "unknown", "bound_ns": 40,
 "profile": {"zbsolve_profile": 1, "name": "a loop of 13", "devices": 1, "microbatches": 1, "chunks": 13, "placement": "loop",
  "time": {"unit": "ns", "f": 1, "b": 1, "w": 1, "comm": 1}}}
END
verdict 'many stages a device' 10 'bound not redone: 13 stages a device, at most 12 are' "$work/many.json"
sed 's/"bound_ns": 40/"bound_ns": 39/' "$work/many.json" >"$work/fewer.json"
verdict 'many stages a device, and the closed form is enough' 0 'holds' "$work/fewer.json"
# in whole us, what a split leaves out between two of them is nothing
us=$(echo "$alone" | sed 's/BOUND/145001/')'; s/"unit": "ns"/"unit": "us"/; /proof/s/,([1-9][0-9]*)\]/,\1000]/g'
lie tree-v.json "$us" 0 'bound 145001 ns'
lie tree-v.json "$us; s/,8000\]/,8999]/g" 0 'bound 145001 ns'
lie tree-v.json "$us; s/145001/146001/" 4 'is not refuted for a cost of 146000'
lie tree-v.json "$us; s/,17000\]/,-1]/" 4 'is not refuted for a cost of 145000'
# under another relaxation, or none that is known
lie poured.json 's/"fluid-w"/"merged"/' 4 'relaxation says merged, known are fluid-w, fronts and fluid-fronts'
lie poured.json 's/"fluid-w"/"fluid-w "/' 4 'known are fluid-w'
lie poured.json 's/"",0,14\]/"",0,8]/' 4 'leaf 2 is not refuted for a cost of 212'
lie tree-merged.json 's/"method"/"relaxation": "fluid-w", &/' 4 'leaf 4 is not refuted for a cost of 143'
lie tree-apart.json 's/"method"/"relaxation": "fluid-w", &/' 4 'leaf 1 is not refuted for a cost of 148'
lie tree-v.json 's/"method"/"relaxation": "fluid-w", &/' 0 'holds'
lie tree.json 's/"method"/"relaxation": "fluid-w", &/' 4 'on a chain every W is counted'
# the search of fronts: one above the optimum, without it, and where it is not for
lie fronts.json 's/388000, "gap": 0.034826/388001, "gap": 0.034823/' 4 'bound_ns says 388001, and a schedule of cost 388000 or less was found'
lie fronts.json 's/388000, "gap": 0.034826/387001, "gap": 0.037311/' 0 'bound 387001 ns'
lie fronts.json 's/, "relaxation": "fronts"//' 4 'propagation does not refute 387999'
lie fronts.json 's/"bw": \[32000, 24000/"bw": [32000, 22999/' 4 'relaxation says fronts, but BW of stage 1 is faster than B and W'
lie fronts.json 's/"b": \[-2, -6, -1\], "w": \[0, -1, -2\]/"b": [-2, -6, 0], "w": [0, -1, -3]/' 0 'bound 388000 ns'
lie fronts.json 's/"b": \[-2, -6, -1\], "w": \[0, -1, -2\]/"b": [-2, -6, 1], "w": [0, -1, -4]/; s/"limit": \[6, 20, 5\]/"limit": [6, 20, 6]/; s/"peak_bytes": 5, "busy_ns": 245000/"peak_bytes": 6, "busy_ns": 245000/' 4 'relaxation says fronts, but B of stage 2 adds to memory that is limited'
lie fronts.json 's/"span", "status"/"period", "status"/' 4 'relaxation says fronts, which is for span and makespan'
lie fronts.json 's/"devices": \[$/"proof": [0], &/' 4 'relaxation says fronts, which has no proof tree'
lie tree.json 's/"method"/"relaxation": "fronts", &/' 4 'relaxation says fronts, which has no proof tree'
verdict 'fronts and a proof file' 4 'which has no proof tree' "$here/zbcheck/fronts.json" --proof "$here/zbcheck/tree-file.proof"
lie loop.json 's/"method"/"relaxation": "fronts", &/' 4 'relaxation says fronts, which is for a chain'
lie single.json 's/"method"/"relaxation": "fronts", &/' 0 'holds'
lie zero.json 's/"method"/"relaxation": "fronts", &/' 0 'holds'
# an op of another device ends first where clocks are compared that begin at different times
cat >"$work/clocks.json" <<'END'
{"zbsolve_schedule": 1, "method": "test", "objective": "span", "status": "unknown", "relaxation": "fronts", "bound_ns": 88,
 "profile": {"zbsolve_profile": 1, "name": "two devices", "devices": 2, "microbatches": 4,
  "time": {"unit": "ns", "f": 9, "b": 5, "w": 6, "comm": 1}, "memory": {"unit": "B", "f": 9, "b": -5, "w": -4, "limit": [23, 27]}}}
END
verdict 'clocks of two devices' 4 'a schedule of cost 87 or less was found' "$work/clocks.json"
sed 's/88/87/' "$work/clocks.json" >"$work/clocks-optimum.json"
verdict 'clocks of two devices, the optimum' 0 'no schedule, bound 87 ns' "$work/clocks-optimum.json"
sed 's/"chunks": 13, "placement": "loop"/"placement": [0]/; s/"bound_ns"/"relaxation": "fronts", &/' "$work/many.json" >"$work/one.json"
verdict 'fronts of a list that is a chain' 4 'a schedule of cost 39 or less was found' "$work/one.json"
sed 's/"devices": 1/"devices": 2/; s/\[0\]/[1, 0]/' "$work/one.json" >"$work/turned.json"
verdict 'fronts of a list that is none' 4 'which is for a chain' "$work/turned.json"
# the search of fluid-fronts likewise
fluid='s/"fronts"/"fluid-fronts"/'
lie fronts.json "$fluid"'; s/388000, "gap": 0.034826/384000, "gap": 0.044776/' 0 'bound 384000 ns'
lie fronts.json "$fluid"'; s/388000, "gap": 0.034826/384001, "gap": 0.044774/' 4 'bound_ns says 384001, and with W poured a schedule of cost 384000 or less was found'
lie fronts.json "$fluid"'; s/"bw": \[32000, 24000/"bw": [32000, 22999/' 4 'relaxation says fluid-fronts, but BW of stage 1 is faster than B and W'
lie fronts.json "$fluid"'; s/"b": \[-2, -6, -1\], "w": \[0, -1, -2\]/"b": [-2, -6, 1], "w": [0, -1, -4]/; s/"limit": \[6, 20, 5\]/"limit": [6, 20, 6]/; s/"peak_bytes": 5, "busy_ns": 245000/"peak_bytes": 6, "busy_ns": 245000/' 4 'relaxation says fluid-fronts, but B of stage 2 adds to memory that is limited'
lie fronts.json "$fluid"'; s/"span", "status"/"period", "status"/' 4 'relaxation says fluid-fronts, which is for span and makespan'
lie fronts.json "$fluid"'; s/"devices": \[$/"proof": [0], &/' 4 'relaxation says fluid-fronts, which has no proof tree'
lie loop.json 's/"method"/"relaxation": "fluid-fronts", &/' 4 'relaxation says fluid-fronts, but BW of stage 0 is faster than B and W'
lie single.json 's/"method"/"relaxation": "fluid-fronts", &/' 0 'holds'
for file in clocks one turned; do sed "$fluid" "$work/$file.json" >"$work/fluid-$file.json"; done
verdict 'clocks of two devices, W poured' 4 'with W poured a schedule of cost 87 or less was found' "$work/fluid-clocks.json"
verdict 'fluid-fronts of a list that is a chain' 4 'with W poured a schedule of cost 39 or less was found' "$work/fluid-one.json"
verdict 'fluid-fronts of a list that is none' 4 'with W poured a schedule of cost 39 or less was found' "$work/fluid-turned.json"
# and with several stages a device
cat >"$work/v.json" <<'END'
{"zbsolve_schedule": 1, "method": "test", "objective": "span", "status": "unknown", "relaxation": "fluid-fronts", "bound_ns": 183000000,
 "profile": {"zbsolve_profile": 1, "devices": 4, "microbatches": 8, "chunks": 2, "placement": "v",
  "time": {"unit": "us", "f": 3000, "b": 4000, "w": [2000, 2000, 2000, 2000, 2000, 2000, 2000, 2000], "comm": 0},
  "memory": {"f": 1, "b": 0, "w": [-1, -1, -1, -1, -1, -1, -1, -1], "limit": 5}}}
END
altered() { # NAME SCRIPT CODE WORDS: of v.json
  sed -E "$2" "$work/v.json" >"$work/altered.json"
  verdict "$1" "$3" "$4" "$work/altered.json"
}
verdict 'a V' 0 'no schedule, bound 183000000 ns' "$work/v.json"
altered 'a V, above' 's/183000000/183000001/' 4 'with W poured a schedule of cost 183000000 or less was found'
altered 'a V, less memory' 's/183000000/200000000/; s/"limit": 5/"limit": 4/' 0 'no schedule, bound 200000000 ns'
altered 'a V, less memory, above' 's/183000000/200000001/; s/"limit": 5/"limit": 4/' 4 'with W poured a schedule of cost 200000000 or less was found'
altered 'a V, more memory' 's/183000000/169000000/; s/"limit": 5/"limit": 6/' 0 'no schedule, bound 169000000 ns'
altered 'a V, more memory, above' 's/183000000/169000001/; s/"limit": 5/"limit": 6/' 4 'with W poured a schedule of cost 169000000 or less was found'
altered 'a V, fronts' 's/fluid-fronts/fronts/' 4 'relaxation says fronts, which is for a chain'
altered 'a V, W of two times' 's/2000\]/2001]/' 4 'but W of stages 0 and 7, on one device, differ'
altered 'a V, W that give back two amounts' 's/"f": 1, "b": 0/"f": [1, 1, 1, 1, 1, 1, 1, 2], "b": 0/; s/-1\]/-2]/' 4 'but W of stages 0 and 7, on one device, differ'
altered 'a V, B that adds to memory' 's/"f": 1, "b": 0/"f": [1, 1, 1, 1, 1, 1, 1, 0], "b": [0, 0, 0, 0, 0, 0, 0, 1]/' 4 'but B of stage 7 adds to memory that is limited'
altered 'a V, W that differ, no limit' 's/2000\]/2001]/; s/"limit": 5/"limit": null/' 4 'but W of stages 0 and 7, on one device, differ'
altered 'a V, period' 's/"span"/"period"/' 4 'relaxation says fluid-fronts, which is for span and makespan'
altered 'a device that is fed late' 's/"v"/[0, 1, 1, 2, 0, 2, 3, 3]/' 4 'but the span depends on when device 2 starts, which is open'
altered 'a device that is fed late, makespan' 's/"v"/[0, 1, 1, 2, 0, 2, 3, 3]/; s/"span"/"makespan"/' 0 'no schedule, bound 183000000 ns'
lie tree-file.json 's/"sha256": "[0-9a-f]{4}/"sha256": "0000/' 4 'proof.sha256 says 0000'
lie tree-file.json 's/"tree-file.proof"/"other.proof"/' 10 'bound not redone'
lie tree-file.json 's/"tree-file.proof"/"..\/tree-file.proof"/' 2 'expected the name of a file beside the schedule'
lie tree-file.json 's/"sha256"/"md5"/' 2 'proof.md5: unknown key'
printf '[0]' >"$work/leaf.proof"
printf '{}' >"$work/object.proof"
verdict 'another proof' 4 'leaf 1 is not refuted' "$here/zbcheck/tree.json" --proof "$work/leaf.proof"
verdict 'a proof that is no list' 2 'expected a proof tree' "$here/zbcheck/tree.json" --proof "$work/object.proof"
verdict 'a proof of another digest' 4 'proof.sha256 says' "$here/zbcheck/tree-file.json" --proof "$work/leaf.proof"

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
