# The key of a figure of lines: beside the axes, under them where the figure is narrow.
if (narrow) {
    set key at screen x_of(12),y_of(bottom + 2) left top vertical maxrows legend_rows Left reverse samplen 2 width 1 spacing 1.25 font ",10"
    set rmargin at screen 1 - x_of(14.)
} else {
    set key outside right top vertical Left reverse samplen 2 spacing 1.15 width 1 maxcols 1
}
