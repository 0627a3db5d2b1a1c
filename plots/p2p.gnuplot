# Latency and bandwidth of each pair of ranks, as two heat maps: dark is slow in both. From p2p.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("p2p.gnuplot")]
height = exists("paper") && paper > 0 && paper < 330 ? 740 : 400
legend_n = 0
load here."style.gnuplot"

set xrange [-0.5:right - 0.5]
set yrange [right - 0.5:-0.5]
set xtics 0,1,right - 1 scale 0
set ytics 0,1,right - 1 scale 0
set xlabel "rank"
set ylabel "rank"
unset grid
unset border
if (text) {
    set title title." (GB/s)" noenhanced
    plot data index "pairs" using 1:2:6 with labels notitle
    exit
}
set style fill solid 1 border rgb color_paper
set size ratio -1
big = right <= 5 ? 11 : right <= 8 ? 7 : right <= 16 ? 4 : 2
set cbrange [0:*]
set colorbox vertical
set cbtics font ",9"
set multiplot layout (narrow ? 2 : 1),(narrow ? 1 : 2) title title." " noenhanced offset 0,-0.2
set palette defined (0 color_heat_time[1], 1 color_heat_time[2], 2 color_heat_time[3])
set title "latency, one way (us)"
plot data index "pairs" using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):3 with boxxyerror fillcolor palette notitle, \
     data index "pairs" using 1:2:4 with labels font ",".big notitle
set palette defined (0 color_heat_rate[1], 1 color_heat_rate[2], 2 color_heat_rate[3])
set title "bandwidth, one way (GB/s)"
plot data index "pairs" using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):5 with boxxyerror fillcolor palette notitle, \
     data index "pairs" using 1:2:6 with labels font ",".big notitle
unset multiplot
