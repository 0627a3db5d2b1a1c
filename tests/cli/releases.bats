# NVIDIA's releases, with --long: what evenload takes of CUDA, cuBLAS, cuDNN, NCCL and NVML is held against their own headers, in the
# combinations of the table in docs/gpus.md. They come from PyPI and stay in build/releases (60 MiB).
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
OBJECTS=(kernels/cuda/{check,linear,native,cudnn/cudnn}.o runtime/device/cuda/module.o runtime/comm/nccl/module/link.o tests/gpu/{limits,test_comm_cuda,layouts}.o)

EVENLOAD_BUILD=${EVENLOAD_BUILD:-$ROOT/build}
PICTURES=no
stderr='' # set by run

# Writes `rows`: four versions, folders of headers, and with `libraries` a folder of libraries.
need_releases() { # need_releases WORDS [libraries]
    long "$1"
    [[ $(uname -m) == x86_64 ]] || skip "the table's packages are for x86_64"
    command python3 "$BATS_TEST_DIRNAME/releases.py" "$ROOT/docs/gpus.md" "$ROOT/build/releases" "${@:2}" >rows 2>log || skip "no packages: $(tail -n 1 log)"
}

# With the build's own rules and warnings, and headers of that release alone.
compile() { # compile FOLDER...
    rm -rf built
    run make -k -C "$ROOT" BUILD="$PWD/built" CUDA=0 CUDA_CFLAGS="$(printf -- '-isystem %s ' "$@")" CUDNN_CFLAGS= NCCL_CFLAGS= "${OBJECTS[@]/#/$PWD/built/}"
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

# A library that needs another, as cuBLAS needs cuBLASLt; a module that needs it.
@test "libraries that the loader does not find come from a Python environment; where there is none one line says what is missing" {
    command -v cc >/dev/null || skip "no compiler"
    local packages=env/lib/python3.12/site-packages/nvidia
    mkdir -p prefix/{bin,lib/evenload/modules} "$packages"/{one,two}/lib
    cp "$EVENLOAD" prefix/bin/
    echo 'int el_deep(void) { return 1; }' >deep.c
    echo 'int el_deep(void); int el_near(void) { return el_deep(); }' >near.c
    echo 'int el_near(void); int el_png_decode(void) { return el_near(); }' >png.c
    cc -shared -fPIC -Wl,-soname,libeldeep.so.7 -o "$packages/two/lib/libeldeep.so.7" deep.c
    cc -shared -fPIC -Wl,-soname,libelnear.so.3 -o "$packages/one/lib/libelnear.so.3" near.c "$packages/two/lib/libeldeep.so.7"
    cc -shared -fPIC -o prefix/lib/evenload/modules/el_png.so png.c "$packages/one/lib/libelnear.so.3" -Wl,--allow-shlib-undefined
    [[ $(prefix/bin/evenload devices) == *"PNG      no   png: no libelnear.so.3: install it"* ]] || { prefix/bin/evenload devices && false; }
    [[ $(VIRTUAL_ENV=$PWD/env prefix/bin/evenload devices) == *"PNG      yes "* ]]
    # That of the first python3 of the PATH, itself or a link, which is not started.
    mkdir -p env/bin links && echo false >env/bin/python3 && chmod +x env/bin/python3 && ln -s "$PWD/env/bin/python3" links/
    [[ $(PATH=$PWD/none:$PWD/env/bin:$PATH prefix/bin/evenload devices) == *"PNG      yes "* ]]
    [[ $(PATH=$PWD/links:$PATH prefix/bin/evenload devices) == *"PNG      yes "* ]]
    mv env/lib/python3.12 prefix/lib/ # pip installed evenload beside them
    [[ $(prefix/bin/evenload devices) == *"PNG      yes "* ]]
    rm prefix/lib/python3.12/site-packages/nvidia/two/lib/*
    [[ $(prefix/bin/evenload devices) == *"PNG      no   png: no libeldeep.so.7: install it"* ]] || { prefix/bin/evenload devices && false; }
}

@test "libraries of each major version have every function that evenload calls, and without a driver fail in words" {
    need_releases "libraries of three releases from PyPI, one after the other: 4 GB of packages, two minutes"
    local cuda cublas cudnn nccl folders libraries n=0
    while read -r cuda cublas cudnn nccl folders; do
        libraries=$ROOT/build/releases/lib-$cuda
        echo "CUDA $cuda, cuBLAS $cublas, cuDNN $cudnn, NCCL $nccl"
        # shellcheck disable=SC2086 # folders
        compile ${folders%"$libraries"}
        nm -u built/*/*/*.o built/*/*/*/*.o built/*/*/*/*/*.o 2>/dev/null | sed -nE 's/^ +U ((cuda|cublas|cudnn|nccl)[A-Z].*)/\1/p' | sort -u >names
        [[ $(wc -l <names) -gt 80 ]] || show
        run python3 "$BATS_TEST_DIRNAME/releases.py" "$libraries" names "$cuda $cudnn $nccl"
        [[ $status -eq 0 && -z $output ]] || show
        if [[ $(readelf -d "$EVENLOAD_BUILD/modules/el_cuda.so" 2>/dev/null) == *"libcudart.so.${cuda%%.*}"* ]]; then
            run env LD_LIBRARY_PATH="$libraries" "$EVENLOAD" devices --json
            [[ $output == *"\"CUDA ${cuda%.*}, cuBLAS "*"cuDNN ${cudnn%.*} from $libraries/libcudart.so.${cuda%%.*}"* ]] || show
            mkdir -p env/lib/python3.12/site-packages/nvidia/all
            ln -s "$libraries" env/lib/python3.12/site-packages/nvidia/all/lib
            # As on a machine that has them in a Python environment alone.
            if [[ $(id -u) -eq 0 && $(readlink -f "$(ldconfig -p | sed -n 's/.*libcudart.so.*=> //p' | head -n 1)") == /usr/local/* ]] && unshare -m true; then
                run unshare -m sh -c "mount -t tmpfs none /usr/local && VIRTUAL_ENV=$PWD/env exec '$EVENLOAD' devices --json"
                [[ $output == *"\"CUDA ${cuda%.*}, cuBLAS "*" from $PWD/env/"* ]] || show
            fi
            LD_LIBRARY_PATH=$libraries refuses "no NVIDIA driver found" "$EVENLOAD" run --devices cuda:1 --out out
        fi
        rm -r "$libraries"
        n=$((n + 1))
    done < <(command python3 "$BATS_TEST_DIRNAME/releases.py" "$ROOT/docs/gpus.md" "$ROOT/build/releases" libraries)
    [[ $n -eq 3 ]]
}

# What comes from nowhere else: /usr/local is empty there, and the PATH has the environment's bin and the system's.
in_bare_root() { unshare -m env PATH="$PWD/$1/bin:/usr/bin:/bin" sh -c 'mount -t tmpfs none /usr/local && exec "$@"' sh "${@:2}"; }

@test "PyPI's packages alone: make, and the program, which finds them by the PATH's python3, and goes without cuDNN" {
    long "a build with PyPI's nvcc: 1.5 GB of packages, four minutes"
    [[ $(id -u) -eq 0 ]] && unshare -m true || skip "only root can hide /usr/local"
    command python3 -m venv env && env/bin/pip install -q --disable-pip-version-check nvidia-cuda-nvcc nvidia-cuda-cccl nvidia-cublas nvidia-cudnn-cu13 nvidia-nccl-cu13 >log 2>&1 ||
        skip "no packages: $(tail -n 1 log)"
    in_bare_root env make -C "$ROOT" -j "$(nproc)" CUDA_ARCHS=75 BUILD="$PWD/build" all >log 2>&1 || { cat log && false; }
    mv env elsewhere # so that no path in the modules leads there
    run in_bare_root elsewhere build/evenload devices
    [[ $output == *" CUDA     yes  CUDA 13."*", cuDNN 9."*"$PWD/elsewhere/"*"libcudnn.so.9"*" NCCL     yes "* ]] || show
    rm elsewhere/lib/python3*/site-packages/nvidia/cudnn/lib/libcudnn.so.9
    run in_bare_root elsewhere build/evenload devices
    [[ $output == *" CUDA     yes  CUDA 13."*"no libcudnn.so.9: install it"* ]] || show
}
