#!/usr/bin/env bats
# Sharded state by the command line: room that ddp lacks, traces and reports, and what is refused. Semantics are tests/equivalence's.
PICTURES=no
load common

GPT=(--model gpt --layers 4 --embed 32 --seq 8 --vocab 64 --data dummy --batch 4 --dtype f64 --optimizer adam --warmup 1 --steps 3 --min-time 0 --control none --quiet)

@test "a model that --device-mem refuses in ddp trains in zero3, as ddp does where it has room" {
    local need
    "$EVENLOAD" run "${GPT[@]}" --mode zero3 --devices 4 --dry-run --json >forecast.json
    need=$(json forecast.json 'max(d["peak_bytes"] for d in d["devices"])')
    run --separate-stderr "$EVENLOAD" run "${GPT[@]}" --mode ddp --devices 4 --procs 1 --device-mem "$need" --out ddp
    [[ $status -eq 1 && $(json ddp/results.json 'd["trials"][0]["status"]') == oom ]] || show
    "$EVENLOAD" run "${GPT[@]}" --mode zero3 --devices 4 --procs 1 --device-mem "$need" --out zero3
    run --separate-stderr "$EVENLOAD" run "${GPT[@]}" --mode zero3 --devices 4 --procs 1 --device-mem $((need - 1)) --out less
    [[ $status -eq 1 && $(json less/results.json 'd["trials"][0]["status"]') == oom ]] || show
    "$EVENLOAD" run "${GPT[@]}" --mode ddp --devices 4 --procs 1 --out room
    python3 - "$need" <<'.'
import json, sys
a, b = (json.load(open(f"{name}/results.json"))["trials"][0] for name in ("zero3", "room"))
assert max(abs(x - y) for x, y in zip(a["loss"], b["loss"], strict=True)) < 1e-12, (a["loss"], b["loss"])
peaks = [[d["memory"]["peak_bytes"] for d in t["per_device"]] for t in (a, b)]
assert max(peaks[0]) == int(sys.argv[1]) < min(peaks[1]) / 2, peaks
.
}

@test "a mesh that does not fit, units that are none, and options that the mode lacks are refused in a line" {
    local refused=0 options words
    while IFS='|' read -r options words; do
        # shellcheck disable=SC2086 # words
        refuses "$words" "$EVENLOAD" run "${QUICK[@]}" --devices 4 --mode $options
        [[ ${#stderr_lines[@]} -eq 1 ]] || show
        refused=$((refused + 1))
    done <<'.'
zero3 --mesh dp=3|--mesh dp=3: 4 devices cannot be divided evenly among that many
zero3 --mesh shard=3|--mesh shard=3: dp times tp times shard must be the number of devices (4)
zero1 --mesh dp=2,shard=4|--mesh dp=2,shard=4: dp times tp times shard must be the number of devices (4)
zero2 --mesh shard=0|--mesh shard=0: must be like dp=2,tp=2,shard=2, each number at least 1
zero2 --mesh dp=2,shard=|--mesh dp=2,shard=: must be like dp=2,tp=2,shard=2
zero3 --mesh pp=2|--mesh pp=2: must be like dp=2,tp=2,shard=2
pipeline --mesh pp=2,shard=2|--mesh pp=2,shard=2: must be like dp=2,pp=2,tp=2
ddp --mesh shard=2|--mesh: mode ddp does not take it
zero3 --unit h.0|--unit: 'h.0' is not one of block|layer|model
zero3 --gather-ahead 3|--gather-ahead: '3' is not one of 1|2|0
zero3 --reduce-in first|--reduce-in: 'first' is not one of each|last
ddp --unit layer|--unit: mode ddp does not take it, zero1 does
zero2 --gather-ahead 2|--gather-ahead: mode zero2 does not take it, zero3 does
zero1 --reshard off|--reshard: mode zero1 does not take it, zero3 does
zero1 --reduce-in last|--reduce-in: mode zero1 does not take it, zero2 does
zero3 --schedule 1f1b|--schedule: mode zero3 does not take it, pipeline does
zero3 --bucket-mb 1|--bucket-mb: mode zero3 does not take it, ddp does
zero3 --batch 3|--batch 3 is smaller than the 4 devices
.
    [[ $refused -eq 18 ]]
}
