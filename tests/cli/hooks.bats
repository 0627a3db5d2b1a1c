#!/usr/bin/env bats
# --comm-hook: lists, names, bytes and memory of simulated devices, and what is refused. What hooks compute: torch.bats.
load common

MLP=(--model mlp --features 100 --hidden 80 --classes 10 --data dummy --batch 8 --warmup 3 --steps 3 --min-time 0 --control none --quiet)

@test "compare --comm-hook makes a row of each, and says bytes and loss against none" {
    run --separate-stderr "$EVENLOAD" compare --modes single,ddp --devices 2 --comm-hook none,f16,bf16 "${MLP[@]}" --repeats 1 --out r
    [[ $status -eq 0 ]] || show
    [[ $(json r/results.json '[t["config"]["comm_hook"] for t in d["trials"]]') == "['none', 'none', 'f16', 'bf16']" ]] || show
    [[ $output == *"ddp f16 "* && $output == *"ddp bf16 "* ]] || show
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"ddp f16 against ddp at batch 8: 0.50 times the bytes sent"*"; loss "*" after 6 steps, not "* ]] || show
    [[ $output != *"single against"* ]] || show
}

# 100 x 80, 80, 80 x 10 and 10 values; of two ranks each sends what its buckets hold.
@test "bytes and memory of a hook in a dry run, and on simulated devices, are closed forms" {
    local hook sent
    while read -r hook sent; do
        "$EVENLOAD" run --mode ddp --devices null:2 --procs 1 --comm-hook "$hook" "${MLP[@]}" --dry-run --json >dry.json
        "$EVENLOAD" run --mode ddp --devices sim:2 --comm-hook "$hook" "${MLP[@]}" --json --out "$hook" >sim.json
        [[ $(json dry.json 'd["devices"][0]["peak_by_tag"]["bucket"]') == "$sent" ]]
        [[ $(json sim.json 'd["per_device"][1]["sent_bytes"], d["per_device"][1]["memory"]["peak_by_tag"]["bucket"]') == "($sent, $sent)" ]]
    done <<'.'
none 35560
f16 17780
bf16 17780
.
}

@test "hooks that there are not, and what they do not go with, are refused in a line" {
    refuses "--comm-hook: 'f17' is not one of none|f32|f16|bf16" "$EVENLOAD" run --mode ddp --comm-hook f17
    refuses "'run' takes one value" "$EVENLOAD" run --mode ddp --comm-hook none,f16
    refuses "--comm-hook f16: gradients of f64 are reduced as they are" "$EVENLOAD" run --mode ddp --devices 2 --precision f64 --comm-hook f16
    refuses "leave --comm-hook out" "$EVENLOAD" run --mode ddp --devices 2 --bucket-mb view --comm-hook f16
    refuses "did you mean '--comm-hook'" "$EVENLOAD" run --mode ddp --reduce-dtype bf16
}
