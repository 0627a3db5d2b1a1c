# Memory of each device, for each mode and batch: stacked by tag at its peak, and on top what the system counts beyond that
# (unattributed). Where the first device of a trial holds more than the others, a line says how much.
# From memory.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("memory.gnuplot")]
barred = 1
load here."style.gnuplot"

set ylabel strstrt(present, "unattributed") ? "peak, plus unattributed (MiB)" : "peak memory (MiB)"
words_below = "device, mode, global batch"
rows = "devices modes batches"
tops = "tops"; excess = "excess"
load here."bars.gnuplot"
