/* HTML and Markdown from texts, tables and pictures. Texts may be anyone's: they are escaped. */
#pragma once

#include <stddef.h>

#include "bench/base/table.h"
#include "runtime/base/status.h"

/* What a column's head means, in a sentence; NULL: it says it itself. */
typedef const char *el_html_meaning(const char *head);

void el_html_text(FILE *out, const char *text);
/* A list of a report's sentences: wrapped lines; the first of each sentence begins with `mark` and a blank. */
void el_html_list(FILE *out, const char *style, const char *text, char mark);
/* Lines as they are, between fences that none of them can close. */
void el_markdown_block(FILE *out, const char *text);
void el_markdown_list(FILE *out, const char *text, char mark);
/* A table that sorts; `lists` are columns that stand side by side, ended by NULL. A row's cells go under heads, whose
 * meanings are shown where the pointer rests. */
void el_html_table(FILE *out, const struct el_column *const *lists, const json_t *rows, const json_t *context,
                   el_html_meaning *meaning);
void el_markdown_table(FILE *out, const struct el_column *columns, const json_t *rows, const json_t *context);
/* A picture inside the page, whose size there is taken from *room_p. Returns NULL, or a sentence: why it is left out
 * (no regular file, no SVG, larger than the room). */
const char *el_html_picture(FILE *out, const char *path, const char *alt, size_t *room_p);
/* A file's text as it is. Errors: EL_ERR_IO. */
enum el_status el_html_file(FILE *out, const char *path);
