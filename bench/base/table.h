/* Tables: a line per JSON object under a line of heads; columns are data:
 *
 *     static const struct el_column columns[] =
 *         EL_COLUMNS(EL_TEXT("mode", -6, "mode"), EL_FIGURE("step ms", 9, "step.step_ms"));
 *     const struct el_table table = {.columns = columns, .out = stdout};
 *     el_table_heads(&table, EL_TABLE_BOLD);
 *     el_table_row(&table, EL_TABLE_PLAIN, object);
 *
 * A cell that is too wide pushes the next one, with a blank between. Foreign text cannot end a line or control a
 * terminal. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { EL_TABLE_LINE_BYTES = 512, EL_CELL_BYTES = 384 };
enum el_table_style { EL_TABLE_PLAIN, EL_TABLE_BOLD, EL_TABLE_DIM, EL_TABLE_RED, EL_TABLE_YELLOW };

enum el_cell {
    EL_CELL_TEXT,     /* "?" for none */
    EL_CELL_FIGURE,   /* el_text_figure */
    EL_CELL_TIME,     /* seconds: el_text_time */
    EL_CELL_MIB,      /* bytes: el_text_mib */
    EL_CELL_COUNT,    /* a whole number, without a comma */
    EL_CELL_CHANGE,   /* "+1.3 %", from per cent */
    EL_CELL_RATIO,    /* "0.227" */
    EL_CELL_PERCENT,  /* "37.0" */
    EL_CELL_INTERVAL, /* "1.55 - 1.88", from [low, high]; "none" */
};

struct el_column {
    const char *head; /* NULL ends the columns */
    int gap;          /* blanks before it, beside its width */
    int width;        /* negative: left-aligned */
    bool alone;       /* a text that is too long gets its own line above the row */
    enum el_cell kind;
    const char *path; /* in the object; NULL: an empty cell */
    double scale;     /* of figures and intervals; 0: 1 */
    /* Optional: writes the cell in place of kind and path. `context`: the table's. `text`: EL_CELL_BYTES. */
    void (*show)(const json_t *object, const json_t *context, char *text);
};

/* Columns by head, width, path, and other fields: EL_FIGURE("eff. %", 7, "efficiency", .scale = 100). */
#define EL_COLUMN(how, title, columns, ...)                                                                            \
    {                                                                                                                  \
        .head = (title), .width = (columns), .kind = (how), .path = __VA_ARGS__                                        \
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
#define EL_SHOWN(title, columns, ...)                                                                                  \
    {                                                                                                                  \
        .head = (title), .width = (columns), .show = __VA_ARGS__                                                       \
    }
/* A name of any length that begins a row. */
#define EL_NAME(title, columns, at)                                                                                    \
    {                                                                                                                  \
        .head = (title), .width = -(columns), .alone = true, .kind = EL_CELL_TEXT, .path = (at)                        \
    }
#define EL_NO_MORE EL_TEXT(NULL, 0, NULL)
#define EL_COLUMNS(...)                                                                                                \
    {                                                                                                                  \
        __VA_ARGS__, EL_NO_MORE                                                                                        \
    }

struct el_table {
    const struct el_column *columns;
    const json_t *context; /* for `show`; may be NULL */
    int first;             /* cells of a row; 0: all */
    FILE *out;
};

void el_table_heads(const struct el_table *table, enum el_table_style style);
void el_table_row(const struct el_table *table, enum el_table_style style, const json_t *object);

/* A title, heads and rows; nothing without rows. Steals `rows`. */
void el_table_list(const struct el_table *table, const char *title, json_t *rows);

void el_table_cell(const struct el_column *column, const json_t *object, const json_t *context,
                   char text[EL_CELL_BYTES]);

/* A line without trailing blanks. */
void el_table_line(FILE *out, enum el_table_style style, const char *line);
/* Style for several lines, until el_table_end. */
void el_table_begin(FILE *out, enum el_table_style style);
void el_table_end(FILE *out);
