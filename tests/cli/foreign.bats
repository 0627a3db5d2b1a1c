# Files of other tools: PyTorch's memory snapshots, nccl-tests' output, NCCL Inspector's lines.
load common

ROOT=${BATS_TEST_DIRNAME%/tests/cli}

snapshot() { python3 "$ROOT/tests/foreign/snapshot.py" "$@"; }

@test "imbalance of PyTorch's snapshots: DataParallel's devices in one file, by every protocol" {
    for protocol in 2 3 4 5; do
        snapshot dp "p$protocol.pickle" "$protocol"
        run --separate-stderr "$EVENLOAD" imbalance "p$protocol.pickle"
        [[ $status -eq 0 && -z $stderr ]] || show
        [[ ${lines[-2]} == "* cuda:0 holds 52.0 MiB more than cuda:1 at its peak (2.04 times): 40.0 MiB of optimizer" ]] || show
        [[ ${lines[-1]} == "  (train.py:42 step) and 12.0 of gather (train.py:42 step)." ]] || show
    done
    cmp p4.pickle "$ROOT/tests/foreign/dp.pickle"
}

@test "imbalance of two ranks' snapshots, of a folder of them, and of one alone" {
    mkdir s
    snapshot rank s/rank0.pickle 0
    snapshot rank s/rank1.pickle 1
    run --separate-stderr "$EVENLOAD" imbalance s/rank0.pickle s/rank1.pickle
    [[ $status -eq 0 && $output == *"* rank0.pickle cuda:0 holds 16.0 MiB more than rank1.pickle cuda:1"*"of other code (metrics.py:7 keep)."* ]] || show
    two=$output
    run --separate-stderr "$EVENLOAD" imbalance s
    [[ $output == "$two" ]] || show
    run --separate-stderr "$EVENLOAD" imbalance s/rank1.pickle --json
    printf '%s' "$output" >one.json
    [[ $(json one.json 'd["difference"], d["devices"][0]["peak_bytes"], d["devices"][0]["at_peak"]["optimizer"]') == "(None, 94371840, 41943040)" ]] || show
    [[ $(json one.json 'sum(d["devices"][0]["at_peak"].values()) == 94371840, d["devices"][0]["places"][0]["where"]') == "(True, 'train.py:42 step')" ]] || show
    cp s/rank0.pickle s/rank2.pickle
    run --separate-stderr "$EVENLOAD" imbalance s
    [[ $output == *"than the others' mean"* && $output == *"others: the mean of the other devices."* ]] || show
}

@test "a snapshot that is none is one line, and nothing of it is executed" {
    printf 'import os, pickle\nclass Bad:\n    def __reduce__(self): return os.system, ("touch executed",)\npickle.dump({"segments": [Bad()]}, open("bad.pickle", "wb"), 4)\n' | python3 -
    refuses "bad.pickle: byte " "$EVENLOAD" imbalance bad.pickle
    [[ $stderr == *"opcode STACK_GLOBAL: it would make Python import or call something"* && ! -e executed ]] || show
    printf 'import pickle\npickle.dump({"a": 1}, open("other.pickle", "wb"))\n' | python3 -
    refuses "other.pickle: a pickle, but no snapshot of torch.cuda.memory: it has no segments" "$EVENLOAD" imbalance other.pickle
    printf 'PK\003\004xxxx' >zip.pt
    refuses "zip.pt: a file of torch.save" "$EVENLOAD" imbalance zip.pt
    refuses "x.pickle: No such file" "$EVENLOAD" imbalance "$ROOT/tests/foreign/dp.pickle" x.pickle
    refuses "README.md: no pickle of protocols 2 to 5" "$EVENLOAD" imbalance "$ROOT/README.md"
    refuses "measures nothing: leave out --batch" "$EVENLOAD" imbalance bad.pickle --batch 8
    refuses "measures nothing: leave out --out" "$EVENLOAD" imbalance bad.pickle bad.pickle --out x
}
