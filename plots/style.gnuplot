# What all figures share: terminals, fonts, and the one table of colours.
#
# Called as   gnuplot -d -c plots/<figure>.gnuplot DATA FORMAT >PICTURE     FORMAT: svg, png, pdf or text
# A script reads its data file and computes nothing: positions, sums and labels are in the file. Text of the file is only
# ever a label or compared with known names: no script makes commands of it (no eval, no macros).

# The figure's script has set data and format: `load` starts with arguments of its own.

set encoding utf8
set datafile separator "\t"
set datafile missing "?"

# `thin` are the parts too thin to be seen: drawn, but not in the legend.
stats data index "about" using (title = strcol(1), present = strcol(2), thin = strcol(3), right = $4, bars = $5, foot = strcol(6), 1) nooutput
if (strlen(foot) < 2) { foot = " " }
# Which trials are suspect; a data file of an older program has no such block.
warning = " "
stats data index "warning" using (warning = $1 > 0 ? strcol(2) : " ", 1) nooutput

# All lengths are in pixels of a canvas, letters of size 12 are 16 of them high, and all formats draw the same canvas. Wider
# with more bars: a bar never gets thinner than a label.
width = 560 + 24 * bars
width = width > 1800 ? 1800 : width
if (!exists("height")) height = 400 # a script may have set it
text = format eq "text"
# For a paper `plot --width` says how many points wide the picture is: letters of size 12 are then of 8 points. Where that is
# narrow the legend stands under the axes; a script says by `least` what it needs at least, and by `legend_n` how many names.
if (!exists("paper")) { paper = 0. }
narrow = paper > 0 && 2 * paper < width
if (!exists("least")) { least = 440. }
if (exists("barred")) { # bars: as many pixels as their labels need, in letters two thirds as large
    need_modes = 0; need_batches = 0 # an older data file has none
    stats data index "about" using (need_modes = $7, need_batches = $8, 1) nooutput
    need = (need_modes > need_batches ? need_modes : need_batches) * 2 / 3.
    least = 120 + right * (need > 8 ? need : 8)
    least = least < 440 ? 440. : least > width ? 1. * width : least
}
if (!exists("legend_n")) { legend_n = words(present) }
legend_before = 0
if (!exists("legend_wide")) { legend_wide = 160 }
if (paper > 0) { width = 2 * paper > least ? 2 * paper : least }
legend_columns = width > 20 + 2 * legend_wide ? int((width - 20) / legend_wide) : 1
legend_rows = (legend_n + legend_columns - 1) / legend_columns
beneath = narrow && legend_n > 0 ? 8 + 20 * legend_rows : 0

# Notes stand under all that, in as many lines as they need.
letters = text ? 98 : int((width - 20) / 7.2)
blank(s, n) = n < 2 || s[n:n] eq " " ? n : blank(s, n - 1)
fill(s, n) = strlen(s) <= n ? s : s[1:blank(s, n) - 1]."\n".fill(s[blank(s, n) + 1:*], n)
rows_of(s) = s eq " " ? 0 : strstrt(s, "\n") == 0 ? 1 : 1 + rows_of(s[strstrt(s, "\n") + 1:*])
mark = text ? "*" : "◇" # of a trial that is suspect or not checked
foot = fill(foot, letters)
if (warning ne " ") { warning = fill(mark." ".warning, letters) }
notes = rows_of(foot) + rows_of(warning)
if (!exists("untitled")) { untitled = 0 }
if (untitled) { title = "" }
headless = untitled && !text ? 22 : 0 # what a title would have
if (exists("legend_need")) { height = narrow || height > legend_need ? height : legend_need }
bottom = height
height = height + beneath + 16 * notes - headless

# `unit` pixels (PNG) or points (PDF) are a pixel of the canvas, which is SVG's viewBox (the program writes a width beside it);
# `dot` is the size of a mark that is 4.5 of them wide.
unit = format eq "svg" ? 1. : paper > 0 ? paper / width * (format eq "png" ? 4 : 1) : format eq "png" ? 2. : 0.72
dot = unit * (format eq "svg" ? 0.45 : format eq "pdf" ? 0.72 : 0.69) # a terminal's own marks have the size of 1
if (format eq "svg") set terminal svg size width,height font "Sans,12" fontscale 4/3. noenhanced background "white" dynamic
if (format eq "png") set terminal pngcairo size width*unit,height*unit font "Sans,12" fontscale unit linewidth unit noenhanced
if (format eq "pdf") set terminal pdfcairo size width*unit/72,height*unit/72 font "Sans,12" fontscale unit linewidth 1.7*unit noenhanced
if (text) set terminal dumb size 100,30 + notes noenhanced

# ---- The colours. A name has one colour in every figure, and no two names of one figure have the same colour and pattern.
# Pattern 3 is solid, 4 and 5 are hatched. Neighbours in a stack differ in lightness or in pattern, so that a figure reads
# in grey; hues differ for every kind of colour vision (after Okabe and Ito, and Tol).

# Memory, by tag: a hatched tag is a copy of the solid one with its hue.
color_param      = 0x0072b2; pattern_param      = 3
color_grad       = 0xe69f00; pattern_grad       = 3
color_optimizer  = 0x00664b; pattern_optimizer  = 3 # of the phase too: its name is the same
color_buffer     = 0x332288; pattern_buffer     = 3
color_activation = 0xf5e97a; pattern_activation = 3
color_input      = 0xa8417f; pattern_input      = 3
color_output     = 0xa8417f; pattern_output     = 5
color_replica    = 0x0072b2; pattern_replica    = 4
color_bucket     = 0xc07f00; pattern_bucket     = 5
color_hook       = 0xc07f00; pattern_hook       = 4
color_cast       = 0x999933; pattern_cast       = 5
color_mailbox    = 0x44aa99; pattern_mailbox    = 4
color_workspace  = 0x9a9a9a; pattern_workspace  = 3
color_allowance  = 0xd9d9d9; pattern_allowance  = 3
color_padding    = 0x9a9a9a; pattern_padding    = 4
color_unattributed = 0xd40000; pattern_unattributed = 5
# Time, by phase. Slate: loading. Pale blue and green: computing. Vermilion and brown: communication. Grey: nothing.
color_data       = 0x4d5f73; pattern_data       = 3
color_h2d        = 0x4d5f73; pattern_h2d        = 4
color_replicate  = 0xf0a878; pattern_replicate  = 3
color_scatter    = 0xf0a878; pattern_scatter    = 4
color_forward    = 0xa6cbe8; pattern_forward    = 3
color_gather     = 0xf0a878; pattern_gather     = 5
color_loss       = 0x303030; pattern_loss       = 3
color_backward   = 0x5aa77a; pattern_backward   = 3
color_reduce     = 0x9c5a1a; pattern_reduce     = 3
color_comm       = 0xd55e00; pattern_comm       = 3
color_stage      = 0xd55e00; pattern_stage      = 4 # communication along it; comm is along data
color_tensor     = 0x8c1d40; pattern_tensor     = 3
color_sent       = 0xd55e00; pattern_sent       = 3
color_received   = 0xf0a878; pattern_received   = 3
color_wait       = 0xc9c9c9; pattern_wait       = 3
color_idle       = 0xffffff; pattern_idle       = 3
# Time, in a pipeline: a device's second part is the darker one.
color_forward_2          = 0x6fa3cf; pattern_forward_2          = 3
color_backward_2         = 0x3d8a5e; pattern_backward_2         = 3
color_backward_inputs    = 0x5aa77a; pattern_backward_inputs    = 3
color_backward_inputs_2  = 0x3d8a5e; pattern_backward_inputs_2  = 3
color_backward_weights   = 0xc3b3e3; pattern_backward_weights   = 3
color_backward_weights_2 = 0x9580c8; pattern_backward_weights_2 = 3
color_load               = 0x4d5f73; pattern_load               = 3
color_compute            = 0x5aa77a; pattern_compute            = 3
color_copies             = 0x4d5f73; pattern_copies             = 4
color_pause              = 0xa8417f; pattern_pause              = 3
color_transfer           = 0xd55e00; pattern_transfer           = 3
color_travel             = 0xf8dcc8; pattern_travel             = 3
color_bubble             = 0xe4e4e4; pattern_bubble             = 3
# Time, after the loss of a rank.
color_detect     = 0xd9884a; pattern_detect     = 3
color_restart    = 0x9a9a9a; pattern_restart    = 3
color_load_state = 0x4d5f73; pattern_load_state = 3
color_catch_up   = 0x6fa3cf; pattern_catch_up   = 3
# Time, of loader workers and the device that they load for.
# A difference: faster or less is good, slower or more is bad; pale: it may be chance. As in report.css.
color_good       = 0x00785a; pattern_good       = 3
color_bad        = 0xb3261e; pattern_bad        = 3
color_good_pale  = 0xb5dcd0; pattern_good_pale  = 3
color_bad_pale   = 0xf0c4c1; pattern_bad_pale   = 3
# What is not here; modes have their looks in the data file (modes.gnuplot).
color_other      = 0x707070; pattern_other      = 4
# Curves without names of ours: processes, operations.
array color_curves[9] = [0x0072b2, 0xd55e00, 0x00664b, 0xa8417f, 0xe69f00, 0x44aa99, 0x8c4a12, 0x303030, 0x9a9a9a]
# From slow to fast, and from fast to slow: dark is slow.
array color_heat_time[3] = ["#f7fbff", "#9ecae1", "#4292c6"]
array color_heat_rate[3] = ["#d9884a", "#fdd9b5", "#fff8f0"]
# What is drawn round the data. A note is what to know before a figure is trusted; as in report.css.
color_note  = 0xa05a00
color_edge  = 0x202020
color_axis  = 0x404040
color_ideal = 0x606060
color_grid  = 0xdcdcdc
color_paper = 0xffffff

color(name) = exists("color_".name) ? value("color_".name) : color_other
pattern(name) = exists("pattern_".name) ? value("pattern_".name) : pattern_other
label(name) = name eq "comm" ? "comm (exposed)" : name eq "wait" ? "wait for others" : name
curve(k) = color_curves[1 + k % 9]

# The drawn parts by their pattern: viewers show a solid pattern in a PDF with seams, so that a solid part needs a fill
# style of its own.
all = present." ".thin

set style fill solid 1.0 border rgb color_edge
set border 3 linewidth 0.8 linecolor rgb color_axis
set tics nomirror out scale 0.5 textcolor rgb color_edge
if (!text) set grid ytics linetype 1 linewidth 0.5 linecolor rgb color_grid
# A long title is smaller: it is never cut.
title_room = width - (narrow ? 110 : 20)
title_size = 9.3 * strlen(title) > title_room ? 12 * title_room / (9.3 * strlen(title)) : 12
set title title noenhanced offset 0,-0.4 font sprintf(",%.1f", title_size)
set tmargin text ? 2 : untitled ? 0.9 : 2.4
if (text) set key outside right top vertical Left; else set key off
set xrange [0.3:right - 0.3]
set yrange [0:*]
unset xtics

# A point on the canvas in pixels, from the left and from the top.
x_of(pixels) = pixels / (1. * width)
y_of(pixels) = 1 - (pixels - headless) / (1. * height)
# Labels below the axis, a row each: what stands nearest to the bars first. The axis' own label is under them.
label_row(r) = text ? -1 - r : -0.75 - 1.15 * r

# The notes below the figure.
if (!text && foot ne " ") set label 98 foot at screen 0.5,y_of(bottom + beneath + 6) center noenhanced font ",10" textcolor rgb color_axis
if (!text && warning ne " ") set label 99 warning at screen 0.5,y_of(height + headless - 16 * rows_of(warning) + 6) center noenhanced font ",10" textcolor rgb color_note
under = text ? (foot eq " " ? "" : "\n".foot).(warning eq " " ? "" : "\n".warning) : ""
