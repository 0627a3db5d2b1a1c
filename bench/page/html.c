/* Escapes, cells, and pictures as base64. */
#include "bench/page/html.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/escape.h"

void el_html_text(FILE *out, const char *text)
{
    el_escape_put(&el_escape_xml, text, out);
}

/* The next item of a list: a line that begins with `mark` and a blank, and those that go on with it, as one line. To be
 * freed; NULL: there is none. */
static char *next_item(const char **text_p, char mark)
{
    const char *at = *text_p;
    const char begin[] = {mark, ' ', '\0'};
    if (strncmp(at, begin, 2) != 0) return NULL;
    char *item = strdup(at + 2), *end = item;
    for (const char *from = at + 2; item && *from; end++) {
        bool last = from[0] == '\n' && strncmp(from + 1, "  ", 2) != 0;
        at = from + 1;
        if (last) break;
        *end = *from == '\n' ? ' ' : *from;
        from += *from == '\n' ? 1 + strspn(from + 1, " ") : 1;
    }
    if (item) *end = '\0';
    *text_p = at;
    return item;
}

void el_html_list(FILE *out, const char *style, const char *text, char mark)
{
    if (!*text) return;
    fprintf(out, "<ul class=\"%s\">\n", style);
    for (char *item; (item = next_item(&text, mark)); free(item)) {
        fputs("<li>", out);
        el_html_text(out, item);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

void el_markdown_list(FILE *out, const char *text, char mark)
{
    if (!*text) return;
    for (char *item; (item = next_item(&text, mark)); free(item)) {
        fputs("- ", out);
        el_escape_put(&el_escape_markdown, item, out);
        fputc('\n', out);
    }
    fputc('\n', out);
}

static bool is_left(const struct el_column *column)
{
    return column->width < 0;
}

static void put_head(FILE *out, const struct el_column *column, el_html_meaning *meaning)
{
    const char *head = column->head + (strncmp(column->head, "| ", 2) == 0 ? 2 : 0), *means = meaning(head);
    fprintf(out, "<th scope=\"col\"%s", is_left(column) ? " class=\"left\"" : "");
    if (means) {
        fputs(" title=\"", out);
        el_html_text(out, means);
        fputc('"', out);
    }
    fputs("><button type=\"button\">", out);
    el_html_text(out, head);
    fputs("</button></th>", out);
}

void el_html_table(FILE *out, const struct el_column *const *lists, const json_t *rows, const json_t *context,
                   el_html_meaning *meaning)
{
    const json_t *row;
    size_t r;
    char text[EL_CELL_BYTES];
    fputs("<div class=\"wide\"><table>\n<thead><tr>", out);
    for (size_t l = 0; lists[l]; l++)
        for (const struct el_column *column = lists[l]; column->head; column++) put_head(out, column, meaning);
    fputs("</tr></thead>\n<tbody>\n", out);
    json_array_foreach(rows, r, row)
    {
        fputs("<tr>", out);
        for (size_t l = 0; lists[l]; l++)
            for (const struct el_column *column = lists[l]; column->head; column++) {
                el_table_cell(column, row, context, text);
                fputs(is_left(column) ? "<td class=\"left\">" : "<td>", out);
                el_html_text(out, text);
                fputs("</td>", out);
            }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

void el_markdown_table(FILE *out, const struct el_column *columns, const json_t *rows, const json_t *context)
{
    const json_t *row;
    size_t r;
    char text[EL_CELL_BYTES];
    for (const struct el_column *column = columns; column->head; column++) fprintf(out, "| %s ", column->head);
    fputs("|\n", out);
    for (const struct el_column *column = columns; column->head; column++)
        fputs(is_left(column) ? "|---" : "|--:", out);
    fputs("|\n", out);
    json_array_foreach(rows, r, row)
    {
        for (const struct el_column *column = columns; column->head; column++) {
            el_table_cell(column, row, context, text);
            fputs("| ", out);
            el_escape_put(&el_escape_markdown, text, out);
            fputc(' ', out);
        }
        fputs("|\n", out);
    }
}

enum el_status el_html_file(FILE *out, const char *path)
{
    char block[4096];
    FILE *file = fopen(path, "rb");
    if (!file) return el_fail_errno("%s", path);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) fwrite(block, 1, n, out);
    fclose(file);
    return EL_OK;
}

/* Three bytes in four letters. */
static void put_base64(FILE *out, const unsigned char *bytes, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned word = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                        (left > 2 ? (unsigned)bytes[i + 2] : 0);
        char group[4] = {letters[word >> 18], letters[word >> 12 & 63], left > 1 ? letters[word >> 6 & 63] : '=',
                         left > 2 ? letters[word & 63] : '='};
        fwrite(group, 1, sizeof group, out);
    }
}

size_t el_html_picture(FILE *out, const char *path, const char *name, size_t room)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = file ? malloc(room) : NULL;
    size_t n = bytes ? fread(bytes, 1, room, file) : 0, size = (n + 2) / 3 * 4;
    bool fits = n > 0 && size < room;
    if (fits) {
        fputs("<img alt=\"", out);
        el_html_text(out, name);
        fputs("\" src=\"data:image/svg+xml;base64,", out);
        put_base64(out, bytes, n);
        fputs("\">\n", out);
    }
    if (file) fclose(file);
    free(bytes);
    return fits ? size : 0;
}
