# The costs of Table 5 of arXiv 2401.10241 in ns: the classic families, and greedy under 1x and 2x.
for profile in "$CONFIGS"/table5-*.json; do
  name=$(basename "$profile" .json)
  for method in 1f1b zb-h1 zb-h2 zb-1p zb-2p; do
    echo "$name $method $("$ZBSOLVE" solve "$profile" --method "$method" -q -o "$name-$method.json" | cut -d ' ' -f 3)"
  done
done
