#!/usr/bin/env bash
# Probe: is a CUDA toolkit there, and which of its libraries? Prints lines NAME:=VALUE for the Makefile, blanks as '|'.
# usage: scripts/probes/cuda.sh CC FOLDER     FOLDER is for what it compiles
#
# Looked through in this order: CUDA_HOME, nvcc's own toolkit, what CPATH, LIBRARY_PATH and LD_LIBRARY_PATH name, /usr/local/cuda, pip's
# nvidia packages, the system. nvcc, the run time and cuBLAS are a must, and of version 11.8 at least (older ones do not know sm_90); cuDNN
# and NCCL are each probed by itself. A pip package has no libx.so beside its libx.so.9, so that libraries are named by their file.
set -uo pipefail
CC=$1 FOLDER=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

set_variable() { printf '%s:=%s\n' "$1" "${2// /|}"; }
absent() {
    set_variable CUDA_MISSING "$1"
    exit 0
}

# pip's nvidia packages, of the PATH's python3.
of_pip() { python3 -c 'import glob, sysconfig; print(*glob.glob(sysconfig.get_path("purelib") + "/nvidia/*"), sep="\n")' 2>/dev/null; }

nvcc=
for path in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
    if [[ -z $nvcc && -x $path ]]; then nvcc=$path; fi
done
[[ -n $nvcc ]] || nvcc=$(of_pip | while read -r path; do compgen -G "$path/bin/nvcc"; done | head -n 1)
[[ -n $nvcc ]] || absent "no nvcc (install a CUDA toolkit, or set CUDA_HOME)"
HOME_OF_NVCC=$(dirname "$(dirname "$(readlink -f "$nvcc")")")

# X of X/include and X/lib, as a cluster's modules name them.
IFS=: read -ra named <<<"${CPATH-}:${LIBRARY_PATH-}:${LD_LIBRARY_PATH-}"
named=("${named[@]%/}")
ROOTS=("${CUDA_HOME:-$HOME_OF_NVCC}" "$HOME_OF_NVCC" "${named[@]%/*}" /usr/local/cuda)
if ! compgen -G "$HOME_OF_NVCC/lib*/libcudnn.so*" >/dev/null || ! compgen -G "$HOME_OF_NVCC/lib*/libnccl.so*" >/dev/null; then
    mapfile -t -O "${#ROOTS[@]}" ROOTS < <(of_pip)
fi

# The first of PATTERN... under the roots or in the system's own places.
first() { # first FOLDERS PATTERN...
    local folder root pattern path
    for root in "${ROOTS[@]}" /usr; do
        for folder in $1; do
            for pattern in "${@:2}"; do
                for path in "$root/$folder"/$pattern; do
                    if [[ -n $root && -r $path ]]; then printf '%s' "$path" && return; fi
                done
            done
        done
    done
}

include_of() { # include_of HEADER: the compiler's option; none for the system's own folder
    local path
    path=$(first "include targets/x86_64-linux/include include/x86_64-linux-gnu" "$1")
    [[ -z $path || ${path%/*} == /usr/include ]] || printf '%s' "-isystem ${path%/*}"
}

library_of() { # library_of NAME: the linker's options
    local path
    path=$(first "lib64 lib lib/x86_64-linux-gnu targets/x86_64-linux/lib" "lib$1.so" "lib$1.so.[0-9]*")
    [[ -z $path ]] || printf '%s' "-L${path%/*} -l:${path##*/} -Wl,-rpath,${path%/*}"
}

# What probe PROBE says when compiled and linked with OPTIONS. It refers to none of its libraries' functions, so that
# --as-needed spares it their loading.
version_of() { # version_of PROBE OPTIONS...
    local out=$FOLDER/$1-$$ words=
    # shellcheck disable=SC2068
    words=$($CC -o "$out" "scripts/probes/$1.c" -Wl,--as-needed ${@:2} 2>/dev/null && "$out" 2>/dev/null)
    rm -f "$out"
    printf '%s' "$words"
}

# Whether nvcc and its host compiler go together; asked once for each pair of them, since it takes a second.
nvcc_works() {
    local pair stamp=$FOLDER/nvcc.works
    pair="$(readlink -f "$nvcc") $(stat -Lc %Y "$nvcc") $(g++ --version 2>/dev/null | head -1)"
    [[ ! -r $stamp || $(<"$stamp") != "$pair" ]] || return 0
    rm -f "$stamp"
    echo '__global__ void probe(int *p) { *p = 1; }' >"$FOLDER/nvcc-$$.cu"
    "$nvcc" -std=c++17 -arch=sm_80 -c -o "$FOLDER/nvcc-$$.o" "$FOLDER/nvcc-$$.cu" >"$FOLDER/nvcc.log" 2>&1 && echo "$pair" >"$stamp"
    rm -f "$FOLDER/nvcc-$$".*
    [[ -r $stamp ]]
}

cuda_cflags="$(include_of cuda_runtime_api.h) $(include_of cublas_v2.h)"
cudart=$(library_of cudart) cublas=$(library_of cublas)
[[ -n $cudart && -n $cublas ]] || absent "$nvcc is there, libcudart or libcublas is not"
version=$(version_of cuda "$cuda_cflags" "$cudart" "$cublas")
[[ -n $version ]] || absent "$nvcc is there, but a program with the CUDA run time and cuBLAS does not compile"
IFS='. ' read -r major minor _ <<<"$version"
((100 * major + minor >= 1108)) || absent "CUDA $major.$minor is older than 11.8"
nvcc_works || absent "$nvcc does not compile with this g++ ($FOLDER/nvcc.log says why)"
set_variable HAVE_CUDA "$version"
set_variable NVCC "$nvcc"
set_variable CUDA_CFLAGS "$cuda_cflags"
set_variable CUDART_LIBS "$cudart"
set_variable CUDA_LIBS "$cudart $cublas"

cflags=$(include_of cudnn.h) libs=$(library_of cudnn)
set_variable HAVE_CUDNN "$([[ -z $libs ]] || version_of cudnn "$cflags" "$cuda_cflags" "$libs")"
set_variable CUDNN_CFLAGS "$cflags"
set_variable CUDNN_LIBS "$libs"

cflags=$(include_of nccl.h) libs=$(library_of nccl)
set_variable HAVE_NCCL "$([[ -z $libs ]] || version_of nccl "$cflags" "$cuda_cflags" "$libs")"
set_variable NCCL_CFLAGS "$cflags"
set_variable NCCL_LIBS "$libs"
