# Card by card: peak memory of each device, stacked by tag, and under it what the first holds more than the mean of the others,
# by tag, less below zero; the line across is the difference itself. From imbalance.dat; options: style.gnuplot.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("imbalance.gnuplot")]
height = 620
load here."style.gnuplot"

# In pixels: from the left edge to the axes, the legend's width, and from the top to the ends of both panels.
left = 84.; side = 152.
y_of(pixels) = 1 - pixels / (1. * height)
middle = (left + width - side) / 2 / width
set lmargin at screen left / width
set rmargin at screen 1 - side / width
set ytics font ",10"
set errorbars 0
unset ylabel

more = ""
do for [name in present." ".thin] {
    more = more.sprintf("data index 'more %s' using 1:4:2:3:4:5 with boxxyerror fillstyle %s notitle, ", name, framed(name))
}

set multiplot
unset title
set label 1 title at screen middle,y_of(17) center noenhanced
set label 2 "peak memory (MiB)" at screen 16. / width,y_of(180) center rotate by 90
set label 3 "device" at graph 0,0 offset -1,label_row(0) right font ",10"
set tmargin at screen y_of(34)
set bmargin at screen y_of(326)
set key at screen 1 - (side - 12) / width,y_of(34) left top vertical Left reverse samplen 1.6 spacing 1.15 width 1 invert
plot @stacked \
     data index "devices" using 1:(0):2 with labels offset 0,label_row(0) font ",10" notitle, \
     data index "notes" using 1:(0):2 with labels offset 0,0.8 textcolor rgb "#b00000" notitle

unset label 1
set label 2 "main - others (MiB)" at screen 16. / width,y_of(460) center rotate by 90
set label 3 "mode" at graph 0,0 offset -1,label_row(0) right font ",10"
set tmargin at screen y_of(372)
set bmargin at screen y_of(height - 70)
set yrange [*:*]
set y2range [0:1] # of the labels below
set offsets 0,0,graph 0.16,graph 0.04
set xzeroaxis linetype 1 linewidth 0.8 linecolor rgb "#404040"
set border 2
unset key
plot @more \
     data index "net" using 1:4:2:3 with xerrorbars linetype 1 linewidth 2.2 linecolor rgb "#000000" pointtype -1 notitle, \
     data index "net" using 1:5:6 with labels offset 0,0.7 font ",10" notitle, \
     data index "modes" using 1:(0):2 axes x1y2 with labels offset 0,label_row(0) notitle, \
     data index "batches" using 1:(0):2 axes x1y2 with labels offset 0,label_row(1) notitle
unset multiplot
