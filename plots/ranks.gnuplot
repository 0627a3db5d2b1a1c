# Each rank's mean step, stacked by parts of its training loop, and what it waits for the others. From ranks.dat; options:
# style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("ranks.gnuplot")]
barred = 1
load here."style.gnuplot"

set ylabel "step (ms)"
words_below = "rank"
rows = "devices"
load here."bars.gnuplot"
