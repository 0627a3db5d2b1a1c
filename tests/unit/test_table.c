/* Tables: where cells end, what stands where there is no value, and what a wide cell does to its neighbours. */
#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/base/table.h"
#include "tests/unit/printed.h"

static void show_double(const json_t *object, const json_t *context, char *text)
{
    double factor = context ? (double)json_integer_value(context) : 2;
    snprintf(text, EL_CELL_BYTES, "%g!", factor * json_number_value(json_object_get(object, "n")));
}

static const struct el_column columns[] =
    EL_COLUMNS(EL_TEXT("name", -6, "name"), EL_FIGURE("figure", 8, "deep.figure"), EL_MIB("MiB", 6, "bytes"),
               EL_COUNT("n", 4, "n"), EL_CHANGE("change", 9, "change"), EL_INTERVAL("interval", 14, "ci"),
               EL_SHOWN("shown", -6, show_double, .gap = 2));

static void print(const json_t *object, FILE *out)
{
    const struct el_table table = {.columns = columns, .out = out};
    el_table_heads(&table, EL_TABLE_BOLD);
    el_table_row(&table, EL_TABLE_BOLD, object);
}

static void expect(json_t *object, const char *row)
{
    char *text = printed(print, object), wanted[256];
    snprintf(wanted, sizeof wanted, "name    figure   MiB   n   change      interval  shown\n%s\n", row);
    assert_string_equal(text, wanted);
    free(text);
    json_decref(object);
}

static void cells_end_where_columns_do(void **state)
{
    expect(json_pack("{s:s, s:{s:f}, s:i, s:i, s:f, s:[f, f]}", "name", "ddp", "deep", "figure", 1234.5, "bytes",
                     3 << 19, "n", 21, "change", -3.14, "ci", 1.5, 2.0),
           "ddp      1,234   1.5  21   -3.1 %   1.50 - 2.00  42!");
}

static void what_is_missing_says_so(void **state)
{
    expect(json_object(), "?            -     -   -        -          none  0!");
}

/* A name of UTF-8 counts by its characters; what is pushed by a wide cell falls back into its column. */
static void a_wide_cell_pushes_its_neighbours(void **state)
{
    expect(json_pack("{s:s, s:{s:f}, s:i}", "name", "dépêcheé", "deep", "figure", 1e9, "n", 7),
           "dépêcheé 1,000,000,000 - 7      -          none  14!");
}

/* No control character of a foreign name reaches the terminal, and none ends the line. */
static void foreign_text_stays_in_its_line(void **state)
{
    json_t *object = json_pack("{s:s}", "name", "a\n\033[2Jb");
    char *text = printed(print, object);
    size_t lines = 0;
    for (const char *at = text; *at; at++) {
        lines += *at == '\n';
        assert_int_not_equal(*at, '\033');
    }
    assert_int_equal(lines, 2);
    free(text);
    json_decref(object);
}

/* A terminal has styles, unless its user wants none. */
static void a_style_ends_with_its_line(void **state)
{
    const struct el_column one[] = EL_COLUMNS(EL_SHOWN("n", 4, show_double));
    json_t *object = json_pack("{s:i}", "n", 4), *factor = json_integer(10);
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    FILE *out = fopen(ptsname(master), "w");
    assert_non_null(out);
    for (int plain = 0; plain < 2; plain++) {
        char text[64] = "";
        setenv("TERM", "xterm", 1);
        if (plain) setenv("NO_COLOR", "1", 1);
        el_table_row(&(struct el_table){.columns = one, .context = factor, .out = out}, EL_TABLE_RED, object);
        fflush(out);
        for (ssize_t n = 0, more = 1; more > 0 && !strchr(text, '\n'); n += more) /* a terminal gives it in pieces */
            more = read(master, text + n, sizeof text - 1 - (size_t)n);
        assert_string_equal(text, plain ? " 40!\r\n" : "\033[31m 40!\033[0m\r\n");
    }
    fclose(out);
    close(master);
    json_decref(factor);
    json_decref(object);
}

RUN_TESTS(NULL, NULL, cells_end_where_columns_do, what_is_missing_says_so, a_wide_cell_pushes_its_neighbours,
          foreign_text_stays_in_its_line, a_style_ends_with_its_line)
