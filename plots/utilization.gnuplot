# Utilization of each device: part of the step in which its compute stream worked. From utilization.dat; options:
# style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("utilization.gnuplot")]
barred = 1
load here."style.gnuplot"
load here."modes.gnuplot"

set ylabel "busy (% of the step)"
set yrange [0:100]
words_below = "device, mode, global batch"
rows = "devices modes batches"
whiskers = "whiskers"
grouped = 1
load here."bars.gnuplot"
