# Bandwidth of each link between hosts as a heat map: a row for who sends, a column for who receives; light is slow. From fleet.dat;
# options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("fleet.gnuplot")]
height = 520
legend_n = 0
load here."style.gnuplot"

stats data index "about" using (highest = $7, half = $8, 1) nooutput
set xrange [-0.5:right - 0.5]
set yrange [right - 0.5:-0.5]
set xlabel "to"
set ylabel "from"
unset grid
unset border
set xtics scale 0 rotate by 45 right font ",9"
set ytics scale 0 font ",9"
if (text) {
    set title title." (GB/s)" noenhanced
    plot data index "links" using 2:1:(sprintf("%.2g", $3)) with labels notitle
    exit
}
set size ratio -1
set cbrange [0:highest]
set cblabel "GB/s, one way"
set colorbox vertical
set cbtics font ",9"
set title title noenhanced
if (right > 40) { set style fill solid 1 noborder } else { set style fill solid 1 border rgb color_paper }
set palette defined (0 color_heat_rate[1], 1 color_heat_rate[2], 2 color_heat_rate[3])
plot data index "links" using 2:1:($2 - half):($2 + half):($1 - half):($1 + half):3 with boxxyerror fillcolor palette notitle, \
     data index "names" using (-1):1:ytic(strcol(2) eq "." ? "" : strcol(2)) with points pt 0 notitle, \
     data index "names" using 1:(-1):xtic(strcol(2) eq "." ? "" : strcol(2)) with points pt 0 notitle
