/* Tables for people: a line of cells for each JSON object, under a line of heads. A column is a row of data:
 *
 *     static const struct el_column columns[] = {EL_TEXT("mode", -6, "mode"), EL_FIGURE("step ms", 9, "step.step_ms"),
 *                                                EL_NO_MORE};
 *     const struct el_table table = {.columns = columns, .out = stdout};
 *     el_table_heads(&table, EL_TABLE_BOLD);
 *     el_table_row(&table, EL_TABLE_PLAIN, object);
 *
 * A cell ends where its column does; one that is too wide pushes the next, and a blank stays between them. Text of
 * others cannot end a line or reach a terminal's controls.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { EL_TABLE_LINE_BYTES = 512, EL_CELL_BYTES = 384 };
enum el_table_style { EL_TABLE_PLAIN, EL_TABLE_BOLD, EL_TABLE_DIM, EL_TABLE_RED, EL_TABLE_YELLOW };

enum el_cell {
    EL_CELL_TEXT,     /* "?" where there is none */
    EL_CELL_FIGURE,   /* el_text_figure */
    EL_CELL_TIME,     /* of seconds: el_text_time */
    EL_CELL_MIB,      /* of bytes: el_text_mib */
    EL_CELL_COUNT,    /* a whole number, without a comma */
    EL_CELL_CHANGE,   /* "+1.3 %", of per cent */
    EL_CELL_RATIO,    /* "0.227" */
    EL_CELL_PERCENT,  /* "37.0" */
    EL_CELL_INTERVAL, /* "1.55 - 1.88", of [low, high]; "none" */
};

struct el_column {
    const char *head; /* NULL: the row that ends the columns */
    int gap;          /* blanks before it, beside its width */
    int width;        /* negative: left-aligned */
    bool alone;       /* a text that leaves no blank behind it has a line of its own above the row */
    enum el_cell kind;
    const char *path; /* in the object; NULL: an empty cell */
    double scale;     /* that figures and intervals are multiplied with; 0: 1 */
    /* Optional: writes the cell, in place of kind and path. `context` is the table's. `text` has EL_CELL_BYTES. */
    void (*show)(const json_t *object, const json_t *context, char *text);
};

/* Rows of columns: head, width, path; a column with more than that is written out. */
#define EL_COLUMN(how, title, columns, at)                                                                             \
    {                                                                                                                  \
        .head = (title), .width = (columns), .kind = (how), .path = (at)                                               \
    }
#define EL_TEXT(...)     EL_COLUMN(EL_CELL_TEXT, __VA_ARGS__)
#define EL_FIGURE(...)   EL_COLUMN(EL_CELL_FIGURE, __VA_ARGS__)
#define EL_TIME(...)     EL_COLUMN(EL_CELL_TIME, __VA_ARGS__)
#define EL_MIB(...)      EL_COLUMN(EL_CELL_MIB, __VA_ARGS__)
#define EL_COUNT(...)    EL_COLUMN(EL_CELL_COUNT, __VA_ARGS__)
#define EL_CHANGE(...)   EL_COLUMN(EL_CELL_CHANGE, __VA_ARGS__)
#define EL_RATIO(...)    EL_COLUMN(EL_CELL_RATIO, __VA_ARGS__)
#define EL_PERCENT(...)  EL_COLUMN(EL_CELL_PERCENT, __VA_ARGS__)
#define EL_INTERVAL(...) EL_COLUMN(EL_CELL_INTERVAL, __VA_ARGS__)
#define EL_SHOWN(title, columns, how)                                                                                  \
    {                                                                                                                  \
        .head = (title), .width = (columns), .show = (how)                                                             \
    }
/* A name, whatever its length, that begins a row. */
#define EL_NAME(title, columns, at)                                                                                    \
    {                                                                                                                  \
        .head = (title), .width = -(columns), .alone = true, .kind = EL_CELL_TEXT, .path = (at)                        \
    }
#define EL_NO_MORE EL_TEXT(NULL, 0, NULL)

struct el_table {
    const struct el_column *columns;
    const json_t *context; /* for `show`; may be NULL */
    int first;             /* rows have so many cells, the others have nothing to say; 0: all */
    FILE *out;
};

void el_table_heads(const struct el_table *table, enum el_table_style style);
void el_table_row(const struct el_table *table, enum el_table_style style, const json_t *object);

/* A title, the heads and a row for each object; nothing where there is none. Takes `rows`. */
void el_table_list(const struct el_table *table, const char *title, json_t *rows);

/* One cell of the object's row. */
void el_table_cell(const struct el_column *column, const json_t *object, const json_t *context,
                   char text[EL_CELL_BYTES]);

/* A line of its own, without blanks at its end. */
void el_table_line(FILE *out, enum el_table_style style, const char *line);
/* Turns the style on for what is printed until it is turned off: text of several lines. */
void el_table_begin(FILE *out, enum el_table_style style);
void el_table_end(FILE *out);
