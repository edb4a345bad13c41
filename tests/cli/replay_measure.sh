# From a model to a profile, to a schedule, and back to a run of it: the peaks are the profile's.
"$ZBREPLAY" measure configs/models/tiny.json --devices 2 --repeats 3 -o profile.json
echo "exit code $?"
sed -E '/"time"/d' profile.json
"$ZBSOLVE" solve profile.json -q --method zb-h1 -o schedule.json >solved
grep -o '"peak_bytes": [0-9]*' schedule.json
"$ZBREPLAY" run schedule.json --model configs/models/tiny.json --verify --json |
  grep -oE '"kept_bytes": .*"static_bytes": [0-9]+|"verified": true'
"$ZBREPLAY" measure configs/models/tiny.json --devices 2 --placement v --repeats 1 | sed -E '/"time"/d'
