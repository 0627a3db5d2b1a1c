#!/usr/bin/env bats
# A mixture of experts: equal in every mode and mesh, bytes by closed forms, on cards, placement.
PICTURES=no
load common

check() {
    export EVENLOAD
    python3 "${BATS_TEST_DIRNAME:-tests/cli}/moe.py" "$@"
}

@test "experts: every mode and mesh gives single's losses in f64, with dropped tokens too" { check equal; }
@test "experts: ranks without tokens, one expert with all, one token" { check edges; }
@test "experts: a file of counts is replayed, and balanced is exactly even" { check replays; }
@test "experts: bytes sent and parameters held are closed forms, to the byte" { check exact; }
@test "experts: what ep saves, single loads, by Mixtral's names" { check files; }

@test "experts: on cards, by NCCL, staged and several in one process" {
    export CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload FAKE_CARDS=2
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    check cards
}

@test "experts: what cannot be is one line" {
    local of=(--mode ep --devices 2 --model moe --data dummy --batch 4)
    refuses "--experts 7: does not divide evenly among 2 ranks: change it, or --mesh ep" "$EVENLOAD" run "${of[@]}" --experts 7
    refuses "--top-k 3: there are 2 experts (--experts): give at most as many" "$EVENLOAD" run "${of[@]}" --experts 2 --top-k 3
    refuses "--batch 5: does not divide evenly among 2 shares" "$EVENLOAD" run "${of[@]}" --batch 5
    refuses "model gpt has no experts that ranks could share (moe has): take another mode" "$EVENLOAD" run "${of[@]}" --model gpt
    refuses "model moe cannot be cut across its layers" "$EVENLOAD" run "${of[@]}" --mode tp
    refuses "--routing: model gpt has no experts (moe has): leave it out" "$EVENLOAD" run --mode ddp --model gpt --routing zipf:1
    refuses "--routing zipf:x: must be zipf:S with an exponent S from 0 to 10" "$EVENLOAD" run "${of[@]}" --routing zipf:x
    refuses "--routing hot:8: must be a number from 0 to 7" "$EVENLOAD" run "${of[@]}" --routing hot:8
    refuses "--routing nowhere: no such routing, and as a file: No such file or directory" "$EVENLOAD" run "${of[@]}" --routing nowhere
    refuses "--placement 0,0,1,2,3,4,5,6: must name each of the 8 experts once" "$EVENLOAD" run "${of[@]}" --routing zipf:1 --routing placement=0,0,1,2,3,4,5,6
    refuses "--placement: a router learns where to send" "$EVENLOAD" run "${of[@]}" --routing placement=7,6,5,4,3,2,1,0
    printf '1 2 3\n' >few
    refuses "line 1: there must be 8 counts of at least 0, one for each expert" "$EVENLOAD" run "${of[@]}" --routing few
    refuses "--routing $BATS_TEST_TMPDIR: could not be read: Is a directory" "$EVENLOAD" run "${of[@]}" --routing "$BATS_TEST_TMPDIR"
    refuses "--solve placement: a routing that is learned has no load that is known" "$EVENLOAD" imbalance "${of[@]:2}" --solve placement
}

@test "experts: imbalance --solve placement moves them, predicted within 10 % on simulated devices" {
    "$EVENLOAD" imbalance --solve placement --model moe --devices sim:4 --batch 8 --data dummy --routing zipf:1.2 --repeats 1 --out moved >moved.txt 2>moved.err
    grep -q "makes that 1.60 times, the least that moving experts can" <(tr '\n' ' ' <moved.txt | tr -s ' ')
    grep -q "Cause: routing: its experts do" <(tr '\n' ' ' <moved.txt | tr -s ' ')
    python3 - <<'EOF'
import json
solution = json.load(open("moved/results.json"))["solution"]
assert solution["proven"] and solution["step_ms"] < 0.9 * solution["own_step_ms"], solution
assert abs(solution["predicted_step_ms"] / solution["step_ms"] - 1) < 0.1, solution
EOF
}

@test "experts: imbalance says where tokens go, and draws it" {
    with_gnuplot
    "$EVENLOAD" imbalance --model moe --modes ep --devices 2 --batch 4 --data dummy --routing zipf:1.2 --layers 2 --embed 32 --seq 32 --vocab 64 --repeats 1 \
        --min-time 0.1 --out where >where.txt 2>where.err
    grep -qE "^cpu:0 +0 to 3 +[0-9,.]+ +7[0-9.]+ +1\.5" where.txt
    grep -qE "cpu:0 gets 7[0-9.]+ % of the tokens, 1.5[0-9]* times its even share; expert 0 alone" <(tr '\n' ' ' <where.txt | tr -s ' ')
    [[ -s where/plots/routing.png && -s where/plots/routing.svg ]]
    # dp's replicas count nothing: there is no such picture, and nothing says that one failed.
    "$EVENLOAD" imbalance --model moe --modes dp --devices 2 --batch 4 --data dummy --layers 1 --embed 16 --seq 8 --vocab 64 --repeats 1 --min-time 0.05 --out dp >dp.txt 2>dp.err
    ! grep -q "could not be drawn" dp.txt dp.err || show
    [[ ! -e dp/plots/routing.png && -s dp/plots/imbalance.png ]]
}

@test "experts: plan ranks meshes of ep, and a forecast of 16,384 devices takes a moment" {
    "$EVENLOAD" plan --model moe --devices 8 --layers 2 --experts 8 --batch 32 --json >plan.json
    python3 - plan.json <<'EOF'
import json, sys
rows = [row for row in json.load(open(sys.argv[1]))["rows"] if row["mode"] == "ep"]
assert [row["mesh"] for row in sorted(rows, key=lambda row: row["mesh"])] == ["", "dp=2,ep=4", "dp=4,ep=2"], rows
EOF
    "$EVENLOAD" run --mode ep --model moe --layers 2 --devices sim:16384 --mesh ep=8 --batch 16384 --data dummy --routing zipf:1.2 --dry-run >far.txt
    grep -q "sim:16383" far.txt
}

# Then counts of other ranks do not come: a rank's own stand for them.
@test "experts: steps without communication, of micro-steps too" {
    local devices
    for devices in 2 cuda:2; do
        rm -rf out
        [[ $devices == 2 ]] || EVENLOAD=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
        [[ $devices == 2 || -x $EVENLOAD ]] || continue
        FAKE_CARDS=2 "$EVENLOAD" run --mode ep --devices "$devices" --model moe --layers 2 --embed 8 --seq 8 --heads 2 --vocab 16 --expert-hidden 8 \
            --experts 4 --data dummy --batch 16 --accumulate 4 --steps 3 --warmup 1 --min-time 0.1 --control pairs=1 --launcher own --quiet --out out >/dev/null || show
        [[ $(json out/results.json '[t["status"] for t in d["trials"]], d["trials"][0]["config"]["control_pairs"]') == "(['ok'], 1)" ]] || show
    done
}
