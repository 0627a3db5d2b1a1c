#!/usr/bin/env bats
# A model that is cut across its layers: what each device holds and sends, by formulas that are written out here.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

@test "gpt's pieces hold and send what the closed forms say, with and without sequence parallelism" {
    local sizes="" out
    while read -r layers width heads seq vocab batch; do
        for n in 2 4; do
            for by_tokens in off on; do
                out=$layers-$n-$by_tokens
                "$EVENLOAD" run --mode tp --devices "sim:$n" --sequence-parallel $by_tokens --model gpt --layers "$layers" \
                    --embed "$width" --heads "$heads" --seq "$seq" --vocab "$vocab" --batch "$batch" --data dummy \
                    --optimizer adam --warmup 0 --steps 1 --min-time 0 --quiet --out "$out" >/dev/null
                sizes+="$out $layers $width $heads $seq $vocab $batch $n 1 $by_tokens;"
            done
        done
        "$EVENLOAD" run --mode tp --devices sim:4 --mesh dp=2 --sequence-parallel on --model gpt --layers "$layers" \
            --embed "$width" --heads "$heads" --seq "$seq" --vocab "$vocab" --batch "$batch" --data dummy \
            --optimizer adam --warmup 0 --steps 1 --min-time 0 --quiet --out "$layers-copies" >/dev/null
        sizes+="$layers-copies $layers $width $heads $seq $vocab $batch 2 2 on;"
    done <<'END'
2 64 4 32 256 6
3 128 8 48 1024 4
END
    python3 - "$sizes" <<'END'
import json, sys
for case in sys.argv[1].strip(";").split(";"):
    out, *numbers, by_tokens = case.split()
    L, D, H, T, V, B, n, copies = map(int, numbers)
    B //= copies
    s = n if by_tokens == "on" else 1 # between the layers that are cut
    trial = json.load(open(f"{out}/results.json"))["trials"][0]
    assert len(trial["per_device"]) == n * copies
    # Rows of the embedding; weights of 3, 1, 4 and 4 squares of the width, and the biases of the first and third.
    cut = V * D + L * (12 * D * D + 7 * D)
    # Positions, two layer norms a block and the last one; biases of what is summed.
    norms, biases = T * D + L * 4 * D + 2 * D, L * 2 * D
    own = 4 * (cut // n + norms + biases)
    # Before the loss: of a block what the norms take and give, and two numbers a token of each; queries, keys, values,
    # what attention gives, twice the inner layer; a number a token and head.
    x = B * T * D
    block = (4 * x + 4 * B * T) // s + (3 + 1 + 4 + 4) * x // n + B * H * T // n
    # The most is in backward: of the head, with what the last norm takes, gives and notes, and the gradient of what it
    # gives; or of the last block's last layer, with those of all of its outputs, which are the sum's where it has all
    # tokens, and of its inputs.
    activations = 4 * (L * block + max((3 * x + 2 * B * T) // s, (x // s if s > 1 else 0) + x + 4 * x // n))
    whole = 4 * x
    if by_tokens == "on": # a block gathers 6 times (twice again what forward had gathered) and scatters 4 sums
        sent = (6 * L + 3 + 4 * L + 2) * (n - 1) * whole // n + 2 * (n - 1) * 4 * norms // n
    else: # a block all-reduces 4 times, the embedding and the head once
        sent = (4 * L + 2) * 2 * (n - 1) * whole // n
    sent += (n - 1) * 3 * 4 * B * T # the loss
    for device in trial["per_device"]:
        memory, groups = device["memory"]["peak_by_tag"], device["comm"]["by_group"]
        bytes_of = {group["axis"]: group["sent_bytes"] for group in groups.values()}
        found = [memory["param"], memory["optimizer"], memory["grad"], memory["activation"], memory["output"], bytes_of["tensor"]]
        # The head's part of the embedding's gradient is added to the other one. Logits and their gradient, the loss.
        wanted = [own, 2 * own, own + 4 * V * D // n, activations, 2 * 4 * B * T * V // n + 4, sent]
        assert found == wanted, (out, found, wanted)
        assert copies == 1 or bytes_of["data"] == own == memory["bucket"], (out, bytes_of, own)
END
}

@test "what cannot be cut across, or by tokens, is refused by name" {
    local of=(--mode tp --devices sim:4 --sequence-parallel on --dry-run)
    refuses "--sequence-parallel on: --seq 130 does not divide evenly among 4 devices: change it, or --devices" \
        "$EVENLOAD" run "${of[@]}" --model gpt --seq 130
    refuses "--sequence-parallel: mode ddp does not take it, mp does" \
        "$EVENLOAD" run --mode ddp --devices 2 --sequence-parallel on
    refuses "--sequence-parallel on: model mlp has no tokens to cut" "$EVENLOAD" run "${of[@]}" --model mlp
    of=(--mode tp --devices sim:4 --dry-run)
    refuses "--hidden: 30 does not divide evenly among 4 devices" "$EVENLOAD" run "${of[@]}" --model mlp --hidden 8,7,30
    refuses "--model max-norm=1: each device has a part of the classifier's rows" "$EVENLOAD" run "${of[@]}" --model mlp --hidden 8 --model max-norm=1
    refuses "--loss mse: each device has a part of the classes" "$EVENLOAD" run "${of[@]}" --model gpt --loss mse
    refuses "model textcnn cannot be cut across its layers: its layers are convolutions" "$EVENLOAD" run "${of[@]}" --model textcnn
}
