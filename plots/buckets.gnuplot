# A sweep of bucket sizes: each size's step against that of the usual size, launch by launch, with its 95 % interval.
# From buckets.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("buckets.gnuplot")]
load here."style.gnuplot"
load here."modes.gnuplot"
stats data index "about" using (left = $7, base = $8, 1) nooutput

set logscale x
set xrange [left:right]
set yrange [*:*]
set offsets 0,0,graph 0.1,graph 0.1
set xtics () out nomirror
set xlabel "bucket cap (MiB, log scale)".(text ? "" : "; whiskers: 95 % interval")
set ylabel sprintf("step time against %g MiB", base)
set key off
if (!text) { set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb "#dcdcdc"; set bmargin 3.6 }
plot 1 with lines linecolor rgb "#606060" dashtype 2 linewidth 1, \
     data index "sizes" using 1:2:3:4:xtic(6) with yerrorbars pointtype 7 pointsize 2 linecolor rgb color(present) linewidth 1.2
