# Peak memory of each device, stacked by tag, for each mode and batch. From memory.dat; options: style.gnuplot.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("memory.gnuplot")]
load here."style.gnuplot"

set ylabel "peak memory (MiB)"
set key invert
eval below(3, "device, mode, global batch")
plot @stacked \
     data index "devices" using 1:(0):2 with labels offset 0,label_row(0) font ",10" notitle, \
     data index "modes" using 1:(0):2 with labels offset 0,label_row(1) notitle, \
     data index "batches" using 1:(0):2 with labels offset 0,label_row(2) notitle, \
     data index "notes" using 1:(0):2 with labels offset 0,0.8 textcolor rgb "#b00000" notitle
