# One step of the slowest device, stacked by phase, with what is idle. Of communication only the part that is not hidden
# behind compute is drawn, for only that lengthens the step. From step.dat; options: style.gnuplot.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("step.gnuplot")]
load here."style.gnuplot"

set ylabel "step of the slowest device (ms)"
set key invert
eval below(2, "mode, global batch")
plot @stacked \
     data index "modes" using 1:(0):2 with labels offset 0,label_row(0) notitle, \
     data index "batches" using 1:(0):2 with labels offset 0,label_row(1) notitle, \
     data index "notes" using 1:(0):2 with labels offset 0,0.8 textcolor rgb "#b00000" notitle
