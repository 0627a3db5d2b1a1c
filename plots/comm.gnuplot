# Bus bandwidth of collectives against size, a colour an operation and a dash an algorithm, with the machine's own copying as
# the limit.
# From comm.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("comm.gnuplot")]
set datafile separator "\t"
stats data index "about" using (present = strcol(2), 1) nooutput
height = words(present) > 14 ? 460 + 22 * (words(present) - 14) : 460 # the legend has a line a curve
legend_n = 1 + words(present); legend_wide = 240
load here."style.gnuplot"
stats data index "about" using (left = $7, 1) nooutput
hues = ""; kinds = ""
stats data index "curves" using (hues = hues." ".strcol(2), kinds = kinds." ".strcol(3), 1) nooutput
kind(k) = 1 + (word(kinds, k) + 0) % 4 # of the algorithm
array dashes[4] = [1, 2, 4, 3]
array shapes[4] = [7, 9, 5, 13]

set logscale xy
set logscale x 2
set xrange [left:right]
set yrange [*:*]
set xtics () out nomirror
set ytics nomirror out scale 0.5 format "%g"
set ylabel "busbw (GB/s, log)"
set xlabel "size" offset 0,0.4
if (text) {
    set key outside right top vertical Left
    plot data index "copy" using 1:2 with lines title "copy", \
         for [k = 1:words(present)] data index "points" using 1:(strcol(4) eq word(present, k) ? $2 : NaN) with points pointtype k title word(present, k)
    exit
}
load here."key.gnuplot"
set lmargin 10
if (!narrow) { set rmargin 30 }
set bmargin at screen y_of(bottom - 56)
set xtics font ",10"
set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb color_grid
plot data index "copy" using 1:2 with lines linecolor rgb color_ideal dashtype 2 linewidth 1.4 title "copying memory", \
     for [k = 1:words(present)] data index "points" using 1:(strcol(4) eq word(present, k) ? $2 : NaN) with linespoints \
         pointtype shapes[kind(k)] dashtype dashes[kind(k)] pointsize 1.6 * dot linewidth 1.4 linecolor rgb curve(word(hues, k) + 0) title word(present, k), \
     data index "sizes" using 1:(1):xtic(2) with points pointtype -1 notitle
