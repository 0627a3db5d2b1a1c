# Choices of each expert in each step, as a heat map: dark gets more than its share; beside it what each rank gets, beside
# the experts that it has. From routing.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("routing.gnuplot")]
legend_n = 0
load here."style.gnuplot"

experts = 0
stats data index "about" using (experts = $7, 1) nooutput
stats data index "ranks" using 1 nooutput
most = STATS_max
set yrange [experts - 0.5:-0.5]
unset grid
unset xtics
unset ytics
set xtics () scale 0
set ytics () scale 0
set ylabel "expert"
if (text) {
    set title title." (times its even share)" noenhanced
    set xrange [-0.5:right - 0.5]
    set xlabel "step"
    set bmargin 4 + notes
    plot data index "choices" using 1:2:(sprintf("%.1f", $3)) with labels notitle, \
         data index "steps" using 1:(NaN):xtic(2) notitle, data index "experts" using (NaN):1:ytic(2) notitle
    exit
}
set multiplot title title." " noenhanced offset 0,-0.2
unset title
set tmargin at screen y_of(36)
set bmargin at screen y_of(bottom - 60)
set lmargin at screen x_of(64)
set rmargin at screen 0.58
set xrange [-0.5:right - 0.5]
set xlabel "step"
set palette defined (0 color_heat_time[1], 1 color_heat_time[2], 2 color_heat_time[3])
set cbrange [0:*]
set colorbox vertical user origin screen 0.6,screen y_of(bottom - 60) size screen 0.018,screen y_of(36) - y_of(bottom - 60)
set cbtics scale 0.4 offset -0.6,0
set cblabel "times its even share" offset 0.3,0
plot data index "choices" using 1:2:3 with image pixels notitle, \
     data index "steps" using 1:(NaN):xtic(2) notitle, data index "experts" using (NaN):1:ytic(2) notitle
set lmargin at screen 0.76
set rmargin at screen 1 - x_of(20)
set xrange [0:1.4 * most]
set xlabel "rows of each rank (%)"
unset ylabel
unset colorbox
set xtics 0,most > 40 ? 20 : most > 16 ? 10 : 5 nomirror out scale 0.5
set ytics () scale 0
plot data index "ranks" using 1:2:3:4:5:6 with boxxyerror fillstyle solid 0.9 border rgb color_edge linecolor rgb color_backward notitle, \
     data index "ranks" using 1:2:8 with labels left offset 0.5,0 notitle, \
     data index "ranks" using (NaN):2:ytic(7) notitle
unset multiplot
