# scripts/gpu-check where there is no GPU: it says so, rehearses what needs none in a root without network and without the system's
# libraries, and leaves a folder that may be committed.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load common

ROOT=$BATS_TEST_DIRNAME/../..
EVENLOAD_BUILD=${EVENLOAD_BUILD:-$ROOT/build}
stderr='' # set by run

need_compiler() {
    command -v cc >/dev/null || skip "no compiler"
}

# The tree's own build, so that only what the prefix touches is compiled anew: what includes jansson here, and every link.
bring_build() { # bring_build FOLDER
    mkdir -p "$1"
    local part
    for part in bench kernels runtime profiles modules probes flags.stamp cuda.stamp commit.stamp libevenload.a; do
        [[ ! -e $EVENLOAD_BUILD/$part ]] || cp -a "$EVENLOAD_BUILD/$part" "$1/"
    done
    [[ ${EVENLOAD_LONG:-} != 1 ]] || (cd "$EVENLOAD_BUILD" && find tests -name '*.[od]' -exec cp -a --parents -t "$1" {} +)
    rm -f "$1"/bench/base/jvalue.o
}

rehearse() { # rehearse OPTION...
    "$ROOT/scripts/gpu-check" --rehearse --prefix "$PWD/prefix" --build "$PWD/gpu-check" "$@"
}

@test "without a GPU: one line, status 2" {
    ! command -v nvidia-smi >/dev/null || skip "there is a driver"
    refuses "no GPU here" "$ROOT/scripts/gpu-check" --out "$PWD/out"
    [[ ! -e out ]]
}

@test "bad use is refused" {
    refuses "no part is called 'nothing'" "$ROOT/scripts/gpu-check" --rehearse nothing
    refuses "unknown option '--frobnicate'" "$ROOT/scripts/gpu-check" --frobnicate
    refuses "whole seconds" "$ROOT/scripts/gpu-check" --rehearse --budget soon
    refuses "--call takes 1, 2 or 3" "$ROOT/scripts/gpu-check" --rehearse --call 4
}

@test "--prepare copies headers, libraries, licences and make, and little of it; all that is missing is said before" {
    need_compiler
    "$ROOT/scripts/gpu-check" --prepare --no-build --prefix "$PWD/prefix"
    local file
    for file in include/jansson.h include/cmocka.h lib/libjansson.so.4 lib/libcmocka.so bin/make; do [[ -s prefix/$file ]] || show; done
    printf '#!/bin/sh\ncase "$*" in -print-file-name=*) echo "${1#*=}" ;; *) exit 1 ;; esac\n' >cc
    chmod +x cc
    refuses "install libjansson-dev libcmocka-dev first" env CC="$PWD/cc" "$ROOT/scripts/gpu-check" --prepare --prefix "$PWD/other"
    [[ ! -e other ]]
    [[ $(du -sm prefix | cut -f 1) -le 20 && -z $(find prefix -type l) ]]
    [[ ! -d /usr/share/doc/libjansson4 ]] || grep -qi copyright prefix/licences/jansson
}

@test "a rehearsal without network and without the system's jansson and cmocka" {
    need_compiler
    unshare -rnm true 2>/dev/null || skip "unshare is not allowed here"
    "$ROOT/scripts/gpu-check" --prepare --no-build --prefix "$PWD/prefix"
    bring_build "$PWD/gpu-check"
    local hide file
    # A network of its own with nothing but the loopback device, and /dev/null where the system's libraries lie.
    hide='python3 -c "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh\", b\"lo\", 0x41))"; '
    hide+='for f in /usr/include/{jansson,cmocka}.h /usr/lib/*/lib{jansson,cmocka}.so*; do [[ ! -f $f ]] || mount --bind /dev/null "$f"; done'
    # All of it with --long; else what needs no test built, and one part that needs a GPU.
    local parts=(devices absent torch)
    [[ ${EVENLOAD_LONG:-} != 1 ]] || parts=()
    run --separate-stderr unshare -rnm bash -c "$hide; exec \"\$@\"" - "$ROOT/scripts/gpu-check" --rehearse --prefix "$PWD/prefix" \
        --build "$PWD/gpu-check" --out "$PWD/out" "${parts[@]}"
    [[ $status -eq 0 ]] || { cat out/*.log && show; }
    # A row a part, with its word, and the folder's files.
    grep -qE '^build +ok .*evenload ' out/summary.txt
    grep -qE '^absent +ok .*status 2 in' out/summary.txt
    [[ ${#parts[@]} -gt 0 ]] || grep -qE '^host +ok .* passed' out/summary.txt
    [[ $(grep -cE '^[a-z]+ +skipped .*needs a GPU$' out/summary.txt) -eq $((${#parts[@]} > 0 ? 1 : 16)) ]] || show
    [[ $(tail -n 1 out/summary.txt) == *" s, 0 failed" ]] || show
    for file in environment.txt devices.json build.log absent.log; do [[ -s out/$file ]] || show; done
    # Nothing of this machine in it.
    run grep -rlF -e "$BATS_TEST_TMPDIR" -e "$(cd "$ROOT" && pwd)/" -e "\"$(uname -n)\"" out
    [[ $status -eq 1 ]] || show
    # The program was linked to the prefix, and finds it wherever both are carried to.
    mkdir elsewhere
    mv prefix gpu-check elsewhere/
    [[ $(ldd elsewhere/gpu-check/evenload) == *"$PWD/elsewhere/"*libjansson* ]] || { ldd elsewhere/gpu-check/evenload && show; }
    elsewhere/gpu-check/evenload --version
}

@test "a part that fails is a row, and the others are run; the archive holds them" {
    mkdir -p gpu-check
    printf '#!/bin/sh\ncase $1 in --version) echo evenload brought;; compare) echo nothing; exit 1;; *) echo "  cuda     no   none";; esac\n' >gpu-check/evenload
    chmod +x gpu-check/evenload
    run --separate-stderr env CC=/nonexistent "$ROOT/scripts/gpu-check" --rehearse --prefix "$PWD/none" --build "$PWD/gpu-check" \
        --out "$PWD/out.tar.gz"
    [[ $status -eq 1 && $output == *" s, 1 failed"* ]] || show
    tar -xzf out.tar.gz
    grep -qE '^build +ok .*brought along' out/summary.txt
    grep -qE '^absent +failed .*status 1' out/summary.txt
    grep -qE '^devices +ok ' out/summary.txt
    grep -qx 'fell short: absent' out/summary.txt
    [[ $(<out/absent.log) == nothing ]]
    # What was brought along is unpacked.
    mkdir -p prefix/program && cp gpu-check/evenload prefix/program/
    run --separate-stderr env CC=/nonexistent "$ROOT/scripts/gpu-check" --rehearse --call 2 --prefix "$PWD/prefix" --build "$PWD/unpacked" --out "$PWD/call.tar.gz"
    [[ $status -eq 0 && -x unpacked/evenload ]] || show
    [[ $(tar -xzOf call.tar.gz call/summary.txt | grep -cE '^build +ok .*brought along|^(graph|torch|images|compare|published|overhead|loading|watch) +skipped .*needs a GPU') -eq 9 ]] || show
}

@test "what the budget does not hold is skipped, and said" {
    run --separate-stderr rehearse --budget 0 --out "$PWD/out"
    [[ $status -eq 0 && $output == *"skipped"*"the budget of 0 s is used up"*"no time was left for: build (scripts/gpu-check build "* ]] || show
}

@test "losses that agree, and losses that do not" {
    local figures=$ROOT/scripts/gpu-check.d/figures.py mode list=()
    for mode in cpu single dp; do
        "$EVENLOAD" run "${QUICK[@]}" --precision f64 --mode "${mode/cpu/single}" --devices cpu:0,cpu:0 --out "$mode" --quiet >/dev/null
        list+=("f64:mlp:$mode:$mode/results.json" "f32:mlp:$mode:$mode/results.json")
    done
    run python3 "$figures" losses "${list[@]}"
    [[ $status -eq 0 && $output == *"f64 "*" in 2 runs, f32 "*" in 2 runs, by local" ]] || show
    sed -i -E '0,/"loss": \[/s/("loss": \[)[^,]*/\19.5/' dp/results.json
    run python3 "$figures" losses "${list[@]}"
    [[ $status -eq 1 && $output == *"; f64 mlp dp "*" > 1e-07"* ]] || show
    run python3 "$figures" losses "${list[@]/dp\/results/none\/results}"
    [[ $status -eq 1 && $output == *"f64 mlp dp: failed (no record)"* ]] || show
}

# A part of the card's, on CPU devices.
part() { # part NAME
    mkdir -p work
    run env WORK="$PWD/work" BUILD="$EVENLOAD_BUILD" BROUGHT="$PWD/none" CARD=cpu:0 CARDS=cpu:0,cpu:1 REHEARSE=no \
        "$ROOT/scripts/gpu-check.d/part" "$1"
}

# The same on cards that are none (tests/cards).
part_on_cards() { # part_on_cards NAME CARD CARDS
    [[ -x $EVENLOAD_BUILD/cards/evenload ]] || skip "no fake cards: they need a C++ compiler"
    mkdir -p work
    run env FAKE_CARDS="${FAKE_CARDS:-2}" WORK="$PWD/work" BUILD="$EVENLOAD_BUILD/cards" BROUGHT="$PWD/none" CARD="$2" CARDS="$3" REHEARSE=no \
        timeout 600 "$ROOT/scripts/gpu-check.d/part" "$1"
}

# Options are read in their order, so that an older part's, which the program no longer has, is named before the last one.
@test "what the parts ask of the program, it takes" {
    local one
    mkdir -p asked
    cat >asked/evenload <<END
#!/bin/sh
cd "$PWD/asked"
case \$1 in run | compare | imbalance) ;; *) exit 0 ;; esac
echo "\$*" >>all
"$EVENLOAD" "\$@" --seed none >/dev/null 2>err
grep -q 'seed:' err || cat all err >refused
END
    chmod +x asked/evenload
    for one in graph images compare overhead loading modes nccl published; do
        EVENLOAD_BUILD=$PWD/asked GPU_CHECK_MODELS=mlp GPU_CHECK_MODES="dp ddp" part "$one"
    done
    [[ ! -e asked/refused && $(wc -l <asked/all) -ge 15 ]] || { tail -2 asked/refused && false; }
}

# All modes and both models with --long.
@test "every mode's losses, by the part that looks at them on cards: two devices share one card; a mode that ends is in the figure" {
    local n=26
    [[ ${EVENLOAD_LONG:-} == 1 ]] || { export GPU_CHECK_MODES="dp mesh" GPU_CHECK_MODELS=mlp && n=2; }
    FAKE_CARDS=1 part_on_cards modes cuda:0 cuda:0,cuda:0
    [[ $status -eq 0 && $(<work/modes.figure) == "losses off the CPU's by at most: f64 "*" in $n runs, f32 "*" in $n runs, bf16 "*" in $n runs, by "*peer* ]] || { cat work/*.figure && show; }
    # Ended from outside, it leaves what it had.
    rm -rf work && mkdir work
    FAKE_CARDS=1 GPU_CHECK_MODES="$(printf 'single %.0s' {1..500})" GPU_CHECK_MODELS=mlp WORK=$PWD/work BUILD=$EVENLOAD_BUILD/cards BROUGHT=$PWD/none CARD=cuda:0 \
        CARDS=cuda:0,cuda:0 REHEARSE=no timeout 600 "$ROOT/scripts/gpu-check.d/part" modes >/dev/null 2>&1 3>&- &
    until grep -qs ' in 1 runs' work/modes.figure || ! kill -0 $!; do sleep 0.1; done
    kill $!
    wait $! || true
    [[ $(<work/modes.figure) == "losses off the CPU's by at most: f64 "*" in 1 runs"* ]] || { cat work/*.figure && show; }
}

@test "devices that are there and devices that are not, by the parts that look at them on cards" {
    part_on_cards devices cuda:0 cuda:0,cuda:1
    [[ $status -eq 0 && $(<work/devices.figure) == "cuda yes: "* ]] || show
    part_on_cards absent cuda:0 cuda:0,cuda:1
    [[ $status -eq 0 && $(<work/absent.figure) == "status 2 in "*"this process sees 2 GPUs"* ]] || show
}

@test "steps as CUDA graphs on cards, by the part that looks at them" {
    long "steps as graphs on fake cards, by gpu-check: half a minute"
    part_on_cards graph cuda:0 cuda:0,cuda:1
    [[ $status -eq 0 && $(<work/graph.figure) == *"f64 "*" in 1 runs"*"; samples/s with --graph off "*", on "*" steps were graphs)" ]] || show
}

# a_driver N: its program, which lists so many cards.
a_driver() {
    mkdir -p bin
    # shellcheck disable=SC2016 # the script's own
    printf '#!/bin/sh\ncase "$*" in *query-gpu=name*) echo "Fake H200";; *reasons*-lms*) while echo "1980, 512.3, 0x4, 900"; do sleep 0.5; done;; -L) for i in $(seq %d); do echo "GPU $i: a"; done;; esac\n' "$1" >bin/nvidia-smi
    chmod +x bin/nvidia-smi
    PATH=$PWD/bin:$PATH
}

# The check itself, with a driver's program that lists two cards, and nothing to build with: what takes seconds, and of the modes one.
@test "the check on cards that are none: a row a part, with the clocks, and what fell short" {
    [[ -x $EVENLOAD_BUILD/cards/evenload ]] || skip "no fake cards: they need a C++ compiler"
    local part
    a_driver 2
    FAKE_CARDS=2 GPU_CHECK_SMALL=yes GPU_CHECK_MODES="single dp" GPU_CHECK_MODELS=mlp CC=/nonexistent run "$ROOT/scripts/gpu-check" --build "$EVENLOAD_BUILD/cards" \
        --prefix "$PWD/none" --budget 1500 --out "$PWD/out" devices absent modes
    for part in devices absent modes; do grep -qE "^$part +ok " out/summary.txt || { cat out/summary.txt out/"$part".log && show; }; done
    grep -qE '^modes .* in 2 runs, .*; SM up to 1980 MHz, 512 W, power cap$' out/summary.txt || { cat out/summary.txt && show; }
    [[ $(<out/summary.txt) == *", fake-h200, "* && $(grep -cE '^[a-z]+ +(ok|failed|skipped) ' out/summary.txt) -eq 4 && -s out/clocks.csv ]] || show
}

# Of one card, whose driver's program takes 20 ms to start, cuDNN's heuristics 1 ms and a context a second, with models that a CPU can train.
@test "three calls on a slow card: each within ten minutes, with figures; one that is killed leaves what it had" {
    [[ -x $EVENLOAD_BUILD/cards/evenload ]] || skip "no fake cards: they need a C++ compiler"
    long "gpu-check's three calls on a slow fake card, 15 minutes"
    local call began part
    local -A proofs=([1]="devices absent modes nccl" [2]="graph images compare published overhead loading watch" [3]="")
    a_driver 1
    export FAKE_CARDS=1 FAKE_CARDS_SLOW="nvml=20,heuristic=1,context=1000" GPU_CHECK_SMALL=yes GPU_CHECK_MODELS=mlp CC=/nonexistent
    for call in 1 2 3; do
        began=$SECONDS
        run "$ROOT/scripts/gpu-check" --call "$call" --build "$EVENLOAD_BUILD/cards" --prefix "$PWD/none" --out "$PWD/$call"
        echo "# call $call: $((SECONDS - began)) s" >&3
        cat "$call/summary.txt"
        [[ $((SECONDS - began)) -lt 600 ]]
        for part in ${proofs[$call]}; do grep -qE "^$part +ok +[0-9]+ s  ." "$call/summary.txt" || { tail "$call/$part.log" && false; }; done
        ! grep -vE '^[a-z]+ +(ok|failed|skipped) +[0-9]+ s  .' <(grep -E '^[a-z]+ +(ok|failed|skipped) ' "$call/summary.txt")
    done
    grep -qE '^verify .* [1-9][0-9]* cells on cards' 1/summary.txt
    run timeout --kill-after=1 30 "$ROOT/scripts/gpu-check" --call 1 --build "$EVENLOAD_BUILD/cards" --prefix "$PWD/none" --out "$PWD/killed"
    [[ $status -eq 124 && $(<killed/summary.txt) == *"absent "*"ok"* && -s killed/devices.json ]] || { ls killed && show; }
}

@test "a residual network's losses, the same way" {
    long "a residual network by the part images: 8 s"
    part images
    [[ $status -eq 0 && $(<work/images.figure) == "losses off the CPU's by at most: f64 "*" in 1 runs, f32 "*" in 1 runs"* ]] || show
}

@test "the published table beside a context" {
    part published
    [[ $status -eq 77 && $(<work/published.figure) == "the context was not measured"* ]] || show
    printf '{"library_bytes": {"context": 524288000, "cuBLAS": 10485760}}' >work/limits.json
    part published
    [[ $status -eq 0 && $(<work/published.figure) == "outside tensors this card holds 510 MiB (context 500, cuBLAS 10)"*" 883 to 943 MiB"* ]] || show
}

@test "the published table with what a driver said of cards" {
    "$EVENLOAD" imbalance --preset two-cards --dry-run --json >s.json
    python3 -c 'import json; d = json.load(open("s.json")); d["predicted"] = False
for trial in d["trials"]:
    for k, card in enumerate(trial["cards"]): card.update(device=f"cuda:{k}", library_bytes={} if k else {"context": 5 << 20, "cuBLAS": 1 << 20})
json.dump(d, open("s.json", "w"))'
    run python3 "$ROOT/scripts/gpu-check.d/figures.py" published s.json
    [[ $status -eq 0 && $output == "measured on cuda:0 and cuda:1: outside tensors 6 and 0 MiB; "*" 883 to 943 MiB"*"holds at 2 of 3 batches" ]] || show
    # A run that fails on cards is a failure, also where a forecast serves.
    [[ -z $(command -v nvidia-smi) ]] || skip "there is a driver"
    mkdir -p work && printf '{"library_bytes": {"context": 524288000}}' >work/limits.json
    run env WORK="$PWD/work" BUILD="$EVENLOAD_BUILD" BROUGHT="$PWD/none" CARD=cuda:0 CARDS=cuda:0,cuda:0 REHEARSE=no \
        "$ROOT/scripts/gpu-check.d/part" published
    [[ $status -eq 1 && $(<work/published.figure) == "outside tensors this card holds 500 MiB"* ]] || show
}

@test "where there should be a card, a test that finds none has failed" {
    ! command -v nvidia-smi >/dev/null || skip "there is a driver"
    [[ -x $EVENLOAD_BUILD/tests/conformance/test_device ]] || skip "cmocka is not installed"
    part conformance
    [[ $status -eq 1 && $(<work/conformance.figure) == *"failed: test_device ("* ]] || show
}

@test "key figures of loading: pinned, pageable and ahead, or it fell short" {
    local figures=$ROOT/scripts/gpu-check.d/figures.py
    python3 -c 'import json
def row(h2d, workers=0, pin="on", how="on", status="ok"):
    return dict(status=status, step_ms=dict(median=10), config=dict(workers=workers, pin_memory=pin, non_blocking=how), per_device=[dict(busy_ms=dict(h2d=h2d), loading=dict(exposed_ms=2))])
json.dump({"trials": [row(1.5), row(4, pin="off"), row(1.5, 2, how="ahead")]}, open("all.json", "w"))
json.dump({"trials": [row(1.5), row(4, pin="off"), row(1.5, 2, how="ahead", status="timeout")]}, open("less.json", "w"))'
    run python3 "$figures" loading all.json
    [[ $status -eq 0 && $output == "pinned w0 h2d 1.50, exposed 2.00 of 10.00 ms; pageable w0 h2d 4.00, "*"; pinned ahead w2 h2d 1.50, "* ]] || show
    run python3 "$figures" loading less.json
    [[ $status -eq 1 && $output == *"; pinned ahead w2 timeout" ]] || show
}

@test "key figures of a comparison" {
    run python3 "$ROOT/scripts/gpu-check.d/figures.py" compare "$ROOT/results/reference/cpu-2-cores/results.json"
    [[ $status -eq 0 && $output == "9 of 9 trials; at batch 256: single "*"samples/s, peak "*"; dp "*"; ddp "* ]] || show
    # What cuDNN chose is told once.
    "$EVENLOAD" run "${QUICK[@]}" --mode dp --devices cpu:2 --out r --quiet >/dev/null
    python3 -c 'import json; d = json.load(open("r/results.json"))
for device in d["trials"][0]["per_device"]:
    for i, op in enumerate(device["ops"]): op["implementation"] = [None, f"cuDNN forward algorithm 1, f32, {i} bytes of scratch"][i % 2]
json.dump(d, open("r/results.json", "w"))'
    run python3 "$ROOT/scripts/gpu-check.d/figures.py" compare r/results.json
    [[ $status -eq 0 && $output == "1 of 1 trials; "*" MiB; cuDNN forward algorithm 1, f32" ]] || show
}
