# Bad data files and bad folders: exit status 2, the file's name, the line, the reason.
load common

@test "a data file that does not exist" {
    refuses "nowhere.txt: No such file" "$EVENLOAD" run --data nowhere.txt
}

@test "an empty data file" {
    : >empty.txt
    refuses "empty.txt" "$EVENLOAD" run --data empty.txt
}

@test "a line without a label" {
    printf '1 a b c\n0 d e f\nhello world\n' >bad.txt
    refuses "bad.txt, line 3" "$EVENLOAD" run --data bad.txt
}

@test "a line without a sentence" {
    printf '1 a b c\n0\n' >bad.txt
    refuses "bad.txt, line 2" "$EVENLOAD" run --data bad.txt
}

@test "a negative label" {
    printf -- '-1 a b c\n' >bad.txt
    refuses "bad.txt, line 1" "$EVENLOAD" run --data bad.txt
}

@test "a binary data file" {
    printf '1 a b\n0 \001\002\003\n' >binary.txt
    refuses "is this a binary file?" "$EVENLOAD" run --data binary.txt
}

@test "a program as data" {
    refuses "evenload" "$EVENLOAD" run --data "$EVENLOAD"
}

@test "a folder as data" {
    mkdir folder
    refuses "is a directory" "$EVENLOAD" run --data folder
}

@test "a label beyond --classes" {
    printf '1 a b c\n5 d e f\n' >three.txt
    refuses "three.txt, line 2: label 5" "$EVENLOAD" run --data three.txt --classes 3
}

@test "a test file that does not exist" {
    printf '1 a b c d e\n0 d e f g h\n' >train.txt
    refuses "nowhere.txt" "$EVENLOAD" run --data train.txt --test nowhere.txt --batch 2
}

@test "a test file for synthetic data" {
    printf '1 a b c\n' >test.txt
    refuses "a test file goes with a training file" "$EVENLOAD" run --test test.txt
}

@test "the folder of the run is a file" {
    : >file
    refuses "file" "$EVENLOAD" run --out file "${QUICK[@]}"
}

@test "the folder of the run cannot be made" {
    refuses "/proc/evenload" "$EVENLOAD" run --out /proc/evenload "${QUICK[@]}"
}

@test "a folder that may not be written" {
    [[ $(id -u) -ne 0 ]] || skip "root may write everywhere"
    mkdir -m 555 locked
    refuses "locked" "$EVENLOAD" run --out locked "${QUICK[@]}"
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

@test "a data file of one class" {
    printf '0 a b c d e\n0 d e f\n' >one.txt
    refuses "one.txt: all labels are 0" "$EVENLOAD" run --data one.txt
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
    run --separate-stderr "$EVENLOAD" run "${TINY_RESNET[@]}" --data set --image 16 --augment on --loss mse --out r
    [[ $status -eq 0 ]] || show
    [[ $(json r/results.json '[(c["model_sizes"]["image"], c["model_sizes"]["classes"], c["augment"], c["loss_function"]) for c in [d["trials"][0]["config"]]]') == "[(16, 2, 'on', 'mse')]" ]] || show
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
    refuses "--augment on: model textcnn takes no images" "$EVENLOAD" run --augment on
}
