/* The answer as a person reads it: a table, why where it is not the same, and what it comes to. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/regress/answer.h"

enum { NAME_COLUMNS = 26, COLUMNS = 110, TEXT_BYTES = 512, EXACT_ROWS_MAX = 6 };

/* Where a column ends; the verdict stands behind the last. */
static const int ends[EL_ANSWER_COLUMNS] = {38, 50, 59, 74, 82, 89, 96};

static void put_head(FILE *out)
{
    int at = fprintf(out, "cell");
    for (int i = 0; i < EL_ANSWER_COLUMNS; i++) el_text_column(el_answer_head(i), ends[i], &at, out);
    fputs("  verdict\n", out);
}

static void put_row(const struct el_regress_cell *cell, FILE *out)
{
    char name[EL_CELL_NAME_BYTES + EL_CELL_UNIT_BYTES + 24];
    struct el_answer_row row;
    snprintf(name, sizeof name, "%s%s%s%s", cell->name, *cell->unit ? ", " : "", cell->unit,
             cell->better == EL_BETTER_HIGHER ? " (more is better)" : "");
    int at = fprintf(out, "%s", name);
    if (strlen(name) >= NAME_COLUMNS) at = 0, fputc('\n', out);
    el_answer_row(cell, &row);
    for (int i = 0; i < EL_ANSWER_COLUMNS; i++) el_text_column(row.text[i], ends[i], &at, out);
    fprintf(out, "  %s\n", el_answer_verdict(cell->verdict)->table);
}

static bool same_and_exact(const struct el_regress_cell *cell)
{
    return cell->kind == EL_CELL_EXACT && cell->verdict == EL_CELL_SAME;
}

void el_answer_print(const struct el_regress_set *set, FILE *out)
{
    char text[TEXT_BYTES];
    size_t n_same = 0;
    for (size_t i = 0; i < set->n; i++) n_same += same_and_exact(&set->cells[i]);
    bool folded = n_same > EXACT_ROWS_MAX;
    put_head(out);
    for (size_t i = 0; i < set->n; i++)
        if (!folded || !same_and_exact(&set->cells[i])) put_row(&set->cells[i], out);
    if (folded) fprintf(out, "and %zu exact cells (bytes, memory by tag, operations), all the same\n", n_same);
    fputc('\n', out);
    for (size_t i = 0; i < set->n; i++) {
        if (!set->cells[i].reason[0]) continue;
        snprintf(text, sizeof text, "%s: %s", set->cells[i].name, set->cells[i].reason);
        el_text_wrap(text, "", "  ", COLUMNS, out);
    }
    el_answer_sentence(set, text, sizeof text);
    el_text_wrap(text, "", "", COLUMNS, out);
}
