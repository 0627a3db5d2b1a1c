# The lanes of a device and its loader workers over some steps, without workers and with them. From loading.dat; options:
# style.gnuplot. A panel a number of workers, on one scale of time.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("loading.gnuplot")]
set datafile separator "\t"
stats data index "about" using (panels = $7, height = $8, 1) nooutput
load here."style.gnuplot"

label(name) = name eq "data" ? "waits, or loads" : name eq "step" ? "computes" : "makes a batch"

block(k, name) = sprintf("%d %s", k, name)
set key off
unset grid

if (text) { # a picture a panel, letters in lanes
    set terminal dumb size 100,16 + notes noenhanced
    set xtics
    unset ytics
    set xlabel "ms".under
    set bmargin 4 + notes
    do for [k = 0:panels - 1] {
        stats data index block(k, "about") using (name = strcol(1), to = $2, low = $3, 1) nooutput
        set xrange [0:to]
        set yrange [low:0]
        set title name
        plot data index block(k, "data") using (($1 + $2) / 2):(($3 + $4) / 2):("d") with labels, \
             data index block(k, "step") using (($1 + $2) / 2):(($3 + $4) / 2):("c") with labels, \
             data index block(k, "made") using (($1 + $2) / 2):(($3 + $4) / 2):("m") with labels, \
             data index block(k, "lanes") using (0):1:2 with labels left
    }
    exit
}

side = narrow ? 14. : 176.
unset title
set multiplot
set lmargin at screen x_of(76)
set rmargin at screen 1 - x_of(side)
set label 1 title at screen (76 + width - side) / 2 / width,y_of(16) center noenhanced
set border 0
set xtics scale 0 format ""
set grid xtics
do for [k = 0:panels - 1] {
    stats data index block(k, "about") using (name = strcol(1), to = $2, low = $3, top = $4, tall = $5, 1) nooutput
    set tmargin at screen y_of(top)
    set bmargin at screen y_of(top + tall)
    set xrange [0:to]
    set yrange [low:0]
    unset ytics
    set label 2 name at graph 0,1 offset 0,0.6 left noenhanced
    if (k == panels - 1) { # what stands beside and under all panels, once
        set border 1
        set xtics nomirror out scale 0.5 format "%g" offset 0,0.2 font ",10"
        legend_names = present; legend_x = width - side + 14; legend_top = 40; legend_from = 100; legend_last = 0
        load here."legend.gnuplot"
        set label 5 "ms" at screen (76 + width - side) / 2 / width,y_of(top + tall + 36) center
    }
    plot for [name in "made data step"] data index block(k, name) using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 border rgb color_axis linewidth 0.4 fillcolor rgb color(name), \
         data index block(k, "lanes") using (0):1:2 with labels right offset -0.8,0 font ",10"
    unset label
}
unset multiplot
