# With a CUDA toolkit and without: both build, and without a driver both say what is missing, in one line.
load common

ROOT=$BATS_TEST_DIRNAME/../..
EVENLOAD_BUILD=${EVENLOAD_BUILD:-$ROOT/build}
stderr='' # set by run

@test "with a toolkit every .cu is compiled, into a module" {
    local file object
    grep -q '^cuda=.' <(make -C "$ROOT" -s --no-print-directory BUILD="$EVENLOAD_BUILD" probes) || skip "no CUDA toolkit"
    for file in "$ROOT"/kernels/cuda/*.cu; do
        object=$EVENLOAD_BUILD/kernels/cuda/$(basename "$file" .cu).o
        [[ $object -nt $file && $EVENLOAD_BUILD/modules/el_cuda.so -nt $object ]] || { printf '%s\n' "$file: not compiled" && show; }
    done
}

# A toolkit without NCCL, and NCCL in a folder of its own.
@test "what a cluster's modules name is found" {
    local nvcc toolkit file
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc) toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    [[ -r $toolkit/include/nccl.h && -r $toolkit/lib/libnccl.so ]] || skip "no toolkit that has NCCL beside it"
    mkdir -p cuda/{bin,include,lib} nccl/{include,lib} probes
    printf '#!/bin/sh\nexec %s "$@"\n' "$nvcc" >cuda/bin/nvcc && chmod +x cuda/bin/nvcc
    for file in "$toolkit"/{include,lib}/*; do
        if [[ $file == *nccl* ]]; then ln -s "$file" "nccl/${file#"$toolkit/"}"; else ln -s "$file" "cuda/${file#"$toolkit/"}"; fi
    done
    run env CUDA_HOME="$PWD/cuda" PATH="$PWD/cuda/bin:$PATH" CPATH="$PWD/nccl/include" LIBRARY_PATH="$PWD/nccl/lib/" "$ROOT/scripts/probes/cuda.sh" cc "$PWD/probes"
    [[ $status -eq 0 && $output == *"HAVE_CUDA:="[1-9]*"HAVE_NCCL:="[1-9]*"NCCL_LIBS:=-L$PWD/nccl/lib|"* ]] || show
}

# The tree's own build goes on without: nothing of it but the modules knows of a toolkit, so that it is only linked.
@test "without a toolkit all else is built, and GPUs that are asked for end in one line" {
    command -v cc >/dev/null || skip "no compiler"
    local part
    mkdir build
    for part in bench kernels runtime profiles generated modules libevenload.a flags.stamp commit.stamp; do
        [[ ! -e $EVENLOAD_BUILD/$part ]] || cp -a "$EVENLOAD_BUILD/$part" build/
    done
    make -C "$ROOT" -j "$(nproc)" CUDA=0 BUILD="$PWD/build" >make.log 2>&1 || { cat make.log && return 1; }
    [[ -z $(find build/modules -name 'el_cu*.so' -o -name 'el_nccl.so') ]] || show
    [[ $(build/evenload devices) == *"  cuda     no   "*"CUDA"* ]] || { build/evenload devices && show; }
    refuses "cuda" build/evenload compare --devices cuda:2 --out out
    [[ ${#stderr_lines[@]} -eq 1 ]] || show
    build/evenload run "${QUICK[@]}" --out r --quiet
}

@test "warnings of a header in LIBS_PREFIX are not ours" {
    command -v cc >/dev/null || skip "no compiler"
    mkdir -p prefix/include
    printf '%s\n' '#pragma once' '#include_next <jansson.h>' 'int el_of_the_prefix; static int unused(int n) { int array[n]; return (int)sizeof array; }' >prefix/include/jansson.h
    make -C "$ROOT" CUDA=0 BUILD="$PWD/build" LIBS_PREFIX="$PWD/prefix" "$PWD/build/bench/base/jvalue.o" >make.log 2>&1 || { cat make.log && return 1; }
    grep -q el_of_the_prefix build/bench/base/jvalue.o
}
