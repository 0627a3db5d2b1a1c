/* HTML and Markdown from texts, tables and pictures. Texts are escaped. */
#pragma once

#include <stddef.h>

#include "bench/base/table.h"
#include "runtime/base/status.h"

/* A sentence on a column's head; NULL: none needed. */
typedef const char *el_html_meaning(const char *head);

void el_html_text(FILE *out, const char *text);
/* A list of wrapped sentences; each begins with `mark` and a blank. */
void el_html_list(FILE *out, const char *style, const char *text, char mark);
/* A fenced block; the fence is longer than any in the text. */
void el_markdown_block(FILE *out, const char *text);
void el_markdown_list(FILE *out, const char *text, char mark);
/* A sortable table; `lists`: columns side by side, ends with NULL. Heads show their meaning under the pointer. */
void el_html_table(FILE *out, const struct el_column *const *lists, const json_t *rows, const json_t *context,
                   el_html_meaning *meaning);
void el_markdown_table(FILE *out, const struct el_column *columns, const json_t *rows, const json_t *context);
/* Embeds a picture and reduces *room_p. Returns NULL, or why it is left out (no regular file, no SVG, too large). */
const char *el_html_picture(FILE *out, const char *path, const char *alt, size_t *room_p);
/* Copies a file unescaped. Errors: EL_ERR_IO. */
enum el_status el_html_file(FILE *out, const char *path);
