# The command line: help, version, suggestions, and every bad use refused with exit status 2 and a clear line.
load common

@test "without a command the commands are listed" {
    run --separate-stderr "$EVENLOAD"
    [[ $status -eq 0 && $output == *compare* && $output == *devices* && -z $stderr ]] || show
}

@test "--help lists the commands" {
    run --separate-stderr "$EVENLOAD" --help
    [[ $status -eq 0 && $output == usage:* && -z $stderr ]] || show
}

@test "--version names version and commit" {
    run --separate-stderr "$EVENLOAD" --version
    [[ $status -eq 0 && $output =~ ^evenload\ [0-9.]+\ \(.+\)$ ]] || show
}

@test "help COMMAND is what COMMAND --help says" {
    local command n=0
    for command in $(every_command); do
        [[ $("$EVENLOAD" help "$command") == "$("$EVENLOAD" "$command" --help)" ]] || { echo "$command" && return 1; }
        n=$((n + 1))
    done
    [[ $n -ge 17 && $("$EVENLOAD" help run all) == "$("$EVENLOAD" run --help all)" ]] || return 1
    refuses "unexpected argument 'most': write 'evenload help run all'" "$EVENLOAD" help run most
}

@test "help of compare has every option of the issue's list" {
    run "$EVENLOAD" compare --help all
    for option in modes model devices procs batch batch-per-device steps warmup min-time repeats timeout optimizer lr \
        momentum dropout max-norm zero-grad dtype overlap seed device-mem data test epochs vocab embed seq filters \
        features hidden classes no-record out strict json quiet term launcher comm; do
        [[ $output == *"--$option "* ]] || { echo "no --$option" && show; }
    done
}

@test "no line of the overview is wider than 100 columns" {
    run "$EVENLOAD" help
    for line in "${lines[@]}"; do [[ ${#line} -le 100 ]] || { echo "$line" && show; }; done
}

@test "unknown command" {
    refuses "unknown command 'comprae': did you mean 'compare'?" "$EVENLOAD" comprae
}

@test "unknown command in help" {
    refuses "unknown command 'rnu'" "$EVENLOAD" help rnu
}

@test "an option before the command" {
    refuses "must follow the command" "$EVENLOAD" --json run
}

@test "an unknown option before the command, and --json of watch: hints that work" {
    refuses "unknown option '-v': 'evenload --version' says the version" "$EVENLOAD" -v
    refuses "the record is in results.json" "$EVENLOAD" watch --json -- true
}

@test "unknown option, with a suggestion" {
    refuses "unknown option '--batchs': did you mean '--batch'?" "$EVENLOAD" compare --batchs 64
}

@test "unknown option, with nothing near" {
    refuses "unknown option '--xylophone'" "$EVENLOAD" compare --xylophone
}

@test "unknown short option" {
    refuses "unknown option '-q'" "$EVENLOAD" run -q
}

@test "an option of another command" {
    refuses "--dry-run is an option of 'evenload run'" "$EVENLOAD" compare --dry-run
}

@test "an option without its value" {
    refuses "--model needs a value" "$EVENLOAD" run --model
}

@test "a value for a flag" {
    refuses "--quiet takes no value" "$EVENLOAD" run --quiet=yes
}

@test "an argument that is no option" {
    refuses "unexpected argument 'textcnn'" "$EVENLOAD" run textcnn
}

@test "unknown mode, with a suggestion" {
    refuses "unknown mode 'dpp': did you mean 'dp'?" "$EVENLOAD" run --mode dpp
}

@test "unknown mode in a list" {
    refuses "unknown mode 'ddq'" "$EVENLOAD" compare --modes single,ddq
}

@test "a mode twice" {
    refuses "'dp' is there twice" "$EVENLOAD" compare --modes dp,dp
}

@test "two modes for run" {
    refuses "--mode dp,ddp: give one value here" "$EVENLOAD" run --mode dp,ddp
}

@test "unknown model, with a suggestion" {
    refuses "unknown model 'textcn': did you mean 'textcnn'?" "$EVENLOAD" run --model textcn
}

@test "no devices" {
    refuses "--devices: 0 is out of range: give 1 to 64" "$EVENLOAD" run --devices 0
}

@test "an absurd number of devices" {
    refuses "--devices: 100000 is out of range" "$EVENLOAD" run --devices 100000
}

@test "a negative number of devices" {
    refuses "--devices: -2 is out of range" "$EVENLOAD" run --devices=-2
}

@test "devices that are not a number" {
    refuses "unknown backend 'two'" "$EVENLOAD" run --devices two
}

@test "half a device" {
    refuses "'1.5' is not a whole number" "$EVENLOAD" run --devices 1.5
}

@test "the memory of GPUs without having them" {
    [[ -e $EVENLOAD_BUILD/modules/el_cuda.so ]] || skip "built without CUDA"
    run "$EVENLOAD" run --mode dp --devices cuda:2 --data dummy --dry-run
    [[ $status -eq 0 && $output == *"cuda:0"*"cuda:1"* ]] || show
}

@test "TF32 without a GPU" {
    refuses "--tf32 on is for GPUs" "$EVENLOAD" run --devices 2 --tf32 on
}

@test "a step as a CUDA graph where none can be" {
    refuses "--graph on is for GPUs, and the devices are cpu" "$EVENLOAD" run --mode single --devices 1 --graph on
    refuses "--graph: mode ddp does not take it, single does" "$EVENLOAD" run --mode ddp --graph on
}

# One line at once and status 2, whatever is missing: the build, the driver, the cards.
@test "GPUs where there are none" {
    run "$EVENLOAD" devices
    [[ $output != *"cuda     yes"* ]] || skip "there are GPUs here"
    local command
    for command in compare "run --mode ddp"; do
        # shellcheck disable=SC2086 # words of a command
        refuses "cuda: " "$EVENLOAD" $command --devices cuda:2
        [[ $stderr == *"built without CUDA"* || $stderr == *"no NVIDIA driver found"* || $stderr == *"no GPU"* ]] || show
    done
    [[ ! -e results ]] || show
}

@test "an unknown backend, with a suggestion" {
    refuses "unknown backend 'cpi': did you mean 'cpu:2'?" "$EVENLOAD" run --devices cpi:2
    refuses "unknown backend 'gpu': did you mean 'cuda:2'?" "$EVENLOAD" run --devices gpu:2
    refuses "'0' in a list may be a core or a GPU: write cpu:0 or cuda:0" "$EVENLOAD" compare --devices 0,1
}

@test "a backend without a number" {
    refuses "give null:2" "$EVENLOAD" run --devices null
}

@test "devices of two backends" {
    refuses "cpu and null do not go together" "$EVENLOAD" run --devices cpu:0,null:1
}

@test "an empty item in a list" {
    refuses "has an empty item" "$EVENLOAD" compare --batch 64,,128
}

@test "a batch of nothing" {
    refuses "--batch: 0 is out of range" "$EVENLOAD" run --batch 0
}

@test "a batch smaller than the devices" {
    refuses "--batch 3 is smaller than the 4 devices" "$EVENLOAD" run --mode ddp --devices 4 --batch 3
    refuses "--batch 1 is smaller than the 2 copies of the model" "$EVENLOAD" run --mode mp --devices 4 --mesh dp=2 --batch 1
    "$EVENLOAD" run --mode mp --devices 3 --batch 2 --model mlp --data dummy --dry-run >/dev/null # all of it passes through each
}

@test "global and local batch together" {
    refuses "give one" "$EVENLOAD" run --batch 64 --batch-per-device 32
}

@test "several batches for run" {
    refuses "'run' takes one batch" "$EVENLOAD" run --batch 64,128
}

@test "a batch larger than the data" {
    refuses "more than the 16384 training samples" "$EVENLOAD" run --data dummy --batch 20000
}

@test "processes that do not go with the devices" {
    refuses "--procs 3 does not go with 2 devices" "$EVENLOAD" run --mode ddp --devices 2 --procs 3
}

@test "several processes for a mode of one process" {
    refuses "mode dp is one process" "$EVENLOAD" run --mode dp --devices 2 --procs 2
}

@test "several processes for simulated devices" {
    refuses "simulated devices live in one process" "$EVENLOAD" run --mode ddp --devices sim:2 --procs 2
}

@test "a number with a unit it does not have" {
    refuses "'10ms' is not a number" "$EVENLOAD" run --min-time 10ms
}

@test "a learning rate that is not a number" {
    refuses "--lr: 'nan' is not a number" "$EVENLOAD" run --lr nan
}

@test "a momentum of 1" {
    refuses "--momentum 1" "$EVENLOAD" run --momentum 1
}

@test "a dropout beyond 1" {
    refuses "--dropout: 1.5 is out of range" "$EVENLOAD" run --dropout 1.5
}

@test "no steps" {
    refuses "--steps: 0 is out of range" "$EVENLOAD" run --steps 0
}

@test "an unknown optimizer" {
    refuses "'adamw' is not one of sgd|momentum|adam" "$EVENLOAD" run --optimizer adamw
}

@test "an unknown data type" {
    refuses "'f16' is not one of f32|f64" "$EVENLOAD" run --dtype f16
}

@test "memory in an unknown unit" {
    refuses "unknown unit 'MB/s'" "$EVENLOAD" run --device-mem 5MB/s
}

@test "a negative seed" {
    refuses "--seed: '-1' is not a whole number" "$EVENLOAD" run --seed=-1
}

@test "more classes than the model has" {
    refuses "--classes 7: model toy always has 5" "$EVENLOAD" run --model toy --classes 7 --data dummy
    refuses "--vocab: model mlp has none (it has features hidden)" "$EVENLOAD" run --model mlp --vocab 50
    refuses "--dropout: model linear has none" "$EVENLOAD" compare --model linear --dropout 0.3
    refuses "--hidden: model textcnn has none" "$EVENLOAD" run --hidden 4 --dry-run
}

@test "hidden layers that are not numbers" {
    refuses "--hidden: 'x' is not a whole number" "$EVENLOAD" run --model mlp --hidden 8,x
}

@test "plot without a folder" {
    refuses "which run?" "$EVENLOAD" plot
}

@test "plot of a folder without a run" {
    mkdir empty
    refuses "empty" "$EVENLOAD" plot empty
}

@test "to be a rank without a launcher" {
    refuses "no launcher started this process" "$EVENLOAD" run --launch rank
}

@test "compare as a rank" {
    refuses "--launch rank is for 'run'" "$EVENLOAD" compare --launch rank
}

# The synthetic set is written when all has been checked.
@test "nothing is left behind by a bad use" {
    local line words
    while read -r line; do
        read -ra words <<<"$line"
        run "$EVENLOAD" "${words[@]}"
        [[ $status -eq 2 && ${#lines[@]} -eq 1 && -z $(ls) ]] || { echo "$line: $(ls)" && show; }
    done <<'END'
run --mode ddp --devices 4 --batch 3 --data dummy
run --mode ddp --batch 1
run --procs 3
run --mode ddp --procs 3
run --mode ddp --inject foo
run --mode ddp --devices sim:2 --inject leak=1:1MiB
run --mode ddp --devices sim:2 --procs 2
run --tf32 on
run --batch 100000
run --mode ddp --comm mpi --launcher own
run --seq 1
run --classes 1
compare --batch 8,100000
imbalance --inject foo
scale --tf32 on
END
}

@test "options of which one would change nothing" {
    refuses "--steps: --epochs 2 trains whole epochs: leave one of them out" "$EVENLOAD" run --epochs 2 --steps 5
    refuses "--min-time: --epochs 2" "$EVENLOAD" compare --min-time 1 --epochs 2
    refuses "--momentum: --optimizer adam has none: leave one of them out" "$EVENLOAD" run --momentum 0.5 --optimizer adam
    refuses "--momentum: --optimizer sgd has none" "$EVENLOAD" compare --optimizer sgd --momentum 0.9
}

@test "the next command names this program as a shell takes it, wherever it lies" {
    mkdir "a b;id"
    ln -s "$EVENLOAD" "a b;id/evenload"
    "./a b;id/evenload" imbalance --preset momentum --devices null:2 --dry-run >out.txt
    [[ $(tail -n 1 out.txt) == "Next: './a b;id/evenload' imbalance "* ]] || { cat out.txt && return 1; }
}
