# shellcheck shell=bash
# Functions the scripts share: how to say something, how to run something long, what is to be found on this machine.
# Sourced, never run. The caller stands in the project's root afterwards.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

say() { printf '%s\n' "$*"; }
fail() {
    printf 'evenload: %s\n' "$*" >&2
    exit 2
}
have() { command -v "$1" >/dev/null 2>&1; }
join() { # join SEPARATOR WORD...
    local separator=$1 line=${2-}
    shift $(($# < 2 ? $# : 2))
    for word in "$@"; do line+=$separator$word; done
    printf '%s' "$line"
}

# CPU devices pin threads and read /proc and /sys, so that the suite needs Linux; elsewhere a container is the way.
require_linux() {
    case $(uname -s) in
    Linux) ;;
    Darwin) fail "macOS: evenload needs Linux. In a container:
    docker run --rm -it -v \"\$PWD\":/evenload -w /evenload debian:12 scripts/quickstart" ;;
    *) fail "Windows: evenload needs Linux. In PowerShell \`wsl --install -d Debian\`, then in the window it opens
    clone the project again and run scripts/quickstart there." ;;
    esac
}

# step WORDS LOG COMMAND...: runs a command with its output in LOG; says so when it takes more than two seconds, and
# every ten from then on. The command stays in the foreground, so that Ctrl-C ends it.
step() {
    local words=$1 log=$2 began=$SECONDS status=0 ticker
    shift 2
    mkdir -p "$(dirname "$log")"
    (
        sleep 2 >/dev/null 2>&1
        say "$words ..."
        while sleep 10 >/dev/null 2>&1; do say "$words ... $((SECONDS - began)) s"; done
    ) &
    ticker=$!
    "$@" >"$log" 2>&1 </dev/null || status=$?
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    if ((status == 0 && SECONDS - began >= 2)); then say "$words: done in $((SECONDS - began)) s"; fi
    return "$status"
}

# torch_python [PYTHON]: prints a Python that has PyTorch: the one given, else that of a virtual environment under build/, which is
# made at the first use by pip (some GiB, some minutes).
torch_python() {
    local python=${1:-$PWD/build/torch/bin/python}
    if [[ -z ${1-} ]] && ! "$python" -c 'import torch' 2>/dev/null; then
        have python3 || fail "python3 is not installed: it makes the environment for PyTorch"
        step "installing PyTorch into build/torch" build/logs/torch.log make_torch >&2 || {
            tail_of build/logs/torch.log 5 >&2
            fail "PyTorch could not be installed (build/logs/torch.log): name a Python that has it"
        }
    fi
    "$python" -c 'import torch' 2>/dev/null || fail "$python has no PyTorch: 'import torch' fails"
    say "$python"
}

make_torch() {
    python3 -m venv build/torch && build/torch/bin/pip install torch numpy safetensors
}

# The last lines of a log, indented, for a failure.
tail_of() { # tail_of LOG LINES
    tail -n "$2" "$1" | sed 's/^/    /'
}
