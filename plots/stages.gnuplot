# One step of a model in stages: a lane a device, boxes for forward and backward of each micro-batch, bubbles in grey, messages
# below the boxes. From stages.dat; options: style.gnuplot. A panel a trial; all share the axis of time, from the first forward on.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("stages.gnuplot")]
set datafile separator "\t"
stats data index "about" using (panels = $7, height = $8, 1) nooutput
load here."style.gnuplot"

label(name) = name eq "forward_2" ? "forward, 2nd part" : name eq "backward_2" ? "backward, 2nd part" : \
              name eq "backward_inputs" ? "backward, inputs" : name eq "backward_inputs_2" ? "... 2nd part" : \
              name eq "backward_weights" ? "backward, weights" : name eq "backward_weights_2" ? "... 2nd part" : \
              name eq "transfer" ? "send, receive" : name eq "travel" ? "message travels" : name

block(k, name) = sprintf("%d %s", k, name)
set key off
unset grid

if (text) { # letters in lanes, a picture a panel
    set terminal dumb size 100,16 + notes noenhanced
    set xtics
    unset ytics
    set xlabel "ms from the first forward".under
    set bmargin 4 + notes
    do for [k = 0:panels - 1] {
        stats data index block(k, "about") using (name = strcol(1), from = $2, to = $3, low = $4, marked = $7, 1) nooutput
        set xrange [from:to]
        set yrange [low:0]
        set title name.(marked > 0 ? mark : "")
        plot data index block(k, "numbers") using 1:2:4 with labels, \
             data index block(k, "lanes") using (from):1:2 with labels right
    }
    exit
}

boxes = ""
do for [name in all] { if (name ne "bubble" && name ne "travel") { boxes = boxes." ".name } }
side = narrow ? 14. : 200.
unset title
set multiplot
set lmargin at screen x_of(62)
set rmargin at screen 1 - x_of(side)
set label 1 title at screen (62 + width - side) / 2 / width,y_of(16) center noenhanced
set border 0
set xtics scale 0 format ""
set grid xtics
do for [k = 0:panels - 1] {
    stats data index block(k, "about") using (name = strcol(1), from = $2, to = $3, low = $4, top = $5, tall = $6, marked = $7, 1) nooutput
    set tmargin at screen y_of(top)
    set bmargin at screen y_of(top + tall)
    set xrange [from:to]
    set yrange [low:0]
    unset ytics
    name = name.(marked > 0 ? " ".mark : "")
    name_size = 9.3 * strlen(name) > width - 62 - 8 ? 12 * (width - 62 - 8) / (9.3 * strlen(name)) : 12
    set label 2 name at graph 0,1 offset 0,0.5 left noenhanced font sprintf(",%.1f", name_size)
    if (k == panels - 1) { # what stands beside and under all panels, once
        set border 1
        set xtics nomirror out scale 0.5 format "%g" offset 0,0.2 font ",10"
        legend_names = present; legend_x = width - side + 14; legend_top = 40; legend_from = 100; legend_last = 0
        load here."legend.gnuplot"
        set label 5 "ms from the first forward" at screen (62 + width - side) / 2 / width,y_of(top + tall + 36) center
    }
    plot data index block(k, "bubble") using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder linecolor rgb color_bubble, \
         data index block(k, "under") using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder linecolor rgb color_travel, \
         for [name in boxes] data index block(k, name) using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 border rgb color_axis linewidth 0.4 fillcolor rgb color(name), \
         data index block(k, "numbers") using ($5 * (width - 62 - side) >= 634 ? $1 : NaN):2:3 with labels font ",9", \
         data index block(k, "lanes") using (from):1:2 with labels right offset -0.8,0 font ",10"
    unset label
}
unset multiplot
