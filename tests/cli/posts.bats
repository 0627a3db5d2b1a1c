# docs/posts.md: every command of the page runs as it stands there, on small models and few steps, and what the page shows of an
# output is printed.
load common
PICTURES=no

PAGE=$BATS_TEST_DIRNAME/../../docs/posts.md

# An `evenload` that makes the page's trials small.
small_evenload() {
    mkdir -p bin
    cat >bin/evenload <<'SMALL'
#!/usr/bin/env bash
few=(--warmup 1 --steps 4 --min-time 0 --control none --quiet)
case "$*" in
comm*) exec "$EVENLOAD" "$@" -e 64K --iters 2 --quiet ;;
imbalance* | trace-stats* | *--dry-run*) exec "$EVENLOAD" "$@" ;;
explain*) exec "$EVENLOAD" "$@" --repeats 1 --quiet ;;
*resnet*) exec "$EVENLOAD" "${@/#128/16}" --width 4 --classes 10 --repeats 1 "${few[@]}" ;;
*--epochs*) exec "$EVENLOAD" "${@//2/1}" --devices 2 --procs 1 --batch 64 --vocab 300 --embed 8 --filters 4 --control none --quiet ;;
*--modes*mlp*) exec "$EVENLOAD" "$@" --procs 1 --features 16 --hidden 8 --repeats 1 "${few[@]}" ;;
*mlp*) exec "$EVENLOAD" "$@" --features 16 --hidden 8 --repeats 1 "${few[@]}" ;;
*'run --mode ddp'*) exec "$EVENLOAD" "$@" --launcher own --vocab 300 --embed 8 --filters 4 "${few[@]}" ;;
*) exec "$EVENLOAD" "$@" --vocab 300 --embed 8 --filters 4 "${few[@]}" ;;
esac
SMALL
    chmod +x bin/evenload
    export EVENLOAD
    PATH=$PWD/bin:$PATH
}

# The page's indented blocks: of commands, run as one script, and of what they print.
@test "docs/posts.md: its commands run, and print what it shows" {
    long "the commands of docs/posts.md, 28 s"
    command -v jq >/dev/null || skip "jq is not installed"
    small_evenload
    python3 - "$PAGE" <<'END'
import re, socket, sys
with socket.create_server(("127.0.0.1", 0)) as free: port = free.getsockname()[1]
blocks = re.findall(r"(?:^    .+\n)+", open(sys.argv[1]).read().replace("29511", str(port)), re.M)
for i, block in enumerate(blocks):
    is_command = re.match(r"    (evenload|jq|export) ", block)
    open(f"{i:02}." + ("sh" if is_command else "printed"), "w").write(re.sub("(?m)^    ", "", block))
END
    local block out=none commands=0
    for block in [0-9]*; do
        case $block in
        *.sh)
            run bash -e "$block" </dev/null
            [[ $status -eq 0 ]] || { cat "$block" && show; }
            out=$output
            commands=$((commands + $(grep -c "^[^ ]*evenload\|=. evenload" "$block" || true)))
            ;;
        *) while read -r line; do [[ $out == *"$line"* ]] || { echo "not printed: $line" && echo "$out" && false; }; done <"$block" ;;
        esac
    done
    [[ $commands -ge 13 ]]
    # The mean of the ranks' own losses is the step's.
    [[ $(json results/images/results.json '[(len(t["rank_loss"]), max(abs((a + b) / 2 - c) for a, b, c in zip(*t["rank_loss"], t["loss"]))) for t in d["trials"]]') == "[(2, 0.0)]" ]]
}
