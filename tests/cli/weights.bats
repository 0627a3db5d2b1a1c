#!/usr/bin/env bats
# --save and --load: weights in safetensors files, in every mode, and what is refused before anything is trained.
load common
PICTURES=no

MODEL=(--model textcnn --data train.txt --embed 5 --filters 3 --model dropout=0 --precision f64 --optimizer sgd --lr 0.1)
STEPS=(--batch 8 --warmup 0 --min-time 0 --control none --no-record --quiet --json)

make_data() {
    for i in 1 2 3 4; do printf '0 good fine day %d with us\n1 bad sad night without %d\n' "$i" "$i"; done >train.txt
}

# train OUT OPTION...: the trial's record on OUT.json
train() {
    local out=$1
    shift
    "$EVENLOAD" run "${MODEL[@]}" "${STEPS[@]}" --out "$out" "$@" >"$out.json"
}

# arrays FILE...: by Python, as `f`, a dictionary of (dtype, shape, values) for each file.
arrays() {
    python3 -c 'import json, struct, sys
def read(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8:8 + n]), data[8 + n:]
    form = {"F64": "d", "F32": "f", "I64": "q"}
    return {k: (v["dtype"], v["shape"], [x for x, in struct.iter_unpack("<" + form[v["dtype"]], data[slice(*v["data_offsets"])])])
            for k, v in header.items() if k != "__metadata__"}
f = [read(path) for path in sys.argv[2:]]
far = lambda a, b: max(abs(x - y) for k in a for x, y in zip(a[k][2], b[k][2], strict=True))
print(eval(sys.argv[1]))' "$@"
}

@test "names, shapes and order are PyTorch's: a convolution's channels are second" {
    make_data
    train r --steps 1 --save w.st
    [[ $(arrays '[(k, *v[:2]) for k, v in f[0].items()]' w.st) == "[('embedding.weight', 'F64', [15, 5]), \
('conv3.weight', 'F64', [3, 5, 3]), ('conv3.bias', 'F64', [3]), ('conv4.weight', 'F64', [3, 5, 4]), ('conv4.bias', 'F64', [3]), \
('conv5.weight', 'F64', [3, 5, 5]), ('conv5.bias', 'F64', [3]), ('fc.weight', 'F64', [2, 9]), ('fc.bias', 'F64', [2])]" ]]
    train s --steps 1 --precision f32 --save w32.st
    [[ $(arrays '{v[0] for v in f[0].values()}, 0 < far(*f) < 1e-6' w32.st w.st) == "({'F32'}, True)" ]]
}

@test "what is saved is loaded: without a learning rate the file comes back byte by byte" {
    make_data
    train a --steps 3 --save a.st
    train b --steps 2 --load a.st --lr 0 --save b.st
    cmp a.st b.st
    train c --steps 2 --lr 0 --save c.st
    run cmp -s a.st c.st
    [[ $status == 1 ]]
}

@test "word vectors alone: what the file has is taken in every layout of the model, all else is drawn and said" {
    make_data
    train a --steps 1 --lr 0 --save all.st
    train b --steps 1 --lr 0 --seed 7 --save seven.st
    python3 -c 'import json, struct
data = open("all.st", "rb").read()
n, = struct.unpack("<Q", data[:8])
entry = json.loads(data[8:8 + n])["embedding.weight"]
first, last = entry["data_offsets"]
entry["data_offsets"] = [0, last - first]
header = json.dumps({"embedding.weight": entry}).encode()
open("vectors.st", "wb").write(struct.pack("<Q", len(header)) + header + data[8 + n + first:8 + n + last])'
    local mode
    for mode in single 'zero3 --devices 2 --procs 1' 'mp --devices 2'; do
        # shellcheck disable=SC2086 # a mode and its options
        "$EVENLOAD" run "${MODEL[@]}" --batch 8 --warmup 0 --min-time 0 --control none --no-record --steps 1 --lr 0 --seed 7 \
            --load vectors.st --save got.st --mode $mode --out "c-${mode%% *}" >/dev/null 2>said
        [[ $(head -n 1 said) == "evenload: --load: 8 of 9 arrays of the model are not in vectors.st and are drawn: conv3.weight, "*"fc.bias" ]] || { cat said && false; }
        [[ $(arrays '[k for k in f[0] if f[2][k] != f[0][k]], [k for k in f[0] if f[2][k] != f[1][k]]' all.st seven.st got.st) == \
            "(['conv3.weight', 'conv3.bias', 'conv4.weight', 'conv4.bias', 'conv5.weight', 'conv5.bias', 'fc.weight', 'fc.bias'], ['embedding.weight'])" ]]
    done
}

@test "losses go on where they were: sgd's, whose state the weights are" {
    make_data
    train whole --steps 6
    train first --steps 3 --save w.st
    train rest --steps 3 --load w.st
    # A step has all samples, in an order of its epoch: sums differ in the last bit.
    python3 -c 'import json
whole, first, rest = (json.load(open(f"{name}.json"))["loss"] for name in ("whole", "first", "rest"))
assert len(whole) == 6 and first == whole[:3] and all(abs(x / y - 1) < 1e-14 for x, y in zip(rest, whole[3:], strict=True)), (whole, rest)'
}

@test "every mode begins with the same weights, and saves what single does" {
    make_data
    local mode n=0
    train drawn --steps 1 --seed 5 --save first.st
    train single --steps 3 --load first.st --save single.st
    for mode in 'dp --devices 2' 'ddp --devices 2 --procs 1' 'ddp --devices 2 --launcher own' 'manual --devices 2 --procs 1 --sync param' \
        'spmg --devices 4 --mesh dp=2' 'mp --devices 3' 'pipeline --devices 2 --schedule micro=2 --schedule interleaved' \
        'pipeline --devices 4 --mesh dp=2,pp=2 --schedule micro=2' 'pipeline --devices 2 --procs 2 --schedule micro=4 --launcher own' \
        'zero1 --devices 4 --procs 1' 'zero2 --devices 2 --launcher own' 'zero3 --devices 2 --launcher own --unit reshard=off' \
        'zero3 --devices 4 --procs 1 --mesh dp=2 --unit model'; do
        rm -rf m*
        # shellcheck disable=SC2086 # a mode with its options
        train m --mode $mode --steps 3 --load first.st --save m.st
        [[ $(arrays 'list(f[0]) == list(f[1]), far(f[0], f[1]) < 1e-12, far(f[1], f[2]) > 1e-4' m.st single.st first.st) == "(True, True, True)" ]] ||
            { echo "$mode" && show; }
        n=$((n + 1))
    done
    [[ $n == 13 ]]
    # compare's gate and trials begin with it too.
    "$EVENLOAD" compare "${MODEL[@]}" "${STEPS[@]}" --devices 2 --procs 1 --steps 1 --repeats 1 --load first.st --out c >c.json
    [[ $(json c.json '{round(t["loss"][0], 12) for t in d["trials"]} == {round(json.load(open("single.json"))["loss"][0], 12)}, [g["agrees"] for g in d["gate"]]') == \
        "(True, [True, True, True])" ]]
}

# The third of four is the best; its weights then have its accuracy.
@test "with --epochs the best epoch's weights are saved, sharded ones too" {
    local mode i
    for i in $(seq 60); do echo "$((i * 7 % 10 < 5)) w$((i % 11)) w$((i * 5 % 13)) w$((i * i % 17)) w$((i * 3 % 7))"; done >train.txt
    local epochs=("$EVENLOAD" run "${MODEL[@]}" --test train.txt --batch 6 --quiet --json)
    for mode in single zero1 zero3; do
        "${epochs[@]}" --mode $mode --devices 2 --procs 1 --epochs 4 --lr 0.3 --out e$mode --save $mode.st >e.json
        "${epochs[@]}" --mode $mode --devices 2 --procs 1 --epochs 1 --lr 0 --out l$mode --load $mode.st >l.json
        [[ $(json e.json '[e["held_out_accuracy"] for e in d["epochs"]]') == "[0.0, 0.0, 0.5, 0.0]" ]] || { json e.json 'd["epochs"]' && show; }
        [[ $(json e.json 'd["accuracy"]') == "$(json l.json 'd["accuracy"]')" ]] || { json e.json 'd["epochs"]' && show; }
        [[ $(arrays 'far(*f) < 1e-12' $mode.st single.st) == True ]] || { echo $mode && show; }
    done
}

# The ledger is that of training alone; of the host's memory a process has a parameter more at a time, as doubles: here 16 layers of 4 MiB.
@test "saving shards takes no device memory, and of the host's less than half a model" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer has memory of its own"
    local hidden layers=(--features 1024 --mode zero3 --devices 2 --procs 2 --launcher own --data dummy --optimizer sgd --steps 2)
    hidden=$(printf ',1024%.0s' {1..16})
    python3 - "$EVENLOAD" run --model mlp --hidden "${hidden#,}" "${layers[@]}" "${STEPS[@]}" <<'.'
import json, resource, subprocess, sys
def train(*options):  # the most that a process held, of all so far: the larger run is the second
    trial = json.loads(subprocess.run([*sys.argv[1:], *options], check=True, capture_output=True, text=True).stdout)
    return trial, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
(alone, before), (saved, most) = train("--out", "alone"), train("--out", "saved", "--save", "w.st")
peaks = [[d["memory"]["peak_by_tag"] for d in t["per_device"]] for t in (alone, saved)]
model = alone["param_bytes"]
assert peaks[0] == peaks[1] and all(peak["param"] < 0.51 * model for peak in peaks[1]), peaks
print("a model of", model, "bytes: saved with", most - before, "more in a process, which holds", most)
assert most - before < model / 2 and most < 2.2 * model
.
}

# change CODE: a copy of w.st as bad.st, whose header `h` and data `d` the code has changed.
change() {
    python3 -c 'import json, struct, sys
data = open("w.st", "rb").read()
n, = struct.unpack("<Q", data[:8])
h, d = json.loads(data[8:8 + n]), data[8 + n:]
exec(sys.argv[1])
h = json.dumps(h).encode()
open("bad.st", "wb").write(struct.pack("<Q", len(h)) + h + d)' "$1"
}

@test "a file that does not fit is refused before anything is trained, and nothing is written" {
    make_data
    train r --steps 1 --save w.st
    local load=("$EVENLOAD" run "${MODEL[@]}" --batch 8 --out x --save x.st --load)
    change 'h["fc.bias"]["shape"] = [2, 1]'
    refuses "bad.st: 'fc.bias' is [2, 1], the model's [2]: give the model the sizes" "${load[@]}" bad.st
    change 'h["module.fc.bias"] = h.pop("fc.bias")'
    refuses "bad.st has no 'fc.bias', which the model has, but 'module.' before it, as DistributedDataParallel has" "${load[@]}" bad.st
    change 'h["_orig_mod.fc.bias"] = h.pop("fc.bias")'
    refuses "'_orig_mod.' before it, as torch.compile has: in Python save model._orig_mod.state_dict()" "${load[@]}" bad.st
    change 'o, e = h["fc.bias"]["data_offsets"]; d = d[:o] + b"\xff" * (e - o) + d[e:]'
    refuses "bad.st: 'fc.bias' has a value that is NaN: nothing can be trained from it" "${load[@]}" bad.st
    change 'h["fc.other"] = h.pop("fc.bias")'
    refuses "bad.st: 'fc.other' is no parameter of the model" "${load[@]}" bad.st
    change 'h["more"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(d), len(d) + 4]}; d += bytes(4)'
    refuses "bad.st: 'more' is no parameter of the model" "${load[@]}" bad.st
    change 'h["fc.bias"]["dtype"] = "I64"'
    refuses "bad.st: 'fc.bias' has whole numbers (I64)" "${load[@]}" bad.st
    change 'd = d[:-1]'
    refuses "bad.st: 'fc.bias': its data_offsets lie outside the file" "${load[@]}" bad.st
    refuses "nowhere.st: No such file" "${load[@]}" nowhere.st
    refuses "'embedding.weight' is [15, 5], the model's [15, 6]" "$EVENLOAD" run "${MODEL[@]}" --embed 6 --batch 8 --load w.st
    refuses "nowhere/: No such file" "$EVENLOAD" run "${MODEL[@]}" --batch 8 --save nowhere/w.st
    mkdir weights
    refuses "--save weights: is a directory; give a file in it" "$EVENLOAD" run "${MODEL[@]}" --batch 8 --save weights
    refuses "xxx...: the name is longer than 234 characters: give a shorter one" "$EVENLOAD" run "${MODEL[@]}" --batch 8 --save "$(printf '%0240d' 0 | tr 0 x)"
    refuses "--load: the value is empty: give one, or leave it out" "${load[@]}" ''
    refuses "--save: null devices compute nothing" "$EVENLOAD" run "${MODEL[@]}" --batch 8 --devices null:1 --save x.st
    refuses "--save is an option of 'evenload run'" "$EVENLOAD" compare --save x.st
    [[ ! -e x && ! -e x.st && -z $(find . -name '*.tmp*') ]] || show
}

@test "a file that cannot be written fails the trial, with the reason" {
    make_data
    [[ -c /dev/full ]] || skip "no /dev/full"
    run --separate-stderr "$EVENLOAD" run "${MODEL[@]}" "${STEPS[@]}" --steps 1 --out f --save /dev/full
    [[ $status -eq 1 && $(json f/results.json 'd["trials"][0]["status"]') == failed ]] || show
    [[ $(json f/results.json 'd["trials"][0]["reason"]') == "/dev/full could not be written: No space left on device" ]] || show
}

# A static embedding, as of Kim's CNN-static: its rows are as drawn after any step, in every mode; what is saved goes on being frozen.
@test "--freeze: frozen weights stay bit by bit, all others are trained, and --load and --save have both" {
    make_data
    local mode
    train drawn --steps 1 --lr 0 --save drawn.st
    train whole --steps 3
    for mode in single dp ddp manual spmg mp pipeline zero1 zero2 zero3; do
        train "$mode" --steps 3 --mode "$mode" --devices 2 --procs 1 --save "$mode.st" --freeze embedding
        [[ $(arrays '{k for k in f[0] if f[0][k] == f[1][k]}' drawn.st "$mode.st") == "{'embedding.weight'}" ]] || { echo "$mode" && show; }
        [[ $(arrays 'far(*f) < 1e-12' single.st "$mode.st") == True ]] || { echo "$mode" && show; }
    done
    train rest --steps 2 --load ddp.st --save rest.st --freeze embedding,conv3.weight,fc
    [[ $(arrays 'sorted(k for k in f[0] if f[0][k] == f[1][k])' ddp.st rest.st) == "['conv3.weight', 'embedding.weight', 'fc.bias', 'fc.weight']" ]] || show
    [[ $(json single.json '[d[k] for k in ("param_bytes", "trained_bytes")], d["config"]["freeze"]') == "([2272, 1672], 'embedding')" ]] || show
    refuses "--freeze: textcnn has no parameter or layer 'conv' (it has embedding conv3 conv4 conv5 fc)" "$EVENLOAD" run "${MODEL[@]}" --batch 8 --freeze conv
}

# Of convolutions that the fast kernels store in an order of their own, and with running statistics and their counts.
@test "a residual network: what is saved is loaded, counts go on, and stages count micro-batches" {
    local images=(--model resnet18 --image 32 --width 8 --classes 3 --data dummy --batch 8 --lr 0 --optimizer sgd "${STEPS[@]:2}")
    "$EVENLOAD" run "${images[@]}" --steps 2 --out a --save a.st >/dev/null
    "$EVENLOAD" run "${images[@]}" --steps 1 --out b --load a.st --save b.st >/dev/null
    "$EVENLOAD" run "${images[@]}" --steps 1 --mode pipeline --devices 2 --schedule micro=4 --out c --load a.st --save c.st >/dev/null
    # Without a learning rate nothing but statistics changes.
    [[ $(arrays '[len(f[0])] + [sorted({k.split(".")[-1] for k in x if f[0][k] != x[k]}) == ["num_batches_tracked", "running_mean", "running_var"]
        for x in f[1:]]' a.st b.st c.st) == "[122, True, True]" ]] || show
    [[ $(arrays '[x["layer2.0.downsample.1.num_batches_tracked"][2] for x in f]' a.st b.st c.st) == "[[2], [3], [6]]" ]] || show
    [[ $(arrays 'f[0]["conv1.weight"][1], f[0]["layer1.0.conv1.weight"][1]' a.st) == "([8, 3, 7, 7], [8, 8, 3, 3])" ]]
}

# c_attn is three matrices here, and one in the file.
@test "gpt's file is Hugging Face's; the head may be in it again as lm_head.weight, if it is the embedding" {
    local gpt=(--model gpt --layers 1 --embed 4 --heads 2 --seq 3 --vocab 7 --data dummy --precision f64) case
    "$EVENLOAD" run "${gpt[@]}" "${STEPS[@]}" --steps 1 --save w.st >/dev/null
    [[ $(arrays '[v[1] for k, v in f[0].items() if "attn.c_attn" in k or "c_fc" in k]' w.st) == "[[4, 12], [12], [4, 16], [16]]" ]]
    [[ $(arrays 'len(f[0]), "lm_head.weight" in f[0]' w.st) == "(16, False)" ]]
    python3 - <<'.'
import json, struct
data = open("w.st", "rb").read()
n, = struct.unpack("<Q", data[:8])
header, data = json.loads(data[8:8 + n]), data[8 + n:]
wte = header["transformer.wte.weight"]
again = data[slice(*wte["data_offsets"])]
def write(name, header, data):
    text = json.dumps(header).encode()
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data)
head = {**wte, "data_offsets": [len(data), len(data) + len(again)]}
write("tied.st", header | {"lm_head.weight": head}, data + again)
write("untied.st", header | {"lm_head.weight": head}, data + again[8:] + again[:8])
write("wide.st", header | {"lm_head.weight": {**head, "shape": [4, 7]}}, data + again)
write("body.st", {k.removeprefix("transformer."): v for k, v in header.items()}, data)
write("mask.st", header | {"transformer.h.0.attn.bias": head}, data + again)
.
    "$EVENLOAD" run "${gpt[@]}" "${STEPS[@]}" --steps 1 --lr 0 --load tied.st --save back.st >/dev/null
    cmp w.st back.st
    for case in untied wide; do
        refuses "$case.st: 'lm_head.weight' is not 'transformer.wte.weight'" "$EVENLOAD" run "${gpt[@]}" --load "$case.st"
    done
    refuses "body.st has 'wte.weight' for 'transformer.wte.weight', as GPT2Model has" "$EVENLOAD" run "${gpt[@]}" --load body.st
    refuses "mask.st: 'transformer.h.0.attn.bias' is no parameter" "$EVENLOAD" run "${gpt[@]}" --load mask.st
}
