# Predicted throughput of a device, of each mode in its best mesh, against the number of devices. From plan.dat; options:
# style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("plan.gnuplot")]
height = 420
load here."style.gnuplot"
load here."modes.gnuplot"
stats data index "about" using (left = $7, highest = $8, unit = strcol(9), first = $10, 1) nooutput

set logscale x 2
set xrange [left:right]
set yrange [0:1.08 * highest]
set xtics () out nomirror
set ytics out nomirror scale 0.5
set ylabel unit." per device"
set xlabel "devices (log)".under offset 0,text ? 0 : 0.3
load here."key.gnuplot"
if (!text) { set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb color_grid; set bmargin at screen y_of(bottom - 60); set lmargin 10 }
# Lines and points that others cover are larger than these.
over = ""
do for [name in present] { stats data index "points of ".name using (n = $3, $2) nooutput; over = over.sprintf(" %s=%d", name, n) }
covered(name) = look(over." ", name, 0)
plot first with lines linecolor rgb color_ideal dashtype 2 linewidth 1 notitle, \
     for [name in present] data index "points of ".name using 1:2 with linespoints \
         pointtype text ? 1 : point(name) \
         pointsize (1 + 0.4 * covered(name)) * size(name) linecolor rgb ink(name) \
         linewidth 1.4 + 2.6 * covered(name) title name, \
     data index "counts" using 1:(0):xtic(2) with points pointtype -1 notitle
