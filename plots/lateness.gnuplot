# Lateness of each rank in each step, as a heat map: dark is late. From lateness.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("lateness.gnuplot")]
legend_n = 0
load here."style.gnuplot"

ranks = 0
stats data index "about" using (ranks = $7, 1) nooutput
set xrange [-0.5:right - 0.5]
set yrange [ranks - 0.5:-0.5]
unset grid
unset xtics
unset ytics
set xtics () scale 0
set ytics () scale 0
set xlabel "step"
if (text) {
    set title title." (ms)" noenhanced
    set bmargin 4 + notes
    plot data index "late" using 1:2:(sprintf("%.0f", $3)) with labels notitle, \
         data index "steps" using 1:(NaN):xtic(2) notitle, data index "ranks" using (NaN):1:ytic(2) notitle
    exit
}
set title title noenhanced
set bmargin at screen y_of(bottom - 60)
set palette defined (0 color_heat_time[1], 1 color_heat_time[2], 2 color_heat_time[3])
set cbrange [0:*]
set colorbox vertical
set cblabel "late (ms)" offset 1.5,0
plot data index "late" using 1:2:3 with image pixels notitle, \
     data index "steps" using 1:(NaN):xtic(2) notitle, data index "ranks" using (NaN):1:ytic(2) notitle
