#!/usr/bin/env bash
# clang-tidy over all C code, with the checks of .clang-tidy; and over an injected mistake, which it must find.
# Its static analyzer takes over nine tenths of the time, and the tests' own code hardly changes: both only with --long.
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
    find "${folders[@]}" -name '*.c' -not -path 'tests/injected/*' | sort
}

# check_quickly NAME FILE...: many files a process, without the analyzer.
check_quickly() {
    local log=$FOLDER/$1.txt
    "$program" --quiet --checks=-clang-analyzer-* "${@:2}" -- "${FLAGS[@]}" >"$log" 2>&1 || grep -qE '(error|warning):' "$log" || say_crash "$log"
}
say_crash() { echo "error: $program ended without a finding" >>"$1"; }

# One process a file: the analyzer of version 14 takes a second file's va_list for unset. Two files define what analyzer.h redefines.
# A file on which the analyzer itself crashes is looked at without it.
check_with_analyzer() {
    local name=${1//\//-} include=(-include tests/lint/analyzer.h)
    case $1 in runtime/base/status.c | runtime/comm/bootstrap.c) include=() ;; esac
    { "$program" --quiet "$1" -- "${include[@]}" "${FLAGS[@]}" >"$FOLDER/$name.txt" 2>&1; } 2>/dev/null && return 0
    if grep -q 'Stack dump' "$FOLDER/$name.txt"; then check_quickly "$name" "$1"; fi
}

# Reads files, one a line; as many processes at a time as there are cores.
check_files() {
    local cores files=() at=0 size=1
    cores=$(nproc)
    mapfile -t files
    [[ $LONG == 1 ]] || size=$(((${#files[@]} + cores - 1) / cores))
    for ((; at < ${#files[@]}; at += size)); do
        (($(jobs -rp | wc -l) < cores)) || wait -n || true
        if [[ $LONG == 1 ]]; then check_with_analyzer "${files[at]}" & else check_quickly "$at" "${files[@]:at:size}" & fi
    done
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
[[ $LONG == 1 ]] || echo "# long: clang-tidy's static analyzer, and the tests' own code"
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

# A null pointer that is read (the analyzer), or a branch that stands twice.
mistake=(core.NullDereference 'return *p;')
[[ $LONG == 1 ]] || mistake=(bugprone-branch-clone 'if (*p) return 1; else return 1;')
printf 'int el_injected(int *p);\nint el_injected(int *p)\n{\n    if (p) return 1;\n    %s\n}\n' "${mistake[1]}" >"$FOLDER/injected.c"
check_files <<<"$FOLDER/injected.c"
if [[ $(findings) == *injected.c*"${mistake[0]}"* ]]; then
    echo "ok 2 - an injected mistake is found (${mistake[0]})"
else
    echo "not ok 2 - an injected mistake was not found (${mistake[0]})"
    failed=1
fi
exit "$failed"
