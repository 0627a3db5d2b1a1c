/* What the tables of a report share: a line with its style, and a batch as people write it. Only table*.c include it.
 */
#ifndef EL_BENCH_TABLE_PARTS_H
#define EL_BENCH_TABLE_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { EL_TABLE_LINE_BYTES = 512 };
enum el_table_style { EL_TABLE_PLAIN, EL_TABLE_BOLD, EL_TABLE_DIM, EL_TABLE_RED, EL_TABLE_YELLOW };

/* Prints it without blanks at its end. */
void el_table_line(FILE *out, enum el_table_style style, bool colour, const char *line);
/* Turns the style on for what is printed until it is turned off: text of several lines. */
void el_table_begin(FILE *out, enum el_table_style style, bool colour);
void el_table_end(FILE *out, bool colour);
/* "256 (2 x 128)"; uneven shares "65 (33..32)". */
void el_table_batch(const json_t *trial, char *text, size_t bytes);

/* A process's command line as people know it: words without folders, a Python script that is a program of its own
 * (torchrun) without "python3", nothing that a terminal would obey. */
void el_table_command(const char *command, char *text, size_t bytes);

#endif
