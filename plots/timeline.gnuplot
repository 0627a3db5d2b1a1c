# Live memory over the mean step, stacked by tag: a panel a device, its peak marked, and under it what the device computes and
# what it communicates. From timeline.dat; options: style.gnuplot. All panels share both axes.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("timeline.gnuplot")]
set datafile separator "\t"
stats data index "about" using (present = strcol(2), panels = $7, phases = strcol(8), thin_phases = strcol(9), top = $10, tic = $11, 1) nooutput

# In pixels: what is over all panels, a panel with its title and lanes, what is under and beside all of them.
head = 34; pitch = panels == 1 ? 330 : panels == 2 ? 220 : 164; below = 44; left = 74
legend_n = words(present) + words(phases)
legend_need = head + 62 + 20 * legend_n
height = head + panels * pitch + below
load here."style.gnuplot"
# Whole here, exposed or not; by axis where pieces of a model communicate.
cut = strstrt(phases.thin_phases, "stage") + strstrt(phases.thin_phases, "tensor")
label(name) = name eq "wait" ? "wait for others" : name eq "comm" && cut ? "comm: data" : name eq "stage" || name eq "tensor" ? "comm: ".name : name

side = narrow ? 14. : 184.
block(k, name) = sprintf("%d %s", k, name)
set key off
set ytics 0,tic nomirror out scale 0.5 font ",10"
set xrange [0:right]

if (text) { # the sum alone, a picture a panel
    set terminal dumb size 100,16 + notes noenhanced
    set xtics
    set xlabel "time in the step (ms)".under
    set bmargin 4 + notes
    set yrange [0:top]
    do for [k = 0:panels - 1] {
        stats data index block(k, "about") using (name = strcol(1), marked = $3, 1) nooutput
        set title name.(marked > 0 ? mark : "")." (MiB)"
        plot data index block(k, "total") using 1:2 with lines, \
             data index block(k, "peak") using 1:(0):(0):2 with vectors nohead, \
             data index block(k, "note left") using 1:2:3 with labels right offset -1,0, \
             data index block(k, "note right") using 1:2:3 with labels left offset 1,0
    }
    exit
}

# By pattern: 3 is solid.
array tags_of[5]; array phases_of[5]
do for [p = 3:5] {
    list = ""
    do for [name in all] { if (pattern(name) == p) { list = list." ".name } }
    tags_of[p] = list
    list = ""
    do for [name in phases." ".thin_phases] { if (pattern(name) == p && name ne "idle") { list = list." ".name } }
    phases_of[p] = list
}

unset title
set multiplot
middle = (left + width - side) / 2 / width
set lmargin at screen x_of(left)
set rmargin at screen 1 - x_of(side)
set label 1 title at screen middle,y_of(16) center noenhanced
do for [k = 0:panels - 1] {
    at = head + k * pitch
    last = k == panels - 1
    stats data index block(k, "about") using (name = strcol(1), marked = $3, 1) nooutput

    set tmargin at screen y_of(at + 20)
    set bmargin at screen y_of(at + pitch - 38)
    set border 3
    set yrange [0:top]
    set ytics 0,tic nomirror out scale 0.5 font ",10"
    set xtics scale 0 format ""
    set grid xtics ytics
    set label 2 name.(marked > 0 ? " ".mark : "") at graph 0,1 offset 0,0.6 left noenhanced
    set label 7 "MiB" at screen x_of(12),y_of(at + (pitch - 14) / 2) center rotate by 90
    plot for [tag in tags_of[3]] data index block(k, tag) using 1:2 with filledcurves closed fillstyle solid 1 noborder linecolor rgb color(tag), \
         for [p = 4:5] for [tag in tags_of[p]] data index block(k, tag) using 1:2 with filledcurves closed fillstyle pattern p noborder linecolor rgb color(tag), \
         data index block(k, "total") using 1:2 with lines linewidth 0.8 linecolor rgb color_edge, \
         data index block(k, "peak") using 1:(0):(0):2 with vectors nohead linewidth 1.4 linecolor rgb color_edge, \
         data index block(k, "note left") using 1:2:3 with labels right offset -0.5,0 font ",11" textcolor rgb color_edge, \
         data index block(k, "note right") using 1:2:3 with labels left offset 0.5,0 font ",11" textcolor rgb color_edge
    unset label
    unset ytics
    unset grid

    if (last) { # what stands beside and under all panels, once
        legend_x = width - side + 14
        if (!narrow) { set label 3 "memory" at screen x_of(legend_x),y_of(head + 8) left }
        legend_names = present; legend_top = head + 8; legend_from = 100; legend_last = 1
        load here."legend.gnuplot"
        legend_top = head + 46 + 20 * words(present)
        if (!narrow) { set label 4 "phase" at screen x_of(legend_x),y_of(legend_top) left }
        legend_before = words(present); legend_names = phases; legend_from = 200; legend_last = 0
        load here."legend.gnuplot"
        set label 5 "time in the step (ms)" at screen middle,y_of(at + pitch + 31) center
    }
    set tmargin at screen y_of(at + pitch - 31)
    set bmargin at screen y_of(at + pitch - 8)
    set border last ? 1 : 0
    set yrange [0:1]
    if (last) { set xtics nomirror out scale 0.5 format "%g" font ",10" }
    plot data index block(k, "phase idle") using 1:(0):1:2:3:4 with boxxyerror fillstyle solid 1 border rgb color_grid fillcolor rgb color_idle, \
         for [name in phases_of[3]] data index block(k, "phase ".name) using 1:(0):1:2:3:4 with boxxyerror fillstyle solid 1 noborder linecolor rgb color(name), \
         for [p = 4:5] for [name in phases_of[p]] data index block(k, "phase ".name) using 1:(0):1:2:3:4 with boxxyerror fillstyle pattern p noborder linecolor rgb color(name), \
         data index block(k, "lanes") using (0):1:2 with labels right offset -0.6,0 font ",9"
}
unset multiplot
