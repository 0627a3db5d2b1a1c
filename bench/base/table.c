/* Cells, and the lines they make. */
#include "bench/base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "runtime/base/utf8.h"

static const char *const codes[] = {[EL_TABLE_PLAIN] = "",
                                    [EL_TABLE_BOLD] = "\033[1m",
                                    [EL_TABLE_DIM] = "\033[2m",
                                    [EL_TABLE_RED] = "\033[31m",
                                    [EL_TABLE_YELLOW] = "\033[33m"};

static bool has_colour(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0 && !getenv("NO_COLOR");
}

void el_table_begin(FILE *out, enum el_table_style style)
{
    if (has_colour(out)) fputs(codes[style], out);
}

void el_table_end(FILE *out)
{
    if (has_colour(out)) fputs("\033[0m", out);
}

void el_table_line(FILE *out, enum el_table_style style, const char *line)
{
    size_t n = strlen(line);
    char *text = strdup(line);
    if (text == NULL) return;
    while (n > 0 && text[n - 1] == ' ') text[--n] = '\0';
    el_utf8_printable(text);
    el_table_begin(out, style);
    fputs(text, out);
    el_table_end(out);
    fputc('\n', out);
    free(text);
}

/* "1.55 - 1.88" or "-0.2 to 1.3" */
static void show_interval(const json_t *interval, double scale, char text[EL_CELL_BYTES])
{
    char low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    double from = el_json_number(interval, "0"), to = el_json_number(interval, "1");
    if (isnan(from) || isnan(to))
        snprintf(text, EL_CELL_BYTES, "none");
    else
        snprintf(text, EL_CELL_BYTES, from < 0 ? "%s to %s" : "%s - %s", el_text_figure(from * scale, low),
                 el_text_figure(to * scale, high));
}

static void show_number(enum el_cell kind, double value, char text[EL_CELL_BYTES])
{
    char figure[EL_FIGURE_BYTES];
    if (kind == EL_CELL_MIB)
        snprintf(text, EL_CELL_BYTES, "%s", el_text_mib(value, figure));
    else if (kind == EL_CELL_FIGURE || isnan(value))
        snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(value, figure));
    else if (kind == EL_CELL_TIME)
        snprintf(text, EL_CELL_BYTES, "%s", el_text_time(value, figure));
    else if (kind == EL_CELL_CHANGE)
        snprintf(text, EL_CELL_BYTES, "%+.1f %%", value);
    else
        snprintf(text, EL_CELL_BYTES, "%.*f", kind == EL_CELL_COUNT ? 0 : kind == EL_CELL_RATIO ? 3 : 1, value);
}

void el_table_cell(const struct el_column *column, const json_t *object, const json_t *context,
                   char text[EL_CELL_BYTES])
{
    double scale = column->scale != 0 ? column->scale : 1;
    *text = '\0';
    if (column->show)
        column->show(object, context, text);
    else if (column->path && column->kind == EL_CELL_TEXT)
        snprintf(text, EL_CELL_BYTES, "%s", el_json_text(object, column->path, "?"));
    else if (column->path && column->kind == EL_CELL_INTERVAL)
        show_interval(el_json_at(object, column->path), scale, text);
    else if (column->path)
        show_number(column->kind, scale * el_json_number(object, column->path), text);
}

struct line {
    char text[EL_TABLE_LINE_BYTES];
    int used, end, columns;
};

/* Every UTF-8 byte except continuation bytes. */
static int count_characters(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void put_cell(struct line *line, const struct el_column *column, const char *text)
{
    int room = EL_TABLE_LINE_BYTES - line->used, width = count_characters(text);
    int begin = line->end + column->gap + (column->width < 0 ? 0 : column->width - width);
    int blanks = begin - line->columns;
    if (blanks < 1 && line->columns > 0 && width > 0) blanks = 1;
    if (blanks < 0) blanks = 0;
    int n = snprintf(line->text + line->used, (size_t)room, "%*s%s", blanks, "", text);
    line->used += n < room ? n : room - 1;
    line->columns += blanks + width;
    line->end += column->gap + abs(column->width);
}

void el_table_heads(const struct el_table *table, enum el_table_style style)
{
    struct line line = {.used = 0};
    for (const struct el_column *column = table->columns; column->head; column++) put_cell(&line, column, column->head);
    el_table_line(table->out, style, line.text);
}

void el_table_row(const struct el_table *table, enum el_table_style style, const json_t *object)
{
    struct line line = {.used = 0};
    char text[EL_CELL_BYTES];
    for (const struct el_column *column = table->columns; column->head; column++) {
        if (table->first && column - table->columns >= table->first) break;
        el_table_cell(column, object, table->context, text);
        if (column->alone && count_characters(text) >= abs(column->width)) {
            el_table_line(table->out, style, text);
            *text = '\0';
        }
        put_cell(&line, column, text);
    }
    el_table_line(table->out, style, line.text);
}

void el_table_list(const struct el_table *table, const char *title, json_t *rows)
{
    if (json_array_size(rows) > 0) {
        fputs(title, table->out);
        el_table_heads(table, EL_TABLE_BOLD);
    }
    EL_EACH(row, rows) el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(rows);
}
