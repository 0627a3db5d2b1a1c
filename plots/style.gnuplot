# What all figures share: terminals, fonts, and one look for each thing wherever it is drawn.
#
# Called as   gnuplot -d -c plots/<figure>.gnuplot DATA OUT FORMAT     FORMAT: svg, png, pdf or text (OUT "" is standard output)
# A script reads its data file and computes nothing: positions, sums and labels are in the file.
#
# Colour says what it is, pattern says whose copy: parameters are blue and their replicas hatched blue, gradients orange
# and their buckets hatched orange. Neighbours in a stack differ in lightness or in pattern, so that it reads in grey.

# The figure's script has set data, out and format: `load` starts with arguments of its own.

set encoding utf8
set datafile separator "\t"
set datafile missing "?"

# `thin` are the parts too thin to be seen: drawn, but not in the legend.
stats data index "about" using (title = strcol(1), present = strcol(2), thin = strcol(3), right = $4, bars = $5, 1) nooutput

# Wider with more bars: a bar never gets thinner than a label.
width = 560 + 24 * bars
width = width > 1800 ? 1800 : width
if (!exists("height")) height = 400 # a script may have set it
text = format eq "text"

if (format eq "svg") set terminal svg size width,height font "Sans,12" noenhanced background "white" dynamic
if (format eq "png") set terminal pngcairo size width*2,height*2 font "Sans,12" fontscale 2 linewidth 2 noenhanced
if (format eq "pdf") set terminal pdfcairo size width/100.,height/100. font "Sans,12" noenhanced
if (text) set terminal dumb size 100,30 noenhanced
if (out ne "") set output out

# Memory, by tag. Pattern 3 is solid, 4 and 5 are hatched.
color_param      = "#0072b2"; pattern_param      = 3
color_grad       = "#e69f00"; pattern_grad       = 3
color_optimizer  = "#00664b"; pattern_optimizer  = 3
color_activation = "#f5e97a"; pattern_activation = 3
color_input      = "#a8417f"; pattern_input      = 3
color_output     = "#a8417f"; pattern_output     = 5
color_replica    = "#0072b2"; pattern_replica    = 4
color_bucket     = "#c07f00"; pattern_bucket     = 5
color_workspace  = "#9a9a9a"; pattern_workspace  = 3
color_padding    = "#9a9a9a"; pattern_padding    = 4
color_unattributed = "#d40000"; pattern_unattributed = 5
# Time, by phase: the colour of what the phase makes or moves.
color_data       = "#9a9a9a"; pattern_data       = 3
color_h2d        = "#9a9a9a"; pattern_h2d        = 4
color_replicate  = "#0072b2"; pattern_replicate  = 4
color_scatter    = "#a8417f"; pattern_scatter    = 3
color_forward    = "#f5e97a"; pattern_forward    = 3
color_gather     = "#a8417f"; pattern_gather     = 5
color_loss       = "#303030"; pattern_loss       = 3
color_backward   = "#e69f00"; pattern_backward   = 3
color_reduce     = "#c07f00"; pattern_reduce     = 5
color_comm       = "#d55e00"; pattern_comm       = 4
color_wait       = "#c9c9c9"; pattern_wait       = 5
color_idle       = "#ffffff"; pattern_idle       = 3
# Modes. One that is not here gets the last row.
color_single     = "#c8c8c8"; pattern_single     = 3
color_dp         = "#cc5500"; pattern_dp         = 5
color_ddp        = "#5b84c4"; pattern_ddp        = 3
color_other      = "#5fa8a0"; pattern_other      = 4
color(name) = exists("color_".name) ? value("color_".name) : color_other
pattern(name) = exists("pattern_".name) ? value("pattern_".name) : pattern_other
# As words of a plot command, for viewers show a solid pattern in a PDF with seams, and a solid fill without.
fill_of(name) = sprintf(pattern(name) == 3 ? "solid 1" : "pattern %d", pattern(name))
fill(name) = fill_of(name)." noborder linecolor rgb '".color(name)."'"
framed(name) = fill_of(name)." border rgb '#202020' linecolor rgb '".color(name)."'"
label(name) = name eq "comm" ? "comm (exposed)" : name eq "wait" ? "wait for others" : name
# What most figures draw: the blocks of `present` with their names in the legend, and stacks those of `thin` without.
stacked = ""; columns = ""
do for [name in present] {
    stacked = stacked.sprintf("data index '%s' using 1:4:2:3:4:5 with boxxyerror fillstyle %s title '%s', ", \
                              name, framed(name), label(name))
    columns = columns.sprintf("data index '%s' using 1:2 with boxes fillstyle %s title '%s', ", name, framed(name), label(name))
}
do for [name in thin] {
    stacked = stacked.sprintf("data index '%s' using 1:4:2:3:4:5 with boxxyerror fillstyle %s notitle, ", name, framed(name))
}

set style fill solid 1.0 border rgb "#202020"
set boxwidth 0.84
set border 3 linewidth 0.8 linecolor rgb "#404040"
set tics nomirror out scale 0.5 textcolor rgb "#202020"
if (!text) set grid ytics linetype 1 linewidth 0.5 linecolor rgb "#dcdcdc"
set title title noenhanced offset 0,-0.4
set tmargin text ? 2 : 2.4
if (text) set key outside right top vertical Left; else set key outside right top vertical Left reverse samplen 1.6 spacing 1.15 width 1
set xrange [0.3:right - 0.3]
set yrange [0:*]
unset xtics

# Labels below the axis, a row each: what stands nearest to the bars first. The axis' own label is under them.
label_row(r) = text ? -1 - r : -0.75 - 1.15 * r
below(rows, words) = sprintf("set bmargin %g; set xlabel '%s' offset 0,%g", text ? rows + 3 : 1.15 * rows + 2, words, \
                             text ? -rows - 1 : 0.15 - 1.15 * rows)
