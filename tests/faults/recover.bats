# Ranks that die or stop while checkpoints are written: the job goes on as if nothing had happened.
# shellcheck disable=SC2030,SC2031 # a test is a subshell, and what it sets is its own
load ../cli/common
PICTURES=no

JOB=(--data dummy --batch 8 --optimizer adamw --warmup 0 --min-time 0 --control none --launcher own --no-record --quiet --steps 40)
TOY=(--model gpt --vocab 48 --layers 2 --embed 16 --seq 6 --heads 4)

# fall MODE STEP RANK EVERY: the losses behind it are those of the folder whole-MODE.
fall() {
    local mode=$1 step=$2 rank=$3 every=$4 code=0
    rm -rf ck fallen
    timeout 120 "$EVENLOAD" run --mode "$mode" --devices 2 "${TOY[@]}" "${JOB[@]}" --load w --checkpoint "ck,every=$every,restarts=1" \
        --inject "kill=$rank:$step" --out fallen >out 2>&1 || code=$?
    [[ $code -eq 0 ]] || { echo "$mode, $rank at $step: status $code" && cat out && return 1; }
    python3 - "whole-$mode" "$step" "$every" <<'END'
import json, sys
trial = lambda d: json.load(open(d + "/results.json"))["trials"][0]
whole, fallen, step, every = trial(sys.argv[1])["loss"], trial("fallen"), int(sys.argv[2]), int(sys.argv[3])
rest, at = fallen["loss"], fallen["first_step"]
assert len(fallen["restarts"]) == 1 and "killed by signal 9" in fallen["restarts"][0]["reason"], fallen["restarts"]
# What was being written when the rank died may be lost, and what was written while that waited; no more.
assert at % every == 0 and at < step and at >= step - 1 - 4 * every - 8, (at, step, every)
assert len(whole) == 40 and rest == whole[at:], (at, step, rest[:2], whole[at:at + 2])
END
}

@test "kills at any step, in every mode and while checkpoints are being written: losses go on bit for bit" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer's program takes longer"
    local mode n=1 i rank step devices
    if [[ ${EVENLOAD_LONG:-} == 1 ]]; then n=18; else echo "# long: 18 kills in each mode instead of one, two minutes" >&3; fi
    RANDOM=7
    "$EVENLOAD" run --mode single "${TOY[@]}" "${JOB[@]}" --seed 3 --save w --out w.run >out 2>&1
    for mode in single dp ddp manual spmg mp pipeline tp zero1 zero2 zero3; do
        devices=2
        "$EVENLOAD" run --mode "$mode" --devices "$devices" "${TOY[@]}" "${JOB[@]}" --load w --out "whole-$mode" >out 2>&1 || { cat out && return 1; }
        for ((i = 0; i < n; i++)); do
            rank=$((RANDOM % 2)) step=$((2 + RANDOM % 37))
            [[ $mode != single ]] || rank=0
            fall "$mode" "$step" "$rank" $((1 + RANDOM % 3))
        done
    done
}

@test "a rank that stops, in training or after it, is lost when the others have waited long enough, and the job is started again" {
    "$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --out whole >out 2>&1
    "$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --checkpoint ck,every=5,restarts=3 --comm-timeout 2 --timeout 60 \
        --inject stop=1:12,kill=0:30,stop=1:40 --out fallen >out 2>&1 || { cat out && return 1; }
    [[ $(json fallen/results.json '[("does not answer" in r["reason"] or "stopped" in r["reason"], "signal 9" in r["reason"]) for r in d["trials"][0]["restarts"]]') == "[(True, False), (False, True), (True, False)]" ]] ||
        { json fallen/results.json 'd["trials"][0]["restarts"]' && return 1; }
    python3 -c 'import json
a, b = [json.load(open(d + "/results.json"))["trials"][0]["loss"] for d in ("whole", "fallen")]
assert 0 < len(b) < 40 and a[-len(b):] == b, (len(b), a[-3:], b[-3:])'
    cut -d, -f1 ck/events.csv | grep -v step | tr '\n' ' ' >words
    [[ $(cat words) == "event start stop end restart start kill end restart start stop end restart start end " ]] || { cat words && return 1; }
    [[ ${EVENLOAD_LONG:-} == 1 ]] || { echo "# long: a rank of mpirun that stops, 4 s" >&3 && return 0; }
    has_mpirun || return 0
    rm -rf ck fallen
    "$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --launcher mpirun --checkpoint ck,every=5,restarts=1 --comm-timeout 2 \
        --timeout 60 --inject stop=1:40 --out fallen >out 2>&1 || { cat out && return 1; }
    [[ $(json fallen/results.json '[r["reason"] for r in d["trials"][0]["restarts"]]') == "['mpi: rank 1 is stopped, and was waited for 2 s']" ]] ||
        { json fallen/results.json 'd["trials"][0]["restarts"]' && return 1; }
}

# The losses of the folder `fallen` are single's.
are_singles() {
    python3 -c 'import json
a, b = [json.load(open(d + "/results.json"))["trials"][0] for d in ("whole", "fallen")]
x, y = a["loss"][b["first_step"]:], b["loss"]
assert 0 < len(y) < 300 and b["first_step"] > 0 and max(abs(p - q) / abs(p) for p, q in zip(x, y)) < 1e-9, (b["first_step"], x[:3], y[:3])'
}

@test "elastic: four devices, three, and four again; of two one, in every mode that can; losses are single's" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer's program takes longer"
    local times=1 inject='' i mode rank=0 modes='ddp pipeline zero2'
    if [[ ${EVENLOAD_LONG:-} == 1 ]]; then times=10 modes='ddp manual mp pipeline tp zero1 zero2 zero3'; else echo "# long: ten times instead of one, and each mode" >&3; fi
    JOB+=(--batch 12 --precision f64 --checkpoint "restarts=$times")
    "$EVENLOAD" run --mode single "${TOY[@]}" "${JOB[@]}" --checkpoint restarts=0 --seed 3 --save w --out w.run >out 2>&1 || { cat out && return 1; }
    JOB+=(--load w)
    "$EVENLOAD" run --mode single "${TOY[@]}" "${JOB[@]}" --checkpoint restarts=0 --steps $((times * 300)) --out whole >out 2>&1
    for ((i = 0; i < times; i++)); do inject+=",kill=$((i % 3)):$((i * 300 + 30)),come=$((i * 300 + 50))"; done
    for mode in ddp zero3; do
        rm -rf ck fallen
        timeout 120 "$EVENLOAD" run --mode "$mode" --devices 4 "${TOY[@]}" "${JOB[@]}" --steps $((times * 300)) --checkpoint ck,every=10 --elastic 3:4 \
            --inject "${inject#,}" --out fallen >out 2>&1 || { cat out && return 1; }
        [[ $(json fallen/results.json '[r["devices"] for r in d["trials"][0]["restarts"]]') == "[$(for ((i = 1; i < times; i++)); do printf '3, 4, '; done)3, 4]" ]] ||
            { json fallen/results.json 'd["trials"][0]["restarts"]' && return 1; }
        are_singles
    done
    for mode in $modes; do
        for launcher in own mpirun; do
            [[ $launcher == own ]] || { [[ $mode == ddp ]] && has_mpirun; } || continue
            rm -rf ck fallen
            timeout 60 "$EVENLOAD" run --mode "$mode" --devices 2 --procs 2 "${TOY[@]}" "${JOB[@]}" --launcher "$launcher" --steps 20 --checkpoint ck,every=3 \
                --elastic 1:2 --inject "kill=$((rank++ % 2)):12" --out fallen >out 2>&1 || { cat out && return 1; }
            [[ $(json fallen/results.json '[r["devices"] for r in d["trials"][0]["restarts"]]') == "[1]" ]] || { cat out && return 1; }
            are_singles
        done
    done
    refuses "give MIN:MAX devices, like 3:4" "$EVENLOAD" run --mode ddp --devices 4 "${TOY[@]}" "${JOB[@]}" --checkpoint c2 --elastic 3
    refuses "mode dp has not a process for each device" "$EVENLOAD" run --mode dp --devices 4 "${TOY[@]}" "${JOB[@]}" --checkpoint c2 --elastic 3:4
    refuses "--elastic with --shares, which fits one number of devices: leave one of them out" "$EVENLOAD" run --mode ddp --devices 2 --shares 1,2 "${TOY[@]}" "${JOB[@]}" --checkpoint c2 --elastic 1:2
}

# At a rate so small that the weights stay, a step's loss says which samples it had.
@test "elastic, a device's batch stays: the data go on where they were, and the learning rate follows" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer's program takes longer"
    local common=(--model mlp --features 6 --hidden 4 --data dummy --precision f64 --optimizer sgd --lr 1e-12 --warmup 0 --control none --launcher own --no-record --quiet --epochs 12)
    "$EVENLOAD" run --mode single --batch 64 "${common[@]}" --out whole >out 2>&1
    "$EVENLOAD" run --mode ddp --devices 4 --batch 64 "${common[@]}" --checkpoint ck,every=7,restarts=1 --elastic 3:4,batch=device \
        --inject kill=1:20,come=40 --out fallen >out 2>&1 || { cat out && return 1; }
    python3 - <<'END'
import json
trial = lambda d: json.load(open(d + "/results.json"))["trials"][0]
whole, fallen = trial("whole")["loss"], trial("fallen")
(three, four), loss = fallen["restarts"], fallen["loss"]
assert (three["devices"], three["global_batch"], four["devices"], four["global_batch"]) == (3, 48, 4, 64), fallen["restarts"]
assert abs(three["lr"] / 0.75e-12 - 1) < 1e-12 and abs(four["lr"] / 1e-12 - 1) < 1e-12, fallen["restarts"]
def of(batch, size, other):                                              # an epoch ends with its last whole batch
    return batch // (SAMPLES // size) * (SAMPLES // other) - (-(batch % (SAMPLES // size) * size) // other)
SAMPLES = 16384 - trial("whole")["epochs"][0]["held_out"]["samples"]
place = of(of(three["step"], 64, 48) + four["step"] - three["step"], 48, 64)
assert len(loss) == len(whole) - place, (len(loss), len(whole), place)
assert max(abs(x - y) for x, y in zip(whole[place:], loss, strict=True)) < 1e-9
assert len({round(x, 9) for x in loss}) > len(loss) / 2                 # batches differ
END
    refuses "the number of devices does not change: add --elastic" "$EVENLOAD" run --mode ddp --devices 4 "${common[@]}" --checkpoint c2 --elastic batch=device
    refuses "a batch of 6 is not the same on 4 devices" "$EVENLOAD" run --mode ddp --devices 4 --batch 6 "${common[@]}" --checkpoint c2,restarts=1 --elastic 3:4,batch=device
}

@test "the bits of losses depend neither on how many steps follow nor on who carries them" {
    local job=("$EVENLOAD" run --mode ddp --devices 3 "${TOY[@]}" "${JOB[@]}" --batch 12 --precision f64)
    "${job[@]}" --comm tcp --steps 300 --out tcp >out 2>&1 && "${job[@]}" --comm tcp --steps 199 --out less >out 2>&1 || { cat out && return 1; }
    "${job[@]}" --comm shm --comm-algorithm ring --steps 300 --out shm >out 2>&1 || { cat out && return 1; }
    python3 -c 'import json
a, b, c = [json.load(open(d + "/results.json"))["trials"][0]["loss"] for d in ("tcp", "less", "shm")]
assert len(a) == 300 and len(b) == 199 and a[:199] == b, [i for i in range(199) if a[i] != b[i]]
assert a[0] == c[0], (a[0], c[0])  # later on weights differ: gradients are added in another order'
}

@test "losses that are no numbers go into a checkpoint and back" {
    local common=(--mode ddp --devices 2 --model mlp --data synthetic --hidden "64,64,64,64,64,64" --epochs 3 --batch 256 --lr 1000 --optimizer momentum=0.99 --warmup 0 --control none --launcher own --quiet)
    "$EVENLOAD" run "${common[@]}" --out whole >out 2>&1 || { cat out && return 1; }
    local every
    every=$(json whole/results.json 'len(d["trials"][0]["loss"]) // 3 * 2')
    "$EVENLOAD" run "${common[@]}" --checkpoint "ck,every=$every" --out first >out 2>&1 || { cat out && return 1; }
    "$EVENLOAD" run "${common[@]}" --resume ck --out rest >out 2>&1 || { cat out && return 1; }
    [[ $(json whole/results.json '[e["train_loss"] for e in d["trials"][0]["epochs"]].count(None)') -ge 1 ]] || { json whole/results.json 'd["trials"][0]["epochs"]' && return 1; }
    [[ $(json rest/results.json '[(e["train_loss"], e["held_out_accuracy"]) for e in d["trials"][0]["epochs"]]') == "$(json whole/results.json '[(e["train_loss"], e["held_out_accuracy"]) for e in d["trials"][0]["epochs"]]')" ]]
    grep -q "Steps are counted from $every on" out
}

@test "a folder of checkpoints is one job's; a job that is done, or lacks a file, is refused before it is launched" {
    "$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --checkpoint ck,every=10 --out f >out 2>&1 || { cat out && return 1; }
    refuses "the path is too long: give one of fewer than" "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --checkpoint "$(printf 'c/%.0s' {1..500})" --out g
    refuses "another evenload writes into this folder" flock -n ck "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --checkpoint ck --resume ck --steps 60 --out g
    refuses "--resume ck/step-40: its 40 steps are all that --warmup and --steps ask for (40): give more --steps" "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --resume ck --out g
    refuses "--checkpoint ck has checkpoints already: give --resume ck to go on from the last one, or another folder" \
        "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --checkpoint ck --steps 60 --out g
    cp -r ck other
    refuses "--checkpoint other has checkpoints already: give --resume other" "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --resume ck --checkpoint other --steps 60 --out g
    refuses "--resume ck/step-30: --checkpoint ck has later ones, up to step-40: give --resume ck" \
        "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --resume ck/step-30 --checkpoint ck --steps 60 --out g
    diff -r ck other
    rm ck/step-40/rank-1.safetensors
    refuses "ck/step-40/rank-1.safetensors: No such file or directory: give --resume another checkpoint" "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --steps 60 --resume ck/step-40 --out g
    "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --steps 60 --resume ck --dry-run >out 2>&1
    grep -qx "evenload: ck/step-40/rank-1.safetensors: No such file or directory: going on from ck/step-30 instead" out
    "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" --checkpoint dry --dry-run >out 2>&1
    [[ ! -e g && ! -e dry ]] || { ls && return 1; }
}

@test "a checkpoint of another --precision goes on, its values converted" {
    local from to off
    while read -r from to off; do
        rm -rf ck whole rest
        "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" "$from" --checkpoint ck,every=10 --out whole >out 2>&1 || { cat out && return 1; }
        "$EVENLOAD" run "${TOY[@]}" "${JOB[@]}" "$to" --resume ck/step-30 --out rest >out 2>&1 || { cat out && return 1; }
        python3 - "$off" <<'END'
import json, sys
whole, rest = (json.load(open(d + "/results.json"))["trials"][0]["loss"] for d in ("whole", "rest"))
assert len(rest) == 10 and 0 < abs(rest[0] - whole[30]) < float(sys.argv[1]) < abs(whole[0] - whole[30]), (whole, rest)
END
    done <<'.'
--precision=f32 --precision=f64 1e-6
--precision=f64 --precision=f32 1e-6
--precision=bf16 --precision=f32 1e-4
--precision=bf16-pure --precision=f32 1e-3
--precision=bf16-mixed --precision=f32 1e-4
.
}

@test "a job is restarted when its last step was done, by time, and from what it wrote or began from" {
    local job=("$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --checkpoint restarts=1)
    "${job[@]}" --checkpoint whole.ck,every=10,keep=9 --out whole >out 2>&1 || { cat out && return 1; }
    "${job[@]}" --checkpoint ck,every=10 --inject kill=0:40 --out done >out 2>&1 || { cat out && return 1; }
    [[ $(json done/results.json 'd["trials"][0]["status"], d["trials"][0]["first_step"], d["trials"][0]["restarts"][0]["step"]') == "('ok', 30, 30)" ]]
    "${job[@]}" --checkpoint ck2,every=10 --steps 5 --min-time 0.05 --inject kill=1:12 --out time >out 2>&1 || { cat out && return 1; }
    # Another training's checkpoint comes into the folder while the job goes on.
    (
        for ((i = 0; i < 1000; i++)); do
            [[ ! -e ck3/step-15/index.json ]] || break
            sleep 0.01
        done
        cp -r whole.ck/step-40 other && mv other ck3/step-20
    ) 3>&- &
    job+=(--lr 0.01 --resume whole.ck/step-10)
    "${job[@]}" --checkpoint ck3,every=15 --inject delay=0:60,kill=1:24 --out rest >out 2>&1 || { cat out && return 1; }
    wait
    [[ -e ck3/step-30 && $(json rest/results.json 'd["trials"][0]["restarts"][0]["step"]') -eq 15 ]] || { ls ck3 && cat out && return 1; }
}

@test "without restarts left the job fails as any other, and its checkpoint is there" {
    run --separate-stderr "$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --checkpoint ck,every=5 --inject kill=1:12 --out f
    [[ $status -eq 1 && $output == *"rank 1 was killed by signal 9"* ]] || show
    [[ -s ck/step-10/index.json || -s ck/step-5/index.json ]]
    "$EVENLOAD" run --mode single "${TOY[@]}" "${JOB[@]}" --resume ck --out g >out 2>&1 || { cat out && return 1; }
}

@test "a disk that is full ends the checkpoint with one line, and not the training" {
    mkdir ck
    mount -t tmpfs -o size=160k none ck 2>mount.txt || skip "cannot mount here: $(cat mount.txt)"
    run --separate-stderr "$EVENLOAD" run --mode ddp --devices 2 --procs 1 "${TOY[@]}" --embed 64 "${JOB[@]}" --steps 9 --checkpoint ck,every=4 --out f
    find ck -name 'step-*' >left
    umount ck
    [[ $status -eq 1 && ! -s left && $stderr == *"evenload: 2 of 2 checkpoints could not be written: no checkpoint of step 4: "*"No space left on device" ]] || show
    [[ $(json f/results.json '(lambda t: (t["status"], t["checkpoints"]["n"], t["checkpoints"]["failed"], len(t["loss"])))(d["trials"][0])') == "('ok', 2, 2, 9)" ]]
    grep -q "^evenload: no checkpoint of step 4: .*rank-0.safetensors could not be written: No space left on device; training goes on$" f/logs/*/rank-0.log ||
        { cat f/logs/*/*.log && return 1; }
}

@test "a rank that cannot even write that it could not write ends the checkpoint, and not the training" {
    mkdir -p ck/step-4.part/rank-1.done/full
    run --separate-stderr "$EVENLOAD" run --mode ddp --devices 2 "${TOY[@]}" "${JOB[@]}" --steps 9 --checkpoint ck,every=4 --timeout 10 --out f
    [[ $status -eq 0 && -e ck/step-8/index.json && ! -e ck/step-4 ]] || show
    [[ $stderr == "evenload: 1 of 2 checkpoints could not be written: no checkpoint of step 4: rank 1 could not write its file; its log says why" ]] || show
}

@test "recover: a table, a picture and one document" {
    with_gnuplot
    run --separate-stderr "$EVENLOAD" recover "${TOY[@]}" --data dummy --batch 8 --steps 60 --checkpoint every=10 --launcher own --repeats 2 --kill 1@50% --mtbf 24h --out r
    [[ $status -eq 0 && $output == *"After the restart losses and weights equal those of the undisturbed job, bit for bit."*"Next: "* && $output == *"kill "* ]] || show
    [[ $(json r/recover.json '(d["same_losses"], d["same_weights"], len(d["falls"]), d["falls"][0]["step"], d["falls"][0]["detect_s"] < 2, d["falls"][0]["restart_s"] < 5, 0 < d["goodput"] < 1, len(d["intervals"]), d["intervals"][0]["mtbf_s"])') == "(True, True, 1, 32, True, True, True, 1, 86400.0)" ]] ||
        { cat r/recover.json && return 1; }
    [[ $(json r/recover.json 'd["checkpoints"]["job_bytes"]') -eq $(cat r/fallen-1-checkpoints/step-60/*.safetensors | wc -c) ]]
    "$EVENLOAD" report r >report.txt 2>&1 && grep -q 'bit for bit' r/report.html || { cat report.txt && return 1; }
    rm -rf r/plots && { "$EVENLOAD" plot r >plot.txt 2>&1 || [[ $? -eq 2 ]]; } && [[ $(grep -cE "^# (detect|restart|load|catch_up)$" r/plots/recover.dat) -eq 4 ]]
    [[ ! -e r/plots/recover.dat || -s r/plots/recover.png ]] || ! command -v gnuplot
    [[ $(json r/undisturbed-1/results.json 'd["trials"][0]["command"]') != *--checkpoint* ]] # it would be refused
    refuses "--kill 1@500: give RANK@STEP" "$EVENLOAD" recover "${TOY[@]}" --data dummy --kill 1@500
    refuses "--checkpoint every=x: give steps" "$EVENLOAD" recover "${TOY[@]}" --data dummy --checkpoint every=x
    refuses "leave the folder out" "$EVENLOAD" recover "${TOY[@]}" --data dummy --checkpoint ck
    refuses "--kill x: give RANK@STEP" "$EVENLOAD" recover "${TOY[@]}" --kill x
    refuses "there is no device 3" "$EVENLOAD" recover "${TOY[@]}" --data dummy --kill 3@5 --devices 2
}
