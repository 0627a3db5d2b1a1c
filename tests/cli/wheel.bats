# The Python wheel: its parts and their hashes, the program from where pip puts it, with nothing but what came along; and with
# --long pip itself, here and in a bare root.
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# Once for all tests of this file.
setup_file() {
    export PLACE WHEEL
    PLACE=$(mktemp -d "${TMPDIR:-/tmp}/evenload-XXXXXX")
    make -C "$ROOT" -s wheel >"$PLACE/log" 2>&1 || { cat "$PLACE/log" && return 1; }
    WHEEL=$(tail -1 "$PLACE/log")
    cp "$ROOT/$WHEEL" "$PLACE"
    WHEEL=$PLACE/${WHEEL##*/}
    # As pip does it: scripts to bin/, data to the prefix.
    (cd "$PLACE" && command python3 -m zipfile -e "$WHEEL" unpacked && cd unpacked && mv ./*.data/data ../env && mv ./*.data/scripts ../env/bin && chmod +x ../env/bin/*)
}

teardown_file() {
    rm -rf "$PLACE"
}

teardown() {
    umount "$BATS_TEST_TMPDIR/root/proc" 2>/dev/null || true
}

# What pip installed trains and plans with oneDNN, and draws or says which package draws.
try_in() { # try_in COMMAND...: what comes before `evenload`
    run "$@" evenload devices
    [[ $status -eq 0 ]] || show
    [[ ! -e $EVENLOAD_BUILD/modules/el_dnnl.so || $output == *"oneDNN   yes"* ]] || show
    run "$@" evenload compare --model mlp --data dummy --repeats 1 --steps 2 --min-time 0 --out compared
    [[ $status -eq 0 && $output == *ddp* ]] || show
    [[ $output == *"plots/"* || $output == *"gnuplot"* ]] || show
}

@test "the record has every member of the wheel, with its hash, and its tag says the C library" {
    run python3 - "$WHEEL" <<'END_OF_PYTHON'
import base64, hashlib, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
info = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
rows = dict(line.split(",", 1) for line in wheel.read(info).decode().splitlines())
assert sorted(rows) == sorted(wheel.namelist()), set(rows) ^ set(wheel.namelist())
for name, row in rows.items():
    text = wheel.read(name)
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
    assert row == ("," if name == info else f"sha256={digest},{len(text)}"), name
tag = [line for line in wheel.read(info.replace("RECORD", "WHEEL")).decode().splitlines() if line.startswith("Tag: ")]
assert sys.argv[1].endswith("-" + tag[0][5:] + ".whl") and "-py3-none-manylinux_2_" in sys.argv[1], tag
END_OF_PYTHON
    [[ $status -eq 0 && -z $output ]] || show
}

@test "the files need what comes along, the C library's and the machine's own, and look nowhere in the building machine" {
    local file name
    command -v readelf >/dev/null || skip "readelf is not installed"
    for file in "$PLACE"/env/bin/evenload "$PLACE"/env/lib/evenload/*/*; do
        run readelf -d "$file"
        [[ $status -eq 0 ]] || show
        while read -r name; do
            case ${file##*/}:$name in
            *:libc.so.6 | *:libm.so.6 | *:ld-linux-* | *:libgcc_s.so.1 | *:libstdc++.so.6 | *:libz.so.1) ;;
            el_mpi.so:libmpi.so.* | el_cuda.so:libcu* | el_cudnn.so:libcu* | el_nccl.so:libcudart.so.* | el_nccl.so:libnccl.so.*) ;;
            *) [[ -e $PLACE/env/lib/evenload/libs/$name ]] || { echo "$file needs $name" && return 1; } ;;
            esac
        done < <(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$output")
        while read -r name; do
            [[ $name == "\$ORIGIN/../"* || $name == /usr/local/cuda/* ]] || { echo "$file looks in $name" && return 1; }
        done < <(sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2/p' <<<"$output" | tr : '\n')
    done
    [[ -e $PLACE/env/lib/evenload/modules/el_dnnl.so || ! -e $EVENLOAD_BUILD/modules/el_dnnl.so ]]
}

@test "from where pip puts it the program finds its modules, libraries and plots with nothing set" {
    long "a wheel, 10 s"
    local program=$PLACE/env/bin/evenload
    run --separate-stderr env -i "$program" --version
    [[ $status -eq 0 && $output == "$("$EVENLOAD" --version)" ]] || show
    [[ $(env -i PATH="$PATH" "$program" devices) == "$("$EVENLOAD" devices)" ]]
    run --separate-stderr env -i "$program" run --mode ddp --devices 2 "${QUICK[@]}" --quiet --out mine
    [[ $status -eq 0 && -s mine/results.json ]] || show
    run --separate-stderr env -i "$program" plan --params 7B --devices 64 --machine h100-sxm
    [[ $status -eq 0 && $output == *zero3* ]] || show
    run env -i LD_DEBUG=libs "$program" devices
    [[ $output == *"calling init: $PLACE/env/bin/../lib/evenload/libs/libjansson.so"* ]] || show
    [[ ! -e $EVENLOAD_BUILD/modules/el_dnnl.so || $output == *"calling init: $PLACE/env/bin/../lib/evenload/libs/libdnnl.so"* ]] || show
}

@test "the same files give the same wheel, and pip installs it" {
    long "pip with the wheel, half a minute"
    make -C "$ROOT" -s wheel >/dev/null 2>&1
    cmp "$WHEEL" "$ROOT/build/${WHEEL##*/}"
    command python3 -m venv bare || skip "python3 has no venv"
    run bare/bin/pip install --no-index "$WHEEL"
    [[ $status -eq 0 ]] || show
    try_in env -i PATH="$PWD/bare/bin:/usr/bin:/bin"
    run bare/bin/pip uninstall -y evenload
    [[ $status -eq 0 && ! -e bare/bin/evenload && ! -e bare/lib/evenload/libs/libjansson.so.4 ]] || show
}

# The steps of action.yml, as they are, with a program that got slower and one that did not.
@test "GitHub's action installs the wheel in a bare root, which has none of the libraries, and judges there" {
    local root=$PWD/root here=(env -i -C /root "PATH=/opt/evenload/bin:/usr/bin:/bin")
    long "the wheel in a bare root, about a minute"
    bare_root "$root" --include=python3-venv
    cp "$WHEEL" "$root/root"
    command python3 - "$ROOT/action.yml" "$root/root" <<'END_OF_PYTHON'
import re, sys
text = open(sys.argv[1]).read()
inputs = text[text.index("inputs:"):text.index("runs:")]
assert set(re.findall(r"inputs\.(\w+) }}", text)) == set(re.findall(r"^  (\w+):", inputs, re.M))
steps = re.findall(r"- name: (\w+)\n(?:      .*\n)*?      run: \|\n((?:        .*\n)+)", text)
assert [name for name, _ in steps] == ["install", "regress"], steps
for name, lines in steps:
    open(f"{sys.argv[2]}/{name}.sh", "w").write(lines)
END_OF_PYTHON
    run chroot "$root" "${here[@]}" RUNNER_TEMP=/opt WHEEL='evenload-*.whl' bash -e install.sh
    [[ $status -eq 0 ]] || show
    [[ -z $(find "$root"/usr/lib "$root"/lib -name 'libdnnl*' -o -name 'libjansson*') ]]
    try_in chroot "$root" "${here[@]}"
    [[ $output == *"gnuplot"* ]] || show
    judge() { # judge STATUS HEAD
        run chroot "$root" "${here[@]}" RUNNER_TEMP=/opt GITHUB_STEP_SUMMARY=summary BASE='echo step_ms 10 ms' HEAD="$2" OPTIONS='--budget 15m' bash -e regress.sh
        [[ $status -eq $1 && -s $root/root/regress.xml && -s $root/root/summary ]] || show
    }
    judge 0 'echo step_ms 10 ms'
    rm -r "$root/root/regress" "$root/root/regress.xml" "$root/root/summary"
    judge 1 'echo step_ms 12 ms'
    [[ $output == *"::error title=evenload regress"* ]] || show
}
