# Steps done against time, with each loss of a rank, and a job that nobody disturbed. From recover.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("recover.gnuplot")]
height = 420
legend_n = 7
load here."style.gnuplot"
stats data index "counts" using (attempts = $1, 1) nooutput

set xrange [0:right * 1.04]
set yrange [0:*]
set xtics nomirror out scale 0.5
set ytics nomirror out scale 0.5
set xlabel "time since the first step (s)".under offset 0,text ? 0 : 0.3
set ylabel "steps done"
if (!text) { set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb color_grid; set bmargin at screen y_of(bottom - 60); set lmargin 10 }
if (text) { set key left top Left reverse } else { load here."key.gnuplot" }
part(k) = word("detect restart load catch_up", k)
part_color(k) = value("color_".word("detect restart load_state catch_up", k))
plot data index "undisturbed" using 1:2 with lines dashtype 2 linewidth 1.2 linecolor rgb color_ideal title "undisturbed", \
     for [k = 0:attempts - 1] data index sprintf("attempt%d", k) using 1:2 with steps linewidth 2 linecolor rgb curve(0) title (k == 0 ? "this job" : ""), \
     data index "falls" using 1:2 with points pointtype 2 pointsize 2 * dot linewidth 2 linecolor rgb color_bad title "a rank is lost", \
     for [k = 1:(text ? 0 : 4)] data index part(k) using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder linecolor rgb part_color(k) title (k == 4 ? "catch up" : part(k))
