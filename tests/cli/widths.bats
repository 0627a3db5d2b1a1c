# What every command prints is at most 100 columns wide. Longer may be what is copied and pasted, the next command, and comm's rows, whose
# columns are those of nccl-tests.
PICTURES=no
load common

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
RECORD=$ROOT/results/reference/cpu-2-cores

# show_command COMMAND: its tables, with figures of the usual sizes, in a second at most.
show_command() {
    local small=(--devices 2 --quiet "${QUICK_MODEL[@]}" --batch 8 --launcher own) mlp=(--model mlp --data dummy --min-time 0 --quiet)
    case $1 in
    compare) "$EVENLOAD" compare "${mlp[@]}" --steps 2 --devices sim:2 --batch 128 --modes single,ddp ;;
    run) "$EVENLOAD" run --mode ddp "${small[@]}" --profile active=1 ;;
    report) "$EVENLOAD" report old ;;
    imbalance) "$EVENLOAD" imbalance old && "$EVENLOAD" imbalance --preset two-cards --dry-run ;;
    scale) "$EVENLOAD" scale "${mlp[@]}" --steps 2 --modes ddp --devices sim:1,2 ;;
    explain) "$EVENLOAD" explain "${mlp[@]}" --repeats 2 --devices sim:2 && "$EVENLOAD" explain old:dp:128 old:ddp:128 ;;
    regress) "$EVENLOAD" regress --ab 'echo step_ms 123.4 ms' 'echo step_ms 134.5 ms' --blocks 7 --quiet ;;
    baseline) "$EVENLOAD" baseline add old --store store && "$EVENLOAD" baseline show --store store ;;
    watch) "$EVENLOAD" watch -- sleep 0.1 2>&1 ;;
    trace-stats) "$EVENLOAD" run --mode ddp "${small[@]}" --steps 4 --trace traces >out.txt && "$EVENLOAD" trace-stats traces ;;
    comm) "$EVENLOAD" comm -e 1K --comm local --quiet ;;
    plan) "$EVENLOAD" plan --params 350M --devices 4,mem=16G && ! "$EVENLOAD" plan --params 1.3B --devices mem=1G ;;
    recover) "$EVENLOAD" recover "${QUICK_MODEL[@]}" --steps 40 --checkpoint every=5 --repeats 2 --launcher own 2>&1 ;;
    fleet) "$EVENLOAD" fleet --devices sim:64 --inject 'noise=1,link=7-*:0.5,straggler=9:1.2' --quiet || [[ $? -eq 1 ]] ;;
    verify) "$EVENLOAD" verify --quick --modes dp --launcher own --quiet ;;
    plot | machine) ;; # no tables: names of pictures, a JSON file
    devices | modes) "$EVENLOAD" "$1" ;;
    *) echo "tests/cli/widths.bats: say how '$1' is shown" && return 1 ;;
    esac
}

@test "every command's lines have at most 100 columns" {
    local command
    cp -r "$RECORD" old
    for command in $(every_command); do
        show_command "$command" >"$command.txt" || [[ $? -eq 3 ]] || { echo "$command failed" && cat "$command.txt" && return 1; }
        [[ -s $command.txt || $command =~ ^(plot|machine)$ ]] || { echo "$command printed nothing" && return 1; }
        python3 - "$command" <<'EOF'
import re, sys
name = sys.argv[1]
wide = [line for line in open(name + ".txt").read().splitlines() if len(line) > 100 and not line.startswith(("Next: ", "Again: ", "not drawn: "))]
if name == "comm":
    wide = [line for line in wide if not re.match(r"# |  +\d+  +\d+ ", line)]
assert not wide, "%s prints %d lines that are wider than 100 columns:\n%s" % (name, len(wide), "\n".join(wide))
EOF
    done
}
