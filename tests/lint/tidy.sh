#!/usr/bin/env bash
# clang-tidy over all C code, with the checks of .clang-tidy; and over an injected mistake, which it must find.
# The tests' own code, which hardly changes, only with --long. Not its static analyzer: of 28 findings in the program none was a mistake,
# in 20 minutes. Nor what is compiled for a card alone.
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
LONG=${EVENLOAD_LONG-0}

sources() {
    local folders=(bench kernels profiles runtime)
    [[ $LONG != 1 ]] || folders+=(tests)
    find "${folders[@]}" -name '*.c' -not -path 'tests/injected/*' -not -path 'tests/gpu/l[ai]*.c' | sort
}

# check NAME FILE...: many files a process. Fake cards are compiled against headers of their own.
check() {
    local log=$FOLDER/$1.txt
    "$program" --quiet "${@:2}" -- -Itests/gpu/emulator/include "${FLAGS[@]}" >"$log" 2>&1 || grep -qE '(error|warning):' "$log" ||
        echo "error: $program ended without a finding" >>"$log"
}

# Reads files, one a line; as many processes at a time as there are cores.
check_files() {
    local cores files=() at=0 size
    cores=$(nproc)
    mapfile -t files
    size=$(((${#files[@]} + cores - 1) / cores))
    for ((; at < ${#files[@]}; at += size)); do check "$at" "${files[@]:at:size}" & done
    wait
}

# Lines of what was found; those of a file whose headers are missing here (an MPI, a oneDNN, CUDA) are none, as it cannot be read.
ABSENT="'(mpi|oneapi/dnnl/dnnl|cmocka|cuda_runtime_api|cuda_runtime|cublas_v2|cudnn|nccl|nvml|png|jpeglib)\.h' file not found"
findings() {
    local unread
    unread=$({ grep -hE "$ABSENT" "$FOLDER"/*.txt || true; } | cut -d : -f 1 | sort -u)
    { grep -hE '(error|warning):' "$FOLDER"/*.txt || true; } | { grep -vF "${unread:-no file}" || true; } | sed "s|$PWD/||" | sort -u
}
left_out() {
    { grep -hE "$ABSENT" "$FOLDER"/*.txt || true; } | sed -E "s|$PWD/||; s|:.*'(.*)' file.*| needs \1|" | sort -u
}

echo 1..2
[[ $LONG == 1 ]] || echo "# long: clang-tidy of the tests' own code"
failed=0
sources | check_files
found=$(findings)
if [[ -z $found ]]; then
    echo "ok 1 - $(sources | wc -l) files"
else
    echo "not ok 1 - clang-tidy found (how it came to each: $FOLDER/*.txt):"
    echo "$found"
    failed=1
fi
left_out | sed 's/^/# left out, its headers are not installed: /'

# A branch that stands twice.
printf 'int el_injected(int *p);\nint el_injected(int *p)\n{\n    if (*p) return 1; else return 1;\n}\n' >"$FOLDER/injected.c"
check_files <<<"$FOLDER/injected.c"
if [[ $(findings) == *injected.c*bugprone-branch-clone* ]]; then
    echo "ok 2 - an injected mistake is found"
else
    echo "not ok 2 - an injected mistake was not found"
    failed=1
fi
exit "$failed"
