# A record and the traces of the same launch say the same of its ranks: one table, one rule of blame.
load common

# same_of_both TOLERANCE OPTIONS...: of one launch `imbalance` and `trace-stats`.
same_of_both() {
    local tolerance=$1
    run "$EVENLOAD" run --mode ddp --repeats 1 --quiet --out i --trace t --profile wait=0,warmup=0,active=8,repeat=1 --steps 8 "${@:2}"
    [[ $status -eq 0 ]] || show
    "$EVENLOAD" imbalance i --json >i.json
    "$EVENLOAD" trace-stats t --json >t.json
    python3 - "$tolerance" <<'PYTHON'
import json, sys
record, job = json.load(open("i.json"))["trials"][0]["time"], json.load(open("t.json"))["job"]
assert job["steps"] == 8 and len(record["ranks"]) == len(job["ranks"]) > 1
assert record["blame"]["kind"] == "stays" and record["blame"]["sentence"] == job["blame"]["sentence"], (record["blame"], job["blame"])
for told, traced in zip(record["ranks"], job["ranks"]):
    for name, value in told.items():
        near = value == traced[name] if name == "rank" else abs(value - traced[name]) <= float(sys.argv[1]) * max(1, abs(value))
        assert near, (told["rank"], name, value, traced[name])
PYTHON
}

@test "record and traces of simulated ranks, one of which stays late: the same rows and the same sentence" {
    same_of_both 1e-6 --devices sim:4 --inject straggler=2:2
}

@test "record and traces of ranks on cores, one of which stays late: the same rows and the same sentence" {
    same_of_both 1e-6 --devices 2 --inject straggler=1:5 --min-time 0 --control none
}
