#!/usr/bin/env bash
# What nvcc's assembler says of kernels/cuda, for each architecture that it knows: no stack, no spills, at most 128 registers a thread, so
# that blocks of 256 find room. And no kernel that runs in place has variables that are __restrict__ (of its parameters the emulator knows).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ARCHS=(75 80 86 89 90 100 103 110 120 121) REGISTERS=128
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
failed=0

verdict() { # verdict NUMBER WORDS FINDINGS
    if [[ -z $3 ]]; then
        echo "ok $1 - $2"
    else
        printf 'not ok %s - %s:\n%s\n' "$1" "$2" "$3"
        failed=1
    fi
}

# Cases in place are those of the kernels' tests. A kernel ends with the first brace at a line's begin.
in_place() { # in_place FILE...
    local op
    for op in $(grep -oE '\bCASE_IN_PLACE\([A-Z_]+' tests/unit/test_kernels_cases.h | sed 's/.*(//' | tr '[:upper:]' '[:lower:]' | sort -u); do
        awk -v name="${op}_kernel(" '/__global__/ { head = NR } index($0, name) && NR - head < 2 { on = 1 }
            on && /__restrict__ [a-z_]+ =/ { print "  " FILENAME ":" FNR ": " name "...) runs in place: " $0 } /^}/ { on = 0 }' "$@"
    done
}

# Those that this nvcc knows.
known_archs() {
    local arch known
    known=$("$NVCC" --list-gpu-arch)
    for arch in "${ARCHS[@]}"; do ! grep -qx "compute_$arch" <<<"$known" || echo "$arch"; done
}

# shellcheck disable=SC2016 # the inner shell's words
assemble() { # assemble FILE...: for each architecture
    printf '%s\n' "${archs[@]/#/sm_}" | while read -r arch; do printf "$arch %s\n" "$@"; done |
        xargs -P "$(nproc)" -L 1 bash -c '"$0" -std=c++17 -O3 -I. -cubin -Xptxas -v -arch="$2" -o /dev/null "$3" >"$1/$2-${3##*/}.txt" 2>&1 ||
            echo "error: $3 does not compile for $2" >>"$1/$2-${3##*/}.txt"' "$NVCC" "$FOLDER"
}

# A line for each kernel and architecture that has what it should not.
greedy() {
    awk -v most=$REGISTERS -F "'" '/Compiling entry function/ { name = $2; arch = $4 } /Function properties for/ { sub(/.* for /, ""); name = $0 }
        /^error/ { print "  " $0 }
        /bytes stack frame/ && !/^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ { print "  " name " for " arch ":" $0 }
        / Used [0-9]+ registers/ { match($0, /Used [0-9]+/); n = substr($0, RSTART + 5, RLENGTH - 5); kernels++
            if (n + 0 > most) print "  " name " for " arch ": " n " registers" }
        END { if (!kernels) print "  no kernel was seen" }' "$FOLDER"/*.txt | { c++filt 2>/dev/null || cat; }
}

echo 1..3
verdict 1 "no kernel that runs in place has a variable that is __restrict__" "$(in_place kernels/cuda/*.cu)"
NVCC=$(bash scripts/probes/cuda.sh "${CC:-cc}" "$FOLDER" | sed -n 's/^NVCC:=//p')
why=''
if [[ ${EVENLOAD_LONG-} != 1 ]]; then
    echo "# long: nvcc's registers and stack of each kernel, a minute for ${#ARCHS[@]} architectures"
    why="only with --long"
elif [[ -z $NVCC ]]; then
    why="no nvcc"
fi
if [[ -n $why ]]; then
    printf 'ok %s # SKIP %s\n' 2 "$why" 3 "$why"
    exit "$failed"
fi
mapfile -t archs < <(known_archs)
assemble kernels/cuda/*.cu
verdict 2 "no stack, no spills, at most $REGISTERS registers in the kernels, for ${archs[*]/#/sm_}" "$(greedy)"

rm "$FOLDER"/*.txt
archs=("${archs[0]}")
echo '__global__ void scale_kernel(float *x, int n) {
    float *__restrict__ y = x;
    volatile float part[64];
    part[n] = y[n];
    x[n] = part[n];
}' >"$FOLDER/injected.cu"
assemble "$FOLDER/injected.cu"
found=$(greedy)$(in_place "$FOLDER/injected.cu")
[[ $found != *scale_kernel*"bytes stack frame"*"runs in place"* ]] || found=''
verdict 3 "a kernel with a stack, and one with such a variable, are found" "$found"
exit "$failed"
