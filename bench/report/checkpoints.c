/* What checkpoints cost per trial, from where it went on, and how often it was started again: sentences. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

#define SAY(out, ...) el_text_say("", "  ", EL_REPORT_COLUMNS, out, __VA_ARGS__)

static void say_cost(const json_t *of, FILE *out)
{
    char size[EL_FIGURE_BYTES], still[EL_FIGURE_BYTES], write[EL_FIGURE_BYTES], rate[EL_FIGURE_BYTES];
    const double n = el_json_number(of, "n"), failed = el_json_number(of, "failed");
    if (!(n > 0)) {
        SAY(out, "No checkpoint was due: give a smaller --checkpoint-every.");
        return;
    }
    SAY(out,
        "Checkpoints in %s: %.0f, of %s MB by the first rank; for each training stood still %s ms, and it was "
        "written in %s ms, at %s MB/s.",
        el_json_text(of, "dir", "?"), n, el_text_figure(el_json_number(of, "bytes") / 1e6, size),
        el_text_figure(el_json_number(of, "copy_ms") + el_json_number(of, "wait_ms"), still),
        el_text_figure(el_json_number(of, "write_ms"), write),
        el_text_figure(el_json_number(of, "write_mb_per_s"), rate));
    if (failed > 0) SAY(out, "%.0f of them could not be written: the logs say why.", failed);
}

void el_report_checkpoints(const json_t *run, FILE *out)
{
    EL_EACH(trial, json_object_get(run, "trials")) {
        const json_t *of = json_object_get(trial, "checkpoints"), *restarts = json_object_get(trial, "restarts");
        const double first = el_json_number(trial, "first_step");
        if (!json_is_object(of) && !(first > 0)) continue;
        fputc('\n', out);
        EL_EACH(restart, restarts)
            SAY(out, "Started again on %.0f devices, from step %.0f: %s.", el_json_number(restart, "devices"),
                el_json_number(restart, "step"), el_json_text(restart, "reason", "?"));
        if (first > 0) SAY(out, "Steps are counted from %.0f on, where a checkpoint was; figures are of those.", first);
        if (json_is_object(of)) say_cost(of, out);
    }
}
