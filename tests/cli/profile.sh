# Our own trace read back gives the profile's times: uneven stages, messages by direction, fused backwards, a list.
profile_of() { # FILE..: the profile without what names its file
  "$ZBSOLVE" profile -q "$@" | grep -v '"name"'
}
back() { # NAME METHOD
  "$ZBSOLVE" solve "$1.json" -q --method "$2" -o "$1.solved.json" >said
  "$ZBSOLVE" export "$1.solved.json" --to chrome-trace -o "$1.trace"
  profile_of "$1.trace"
}
cat >uneven.json <<'END'
{"zbsolve_profile": 1, "devices": 3, "microbatches": 4,
 "time": {"unit": "us", "f": [3, 4.125, 2.001], "b": [2.5, 3, 1], "w": [1, 1.25, 2],
          "comm": {"forward": [0.125, 0.5], "backward": [0.25, 7]}}}
END
back uneven zb-h1
cat >loop.json <<'END'
{"zbsolve_profile": 1, "devices": 2, "microbatches": 4, "chunks": 2, "placement": "loop",
 "time": {"unit": "ns", "f": [31, 32, 33, 34], "b": 20, "w": 10, "bw": [25, 26, 27, 28], "comm": 5}}
END
back loop 1f1b-interleaved
cat >list.json <<'END'
{"zbsolve_profile": 1, "devices": 2, "microbatches": 3, "chunks": 2, "placement": [0, 0, 1, 1],
 "time": {"unit": "ns", "f": 30, "b": 20, "w": 10, "comm": [0, 5, 0]}}
END
back list gpipe
"$ZBSOLVE" solve "$CONFIGS/table8-6.2b-p16-m48.json" -q --method zb-v -o v.json >said
"$ZBSOLVE" export v.json --to chrome-trace -o v.trace
profile_of v.trace

# What one file of torch's profiler holds: three steps, host spans beside the GPU's, a second stream.
span() { # NAME CATEGORY TID START DUR
  printf '{"ph":"X","cat":"%s","name":"PP:%s","pid":1,"tid":%s,"ts":171812345678%s.5,"dur":%s},\n' "$2" "$1" "$3" "$4" "$5"
}
for rank in 0 1; do
  {
    echo '{"distributedInfo": {"rank": '$rank', "world_size": 2}, "traceEvents": ['
    for step in 0 1 2; do
      for microbatch in 0 1; do
        span ${rank}F$microbatch user_annotation 1 $step$microbatch 1
        span ${rank}F$microbatch gpu_user_annotation 7 $step$microbatch 10$step.$rank
        span ${rank}F$microbatch gpu_user_annotation 20 $step$microbatch 4
        span ${rank}B$microbatch gpu_user_annotation 7 $step$microbatch 20$step
      done
      if [ $rank = 0 ]; then span 0RECV_B0 gpu_user_annotation 20 ${step}5 3$step; else span 1RECV_F0 gpu_user_annotation 20 ${step}5 4$step; fi
    done
    echo '{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}]}'
  } >rank$rank.json
done
"$ZBSOLVE" profile rank0.json rank1.json -o steps.profile
profile_of rank1.json rank0.json --skip 0 --microbatches 16
# The same, packed; a build without zlib says so, once for all (tests/parse/profile).
gzip -nk rank0.json
"$ZBSOLVE" --version | grep -q 'zlib yes' || cp rank0.json rank0.json.gz
profile_of rank1.json rank0.json.gz | grep '"time"'
"$ZBSOLVE" profile rank0.json rank1.json --skip 3
echo "exit code $?"
"$ZBSOLVE" profile rank0.json
echo "exit code $?"

# The zero-bubble fork's log, one chunk and two; memory that does not sum to 0.
line() { echo "[default$1]:INFO rank $1 profiling conclusion: [($2), ($3), ($4), 601.5, ($5), ($6), ($7)]"; }
{ echo noise; line 0 18522.1234567, 18086.0, 9337.0, 90.0, -20.0, -70.0; line 1 18522.0, 18086.0, 9337.0, 90.0, -20.0, -69.5; } >one.log
"$ZBSOLVE" profile one.log --microbatches 8
{ line 0 '1, 2' '3, 4' '3, 4' '9, 9' '-4, -4' '-5, -5'; line 1 '1, 2' '3, 4' '3, 4' '9, 9' '-4, -4' '-5, -3'; } >two.log
"$ZBSOLVE" profile two.log --microbatches 8

# Megatron's timers: two iterations and their warm-up, two replicas.
for ms in 900 480 486; do
  printf ' [default3]:times across ranks (ms):\n  forward-compute:\n'
  for rank in 0 1 2 3; do printf '     rank  %s: %s.25\r\n' $rank $((ms + rank)); done
  printf '  backward-compute ....:\n'
  for rank in 0 1 2 3; do printf '     rank  %s: %s\n' $rank $((2 * ms + rank)); done
  printf '  optimizer:\n     rank  0: 12.5\n'
done >timers.txt
"$ZBSOLVE" profile timers.txt --microbatches 24 --devices 2 --comm 0.6ms -o timers.profile
grep -E '"(note|time|microbatches)"' timers.profile
"$ZBSOLVE" profile timers.txt
echo "exit code $?"

# A table by hand, with what a look at it finds.
printf 'stage, op, time_us\r\n0,F,10\r\n0,F,12\n0,F,30\n0,"B",60\n 0 ,W,0.1\n0,COMM,2\n1,F,100\n1,BW,20\n2,F,10\n2,B,0\n2,W,8\n\n' >table.csv
"$ZBSOLVE" profile table.csv --microbatches 4 --json
"$ZBSOLVE" profile - --from csv --microbatches 4 -q <table.csv | grep '"time"'
printf 'stage,op,time_ns\n0,F,2\n0,F,3\n0,F,4\n0,F,6\n0,BW,3' | "$ZBSOLVE" profile - --microbatches 4 --json | grep -o '"warnings".*'

# Found by what they begin with, a byte order mark and blanks aside: the reader then says what is wrong.
printf '\xEF\xBB\xBFstage,op,time_ms\n' | "$ZBSOLVE" profile -
printf '\xEF\xBB\xBF{"traceEvents": []}' | "$ZBSOLVE" profile -
printf ' "stage" ,op,time_s\n0,F,1\n0,BW' | "$ZBSOLVE" profile -

# Files that are none.
for file in . nowhere.json /dev/null; do
  "$ZBSOLVE" profile "$file" --from torch-trace
  echo "exit code $?: $file"
done
"$ZBSOLVE" profile one.log --from xml
"$ZBSOLVE" profile table.csv --comm 3 --microbatches 4
echo "words" >words.txt
"$ZBSOLVE" profile words.txt
# A line of 1 GB, and a gigabyte packed into little.
truncate -s 1G line
"$ZBSOLVE" profile line --from zb-log
echo "exit code $?"
