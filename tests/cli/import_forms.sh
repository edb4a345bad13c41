# Forms that say the same: line ends, blanks, quotes, idle slots, a missing last line end, overlapped pairs.
cat >two.json <<'JSON'
{"zbsolve_profile": 1, "devices": 2, "microbatches": 2,
 "time": {"unit": "ms", "f": 3, "b": 4, "w": 2, "comm": 1}}
JSON
printf '0F0,0F1,0B0,0B1\n1F0,1I0,1F1,1I1,1W0,1W1\n' >plain.csv
printf '0F0,0F1,0B0,0B1\r\n1F0,1I0,1F1,1I1,1W0,1W1\r\n' >crlf.csv
printf ' 0F0 ,0F1,\t0B0, 0B1\n1F0,1I0,1F1,1I1 ,1W0,1W1' >blanks.csv
printf '"0F0",0F1,"0B0" ,0B1\n 1F0,1I0,"1F1",1I1,1W0, "1W1"\n' >quotes.csv
printf '0F0,0F1,,,0B0,,0B1,\n,1F0,1I0,1F1,1I1,1W0,1W1,,,,\n' >idle.csv
printf '0F0,0F1,0B0,0B1\n1F0,1I0,(1F1;1I1)OVERLAP_F_B,1W0,1W1\n' >overlap.csv
for form in plain crlf blanks quotes idle overlap; do
  "$ZBSOLVE" import $form.csv --from torch-csv --profile two.json -q -o $form.json
  cmp $form.json plain.json
done
"$ZBSOLVE" import overlap.csv --from torch-csv --profile two.json -o again.json
# What torch runs in another way than it is written.
printf '0F0,0F1,0I0,0W0,0B1\n1F0,1I0,1F1,1I1,1W0,1W1\n' >first-split.csv
"$ZBSOLVE" import first-split.csv --from torch-csv --profile two.json -o first-split.json
# The two dialects of torch 2.10 and 2.15.
cat >2.10.csv <<'CSV'
0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD
1UNSHARD,1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1W0,1W1,1REDUCE_GRAD,1RESHARD
CSV
cat >2.15.csv <<'CSV'
0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD
1UNSHARD,1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1W0,1W1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0,1WAIT_SEND_B1
CSV
for form in 2.10 2.15; do
  "$ZBSOLVE" import $form.csv --from torch-comms-csv --profile two.json -o $form.json
  cmp $form.json plain.json
  "$ZBSOLVE" export $form.json --to torch-comms-csv --target $form
done
# Channels: what hangs where a rank has one may finish where each direction has its own.
cp "$(dirname "$0")"/../parse/import/hang-*.csv .
for channels in rank pair edge; do
  "$ZBSOLVE" import hang-two-ranks.comms.csv --from torch-comms-csv --profile two.json --channels $channels -q -o hang.json
  echo "exit code $?: $channels"
done
