# A checkpoint goes on under another program, placement and number of devices, to the bits of a run without pipeline.
cat >profile.json <<END
{"zbsolve_profile": 1, "devices": 4, "microbatches": 4,
 "time": {"unit": "ms", "f": 1, "b": 1, "w": 1, "comm": 0.1},
 "memory": {"unit": "MiB", "f": 3, "b": -1, "w": -2}}
END
sed 's/"devices": 4/"devices": 2/' profile.json >two.json
"$ZBSOLVE" solve profile.json -q --method zb-h1 -o zb-h1.json >solved
"$ZBSOLVE" solve profile.json -q --method zb-v -o zb-v.json >solved
"$ZBSOLVE" solve two.json -q --method 1f1b -o 1f1b.json >solved
try() { # FILE OPTION..
  "$ZBREPLAY" run "$1" --model configs/models/tiny.json --checkpoint kept -q "${@:2}"
  echo "exit code $?: $*"
  if [ -e kept/checkpoint ]; then head -c 200 kept/checkpoint | grep -a -o '^zbsolve_checkpoint 1 step .* numbers [0-9]*'; fi
}
try zb-h1.json --steps 4 --optimizer post-validation --checkpoint-every 2 --verify
try zb-v.json --steps 5 --inject nan:4:3 --verify
cp kept/checkpoint five
try 1f1b.json --steps 7 --inject nan:4:0 --verify
ls kept
try 1f1b.json --steps 7
try 1f1b.json --steps 9 --seed 2
try 1f1b.json --steps 9 --clip 3
try 1f1b.json --steps 9 --backend sleep
head -c 5000 five >kept/checkpoint
try 1f1b.json --steps 9
sed 's/\x3d/\x3e/' five >kept/checkpoint
try 1f1b.json --steps 9
echo 'zbsolve_checkpoint 2' >kept/checkpoint
try 1f1b.json --steps 9
rm -r kept
touch kept
try 1f1b.json --steps 9
"$ZBREPLAY" run 1f1b.json --model configs/models/tiny.json --checkpoint here/there -q
echo "exit code $?"
