# Each device's step, stacked by phase, with what it waits for others and is idle. Of communication only the part that is not
# hidden behind compute is drawn. From imbalance-time.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("imbalance-time.gnuplot")]
barred = 1
load here."style.gnuplot"

set ylabel "step of each device (ms)"
words_below = "device, mode, global batch"
rows = "devices modes batches"
load here."bars.gnuplot"
