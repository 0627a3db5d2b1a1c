# A baseline's sessions over time: a panel a row, with its levels, and a band where each change lies. From baseline.dat;
# options: style.gnuplot. All panels share the axis of time.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("baseline.gnuplot")]
set datafile separator "\t"
set datafile missing "?"
stats data index "about" using (panels = $7, left = $8, end = $9, 1) nooutput

# In pixels: what is over all panels, a panel with its title, what is under them.
head = 34; pitch = 190; below = 74
height = head + panels * pitch + below
legend_n = 7
load here."style.gnuplot"
block(what, k) = sprintf("%s %d", what, k)
array kinds[3] = ["better", "worse", "accepted"]
array pale[3] = [color_good_pale, color_bad_pale, color_grid]
array dark[3] = [color_good, color_bad, color_axis]
set xtics time format "%Y-%m-%d" nomirror out scale 0.5 font ",10"
set ytics nomirror out scale 0.5 font ",10"
set xrange [left:end]
third = (end - left) / 3
if (narrow) { set xtics third }
whole = title
if (text) { # a picture a panel
    set terminal dumb size 100,20 noenhanced
    set xlabel "date (UTC)"
    set bmargin 4
} else {
    unset title
    set multiplot
    set lmargin at screen x_of(72)
    set rmargin at screen 1 - x_of(24.)
    set label 1 whole at screen (72 + width - 24.) / 2 / width,y_of(16) center noenhanced
    set grid ytics
    set key horizontal at screen (72 + width - 24.) / 2 / width,y_of(bottom - 44) center top maxrows (narrow ? legend_rows : 2) samplen 1.5 Left reverse font ",10" width 1
    set format x ""
}
do for [p = 0:panels - 1] {
    stats data index "panels" every ::p::p using (panel_title = strcol(1), low = $2, high = $3, 1) nooutput
    set yrange [low:high]
    if (text) {
        set title panel_title
    } else {
        at = head + p * pitch
        set tmargin at screen y_of(at + 24)
        set bmargin at screen y_of(at + pitch - 12)
        set label 2 panel_title at graph 0,1 offset 0,0.6 left noenhanced font ",11"
        if (p == panels - 1) { set format x "%Y-%m-%d" }
    }
    last = !text && p == panels - 1 # has the key
    plot for [k = 0:2] data index block("bands", p) using ($5 == k ? $1 : NaN):(low):1:2:(low):(high) with boxxyerror \
             fill solid 1.0 noborder fillcolor rgb pale[k + 1] notitle, \
         data index block("points", p) using 1:($3 == 0 ? $2 : NaN) with points pointtype 7 pointsize 0.9 * dot linecolor rgb color_ideal notitle, \
         data index block("points", p) using 1:($3 == 1 ? $2 : NaN) with points pointtype 8 pointsize 1.6 * dot linecolor rgb color_note notitle, \
         data index block("levels", p) using 1:($3 == 0 ? $2 : NaN) with lines linewidth 2.4 linecolor rgb color_curves[1] notitle, \
         data index block("levels", p) using 1:($3 == 1 ? $2 : NaN) with lines linewidth 2.4 dashtype (8,3) linecolor rgb color_curves[1] notitle, \
         for [k = 0:2] data index block("bands", p) using ($5 == k ? $3 : NaN):(high):4 with labels offset 0,-0.7 noenhanced \
             font ",10" textcolor rgb dark[k + 1] notitle, \
         NaN with points pointtype 7 pointsize 0.9 * dot linecolor rgb color_ideal title (last ? "session" : ""), \
         NaN with points pointtype 8 pointsize 1.6 * dot linecolor rgb color_note title (last ? "off the scale" : ""), \
         NaN with lines linewidth 2.4 linecolor rgb color_curves[1] title (last ? "level" : ""), \
         NaN with lines linewidth 2.4 dashtype (8,3) linecolor rgb color_curves[1] title (last ? "creep" : ""), \
         for [k = 0:2] NaN with boxes fill solid 1.0 noborder fillcolor rgb pale[k + 1] title (last ? kinds[k + 1] : "")
}
if (!text) unset multiplot
