#!/usr/bin/env bash
# No room has more lines, and no page more words, than tests/lint/budget.txt gives it: `ROOM NUMBER WHY`. Whoever raises a number says why there.
# Lines are those of C, CUDA and headers (of scripts and plots: all); a file that is not tracked does not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

echo 1..1
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "ok 1 - budget # SKIP no git here, so that the tracked files are not known"
    exit 0
fi

over='' all=0
while read -r room most _; do
    [[ -n $room && $room != \#* ]] || continue
    case $room in
    pages) have=$(git ls-files -z '*.md' | xargs -0 cat | wc -w) ;;
    scripts | plots | packaging | tests) have=$(git ls-files -z "$room" | grep -zvE '\.(png|pickle|gz)$' | xargs -0 cat | wc -l) ;;
    *) have=$(git ls-files -z "$room/*.c" "$room/*.h" "$room/*.cu" "$room/*.cuh" | xargs -0 cat | wc -l) ;;
    esac
    all=$((all + 1))
    ((have <= most)) || over+="  $room: $have, and $most is what tests/lint/budget.txt gives it"$'\n'
done <tests/lint/budget.txt
if [[ -z $over ]]; then
    echo "ok 1 - $all rooms are within their budgets"
else
    printf 'not ok 1 - more than the budget: remove something, or raise the number there and say why\n%s' "$over"
    exit 1
fi
