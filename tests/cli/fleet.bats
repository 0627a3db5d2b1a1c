#!/usr/bin/env bats
# Which host is slow: simulated fleets whose answer is known, real processes, losses, and what cannot be.
PICTURES=no
load common

fleet() { run --separate-stderr "$EVENLOAD" fleet --quiet "$@"; }
verdicts() { json "$1/fleet.json" '{h["name"]: h["verdict"] for h in d["hosts"] if h["verdict"] != "good"}'; }
faults() { json "$1/fleet.json" '[(f["kind"], f["hosts"], round(f["slower_pct"])) for f in d["faults"]]'; }

@test "an even fleet of simulated hosts is good, a slow device, sender or pair is named" {
    fleet --devices sim:64 --machine h100-sxm --inject noise=0.5 --out even
    [[ $status -eq 0 && $output == *"Fleet: 64 good"* && $(faults even) == "[]" && $(verdicts even) == "{}" ]] || show
    [[ $(json even/fleet.json 'len(d["links"]), d["rounds"], d["exit_status"]') == "(4032, {'between': 63, 'of': 63}, 0)" ]] || show
    fleet --devices sim:64 --machine h100-sxm --inject 'noise=0.5,straggler=9:1.1,link=7-*:0.5,link=30-31:0.5' --out slow --prometheus slow.prom
    [[ $status -eq 1 && $output == *"host7: what it sends is 49 % slower than the others', to all hosts alike."* ]] || show
    [[ $output == *"host9, sim:9: products 9 % slower than its peers"* && $output == *"host30 to host31: this direction is 49 % slower"* ]] || show
    [[ $(faults slow) == "[('one_way', ['host30', 'host31'], 49), ('sends', ['host7'], 49)]" || $(faults slow) == "[('sends', ['host7'], 49), ('one_way', ['host30', 'host31'], 49)]" ]] || show
    [[ $(verdicts slow) == "{'host7': 'bad', 'host9': 'bad'}" ]] || show
    grep -qxF 'evenload_fleet_bad{host="host7",verdict="bad"} 1' slow.prom
    grep -qxF 'evenload_fleet_bad{host="host8",verdict="good"} 0' slow.prom
    run ! grep -vE '^(# (HELP|TYPE) evenload_fleet_[a-z_]+ .+|evenload_fleet_[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+)$' slow.prom
    [[ $(head -1 slow/fleet.csv) == host,rank,device,uuid,verdict,figure,median,slower_pct,bad && $(wc -l <slow/fleet.csv) -eq $((1 + 64 * 4 + 4032)) ]]
}

@test "of many hosts the budget chooses the rounds, and what they cost is said before" {
    run --separate-stderr "$EVENLOAD" fleet --devices sim:256 --budget 30s --inject 'link=*-200:0.8' --out r
    [[ $status -eq 1 && $stderr == "256 simulated hosts: 20 of 255 rounds of pairs; of real ones at most 30 s" ]] || show
    [[ $output == *"host200: what it receives is 20 % slower"* && $output == *"Links: 20 of 255 rounds, so 8 % of the pairs"* ]] || show
    [[ $output == *"and 216 more; all are in fleet.csv"* ]] || show
}

@test "two hosts cannot tell which is slow, an earlier run can" {
    fleet --devices sim:2 --machine h100-sxm --out before
    [[ $status -eq 3 && $output == *"links: two hosts cannot tell whose is slow: give --baseline"* && $output == *"Fleet: 2 undecided"* ]] || show
    fleet --devices sim:2 --machine h100-sxm --inject straggler=1:1.5 --baseline before --out after
    [[ $status -eq 1 && $output == *"host1, sim:1: products 33 % slower than in the baseline"* && $(verdicts after) == "{'host1': 'bad'}" ]] || show
    fleet --devices sim:2 --machine h100-sxm --baseline before/fleet.json --out same
    [[ $status -eq 0 ]] || show
    fleet --devices sim:1 --out one
    [[ $status -eq 3 && $(json one/fleet.json 'd["links"], d["exit_status"]') == "([], 3)" ]] || show
}

# Three of four ranks that a launcher's variables number; rank 1's results are wrong.
@test "ranks of a launcher: one that never comes is named, and a wrong result to its element" {
    local rank
    for rank in 1 2; do
        RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=29871 "$EVENLOAD" fleet --quiet --wait 20s >"$rank.txt" 2>&1 3>&- &
    done
    export RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29871
    fleet --out r --wait 2s --repeats 3 --soak 0.3s --inject wrong=1:0.01 --comm tcp --json
    wait
    [[ $status -eq 1 && -z $stderr && ! -s 1.txt && ! -s 2.txt ]] || show
    printf '%s' "$output" >r.json
    cmp <(python3 -m json.tool r.json) <(python3 -m json.tool r/fleet.json)
    [[ $(json r.json '[(h["verdict"], h["reason"]) for h in d["hosts"] if h["name"] == "rank 3"]') == "[('absent', 'it has not come within 2 s')]" ]] || show
    [[ $(json r.json '[(w["op"], w["step"], w["element"]) for h in d["hosts"] for v in h["devices"] for w in [v["wrong"]] if w]') == "[('linear_forward 2', 0, 1000)]" ]] || show
    [[ $(json r.json '[v["rank"] for h in d["hosts"] for v in h["devices"] if v["wrong"]], len(d["all_reduce"]["busbw_gb_per_s"]), len(d["step"]["step_ms"])') == "([1], 3, 3)" ]] || show
    [[ $(json r.json '{p["name"]: p["reason"] for p in d["phases"] if p["reason"]}') == "{}" ]] || show
    # the run is a session of the store, and its page has what was printed
    "$EVENLOAD" baseline add r --store store >store.txt
    grep -q '^fleet .*: products, GFLOP/s  *1  *1 ' store.txt
    "$EVENLOAD" report r >/dev/null
    grep -q 'wrong result of linear_forward 2' r/report.html
}

@test "what cannot be is one line" {
    refuses "nowhere.txt: No such file or directory" "$EVENLOAD" fleet --hosts nowhere.txt
    printf '# none\n\n' >none.txt
    refuses "none.txt: there are no hosts in it" "$EVENLOAD" fleet --hosts none.txt
    printf 'a\nb name=a\n' >twice.txt
    refuses "twice.txt: a is there twice: give name=" "$EVENLOAD" fleet --hosts twice.txt
    printf 'a devices=cpu:x\n' >devices.txt
    refuses "devices.txt, line 1: --devices: 'x' is not a whole number" "$EVENLOAD" fleet --hosts devices.txt
    printf 'a speed=4\n' >word.txt
    refuses "word.txt, line 1: 'speed': a line is HOST [name=NAME] [devices=LIST] [switch=NAME]" "$EVENLOAD" fleet --hosts word.txt
    printf -- '-oProxyCommand=x\n' >option.txt
    refuses "option.txt, line 1: '-oProxyCommand=x' is no host" "$EVENLOAD" fleet --hosts option.txt
    refuses "--inject wrong=x: fleet takes wrong=RANK:X" "$EVENLOAD" fleet --inject wrong=x
    refuses "--inject link=9-0:0.5: of 8 simulated hosts" "$EVENLOAD" fleet --devices sim:8 --inject link=9-0:0.5
    refuses "nothing/here" "$EVENLOAD" fleet --baseline nothing/here
    printf 'node1\nnode2\n' >hosts.txt
    printf '#!/bin/sh\necho "$1 is closed" >&2\nexit 255\n' >rsh
    chmod +x rsh
    EVENLOAD_RSH=$PWD/rsh run --separate-stderr "$EVENLOAD" fleet --hosts hosts.txt --quiet --wait 5s
    [[ $status -eq 2 && $stderr == "evenload: fleet: no host came within 5 s: "* ]] || show
    [[ ! -e results ]] || show
}

@test "on cards, by NCCL, with their UUIDs" {
    long "a fleet of three fake cards, 20 s"
    local cards=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
    [[ -x $cards ]] || skip "no fake cards: they need a C++ compiler"
    FAKE_CARDS=3 run --separate-stderr "$cards" fleet --devices cuda:3 --repeats 3 --soak 1s --inject wrong=2:0.01 --quiet --json --out c
    printf '%s' "$output" >c.json
    [[ $status -eq 1 && $(json c.json 'd["all_reduce"]["backend"], len(d["within"]), [p["reason"] for p in d["phases"] if p["reason"]]') == "('nccl', 6, [])" ]] || show
    [[ $(json c.json '[(v["rank"], v["uuid"][:4], v["wrong"]["op"], v["wrong"]["element"]) for v in d["hosts"][0]["devices"] if v["wrong"]]') == "[(2, 'GPU-', 'linear_forward 2', 1000)]" ]] || show
}

@test "by mpirun, and by torchrun" {
    long "fleet by two launchers"
    command -v mpirun >/dev/null || skip "no mpirun"
    run --separate-stderr mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 "$EVENLOAD" fleet --quiet --repeats 3 --json --out m
    printf '%s' "$output" >m.json
    [[ $(json m.json '[d["kind"], sum(len(h["ranks"]) for h in d["hosts"]), [p["reason"] for p in d["phases"] if p["reason"]]]') == "['fleet', 3, []]" ]] || show
    local torchrun=${EVENLOAD_TORCH%/*}/torchrun
    [[ -x $torchrun ]] || skip "no torchrun: EVENLOAD_TORCH names none"
    "$torchrun" --no_python --nproc_per_node 3 "$EVENLOAD" fleet --quiet --repeats 3 --out t >t.txt 2>&1 || true
    [[ $(json t/fleet.json '[sum(len(h["ranks"]) for h in d["hosts"]), [p["reason"] for p in d["phases"] if p["reason"]]]') == "[3, []]" ]] || show
}

@test "eight hosts of network namespaces: each planted fault is named, an even fleet accused of nothing" {
    long "eight hosts of namespaces (tests/faults/fleet.py): five minutes"
    [[ $(id -u) -eq 0 ]] || skip "only root can make network namespaces"
    run command python3 "${BATS_TEST_DIRNAME:-tests/cli}/../faults/fleet.py" "$EVENLOAD"
    [[ $status -ne 77 ]] || skip "no network namespaces here"
    [[ $status -eq 0 ]] || show
}
