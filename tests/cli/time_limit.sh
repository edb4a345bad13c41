# A time limit of 1 s ends searches that would go on for long, on a chain with little memory and on a V: every turn
# of what they do is short. The time that they may be late is for busy machines.
for name in uneven/uneven-08 table8-28.3b-p32-m256; do
  "$ZBSOLVE" solve "$CONFIGS/$name.json" --time-limit 1 --json -q -o limited-${name##*/}.json |
    sed -n 's/.*"seconds": \([0-9]*\)\..*/\1/p' | awk '{ print ($1 < 3 ? "in time" : "late: " $1 " s") }'
done
