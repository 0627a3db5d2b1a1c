/* A set from its record, regress.json, so that it can be printed again. */
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"

enum el_status el_answer_read(const char *path, json_t **document_p)
{
    json_t *document;
    EL_TRY(el_read_json(path, &document));
    if (json_is_array(json_object_get(document, "cells")) && el_json_text(document, "outcome", NULL) &&
        el_json_whole(document, "schema") == EL_SCHEMA) {
        el_json_printable(document);
        *document_p = document;
        return EL_OK;
    }
    json_decref(document);
    return el_fail(EL_ERR_INVALID, "%s is nothing that 'evenload regress' of this version wrote", path);
}

static enum el_cell_kind kind_of(const json_t *json)
{
    if (el_json_is(json, "kind", "exact")) return EL_CELL_EXACT;
    return el_json_is(json, "kind", "history") ? EL_CELL_HISTORY : EL_CELL_PAIRED;
}

static enum el_cell_verdict verdict_of(const json_t *json)
{
    for (enum el_cell_verdict v = EL_CELL_SAME; v < EL_CELL_NO_BASELINE; v++)
        if (el_json_is(json, "verdict", el_answer_verdict(v)->record)) return v;
    return EL_CELL_NO_BASELINE;
}

static enum el_status add_cell(const json_t *json, struct el_regress_set *set)
{
    struct el_regress_cell *cell;
    EL_TRY(el_regress_add(set, el_json_text(json, "name", "?"), &cell));
    snprintf(cell->unit, sizeof cell->unit, "%s", el_json_text(json, "unit", ""));
    snprintf(cell->reason, sizeof cell->reason, "%s", el_json_text(json, "reason", ""));
    cell->better = el_json_is(json, "better", "higher")  ? EL_BETTER_HIGHER
                   : el_json_is(json, "better", "lower") ? EL_BETTER_LOWER
                                                         : EL_BETTER_NEITHER;
    cell->kind = kind_of(json);
    cell->verdict = verdict_of(json);
    cell->effect = el_json_number(json, "effect");
    cell->low = el_json_number(json, "ci95.0");
    cell->high = el_json_number(json, "ci95.1");
    cell->p = el_json_number(json, "p");
    cell->p_adjusted = el_json_number(json, "p_adjusted");
    cell->floor = el_json_number(json, "floor");
    cell->detectable = el_json_number(json, "detectable");
    cell->n_base = el_json_numbers(json_object_get(json, "base"), &cell->base);
    cell->n_head = el_json_numbers(json_object_get(json, "head"), &cell->head);
    return EL_OK;
}

void el_answer_print_document(const json_t *document, FILE *out)
{
    struct el_regress_set set = {.blocks = (int)el_json_whole(document, "blocks"),
                                 .last_analysis = json_is_true(json_object_get(document, "last_analysis"))};
    enum el_status status = EL_OK;
    snprintf(set.environment, sizeof set.environment, "%s", el_json_text(document, "environment", ""));
    EL_EACH(cell, json_object_get(document, "cells")) {
        if (status == EL_OK) status = add_cell(cell, &set);
    }
    EL_EACH(name, json_object_get(document, "not_judged")) {
        if (status == EL_OK && json_is_string(name)) status = el_regress_leave_out(&set, json_string_value(name));
    }
    if (status == EL_OK) el_answer_print(&set, out);
    el_regress_free(&set);
}
