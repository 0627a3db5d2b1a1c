/* Foreign text in files of other forms: what a form cannot have as it is, and what stands for it. Control characters
 * are left out everywhere. */
#pragma once

#include <stdio.h>

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
