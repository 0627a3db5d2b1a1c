# Ranks on two computers and a switch, all of them namespaces of this one: each computer has a network and a host name of its own, and
# a cable of 1 Gbit/s to the switch. Nothing of it has a name outside, and all of it goes with its processes.
PICTURES=no
load common

COMPUTERS=()

setup() {
    setup_folder
    cd "$BATS_TEST_TMPDIR" || return 1
    unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}" RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
    [[ $(id -u) -eq 0 ]] || skip "only root can make network namespaces"
    unshare --net --uts true 2>why.txt || skip "no network namespaces here: $(cat why.txt)"
    computer SWITCH switch
    computer A node-a
    computer B node-b
    nsenter -t "$SWITCH" -n ip link add bridge type bridge 2>why.txt || skip "no bridge here: $(cat why.txt)"
    nsenter -t "$SWITCH" -n ip link set bridge up
    plug "$A" port-a 1 || skip "no virtual cable here: $(cat why.txt)"
    plug "$B" port-b 2
    speed 1gbit || skip "no traffic control here: $(cat why.txt)"
}

teardown() {
    local pid
    for pid in "${COMPUTERS[@]}"; do kill "$pid" 2>/dev/null || true; done
}

# A process that holds its namespaces; VARIABLE is its number.
computer() { # computer VARIABLE HOSTNAME
    # shellcheck disable=SC2016 # for the inner shell
    unshare --net --uts sh -c 'hostname "$1" && touch "$1.up" && exec sleep 600' sh "$2" 3>&- &
    COMPUTERS+=("$!")
    declare -g "$1=$!"
    until [[ -e $2.up ]]; do sleep 0.02; done
}

plug() { # plug COMPUTER PORT NUMBER
    nsenter -t "$SWITCH" -n ip link add "$2" type veth peer name eth0 netns "$1" 2>why.txt || return 1
    nsenter -t "$SWITCH" -n ip link set "$2" master bridge up
    nsenter -t "$1" -n sh -c "ip address add 10.77.0.$3/24 dev eth0; ip address add fd77::$3/64 dev eth0 nodad 2>/dev/null
        ip link set lo up; ip link set eth0 up"
}

# Of both cables, both ways.
speed() { # speed RATE
    local port
    for port in port-a port-b; do
        nsenter -t "$SWITCH" -n tc qdisc replace dev $port root tbf rate "$1" burst 128k latency 50ms 2>why.txt || return 1
    done
    for port in "$A" "$B"; do
        nsenter -t "$port" -n tc qdisc replace dev eth0 root tbf rate "$1" burst 128k latency 50ms 2>why.txt || return 1
    done
}

at() { # at COMPUTER COMMAND...
    local computer=$1
    shift
    nsenter -t "$computer" -n -u "$@"
}

rank() { # rank RANK ADDRESS OPTION...
    local rank=$1 address=$2 place=$A
    shift 2
    [[ $rank -eq 0 ]] || place=$B
    at "$place" env RANK="$rank" WORLD_SIZE=2 MASTER_ADDR="$address" MASTER_PORT=29500 timeout 240 "$EVENLOAD" run --mode ddp "$@"
}

communicator_is() { # communicator_is RUN KIND
    [[ $(json "$1/results.json" 'd["trials"][0]["communicator"], sorted({m["host"] for m in d["trials"][0]["per_device"]})') == \
        "('$2', ['node-a', 'node-b'])" ]]
}

losses_are_those_of_single() { # losses_are_those_of_single RUN
    at "$A" "$EVENLOAD" run --mode single "${QUICK[@]}" --out single --quiet
    [[ $(json "$1/results.json" 'd["trials"][0]["status"]') == ok ]]
    python3 - "$1" single <<'END'
import json, sys
mine, single = (json.load(open(run + "/results.json"))["trials"][0]["loss"] for run in sys.argv[1:])
assert len(mine) == len(single) > 1 and all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(mine, single)), (mine, single)
END
}

trains_at() { # trains_at ADDRESS
    rank 1 "$1" "${QUICK[@]}" >one.txt 2>&1 3>&- &
    rank 0 "$1" "${QUICK[@]}" --out r --quiet || { cat one.txt && return 1; }
    wait "$!"
    losses_are_those_of_single r
}

long() { # long WHAT
    [[ ${EVENLOAD_LONG-} == 1 ]] && return
    echo "# long: $1" >&3
    skip "with --long"
}

@test "ranks of two hosts meet by torchrun's variables, train over sockets, and lose what one device loses" {
    trains_at 10.77.0.1
    communicator_is r tcp
    # Each host's own network carried it, and lost nothing.
    python3 - <<'END'
import json
repeat = json.load(open("r/results.json"))["trials"][0]["repeats"][0]
rows = [r for r in repeat["system"]["interfaces"] if r["name"] == "eth0"]
assert [r["host"] for r in rows] == ["node-a", "node-b"], rows
assert all(r["tx_packets"] > 0 and r["rx_packets"] > 0 and r["rx_errors"] + r["tx_dropped"] == 0 for r in rows), rows
END
}

@test "ranks in networks of their own use them, on one host too" {
    local place=("nsenter" -t "$B" -n env WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500)
    RANK=1 "${place[@]}" "$EVENLOAD" comm sendrecv -e 4K -n 2 >one.txt 2>&1 3>&- &
    place[2]=$A
    RANK=0 "${place[@]}" "$EVENLOAD" comm sendrecv -e 4K -n 2 --quiet --json --out p >zero.json || show_file one.txt
    wait "$!"
    [[ $(json zero.json 'd["backend"], len({m["host"] for m in d["members"]})') == "('tcp', 1)" ]]
}

@test "two ranks on each of two hosts train over sockets" {
    local n others=()
    long "two ranks on each of two hosts"
    for n in 1 2 3; do
        at "$( ((n < 2)) && printf %s "$A" || printf %s "$B")" env RANK=$n WORLD_SIZE=4 LOCAL_RANK=$((n % 2)) MASTER_ADDR=10.77.0.1 \
            MASTER_PORT=29500 timeout 240 "$EVENLOAD" run --mode ddp "${QUICK[@]}" >"$n.txt" 2>&1 3>&- &
        others+=("$!")
    done
    at "$A" env RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 timeout 240 \
        "$EVENLOAD" run --mode ddp "${QUICK[@]}" --out r --quiet || show_file 1.txt
    wait "${others[@]}"
    communicator_is r tcp
    losses_are_those_of_single r
}

@test "ranks of two hosts meet and train, over IPv6" {
    long "ranks of two hosts over IPv6"
    at "$A" ip -6 address show dev eth0 | grep -q fd77::1 || skip "no IPv6 here"
    trains_at fd77::1
}

@test "mpirun starts ranks on two hosts, and they train over MPI" {
    long "mpirun between two hosts"
    need_mpirun
    # shellcheck disable=SC2016 # for mpirun's shell
    printf '%s\n' '#!/bin/sh' 'host=$1' 'shift' "case \$host in 10.77.0.1) at=$A ;; *) at=$B ;; esac" \
        'exec nsenter -t "$at" -n -u sh -c "$*"' >agent
    chmod +x agent
    at "$A" env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 240 mpirun --host 10.77.0.1,10.77.0.2 -np 2 \
        --bind-to none --mca plm_rsh_agent "$PWD/agent" --mca btl tcp,self --mca btl_tcp_if_include eth0 \
        --mca oob_tcp_if_include eth0 "$EVENLOAD" run --mode ddp "${QUICK[@]}" --out "$PWD/r" --quiet >out.txt 2>&1 || show_file out.txt
    losses_are_those_of_single r
    communicator_is r mpi
}

show_file() {
    cat "$1"
    return 1
}

@test "a cable that is cut ends both ranks soon, with the other host's name" {
    local zero=0 one=0 began
    long "a cable that is cut"
    rank 1 10.77.0.1 "${QUICK_MODEL[@]}" --batch 8 --min-time 60 >one.txt 2>&1 3>&- &
    local other=$!
    rank 0 10.77.0.1 "${QUICK_MODEL[@]}" --batch 8 --min-time 60 --out r --json >zero.txt 2>&1 3>&- &
    local first=$!
    until [[ -d r/repeats ]]; do sleep 0.1; done
    sleep 1
    nsenter -t "$SWITCH" -n ip link set port-b nomaster # nothing is said to anybody: packets are lost
    began=$SECONDS
    wait "$first" || zero=$?
    wait "$other" || one=$?
    echo "ended after $((SECONDS - began)) s: $zero $one"
    [[ $zero -ne 0 && $zero -ne 124 && $one -ne 0 && $one -ne 124 && $((SECONDS - began)) -le 30 ]] || { cat zero.txt one.txt && return 1; }
    grep -q "rank 1 .*(host \(node-b\|10.77.0.2\))" r/results.json zero.txt
    grep -q "rank 0 .*(host \(node-a\|10.77.0.1\))" one.txt
}
