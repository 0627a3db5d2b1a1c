# README's commands, each as it stands there, from a fresh installation with nothing but PATH (and HOME) set, in an empty folder.
# What takes long is run with small settings, and without pictures; --long runs everything as it is written.
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
TINY='--model mlp --features 16 --hidden 8 --data dummy --warmup 1 --steps 2 --min-time 0 --control none'

# commands FILE: the indented lines that are commands, without their remarks.
commands() {
    sed -nE 's/^    ((evenload|make|export|scripts\/[a-z]+) ?.*)/\1/p' "$1" | sed -E 's/ +# .*//'
}

# Installs as README says, then opens the same shell again for each command.
setup_file() {
    export FRESH LINES
    FRESH=$(mktemp -d "${TMPDIR:-/tmp}/evenload-XXXXXX")
    (cd "$ROOT" && HOME=$FRESH bash -ec "$(commands README.md | grep '^make ')") >"$FRESH/log" 2>&1 || { cat "$FRESH/log" && return 1; }
}

teardown_file() {
    rm -rf "$FRESH"
}

# In the short run: the same command on a small model, with few steps. Refused where it would not be the same command.
quickened() {
    [[ ${EVENLOAD_LONG:-} != 1 ]] || { echo "$1" && return; }
    case $1 in
    *--dry-run* | *' plot '* | *' imbalance results/'* | *' devices' | *' modes' | *' plan '* | *' report '* | *' watch '* | *' explain results/'* | *' fleet '*) echo "$1" ;;
    *' verify '*) ;; # tests of their own
    *' regress '*) echo "${1//--json --quiet/--json --quiet $TINY --batch 8} --blocks 1" ;;
    *--epochs*) echo "${1/--epochs [0-9]/--epochs 1} --vocab 300 --embed 8 --filters 4 --control none" ;;
    *' comm') echo "$1 -b 1K -e 64K -n 2 -w 1" ;;
    *' data '*) echo "$1 --model mlp --features 16 --hidden 8 --warmup 1 --steps 2 --min-time 0 --workers 1 --data-in cache=warm --repeats 1" ;;
    *' run '*) echo "$1 $TINY --batch 8" ;;
    *' explain '*) echo "$1 --features 16 --hidden 8 --min-time 0 --batch-per-device 8 --repeats 1" ;;
    *) echo "$1 $TINY --batch-per-device 8 --repeats 1" ;;
    esac
}

@test "README's commands run as they stand, from a fresh installation" {
    local line command path folders n=0 drawing=$PATH
    path=$(commands "$ROOT/README.md" | grep '^export PATH=')
    [[ -n $path ]] || { echo "README sets no PATH" && return 1; }
    without_gnuplot
    [[ ${EVENLOAD_LONG:-} == 1 ]] || echo "# long: README's commands as they are written, about ten minutes" >&3
    while read -r line; do
        command=$(quickened " $line")
        [[ -n $command ]] || continue
        folders=$PATH # in the short run only those draw that do nothing else
        if [[ ${EVENLOAD_LONG:-} == 1 || $command == *' plot '* || $command == *' report '* ]]; then folders=$drawing; fi
        run --separate-stderr env -i PATH="$folders" HOME="$FRESH" bash -c "$path; $command" </dev/null
        # A gate on so few blocks may say anything but that it could not judge.
        [[ $status -eq 0 || ($command == *' regress '* && $status =~ ^[13]$) ]] || { echo "README: $line" "as: $command" && show; }
        [[ $output != *"$ROOT"* ]] || { echo "README: $line" "names the source tree" && show; }
        n=$((n + 1))
    done < <(commands "$ROOT/README.md" | grep '^evenload ')
    [[ $n -ge 10 ]] || { echo "only $n commands were found in README" && return 1; }
}

@test "README has at most 150 lines, and names every page" {
    local target
    [[ $(wc -l <"$ROOT/README.md") -lt 150 ]] || { echo "README has $(wc -l <"$ROOT/README.md") lines" && return 1; }
    while read -r target; do
        grep -q "docs/${target##*/}" "$ROOT/README.md" || { echo "README does not name docs/${target##*/}" && return 1; }
    done < <(find "$ROOT/docs" -maxdepth 1 -name '*.md')
}

# What a reader can run, and what is shown, is the same in both: commands, output, pictures, links, the modes and headings by number.
@test "README.zh.md is in step with README.md" {
    python3 - "$ROOT/README.md" "$ROOT/README.zh.md" <<'EOF'
import re, sys
def read(path):
    lines = open(path).read().split("\n")
    blocks = [re.sub(r" +# .*", "", line) for line in lines if line.startswith("    ")]
    text = "\n".join(lines)
    links = sorted(t for t in re.findall(r"\]\(([^)#]+)", text) if "README" not in t)
    return {"commands and output": blocks, "links": links, "modes": re.findall(r"^\| `(\w+)`", text, re.M), "headings": re.findall(r"^(#+) ", text, re.M),
            "figures": sorted(re.findall(r"\d+\.\d+", "\n".join(line for line in lines if not line.startswith("    "))))}
ours, theirs = read(sys.argv[1]), read(sys.argv[2])
for what in ours:
    missing = [x for x in ours[what] if x not in theirs[what]]
    assert ours[what] == theirs[what], f"README.zh.md has other {what} than README.md; missing: {missing[:3]}, more: {[x for x in theirs[what] if x not in ours[what]][:3]}"
EOF
}

@test "README's table of modes is the program's list" {
    "$EVENLOAD" modes --json >"$BATS_TEST_TMPDIR/modes.json"
    python3 - "$BATS_TEST_TMPDIR/modes.json" "$ROOT/README.md" <<'EOF'
import json, sys
modes = json.load(open(sys.argv[1]))
wanted = ["| mode | what it does | memory of a device |", "|--|--|--|"]
wanted += [f"| `{m['mode']}` | {m['does']} | {m['memory']} |" for m in modes]
text = "\n".join(wanted) + "\n"
assert len(modes) >= 6 and text in open(sys.argv[2]).read(), "README's table of modes should be:\n" + text
EOF
}
