# `plot` where it cannot draw, by a gnuplot that is none: exit status, what is said, and what is left in the folder. Pictures that are
# drawn are tested where they are made: run.bats, scale.bats, imbalance.bats, watch.bats.
load common

# a_gnuplot WORDS: a program of that name that has the terminals of svg and letters, and does WORDS for a picture.
a_gnuplot() {
    mkdir -p bin r
    kept_record >r/results.json
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

@test "a paper's width in any unit, and no title, are what gnuplot is told" {
    a_gnuplot 'echo "$*" >>../said; printf "<svg\n viewBox=\"0 0 504 400\"\n</svg>"'
    "$EVENLOAD" plot r --width 3.5in --no-title >/dev/null
    grep -q -- "-e paper = 252.000000; untitled = 1 -c .*/memory.gnuplot memory.dat svg" r/said || { cat r/said && false; }
    [[ $(<r/plots/memory.svg) == $'<svg\n width="252pt" height="200pt"\n viewBox="0 0 504 400"\n</svg>' ]] || { cat r/plots/memory.svg && false; }
    refuses "--width: 3mm is out of range: give 72 to 2000, in points (1/72 inch)" "$EVENLOAD" plot r --width 3mm
}

@test "figures that a command wrote data for are drawn again, all of them; a folder of another command is named" {
    a_gnuplot 'echo "</svg>"'
    mkdir -p r/plots && touch r/plots/imbalance-{time,bytes}.dat r/plots/imbalance.dat r/plots/mine.dat
    "$EVENLOAD" plot r >out
    [[ $(ls r/plots/*.svg) == $'r/plots/imbalance-bytes.svg\nr/plots/imbalance-time.svg\nr/plots/imbalance.svg\nr/plots/memory.svg\n'* && ! -e r/plots/mine.svg ]] || { cat out && show; }
    mkdir f && echo '{}' >f/recover.json
    refuses "f is a folder of 'evenload recover': scale reads those of run, compare" "$EVENLOAD" scale f
}

@test "what has nothing to draw, and a folder that cannot be written" {
    a_gnuplot 'echo "</svg>"'
    python3 -c 'import json; d = json.load(open("r/results.json")); d["trials"] = []; json.dump(d, open("r/results.json", "w"))'
    run --separate-stderr "$EVENLOAD" plot r
    [[ $status -eq 2 && $stderr == "evenload: r/plots: nothing to draw" && $output == *"no figure 'memory'"* && ! -e r/plots ]] || show
    kept_record >r/results.json
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

@test "colours stand in one table, for every tag and phase, and no two of one figure are alike" {
    local plots=$BATS_TEST_DIRNAME/../../plots
    [[ -z $(find "$plots" -name '*.gnuplot' ! -name style.gnuplot -exec grep -nE '"#[0-9a-fA-F]{6}"|0x[0-9a-fA-F]{6}' {} +) ]] || show
    python3 - "$plots" <<'END'
import re, sys
plots = sys.argv[1]
style = open(plots + "/style.gnuplot").read()
looks = {n: (c, p) for n, c, p in re.findall(r"color_(\w+) *= (0x\w{6}); pattern_\1 *= ([345])", style)}
probe = open(plots + "/../runtime/base/probe.h").read()
tags = [t for t in re.findall(r'X\(EL_TAG_\w+, "(\w+)"\)', probe)] + ["unattributed"]
phases = [p for p in re.findall(r'X\(EL_PHASE_\w+, "(\w+)"\)', probe)] + ["wait", "idle"]
assert len(tags) > 10 and len(phases) > 10, (tags, phases)
figures = {"timeline": set(tags + phases), "step": set(phases),
           "stages": {n for n in looks if re.match("forward|backward(_2)?$|backward_weights", n)} | {"load", "transfer", "travel", "bubble", "optimizer"},
           "explain": {"good", "bad", "good_pale", "bad_pale"}}
for figure, names in figures.items():
    drawn = [looks[n] for n in names] # a name that is missing fails here
    twice = [n for n in names if drawn.count(looks[n]) > 1]
    assert not twice, (figure, twice)
    grey = sorted(sum(w * int(looks[n][0][i:i + 2], 16) for w, i in ((0.299, 2), (0.587, 4), (0.114, 6))) for n in ("forward", "backward", "optimizer"))
    assert all(b - a > 25 for a, b in zip(grey, grey[1:])), grey # neighbours of every step
for a, b in (("load", "data"), ("transfer", "comm"), ("backward_inputs", "backward")): # two names of one thing
    assert looks[a] == looks[b], (a, b)
css = open(plots + "/report.css").read()
for name, variable in (("good", "good"), ("note", "warn"), ("bad", "bad")):
    wanted = re.search(rf"color_{name} *= 0x(\w{{6}})", style).group(1)
    assert re.search(rf":root \{{[^}}]*--{variable}: #{wanted};", css), name
END
}

@test "a figure has one axis of time, whatever it has of panels" {
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    local dir=$BATS_TEST_DIRNAME/../../results/reference/cpu-2-cores gnuplot
    gnuplot=$(command -v gnuplot)
    a_gnuplot 'echo "</svg>"'
    cp "$dir/results.json" r/
    "$EVENLOAD" plot r >/dev/null
    [[ $(grep -cE '^# [0-9]+ about$' r/plots/timeline.dat) -ge 3 ]] || show
    cd r/plots && LC_ALL=C.UTF-8 "$gnuplot" -d -c "$BATS_TEST_DIRNAME/../../plots/timeline.gnuplot" timeline.dat svg >timeline.svg
    [[ $(grep -c 'time in the step (ms)' timeline.svg) -eq 1 && $(grep -cE '> ?100</tspan>|>100<' timeline.svg) -eq 1 ]] || { grep -oE '>[^<]+<' timeline.svg && false; }
    [[ $(grep -cE '>compute<|> ?compute</' timeline.svg) -ge 3 ]] || { grep -oE '>[^<]+<' timeline.svg && false; }
}

@test "marks and letters have one size in SVG, PNG and PDF, and a picture the width that is asked for" {
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    local plots format width
    plots=$(cd "$BATS_TEST_DIRNAME/../../plots" && pwd)
    ! grep -nE 'pointsize ' "$plots"/*.gnuplot | grep -vE 'pointsize (.*[ (])?size\(|pointsize .*[*] dot' || show
    cat >dots.gnuplot <<END
data = ARG1; format = ARG2
height = 60; least = 80.
load "$plots/style.gnuplot"
unset border; unset xtics; unset ytics; unset grid
set xrange [0:10]; set yrange [0:10]
set label 1 "H" at 2,5 font ",20" textcolor rgb 0x0000ff
plot "+" using (5):(5) every ::0::0 with points pointtype 7 pointsize 4 * dot linecolor rgb 0xff0000
END
    printf '# about\n# columns: x\nt\ta\t \t1\t-20\t \n\n\n# warning\n# columns: n\n0\tnone\n\n\n' >dots.dat
    for width in 0 48; do
        for format in svg png pdf; do
            LC_ALL=C.UTF-8 gnuplot -d -e "paper = $width." -c dots.gnuplot dots.dat $format >$width.$format
        done
        python3 - $width <<'END'
import re, struct, sys, zlib
width = int(sys.argv[1])
svg, png, pdf = (open(f"{width}.{f}", "rb").read() for f in ("svg", "png", "pdf"))
svg = svg.decode()
canvas = float(re.search(r'viewBox="0 0 (\d+)', svg).group(1))
found = {"svg": (2 * float(re.search(r"#gpPt6' transform=[^>]*scale\(([\d.]+)", svg).group(1)) / canvas,
                 float(re.search(r'fill="rgb\(0,0,255\)"[^>]*font-size="([\d.]+)"', svg).group(1)) / canvas)}
page = float(re.search(rb"MediaBox *\[ *0 0 ([\d.]+)", pdf).group(1))
streams = (zlib.decompress(s) for s in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.S) if s[:1] == b"x")
letter, mark = next(s for s in streams if b" Tm" in s).decode().split("1 0 0 rg")
xs = [float(x) for pairs in re.findall(r"((?:[\d.-]+\s+)+)[mc]\b", mark) for x in pairs.split()[::2]]
found["pdf"] = ((max(xs) - min(xs)) / page, float(re.search(r"([\d.]+) 0 0 -[\d.]+ [\d.]+ [\d.]+ Tm", letter).group(1)) / page)
wide, tall = struct.unpack(">II", png[16:24])
at, data, before, red, blue = 8, b"", bytearray(3 * wide), [], []
while at < len(png):
    n, = struct.unpack(">I", png[at:at + 4])
    data += png[at + 8:at + 8 + n] if png[at + 4:at + 8] == b"IDAT" else b""
    at += n + 12
data = zlib.decompress(data)
for y in range(tall):
    how, row = data[y * (3 * wide + 1)], bytearray(data[y * (3 * wide + 1) + 1:(y + 1) * (3 * wide + 1)])
    for i in range(3 * wide):
        a, b, c = (row[i - 3], before[i], before[i - 3]) if i > 2 else (0, before[i], 0)
        row[i] = (row[i] + (0, a, b, (a + b) // 2, min((a, b, c), key=lambda v: abs(a + b - c - v)))[how]) & 255
    red += [x for x in range(wide) if row[3 * x] > 200 and row[3 * x + 2] < 100]
    blue += [y for x in range(wide) if row[3 * x] < 100 and row[3 * x + 2] > 200]
    before = row
found["png"] = ((max(red) - min(red) + 1) / wide, (max(blue) - min(blue) + 1) / 0.73 / wide) # an H has 0.73 of its size
for i, what in enumerate(("marks", "letters")):
    sizes = [f[i] for f in found.values()]
    assert max(sizes) < 1.12 * min(sizes), (width, what, found)
if width:
    assert abs(page - width) < 1 and abs(wide - 4 * width) < 4, (page, wide)
END
    done
}
