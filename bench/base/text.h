/* Figures and text for people: sensible digits, thousands separated, wrapped lines. Files keep all digits. Foreign text
 * is printed by el_text_line, el_text_wrap and el_table_line, or passes el_utf8_printable, so that no control character
 * reaches a terminal or a CI log. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Escapes foreign text for a format. Control characters are always dropped. */

struct el_escape {
    const char *special;
    const char *words[8];
};
extern const struct el_escape el_escape_xml;        /* and HTML: text, and between double quotes */
extern const struct el_escape el_escape_annotation; /* GitHub's: a message */
extern const struct el_escape el_escape_title;      /* and its title */

/* For a line or table cell of Markdown (CommonMark, GitHub, GitLab): no HTML, links, pictures, mentions, headings,
 * lists or code. */
void el_escape_markdown(const char *text, FILE *out);
/* A CSV cell, quoted if needed. An apostrophe precedes =, +, - and @, which spreadsheets take for a formula. */
void el_escape_csv(const char *text, FILE *out);
void el_escape_put(const struct el_escape *form, const char *text, FILE *out);

enum { EL_REPORT_COLUMNS = 100, EL_FIGURE_BYTES = 32 };

/* At least three significant digits, all before the point: 0.0321, 1.23, 12.3, 123, 12,345. "-" for NAN. */
const char *el_text_figure(double value, char text[EL_FIGURE_BYTES]);
/* Three digits: 3.56 ms, 1.7 min, 5.71 years. */
const char *el_text_time(double s, char text[EL_FIGURE_BYTES]);
/* MiB with one decimal, below 1 two significant digits, without unit. */
const char *el_text_mib(double bytes, char text[EL_FIGURE_BYTES]);
/* Appends as printf; cuts what does not fit. */
void el_text_append(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* printf and a newline; names in it cannot end the line. */
void el_text_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Wraps at blanks; the first line after `first`, the others after `rest`. Width: EL_REPORT_COLUMNS, or `out`'s terminal
 * if narrower, at least 40. */
void el_text_wrap(const char *text, const char *first, const char *rest, FILE *out);
/* The same with printf's format; a paragraph, and an item of a list. */
void el_text_say(const char *first, const char *rest, FILE *out, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define EL_SAY(out, ...)  el_text_say("", "  ", out, __VA_ARGS__)
#define EL_ITEM(out, ...) el_text_say("* ", "  ", out, __VA_ARGS__)
