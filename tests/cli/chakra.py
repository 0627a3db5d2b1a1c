# Chakra's execution traces, read as others read them: a file's messages are split by their lengths and decoded by protoc, and
# feeders are played over the files of all ranks together.
import collections, json, subprocess, sys

SCHEMA = None  # the folder of et_def.proto


def messages(path):
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            length, shift, at = length | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128: break
        assert at + length <= len(data), (path, at, length)
        out.append(data[at:at + length])
        at += length
    return out


def varint(value):
    out = b""
    while value > 127: out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


# protoc's text: names with a value, or with a message in braces; each may come several times.
def parse(text):
    top = collections.defaultdict(list)
    stack = [top]
    for line in map(str.strip, text.splitlines()):
        if line == "}": stack.pop()
        elif line.endswith(" {"):
            stack.append(collections.defaultdict(list))
            stack[-2][line[:-2]].append(stack[-1])
        else:
            name, value = line.split(": ", 1)
            assert name.isidentifier(), ("a field that the schema does not have", line)
            stack[-1][name].append(json.loads(value.replace("\\'", "'")) if value[0] in '"-0123456789tf' else value)
    return top


def protoc(kind, data, folders=(), schema="et_def.proto"):
    command = ["protoc", "-I" + SCHEMA, *("-I" + f for f in folders), "--decode=" + kind, schema]
    return parse(subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout.decode())


def attributes(message):
    out = {}
    for row in message["attr"]:
        (value,) = [v for k, v in row.items() if k != "name"]
        assert len(row["name"]) == len(value) == 1 and row["name"][0] not in out, row
        out[row["name"][0]] = value[0]
    return out


class Node:
    def __init__(self, message):
        one = lambda name, default: (message[name] or [default])[0]
        self.id, self.name, self.type = one("id", 0), one("name", ""), one("type", "INVALID_NODE")
        self.data, self.ctrl = message["data_deps"], message["ctrl_deps"]
        self.start_us, self.duration_us = one("start_time_micros", 0), one("duration_micros", 0)
        self.inputs, self.outputs = one("inputs", {}), one("outputs", {})
        self.a = attributes(message)


# All messages of a file by one protoc: as fields of a message round them, whose lengths are the same.
def read(path):
    first, *rest = messages(path)
    with open("around.proto", "w") as file:
        file.write('syntax = "proto3";\nimport "et_def.proto";\n'
                   "message Around { ChakraProtoMsg.GlobalMetadata head = 1; repeated ChakraProtoMsg.Node nodes = 2; }\n")
    data = b"".join(tag + varint(len(m)) + m for tag, m in [(b"\x0a", first)] + [(b"\x12", m) for m in rest])
    top = protoc("Around", data, ["."], "around.proto")
    assert len(top["nodes"]) == len(rest)
    return top["head"][0], [Node(n) for n in top["nodes"]]


# What every file promises; what of time is, on one clock.
def check(path, rank, world):
    head, nodes = read(path)
    about = attributes(head)
    assert head["version"] == ["1.0.0"] and about["rank"] == rank and about["world_size"] == world, head
    by_id = {n.id: n for n in nodes}
    assert len(by_id) == len(nodes)
    for n in nodes:
        assert all(d in by_id for d in n.data) and len(set(n.data)) == len(n.data) and set(n.ctrl) <= set(n.data), vars(n)
        if n.type == "METADATA_NODE": continue
        assert n.start_us == n.a["start_time_ns"] // 1000 and n.duration_us == (n.a["duration_ns"] + 500) // 1000, vars(n)
        assert n.type != "COMP_NODE" or {"num_ops", "tensor_size"} <= set(n.a), vars(n)
        assert n.a["live_bytes"] > 0 and n.a["is_cpu_op"] == (n.name in ("load", "thread")), vars(n)
        for d in map(by_id.get, n.data):
            assert n.a["start_time_ns"] >= d.a["start_time_ns"] + d.a["duration_ns"], (vars(n), vars(d))
    steps = [n.a["step"] for n in nodes if "step" in n.a]
    assert steps == sorted(steps)
    for step in sorted(set(steps))[1:]:  # whatever begins one depends on the one before
        assert {by_id[d].a["step"] for n in nodes if n.a.get("step") == step for d in n.data} == {step - 1, step}
    return nodes


# Plays a feeder for each rank: what has no open data_deps is issued, by number; a collective ends when all of its group
# have come to it, what is received when it was sent. All must come to an end, so nothing depends on itself.
def play(ranks):
    groups = {0: list(range(len(ranks)))}
    for nodes in ranks:
        for n in nodes:
            if n.type == "METADATA_NODE":
                groups.update({int(g["pg_name"]): g["ranks"] for g in json.loads(n.inputs["values"][0][2:-2])})
    left = [{n.id: n for n in nodes} for nodes in ranks]
    calls, of, order, sent = collections.defaultdict(list), {}, collections.Counter(), collections.Counter()
    ended, moved = [set() for _ in ranks], True
    while moved:
        moved = False
        for r, nodes in enumerate(left):
            for n in list(nodes.values()):
                if not set(n.data) <= ended[r]: continue
                if n.type == "COMM_COLL_NODE":
                    if (r, n.id) not in of:
                        member = r, n.a["device"], n.a["pg_name"]
                        of[r, n.id] = calls[n.a["pg_name"], order[member]]
                        of[r, n.id].append((r, n))
                        order[member] += 1
                    together = of[r, n.id]
                    assert len({(m.a["comm_type"], m.a["comm_size"]) for _, m in together}) == 1, [vars(m) for _, m in together]
                    if len(together) < n.a["group_size"]: continue
                    assert {q for q, _ in together} == set(groups[int(n.a["pg_name"])]), (together, groups)
                elif n.type in ("COMM_SEND_NODE", "COMM_RECV_NODE"):
                    assert n.a["comm_src" if n.type == "COMM_SEND_NODE" else "comm_dst"] == r, vars(n)
                    message = tuple(n.a["comm_" + key] for key in ("src", "dst", "tag", "size"))
                    if n.type == "COMM_RECV_NODE" and not sent[message]: continue
                    sent[message] += 1 if n.type == "COMM_SEND_NODE" else -1
                ended[r].add(n.id)
                del nodes[n.id]
                moved = True
    assert not any(left), [list(map(vars, nodes.values()))[:2] for nodes in left]
    assert not any(sent.values()), sent


def counts(nodes):
    return dict(sorted(collections.Counter(n.type for n in nodes).items()))
