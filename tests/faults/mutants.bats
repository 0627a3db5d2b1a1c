# The kernels' test on emulated threads finds each fault that is planted in kernels/cuda, one at a time, in a copy of the sources.
load ../cli/common

# name | file | which: first, last, all | what is replaced, as Python's re has it | what by
MUTANTS='
channel_sums without the first barrier|channel_sums.cuh|first|__syncthreads\(\);|
channel_sums without the last barrier|channel_sums.cuh|last|__syncthreads\(\);|
max_time without the first barrier|max_time.cu|first|__syncthreads\(\);|
max_time without the last barrier|max_time.cu|last|__syncthreads\(\);|
attention without the first barrier|attention.cu|first|__syncthreads\(\);|
attention without the barrier behind its scores|attention.cu|first|(&scores\);\s*)__syncthreads\(\);|\1
route without the first barrier|route.cu|first|__syncthreads\(\);|
route without the last barrier|route.cu|last|__syncthreads\(\);|
experts without the first barrier|experts.cu|first|__syncthreads\(\);|
experts without the last barrier|experts.cu|last|__syncthreads\(\);|
mean_pool without the last barrier|pool.cu|last|__syncthreads\(\);|
block_sum without the first barrier|common.cuh|first|__syncthreads\(\);|
block_sum without the last barrier|common.cuh|last|__syncthreads\(\);|
an atomicAdd that is a plain sum|embedding.cu|all|atomicAdd\(&([^,]+), (.+)\);|{ \1 += \2; }
an atomicMax that is a plain maximum|embedding.cu|all|atomicMax\(&([^,]+), (.+)\);|{ if (\2 > \1) \1 = \2; }
an atomicMin that is a plain minimum|embedding.cu|all|atomicMin\(&([^,]+), (.+)\);|{ if (\2 < \1) \1 = \2; }
relu_backward in place with __restrict__|elementwise.cu|all|(relu_backward_kernel\([^)]*\*)dx\)|\1__restrict__ dx)
shuffles that name half of the warp|common.cuh|all|0xffffffffu|0x0000ffffu
EL_CUDA_EACH counts in 32 bits|common.cuh|first|int64_t i = \(int64_t\)blockIdx\.x \* blockDim\.x \+ threadIdx\.x|int i = (int)(blockIdx.x * blockDim.x + threadIdx.x)
'

plant() { # plant FILE WHICH WHAT BY
    python3 - "$@" <<'END'
import re, sys
file, which, what, by = sys.argv[1:]
text = open(file).read()
found = list(re.finditer(what, text))
if not found:
    sys.exit(1)
for match in reversed({"first": found[:1], "last": found[-1:], "all": found}[which]):
    text = text[: match.start()] + match.expand(by) + text[match.end() :]
open(file, "w").write(text)
END
}

build() { nice make -j "$(nproc)" BENCH=0 DNNL=0 MPI=0 CUDA=0 PNG=0 JPEG=0 WERROR= build/tests/gpu/test_kernels_emulated >make.log 2>&1; }
test_finds_nothing() { timeout 120 build/tests/gpu/test_kernels_emulated >test.log 2>&1; }

@test "each of 19 faults planted in the kernels is found" {
    local root=$BATS_TEST_DIRNAME/../.. name file which what by survived='' tried=0
    long "builds the kernels' test 20 times, four minutes"
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "races are watched in builds without a sanitizer"
    command -v c++ >/dev/null || skip "the emulated kernels need a C++ compiler"
    mkdir tests && cp -r "$root"/{Makefile,bench,kernels,runtime,profiles,plots,scripts} . && cp -r "$root"/tests/{*.h,gpu,cards,unit} tests
    cp -r kernels/cuda kept
    unset MAKEFLAGS MAKELEVEL BUILD
    build || { tail make.log && return 1; }
    test_finds_nothing || { tail test.log && return 1; }
    while IFS='|' read -r name file which what by; do
        [[ -n $name ]] || continue
        tried=$((tried + 1))
        if ! plant "kernels/cuda/$file" "$which" "$what" "$by"; then
            survived+="$name: NO CHANGE: $file has nothing like $what"$'\n'
        elif ! build; then
            survived+="$name: does not compile: $(grep -m1 error make.log)"$'\n'
        elif test_finds_nothing; then
            survived+="$name: not found"$'\n'
        else
            echo "# $name: $(sed -nE 's/.*(block [0-9]+, thread [0-9]+: .*|operands .*|EL_CUDA_.*)/\1/p' test.log | head -n 1)" >&3
        fi
        cp "kept/$file" kernels/cuda
    done <<<"$MUTANTS"
    [[ -z $survived && $tried -eq 19 ]] || { printf '%s' "$survived" && return 1; }
}
