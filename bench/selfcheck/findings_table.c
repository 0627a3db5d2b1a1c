/* Self-check: what a person reads of it, and the same as JSON. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/selfcheck/selfcheck.h"

/* From here on others' work is what the verdict calls a reason for doubt. */
#define BUSY_PCT 5.0

static const char *const words[] = {
    [EL_SELFCHECK_MISSED] = "MISSED", [EL_SELFCHECK_FOUND] = "found", [EL_SELFCHECK_SKIPPED] = "skipped"};

int el_selfcheck_count(const struct el_selfcheck *check, enum el_selfcheck_state state)
{
    int n = 0;
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++) n += check->results[i].state == state;
    return n;
}

/* What was found against what was injected, in per cent; NAN where nothing was found. */
static double off_pct(const struct el_selfcheck_row *row, const struct el_selfcheck_result *result)
{
    return result->tries ? 100 * (result->finding.value / row->injected - 1) : NAN;
}

static void put_cells(const char *name, const char *injected, const char *found, const char *off, const char *within,
                      const char *state, FILE *out)
{
    fprintf(out, "%-10s%-25s%-41s%8s%7s%s%s\n", name, injected, found, off, within, *state ? "  " : "", state);
}

/* Where there is no value the text is a reason, and has lines of its own. */
static void put_row(const struct el_selfcheck_row *row, const struct el_selfcheck_result *result, FILE *out)
{
    bool told = !isnan(off_pct(row, result));
    char off[32] = "", within[32];
    if (told) snprintf(off, sizeof off, "%+.1f %%", off_pct(row, result));
    snprintf(within, sizeof within, "%.0f %%", row->within_pct);
    put_cells(row->name, row->what, told ? result->finding.text : "-", off, within, words[result->state], out);
    if (result->tries > 1)
        fprintf(out, "%-10s%s\n", "", result->state == EL_SELFCHECK_FOUND ? "(at the second try)" : "(twice)");
    if (!told) el_text_wrap(result->finding.text, "          ", "          ", EL_REPORT_COLUMNS, out);
}

/* What to make of a miss. */
static void put_advice(const struct el_selfcheck *check, FILE *out)
{
    if (check->others_pct > BUSY_PCT)
        el_text_say("", "", EL_REPORT_COLUMNS, out,
                    "Other processes took up to %.0f %% of the cores meanwhile, which can hide what was injected: stop "
                    "them and check again. A miss proves nothing on a machine this busy.",
                    check->others_pct);
    else
        el_text_wrap("No other process is known to have taken part of the cores, so figures of this kind are off on "
                     "this machine. The usual cause is a hypervisor that takes cores away: steal_pct in the file "
                     "below.",
                     "", "", EL_REPORT_COLUMNS, out);
}

void el_selfcheck_print(const struct el_selfcheck *check, FILE *out)
{
    int found = el_selfcheck_count(check, EL_SELFCHECK_FOUND);
    int skipped = el_selfcheck_count(check, EL_SELFCHECK_SKIPPED);
    put_cells("check", "injected", "found", "off", "within", "", out);
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++) put_row(&el_selfcheck_rows()[i], &check->results[i], out);
    fprintf(out, "\n%d of %d found", found, EL_SELFCHECK_ROWS - skipped);
    if (skipped) fprintf(out, ", %d skipped", skipped);
    fprintf(out, ", in %.0f s; ddp by %s\n", check->seconds,
            check->by_mpi ? "mpirun's processes" : "processes of its own");
    if (el_selfcheck_count(check, EL_SELFCHECK_MISSED)) put_advice(check, out);
    el_text_line(out, "%s/results.json", check->dir);
}

static json_t *result_json(const struct el_selfcheck_row *row, const struct el_selfcheck_result *result)
{
    static const char *const states[] = {
        [EL_SELFCHECK_MISSED] = "missed", [EL_SELFCHECK_FOUND] = "found", [EL_SELFCHECK_SKIPPED] = "skipped"};
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:s}", "check", row->name, "state",
                     states[result->state], "what", row->what, "inject", row->inject, "injected",
                     el_json_real(row->injected), "found", el_json_real(result->tries ? result->finding.value : NAN),
                     "off_pct", el_json_real(off_pct(row, result)), "within_pct", el_json_real(row->within_pct),
                     "tries", result->tries, "text", result->finding.text);
}

json_t *el_selfcheck_json(const struct el_selfcheck *check)
{
    json_t *list = json_array();
    int skipped = el_selfcheck_count(check, EL_SELFCHECK_SKIPPED);
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++)
        json_array_append_new(list, result_json(&el_selfcheck_rows()[i], &check->results[i]));
    return json_pack("{s:i, s:i, s:i, s:o, s:o, s:s, s:s, s:o}", "found", el_selfcheck_count(check, EL_SELFCHECK_FOUND),
                     "checked", EL_SELFCHECK_ROWS - skipped, "skipped", skipped, "seconds",
                     el_json_real(check->seconds), "others_pct", el_json_real(check->others_pct), "ddp_by",
                     check->by_mpi ? "mpirun" : "own", "dir", check->dir, "checks", list);
}
