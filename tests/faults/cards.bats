# What goes wrong on GPUs and between their ranks, on cards that are none (tests/cards): each ends within seconds with one line of reason, exit
# status 1, and no process left.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load ../cli/common
PICTURES=no
stderr='' # set by run

CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
SHORT=(--mode ddp --model toy --data dummy --warmup 1 --control none --launcher own --quiet --timeout 60)
RANKS=("${SHORT[@]}" --devices 'cuda:0,cuda:1' --steps 1000000) # as long as it goes well
ILLEGAL='an illegal memory access was encountered (cudaErrorIllegalAddress)'
FABRIC='system not yet initialized (cudaErrorSystemNotReady); start the fabric manager (nvidia-fabricmanager), which cards with NVSwitch need'

setup_cards() {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    export FAKE_CARDS=2
}

nothing_is_left() { # nothing_is_left FOLDER: a process whose result's path is in its arguments
    [[ -z $(pgrep -f "worker measure $PWD/$1/repeats") ]] || { pgrep -fa "worker measure $PWD/$1/repeats" && return 1; }
}

# ends_with STATUS REASON RULE OPTION...: a pattern is what the row says of ranks whose cards fail as the rule says, long before --timeout.
ends_with() {
    local wanted=$1 reason=$2 rule=$3 began=$SECONDS code=0 said
    shift 3
    rm -rf "$PWD/f"
    FAKE_CARDS_FAIL=$rule timeout 120 "$CARDS" run "${RANKS[@]}" "$@" --out "$PWD/f" >out 2>&1 || code=$?
    [[ $code -eq 1 && $((SECONDS - began)) -le 45 ]] || { echo "$rule: status $code" && cat out && return 1; }
    said=$(json f/results.json 'd["trials"][0]["status"] + ": " + d["trials"][0]["reason"]')
    # shellcheck disable=SC2053 # the reason is a pattern
    [[ $said == $wanted:\ $reason ]] || { echo "$rule: $said" && return 1; }
    nothing_is_left f
}

# signal_rank SIGNAL SECONDS OPTION...: rank 1 gets it while it trains; the job has to end within so many seconds.
signal_rank() {
    local signal=$1 limit=$2 job code=0 try began
    shift 2
    "$CARDS" run "${RANKS[@]}" --procs 2 "$@" --out "$PWD/s" >out 2>&1 3>&- &
    job=$!
    for ((try = 0; try < 300; try++)); do
        ! cat "$PWD"/s/logs/*/rank-1.pid >pid 2>/dev/null || break
        sleep 0.1
    done
    sleep 1 # it trains
    began=$SECONDS
    kill -"$signal" "$(<pid)"
    timeout $((limit + 10)) tail --pid=$job -f /dev/null || kill -KILL $job
    wait $job || code=$?
    [[ $code -eq 1 && $((SECONDS - began)) -le $limit ]] || { echo "status $code after $((SECONDS - began)) s" && cat out && return 1; }
    nothing_is_left s
}

# Two ranks under torchrun's variables, of which each sees one card, as under Slurm's --gpus-per-task.
# shellcheck disable=SC2120 # a test may give it options
one_card_a_rank() {
    local rank ranks=() port=$((20000 + BASHPID % 9000))
    for rank in 0 1; do
        env CUDA_VISIBLE_DEVICES=$rank RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            timeout 120 "$CARDS" run "${SHORT[@]}" --steps 3 --out "$PWD/one" >"rank-$rank" 2>&1 3>&- &
        ranks+=($!)
    done
    for rank in "${ranks[@]}"; do wait "$rank" || { cat rank-? && return 1; }; done
}

@test "a rank on a card that is killed ends the job within 5 s" {
    setup_cards
    local graph
    for graph in off on; do
        rm -rf s
        signal_rank KILL 5 --graph $graph
        [[ $(json s/results.json 'd["trials"][0]["reason"]') == "rank 1 was killed by signal 9 (Killed)" ]] || show
    done
}

@test "a rank on a card that is stopped ends the job after --comm-timeout, and is named" {
    long "a rank on a fake card that stops"
    setup_cards
    local graph
    for graph in off on; do
        rm -rf s
        signal_rank STOP 45 --comm-timeout 1s --graph $graph
        [[ $(json s/results.json 'd["trials"][0]["reason"]') == "nccl communicator: not finished after 1 s: rank 1 (process $(<pid)) is stopped; rank 1 does not answer (stopped?)" ]] || show
    done
}

@test "cards that fail end the job with the driver's words and what to do" {
    setup_cards
    ends_with failed "cuda:1: cudaFree: $FABRIC" cudaFree:1:1=802 --procs 2
    # The rank's own call or its NCCL may meet the error first.
    ends_with failed "@(cuda:1: cuda*: $ILLEGAL|the all_reduce number * of rank 1: cuda:1: cuda*: $ILLEGAL; cuda:1: nccl all_reduce: unhandled cuda error*)" kernel:1:200=700 --procs 2
    ends_with oom "cuda:1: cudaEventRecord: out of memory (cudaErrorMemoryAllocation); take a smaller batch or model, or end other processes on the card" \
        cudaEventRecord:1:100=2 --procs 2
}

# What another rank says of it explains nothing.
@test "an NCCL that fails is told in the words of the rank where it did" {
    setup_cards
    ends_with failed "cuda:1: nccl communicator: an operation failed: remote process exited or there was a network error: ncclAsync: socketProgress: connection closed by remote peer; NCCL_DEBUG=INFO tells more" \
        ncclAsync:1:6=6 --procs 2
    # In a graph, which the abort waits for.
    ends_with failed "cuda:1: nccl communicator: an operation failed: *" ncclAsync:1:90=6 --procs 2 --graph on
    ends_with failed "*nccl communicator: an operation failed: *" ncclAsync:1:90=6 --procs 1 --graph on
    [[ ${EVENLOAD_LONG:-} == 1 ]] || {
        echo "# long: more calls of fake cards that fail, with a thread per card too: 15 s" >&3
        return
    }
    local closed='unhandled system error (run with NCCL_DEBUG=INFO for details): CALL: socketProgress: connection closed by remote peer; NCCL_DEBUG=INFO tells more'
    ends_with failed "cuda:1: nccl comm_open: ${closed/CALL/ncclCommInitRankConfig}" ncclCommInitRankConfig:1:1=2 --procs 2
    ends_with failed "the all_reduce number 12 of rank 1: cuda:1: nccl all_reduce: ${closed/CALL/ncclAllReduce}" ncclAllReduce:1:5 --procs 2
    # of two threads either may tell it: only the one whose call failed knows its number
    ends_with failed "*nccl all_reduce: ${closed/CALL/ncclAllReduce}" ncclAllReduce:1:5 --procs 1
    ends_with failed "cuda:1: cudaFree: $FABRIC" cudaFree:1:1=802 --procs 1
    ends_with failed "cuda:1: cublasSgemmStridedBatched_64: CUBLAS_STATUS_EXECUTION_FAILED" cublasGemm:1:30=3 --procs 1
}

# A step of this model has 13 kernels, of which 5 are products: the first kernel of the 21st step stays, and its third product cannot be queued. Nothing
# of it is given back, which would wait for ever.
@test "after a failure a stream that never ends is waited for some seconds, and left" {
    setup_cards
    ends_with failed "cuda:0: cublasSgemmStridedBatched_64: CUBLAS_STATUS_EXECUTION_FAILED; streams did not end within 5 s of this and are left to the end of the process" \
        stuck:0:261,cublasGemm:0:103=3 --mode single --devices cuda:0,
}

@test "ranks that see one card each train over NCCL, on a T4 too; an older card is refused" {
    setup_cards
    export FAKE_CARDS_MODEL=T4
    one_card_a_rank
    [[ $(json one/results.json 'd["trials"][0]["status"], d["trials"][0]["communicator"], d["trials"][0]["repeats"][0]["status"]') == "('ok', 'nccl', 'ok')" ]]
    run --separate-stderr env FAKE_CARDS_MODEL=V100 timeout 120 "$CARDS" run "${SHORT[@]}" --mode single --devices cuda:0, --steps 2 --out old
    [[ $status -ne 0 && $output$stderr == *"compute capability 7.0"* ]] || show
}
