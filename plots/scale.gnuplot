# Speed-up of each mode over the number of devices, with the ideal line, and efficiency below it; both against plain
# single. From scale.dat; options: style.gnuplot (`thin`: modes with shared devices). Hollow points are of devices that share a core or a card.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("scale.gnuplot")]
height = 580
load here."style.gnuplot"
load here."modes.gnuplot"
stats data index "about" using (left = $7, lowest = $8, highest = $9, 1) nooutput

# Modes that were predicted too; a data file of an older program has no such block.
coming = ""
stats data index "predicted" using (name = strcol(8), coming = strstrt(" ".coming." ", " ".name." ") || name eq "_" ? coming : coming." ".name, 1) nooutput
lines = strlen(coming) ? 1.2 : 0 # with what goes on dashed, what was measured is solid
future(name) = name.", predicted"
side = 178 # right of the axes, for the legend
do for [name in coming] { side = 205 + 7 * (strlen(name) - 3) > side ? 205 + 7 * (strlen(name) - 3) : side }

set logscale xy 2
set xrange [left:right]
set yrange [lowest:highest]
set xtics () out nomirror
set ytics nomirror out scale 0.5 (0.0625, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
set lmargin 11
if (text) {
    set key outside right top vertical Left
    set ylabel "speed-up over single (log)"
    set xlabel "devices (log)".under
    plot data index "ideal" using 1:2 with lines title "ideal", \
         for [k = 1:words(present)] data index "points" using 1:(strcol(8) eq word(present, k) ? $2 : NaN) \
             with points pointtype k linetype k title word(present, k), \
         for [k = 1:(strlen(coming) ? words(present) : 0)] data index "predicted" using 1:(strcol(8) eq word(present, k) && $9 == 1 ? $2 : NaN) \
             with points pointtype k + 6 linetype k title future(word(present, k)), \
         data index "counts" using 1:(1):xtic(2) with points pointtype -1 notitle
    exit
}
set key outside right top vertical Left reverse samplen 1.6 spacing 1.15 width 1
set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb color_grid
set multiplot
set label 1 title at screen (x_of(80) + 1 - x_of(side)) / 2,y_of(16) center noenhanced font sprintf(",%.1f", title_size)
unset title
set lmargin at screen x_of(80)
set rmargin at screen 1 - x_of(side)
set tmargin at screen y_of(34)
set bmargin at screen y_of(310)
unset ylabel
set label 2 "speed-up over single (log)" at screen x_of(14),y_of(172) center rotate by 90
plot data index "ideal" using 1:2 with lines linecolor rgb color_ideal dashtype 2 linewidth 1 title "ideal", \
     for [name in present] data index "points" using 1:(strcol(8) eq name ? $2 : NaN) with lines linecolor rgb ink(name) linewidth lines notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name ? $2 : NaN) with lines linecolor rgb ink(name) dashtype (10,7) linewidth 1.2 notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name && $4 > $3 ? $2 : NaN):3:4 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name && $9 == 1 ? $2 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb color_paper notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name && $9 == 1 ? $2 : NaN) with points pointtype point(name) - 1 pointsize size(name) linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $4 > $3 ? $2 : NaN):3:4 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 0 ? $2 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb ink(name) title name, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $2 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb color_paper notitle, \
     for [name in thin] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $2 : NaN) with points pointtype point(name) - 1 pointsize size(name) \
         linecolor rgb ink(name) linewidth 1.2 title name.", shared", \
     for [name in coming] data index "predicted" using 1:(NaN) with linespoints pointtype point(name) - 1 pointsize size(name) \
         linecolor rgb ink(name) dashtype (10,7) linewidth 1.2 title future(name), \
     data index "points" using 1:($10 == 0 ? $2 : NaN):(mark) with labels offset 1.1,0.4 font ",8" textcolor rgb color_note notitle, \
     data index "counts" using 1:(1):xtic("") with points pointtype -1 notitle
unset label
unset logscale y
unset ytics
set ytics nomirror out scale 0.5
set yrange [0:*]
set tmargin at screen y_of(328)
set bmargin at screen y_of(bottom - 58)
set label 2 "efficiency (%)" at screen x_of(14),y_of((328 + bottom - 58) / 2) center rotate by 90
set xlabel "devices (log)" offset 0,0.3
unset key
plot data index "ideal" using 1:3 with lines linecolor rgb color_ideal dashtype 2 linewidth 1 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name ? $5 : NaN) with lines linecolor rgb ink(name) linewidth lines notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name ? $5 : NaN) with lines linecolor rgb ink(name) dashtype (10,7) linewidth 1.2 notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name && $7 > $6 ? $5 : NaN):6:7 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name && $9 == 1 ? $5 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb color_paper notitle, \
     for [name in coming] data index "predicted" using 1:(strcol(8) eq name && $9 == 1 ? $5 : NaN) with points pointtype point(name) - 1 pointsize size(name) linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $7 > $6 ? $5 : NaN):6:7 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 0 ? $5 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb ink(name) notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $5 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb color_paper notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $5 : NaN) with points pointtype point(name) - 1 pointsize size(name) \
         linecolor rgb ink(name) linewidth 1.2 notitle, \
     data index "points" using 1:($10 == 0 ? $5 : NaN):(mark) with labels offset 1.1,0.4 font ",8" textcolor rgb color_note notitle, \
     data index "counts" using 1:(100):xtic(2) with points pointtype -1 notitle
unset multiplot
