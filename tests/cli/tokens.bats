#!/usr/bin/env bats
# Models over tokens: what a sample counts, from the record to the page, and that every mode evaluates the same tokens.
load common

SMALL=(--model gpt --batch 8 --dtype f64 --layers 2 --embed 16 --heads 4 --seq 6 --control none --quiet --launcher own)

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
