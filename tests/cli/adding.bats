# docs/adding.md: its patches are taken from the page, applied to a copy of the sources with its objects, and built; the mode and the
# model that they add are run like any other.
PICTURES=no
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
EVENLOAD_BUILD=${EVENLOAD_BUILD:-$ROOT/build}
PATCHED=$BATS_FILE_TMPDIR/src

# With their times, so that only what the patches touch is compiled.
copy_sources() {
    mkdir -p "$PATCHED/build"
    (cd "$ROOT" && cp -a Makefile bench kernels plots profiles runtime scripts "$PATCHED")
    (cd "$EVENLOAD_BUILD" && cp -a bench evenload kernels libevenload.a profiles runtime ./*.stamp "$PATCHED/build")
    [[ ! -d $EVENLOAD_BUILD/modules ]] || cp -a "$EVENLOAD_BUILD/modules" "$PATCHED/build"
}

setup_file() {
    local name
    command -v patch >/dev/null || return 0
    copy_sources
    cd "$PATCHED" || return 1
    awk -v dir="$BATS_FILE_TMPDIR" '/^```diff/ { n++; on = 1; next } /^```/ { on = 0 } on { print > (dir "/" n ".patch") }' "$ROOT/docs/adding.md"
    for name in 1 2 4; do patch -p1 -F0 --no-backup-if-mismatch <"$BATS_FILE_TMPDIR/$name.patch"; done
    make -j "$(nproc)" COMMIT="$(cut -d' ' -f1 <build/commit.stamp)" build/evenload >make.log 2>&1 || { cat make.log && return 1; }
}

eval "common_$(declare -f setup)"
setup() {
    command -v patch >/dev/null || skip "patch is not installed"
    common_setup
}

patched=$PATCHED/build/evenload

# one_file_one_row PATCH FILE LIST: what the patch adds.
one_file_one_row() {
    local patch=$BATS_FILE_TMPDIR/$1.patch
    [[ $(sed -n 's|^+++ b/||p' "$patch" | sort) == "$(printf '%s\n' "$2" "$3" | sort)" ]] || show
    [[ $(sed -n "\\|^+++ b/$3|,\$p" "$patch" | grep -c '^[+-][^+-]') -eq 1 ]] || show
}

@test "a mode is one file and one row" {
    one_file_one_row 1 runtime/modes/alone.c runtime/modes/mode.c
}

@test "a model is one file and one row" {
    one_file_one_row 2 runtime/models/bottleneck.c runtime/models/models.c
}

@test "the mode trains on several devices, as processes and as threads, and nothing is exchanged" {
    local procs
    for procs in 1 2; do
        "$patched" run --mode alone --devices 2 --procs "$procs" "${QUICK[@]}" --launcher own --repeats 1 --out "r$procs" --quiet || show
        [[ $(json "r$procs/results.json" '[d["trials"][0][k] for k in ("mode", "procs", "batch_per_device", "communicator")]') == \
            "['alone', $procs, [8, 8], None]" ]] || show
    done
}

@test "the mode goes through the gate, and its memory is predicted" {
    "$patched" compare --modes single,alone --devices 2 "${QUICK[@]}" --launcher own --repeats 1 --out c --quiet >out
    grep -qE '^alone +8 \(2 x 8\) ' out || { cat out && false; } # each has the whole batch: they are no stages
    [[ $(json c/results.json '{g["mode"]: g["agrees"] for g in d["gate"]}') == "{'single': True, 'alone': True}" ]] || show
    run "$patched" run --mode alone --devices 2 "${QUICK[@]}" --dry-run
    [[ $status -eq 0 && $output == *"cpu:0 "*"cpu:1 "* ]] || show
    run "$patched" verify --quick --modes alone --launcher own --quiet --out v
    [[ $status -eq 0 && $output == *"alone     bottleneck "*"same bits"*"checks passed"* ]] || show
}

@test "the model trains in every mode, and its size is an option" {
    [[ $("$patched" run --help all) == *"--narrow"*"(bottleneck)"* ]] || show
    "$patched" compare --modes single,dp,ddp --devices 2 --model bottleneck --features 12 --narrow 3 --data dummy --batch 8 --warmup 1 --steps 2 \
        --min-time 0 --launcher own --repeats 1 --out m --quiet
    [[ $(json m/results.json 'sorted(g["mode"] for g in d["gate"] if g["agrees"])') == "['ddp', 'dp', 'single']" ]] || show
    [[ $(json m/results.json '{t["status"] for t in d["trials"]}') == "{'ok'}" ]] || show
    refuses "--narrow" "$patched" run --model bottleneck --narrow 0
    refuses "--narrow" "$patched" run --model mlp --narrow 4
}

# Applied to sources alone: what a header of theirs changes would have everything compiled anew.
@test "an algorithm of a collective is played, as the page has it" {
    local file flags=(-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Werror -I. -I"$ROOT")
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "the plain build does it"
    [[ -e $EVENLOAD_BUILD/tests/unit/test_kernels ]] || skip "the tests are not built: no cmocka"
    mkdir tests && cp -a "$ROOT/bench" "$ROOT/runtime" . && cp -a "$ROOT/tests/unit" tests
    patch -p1 -F0 --no-backup-if-mismatch <"$BATS_FILE_TMPDIR/3.patch"
    for file in runtime/comm/{rounds,verbs}.c; do cc "${flags[@]}" -c "$file"; done
    cc "${flags[@]}" tests/unit/test_rounds.c rounds.o verbs.o "$EVENLOAD_BUILD/libevenload.a" -o test_rounds -lcmocka -ljansson -lm -lpthread -ldl
    run ./test_rounds
    [[ $status -eq 0 ]] || show
}

@test "an option of a mode is a row in the mode's file: it is read, shown, recorded, checked, and refused elsewhere" {
    [[ $(sed -n 's|^+++ b/||p' "$BATS_FILE_TMPDIR/4.patch") == runtime/modes/manual.c ]] || show
    [[ $("$patched" run --help all) == *"--divide WHEN "*"manual: divide after the all-reduce, or before it (after|before;"* ]] || show
    "$patched" run --mode manual --devices 2 --divide before "${QUICK[@]}" --launcher own --repeats 1 --out d --quiet
    [[ $(json d/results.json '[d["trials"][0][k] for k in ("status",)] + [d["trials"][0]["config"]["divide"], "--divide before" in d["trials"][0]["command"]]') == \
        "['ok', 'before', True]" ]] || show
    refuses "--divide: mode ddp does not take it, manual does" "$patched" run --mode ddp --divide before
    refuses "--divide: 'befor' is not one of after|before: did you mean 'before'?" "$patched" run --mode manual --divide befor
    run "$patched" verify --quick --modes manual --launcher own --quiet --out dv
    [[ $status -eq 0 && $(json dv/verify.json '{c["variant"] for c in d["cells"]}') == *"'--divide before'"* ]] || show
}

@test "a node that communicates is one file and one name, and sums over its group" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "the plain build does it"
    [[ -e $EVENLOAD_BUILD/tests/unit/test_kernels ]] || skip "the tests are not built: no cmocka"
    one_file_one_row 5 runtime/graph/node_sum_over.c runtime/graph/graph.h
    mkdir tests && cp -a "$ROOT/runtime" "$ROOT/kernels" . && cp -a "$ROOT/tests/unit" tests
    patch -p1 -F0 --no-backup-if-mismatch <"$BATS_FILE_TMPDIR/5.patch"
    cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Werror -I. -I"$ROOT" -DSUM_OVER=el_node_sum_over tests/unit/test_pass_env.c runtime/graph/node_sum_over.c \
        "$EVENLOAD_BUILD/libevenload.a" -o test_pass_env -lcmocka -ljansson -lm -lpthread -ldl
    run ./test_pass_env
    [[ $status -eq 0 ]] || show
}
