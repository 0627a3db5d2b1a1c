# The legend: a box and a name for each part, the top of a stack first. Set before: legend_names, legend_x and legend_top (in
# pixels), legend_from (the first number of its labels and objects), legend_last (whether the last name stands on top).
do for [k = 1:words(legend_names)] {
    name = word(legend_names, legend_last ? words(legend_names) + 1 - k : k)
    legend_at = legend_top + 20 * k
    if (pattern(name) == 3) {
        set object legend_from + k rectangle from screen x_of(legend_x),y_of(legend_at + 5) to screen x_of(legend_x + 22),y_of(legend_at - 5) \
            fillstyle solid 1 border rgb color_edge fillcolor rgb color(name) front
    } else {
        set object legend_from + k rectangle from screen x_of(legend_x),y_of(legend_at + 5) to screen x_of(legend_x + 22),y_of(legend_at - 5) \
            fillstyle pattern pattern(name) border rgb color_edge fillcolor rgb color(name) front
    }
    set label legend_from + k label(name) at screen x_of(legend_x + 30),y_of(legend_at) left noenhanced font ",11"
}
