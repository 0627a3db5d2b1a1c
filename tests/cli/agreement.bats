# One figure, one meaning: what random small runs print, write and draw is computed again from their raw launches. EVENLOAD_SEED draws others.
PICTURES=no
load common

@test "tables, sentences, CSV, plots and pages of one run do not contradict its launches" {
    local n=8
    export PYTHONDONTWRITEBYTECODE=1
    [[ ${EVENLOAD_LONG:-} == 1 ]] && n=50
    [[ ${EVENLOAD_LONG:-} == 1 ]] || echo "# long: 50 random runs instead of 8" >&3
    run python3 "$BATS_TEST_DIRNAME/agreement.py" "$EVENLOAD" "${EVENLOAD_SEED:-1}" "$n"
    [[ $status -eq 0 && $output == "$n runs agree" ]] || show
}
