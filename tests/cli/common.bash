# shellcheck shell=bash
# What the command line's tests share: the program, an empty folder a test, and what a refusal looks like.
if declare -F bats_require_minimum_version >/dev/null; then
    bats_require_minimum_version 1.5.0
    setup_folder() { :; }
else
    source "$(dirname "${BASH_SOURCE[0]}")/older_bats.bash"
fi

EVENLOAD=${EVENLOAD:-$PWD/build/evenload}
# A launch that takes a fraction of a second.
QUICK_MODEL=(--model mlp --features 16 --hidden 8 --data dummy --warmup 1 --steps 2 --min-time 0)
# shellcheck disable=SC2034 # used by the tests
QUICK=("${QUICK_MODEL[@]}" --batch 8)

# What `run --separate-stderr` sets; here so that their use is seen to be meant.
stderr='' stderr_lines=()

setup() {
    setup_folder
    cd "$BATS_TEST_TMPDIR" || return 1
    unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}" RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
    [[ ${PICTURES:-yes} == yes ]] || without_gnuplot
}

# A gnuplot that has no terminal: nothing is drawn, which would take longer than most launches here. A file says PICTURES=no for all its tests.
without_gnuplot() {
    mkdir -p none
    printf '#!/bin/sh\nexit 1\n' >none/gnuplot
    chmod +x none/gnuplot
    PATH=$PWD/none:$PATH
}
with_gnuplot() { PATH=${PATH#"$PWD/none:"}; }

# long WHAT: a test of the long run alone.
long() { [[ ${EVENLOAD_LONG:-} == 1 ]] || { echo "# long: $1" >&3 && skip "only with --long"; }; }

show() { # what a failed test prints
    printf '%s\n' "status ${status:-?}" "--- stdout" "${output:-}" "--- stderr" "${stderr:-}"
    return 1
}

# refuses WORDS COMMAND...: exit status 2, nothing on standard output, one or two lines on standard error with WORDS.
refuses() {
    local words=$1
    shift
    run --separate-stderr "$@"
    [[ $status -eq 2 && -z $output && ${#stderr_lines[@]} -ge 1 && ${#stderr_lines[@]} -le 2 ]] || show
    [[ ${stderr_lines[0]} == "evenload: "* && $stderr == *"$words"* ]] || show
}

# Where python3 is a wrapper that looks for an interpreter, scripts/test has found it once. Without site-packages it starts in half the time.
python3() { command "${EVENLOAD_PYTHON:-python3}" -S "$@"; }

# The names of the commands, as the program lists them.
every_command() { "$EVENLOAD" help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'; }

# json FILE EXPRESSION: its value, by Python, where `d` is the document.
json() {
    python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

# A record of four trials, the last of which ran out of memory; without timelines.
kept_record() { python3 "$(dirname "${BASH_SOURCE[0]}")/../kept_record.py"; }

need_mpirun() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    "$EVENLOAD" devices | grep -q '^  MPI *yes' || skip "this build has no MPI module"
}
has_mpirun() {
    command -v mpirun >/dev/null && "$EVENLOAD" devices | grep -q '^  MPI *yes'
}

# For MASTER_PORT, among torchrun's variables.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'; }

# A PATH with the tools of a shell and without mpirun.
path_without_mpirun() {
    local tool
    mkdir -p tools
    for tool in env sh bash cat ls rm; do ln -sf "$(command -v "$tool")" "tools/$tool"; done
    printf '%s/tools' "$PWD"
}

# bare_root FOLDER [OPTION...]: a bare system like this one, by debootstrap; the caller unmounts its proc.
bare_root() {
    local codename
    command -v debootstrap >/dev/null || skip "debootstrap is not installed"
    [[ $(id -u) -eq 0 ]] || skip "debootstrap needs root"
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
    run debootstrap --variant=minbase "${@:2}" "$codename" "$1"
    [[ $status -eq 0 ]] || skip "debootstrap could not make a root: ${lines[-1]}"
    mount -t proc proc "$1/proc" || skip "no /proc may be mounted here"
}
