# Speed-up of each mode over the number of devices, with the ideal line, and efficiency below it; both against plain
# single. From scale.dat; options: style.gnuplot. Hollow points are of devices that share a core or a card.
data = ARG1; out = ARG2; format = ARG3
here = ARG0[1:strlen(ARG0) - strlen("scale.gnuplot")]
height = 640
load here."style.gnuplot"
stats data index "about" using (left = $6, lowest = $7, highest = $8, 1) nooutput

# Square, triangle, circle, diamond; the number below each is its outline.
mark(name) = name eq "single" ? 5 : name eq "dp" ? 9 : name eq "ddp" ? 7 : 13
# Modes stand side by side where they would hide each other.
beside(name) = name eq "single" ? 0.97 : name eq "dp" ? 1.0 : name eq "ddp" ? 1.03 : 1.06
ink(name) = name eq "single" ? "#707070" : color(name)
hollow = thin eq "shared" ? present : ""

set logscale xy 2
set xrange [left:right]
set yrange [lowest:highest]
set xtics () out nomirror
set ytics nomirror out scale 0.5 (0.0625, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
if (!text) set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb "#dcdcdc"
set lmargin 9
if (!text) set rmargin 20
if (!text) set multiplot layout 2,1 title title." " noenhanced offset 0,-0.2
if (!text) unset title
if (!text) set bmargin 2
set ylabel "speed-up (plain single: 1)"
plot data index "ideal" using 1:2 with lines linecolor rgb "#606060" dashtype 2 linewidth 1 title "ideal", \
     for [name in present] data index name using ($1 * beside(name)):2:3:4 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in hollow] data index name." shared" using ($1 * beside(name)):2:3:4 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
     for [name in present] data index name using ($1 * beside(name)):2 with points pointtype mark(name) pointsize 1.2 linecolor rgb ink(name) title name, \
     for [name in hollow] data index name." shared" using ($1 * beside(name)):2 with points pointtype mark(name) pointsize 1.3 linecolor rgb "#ffffff" notitle, \
     for [name in hollow] data index name." shared" using ($1 * beside(name)):2 with points pointtype mark(name) - 1 pointsize 1.3 \
         linecolor rgb ink(name) linewidth 1.2 title (text ? "" : name.", shared"), \
     data index "counts" using 1:(1):xtic(2) with points pointtype -1 notitle
if (!text) {
    unset logscale y
    unset ytics
    set ytics 0,20 nomirror out scale 0.5
    set yrange [0:*]
    set bmargin 3.6
    set ylabel "efficiency (%)"
    set xlabel (thin eq "shared" ? "devices; hollow: they share a core or card; whiskers: 95 % interval" : "devices; whiskers: 95 % interval")
    unset key
    plot data index "ideal" using 1:3 with lines linecolor rgb "#606060" dashtype 2 linewidth 1 notitle, \
         for [name in present] data index name using ($1 * beside(name)):5:6:7 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
         for [name in hollow] data index name." shared" using ($1 * beside(name)):5:6:7 with yerrorbars pointtype 0 linecolor rgb ink(name) linewidth 1.2 notitle, \
         for [name in present] data index name using ($1 * beside(name)):5 with points pointtype mark(name) pointsize 1.2 linecolor rgb ink(name) notitle, \
         for [name in hollow] data index name." shared" using ($1 * beside(name)):5 with points pointtype mark(name) pointsize 1.3 linecolor rgb "#ffffff" notitle, \
         for [name in hollow] data index name." shared" using ($1 * beside(name)):5 with points pointtype mark(name) - 1 pointsize 1.3 \
             linecolor rgb ink(name) linewidth 1.2 notitle, \
         data index "counts" using 1:(100):xtic(2) with points pointtype -1 notitle
    unset multiplot
}
