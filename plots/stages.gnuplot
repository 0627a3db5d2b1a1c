# One step of a model in stages: a lane a device, boxes for forward and backward of each micro-batch, bubbles in grey, messages
# below the boxes. From stages.dat; options: style.gnuplot. A panel a trial; time is each one's own, from the first forward on.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("stages.gnuplot")]
set datafile separator "\t"
stats data index "about" using (panels = $7, height = $8, 1) nooutput
load here."style.gnuplot"

# Of this figure alone: a device's second part is the darker one.
color_forward_2          = 0xd9c435; pattern_forward_2          = 3
color_backward_2         = 0xb87a00; pattern_backward_2         = 3
color_backward_inputs    = 0xe69f00; pattern_backward_inputs    = 3
color_backward_inputs_2  = 0xb87a00; pattern_backward_inputs_2  = 3
color_backward_weights   = 0x9fc5e0; pattern_backward_weights   = 3
color_backward_weights_2 = 0x6a9cc0; pattern_backward_weights_2 = 3
color_load               = 0x9a9a9a; pattern_load               = 3
color_transfer           = 0xd55e00; pattern_transfer           = 3
color_bubble             = 0xe4e4e4; pattern_bubble             = 3
label(name) = name eq "forward_2" ? "forward, 2nd part" : name eq "backward_2" ? "backward, 2nd part" : \
              name eq "backward_inputs" ? "backward, inputs" : name eq "backward_inputs_2" ? "... 2nd part" : \
              name eq "backward_weights" ? "backward, weights" : name eq "backward_weights_2" ? "... 2nd part" : \
              name eq "transfer" ? "send, receive" : name

block(k, name) = sprintf("%d %s", k, name)
set key off
unset grid

if (text) { # letters in lanes, a picture a panel
    set terminal dumb size 100,16 noenhanced
    set xtics
    unset ytics
    set xlabel "ms from the first forward"
    set bmargin 4
    do for [k = 0:panels - 1] {
        stats data index block(k, "about") using (name = strcol(1), from = $2, to = $3, low = $4, 1) nooutput
        set xrange [from:to]
        set yrange [low:0]
        set title name
        plot data index block(k, "numbers") using 1:2:4 with labels, \
             data index block(k, "lanes") using (from):1:2 with labels right
    }
    exit
}

boxes = ""
do for [name in all] { if (name ne "bubble") { boxes = boxes." ".name } }
side = 190.
unset title
set multiplot
set lmargin at screen x_of(62)
set rmargin at screen 1 - x_of(side)
set label 1 title at screen (62 + width - side) / 2 / width,y_of(16) center noenhanced
set border 1
set xtics nomirror out scale 0.5 offset 0,0.2 font ",10"
do for [k = 0:panels - 1] {
    stats data index block(k, "about") using (name = strcol(1), from = $2, to = $3, low = $4, top = $5, tall = $6, 1) nooutput
    set tmargin at screen y_of(top)
    set bmargin at screen y_of(top + tall)
    set xrange [from:to]
    set yrange [low:0]
    unset ytics
    set label 2 name at graph 0,1 offset 0,0.5 left noenhanced
    if (k == panels - 1) { # what stands beside and under all panels, once
        legend_names = present; legend_x = width - side + 14; legend_top = 40; legend_from = 100; legend_last = 0
        load here."legend.gnuplot"
        set label 5 "ms from the first forward" at screen (62 + width - side) / 2 / width,y_of(top + tall + 36) center
        set label 6 foot at screen (62 + width - side) / 2 / width,y_of(top + tall + 56) center font ",10" textcolor rgb "#404040"
    }
    plot data index block(k, "bubble") using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder linecolor rgb color_bubble, \
         data index block(k, "under") using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder linecolor rgb 0xf8dcc8, \
         for [name in boxes] data index block(k, name) using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 border rgb "#404040" linewidth 0.4 fillcolor rgb color(name), \
         data index block(k, "numbers") using 1:2:3 with labels font ",9", \
         data index block(k, "lanes") using (from):1:2 with labels right offset -0.8,0 font ",10"
    unset label
}
unset multiplot
