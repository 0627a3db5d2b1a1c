# Card by card: peak memory of each device, stacked by tag, and under it what the first holds more than the mean of the others,
# by tag, less below zero; the line across is the difference itself. From imbalance.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("imbalance.gnuplot")]
height = 600
barred = 1
load here."style.gnuplot"

# In pixels: from the left edge to the axes, and from the right edge.
left = 84.; side = narrow ? 14. : 184.
middle = (left + width - side) / 2 / width
if (text) { set ylabel "MiB"; words_below = "device, mode"; rows = "devices modes"; load here."bars.gnuplot"; exit }
set lmargin at screen x_of(left)
set rmargin at screen 1 - x_of(side)
set ytics font ",10"
set errorbars 0
unset ylabel

set multiplot
unset title
set label 1 title at screen middle,y_of(17) center noenhanced
set label 2 "peak memory (MiB)" at screen x_of(16),y_of(180) center rotate by 90
set label 3 "device" at graph 0,0 offset -1,label_row(0) right font ",10"
set tmargin at screen y_of(34)
set bmargin at screen y_of(326)
stacked_panels = 1; words_below = ""; rows = "devices"
load here."bars.gnuplot"

unset label
unset object
set label 2 "device 0 - others (MiB)" at screen x_of(16),y_of(460) center rotate by 90
set label 3 "mode" at graph 0,0 offset -1,label_row(0) right font ",10"
set tmargin at screen y_of(372)
set bmargin at screen y_of(bottom - 60)
set yrange [*:*]
set y2range [0:1] # of the labels below
set offsets 0,0,graph 0.16,graph 0.04
set xzeroaxis linetype 1 linewidth 0.8 linecolor rgb color_axis
set border 2
unset xlabel
plot data index "more" using (pattern(strcol(6)) == 3 ? $1 : NaN):4:2:3:4:5:(color(strcol(6))) with boxxyerror \
         fillstyle solid 1 border rgb color_edge linecolor rgb variable, \
     for [p = 4:5] data index "more" using (pattern(strcol(6)) == p ? $1 : NaN):4:2:3:4:5:(color(strcol(6))) with boxxyerror \
         fillstyle pattern p border rgb color_edge linecolor rgb variable, \
     data index "net" using 1:4:2:3 with xerrorbars linetype 1 linewidth 2.2 linecolor rgb color_edge pointtype -1, \
     data index "net" using 1:5:6 with labels offset 0,0.7 font ",10", \
     data index "modes" using 1:(0):2 axes x1y2 with labels offset 0,label_row(0), \
     data index "batches" using 1:(0):2 axes x1y2 with labels offset 0,label_row(1)
unset multiplot
