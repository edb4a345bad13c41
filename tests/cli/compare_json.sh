# Rows as contract.md section 4 has them; what does not exist is left out.
"$ZBSOLVE" compare "$CONFIGS/table5-1.5b-p8-m24.json" --memory-limit 1x --json --methods 1f1b,zb-h1,zb-h2 |
  sed -E 's/"seconds": [0-9.]+/"seconds": 0/g; s/(\}|\]), /\1,\n/g'
