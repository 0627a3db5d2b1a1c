# What each device sends to other devices and receives, a step. From imbalance-bytes.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("imbalance-bytes.gnuplot")]
barred = 1
load here."style.gnuplot"

set ylabel "data per device and step (MiB)"
words_below = "device, mode, global batch"
rows = "devices modes batches"
load here."bars.gnuplot"
