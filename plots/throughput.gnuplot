# Throughput of each mode at each batch, with the 95 % interval over repeats. From throughput.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("throughput.gnuplot")]
barred = 1
load here."style.gnuplot"
load here."modes.gnuplot"

stats data index "unit" using (unit = strcol(1), 1) nooutput
set ylabel "throughput (".unit."/s)"
set format y "%.0f"
words_below = "mode, global batch"
rows = "modes batches"
whiskers = "whiskers"
grouped = 1
load here."bars.gnuplot"
