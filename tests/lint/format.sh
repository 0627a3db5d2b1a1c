#!/usr/bin/env bash
# The C code stands as .clang-format has it (`make format` puts it so). Only version 14 judges: others break lines otherwise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

formatter=
for program in clang-format-14 clang-format; do
    if [[ $("$program" --version 2>/dev/null) == *' version 14.'* ]]; then formatter=$program && break; fi
done
if [[ -z $formatter ]]; then
    echo "1..0 # SKIP clang-format 14 is not installed"
    exit 0
fi
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "1..0 # SKIP no git here, so that the tracked files are not known"
    exit 0
fi

mapfile -t files < <(git ls-files '*.c' '*.h' '*.cu' '*.cuh')
echo 1..1
if "$formatter" --dry-run --Werror "${files[@]}" >build/format.txt 2>&1; then
    echo "ok 1 - ${#files[@]} files are formatted"
else
    echo "not ok 1 - not formatted (make format mends them)"
    sed -nE 's/^([^: ]+):[0-9]+:.*/  \1/p' build/format.txt | sort | uniq -c
    exit 1
fi
