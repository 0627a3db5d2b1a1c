# Speed-up of each mode over the number of devices, with the ideal line, and efficiency below it; both against plain
# single. From scale.dat; options: style.gnuplot (`thin`: modes with shared devices). Hollow points are of devices that share a core or a card.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("scale.gnuplot")]
height = 640
load here."style.gnuplot"
load here."modes.gnuplot"
stats data index "about" using (left = $7, lowest = $8, highest = $9, 1) nooutput

set logscale xy 2
set xrange [left:right]
set yrange [lowest:highest]
set xtics () out nomirror
set ytics nomirror out scale 0.5 (0.0625, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
set lmargin 11
if (text) {
    set key outside right top vertical Left
    set ylabel "speed-up over single (log)"
    set xlabel "devices (log)"
    plot data index "ideal" using 1:2 with lines title "ideal", \
         for [k = 1:words(present)] data index "points" using 1:(strcol(8) eq word(present, k) ? $2 : NaN) \
             with points pointtype k linetype k title word(present, k), \
         data index "counts" using 1:(1):xtic(2) with points pointtype -1 notitle
    exit
}
set key outside right top vertical Left reverse samplen 1.6 spacing 1.15 width 1
set rmargin 20
set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb "#dcdcdc"
set multiplot layout 2,1 title title." " noenhanced offset 0,-0.2
unset title
set bmargin 2
set ylabel "speed-up over single (log)"
plot data index "ideal" using 1:2 with lines linecolor rgb "#606060" dashtype 2 linewidth 1 title "ideal", \
     for [name in present] data index "points" using 1:(strcol(8) eq name ? $2 : NaN):3:4 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 0 ? $2 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb ink(name) title name, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $2 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb "#ffffff" notitle, \
     for [name in thin] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $2 : NaN) with points pointtype point(name) - 1 pointsize size(name) \
         linecolor rgb ink(name) linewidth 1.2 title name.", shared", \
     data index "points" using 1:($10 == 0 ? $2 : NaN) with points pointtype 6 pointsize 3.4 linecolor rgb color_note notitle, \
     data index "counts" using 1:(1):xtic(2) with points pointtype -1 notitle
unset logscale y
unset ytics
set ytics nomirror out scale 0.5
set yrange [0:*]
set bmargin foot eq " " ? 3.6 : 4.8
set ylabel "efficiency (%)"
set xlabel (words(thin) > 0 ? "devices, log scale; hollow: they share a core or card; whiskers: 95 % interval" : "devices, log scale; whiskers: 95 % interval")
if (foot ne " ") { set label 99 foot at screen 0.5,y_of(height - 10) center noenhanced font ",10" textcolor rgb color_note }
unset key
plot data index "ideal" using 1:3 with lines linecolor rgb "#606060" dashtype 2 linewidth 1 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name ? $5 : NaN):6:7 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 0 ? $5 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb ink(name) notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $5 : NaN) with points pointtype point(name) pointsize size(name) linecolor rgb "#ffffff" notitle, \
     for [name in present] data index "points" using 1:(strcol(8) eq name && $9 == 1 ? $5 : NaN) with points pointtype point(name) - 1 pointsize size(name) \
         linecolor rgb ink(name) linewidth 1.2 notitle, \
     data index "points" using 1:($10 == 0 ? $5 : NaN) with points pointtype 6 pointsize 3.4 linecolor rgb color_note notitle, \
     data index "counts" using 1:(100):xtic(2) with points pointtype -1 notitle
unset multiplot
