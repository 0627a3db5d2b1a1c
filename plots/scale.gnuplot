# Speed-up of each mode over the number of devices, with the ideal line, and efficiency below it; both against plain
# single. From scale.dat; options: style.gnuplot (`thin`: modes with shared devices). Open points with solid lines are of
# devices that share a core or a card; a point with a diamond round it is not valid.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("scale.gnuplot")]
height = 580
set datafile separator "\t"
set datafile missing "?"
# Modes that were predicted too; a data file of an older program has no such block.
coming = ""
stats data index "predicted" using (name = strcol(8), coming = strstrt(" ".coming." ", " ".name." ") || name eq "_" ? coming : coming." ".name, 1) nooutput
stats data index "about" using (left = $7, lowest = $8, highest = $9, legend_n = 1 + words(strcol(2)) + words(strcol(3)) + words(coming), 1) nooutput
load here."style.gnuplot"
load here."modes.gnuplot"
future(name) = name.", predicted"
side = 178 # right of the axes, for the legend
do for [name in coming] { side = 205 + 7 * (strlen(name) - 3) > side ? 205 + 7 * (strlen(name) - 3) : side }
side = narrow ? 14 : side

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
load here."key.gnuplot"
set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb color_grid
set multiplot
set label 1 title at screen (x_of(80) + 1 - x_of(side)) / 2,y_of(16) center noenhanced font sprintf(",%.1f", title_size)
unset title
set lmargin at screen x_of(80)
set rmargin at screen 1 - x_of(side)
unset ylabel
do for [panel = 0:1] { # speed-up is in the columns 2 to 4, efficiency in 5 to 7
    v = 2 + 3 * panel
    from = panel ? 328 : 34; to = panel ? bottom - 58 : 310
    set tmargin at screen y_of(from)
    set bmargin at screen y_of(to)
    set label 2 (panel ? "efficiency (%)" : "speed-up over single (log)") at screen x_of(14),y_of((from + to) / 2) center rotate by 90
    if (panel) {
        unset label 1
        unset logscale y
        unset ytics
        set ytics nomirror out scale 0.5
        set yrange [0:*]
        set xlabel "devices (log)" offset 0,0.3
        unset key
    }
    plot data index "ideal" using 1:(column(2 + panel)) with lines linecolor rgb color_ideal dashtype 2 linewidth 1 title "ideal", \
         for [name in present] data index "points" using 1:(strcol(8) eq name ? column(v) : NaN) with lines linecolor rgb ink(name) linewidth 1.2 notitle, \
         for [name in coming] data index "predicted" using 1:(strcol(8) eq name ? column(v) : NaN) with lines linecolor rgb ink(name) dashtype (10,7) linewidth 1.2 notitle, \
         for [block in "predicted points"] for [name in present] data index block using 1:(strcol(8) eq name && column(v + 2) > column(v + 1) ? column(v) : NaN):(column(v + 1)):(column(v + 2)) \
             with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
         for [block in "predicted points"] for [name in present] data index block using 1:(strcol(8) eq name && $9 == 1 ? column(v) : NaN) \
             with points pointtype point(name) pointsize size(name) linecolor rgb color_paper notitle, \
         for [block in "predicted points"] for [name in present] data index block using 1:(strcol(8) eq name && $9 == 1 ? column(v) : NaN) \
             with points pointtype point(name) - 1 pointsize size(name) linecolor rgb ink(name) linewidth 1.2 notitle, \
         for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 0 ? column(v) : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb ink(name) notitle, \
         data index "points" using 1:($10 == 0 ? column(v) : NaN) with points pointtype 12 pointsize 4 * dot linewidth 1.2 linecolor rgb color_note notitle, \
         for [name in present] NaN with linespoints pointtype point(name) pointsize size(name) linecolor rgb ink(name) linewidth 1.2 title name, \
         for [name in thin] NaN with linespoints pointtype point(name) - 1 pointsize size(name) linecolor rgb ink(name) linewidth 1.2 title name.", shared", \
         for [name in coming] NaN with linespoints pointtype point(name) - 1 pointsize size(name) linecolor rgb ink(name) dashtype (10,7) linewidth 1.2 title future(name), \
         data index "counts" using 1:(1):xtic("") with points pointtype -1 notitle, \
         data index "counts" using 1:(panel ? 0 : NaN):2 with labels offset 0,-1.3 notitle
}
unset multiplot
