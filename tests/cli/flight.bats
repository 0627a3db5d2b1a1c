#!/usr/bin/env bats
# Dumps of PyTorch's flight recorder: which rank a job that hangs waits for. tests/torch/hangs.py makes real ones.
load common
PICTURES=no

FLIGHT="$BATS_TEST_DIRNAME/../foreign/flight.py"

is() { # KIND "SENTENCE'S BEGIN" [RANKS [FORM]]: what is made of made dumps
    rm -rf d
    python3 "$FLIGHT" "$1" d "${@:3}"
    run --separate-stderr "$EVENLOAD" trace-stats d --json
    printf '%s' "$output" >d.json
    [[ $status -eq 0 && -z $stderr && $(json d.json 'd["cause"]["sentence"]') == "$2"* ]] || { json d.json 'd["cause"]' && show; }
}

@test "what a job hangs in: absent, dead, another size, another order, not begun, a message" {
    is not-entered "rank 3 did not enter all_reduce no. 7 of default_pg (0) (Float [1000]), in which ranks 0, 1, 2, 4 and 3 more wait; its last call was _reduce_scatter_base no. 6 of mesh_shard (1) (Float [4000]), from train.py:42 step"
    [[ $(json d.json 'd["cause"]["kind"], d["cause"]["ranks"], d["cause"]["waiting"], d["missing_dumps"]') == "('not entered', [3], [0, 1, 2, 4, 5, 6, 7], [])" ]]
    is not-entered "rank 3 did not enter all_reduce no. 7 of default_pg (0) (Float [1000])" 8 json
    is not-entered "rank 3 did not enter all_reduce no. 7 of default_pg (0) (Float [1000])" 8 old
    is chain "rank 3 did not enter _allgather_base no. 7 of mesh_shard (1) (Float [8]), in which ranks 0, 1 and 2 wait"
    is dead "rank 3 left no dump, and ranks 0, 1, 2, 4 and 3 more wait for it in all_reduce no. 7"
    is size "rank 3 called all_reduce no. 7 of default_pg (0) (Float [999]) from train.py:60 step, where ranks 0, 1, 2, 4 and 3 more called all_reduce (Float [1000]) from train.py:50 step"
    is order "rank 3 called in another order: others are in all_reduce no. 7 of default_pg (0) (Float [1000]): rank 3 in all_reduce no. 7 of mesh_shard (1)"
    is not-begun "all ranks entered all_reduce no. 7 of default_pg (0) (Float [1000]), but the device of rank 3 has not begun it"
    is send "rank 1 did not enter send 0->1 no. 1 of default_pg (0) (Float [1000]), in which rank 0 waits"
    is transport "all ranks entered all_reduce no. 7 of default_pg (0) (Float [1000]) and it has not ended"
    is shape "all ranks entered all_to_all no. 7" # each rank has its own size in it
}

@test "calls that the recorder's buffer has lost are not absent, and who came last is said" {
    is ring "nothing hangs: every call in these dumps has ended"
    [[ $(json d.json 'd["late"]["rank"], d["late"]["calls"], d["ranks"][3]["calls"]') == "(None, 11, 5)" ]]
    is late "nothing hangs"
    [[ $(json d.json 'd["late"]["rank"], [round(r["late_ms"], 1) for r in d["late"]["ranks"] if r["rank"] == 5]') == "(5, [20.0])" ]]
    run --separate-stderr "$EVENLOAD" trace-stats d
    [[ $status -eq 0 && $output == *"Rank 5 came last to 12 of the 18 calls that all entered, by 20.0 ms (median)."* ]] || show
}

@test "dumps of several nodes, beside other files; two of one rank; damaged ones are refused" {
    python3 "$FLIGHT" not-entered d 8
    mkdir -p n/a n/b && mv d/*_[0-3] n/a && mv d/* n/b && echo '{"entries": 3}' >n/b/config.json && echo text >n/a/log_0
    run --separate-stderr "$EVENLOAD" trace-stats n
    [[ $status -eq 0 && $output == *"8 ranks, 103 calls."*"Rank 3 did not enter all_reduce no. 7"* && $output != *"!"* ]] || show
    cp n/b/nccl_trace_rank_5 n/a/older_5
    run --separate-stderr "$EVENLOAD" trace-stats n
    [[ $status -eq 0 && $output == *"! Left out, of ranks that another file is of: nccl_trace_rank_5."* ]] || show
    refuses "--out draws traces" "$EVENLOAD" trace-stats n --out o
    head -c 700 n/a/nccl_trace_rank_0 >n/a/cut && mv n/a/cut n/a/nccl_trace_rank_0
    refuses "nccl_trace_rank_0: byte " "$EVENLOAD" trace-stats n
    printf '{"entries": 3, "pg_config": {}}' >rank_0.json
    refuses "rank_0.json: no dump of PyTorch's flight recorder: it has no entries" "$EVENLOAD" trace-stats rank_0.json
}
