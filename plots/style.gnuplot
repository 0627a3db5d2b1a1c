# What all figures share: terminals, fonts, and one look for each thing wherever it is drawn.
#
# Called as   gnuplot -d -c plots/<figure>.gnuplot DATA FORMAT >PICTURE     FORMAT: svg, png, pdf or text
# A script reads its data file and computes nothing: positions, sums and labels are in the file. Text of the file is only
# ever a label or compared with known names: no script makes commands of it (no eval, no macros).
#
# Colour says what it is, pattern says whose copy: parameters are blue and their replicas hatched blue, gradients orange
# and their buckets hatched orange. Neighbours in a stack differ in lightness or in pattern, so that it reads in grey.

# The figure's script has set data and format: `load` starts with arguments of its own.

set encoding utf8
set datafile separator "\t"
set datafile missing "?"

# `thin` are the parts too thin to be seen: drawn, but not in the legend.
stats data index "about" using (title = strcol(1), present = strcol(2), thin = strcol(3), right = $4, bars = $5, foot = strcol(6), 1) nooutput

# Wider with more bars: a bar never gets thinner than a label.
width = 560 + 24 * bars
width = width > 1800 ? 1800 : width
if (!exists("height")) height = 400 # a script may have set it
text = format eq "text"

if (format eq "svg") set terminal svg size width,height font "Sans,12" noenhanced background "white" dynamic
if (format eq "png") set terminal pngcairo size width*2,height*2 font "Sans,12" fontscale 2 linewidth 2 noenhanced
if (format eq "pdf") set terminal pdfcairo size width/100.,height/100. font "Sans,12" noenhanced
if (text) set terminal dumb size 100,30 noenhanced

# Memory, by tag. Pattern 3 is solid, 4 and 5 are hatched.
color_param      = 0x0072b2; pattern_param      = 3
color_grad       = 0xe69f00; pattern_grad       = 3
color_optimizer  = 0x00664b; pattern_optimizer  = 3
color_buffer     = 0x56b4e9; pattern_buffer     = 3
color_activation = 0xf5e97a; pattern_activation = 3
color_input      = 0xa8417f; pattern_input      = 3
color_output     = 0xa8417f; pattern_output     = 5
color_replica    = 0x0072b2; pattern_replica    = 4
color_bucket     = 0xc07f00; pattern_bucket     = 5
color_mailbox    = 0xd55e00; pattern_mailbox    = 4
color_workspace  = 0x9a9a9a; pattern_workspace  = 3
color_allowance  = 0xd9d9d9; pattern_allowance  = 3
color_padding    = 0x9a9a9a; pattern_padding    = 4
color_unattributed = 0xd40000; pattern_unattributed = 5
# Time, by phase: the colour of what the phase makes or moves.
color_data       = 0x9a9a9a; pattern_data       = 3
color_h2d        = 0x9a9a9a; pattern_h2d        = 4
color_replicate  = 0x0072b2; pattern_replicate  = 4
color_scatter    = 0xa8417f; pattern_scatter    = 3
color_forward    = 0xf5e97a; pattern_forward    = 3
color_gather     = 0xa8417f; pattern_gather     = 5
color_loss       = 0x303030; pattern_loss       = 3
color_backward   = 0xe69f00; pattern_backward   = 3
color_reduce     = 0x8c4a12; pattern_reduce     = 3
color_comm       = 0xd55e00; pattern_comm       = 5
color_wait       = 0xc9c9c9; pattern_wait       = 3
color_idle       = 0xffffff; pattern_idle       = 3
# What is not here; modes have their looks in the data file (modes.gnuplot).
color_other      = 0x5fa8a0; pattern_other      = 4
color_note       = 0xb00000
color(name) = exists("color_".name) ? value("color_".name) : color_other
pattern(name) = exists("pattern_".name) ? value("pattern_".name) : pattern_other
label(name) = name eq "comm" ? "comm (exposed)" : name eq "wait" ? "wait for others" : name

# The drawn parts by their pattern: viewers show a solid pattern in a PDF with seams, so that a solid part needs a fill
# style of its own.
all = present." ".thin

set style fill solid 1.0 border rgb "#202020"
set border 3 linewidth 0.8 linecolor rgb "#404040"
set tics nomirror out scale 0.5 textcolor rgb "#202020"
if (!text) set grid ytics linetype 1 linewidth 0.5 linecolor rgb "#dcdcdc"
set title title noenhanced offset 0,-0.4
set tmargin text ? 2 : 2.4
if (text) set key outside right top vertical Left; else set key off
set xrange [0.3:right - 0.3]
set yrange [0:*]
unset xtics

# A point on the canvas in pixels, from the left and from the top.
x_of(pixels) = pixels / (1. * width)
y_of(pixels) = 1 - pixels / (1. * height)
# Labels below the axis, a row each: what stands nearest to the bars first. The axis' own label is under them.
label_row(r) = text ? -1 - r : -0.75 - 1.15 * r
