# The legend: a box and a name for each part, the top of a stack first; under the axes where the figure is narrow. Set before:
# legend_names, legend_x and legend_top (in pixels), legend_from (the first number of its labels and objects), legend_last
# (whether the last name stands on top), legend_before (names of an earlier part of it).
do for [k = 1:words(legend_names)] {
    name = word(legend_names, legend_last ? words(legend_names) + 1 - k : k)
    legend_k = legend_before + k - 1
    legend_left = narrow ? 14 + legend_wide * (legend_k % legend_columns) : legend_x
    legend_at = narrow ? bottom + 12 + 20 * (legend_k / legend_columns) : legend_top + 20 * k
    if (pattern(name) == 3) {
        set object legend_from + k rectangle from screen x_of(legend_left),y_of(legend_at + 5) to screen x_of(legend_left + 22),y_of(legend_at - 5) \
            fillstyle solid 1 border rgb color_edge fillcolor rgb color(name) front
    } else {
        set object legend_from + k rectangle from screen x_of(legend_left),y_of(legend_at + 5) to screen x_of(legend_left + 22),y_of(legend_at - 5) \
            fillstyle pattern pattern(name) border rgb color_edge fillcolor rgb color(name) front
    }
    set label legend_from + k label(name) at screen x_of(legend_left + 30),y_of(legend_at) left noenhanced font narrow ? ",10" : ",11"
}
