# shellcheck shell=bash
# What the tests use of bats and versions before 1.7 do not have (Ubuntu 22.04 has 1.2): `run --separate-stderr` and a folder a test.

setup_folder() {
    BATS_TEST_TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/evenload-XXXXXX")
}

teardown() {
    cd / && rm -rf "$BATS_TEST_TMPDIR"
}

run() {
    local errors
    errors=$(mktemp)
    status=0
    if [[ $1 == --separate-stderr ]]; then
        shift
        output=$("$@" 2>"$errors") || status=$?
    else
        output=$("$@" 2>&1) || status=$?
    fi
    stderr=$(<"$errors")
    rm -f "$errors"
    mapfile -t lines < <(grep . <<<"$output" || true)
    mapfile -t stderr_lines < <(grep . <<<"$stderr" || true)
}
