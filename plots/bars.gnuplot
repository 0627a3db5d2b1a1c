# Bars, whole or stacked, with their labels and the legend. Set before: words_below (the axis' label) and rows (the blocks
# with labels below the axis, the nearest first). Bars of trials that are not valid are hatched across.
n = words(rows)
if (text) {
    set bmargin n + 3
    set xlabel words_below.(foot eq " " ? "" : "; ".foot) offset 0,-n - 1
    # Letters say which part it is: a terminal has fewer lines than there are tags.
    plot data index "bars" using 1:4:2:3:4:5 with boxxyerror linetype 1 fillstyle empty notitle, \
         for [k = 1:words(present)] data index "bars" using (strcol(6) eq word(present, k) ? $1 : NaN):(($4 + $5) / 2) with points \
             pointtype k linetype k title label(word(present, k)), \
         for [r = 1:n] data index word(rows, r) using 1:(0):2 with labels offset 0,label_row(r - 1) notitle, \
         data index "notes" using 1:(0):2 with labels offset 0,0.8 notitle
} else {
    if (!exists("side")) { side = 172 }
    if (!exists("stacked_panels")) { set rmargin at screen 1 - x_of(side); set bmargin 1.15 * n + (foot eq " " ? 2 : 3.2) }
    set xlabel words_below offset 0,0.15 - 1.15 * n
    if (foot ne " ") { set label 99 foot at screen 0.5,y_of(height - 12) center noenhanced font ",10" textcolor rgb color_note }
    legend_names = present; legend_x = width - side + 14; legend_top = 30; legend_from = 100; legend_last = !exists("grouped")
    load here."legend.gnuplot"
    if (!exists("whiskers")) { whiskers = "" }
    plot data index "bars" using (pattern(strcol(6)) == 3 ? $1 : NaN):4:2:3:4:5:(color(strcol(6))) with boxxyerror \
             fillstyle solid 1 border rgb "#202020" linecolor rgb variable, \
         for [p = 4:5] data index "bars" using (pattern(strcol(6)) == p ? $1 : NaN):4:2:3:4:5:(color(strcol(6))) with boxxyerror \
             fillstyle pattern p border rgb "#202020" linecolor rgb variable, \
         data index "not valid" using 1:4:2:3:4:5 with boxxyerror fillstyle transparent pattern 1 noborder linecolor rgb "#303030", \
         for [block in whiskers] data index block using 1:2:(0):($3 - $2) with vectors \
             heads size graph 0.009,90 fixed linecolor rgb "#000000" linewidth 1.2, \
         for [r = 1:n] data index word(rows, r) using 1:(0):2 with labels offset 0,label_row(r - 1), \
         data index "notes" using 1:(0):2 with labels offset 0,0.8 textcolor rgb color_note
}
