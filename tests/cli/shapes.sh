# Small and odd shapes: one device, one microbatch, fewer microbatches than devices, zero times.
shape() { # DEVICES MICROBATCHES F B W COMM
  cat >profile.json <<END
{"zbsolve_profile": 1, "devices": $1, "microbatches": $2, "time": {"unit": "us", "f": $3, "b": $4, "w": $5, "comm": $6},
 "memory": {"unit": "MB", "f": 3, "b": -1, "w": -2}}
END
  echo "p=$1 m=$2 f=$3 b=$4 w=$5 comm=$6"
  for method in auto gpipe 1f1b zb-h1 zb-h2 greedy 1f1b-interleaved; do
    printf '  %-17s%s\n' $method "$("$ZBSOLVE" solve profile.json -q --method $method -o $method.json)"
    "$ZBCHECK" $method.json >said || cat said
  done
}
shape 1 1 3 2 1 1
shape 1 5 3 2 1 1
shape 2 1 3 2 1 1
shape 8 2 3 2 1 1
shape 4 7 3 2 1 1
shape 3 6 3 2 0 1
shape 3 6 3 0 1 1
shape 3 6 0 2 1 1
shape 3 6 0 0 0 0
shape 3 6 3 2 1 0
shape 3 6 3 2 1 3
for microbatches in 2 16; do
  "$ZBSOLVE" compare -q "$CONFIGS/table5-1.5b-p8-m24.json" --microbatches $microbatches \
    --methods gpipe,1f1b,1f1b-interleaved,zb-h1,zb-h2,greedy,zb-1p,zb-2p,1f1b-v,zb-v,v-half,v-min,v-blocks |
    sed -E 's/ +[0-9]+\.[0-9]{3}$//; /auto takes .* less than 1f1b-interleaved/d'
done
