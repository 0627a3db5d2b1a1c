#!/usr/bin/env bash
# clang-tidy over all C code (the tests' own with --long), with the checks of .clang-tidy; and over a planted mistake, which it must find.
# Its static analyzer takes over nine tenths of the time: without --long it looks at what has memory, threads and devices of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

program=clang-tidy-14
have_version() { [[ $("$program" --version 2>/dev/null) == *' version 14.'* ]]; }
have_version || program=clang-tidy
if ! have_version; then
    echo "1..0 # SKIP clang-tidy 14 is not installed"
    exit 0
fi

# Under the root, so that .clang-tidy counts there too.
FOLDER=build/tidy
rm -rf "$FOLDER"
mkdir -p "$FOLDER"
read -ra FLAGS < <(make -s --no-print-directory flags)

# One process a file: version 14 takes a second file's va_list for unset. Two files define what analyzer.h redefines.
# A file whose headers this machine lacks (an MPI, a oneDNN, CUDA) cannot be read, and is left out by name; one on which the
# analyzer itself crashes is looked at without it.
check_file() {
    local log=$FOLDER/${1//\//-}.txt include=(-include tests/lint/analyzer.h)
    if [[ ${EVENLOAD_LONG-} != 1 && $1 == @(bench|kernels)/* ]]; then set -- "$1" --checks=-clang-analyzer-*; fi
    case $1 in runtime/base/status.c | runtime/comm/bootstrap.c) include=() ;; esac
    tidy "$@" >"$log" && rm "$log" && return 0
    if grep -q 'Stack dump' "$log"; then tidy "$1" --checks=-clang-analyzer-* >"$log" && rm "$log" && return 0; fi
    ! grep -qE "'(mpi|oneapi/dnnl/dnnl|cmocka|cuda_runtime_api|cuda_runtime|cublas_v2|cudnn|nccl)\.h' file not found" "$log" || mv "$log" "${log%.txt}.absent"
}

tidy() { # tidy FILE OPTION...
    { "$program" --quiet "$@" -- "${include[@]}" "${FLAGS[@]}" 2>&1; } 2>/dev/null
}

check_files() { # reads files, one a line; as many at a time as there are cores
    local file running=0
    while read -r file; do
        ((running++ < $(nproc))) || wait -n || true
        check_file "$file" &
    done
    wait
}

# One line a finding; how the analyzer came to it stands in the folder's logs.
findings() {
    grep -hE '(error|warning):' "$FOLDER"/*.txt 2>/dev/null | sed "s|$PWD/||" | sort -u || true
}

sources() {
    local folders=(bench kernels profiles runtime)
    [[ ${EVENLOAD_LONG-} != 1 ]] || folders+=(tests)
    find "${folders[@]}" -name '*.c' -not -path 'tests/planted/*' | sort
}

echo 1..2
[[ ${EVENLOAD_LONG-} == 1 ]] || echo '# long: clang-tidy over the tests too, its analyzer over bench and kernels'
failed=0
sources | check_files
if [[ -z $(find "$FOLDER" -name '*.txt') ]]; then
    echo "ok 1 - $(sources | wc -l) files"
else
    echo "not ok 1 - clang-tidy found (how it came to each: $FOLDER/*.txt):"
    findings
    failed=1
fi
find "$FOLDER" -name '*.absent' -printf '# left out, its headers are not installed: %f\n'

printf 'int el_planted(int *p);\nint el_planted(int *p)\n{\n    if (p) return 1;\n    return *p;\n}\n' >"$FOLDER/planted.c"
check_files <<<"$FOLDER/planted.c"
if [[ $(findings) == *planted.c*core.NullDereference* ]]; then
    echo "ok 2 - a planted null dereference is found"
else
    echo "not ok 2 - a planted null dereference was not found"
    failed=1
fi
exit "$failed"
