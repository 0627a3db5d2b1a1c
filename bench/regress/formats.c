/* The gate's answer for other programs: JSON with every sample, and Bencher's figures. JUnit, Markdown and GitHub's
 * annotations, which are text with rules of escaping, are in formats_ci.c. */
#include "bench/regress/formats.h"

#include <math.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/machine/environment.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"

static const char *const kinds[] = {[EL_CELL_EXACT] = "exact",
                                    [EL_CELL_PAIRED] = "paired",
                                    [EL_CELL_SESSION] = "session",
                                    [EL_CELL_HISTORY] = "history"};
static const char *const outcomes[] = {[EL_REGRESS_NONE] = "none",
                                       [EL_REGRESS_FOUND] = "regression",
                                       [EL_REGRESS_USE] = "unreadable",
                                       [EL_REGRESS_INCONCLUSIVE] = "inconclusive",
                                       [EL_REGRESS_NO_BASELINE] = "no baseline"};
static const char *const verdicts[] = {[EL_CELL_SAME] = "same",
                                       [EL_CELL_REGRESSION] = "regression",
                                       [EL_CELL_IMPROVEMENT] = "improvement",
                                       [EL_CELL_INCONCLUSIVE] = "inconclusive",
                                       [EL_CELL_UNREADABLE] = "unreadable",
                                       [EL_CELL_NO_BASELINE] = "no baseline"};

static json_t *numbers(const double *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, el_json_real(x[i]));
    return list;
}

static json_t *cell_json(const struct el_regress_cell *cell)
{
    json_t *interval = isnan(cell->low) ? json_null() : json_pack("[f, f]", cell->low, cell->high);
    return json_pack("{s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name",
                     el_json_string(cell->name), "unit", el_json_string(cell->unit), "better",
                     el_better_text(cell->better), "kind", kinds[cell->kind], "verdict", verdicts[cell->verdict],
                     "effect", el_json_real(cell->effect), "ci95", interval, "p", el_json_real(cell->p), "p_adjusted",
                     el_json_real(cell->p_adjusted), "floor", el_json_real(cell->floor), "detectable",
                     el_json_real(cell->detectable), "more_blocks", cell->more, "reason", el_json_string(cell->reason),
                     "base", numbers(cell->base, cell->n_base), "head", numbers(cell->head, cell->n_head));
}

json_t *el_regress_json(const struct el_regress_set *set)
{
    char sentence[512];
    json_t *cells = json_array();
    enum el_regress_exit outcome = el_regress_outcome(set);
    for (size_t i = 0; i < set->n; i++) json_array_append_new(cells, cell_json(&set->cells[i]));
    el_regress_sentence(set, sentence, sizeof sentence);
    return json_pack("{s:i, s:s, s:i, s:o, s:o, s:o, s:i, s:i, s:b, s:o, s:o, s:o, s:o}", "schema", EL_SCHEMA,
                     "outcome", outcomes[outcome], "exit_status", (int)outcome, "sentence", el_json_string(sentence),
                     "base", el_json_string(set->base_name), "head", el_json_string(set->head_name), "blocks",
                     set->blocks, "analyses", set->blocks > 0 ? set->stage + 1 : 0, "last_analysis",
                     (int)set->last_analysis, "level", el_json_real(el_regress_level(set->stage, set->last_analysis)),
                     "environment", el_json_string(set->environment), "machine", el_machine(), "cells", cells);
}

/* Two cells of one name would be one entry: from the second on they are numbered, "cell #2". */
static void entry_name(const struct el_regress_set *set, size_t cell, char *text, size_t bytes)
{
    size_t number = 1;
    for (size_t i = 0; i < cell; i++) number += !strcmp(set->cells[i].name, set->cells[cell].name);
    if (number == 1)
        snprintf(text, bytes, "%s", set->cells[cell].name);
    else
        snprintf(text, bytes, "%s #%zu", set->cells[cell].name, number);
}

/* {"cell": {"unit": {"value", "lower_value", "upper_value"}}}: bounds are the head's figure at the effect's two ends.
 */
enum el_status el_regress_write_bencher(const struct el_regress_set *set, const char *path)
{
    json_t *document = json_object();
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        double value = el_stats_median(cell->head, cell->n_head);
        char name[EL_CELL_NAME_BYTES + 24];
        if (!isfinite(value)) continue;
        json_t *figure = json_pack("{s:f}", "value", value);
        bool higher = cell->better == EL_BETTER_HIGHER;
        double base = el_stats_median(cell->base, cell->n_base);
        if (!isnan(cell->low) && isfinite(base)) {
            json_object_set_new(figure, "lower_value",
                                json_real(fmin(value, higher ? base / cell->high : base * cell->low)));
            json_object_set_new(figure, "upper_value",
                                json_real(fmax(value, higher ? base / cell->low : base * cell->high)));
        }
        entry_name(set, i, name, sizeof name);
        json_object_set_new(document, name, json_pack("{s:o}", *cell->unit ? cell->unit : "value", figure));
    }
    enum el_status status = el_write_json(document, path);
    json_decref(document);
    return status;
}
