# NVIDIA's releases, with --long: what evenload takes of CUDA, cuBLAS, cuDNN, NCCL and NVML is held against their own headers, in the
# combinations of the table in docs/gpus.md. They come from PyPI and stay in build/releases (60 MiB).
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
OBJECTS=(kernels/cuda/{check,conv_cudnn,linear,native}.o runtime/device/cuda/module.o runtime/comm/nccl/module/link.o tests/gpu/{limits,test_comm_cuda,layouts}.o)

# Writes `rows`: four versions, folders of headers, and with `libraries` a folder of libraries.
need_releases() { # need_releases WORDS [libraries]
    [[ ${EVENLOAD_LONG:-} == 1 ]] || { echo "# long: $1" >&3 && skip "only with --long"; }
    [[ $(uname -m) == x86_64 ]] || skip "the table's packages are for x86_64"
    command python3 "$BATS_TEST_DIRNAME/releases.py" "$ROOT/docs/gpus.md" "$ROOT/build/releases" "${@:2}" >rows 2>log || skip "no packages: $(tail -n 1 log)"
}

# With the build's own rules and warnings, and headers of that release alone.
compile() { # compile FOLDER...
    rm -rf built
    run make -k -C "$ROOT" BUILD="$PWD/built" CUDA=0 HAVE_CUDNN=1 CUDA_CFLAGS="$(printf -- '-isystem %s ' "$@")" CUDNN_CFLAGS= NCCL_CFLAGS= "${OBJECTS[@]/#/$PWD/built/}"
    [[ $status -eq 0 ]] || show
}

@test "the host's code compiles against the headers of every release in the table, and the fakes declare what the newest does" {
    need_releases "the headers of eleven combinations of releases (12 GB of packages at the first time), a compilation with each: three minutes"
    local cuda cublas cudnn nccl folders name n=0
    while read -r cuda cublas cudnn nccl folders; do
        echo "CUDA $cuda, cuBLAS $cublas, cuDNN $cudnn, NCCL $nccl"
        # shellcheck disable=SC2086 # folders
        compile $folders
        n=$((n + 1))
    done <rows
    [[ $n -ge 10 ]]
    read -ra folders < <(tail -n 1 rows | cut -d ' ' -f 5-)
    for name in cuda_runtime_api cublas_v2 cudnn nccl; do
        command python3 "$BATS_TEST_DIRNAME/releases.py" "$ROOT/tests/gpu/emulator/include/$name.h" >redeclared.c
        [[ $(grep -c _Static_assert redeclared.c) -gt 5 && $(grep -c '^[^_].*(' redeclared.c) -gt 10 ]] || { cat redeclared.c && false; }
        run "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -fsyntax-only "${folders[@]/#/-isystem}" redeclared.c
        [[ $status -eq 0 ]] || show
    done
}
