/* Of trials that differ in the hook on the wire alone: bytes, throughput and loss of each against none, or against the
 * first of them. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

enum { TEXT_BYTES = 256, NAME_BYTES = 64 };

/* The loss after step `n`, from 1. */
static double loss_after(const json_t *trial, size_t n)
{
    return n > 0 ? json_number_value(json_array_get(json_object_get(trial, "loss"), n - 1)) : NAN;
}

static void append_loss(const json_t *trial, const json_t *base, char *text)
{
    size_t n = json_array_size(json_object_get(trial, "loss")), n_base = json_array_size(json_object_get(base, "loss"));
    if (n_base < n) n = n_base;
    double loss = loss_after(trial, n), without = loss_after(base, n);
    if (json_is_true(json_object_get(trial, "simulated")) || !(loss > 0 && without > 0)) return;
    el_text_append(text, TEXT_BYTES, "; loss %.4g after %zu steps, not %.4g", loss, n, without);
}

static void say(const json_t *trial, const json_t *base, FILE *out)
{
    char name[NAME_BYTES], base_name[NAME_BYTES], bytes[EL_FIGURE_BYTES], text[TEXT_BYTES] = "";
    size_t n;
    struct el_interval ratio = el_report_ratio(trial, base, &n);
    const char *doubt = el_report_doubt(trial) ? el_report_doubt(trial) : el_report_doubt(base);
    el_table_mode(trial, name, sizeof name);
    el_table_mode(base, base_name, sizeof base_name);
    if (ratio.centre > 0) el_text_append(text, TEXT_BYTES, "; %.2f times the samples/s", ratio.centre);
    if (ratio.valid) el_text_append(text, TEXT_BYTES, " (%.3f to %.3f)", ratio.low, ratio.high);
    append_loss(trial, base, text);
    el_text_say("* ", "  ", EL_REPORT_COLUMNS, out, "%s against %s at batch %.0f: %s times the bytes sent%s.%s%s%s",
                name, base_name, el_json_number(trial, "global_batch"),
                el_text_figure(el_json_number(trial, "comm.bytes") / el_json_number(base, "comm.bytes"), bytes), text,
                doubt ? " Times are suspect: " : "", doubt ? doubt : "", doubt ? "." : "");
}

static bool is_there(const json_t *trial)
{
    return el_report_is_ok(trial) && el_json_number(trial, "comm.bytes") > 0;
}

void el_report_hooks(const json_t *run, FILE *out)
{
    static const char *const but[] = {"comm_hook", NULL};
    const json_t *trials = json_object_get(run, "trials");
    EL_EACH(trial, trials) {
        const json_t *base = NULL;
        EL_EACH(other, trials) {
            bool none = el_json_is(other, "config.comm_hook", "none");
            if (is_there(other) && el_report_are_like(trial, other, but) && (!base || none)) base = other;
        }
        if (is_there(trial) && base && base != trial) say(trial, base, out);
    }
}
