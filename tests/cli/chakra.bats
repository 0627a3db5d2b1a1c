#!/usr/bin/env bats
# Chakra's execution traces (`run --chakra`), decoded by protoc from the schema, and played as a simulator's feeder plays them (chakra.py).
load common
PICTURES=no

SHORT=("${QUICK_MODEL[@]}" --steps 6 --control none --batch 8 --quiet)
SCHEMA=${BATS_TEST_DIRNAME:-.}/../../profiles/chakra

need_chakra() {
    "$EVENLOAD" devices | grep -q '^  protobuf *yes' || skip "this build has no protobuf-c"
    command -v protoc >/dev/null || skip "protoc is not installed (protobuf-compiler)"
}

# read_et: Python from standard input, with all of chakra.py.
read_et() {
    { cat "$BATS_TEST_DIRNAME/chakra.py" && printf 'SCHEMA = "%s"\n' "$SCHEMA" && cat; } | python3 -
}

@test "run --chakra: the ops of the recorded steps, each message by protoc; the same as in --trace" {
    need_chakra
    run --separate-stderr "$EVENLOAD" run "${SHORT[@]}" --mode ddp --devices 2 --procs 1 --chakra c --trace t --profile wait=1,active=2,repeat=2 --out o
    [[ $status -eq 0 && $output == *"c/rank.0.et ...    Chakra's execution traces"* ]] || show
    [[ $(ls c) == $'cycle-2\nrank.0.et\nrank.1.et' && $(ls c/cycle-2) == $'rank.0.et\nrank.1.et' ]]
    [[ $(json o/results.json 'd["trials"][0]["profile"]["chakra"]') == c ]]
    read_et <<'.'
ranks = [check(f"c/rank.{r}.et", r, 2) for r in (0, 1)]
for r, nodes in enumerate(ranks):
    assert counts(nodes) == counts(ranks[0]) and counts(nodes)["COMM_COLL_NODE"] >= 2 and {n.a["step"] for n in nodes} == {1, 2}
    events = [e for e in json.load(open(f"t/rank-{r}.json"))["traceEvents"] if e.get("cat") == "cpu_op"]
    kernels = {e["args"]["External id"]: e for e in json.load(open(f"t/rank-{r}.json"))["traceEvents"] if e.get("cat") == "kernel"}
    assert len(events) == len(nodes)
    for e, n in zip(events, nodes):
        a = e["args"]
        assert abs(e["ts"] * 1e3 - n.a["start_time_ns"]) < 1 and abs(e["dur"] * 1e3 - n.a["duration_ns"]) < 1, (e, vars(n))
        assert a["phase"] == n.a["phase"] and a["node"] in n.name and (a.get("flops") or int("bytes" in a)) == n.a.get("num_ops", a.get("flops") or 1), (e, vars(n))
        if n.inputs: assert n.inputs["shapes"] == [str(a["Input Dims"])] and n.outputs["shapes"] == [str(a["Output Dims"])], vars(n)
        if n.type != "COMM_COLL_NODE": continue
        k = kernels[a["External id"]]["args"]
        assert n.a["comm_type"] == 0 and n.a["comm_size"] == 4 * k["In msg nelems"] and n.a["pg_name"] == "0" and n.a["pg_desc"] == "world", vars(n)
        assert n.a["involved_dim"]["values"] == [True] * 4, vars(n)
        assert abs(n.a["wait_ns"] - k["wait (us)"] * 1e3) < 1, vars(n)
    # What waits for an all-reduce waits for its data; what merely comes after another op of its stream is in ctrl_deps too.
    sums = {n.id for n in nodes if n.type == "COMM_COLL_NODE"}
    assert [n for n in nodes if sums & set(n.data) - set(n.ctrl) and n.a["stream"] == 0]
play(ranks)
# Each message by itself.
first, *rest = messages("c/cycle-2/rank.1.et")
assert protoc("ChakraProtoMsg.GlobalMetadata", first)["version"] == ["1.0.0"]
whole = read("c/cycle-2/rank.1.et")[1]
assert [Node(protoc("ChakraProtoMsg.Node", m)).__dict__ for m in rest] == [n.__dict__ for n in whole] and {n.a["step"] for n in whole} == {4, 5}
.
}

@test "run --chakra: sends meet receives, copies of stages have a group of their own, dp's devices stand in one file; simulated devices too" {
    need_chakra
    "$EVENLOAD" run "${SHORT[@]}" --mode pipeline --devices 2 --procs 2 --launcher own --micro 2 --chakra p --out o >/dev/null
    "$EVENLOAD" run "${SHORT[@]}" --mode pipeline --mesh dp=2,pp=2 --devices 4 --procs 1 --micro 2 --chakra m --out q >/dev/null
    "$EVENLOAD" run "${SHORT[@]}" --mode dp --devices 2 --chakra d --out r >/dev/null
    "$EVENLOAD" run "${SHORT[@]}" --mode ddp --devices sim:4 --chakra s --out u >/dev/null
    [[ $(ls d) == rank.0.et ]]
    read_et <<'.'
pipeline = [check(f"p/rank.{r}.et", r, 2) for r in (0, 1)]
play(pipeline)
for nodes in pipeline:  # two steps, two micro-batches there and back
    assert counts(nodes)["COMM_SEND_NODE"] == counts(nodes)["COMM_RECV_NODE"] == 4 and "COMM_COLL_NODE" not in counts(nodes)
mesh = [check(f"m/rank.{r}.et", r, 4) for r in range(4)]
play(mesh)
for r, nodes in enumerate(mesh):
    groups = json.loads(nodes[0].inputs["values"][0][2:-2])
    assert nodes[0].type == "METADATA_NODE" and {g["pg_name"]: g["ranks"] for g in groups} == {"0": [0, 1, 2, 3], str(1 + r % 2): [r % 2, r % 2 + 2]}
    assert {n.a["pg_name"] for n in nodes if n.type == "COMM_COLL_NODE"} == {str(1 + r % 2)}
play([check(f"s/rank.{r}.et", r, 4) for r in range(4)])
dp = check("d/rank.0.et", 0, 1)
play([dp])
assert {n.a["device"] for n in dp[1:]} == {"cpu:0", "cpu:1"} and {n.a["comm_type"] for n in dp if n.type == "COMM_COLL_NODE"} == {1, 5}
.
}

@test "--chakra says what it cannot do, before anything starts" {
    mkdir alone && cp "$EVENLOAD" alone/evenload
    refuses "--chakra: chakra: not built (its library was missing when evenload was built); install libprotobuf-c-dev and protobuf-c-compiler and build again" \
        alone/evenload run "${SHORT[@]}" --chakra c
    [[ ! -e c && ! -e results ]]
    : >file
    refuses "--chakra file: is a file; give a folder" "$EVENLOAD" run "${SHORT[@]}" --chakra file
    refuses "--chakra needs spans, and --no-record keeps none" "$EVENLOAD" run "${SHORT[@]}" --chakra c --no-record
    need_chakra
    mkdir full && mkdir full/rank.0.et
    run --separate-stderr "$EVENLOAD" run "${SHORT[@]}" --chakra full --out o
    [[ $status -eq 1 && $output == *"failed: full/rank.0.et"* ]] || show
}

# MLCommons' own package (PyPI: mlc-chakra), which has the whole schema.
@test "Chakra's own reader reads them: mlc-chakra" {
    [[ -n ${EVENLOAD_LONG-} ]] || skip "long: Chakra's own reader, 2 s"
    need_chakra
    local python=${EVENLOAD_CHAKRA:-python3}
    "$python" -c 'import chakra.schema.protobuf.et_def_pb2' 2>/dev/null || skip "no Python here has Chakra: EVENLOAD_CHAKRA=a python with mlc-chakra"
    "$EVENLOAD" run "${SHORT[@]}" --mode pipeline --mesh dp=2,pp=2 --devices 4 --procs 1 --micro 2 --chakra m --out q >/dev/null
    "$python" - >theirs <<'.'
from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node, NodeType
from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd
file, head, node = openFileRd("m/rank.3.et"), GlobalMetadata(), Node()
assert decodeMessage(file, head) and head.version == "1.0.0"
while decodeMessage(file, node):
    assert not [a.name for a in node.attr if a.WhichOneof("value") is None]
    print(node.id, NodeType.Name(node.type), node.name, list(node.data_deps), node.duration_micros)
.
    read_et >ours <<'.'
for n in read("m/rank.3.et")[1]: print(n.id, n.type, n.name, n.data, n.duration_us)
.
    [[ -s ours ]] && diff theirs ours
}
