#!/usr/bin/env bash
# What no file in tests/parse/program can be: directories, pipes, long lines. Each is refused with one line.
#
# ZBSOLVE names the program (default build/zbsolve). In a long run the line is 1 GB.
set -u
program=${ZBSOLVE:-build/zbsolve}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# verdict NAME CODE WORDS ARGUMENT..: checks what the arguments or standard input name
verdict() {
    name=$1 code=$2 words=$3
    shift 3
    "$program" "$@" >"$work/out" 2>"$work/err"
    got=$?
    said=$(cat "$work/err")
    case "$got:$(wc -l <"$work/err"):$said" in
    "$code":1:*"$words"*) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        printf 'FAILED %s: expected exit code %s and one line with "%s", got %s: %s\n' "$name" "$code" "$words" \
            "$got" "$said"
        ;;
    esac
}

# line BYTES: a program that is one long string, never closed
line() {
    printf '{"zbsolve_program": 1, "method": "'
    head -c "$1" /dev/zero | tr '\0' a
}

mkdir "$work/folder"
verdict 'a directory' 2 "$work/folder: cannot read" check "$work/folder"
verdict 'no file' 2 "$work/none: cannot open" check "$work/none"
line 20000000 >"$work/line"
verdict 'a long line' 2 'line:1:' check "$work/line"
verdict 'a long line from a pipe' 2 '<stdin>:1:' check - < <(line 20000000)
verdict 'half a program from a pipe' 2 '<stdin>:' check - < <(head -c 1000 "$here/parse/program/holds.json")
verdict 'a program where a schedule belongs' 2 'this is a program, expected a schedule' compile \
    "$here/parse/program/holds.json"
verdict 'a program to draw' 2 'this is a program, expected a schedule' show "$here/parse/program/holds.json"
verdict 'a profile where a schedule belongs' 2 'this is a profile, expected a schedule' compile \
    "$here/../configs/zb-toy-tight-memory.json"
if [ -n "${ZB_LONG:-}" ]; then
    verdict '1 GB of one line' 2 '<stdin>:1:' check - < <(line 1000000000)
    verdict 'more than is read' 2 'larger than 1024 MiB' check - < <(line 1100000000)
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
