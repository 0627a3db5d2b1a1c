# Bars, whole or stacked, with their labels and the legend. Set before: words_below (the axis' label) and rows (the blocks
# with labels below the axis, the nearest first). A trial that is suspect has a mark at the foot of its bars.
n = words(rows)
if (text) {
    set bmargin n + 3 + notes
    set xlabel words_below.under offset 0,-n - 1
    # Letters say which part it is: a terminal has fewer lines than there are tags.
    plot data index "bars" using 1:4:2:3:4:5 with boxxyerror linetype 1 fillstyle empty notitle, \
         for [k = 1:words(present)] data index "bars" using (strcol(6) eq word(present, k) ? $1 : NaN):(($4 + $5) / 2) with points \
             pointtype k linetype k title label(word(present, k)), \
         data index "marks" using 1:(0):(mark) with labels notitle, \
         for [r = 1:n] data index word(rows, r) using 1:(0):2 with labels offset 0,label_row(r - 1) notitle, \
         data index "notes" using 1:(0):2 with labels offset 0,0.8 notitle
} else {
    if (!exists("side")) { side = narrow ? 14 : 184 }
    # In pixels, from bar to bar; letters that need more are smaller, of devices each second, fourth, ... has a label.
    pitch = (width - side - 106) / right
    stride(pixels) = pixels > pitch ? 2**ceil(log(pixels / pitch) / log(2)) : 1
    row_size(row) = 12 * (row eq "modes" && need_modes > pitch ? pitch / need_modes : row eq "batches" && need_batches > pitch ? pitch / need_batches : 1)
    wide_device = 0; wide_top = 0
    if (strstrt(rows, "devices")) { stats data index "devices" using (wide_device = strlen(strcol(2)) > wide_device ? strlen(strcol(2)) : wide_device, 1) nooutput }
    if (!exists("stacked_panels")) { set rmargin at screen 1 - x_of(side); set bmargin at screen y_of(bottom - 40 - 18 * n) }
    set xlabel words_below offset 0,0.15 - 1.15 * n
    legend_names = present; legend_x = width - side + 14; legend_top = 30; legend_from = 100; legend_last = !exists("grouped")
    load here."legend.gnuplot"
    # Blocks that only some figures have.
    if (!exists("whiskers")) { whiskers = "" }
    if (!exists("tops")) { tops = "" }
    if (!exists("excess")) { excess = "" }
    if (strlen(tops)) { stats data index tops using (wide_top = strlen(strcol(3)) > wide_top ? strlen(strcol(3)) : wide_top, 1) nooutput }
    plot data index "bars" using (pattern(strcol(6)) == 3 ? $1 : NaN):4:2:3:4:5:(color(strcol(6))) with boxxyerror \
             fillstyle solid 1 border rgb color_edge linecolor rgb variable, \
         for [p = 4:5] data index "bars" using (pattern(strcol(6)) == p ? $1 : NaN):4:2:3:4:5:(color(strcol(6))) with boxxyerror \
             fillstyle pattern p border rgb color_edge linecolor rgb variable, \
         for [block in whiskers] data index block using 1:2:(0):($3 - $2) with vectors \
             heads size graph 0.009,90 fixed linecolor rgb color_edge linewidth 1.2, \
         for [block in tops] data index block using (int($4) % stride(4 + 7.2 * wide_top) ? NaN : $1):2:3 with labels offset 0,0.5 font ",9", \
         for [block in excess] data index block using 1:3:($2 - $1):(0) with vectors nohead \
             linecolor rgb color_edge linewidth 1.2, \
         for [block in excess] data index block using 1:($5 < 0 ? $3 : NaN):4 with labels left offset 0.2,-0.65 font ",10", \
         for [block in excess] data index block using 1:($5 > 0 ? $3 : NaN):4 with labels left offset 0.8,0.55 font ",10", \
         data index "marks" using 1:(0) with points pointtype 13 pointsize 2 * dot linecolor rgb color_paper, \
         data index "marks" using 1:(0) with points pointtype 12 pointsize 2 * dot linewidth 1.4 linecolor rgb color_note, \
         for [r = 1:n] data index word(rows, r) using (word(rows, r) eq "devices" && int($2) % stride(2 + 9 * wide_device) ? NaN : $1):(0):2 \
             with labels offset 0,label_row(r - 1) font sprintf(",%.1f", row_size(word(rows, r))), \
         data index "notes" using 1:(0):2 with labels offset 0,0.8 font ",10" textcolor rgb color_note
}
