# Live memory over the mean step, stacked by tag: a panel a device, with the phases of the device under it and its peak
# marked. From timeline.dat; options: style.gnuplot. All panels share the scale of memory; time is each one's own.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("timeline.gnuplot")]
set datafile separator "\t"
stats data index "about" using (panels = $7, phases = strcol(8), thin_phases = strcol(9), top = $10, tic = $11, 1) nooutput

# In pixels: what is over all panels, a panel with its title, strip and labels, what is under and beside all of them.
head = 34; pitch = panels == 1 ? 380 : panels == 2 ? 210 : 176; beneath = 36; side = 138.
height = head + panels * pitch + beneath
load here."style.gnuplot"
label(name) = name # comm is whole here: exposed or not, waits too

block(k, name) = sprintf("%d %s", k, name)
set key off
set ytics 0,tic nomirror out scale 0.5 font ",10"

if (text) { # the sum alone, a picture a panel
    set terminal dumb size 100,16 noenhanced
    set xtics
    set xlabel "time in the step (ms), ".foot
    set bmargin 4
    set yrange [0:top]
    do for [k = 0:panels - 1] {
        stats data index block(k, "about") using (name = strcol(1), step = $2, 1) nooutput
        set xrange [0:step]
        set title name." (MiB)"
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
    do for [name in phases." ".thin_phases] { if (pattern(name) == p) { list = list." ".name } }
    phases_of[p] = list
}

unset title
set multiplot
middle = (58 + width - side) / 2 / width
set lmargin at screen x_of(58)
set rmargin at screen 1 - x_of(side)
set label 1 title at screen middle,y_of(16) center noenhanced
do for [k = 0:panels - 1] {
    at = head + k * pitch
    stats data index block(k, "about") using (name = strcol(1), step = $2, 1) nooutput
    set xrange [0:step]

    set tmargin at screen y_of(at + 20)
    set bmargin at screen y_of(at + pitch - 52)
    set border 3
    set yrange [0:top]
    set ytics 0,tic nomirror out scale 0.5 font ",10"
    set grid ytics
    unset xtics
    set label 2 name at graph 0,1 offset 0,0.6 left noenhanced
    set ylabel "MiB" offset 1.5,0
    plot for [tag in tags_of[3]] data index block(k, tag) using 1:2 with filledcurves closed fillstyle solid 1 noborder linecolor rgb color(tag), \
         for [p = 4:5] for [tag in tags_of[p]] data index block(k, tag) using 1:2 with filledcurves closed fillstyle pattern p noborder linecolor rgb color(tag), \
         data index block(k, "total") using 1:2 with lines linewidth 0.8 linecolor rgb "#202020", \
         data index block(k, "peak") using 1:(0):(0):2 with vectors nohead linewidth 1 linecolor rgb color_note, \
         data index block(k, "note left") using 1:2:3 with labels right offset -0.5,0 font ",11" textcolor rgb color_note, \
         data index block(k, "note right") using 1:2:3 with labels left offset 0.5,0 font ",11" textcolor rgb color_note
    unset label
    unset ylabel
    unset ytics
    unset grid

    if (k == panels - 1) { # what stands beside and under all panels, once
        legend_x = width - side + 14
        set label 3 "memory" at screen x_of(legend_x),y_of(head + 8) left
        legend_names = present; legend_top = head + 8; legend_from = 100; legend_last = 1
        load here."legend.gnuplot"
        legend_top = head + 46 + 20 * words(present)
        set label 4 "phase" at screen x_of(legend_x),y_of(legend_top) left
        legend_names = phases; legend_from = 200; legend_last = 0
        load here."legend.gnuplot"
        set label 5 "time in the step (ms)" at screen middle,y_of(height - 28) center
        set label 6 foot at screen middle,y_of(height - 10) center font ",10" textcolor rgb "#404040"
    }
    set tmargin at screen y_of(at + pitch - 50)
    set bmargin at screen y_of(at + pitch - 42)
    set border 1
    set yrange [0:1]
    set xtics nomirror out scale 0.5 offset 0,-0.15 font ",10"
    plot for [name in phases_of[3]] data index block(k, "phase ".name) using 1:(0):1:2:(0):(1) with boxxyerror fillstyle solid 1 noborder linecolor rgb color(name), \
         for [p = 4:5] for [name in phases_of[p]] data index block(k, "phase ".name) using 1:(0):1:2:(0):(1) with boxxyerror fillstyle pattern p noborder linecolor rgb color(name), \
         data index block(k, "names") using 1:(0):2 with labels offset 0,-0.65 font ",9"
}
unset multiplot
