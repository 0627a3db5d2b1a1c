# A waterfall from one step to another: what each part takes or adds, in turn, with its 95 % interval at the end to which it goes.
# From explain.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("explain.gnuplot")]
load here."style.gnuplot"
stats data index "about" using (lowest = $7, highest = $8, what = strcol(9), 1) nooutput

color_step  = 0x5b84c4
color_saved = 0xcc5500; color_saved_pale = 0xf2cdb0
color_added = 0x3f8f86; color_added_pale = 0xc4dfdb
set yrange [lowest:highest]
set ylabel "step (ms)"
set bmargin text ? 4 : foot eq " " ? 4.2 : 5.1
set xlabel what.(text ? "" : " (whiskers: 95 % interval; pale: 0 in it, or none)") offset 0,text ? 0 : -0.9
if (text) {
    plot data index "bars" using 1:3:(0.7) with boxes notitle, data index "bars" using 1:3:7 with labels offset 0,1 notitle, \
         data index "bars" using 1:(lowest):8 with labels offset 0,-1 notitle
    exit
}
if (foot ne " ") set label 99 foot at screen 0.5,y_of(height - 12) center noenhanced font ",10" textcolor rgb color_note
plot data index "bars" using 1:2:($1 - 0.36):($1 + 0.36):2:3:(color(strcol(9))) with boxxyerror fillstyle solid 1 border rgb "#202020" linecolor rgb variable, \
     data index "bars" using ($1 + 0.36):10:(0.28):(0) with vectors nohead linecolor rgb "#808080" linewidth 0.8, \
     data index "bars" using 1:4:(0):($5 - $4) with vectors nohead linecolor rgb "#202020" linewidth 1.2, \
     data index "bars" using ($5 > $4 ? $1 - 0.05 : NaN):4:(0.1):(0) with vectors nohead linecolor rgb "#202020" linewidth 1.2, \
     data index "bars" using ($5 > $4 ? $1 - 0.05 : NaN):5:(0.1):(0) with vectors nohead linecolor rgb "#202020" linewidth 1.2, \
     data index "bars" using 1:6:7 with labels offset 0,0.7 font ",10", \
     data index "bars" using 1:(lowest):8 with labels offset 0,label_row(0) font ",11"
