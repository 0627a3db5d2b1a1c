/* Self-check: what was found, as JSON, and that as a person reads it. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/selfcheck/selfcheck.h"

enum { COLUMNS = EL_REPORT_COLUMNS };

/* From here on others' work is what the verdict calls a reason for doubt. */
#define BUSY_PCT 5.0

static const char *const states[] = {
    [EL_SELFCHECK_MISSED] = "missed", [EL_SELFCHECK_FOUND] = "found", [EL_SELFCHECK_SKIPPED] = "skipped"};

static json_t *result_json(const struct el_selfcheck_row *row, const struct el_selfcheck_result *result)
{
    double found = result->tries ? result->finding.value : NAN; /* NAN too where nothing was found */
    return el_json_of(EL_KEY("check", row->name), EL_KEY("state", states[result->state]), EL_KEY("what", row->what),
                      EL_KEY("inject", row->inject), EL_KEY("injected", row->injected), EL_KEY("found", found),
                      EL_KEY("off_pct", 100 * (found / row->injected - 1)), EL_KEY("within_pct", row->within_pct),
                      EL_KEY("tries", result->tries), EL_KEY("text", result->finding.text));
}

json_t *el_selfcheck_json(const struct el_selfcheck *check)
{
    json_t *list = json_array();
    int n[EL_SELFCHECK_SKIPPED + 1] = {0};
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++) {
        n[check->results[i].state]++;
        json_array_append_new(list, result_json(&el_selfcheck_rows()[i], &check->results[i]));
    }
    return el_json_of(EL_KEY("found", n[EL_SELFCHECK_FOUND]),
                      EL_KEY("checked", EL_SELFCHECK_ROWS - n[EL_SELFCHECK_SKIPPED]),
                      EL_KEY("skipped", n[EL_SELFCHECK_SKIPPED]), EL_KEY("seconds", check->seconds),
                      EL_KEY("others_pct", check->others_pct), EL_KEY("ddp_by", check->by_mpi ? "mpirun" : "own"),
                      EL_KEY("dir", check->dir), EL_KEY("checks", list));
}

bool el_selfcheck_missed(const json_t *document)
{
    return el_json_number(document, "found") < el_json_number(document, "checked");
}

static const struct el_column columns[] = {EL_TEXT("check", -10, "check"),
                                           EL_TEXT("injected", -25, "what"),
                                           EL_TEXT("found", -41, "text"),
                                           EL_TEXT("off", 8, "off"),
                                           EL_TEXT("within", 7, "within"),
                                           {.head = "", .gap = 2, .width = -1, .path = "word"},
                                           EL_NO_MORE};

/* Where there is no value the text is a reason, and has lines of its own. */
static void put_row(const struct el_table *table, const json_t *result)
{
    double off_pct = el_json_number(result, "off_pct");
    json_t *row = json_copy((json_t *)(uintptr_t)result);
    el_json_put(row, "off", isnan(off_pct) ? json_string("") : json_sprintf("%+.1f %%", off_pct));
    el_json_put(row, "within", json_sprintf("%.0f %%", el_json_number(result, "within_pct")));
    el_json_put_text(row, "word", el_json_is(result, "state", "missed") ? "MISSED" : el_json_text(result, "state", ""));
    if (isnan(off_pct)) el_json_put_text(row, "text", "-");
    el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(row);
    if (el_json_number(result, "tries") > 1)
        fprintf(table->out, "%-10s%s\n", "", el_json_is(result, "state", "found") ? "(at the second try)" : "(twice)");
    if (isnan(off_pct)) el_text_wrap(el_json_text(result, "text", ""), "          ", "          ", COLUMNS, table->out);
}

/* What to make of a miss. */
static void put_advice(double others_pct, FILE *out)
{
    if (others_pct > BUSY_PCT)
        el_text_say("", "", COLUMNS, out,
                    "Other processes took up to %.0f %% of the cores meanwhile, which can hide what was injected: stop "
                    "them and check again. A miss proves nothing on a machine this busy.",
                    others_pct);
    else
        el_text_wrap("No other process is known to have taken part of the cores, so figures of this kind are off on "
                     "this machine. The usual cause is a hypervisor that takes cores away: steal_pct in the file "
                     "below.",
                     "", "", COLUMNS, out);
}

void el_selfcheck_print(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = columns, .out = out};
    double skipped = el_json_number(document, "skipped");
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(result, json_object_get(document, "checks")) put_row(&table, result);
    fprintf(out, "\n%.0f of %.0f found", el_json_number(document, "found"), el_json_number(document, "checked"));
    if (skipped > 0) fprintf(out, ", %.0f skipped", skipped);
    fprintf(out, ", in %.0f s; ddp by %s\n", el_json_number(document, "seconds"),
            el_json_is(document, "ddp_by", "mpirun") ? "mpirun's processes" : "processes of its own");
    if (el_selfcheck_missed(document)) put_advice(el_json_number(document, "others_pct"), out);
    el_text_line(out, "%s/results.json", el_json_text(document, "dir", "?"));
}
