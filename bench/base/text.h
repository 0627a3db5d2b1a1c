/* Figures as a person reads them: sensible digits, thousands set apart, text wrapped to a width. For reports only:
 * files keep all digits.
 *
 * Text of others (folders, records, processes) is printed by el_text_line, el_text_wrap and el_table_line, or has been
 * through el_utf8_printable: then no control character of it reaches a terminal or a CI log. */
#pragma once

#include <stddef.h>
#include <stdio.h>

enum { EL_REPORT_COLUMNS = 100, EL_FIGURE_BYTES = 32 };

/* Three significant digits at least, all digits before the point: 0.0321, 1.23, 12.3, 123, 12,345. "-" for NAN. */
const char *el_text_figure(double value, char text[EL_FIGURE_BYTES]);
/* Seconds with three digits: 3.56 ms, 1.7 min, 5.71 years. */
const char *el_text_time(double s, char text[EL_FIGURE_BYTES]);
/* Bytes as MiB with a digit after the point, below 1 with two digits that count, without the unit. */
const char *el_text_mib(double bytes, char text[EL_FIGURE_BYTES]);
/* As by printf, behind what `text` holds; what does not fit is cut. */
void el_text_append(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A line as by printf; the newline is added. A name in it cannot end it. */
void el_text_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the text wrapped at blanks, the first line after `first`, the others after `rest`. To `columns`, or to the
 * width of the terminal that `out` is, where that is less, down to 40. */
void el_text_wrap(const char *text, const char *first, const char *rest, int columns, FILE *out);
/* The same of a text as by printf. */
void el_text_say(const char *first, const char *rest, int columns, FILE *out, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
