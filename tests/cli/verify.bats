#!/usr/bin/env bats
# `evenload verify`: every mode gives what it must, and what is wrong is found.
PICTURES=no
source "$BATS_TEST_DIRNAME/common.bash"

@test "verify --quick: each mode has each model, optimizer and variant, and the same bits in several processes" {
    "$EVENLOAD" modes --json >modes.json
    local few=(--modes "single,ddp,pipeline,zero3")
    if [[ ${EVENLOAD_LONG:-} == 1 ]]; then few=(); else echo "# long: every mode instead of four, 35 s" >&3; fi
    run --separate-stderr "$EVENLOAD" verify --quick --launcher own --quiet --out v "${few[@]}"
    [[ $status -eq 0 && $output == *"On cpu devices"*"ddp "*" same bits"* ]] || show
    python3 - modes.json v/verify.json <<'END'
import json, sys
modes, verified = (json.load(open(name)) for name in sys.argv[1:])
assert verified["passed"] and verified["failed"] == 0 and verified["checks"] >= 100, verified["checks"]
assert len({c["mode"] for c in verified["cells"]}) in (4, len(modes))
for mode in modes:
    cells = [c for c in verified["cells"] if c["mode"] == mode["mode"]]
    if not cells: continue
    served = [c for c in cells if c["status"] == "ok"]
    kinds = {"sgd", "momentum", "adam", "f32"} | ({"bf16"} if mode["mode"] == "single" else set())
    assert {c["kind"] for c in served} == kinds, mode["mode"]
    frozen = ["--freeze embedding"] if any(c["model"] == "textcnn" for c in cells) else []
    assert {c["variant"] for c in served} == {"", *mode["variants"], *frozen}, mode
    unserved = {c["model"] for c in cells} - {c["model"] for c in served}
    allowed = {"linear"} if "--cut" in mode["options"] else {"branch"} if "--find-unused" in mode["options"] else set()
    assert unserved <= allowed, (mode["mode"], unserved)
    assert all(c["reason"] for c in cells if c["status"] == "unserved")
    several = [c for c in served if c["procs"] > 1]
    assert ("--procs" in mode["options"]) == bool(several), mode["mode"]
    assert any(c.get("same_bits") for c in several) or not several, mode["mode"]
assert {c["devices"] for c in verified["cells"]} == {1, 2, 3, 4}
assert all(c["difference"] <= c["limit"] for c in verified["cells"] if c["status"] == "ok")
END
}

@test "a number that is wrong on one device is found in every mode that sends, and named first" {
    run --separate-stderr "$EVENLOAD" verify --quick --launcher own --quiet --inject wrong=1:0.01 --modes single,dp,ddp,mp --out v
    [[ $status -eq 1 && ${lines[0]} == "FAILED  "* && $output == *"1e-07), most in step "* && $output == *"checks failed"*"Next: "*" devices"* ]] || show
    [[ $(json v/verify.json 'sorted({c["mode"] for c in d["cells"] if c["status"] == "failed" and c["kind"] != "f32"})') == "['ddp', 'dp', 'mp']" ]] || show
    [[ $(json v/verify.json '{c["status"] for c in d["cells"] if c["mode"] == "single"}') == "{'ok'}" ]] || show
    [[ $(json v/verify.json '[c["mode"] for c in d["cells"] if c["status"] == "ok" and c["kind"] != "f32" and c["mode"] != "single"]') == "[]" ]] || show
}

@test "a job that does not end is a failure with its place" {
    run --separate-stderr "$EVENLOAD" verify --quick --launcher own --quiet --timeout 0.1 --modes ddp --inject delay=1:50 --out v
    [[ $status -eq 1 && $output == *"FAILED "*"the job ended at [cpu, 1 process: cell "*"--timeout"* ]] || show
    [[ $("$EVENLOAD" verify --quick --launcher own --quiet --modes single --json --out j) == "$(cat j/verify.json)" ]]
    "$EVENLOAD" report j --markdown j.md >/dev/null
    grep -q "^All [0-9]* checks passed" j.md && grep -q "^single  *mlp " j.md && grep -q "<h2>Every mode and model</h2>" j/report.html
    refuses "unknown mode 'dpp'" "$EVENLOAD" verify --modes dpp
}

@test "what was checked before an interruption is shown" {
    local code=0
    "$EVENLOAD" verify --quick --launcher own --quiet --json --out v >v.json 3>&- &
    until [[ -s v/cells-cpu-1.jsonl ]] || ! kill -0 $!; do sleep 0.1; done
    kill -INT $!
    wait $! || code=$?
    [[ $code -eq 130 && $(json v.json 'd["interrupted"], d["passed"], d["checks"] > 0, d["failed"]') == "(True, False, True, 0)" ]] || { cat v.json && false; }
}

# What a bf16 model's positions get by tokens is among the first cells.
@test "verify --pairs: every two values of two options train right together" {
    local few=(--quick)
    [[ ${EVENLOAD_LONG:-} != 1 ]] || few=(--timeout 1200)
    [[ ${few[*]} != --quick ]] || echo "# long: all pairs instead of the first, 15 s" >&3
    run --separate-stderr "$EVENLOAD" verify --pairs "${few[@]}" --launcher own --quiet --out v
    [[ $status -eq 0 && $output == *" options have "*" pairs: "*" meet in a cell, "* ]] || show
    [[ $(json v/verify.json '[c["variant"] for c in d["cells"] if "bf16-pure" in c["variant"] and "--sequence-parallel on" in c["variant"]] != []') == True ]]
    [[ $(json v/verify.json 'd["pairs"]["met"] + d["pairs"]["refused"] + d["pairs"]["open"] == d["pairs"]["pairs"]') == True ]]
}
