# Throughput of each mode at each batch, with the 95 % interval over repeats. From throughput.dat; options: style.gnuplot.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("throughput.gnuplot")]
load here."style.gnuplot"

set ylabel "throughput (samples/s)"
set format y "%.0f"
eval below(1, text ? "global batch" : "global batch (whiskers, where known: 95 % interval over repeats)")
whiskers = text ? "" : present # a terminal of letters has no room for them
plot @columns \
     for [name in whiskers] data index name using 1:3:(0):($4 - $3) with vectors \
         heads size graph 0.009,90 fixed linecolor rgb "#000000" linewidth 1.2 notitle, \
     data index "batches" using 1:(0):2 with labels offset 0,label_row(0) notitle, \
     data index "notes" using 1:(0):2 with labels offset 0,0.8 textcolor rgb "#b00000" notitle
