# A schedule or a program, run for real: the same bits as without a pipeline, whatever the optimizer does.
cat >profile.json <<END
{"zbsolve_profile": 1, "devices": 4, "microbatches": 8,
 "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0.1},
 "memory": {"unit": "MiB", "f": 3, "b": -1, "w": -2}}
END
verify() { # SCHEDULE OPTION..
  echo "$*"
  "$ZBREPLAY" run "$@" --verify -q
  code=$?
  if [ $code != 0 ]; then echo "exit code $code"; fi
}
for method in gpipe 1f1b 1f1b-interleaved zb-h1 zb-2p zb-v v-min; do
  "$ZBSOLVE" solve profile.json -q --method $method -o $method.json >solved
  verify $method.json --model configs/models/tiny.json
done
verify zb-h1.json --optimizer post-validation --clip 0
verify zb-h1.json --optimizer post-validation --clip 0.001
verify zb-v.json --optimizer post-validation --clip 0 --inject nan:1:5
verify zb-h1.json --optimizer post-validation --clip 2 --rollback inverse --inject nan:1:3
"$ZBSOLVE" compile zb-v.json -q --optimizer post-validation -o program.json
verify program.json --seed 7

# What the optimizer did, and that nothing but times differs from run to run.
"$ZBREPLAY" run zb-h1.json --optimizer post-validation --clip 0 --inject nan:1:2 --trace trace.json -v |
  sed -E 's/ +[-0-9.]+ ms| +[-0-9.]+%| +[0-9.]+$//g; s/worst op, [0-9A-Z]+/worst op/'
grep -o '"PP:STEP".*"step": 1, "note": "[a-z ]*"' trace.json | sed -E 's/.*"pid": ([0-9]).*"note": /device \1: /'
grep -o '"PP:VALIDATE".*"step": 2, "note": "[a-z ]*"' trace.json | sed -E 's/.*"pid": ([0-9]).*"note": /device \1: /'
"$ZBREPLAY" run zb-h1.json --json --steps 2 | grep -oE '"loss": .5\.[0-9]|"verified.*'
"$ZBREPLAY" run zb-h1.json --backend sleep --steps 2 -q
echo "exit code $?: sleep"
