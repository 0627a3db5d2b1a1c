# Accuracy on held-out samples after each epoch, against the seconds of training until then: a line per trial, in its mode's colour.
# From accuracy.dat; options: style.gnuplot. Where there are several batches each line's end says its own.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("accuracy.gnuplot")]
height = 440
load here."style.gnuplot"
load here."modes.gnuplot"
names = ""; blocks = ""; batches = 0; before = -1
stats data index "ends" using (names = names." ".strcol(3), blocks = blocks." ".strcol(4), batches = batches + ($5 != before), before = $5, 1) nooutput
first(k) = strstrt(" ".join(names, k)." ", " ".word(names, k)." ") == 0
join(list, k) = k == 1 ? "" : join(list, k - 1)." ".word(list, k - 1)

set xrange [0:right]
set yrange [*:*]
set offsets graph 0, graph 0, graph 0.06, graph 0.06
set xtics nomirror out scale 0.5
set ytics nomirror out scale 0.5
set xlabel "training time (s), evaluation not counted".under offset 0,text ? 0 : 0.3
set ylabel "accuracy on held-out samples (%)"
load here."key.gnuplot"
if (!text) { set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb color_grid; set bmargin at screen y_of(bottom - 60); set lmargin 10 }
plot for [k = 1:words(blocks)] data index word(blocks, k) using 1:2 with linespoints pointtype point(word(names, k)) \
         pointsize size(word(names, k)) linewidth 1.4 linecolor rgb ink(word(names, k)) title (first(k) ? word(names, k) : ""), \
     data index "ends" using 1:2:(batches > 1 ? "  ".strcol(5) : ""):(ink(strcol(3))) with labels left font ",10" textcolor rgb variable notitle, \
     data index "ends" using ($6 > 0 ? $1 : NaN):2:(mark) with labels offset 0,0.9 textcolor rgb color_note notitle
