# One step of the slowest device, stacked by phase, with what is idle. Of communication only the part that is not hidden
# behind compute is drawn, for only that lengthens the step. From step.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("step.gnuplot")]
barred = 1
load here."style.gnuplot"

set ylabel "step of the slowest device (ms)"
words_below = "mode, global batch"
rows = "modes batches"
load here."bars.gnuplot"
