# Bad data files and bad folders: exit status 2, the file's name, the line, the reason.
load common

# refuses_text WORDS TEXT OPTION...: of a data file of that text.
refuses_text() {
    printf '%b' "$2" >bad.txt
    refuses "$1" "$EVENLOAD" run --data bad.txt "${@:3}"
}

@test "data files that cannot be trained on, each with its line" {
    refuses "nowhere.txt: No such file" "$EVENLOAD" run --data nowhere.txt
    refuses_text "bad.txt" ''
    refuses_text "bad.txt, line 3" '1 a b c\n0 d e f\nhello world\n'
    refuses_text "bad.txt, line 2" '1 a b c\n0\n'
    refuses_text "bad.txt, line 1" '-1 a b c\n'
    refuses_text "is this a binary file?" '1 a b\n0 \001\002\003\n'
    refuses "evenload" "$EVENLOAD" run --data "$EVENLOAD"
    mkdir folder
    refuses "is a directory" "$EVENLOAD" run --data folder
    refuses_text "bad.txt, line 2: label 5" '1 a b c\n5 d e f\n' --classes 3
    refuses_text "bad.txt: all labels are 0" '0 a b c d e\n0 d e f\n'
    refuses_text "nowhere.txt" '1 a b c d e\n0 d e f g h\n' --test nowhere.txt --batch 2
    refuses "a test file goes with a training file" "$EVENLOAD" run --test bad.txt
}

@test "folders of a run that cannot be made or written" {
    : >file
    refuses "file" "$EVENLOAD" run --out file "${QUICK[@]}"
    refuses "/proc/evenload" "$EVENLOAD" run --out /proc/evenload "${QUICK[@]}"
    mkdir -m 555 locked # where root may write too
    [[ $(id -u) -eq 0 ]] || refuses "locked" "$EVENLOAD" run --out locked "${QUICK[@]}"
}

@test "a folder that holds a run already is left alone" {
    "$EVENLOAD" run --out finished --quiet "${QUICK[@]}"
    cp finished/results.json before.json
    refuses "finished holds a run already" "$EVENLOAD" run --out finished "${QUICK[@]}"
    cmp before.json finished/results.json
}

@test "sentences shorter than the model's widest window are padded" {
    printf '%s good film\n' 0 1 1 0 1 0 0 1 >short.txt
    run --separate-stderr "$EVENLOAD" run --data short.txt --batch 4 --steps 2 --warmup 1 --min-time 0 --repeats 1 --quiet --out r
    [[ $status -eq 0 && $(json r/results.json 'd["trials"][0]["config"]["model_sizes"]["seq"]') == 5 ]] || show
    refuses "--seq 2: must be between 5 and" "$EVENLOAD" run --data short.txt --seq 2
}

TINY_RESNET=(--model resnet18 --width 2 --batch 4 --steps 1 --warmup 1 --min-time 0 --control none --repeats 1 --quiet)

# plain CLASS...: in the folder `set`, two images of 8 x 8 for each class.
plain() {
    local class i
    for class in "$@"; do
        mkdir -p "set/$class"
        for i in 1 2; do { printf 'P6 8 8 255\n' && head -c 192 /dev/zero | tr '\0' "\\$i"; } >"set/$class/$i.ppm"; done
    done
}

@test "a folder of images is trained on, moved and mirrored, by one-hot squared error" {
    plain ant cat
    run --separate-stderr "$EVENLOAD" run "${TINY_RESNET[@]}" --data set --image 16 --loss mse --out r
    [[ $status -eq 0 ]] || show
    [[ $(json r/results.json '[(c["model_sizes"]["image"], c["model_sizes"]["classes"], c["loss_function"]) for c in [d["trials"][0]["config"]]]') == "[(16, 2, 'mse')]" ]] || show
    [[ $(json r/results.json 'all(0 < x < 1e3 for x in d["trials"][0]["loss"])') == True ]] || show
}

@test "what was written of the synthetic images is trained on again, with the same losses" {
    local losses='d["trials"][0]["loss"]'
    "$EVENLOAD" run "${TINY_RESNET[@]}" --out a
    "$EVENLOAD" run "${TINY_RESNET[@]}" --data a/data/synthetic-images-1-seed-1-train.bin --test a/data/synthetic-images-1-seed-1-test.bin --out b
    [[ $(json a/results.json "$losses") == "$(json b/results.json "$losses")" && $(json a/results.json "len($losses)") == 2 ]]
    [[ ! -e b/data ]]
}

@test "images that cannot be trained on" {
    plain ant cat
    : >set/cat/3.png
    refuses "set/cat/3.png: not an image" "$EVENLOAD" run "${TINY_RESNET[@]}" --data set
    rm set/cat/*
    refuses "set/cat: no image in this class's folder" "$EVENLOAD" run "${TINY_RESNET[@]}" --data set
    rmdir set/cat
    refuses "set: there is one class alone" "$EVENLOAD" run "${TINY_RESNET[@]}" --data set
    printf '1 a b c\n' >train.txt
    refuses "train.txt: 8 bytes are not a whole number of CIFAR-10's records" "$EVENLOAD" run "${TINY_RESNET[@]}" --data train.txt
    refuses "nowhere: No such file" "$EVENLOAD" run "${TINY_RESNET[@]}" --data nowhere
    refuses "is a directory; give a file in it" "$EVENLOAD" run --data set
}

@test "a dry run counts images and reads none" {
    plain ant cat
    : >set/cat/3.png
    run --separate-stderr "$EVENLOAD" run "${TINY_RESNET[@]}" --data set --dry-run --json
    [[ $status -eq 0 ]] || show
}
