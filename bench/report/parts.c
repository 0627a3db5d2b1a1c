/* Styles and small texts of the tables. */
#include "bench/report/parts.h"

#include <string.h>

#include "bench/record/jvalue.h"

static const char *const codes[] = {[EL_TABLE_PLAIN] = "",
                                    [EL_TABLE_BOLD] = "\033[1m",
                                    [EL_TABLE_DIM] = "\033[2m",
                                    [EL_TABLE_RED] = "\033[31m",
                                    [EL_TABLE_YELLOW] = "\033[33m"};

void el_table_begin(FILE *out, enum el_table_style style, bool colour)
{
    if (colour) fputs(codes[style], out);
}

void el_table_end(FILE *out, bool colour)
{
    if (colour) fputs("\033[0m", out);
}

void el_table_line(FILE *out, enum el_table_style style, bool colour, const char *line)
{
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ') n--;
    el_table_begin(out, style, colour);
    fprintf(out, "%.*s", (int)n, line);
    el_table_end(out, colour);
    fputc('\n', out);
}

void el_table_batch(const json_t *trial, char *text, size_t bytes)
{
    const json_t *shares = json_object_get(trial, "batch_per_device");
    size_t n = json_array_size(shares);
    double first = json_number_value(json_array_get(shares, 0)),
           last = json_number_value(json_array_get(shares, n - 1));
    int used = snprintf(text, bytes, "%.0f", el_json_number(trial, "global_batch"));
    if (n < 2) return;
    if (first == last) {
        snprintf(text + used, bytes - (size_t)used, " (%zu x %.0f)", n, first);
    } else {
        snprintf(text + used, bytes - (size_t)used, " (%.0f..%.0f)", first, last);
    }
}
