# Every help text: they come from the tables of commands, options and methods.
"$ZBSOLVE" help
for command in solve compare tune frontier check show export import compile profile; do
  echo "--"
  "$ZBSOLVE" help "$command"
done
"$ZBSOLVE" solve --help >asked
"$ZBSOLVE" help solve >help
cmp asked help
"$ZBSOLVE" -h | head -n 1
"$ZBSOLVE" --version | sed -E 's/^zbsolve [0-9.]+ \(.+\)$/zbsolve VERSION (PARTS)/'
