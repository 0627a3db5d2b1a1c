#!/usr/bin/env bats
# Models over tokens: what a sample counts, from the record to the page, and that every mode evaluates the same tokens.
load common

SMALL=(--model gpt --batch 8 --precision f64 --layers 2 --embed 16 --heads 4 --seq 6 --control none --quiet --launcher own)

@test "throughput is in tokens: record, table, scale, figure and page; FLOP/s beside a machine's" {
    "$EVENLOAD" compare "${SMALL[@]}" --modes single,ddp --devices 2 --data dummy --steps 2 --min-time 0 --machine h100-sxm --repeats 1 --out c >c.txt
    grep -q '^mode     global batch     tokens/s  ' c.txt
    grep -q '^GEMM: .* GFLOP/s (f64), ' c.txt
    grep -qx tokens c/plots/throughput.dat
    "$EVENLOAD" report c >/dev/null
    grep -q '>tokens/s</' c/report.html
    [[ $(json c/results.json '[abs(t["throughput"]["tokens_per_s"] / t["throughput"]["samples_per_s"] - 6) < 1e-9 and t["arithmetic"]["gemm_flop_per_s"] > 1e12
        and 0.9 < t["arithmetic"]["formula_flops_per_step"] / t["flops_per_step"] < 1 for t in d["trials"]]') == "[True, True]" ]]
}

@test "a vocabulary, heads, meshes and texts that do not fit are refused in one line" {
    printf 'too short' >short.txt
    seq 1000 2000 >text.txt
    refuses "--heads: 4 does not divide evenly among 3 devices" "$EVENLOAD" run "${SMALL[@]}" --mode tp --devices 3
    refuses "--vocab 257: does not divide evenly among 2 devices" "$EVENLOAD" run "${SMALL[@]}" --mode tp --devices 2 --vocab 257
    refuses "--heads: 3 does not divide evenly among 2 devices" "$EVENLOAD" run "${SMALL[@]}" --embed 12 --heads 3 --mode pipeline --devices 4 --mesh pp=2,tp=2
    refuses "16 values do not divide evenly among 3 heads" "$EVENLOAD" run "${SMALL[@]}" --heads 3
    refuses "--mesh dp=3,tp=2: dp times tp must be the number of devices (4)" "$EVENLOAD" run "${SMALL[@]}" --mode tp --devices 4 --mesh dp=3,tp=2
    refuses "--mesh pp=2,tp=2: must be like dp=2,tp=2" "$EVENLOAD" run "${SMALL[@]}" --mode tp --devices 4 --mesh pp=2,tp=2
    refuses "--mesh dp=2,pp=2,tp=2: dp times pp times tp must be the number of devices (4)" "$EVENLOAD" run "${SMALL[@]}" --mode pipeline --devices 4 --mesh dp=2,pp=2,tp=2
    refuses "model textcnn cannot be cut across its layers: its layers are convolutions over all of a sentence (gpt and mlp can)" "$EVENLOAD" run --mode tp --devices 2
    refuses "--vocab 100: a text's tokens are its bytes, of which there are 256" "$EVENLOAD" run "${SMALL[@]}" --data text.txt --vocab 100
    for file in data test; do
        refuses "short.txt: 9 bytes are too few for one sequence of 64 and its next byte" "$EVENLOAD" run --model gpt --seq 64 --data text.txt --$file short.txt --epochs 1
    done
}

@test "what each axis costs is said: tables, the difference of two trials, timeline and page" {
    "$EVENLOAD" compare "${SMALL[@]}" --modes ddp,tp --devices 2 --data dummy --steps 2 --min-time 0 --repeats 1 --out c >c.txt
    sed -n '/^Communication by axis/,/^$/p' c.txt >axes.txt
    [[ $(sed -n 's/^\(ddp\|tp\) .* \(data\|tensor\|stage\|copies\) .*/\1 \2/p' axes.txt | xargs) == "ddp data tp tensor" ]] || { cat c.txt && false; }
    "$EVENLOAD" explain c:ddp c:tp --json --out e >e.json
    json e.json '[(a["axis"], a["a_sent_bytes"] > 0, a["b_sent_bytes"] > 0) for a in d["axes"]]' >e.txt
    [[ $(<e.txt) == "[('data', True, False), ('tensor', False, True)]" ]] || { cat e.txt && false; }
    grep -q '^# 1 phase tensor$' c/plots/timeline.dat
    "$EVENLOAD" report c >/dev/null
    grep -q '>Communication by axis<' c/report.html
    "$EVENLOAD" scale "${SMALL[@]}" --modes tp,ddp --devices sim:1,2 --data dummy --steps 2 --min-time 0 --repeats 1 --batch 8 --strong --out s >s.txt
    grep -q '^tp .* tensor ' s.txt && grep -q '^mode  dev.  tokens/s ' s.txt
    run "$EVENLOAD" run "${SMALL[@]}" --mode ddp --devices 2 --data dummy --steps 2 --min-time 0 --out d
    [[ $status -eq 0 && $output != *"by axis"* ]] || show
}

@test "single, ddp and tp evaluate every token once; loss, perplexity and bits a byte" {
    seq -s ' ' 1000 1400 | tr 0-9 a-j >train.txt
    seq -s ' ' 1500 1560 | tr 0-9 a-j >test.txt
    local mode
    for mode in single ddp tp; do
        "$EVENLOAD" run "${SMALL[@]}" --mode $mode --devices $((1 + (${#mode} < 6))) --data train.txt --test test.txt --epochs 1 --repeats 1 --out $mode >$mode.txt
        grep -q '  loss perplexity bits/byte$' $mode.txt
    done
    python3 - <<'END'
import json, math
first = None
for mode in ("single", "ddp", "tp"):
    trial = json.load(open(mode + "/results.json"))["trials"][0]
    for part in (trial["evaluation"], trial["epochs"][0]["held_out"]):
        assert part["counted"] == 6 * part["samples"] > 0, part
        assert math.isclose(part["perplexity"], math.exp(part["loss"])) and math.isclose(part["bits_per_byte"], math.log2(part["perplexity"])), part
    own = [trial["evaluation"][key] for key in ("samples", "correct", "counted")] + [round(trial["evaluation"]["loss"], 9)]
    first = first or own
    assert own == first, (mode, own, first)
assert first[0] == (61 * 5 - 2) // 6, first
END
}

# The entropies are of the text that the run has written: how well its bytes are known without context, and from the byte before.
@test "gpt learns the made-up English: held-out loss below the entropy of its bytes, and below that of pairs of them" {
    "$EVENLOAD" run --model gpt --layers 1 --embed 32 --heads 2 --seq 32 --data synthetic --batch 16 --optimizer adam --lr 0.003 --epochs 1 --json --quiet \
        --out english >english.json
    python3 - <<'END'
import collections, json, math
def entropy(counts):
    return -sum(n * math.log2(n / counts.total()) for n in counts.values()) / counts.total()
text = open("english/data/synthetic-english-1-seed-1-train.txt", "rb").read()
alone, pairs = (entropy(collections.Counter(text[i:i + n] for i in range(len(text) - n + 1))) for n in (1, 2))
trial = json.load(open("english.json"))
found = [part["bits_per_byte"] for part in (trial["epochs"][0]["held_out"], trial["evaluation"])]
print(f"entropy of bytes {alone:.3f}, behind another {pairs - alone:.3f}; held out and test {found}")
assert max(found) < pairs - alone < alone, found
END
}

# dry_run NAME LAYERS WIDTH HEADS PARAMETERS OPTION...: the dry run on 8 devices, in 5 s of a core; with PARAMETERS the first device has them all.
dry_run() {
    (ulimit -S -t 5 && exec "$EVENLOAD" run --model gpt --layers "$2" --embed "$3" --heads "$4" --seq 1024 --data dummy --batch 8 --optimizer adamw \
        --devices sim:8 --dry-run --json "${@:6}" >dry.json)
    [[ $5 == - || $(json dry.json 'd["devices"][0]["peak_by_tag"]["param"] / 4') == "$5.0" ]]
}

@test "GPT-2's four sizes have its numbers of parameters; these and 7 billion are planned on 8 devices in under 5 s of a core each" {
    local size
    while read -r -a size; do
        dry_run "${size[@]}" --vocab 50257 --mode ddp
        size[4]=-
        dry_run "${size[@]}" --vocab 50257 --mode pipeline
        [[ ${size[0]} == xl ]] && continue # 25 heads
        dry_run "${size[@]}" --vocab 50304 --mode tp --mesh dp=2
        dry_run "${size[@]}" --vocab 50304 --mode pipeline --mesh dp=2,pp=2,tp=2
    done <<'.'
small 12 768 12 124439808
medium 24 1024 16 354823168
large 36 1280 20 774030080
xl 48 1600 25 1557611200
7b 32 4096 32 6654210048
.
    refuses "--vocab 50257: does not divide evenly among 8 devices: pad it, as to 50304" "$EVENLOAD" run --model gpt --vocab 50257 --heads 8 --mode tp --devices sim:8
}
