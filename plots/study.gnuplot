# Rate of each command, with the 95 % interval over launches, and its ratio to the first. From study.dat; options: style.gnuplot.
data = ARG1; format = ARG2
here = ARG0[1:strlen(ARG0) - strlen("study.gnuplot")]
barred = 1
load here."style.gnuplot"

stats data index "unit" using (unit = strcol(1), 1) nooutput
set ylabel unit."/s"
set format y "%.0f"
words_below = "command"
rows = "modes"
whiskers = "whiskers"
tops = "ratios"
side = 14
load here."bars.gnuplot"
