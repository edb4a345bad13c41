# The three costs of one profile, each against its own bound.
for objective in span makespan period; do
  for method in 1f1b zb-h1 zb-h2 1f1b-interleaved; do
    echo "$objective $method $("$ZBSOLVE" solve "$CONFIGS/table5-6.2b-p8-m24.json" -q --objective $objective \
      --method $method -o $objective-$method.json)"
  done
done
