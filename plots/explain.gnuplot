# A waterfall from one step to another: what each part takes or adds, in turn, with its 95 % interval at the end to which it
# goes. Steps have their modes' looks; what makes the step shorter is good. From explain.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("explain.gnuplot")]
load here."style.gnuplot"
stats data index "about" using (highest = $7, what = strcol(8), 1) nooutput

set yrange [0:highest]
set ylabel "step time (ms)"
if (text) {
    set bmargin 4 + notes
    set xlabel what.under
    plot data index "bars" using 1:3:(0.7) with boxes notitle, data index "bars" using 1:3:7 with labels offset 0,1 notitle, \
         data index "bars" using 1:(0):8 with labels offset 0,-1 notitle
    exit
}
side = narrow ? 14. : 200.
legend_names = present; legend_x = width - side + 14; legend_top = 30; legend_from = 100; legend_last = 0
label(name) = name eq "good" ? "shorter" : name eq "bad" ? "longer" : name eq "good_pale" ? "shorter, or chance" : "longer, or chance"
load here."legend.gnuplot"
load here."modes.gnuplot"
tint(kind, mode) = kind eq "step" ? color(mode) : value("color_".kind)
hatch(kind, mode) = kind eq "step" ? pattern(mode) : 3
set rmargin at screen 1 - x_of(side)
set bmargin at screen y_of(bottom - (narrow ? 72 : 52))
set xlabel what offset 0,(narrow ? -2.2 : -0.9)
second(k) = narrow ? int(k) % 2 : 0 # of neighbours one stands higher and its name lower, so that they have room
plot data index "bars" using (hatch(strcol(9), strcol(11)) == 3 ? $1 : NaN):2:($1 - 0.36):($1 + 0.36):2:3:(tint(strcol(9), strcol(11))) with boxxyerror \
         fillstyle solid 1 border rgb color_edge linecolor rgb variable, \
     for [p = 4:5] data index "bars" using (hatch(strcol(9), strcol(11)) == p ? $1 : NaN):2:($1 - 0.36):($1 + 0.36):2:3:(tint(strcol(9), strcol(11))) with boxxyerror \
         fillstyle pattern p border rgb color_edge linecolor rgb variable, \
     data index "bars" using ($1 + 0.36):10:(0.28):(0) with vectors nohead linecolor rgb color_ideal linewidth 0.8, \
     data index "bars" using 1:4:(0):($5 - $4) with vectors nohead linecolor rgb color_edge linewidth 1.2, \
     data index "bars" using ($5 > $4 ? $1 - 0.05 : NaN):4:(0.1):(0) with vectors nohead linecolor rgb color_edge linewidth 1.2, \
     data index "bars" using ($5 > $4 ? $1 - 0.05 : NaN):5:(0.1):(0) with vectors nohead linecolor rgb color_edge linewidth 1.2, \
     for [k = 0:1] data index "bars" using (second($1) == k ? $1 : NaN):6:7 with labels offset 0,0.7 + k font ",10", \
     for [k = 0:1] data index "bars" using (second($1) == k ? $1 : NaN):(0):8 with labels offset 0,label_row(k) font ",11"
