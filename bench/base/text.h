/* Figures as a person reads them: sensible digits, thousands set apart, text wrapped to a width. For reports only:
 * files keep all digits.
 *
 * Text of others (folders, records, processes) is printed by el_text_line, el_text_wrap and el_table_line, or has been
 * through el_utf8_printable: then no control character of it reaches a terminal or a CI log. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Foreign text in files of other forms: what a form cannot have as it is, and what stands for it. Control characters
 * are left out everywhere. */

struct el_escape {
    const char *special;
    const char *words[8];
};
extern const struct el_escape el_escape_xml;        /* and HTML: in text, and between double quotes */
extern const struct el_escape el_escape_annotation; /* GitHub's: a message */
extern const struct el_escape el_escape_title;      /* and its title */

/* For a line of Markdown or a cell of its tables: text that is nothing but text, in CommonMark, on GitHub and GitLab:
 * no HTML, link, picture, mention, heading, list or code. */
void el_escape_markdown(const char *text, FILE *out);
/* A cell of CSV, quoted where it must be: a spreadsheet takes =, +, - and @ at its beginning for a formula, so that an
 * apostrophe stands before them. */
void el_escape_csv(const char *text, FILE *out);
void el_escape_put(const struct el_escape *form, const char *text, FILE *out);

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
