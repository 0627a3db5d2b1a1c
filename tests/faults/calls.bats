# Each call of CUDA, cuBLAS, cuDNN, NCCL and NVML fails once, on cards that are none (tests/cards, calls.py): the job ends soon with one line that
# says what failed and where, or does without; nothing crashes, and nothing is left.
load ../cli/common
CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards

@test "each call of the cards' libraries that fails once is told in one line, or done without" {
    local tests=$BATS_TEST_DIRNAME all=()
    [[ -x $CARDS/evenload ]] || skip "no fake cards: they need a C++ compiler"
    if [[ ${EVENLOAD_LONG:-} == 1 ]]; then
        all=(--all)
    else
        echo "# long: each call in each of 19 jobs, twice: 3 minutes, and 10 under the address sanitizer" >&3
    fi
    run python3 "$tests/calls.py" "$CARDS/evenload" "$CARDS/modules" "$tests/../../profiles/nvml_api.c" "${all[@]}"
    printf '# %s\n' "${lines[0]}" >&3
    [[ $status -eq 0 ]] || show
}
