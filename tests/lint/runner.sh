#!/usr/bin/env bash
# The judge of all tests is judged: programs that crash, hang, stop early or test nothing must count as failed, whatever
# they printed before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/tap.sh

LOG=$(mktemp)
PLACE=$(mktemp -d)
trap 'rm -rf "$LOG" "$PLACE"' EXIT

# words | passed failed skipped | why (a part of it; - for none) | program
CASES='
all pass|2 0 0|-|echo 1..2; echo ok 1 - a; echo ok 2 - b
one fails|1 1 0|1 failed|echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1
cmocka skips one|1 0 1|-|echo 1..2; echo ok 1 - a; echo "not ok 2 # SKIP test_gpu"
bats skips one|1 0 1|-|echo 1..2; echo ok 1 a; echo "ok 2 b # skip no mpirun"
all is skipped|0 0 1|-|echo "1..0 # SKIP no clang-format"
a crash after good TAP|2 1 0|signal 11|echo 1..2; echo ok 1 - a; echo ok 2 - b; kill -SEGV $$
a crash in the middle|1 2 0|signal 6|echo 1..3; echo ok 1 - a; kill -ABRT $$
a leak reported at the end|1 1 0|status 23|echo 1..1; echo ok 1 - a; exit 23
no test at all|0 1 0|no test|true
a plan and no test|0 3 0|no test|echo 1..3
a silent early end|1 2 0|2 of 3|echo 1..3; echo ok 1 - a; exit 0
two groups|2 0 0|-|echo 1..1; echo ok 1 - a; echo 1..1; echo ok 1 - b
a hang|1 1 0|longer than 2 s|echo 1..2; echo ok 1 - a; sleep 30
a loop without end|1 1 0|more than 1 s of processor time|echo 1..2; echo ok 1 - a; while :; do :; done'

number=0 failed=0
mapfile -t cases <<<"${CASES#$'\n'}"
echo "1..$((${#cases[@]} + 3))"
for row in "${cases[@]}"; do
    IFS='|' read -r words counts why program <<<"$row"
    number=$((number + 1))
    factor=60 # busy machines give a loop its second late
    [[ $words != "a hang" ]] || factor=2
    HANG_FACTOR=$factor tap_run "$LOG" 1 bash -c "$program" 2>/dev/null
    got="$TAP_PASSED $TAP_FAILED $TAP_SKIPPED"
    if [[ $got == "$counts" && ${TAP_WHY:--} == *"$why"* ]]; then
        echo "ok $number - $words"
    else
        echo "not ok $number - $words: wanted $counts ($why), got $got (${TAP_WHY:--})"
        failed=1
    fi
done

printf '%s\n' '# skip: no mpirun' 'ok 2 b # skip no gpu' '# long: 3 seeds, 9 minutes' >"$LOG"
if [[ $(tap_reasons skip "$LOG") == $'no gpu\nno mpirun' && $(tap_reasons long "$LOG") == '3 seeds, 9 minutes' ]]; then
    echo "ok $((number + 1)) - reasons are read"
else
    echo "not ok $((number + 1)) - reasons are read: $(tap_reasons skip "$LOG") $(tap_reasons long "$LOG")"
    failed=1
fi

# Without cmocka its tests are skipped, so make is not asked for them: the build would fail. Fuzz targets do without it.
asked_of_make() { # asked_of_make CMOCKA NAME...
    HAVE_CMOCKA=$1 PROGRAMS=$'build/tests/unit/test_io\nbuild/tests/fuzz/fuzz_text' SANITIZED_PROGRAMS='^$' bash -c "
        say() { printf '%s\n' \"\$*\"; }
        declare -A BUILDS=([plain]=build)
        $(sed -n '/^runs_without_cmocka() {/,/^}/p; /^targets_of() {/,/^}/p' scripts/test)
        targets_of plain ${*:2}"
}
without=$(asked_of_make '' unit/test_io fuzz/fuzz_text lint/format.sh)
if [[ $without == "all build/tests/fuzz/fuzz_text" && $(asked_of_make yes unit/test_io) == "all build/tests/unit/test_io" ]]; then
    echo "ok $((number + 2)) - without cmocka its tests are not built"
else
    echo "not ok $((number + 2)) - without cmocka make is asked for: $without"
    failed=1
fi

# The first run compiles nothing for GPUs where none is.
mkdir -p "$PLACE/scripts" "$PLACE/build" "$PLACE/bin"
cp scripts/quickstart scripts/lib.sh "$PLACE/scripts"
for program in scripts/setup build/evenload bin/nvcc; do printf '#!/bin/sh\n' >"$PLACE/$program"; done
printf '#!/bin/sh\necho "cuda=13.0" "$@" >>make.args\n' >"$PLACE/bin/make"
chmod +x "$PLACE"/{scripts,build,bin}/*
if compgen -G '/proc/driver/nvidia/gpus/*' >/dev/null || [[ -e /dev/dxg ]]; then
    echo "ok $((number + 3)) # skip a GPU is here"
elif PATH=$PLACE/bin:$PATH "$PLACE/scripts/quickstart" | grep -q 'no GPU here' && grep -qw CUDA=0 "$PLACE/make.args"; then
    echo "ok $((number + 3)) - quickstart without a GPU"
else
    echo "not ok $((number + 3)) - quickstart without a GPU: make was asked for $(cat "$PLACE/make.args")"
    failed=1
fi
exit "$failed"
