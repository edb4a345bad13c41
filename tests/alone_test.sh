#!/bin/sh
# zbcheck shares nothing with the solver. The compiler's own lists of what it read for zbcheck name no other file
# of the tree, and none of its files asks for cJSON.
set -eu
[ -e "$BUILD/obj/tests/zbcheck.d" ] || { echo "no $BUILD/obj/tests/zbcheck.d"; exit 1; }
if cat "$BUILD"/obj/tests/zbcheck*.d | tr -s ' \\' '\n\n' | grep -E '\.[ch]:?$' | grep -vE '^tests/zbcheck[^/]*$'; then
  echo "above: what zbcheck reads and should not"
  exit 1
fi
if grep -niE 'include.*cjson' tests/zbcheck*; then exit 1; fi
