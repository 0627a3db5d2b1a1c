# Ranks in processes of their own on cards that are none (tests/cards): what NCCL's communicator computes with its members in several
# processes, in each mode. Losses are those of one CPU device, in f64.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load common
PICTURES=no
stderr='' # set by run

CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
FOUR=cuda:0,cuda:1,cuda:2,cuda:3
SHORT=(--data dummy --dtype f64 --steps 4 --warmup 0 --min-time 0 --control none --launcher own --quiet --timeout 60)
MLP=(--model mlp --features 16 --hidden '12,8,8' --batch 16)
TEXT=(--model textcnn --vocab 200 --embed 8 --filters 4 --seq 12 --batch 8 --dropout 0)
RESNET=(--model resnet18 --image 16 --width 4 --classes 4 --batch 4)

need_cards() {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    export FAKE_CARDS=4 FAKE_CARDS_SEED=${FAKE_CARDS_SEED:-11}
    echo "# FAKE_CARDS_SEED=$FAKE_CARDS_SEED"
}

# same_losses NAME REFERENCE_OPTIONS -- OPTIONS...: the run on cards, over NCCL, has the losses of the CPU's.
same_losses() {
    local name=$1 reference=()
    shift
    while [[ $1 != -- ]]; do reference+=("$1") && shift; done
    shift
    [[ -e $name.cpu/results.json ]] || "$CARDS" run "${SHORT[@]}" "${reference[@]}" --out "$name.cpu" >cpu.out 2>&1 || { cat cpu.out && return 1; }
    rm -rf run
    "$CARDS" run "${SHORT[@]}" "$@" --out run >run.out 2>&1 || { cat run.out && return 1; }
    python3 - "$name.cpu/results.json" run/results.json <<'END' || { echo "differs: $*" && return 1; }
import json, sys
cpu, cards = (json.load(open(path))["trials"][0] for path in sys.argv[1:])
assert cards["communicator"] == "nccl", cards["communicator"]
far = max(abs(a - b) / abs(a) for a, b in zip(cpu["loss"], cards["loss"]))
assert len(cpu["loss"]) == len(cards["loss"]) == 4 and far < 1e-9, (cpu["loss"], cards["loss"])
END
}
mlp() { same_losses mlp --mode single --devices 1 "${MLP[@]}" -- "${MLP[@]}" "$@"; }
text() { same_losses text --mode single --devices 1 "${TEXT[@]}" -- "${TEXT[@]}" "$@"; }
resnet() { same_losses resnet --mode ddp --devices 2 --procs 2 "${RESNET[@]}" -- "${RESNET[@]}" "$@"; }

@test "ranks on cards have the CPU's losses" {
    need_cards
    text --mode ddp --devices $FOUR --procs 4
    mlp --mode spmg --devices $FOUR --procs 2
    mlp --mode pipeline --mesh dp=2,pp=2 --devices $FOUR --procs 4
    mlp --mode ddp --devices $FOUR --procs 4 --graph on --bucket-mb 0.001 --first-bucket-mb 0.001
    [[ $(json run/results.json 'd["trials"][0]["repeats"][0]["graph_steps"]') == 1 ]] || { json run/results.json 'd["trials"][0]["repeats"]' && false; }
    # One process: what a thread asks for while another's collective waits for it.
    mlp --mode ddp --devices cuda:0,cuda:1 --procs 1
}

@test "ranks on cards have the CPU's losses in every mode, with delays of several seeds" {
    [[ ${EVENLOAD_LONG:-} == 1 ]] || {
        echo "# long: each mode of ranks on fake cards, with 5 seeds: a minute" >&3
        skip "takes a minute"
    }
    for FAKE_CARDS_SEED in 1 2 3 4 5; do
        need_cards
        mlp --mode ddp --devices $FOUR --procs 4 --bucket-mb 0.001 --first-bucket-mb 0.001
        mlp --mode ddp --devices $FOUR --procs 1
        mlp --mode manual --devices cuda:0,cuda:1 --procs 2
        mlp --mode spmg --devices $FOUR --procs 2
        mlp --mode mp --devices cuda:0,cuda:1 --procs 2
        mlp --mode pipeline --devices $FOUR --procs 4 --micro 4
        mlp --mode pipeline --devices $FOUR --procs 1 --micro 4
        mlp --mode pipeline --mesh dp=2,pp=2 --devices $FOUR --procs 4
        text --mode ddp --devices $FOUR --procs 4
        resnet --mode ddp --devices cuda:0,cuda:1 --procs 2
        resnet --mode ddp --devices cuda:0,cuda:1 --procs 1
    done
}
