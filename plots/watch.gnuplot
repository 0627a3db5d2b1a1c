# A watched command over time: memory and CPU time of its heaviest processes, and what they held on GPUs. A panel each, one
# line per process, alike in all. From watch.dat; options: style.gnuplot. All panels share the axis of time.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("watch.gnuplot")]
set datafile separator "\t"
stats data index "about" using (panels = $7, lines = $8, 1) nooutput

# In pixels: what is over all panels, a panel with its title, what is under and beside all of them.
head = 34; pitch = 170; below = 44
height = head + panels * pitch + below
legend_n = lines; legend_wide = 240
load here."style.gnuplot"
side = narrow ? 14. : 284.

block(p, k) = sprintf("%d %d", p, k)
array dashes[8] = [1, 2, 4, 5, 1, 2, 4, 5]
array names[8]
do for [k = 1:lines] { stats data index "names" every ::(k - 1)::(k - 1) using (name = strcol(1), 1) nooutput; names[k] = name }
set xtics nomirror out scale 0.5 font ",10"
set ytics nomirror out scale 0.5 font ",10"
set xrange [0:right]
set yrange [0:*]
set offsets 0,0,graph 0.06,0 # a line at the top is seen
whole = title

if (text) { # a picture a panel
    set terminal dumb size 100,20 noenhanced
    set xlabel "time (s)"
    set bmargin 4
} else {
    unset title
    set multiplot
    set lmargin at screen x_of(58)
    set rmargin at screen 1 - x_of(side)
    set label 1 whole at screen (58 + width - side) / 2 / width,y_of(16) center noenhanced
    set grid ytics
    set key off
    set format x ""
}
do for [p = 0:panels - 1] {
    stats data index "panels" every ::p::p using (panel_title = strcol(1), panel_unit = strcol(2), panel_lines = strcol(3), 1) nooutput
    if (text) {
        set title whole.": ".panel_title." (".panel_unit.")"
    } else {
        at = head + p * pitch
        set tmargin at screen y_of(at + 22)
        set bmargin at screen y_of(at + pitch - 12)
        set label 2 panel_title." (".panel_unit.")" at graph 0,1 offset 0,0.6 left noenhanced
        if (p == panels - 1) { set xlabel "time (s)" offset 0,0.4; set format x "%g" }
        if (p == 0) { # a line and a name a process: a key of gnuplot's leaves out those that are more than its panel is high
            do for [k = 1:lines] {
                legend_at = narrow ? bottom + 12 + 20 * ((k - 1) / legend_columns) : head + 14 + 20 * k
                legend_left = narrow ? 14 + legend_wide * ((k - 1) % legend_columns) : width - side + 14
                set arrow k from screen x_of(legend_left),y_of(legend_at) to screen x_of(legend_left + 30),y_of(legend_at) nohead \
                    linewidth 1.6 dashtype dashes[k] linecolor rgb curve(k - 1)
                set label 10 + k names[k] at screen x_of(legend_left + 38),y_of(legend_at) left noenhanced font ",10"
            }
        }
    }
    # The base line is drawn where a panel has nothing else.
    plot for [k in panel_lines] data index block(p, k + 0) using 1:2 with lines linewidth 1.6 dashtype dashes[k + 1] \
             linecolor rgb curve(k) title names[k + 1], \
         0 with lines linewidth 0.8 linecolor rgb color_axis notitle
    unset label
    unset arrow
}
if (!text) unset multiplot
