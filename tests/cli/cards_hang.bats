# What would hang on several cards ends, or is refused, in a line (tests/cards): streams that share a hardware queue, a rank that is stuck in a
# call of CUDA's, memory that one rank alone could register, releases of NCCL whose communicators wait for each other.
load common
PICTURES=no

CARDS=${EVENLOAD_BUILD:-$PWD/build}/cards/evenload
SMALL=(--model mlp --features 64 --hidden '64,64,64,64' --data dummy --batch 16 --steps 3 --warmup 1 --min-time 0 --control none --quiet --timeout 20)

setup() {
    [[ -x $CARDS ]] || skip "no fake cards: they need a C++ compiler"
    cd "$BATS_TEST_TMPDIR" || return 1
    export FAKE_CARDS=4
}

# ends STATUS WORDS OPTIONS...: these words are in what it says.
ends() {
    local wanted=$1 words=$2
    shift 2
    rm -rf out
    run --separate-stderr timeout 60 "$CARDS" run "${SMALL[@]}" --out out "$@"
    [[ $status == "$wanted" && $(tr -s ' \n' ' ' <<<"$output$stderr") == *"$words"* ]] || { echo "$*" && show; }
    ! grep -rE 'fakecards|Sanitizer' out/logs || show
}

schedules() {
    local schedule
    for schedule in 1f1b gpipe interleaved zero-bubble; do
        ends "$1" "$2" --mode pipeline --devices cuda:2 --procs 2 --schedule "$schedule,micro=8"
        ends "$1" "$2" --mode pipeline --devices cuda:4 --procs 4 --mesh dp=2,pp=2 --schedule "$schedule,micro=4"
        [[ $schedule == interleaved ]] || ends "$1" "$2" --mode pipeline --devices cuda:4 --procs 4 --schedule "$schedule,micro=8"
    done
    ends "$1" "$2" --mode mp --devices cuda:4 --procs 4
}

@test "pipelines end on a card of one hardware queue, of two or of eight, because more are asked for; where the user forbids it they are refused" {
    local all=1
    [[ ${EVENLOAD_LONG:-} != 1 ]] || all="1 2 8"
    for queues in $all; do FAKE_CARDS_QUEUES=$queues schedules 0 ""; done
    [[ $(json out/results.json 'd["environment"]["gpu_variables"]["CUDA_DEVICE_MAX_CONNECTIONS"]') == 32 ]] || show
    CUDA_LAUNCH_BLOCKING=1 ends 1 "CUDA_LAUNCH_BLOCKING is set: the host waits for each message" --mode pipeline --devices cuda:2 --procs 2
    for queues in 1 2 8; do
        FAKE_CARDS_QUEUES=8 CUDA_DEVICE_MAX_CONNECTIONS=$queues ends 1 "CUDA_DEVICE_MAX_CONNECTIONS is $queues: streams share hardware queues" \
            --mode pipeline --devices cuda:2 --procs 2
    done
}

@test "modes without messages train on a card of one hardware queue, which the user asks for" {
    for mode in ddp manual tp zero1 zero2 zero3; do
        FAKE_CARDS_QUEUES=8 CUDA_DEVICE_MAX_CONNECTIONS=1 ends 0 "" --mode $mode --devices cuda:2 --procs 2
    done
    FAKE_CARDS_QUEUES=8 CUDA_DEVICE_MAX_CONNECTIONS=1 ends 0 "" --mode dp --devices cuda:2
    FAKE_CARDS_QUEUES=8 CUDA_DEVICE_MAX_CONNECTIONS=1 ends 0 "" --mode tp --devices cuda:4 --procs 4 --mesh dp=2,tp=2
}

# A kernel that never ends, behind the first runs, which have a minute, and a stream that takes 1,024 items: the host waits to queue more.
@test "a rank that is stuck in a call of CUDA's ends the job after --comm-timeout, and says in which op" {
    local SECONDS=0
    FAKE_CARDS_FAIL=stuck:1:4100 ends 1 "rank 1: cuda:1: the call that queues" \
        --mode ddp --devices cuda:2 --batch 96 --accumulate 48 --comm-timeout 1
    [[ $(json out/results.json 'd["trials"][0]["reason"]') == *"did not return within 1 s (--comm-timeout): the card is stuck"* ]] || show
    [[ $SECONDS -lt 15 ]]
}

@test "memory that NCCL registers for one rank alone is not used" {
    FAKE_CARDS_FAIL=ncclCommRegister:1:1 ends 1 "cuda:1: nccl memory_register" --mode ddp --devices cuda:2 --comm nccl
    FAKE_CARDS_FAIL=ncclMemAlloc:1:1 ends 1 "cuda:1: nccl memory_take" --mode ddp --devices cuda:2 --comm nccl
}

@test "NCCL before 2.26: no meshes, whose communicators might wait for each other; messages and one communicator as before" {
    export FAKE_CARDS_NCCL=22105
    ends 0 "" --mode ddp --devices cuda:2 --comm nccl
    ends 0 "" --mode pipeline --devices cuda:2 --procs 2 --comm nccl
    ends 2 "a mesh needs NCCL 2.26 or newer, and this is 2.21.5" --mode tp --devices cuda:4 --procs 4 --mesh dp=2,tp=2 --comm nccl
    ends 0 "" --mode tp --devices cuda:4 --procs 4 --mesh dp=2,tp=2 --comm tcp
}
