# Ranks in processes of their own on cards that are none (tests/cards): what NCCL's communicator computes with its members in several
# processes, in each mode. Losses are those of one CPU device, in f64.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load common
PICTURES=no
stderr='' # set by run

CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
FOUR=cuda:0,cuda:1,cuda:2,cuda:3
SHORT=(--data dummy --precision f64 --steps 4 --warmup 0 --min-time 0 --control none --launcher own --quiet --timeout 60)
MLP=(--model mlp --features 16 --hidden '12,8,8' --batch 16)
TEXT=(--model textcnn --vocab 200 --embed 8 --filters 4 --seq 12 --batch 8 --model dropout=0)
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
    mlp --mode ddp --devices $FOUR --procs 4 --graph on --bucket-mb 0.001,first=0.001
    [[ $(json run/results.json 'd["trials"][0]["repeats"][0]["graph_steps"]') == 1 ]] || { json run/results.json 'd["trials"][0]["repeats"]' && false; }
    # One process: what a thread asks for while another's collective waits for it.
    mlp --mode ddp --devices cuda:0,cuda:1 --procs 1
}

# one_card OPTIONS...: two ranks that share a card, which NCCL takes for two hosts.
one_card() { FAKE_CARDS=1 "$@" --devices cuda:0,cuda:0 --procs 2 --comm nccl; }

@test "ranks that share a card train by NCCL" {
    need_cards
    one_card mlp --mode ddp --graph on --bucket-mb 0.001
    one_card mlp --mode pipeline
    [[ $(json run/results.json 'd["environment"]["nccl"]["variables"]["NCCL_HOSTID"]') == evenload-0 ]] || { json run/results.json 'd["environment"]["nccl"]' && false; }
    NCCL_HOSTID=mine run one_card "$CARDS" run "${SHORT[@]}" "${MLP[@]}" --mode ddp --out same
    [[ $status -eq 1 && $(json same/results.json 'd["trials"][0]["reason"]') == *"ranks 0 and 1 share one GPU"*"--comm nccl --launcher own"*"--comm shm" ]] || show
    mkdir -p bare/modules
    ln -s "${CARDS%/*}/lib" bare/lib
    ln "$CARDS" bare/ && ln "${CARDS%/*}/modules/el_cuda.so" bare/modules/
    refuses "nccl: not built" one_card bare/evenload run "${SHORT[@]}" "${MLP[@]}" --mode ddp
}

@test "ranks that share a card train by NCCL in every mode" {
    long "each mode of two ranks on one fake card: 5 seconds"
    need_cards
    for mode in ddp manual mp tp zero1 zero2 zero3; do one_card mlp --mode $mode; done
    FAKE_CARDS=1 mlp --mode spmg --devices cuda:0,cuda:0,cuda:0,cuda:0 --procs 2 --comm nccl
    one_card text --mode ddp
    one_card resnet --mode ddp
}

@test "ranks on cards have the CPU's losses in every mode, with delays of several seeds" {
    long "each mode of ranks on fake cards, with 5 seeds: a minute"
    for FAKE_CARDS_SEED in 1 2 3 4 5; do
        need_cards
        mlp --mode ddp --devices $FOUR --procs 4 --bucket-mb 0.001,first=0.001
        mlp --mode ddp --devices $FOUR --procs 1
        mlp --mode manual --devices cuda:0,cuda:1 --procs 2
        mlp --mode spmg --devices $FOUR --procs 2
        mlp --mode mp --devices cuda:0,cuda:1 --procs 2
        mlp --mode pipeline --devices $FOUR --procs 4 --schedule micro=4
        mlp --mode pipeline --devices $FOUR --procs 1 --schedule micro=4
        mlp --mode pipeline --mesh dp=2,pp=2 --devices $FOUR --procs 4
        text --mode ddp --devices $FOUR --procs 4
        resnet --mode ddp --devices cuda:0,cuda:1 --procs 2
        resnet --mode ddp --devices cuda:0,cuda:1 --procs 1
    done
}
