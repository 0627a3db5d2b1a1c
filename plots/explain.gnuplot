# A waterfall from dp's step to ddp's: what each cause takes, in turn, with the 95 % interval of each part at the end to which it
# goes. From explain.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("explain.gnuplot")]
load here."style.gnuplot"
stats data index "about" using (lowest = $7, highest = $8, 1) nooutput

color_step  = 0x5b84c4
color_saved = 0xcc5500
color_added = 0x5fa8a0
set yrange [lowest:highest]
set ylabel "step (ms)"
set bmargin text ? 4 : foot eq " " ? 4.2 : 4.9
set xlabel (text ? "cause taken away, in turn" : "cause taken away, in turn (whiskers: 95 % interval over launches)") offset 0,text ? 0 : -0.9
if (text) {
    plot data index "bars" using 1:3:(0.7) with boxes notitle, data index "bars" using 1:3:7 with labels offset 0,1 notitle, \
         data index "bars" using 1:(lowest):8 with labels offset 0,-1 notitle
    exit
}
set errorbars 0.5
if (foot ne " ") set label 99 foot at screen 0.5,y_of(height - 12) center noenhanced font ",10" textcolor rgb color_note
plot data index "bars" using 1:2:($1 - 0.36):($1 + 0.36):2:3:(color(strcol(9))) with boxxyerror fillstyle solid 1 border rgb "#202020" linecolor rgb variable, \
     data index "bars" using 1:(strcol(9) eq "step" ? $3 : $4 + ($5 - $4) / 2):4:5 with yerrorbars pointtype 0 linecolor rgb "#202020" linewidth 1.2, \
     data index "bars" using 1:6:7 with labels offset 0,0.7 font ",10", \
     data index "bars" using 1:(lowest):8 with labels offset 0,label_row(0)
