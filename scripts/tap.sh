# shellcheck shell=bash
# Runs one test program and judges it by what it printed (TAP) and how it ended. Sourced by scripts/test, and by the
# test of this very judge (tests/lint/runner.sh).
#
# A program passes when each test it planned says ok and it leaves with 0. It fails, whatever its TAP says, when it ran
# no test, stopped before its plan was done, ended by a signal or another status, or took longer than its limit. The
# limit is processor time, which other programs do not lengthen; what waits for ever ends at HANG_FACTOR times as much.
# In its output, `# skip: WHY` gives the reason of a skip, and `# long: WHAT` what --long would add.

TAP_PASSED=0 TAP_FAILED=0 TAP_SKIPPED=0 TAP_WHY=

HANG_FACTOR=15

# tap_run LOG LIMIT_S COMMAND...: sets TAP_PASSED, TAP_FAILED, TAP_SKIPPED and TAP_WHY (why it failed, or nothing).
tap_run() {
    local log=$1 limit=$2 status=0
    shift 2
    # Each process may take that much: SIGXCPU, and SIGKILL for what does not end by it.
    (ulimit -S -t "$limit" && ulimit -H -t "$((limit + 10))" && exec timeout --kill-after=10 "$((HANG_FACTOR * limit))" "$@") \
        >"$log" 2>&1 </dev/null || status=$?
    tap_judge "$log" "$status" "$limit"
}

tap_judge() { # tap_judge LOG STATUS LIMIT_S
    local log=$1 status=$2 limit=$3 planned
    # cmocka 1.1 prints a skipped test as "not ok N # SKIP name", bats as "ok N name # skip reason".
    read -r planned TAP_PASSED TAP_FAILED TAP_SKIPPED < <(awk '
        /^1\.\.[0-9]+/                       { planned += substr($1, 4) }
        /^1\.\.0 *# *[Ss][Kk][Ii][Pp]/       { skipped++; planned++ }
        /^(not )?ok .*# *[Ss][Kk][Ii][Pp]/   { skipped++; next }
        /^ok /                               { passed++ }
        /^not ok /                           { failed++ }
        END { print planned + 0, passed + 0, failed + 0, skipped + 0 }' "$log")
    local seen=$((TAP_PASSED + TAP_FAILED + TAP_SKIPPED))
    TAP_WHY=
    if ((status == 124 || status == 137)); then
        TAP_WHY="took longer than $((HANG_FACTOR * limit)) s"
    elif ((status == 152)); then
        TAP_WHY="took more than $limit s of processor time"
    elif ((status > 128 && status <= 128 + 64)); then
        TAP_WHY="ended by signal $((status - 128))"
    elif ((seen == 0)); then
        TAP_WHY="ran no test (status $status)"
    elif ((seen < planned)); then
        TAP_WHY="$((planned - seen)) of $planned tests did not run (status $status)"
    elif ((status != 0 && TAP_FAILED == 0)); then
        TAP_WHY="ended with status $status after its tests"
    fi
    if [[ -n $TAP_WHY ]]; then
        TAP_FAILED=$((TAP_FAILED + (seen < planned ? planned - seen : 1)))
    elif ((TAP_FAILED > 0)); then
        TAP_WHY="$TAP_FAILED failed"
    fi
}

# The reasons a program gave, one a line: tap_reasons skip LOG, tap_reasons long LOG.
tap_reasons() {
    sed -nE -e "s/^#? *$1: *//p" -e "s/^(not )?ok .*# *$1 +//Ip" -e "s/^1\.\.0 *# *$1 *//Ip" "$2" | sort -u
}
