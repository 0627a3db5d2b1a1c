/* Escapes, tables, and pictures as base64. */
#include "bench/page/html.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"

void el_html_text(FILE *out, const char *text)
{
    el_escape_put(&el_escape_xml, text, out);
}

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
        el_escape_markdown(item, out);
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
    char text[EL_CELL_BYTES];
    fputs("<div class=\"wide\"><table>\n<thead><tr>", out);
    for (size_t l = 0; lists[l]; l++)
        for (const struct el_column *column = lists[l]; column->head; column++) put_head(out, column, meaning);
    fputs("</tr></thead>\n<tbody>\n", out);
    EL_EACH(row, rows) {
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

void el_markdown_block(FILE *out, const char *text)
{
    int fence = 3, run = 0;
    for (const char *at = text; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        if (run >= fence) fence = run + 1;
    }
    for (int i = 0; i < fence; i++) fputc('`', out);
    fprintf(out, "\n%s", text);
    for (int i = 0; i < fence; i++) fputc('`', out);
    fputc('\n', out);
}

void el_markdown_table(FILE *out, const struct el_column *columns, const json_t *rows, const json_t *context)
{
    char text[EL_CELL_BYTES];
    for (const struct el_column *column = columns; column->head; column++) fprintf(out, "| %s ", column->head);
    fputs("|\n", out);
    for (const struct el_column *column = columns; column->head; column++)
        fputs(is_left(column) ? "|---" : "|--:", out);
    fputs("|\n", out);
    EL_EACH(row, rows) {
        for (const struct el_column *column = columns; column->head; column++) {
            el_table_cell(column, row, context, text);
            fputs("| ", out);
            el_escape_markdown(text, out);
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

/* <img> runs no scripts in SVG and loads nothing, so the beginning is enough. */
static bool is_svg(const char *text)
{
    static const struct {
        const char *begin, *end;
    } skipped[] = {{"\xEF\xBB\xBF", ""}, {"<?", "?>"}, {"<!--", "-->"}, {"<!DOCTYPE", ">"}};
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0];) {
        text += strspn(text, " \t\r\n");
        bool is = strncmp(text, skipped[i].begin, strlen(skipped[i].begin)) == 0;
        const char *end = is ? strstr(text + strlen(skipped[i].begin), skipped[i].end) : NULL;
        if (is && !end) return false;
        text = is ? end + strlen(skipped[i].end) : text;
        i = is ? 0 : i + 1;
    }
    return strncmp(text, "<svg", 4) == 0 && text[4] && strchr(" \t\r\n>", text[4]);
}

/* No links: they may lead to private files, and pages are shared. */
static char *read_picture(const char *path, size_t room, size_t *n_p, const char **why_p)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    bool regular = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    bool fits = regular && (size_t)info.st_size < room / 4 * 3;
    char *text = fits ? malloc((size_t)info.st_size + 1) : NULL;
    ssize_t n = text ? read(file, text, (size_t)info.st_size) : 0;
    if (text) text[n > 0 ? n : 0] = '\0';
    *why_p = !regular ? "Left out: it is no regular file."
             : !fits  ? "Too large for this page."
                      : "Left out: it is no SVG.";
    if (file >= 0) close(file);
    if (text && is_svg(text)) {
        *n_p = (size_t)n;
        return text;
    }
    free(text);
    return NULL;
}

const char *el_html_picture(FILE *out, const char *path, const char *alt, size_t *room_p)
{
    size_t n;
    const char *why;
    char *bytes = read_picture(path, *room_p, &n, &why);
    if (!bytes) return why;
    fputs("<img alt=\"", out);
    el_html_text(out, alt);
    fputs("\" src=\"data:image/svg+xml;base64,", out);
    put_base64(out, (const unsigned char *)bytes, n);
    fputs("\">\n", out);
    free(bytes);
    *room_p -= (n + 2) / 3 * 4;
    return NULL;
}
