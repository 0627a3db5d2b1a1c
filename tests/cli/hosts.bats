# Ranks on two hosts, which are two network namespaces of this one with a cable between them.
load common

# Names that no other run of this file has.
setup() {
    setup_folder
    cd "$BATS_TEST_TMPDIR" || return 1
    [[ $(id -u) -eq 0 ]] || skip "only root can make network namespaces"
    A=el-a-$$ B=el-b-$$
    ip netns add "$A" 2>why.txt || skip "no network namespaces here: $(cat why.txt)"
    ip netns add "$B"
    ip link add "va-$$" type veth peer name "vb-$$" 2>why.txt || skip "no virtual cable here: $(cat why.txt)"
    ip link set "va-$$" netns "$A"
    ip link set "vb-$$" netns "$B"
    plug "$A" "va-$$" 1
    plug "$B" "vb-$$" 2
}

plug() { # plug NAMESPACE DEVICE NUMBER
    ip -n "$1" address add "10.77.0.$3/24" dev "$2"
    ip -n "$1" address add "fd77::$3/64" dev "$2" nodad 2>/dev/null || true
    ip -n "$1" link set lo up
    ip -n "$1" link set "$2" up
}

teardown() {
    local name
    for name in "${A-}" "${B-}"; do
        [[ -z $name ]] || ip netns delete "$name" 2>/dev/null || true
    done
}

rank() { # rank RANK ADDRESS OPTION...
    local rank=$1 address=$2 place=$A
    shift 2
    [[ $rank -eq 0 ]] || place=$B
    ip netns exec "$place" env RANK="$rank" WORLD_SIZE=2 MASTER_ADDR="$address" MASTER_PORT=29500 timeout 90 \
        "$EVENLOAD" run --mode ddp --comm tcp "$@"
}

trains_at() { # trains_at ADDRESS
    rank 1 "$1" "${QUICK[@]}" >one.txt 2>&1 3>&- &
    rank 0 "$1" "${QUICK[@]}" --out r --quiet || { cat one.txt && return 1; }
    wait
    [[ $(json r/results.json 'd["trials"][0]["status"], [p["rank"] for p in d["trials"][0]["processes"]]') == "('ok', [0, 1])" ]]
}

@test "ranks of two hosts meet and train, over IPv4" {
    trains_at 10.77.0.1
}

@test "ranks of two hosts meet and train, over IPv6" {
    ip -n "$A" -6 address show dev "va-$$" | grep -q fd77::1 || skip "no IPv6 here"
    trains_at fd77::1
}

@test "a cable that is cut ends both ranks, with the reason" {
    local zero=0 one=0 began
    rank 1 10.77.0.1 "${QUICK_MODEL[@]}" --batch 8 --min-time 60 >one.txt 2>&1 3>&- &
    local other=$!
    rank 0 10.77.0.1 "${QUICK_MODEL[@]}" --batch 8 --min-time 60 --out r --json >zero.txt 2>&1 3>&- &
    local first=$!
    until [[ -d r/repeats ]]; do sleep 0.1; done
    sleep 1
    ip -n "$A" link set "va-$$" down
    began=$SECONDS
    wait "$first" || zero=$?
    wait "$other" || one=$?
    [[ $zero -ne 0 && $zero -ne 124 && $one -ne 0 && $one -ne 124 && $((SECONDS - began)) -le 40 ]]
    grep -q "rank 1 is gone" r/results.json zero.txt
    grep -q "rank 0 is gone" one.txt
}
