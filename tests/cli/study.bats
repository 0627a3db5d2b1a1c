# `study`: the list, the published table by forecast, and its refusals. Not the measured run, which takes a minute and
# 4.1 GiB; that a forecast is what a run then holds is tests/equivalence/test_memory's.
load common

@test "study lists the studies" {
    run --separate-stderr "$EVENLOAD" study
    [[ $status -eq 0 && $output == *two-cards* && $output == *Next:* && -z $stderr ]] || show
    "$EVENLOAD" study --json >list.json
    [[ $(json list.json '[s["name"] for s in d]') == "['two-cards']" ]]
}

@test "an unknown study is refused, with a suggestion" {
    refuses "unknown study 'two-card': did you mean 'two-cards'?" "$EVENLOAD" study two-card
    refuses "unexpected argument 'more'" "$EVENLOAD" study two-cards more
    refuses "is an option of 'evenload compare', not of 'study'" "$EVENLOAD" study two-cards --repeats 3
}

@test "two-cards takes two devices, and those that are there" {
    refuses "this study has two cards, 3 devices are named: take cpu:2, cuda:0,cuda:1" "$EVENLOAD" study two-cards --devices cpu:3 --out r
    refuses "cuda" "$EVENLOAD" study two-cards --devices cuda:900,cuda:901 --out r
    [[ ! -e r ]] || show
    run --separate-stderr "$EVENLOAD" study two-cards --dry-run --devices cuda:0,cuda:0
    [[ $stderr != *"built without CUDA"* ]] || skip "built without CUDA"
    [[ $status -eq 1 && $output == *"Ours, predicted: dp on cuda:0 and cuda:0, adam"* ]] || show
    [[ ${lines[-1]} == "Next: "*" study two-cards --devices cuda:0,cuda:0 "* ]] || show
}

@test "two-cards --dry-run prints candidates, comparison and verdict, and writes nothing" {
    run --separate-stderr "$EVENLOAD" study two-cards --dry-run
    [[ $status -eq 1 && -z $stderr && ! -e results ]] || show
    for words in "adam      NCCL         kept         6    459.0" "impossible: C not above 0" "the figures alone do not" predicted \
        unattrib. "sentences of 252 words (fitted)" "each tag's own peak" "Beside it, not judged" "have 836" \
        "400,559 to 413,935 words" "0.6 MiB" "FAIL: main minus second within 3 % at 2 of 3 batches"; do
        [[ $output == *"$words"* ]] || { echo "no '$words'" && show; }
    done
    [[ ${lines[-1]} == "Next: "* ]] || show
    for line in "${lines[@]}"; do [[ ${#line} -le 110 ]] || { echo "$line" && show; }; done
}

# The judgement as it is: the published difference grows with the batch, copies of the parameters do not. `reserved` is
# each tag's own peak without scratch, `live` the ledger's peak, of the same ledgers (docs/study-two-cards.md).
@test "two-cards --dry-run --json holds what is printed" {
    run --separate-stderr "$EVENLOAD" study two-cards --dry-run --json
    [[ $status -eq 1 && -z $stderr ]] || show
    printf '%s' "$output" >s.json
    [[ $(json s.json 'd["measured"], d["dir"], d["holds"], d["moving_tag"]') == "(False, None, False, 'activation')" ]]
    [[ $(json s.json 'd["reserved"]["difference_holds"], d["reserved"]["growth_holds"]') == "([True, True, False], True)" ]]
    [[ $(json s.json 'd["live_best"]["difference_holds"]') == "[True, False, False]" ]]
    [[ $(json s.json 'd["reserved"]["words"], d["live"]["words"], d["live_best"]["words"]') == "(252, 252, 836)" ]]
    [[ $(json s.json 'len(d["candidates"]), sum(c["possible"] for c in d["candidates"])') == "(12, 8)" ]]
    [[ $(json s.json '[[sum(c["at_peak_by_tag"].values()) - c["peak_bytes"] for c in r] for r in d["memory"]]') \
        == "[[0, 0], [0, 0], [0, 0]]" ]]
    [[ $(json s.json '[[c["peak_bytes"] for c in r] for r in d["memory"]] == d["live"]["card_bytes"]') == True ]]
    [[ $(json s.json '[[sum(v for t, v in c["peak_by_tag"].items() if t not in ("workspace", "padding")) for c in r]
        for r in d["memory"]] == d["reserved"]["card_bytes"]') == True ]]
    [[ $(json s.json 'all(abs(r["card_mib"][k] - b[k] / 2**20 - c[k]["unattributed_mib"]) < 1e-6
        for r, b, c in zip(d["published"]["rows"], d["reserved"]["card_bytes"], d["memory"]) for k in (0, 1))') == True ]]
}

@test "two-cards leaves a folder alone that holds a run, and suggests nothing that it lacks" {
    mkdir r && echo '{}' >r/command.json
    run --separate-stderr timeout 60 "$EVENLOAD" study two-cards --out r --quiet
    [[ $stderr != *"GiB of memory"* ]] || skip "memory is short here"
    [[ $status -eq 2 && $stderr == *"r holds a run already: give another --out"* && $stderr != *--resume* ]] || show
    refuses "go on with it by --resume, or give another --out" "$EVENLOAD" compare --out r --quiet
}

@test "two-cards refuses where memory is short, before it makes a folder" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer reserves more addresses than the limit"
    run --separate-stderr bash -c 'ulimit -v 3000000; "$EVENLOAD" study two-cards --out r --quiet'
    [[ $status -eq 2 && $stderr == *"GiB of memory"* && $stderr == *--dry-run* && ! -e r ]] || show
}
