#!/bin/sh
# build/zbreplay carries machine code for every architecture in CUDA_ARCH, and PTX of the last, in as many pieces
# as there are .cu files.
#
# The section .nv_fatbin holds one fat binary a file: 16 bytes (magic 0xba55ed50; at byte 8 the length of what
# follows), then entries. An entry: its kind in the lower 16 bits of its first word (1: PTX, 2: machine code), its
# header's length at byte 4, its body's at byte 8, its architecture at byte 28.
set -eu
grep -q '^PART_CUDA = yes' "$BUILD/parts.mk" || { echo "CUDA's toolkit is missing or off"; exit 77; }
files=$(find kernels -name '*.cu' | wc -l)

words=$(readelf -SW "${1:-$BUILD/zbreplay}" | sed -n 's/^.* \.nv_fatbin *PROGBITS *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*$/\1 \2/p')
[ -n "$words" ] || { echo "no section .nv_fatbin"; exit 1; }
offset=$((0x${words% *})) size=$((0x${words#* }))
tail -c +$((offset + 1)) "${1:-$BUILD/zbreplay}" | head -c "$size" | od -An -v -tu4 -w4 |
  awk '{ word[NR - 1] = $1 }
    END {
      for (at = 0; at + 4 <= NR;) {
        if (word[at] != 3126193488) { at++; continue } # not the magic: padding
        stop = at + 4 + word[at + 2] / 4
        for (at += 4; at < stop; at += (word[at + 1] + word[at + 2]) / 4) {
          kind = word[at] % 65536
          print (kind == 1 ? "compute_" : kind == 2 ? "sm_" : "kind " kind " of ") word[at + 7]
        }
      }
    }' | sort | uniq -c >"$SCRATCH/found"
arches=${CUDA_ARCH:-80 90}
for arch in $arches; do echo "$files sm_$arch"; done >"$SCRATCH/wanted"
echo "$files compute_${arches##* }" >>"$SCRATCH/wanted"
sort -k 2 "$SCRATCH/wanted" >"$SCRATCH/sorted"
awk '{ print $1, $2 }' "$SCRATCH/found" | sort -k 2 | diff "$SCRATCH/sorted" - || { echo "< wanted, > found"; exit 1; }
