# `plot` where it cannot draw, by a gnuplot that is none: exit status, what is said, and what is left in the folder. Pictures that are
# drawn are tested where they are made: run.bats, scale.bats, imbalance.bats, watch.bats.
load common

RECORD=$BATS_TEST_DIRNAME/../unit/data/record-v1.json

# a_gnuplot WORDS: a program of that name that has the terminals of svg and letters, and does WORDS for a picture.
a_gnuplot() {
    mkdir -p bin r
    cp "$RECORD" r/results.json
    printf '#!/bin/sh\ncase "$*" in\n*"set terminal png"* | *"set terminal pdf"*) exit 1 ;;\n*"set terminal"*) exit 0 ;;\nesac\n%s\n' "$1" >bin/gnuplot
    chmod +x bin/gnuplot
    PATH=$PWD/bin:$PATH
}

@test "a gnuplot that fails: status 2, each picture named, the log kept" {
    a_gnuplot 'echo "no such font" >&2; echo "<svg>"; exit 1'
    run --separate-stderr "$EVENLOAD" plot r
    [[ $status -eq 2 && $stderr == "evenload: r/plots: 4 pictures could not be drawn" ]] || show
    [[ ${lines[0]} == "no png: this gnuplot has no terminal 'pngcairo'"* && ${lines[1]} == "no pdf: "* ]] || show
    [[ ${lines[2]} == "memory could not be drawn as svg: see r/plots/gnuplot.log" && $output == *"no figure 'timeline'"* ]] || show
    [[ $(<r/plots/gnuplot.log) == *"no such font"* ]] || show
    [[ $(ls r/plots) == $'gnuplot.log\nmemory.dat\nstep.dat\nthroughput.dat\nutilization.dat' ]] || { ls r/plots && show; }
}

@test "half a picture is none, and takes no whole one's place" {
    a_gnuplot 'echo "<svg>"' # as on a full disk
    mkdir -p r/plots && echo whole >r/plots/step.svg
    run --separate-stderr "$EVENLOAD" plot r --term
    [[ $status -eq 2 && $stderr == "evenload: r/plots: 4 pictures could not be drawn" ]] || show
    [[ $output == *"r/plots/step.svg could not be written: is the disk full?"* && $output == *"<svg>"* ]] || show
    [[ $(<r/plots/step.svg) == whole && ! -e r/plots/gnuplot.log && -z $(find r -name '*.tmp.*') ]] || { ls r/plots && show; }
}

@test "a gnuplot that a signal ends, and none at all" {
    a_gnuplot 'kill -9 $$'
    run --separate-stderr "$EVENLOAD" plot r --term
    [[ $status -eq 2 && $stderr == "evenload: r/plots: 8 pictures could not be drawn" && $output == *"step could not be drawn as text: see"* ]] || show
    printf '#!/bin/sh\nexit 1\n' >bin/gnuplot
    run --separate-stderr "$EVENLOAD" plot r
    [[ $status -eq 2 && -z $output && $stderr == "evenload: gnuplot is not installed"*"the data files lie in r/plots"* && -s r/plots/memory.dat ]] || show
}

@test "what has nothing to draw, and a folder that cannot be written" {
    a_gnuplot 'echo "</svg>"'
    python3 -c 'import json; d = json.load(open("r/results.json")); d["trials"] = []; json.dump(d, open("r/results.json", "w"))'
    run --separate-stderr "$EVENLOAD" plot r
    [[ $status -eq 2 && $stderr == "evenload: r/plots: nothing to draw" && $output == *"no figure 'memory'"* && ! -e r/plots ]] || show
    cp "$RECORD" r/results.json
    touch r/plots
    refuses "r/plots/memory.dat could not be written: Not a directory" "$EVENLOAD" plot r
}

@test "no script knows a mode by name: its look comes from its row, through the data file" {
    local mode modes
    run --separate-stderr "$EVENLOAD" run --mode nosuch
    modes=${stderr##*: }
    [[ $modes == *ddp* ]] || show
    for mode in ${modes//[,)]/}; do
        ! grep -nE "\"$mode\"|_$mode\b" "$BATS_TEST_DIRNAME"/../../plots/*.gnuplot || show
    done
    a_gnuplot 'echo "</svg>"'
    "$EVENLOAD" plot r >/dev/null
    grep -qP '^ddp\t\d+\t\d+\t\d+\t\d+\t' r/plots/throughput.dat
}
