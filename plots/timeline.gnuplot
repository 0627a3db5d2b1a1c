# Live memory over the mean step, stacked by tag: a panel a device, with the phases of its compute stream under it and
# its peak marked. From timeline.dat; options: style.gnuplot. All panels share the scale of memory; time is each one's own.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("timeline.gnuplot")]
set datafile separator "\t"
stats data index "about" using (panels = $6, phases = strcol(7), thin_phases = strcol(8), top = $9, tic = $10, 1) nooutput

# In pixels: what is over all panels, a panel with its title, strip and labels, what is under and beside all of them.
head = 34; pitch = panels == 1 ? 350 : panels == 2 ? 190 : 176; foot = 16; side = 138.
height = head + panels * pitch + foot
load here."style.gnuplot"

block(k, name) = sprintf("%d %s", k, name)
y_of(pixels) = 1 - pixels / (1. * height) # from the top
color_note = "#b00000"
set key off
set ytics 0,tic nomirror out scale 0.5 font ",10"

if (text) { # the sum alone, a picture a panel
    set terminal dumb size 100,16 noenhanced
    set xtics
    set xlabel "time in the step (ms)"
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

areas = ""; strips = ""; tags = ""; times = "" # parts of plot commands, a name each
do for [tag in present." ".thin] {
    areas = areas.sprintf("data index block(k, '%s') using 1:2 with filledcurves closed fillstyle %s, ", tag, fill(tag))
}
do for [phase in phases." ".thin_phases] {
    strips = strips.sprintf("data index block(k, 'phase %s') using 1:(0):1:2:(0):(1) with boxxyerror fillstyle %s, ", \
                            phase, fill(phase))
}
do for [tag in present] { tags = tags.sprintf("NaN with boxes fillstyle %s title '%s', ", framed(tag), tag) }
do for [phase in phases] { times = times.sprintf("NaN with boxes fillstyle %s title '%s', ", framed(phase), phase) }

unset title
set multiplot
middle = (58 + width - side) / 2 / width
set lmargin at screen 58. / width
set rmargin at screen 1 - side / width
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
    plot @areas \
         data index block(k, "total") using 1:2 with lines linewidth 0.8 linecolor rgb "#202020", \
         data index block(k, "peak") using 1:(0):(0):2 with vectors nohead linewidth 1 linecolor rgb color_note, \
         data index block(k, "note left") using 1:2:3 with labels right offset -0.5,0 font ",11" textcolor rgb color_note, \
         data index block(k, "note right") using 1:2:3 with labels left offset 0.5,0 font ",11" textcolor rgb color_note
    unset label
    unset ylabel
    unset ytics
    unset grid

    set tmargin at screen y_of(at + pitch - 50)
    set bmargin at screen y_of(at + pitch - 42)
    set border 1
    set yrange [0:1]
    set xtics nomirror out scale 0.5 offset 0,-0.15 font ",10"
    plot @strips \
         data index block(k, "names") using 1:(0):2 with labels offset 0,-0.65 font ",9"
}

# The legends are plots of nothing, beside the panels.
set tmargin at screen y_of(head)
set bmargin at screen y_of(height)
set border 0
unset xtics
set xrange [0:1]
legend(row, words) = sprintf("set key on at screen %g,%g left top vertical Left reverse samplen 1.4 spacing 1.1 font ',11' title '%s' left", \
                             1 - (side - 14) / width, y_of(head + 10 + row), words)
eval legend(0, "memory")." invert"
set label 3 "time in the step (ms)" at screen middle,y_of(height - 12) center
plot @tags NaN notitle
unset label 3
eval legend(190, "phase")." noinvert"
plot @times NaN notitle
unset multiplot
