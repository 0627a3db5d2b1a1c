# shellcheck shell=bash
# How scripts/gpu-check builds, here for --prepare and there for the check. Sourced; needs BUILD and BROUGHT.

# The compiler finds the prefix by its own variables, so that objects made without it stay good; the program finds it beside itself. Of the tests
# only those that the parts run.
make_check() { # make_check TARGET SETTING...
    local near far tests
    near=$(realpath -m --relative-to="$BUILD" "$BROUGHT/lib")
    far=$(realpath -m --relative-to="$BUILD/tests/unit" "$BROUGHT/lib")
    if [[ -d $BROUGHT/include ]]; then
        export CPATH=$BROUGHT/include${CPATH:+:$CPATH} LIBRARY_PATH=$BROUGHT/lib${LIBRARY_PATH:+:$LIBRARY_PATH}
    fi
    tests=$(printf '%s\n' tests/unit/test_*{cuda,nvml}*.c tests/conformance/test_device.c | sort -u | tr '\n' ' ')
    # A warning of a newer compiler must not cost the whole check.
    make -k -j "$(nproc)" BUILD="$BUILD" WERROR="${WERROR-}" COMMIT="$(commit_of_tree "$BROUGHT")" TEST_SOURCES="$tests" FUZZ='' EMULATED_TEST='' CARDS='' \
        LDFLAGS="-Wl,-rpath,\\\$\$ORIGIN/$near -Wl,-rpath,\\\$\$ORIGIN/$far" "$@"
}

# What is carried of a build: programs and modules, without what they were made of.
pack_program() { # pack_program FOLDER
    rm -rf "$1" && mkdir -p "$1"
    (cd "$BUILD" && find . -type f \( -perm -u+x -o -name '*.so' \) ! -path './probes/*' -exec cp --parents -t "$1" {} +)
    find "$1" -type f -exec strip --strip-unneeded {} +
}

# Into BUILD, with the links that carrying may have lost.
unpack_program() { # unpack_program FOLDER
    local folder
    mkdir -p "$BUILD" && cp -a "$1/." "$BUILD/"
    for folder in "$BUILD" "$BUILD"/tests/*/; do
        [[ -d $folder ]] || continue
        ln -sfn "$PWD/plots" "${folder%/}/plots"
        ln -sfn "$PWD/hardware" "${folder%/}/hardware"
        [[ $folder == "$BUILD" ]] || ln -sfn "$BUILD/modules" "${folder}modules"
    done
}
