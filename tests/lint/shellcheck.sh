#!/usr/bin/env bash
# The scripts, and the tests written in shell, are clean by shellcheck.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v shellcheck >/dev/null; then
    echo "1..0 # SKIP shellcheck is not installed"
    exit 0
fi

mapfile -t scripts < <(grep -lE '^#!.*bash|^#!/bin/sh|^# shellcheck shell=bash' -r scripts .ci tests packaging | grep -vE '^tests/.*\.(bats|bash)$' | sort)
mapfile -t bats < <(find tests -name '*.bats' -o -name '*.bash' | sort)
# What bats sets and its files share among them (status, stderr, helpers' variables) shellcheck cannot see, and that each
# test has a shell of its own; commands in quotes for another shell, and a folder called done, are meant.
BATS_ALLOWS=SC2154,SC2034,SC2016,SC1010,SC2030,SC2031

failed=0
check() { # check NUMBER WORDS COMMAND...
    local number=$1 words=$2 findings
    shift 2
    if findings=$("$@" 2>&1); then
        echo "ok $number - $words"
    else
        printf 'not ok %s - %s\n%s\n' "$number" "$words" "$findings"
        failed=1
    fi
}

echo 1..2
check 1 "${#scripts[@]} scripts" shellcheck "${scripts[@]}"
if [[ ${EVENLOAD_LONG-} != 1 ]]; then
    echo "# long: shellcheck of the bats files, 10 s"
    echo "ok 2 - bats files # SKIP only with --long"
elif ((${#bats[@]} > 0)); then
    check 2 "${#bats[@]} bats files" shellcheck -s bats -e "$BATS_ALLOWS" "${bats[@]}"
else
    echo "ok 2 - bats files # SKIP there are none"
fi
exit "$failed"
