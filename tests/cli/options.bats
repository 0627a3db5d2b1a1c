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

@test "no line of the overview is wider than 100 columns" {
    run "$EVENLOAD" help
    for line in "${lines[@]}"; do [[ ${#line} -le 100 ]] || { echo "$line" && show; }; done
}

# The synthetic set is written when all has been checked.
@test "each bad use has exit status 2 and a line that says what is wrong, and leaves nothing behind" {
    local line
    mkdir empty && cd empty
    while read -r line; do
        echo "$line"
        read -ra words <<<"${line#* :: }"
        refuses "${line%% :: *}" "$EVENLOAD" "${words[@]}"
        [[ -z $(ls) ]] || show
    done <<'END'
unknown command 'comprae': did you mean 'compare'? :: comprae
unknown command 'rnu' :: help rnu
must follow the command :: --json run
unknown option '-v': 'evenload --version' says the version :: -v
the record is in results.json :: watch --json -- true
unknown option '--batchs': did you mean '--batch'? :: compare --batchs 64
unknown option '--xylophone' :: compare --xylophone
unknown option '-q' :: run -q
--dry-run is an option of 'evenload run' :: compare --dry-run
--model needs a value :: run --model
--trace needs a value: the next word is the option --out :: run --trace --out x
--model needs a value: the next word is the option --batch=3 :: run --model --batch=3
-b needs a value: the next word is the option --check :: comm -b --check 0
--quiet takes no value :: run --quiet=yes
unexpected argument 'textcnn' :: run textcnn
unknown mode 'dpp': did you mean 'dp'? :: run --mode dpp
unknown mode 'ddq' :: compare --modes single,ddq
'dp' is there twice :: compare --modes dp,dp
--mode dp,ddp: give one value here :: run --mode dp,ddp
unknown model 'textcn': did you mean 'textcnn'? :: run --model textcn
--devices: 0 is out of range: give 1 to 64 :: run --devices 0
--devices: 100000 is out of range :: run --devices 100000
--devices: -2 is out of range :: run --devices=-2
unknown backend 'two' :: run --devices two
'1.5' is not a whole number :: run --devices 1.5
--precision tf32 is for GPUs :: run --devices 2 --precision tf32
--graph on is for GPUs, and the devices are cpu :: run --mode single --devices 1 --graph on
--graph: mode manual does not take it, single does :: run --mode manual --graph on
unknown backend 'cpi': did you mean 'cpu:2'? :: run --devices cpi:2
unknown backend 'gpu': did you mean 'cuda:2'? :: run --devices gpu:2
'0' in a list may be a core or a GPU: write cpu:0 or cuda:0 :: compare --devices 0,1
give null:2 :: run --devices null
cpu and null do not go together :: run --devices cpu:0,null:1
has an empty item :: compare --batch 64,,128
--batch: 0 is out of range :: run --batch 0
give one :: run --batch 64 --batch-per-device 32
'run' takes one batch :: run --batch 64,128
more than the 16384 training samples :: run --data dummy --batch 20000
--procs 3 does not go with 2 devices :: run --mode ddp --devices 2 --procs 3
mode dp is one process :: run --mode dp --devices 2 --procs 2
simulated devices live in one process :: run --mode ddp --devices sim:2 --procs 2
'10ms' is not a number :: run --min-time 10ms
--lr: 'nan' is not a number :: run --lr nan
--optimizer momentum=1 :: run --optimizer momentum=1
--model dropout: 1.5 is out of range :: run --model dropout=1.5
--steps: 0 is out of range :: run --steps 0
'lion' is not one of sgd|momentum|adam|adamw :: run --optimizer lion
--optimizer weight-decay: only --optimizer adamw has it: leave one of them out :: run --optimizer weight-decay=0.1 --optimizer adam
--clip: -1 is out of range :: run --clip -1
did you mean '--clip' :: run --max-grad-norm 1
unknown unit 'MB/s' :: run --devices mem=5MB/s
--seed: '-1' is not a whole number :: run --seed=-1
--classes 7: model toy always has 5 :: run --model toy --classes 7 --data dummy
--vocab: model mlp has none (it has features hidden) :: run --model mlp --vocab 50
--model dropout: model linear has none :: compare --model linear,dropout=0.3
--hidden: model textcnn has none :: run --hidden 4 --dry-run
--hidden: 'x' is not a whole number :: run --model mlp --hidden 8,x
which run? :: plot
no launcher started this process :: run --launcher rank
--launcher rank is for 'run' :: compare --launcher rank
--steps: --epochs 2 trains whole epochs: leave one of them out :: run --epochs 2 --steps 5
--min-time: --epochs 2 :: compare --min-time 1 --epochs 2
--optimizer adam has no momentum: leave it out :: run --optimizer momentum=0.5 --optimizer adam
--optimizer sgd has no momentum :: compare --optimizer sgd,momentum=0.9
--batch 1 is smaller than the 2 devices :: run --mode ddp --batch 1
mode single is one process :: run --procs 3
unknown disturbance 'foo' :: run --mode ddp --inject foo
simulated devices have no memory to leak :: run --mode ddp --devices sim:2 --inject leak=1:1MiB
a global batch of 100000 is more than :: run --batch 100000
a global batch of 100000 is more than :: compare --batch 8,100000
--comm mpi needs mpirun :: run --mode ddp --comm mpi --launcher own
--comm nccl is for GPUs, and the devices are cpu :: run --mode ddp --comm nccl
--seq :: run --seq 1
--classes :: run --classes 1
--checkpoint every: no checkpoints are written: give a folder too, --checkpoint DIR,every=... :: run --checkpoint every=5
--checkpoint with --repeats 2: each launch would begin again :: run --checkpoint X --repeats 2
--elastic 3:4: the job begins on 2 devices :: run --mode ddp --devices 2 --checkpoint X,restarts=1 --elastic 3:4
--resume X: give a folder of --checkpoint, or a step-N that is in it: No such file :: run --resume X
unknown disturbance 'foo' :: imbalance --inject foo
--precision tf32 is for GPUs :: scale --precision tf32
END
}

@test "the memory of GPUs without having them" {
    [[ -e $EVENLOAD_BUILD/modules/el_cuda.so ]] || skip "built without CUDA"
    run "$EVENLOAD" run --mode dp --devices cuda:2 --data dummy --dry-run
    [[ $status -eq 0 && $output == *"cuda:0"*"cuda:1"* ]] || show
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

@test "a batch smaller than the devices" {
    refuses "--batch 3 is smaller than the 4 devices" "$EVENLOAD" run --mode ddp --devices 4 --batch 3
    refuses "--batch 1 is smaller than the 2 copies of the model" "$EVENLOAD" run --mode mp --devices 4 --mesh dp=2 --batch 1
    "$EVENLOAD" run --mode mp --devices 3 --batch 2 --model mlp --data dummy --dry-run >/dev/null # all of it passes through each
}

@test "plot of a folder without a run" {
    mkdir empty
    refuses "empty" "$EVENLOAD" plot empty
    refuses "nowhere: there is no such folder" "$EVENLOAD" plot nowhere
}

@test "the next command names this program as a shell takes it, wherever it lies" {
    mkdir "a b;id"
    ln -s "$EVENLOAD" "a b;id/evenload"
    "./a b;id/evenload" imbalance --preset momentum --devices null:2 --dry-run >out.txt
    [[ $(tail -n 1 out.txt) == "Next: './a b;id/evenload' imbalance "* ]] || { cat out.txt && return 1; }
}
