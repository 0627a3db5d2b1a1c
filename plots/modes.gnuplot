# What modes look like, from the rows of the block "looks": for figures whose parts are modes. After style.gnuplot. A mode that
# has no row (of a foreign record, or of a data file that is older than the block) gets one look.
fills = ""; inks = ""; patterns = ""; points = ""; sizes = ""
stats data index "looks" using (at = " ".strcol(1)."=", fills = fills.at.strcol(2), inks = inks.at.strcol(3), \
    patterns = patterns.at.strcol(4), points = points.at.strcol(5), sizes = sizes.at.strcol(6), 1) nooutput
look(list, name, other) = (at = strstrt(list, " ".name."="), at > 0 ? real(word(list[at + strlen(name) + 2:*], 1)) : other)
color(name) = int(look(fills, name, color_other))
pattern(name) = int(look(patterns, name, pattern_other))
ink(name) = int(look(inks, name, color_other))
point(name) = int(look(points, name, 13)) # the number below each is its outline
size(name) = dot * look(sizes, name, 1.6)
