# Utilization of each device: part of the step in which its compute stream worked. From utilization.dat; options:
# style.gnuplot.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("utilization.gnuplot")]
load here."style.gnuplot"

set ylabel "busy (% of the step)"
set yrange [0:100]
eval below(3, "device, mode, global batch")
plot @columns \
     data index "devices" using 1:(0):2 with labels offset 0,label_row(0) font ",10" notitle, \
     data index "modes" using 1:(0):2 with labels offset 0,label_row(1) notitle, \
     data index "batches" using 1:(0):2 with labels offset 0,label_row(2) notitle, \
     data index "notes" using 1:(0):2 with labels offset 0,0.8 textcolor rgb "#b00000" notitle
