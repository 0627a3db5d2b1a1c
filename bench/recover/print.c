/* The tables and sentences of `recover`. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/recover/recover.h"

static const struct el_column fall_columns[] =
    EL_COLUMNS(EL_TEXT("lost by", -7, "kind"), EL_COUNT("at step", 8, "step"), EL_COUNT("resumed", 8, "resumed"),
               EL_COUNT("steps lost", 11, "lost_steps"), EL_FIGURE("detect s", 9, "detect_s"),
               EL_FIGURE("restart s", 10, "restart_s"), EL_FIGURE("load s", 7, "load_s"),
               EL_FIGURE("catch up s", 11, "catch_up_s"));

static const struct el_column interval_columns[] =
    EL_COLUMNS(EL_TIME("a loss every", 13, "mtbf_s"), EL_TIME("checkpoint every", 17, "interval_s"),
               EL_COUNT("steps", 11, "interval_steps"), EL_FIGURE("lost %", 8, "lost_pct"));

bool el_recover_is(const json_t *document)
{
    return el_json_is(document, "command", "recover") && json_is_array(json_object_get(document, "events")) &&
           json_is_array(json_object_get(document, "falls")) && json_is_array(json_object_get(document, "intervals"));
}

static void say_cost(const json_t *document, FILE *out)
{
    char size[EL_FIGURE_BYTES], copy[EL_FIGURE_BYTES], write[EL_FIGURE_BYTES], rate[EL_FIGURE_BYTES],
        cost[EL_FIGURE_BYTES];
    const double low = el_json_number(document, "cost_pct_ci95.0"), high = el_json_number(document, "cost_pct_ci95.1");
    EL_SAY(out, "A checkpoint: %s MB by the first rank, in %s ms at %s MB/s; training stood still for %s ms.",
           el_text_figure(el_json_number(document, "checkpoints.bytes") / 1e6, size),
           el_text_figure(el_json_number(document, "checkpoints.write_ms"), write),
           el_text_figure(el_json_number(document, "checkpoints.write_mb_per_s"), rate),
           el_text_figure(el_json_number(document, "exposed_ms"), copy));
    el_text_figure(el_json_number(document, "cost_pct"), cost);
    if (isnan(low))
        EL_SAY(out, "One every %.0f steps cost %s %% of the time (give more --repeats for an interval).",
               el_json_number(document, "checkpoints.every"), cost);
    else
        EL_SAY(out, "One every %.0f steps cost %s %% of the time (95 %% interval %.3g to %.3g, %.0f %s).",
               el_json_number(document, "checkpoints.every"), cost, low, high, el_json_number(document, "cost_n"),
               el_json_text(document, "cost_of", "?"));
}

void el_recover_say_same(const json_t *document, char text[EL_TITLE_BYTES])
{
    const json_t *weights = json_object_get(document, "same_weights");
    const bool losses = json_is_true(json_object_get(document, "same_losses")),
               same = losses && !json_is_false(weights);
    snprintf(text, EL_TITLE_BYTES, "After the restart %s %s those of the undisturbed job%s",
             !losses                 ? "losses"
             : json_is_true(weights) ? "losses and weights"
             : same                  ? "losses"
                                     : "weights",
             same ? "equal" : "are NOT", same ? ", bit for bit" : "");
}

void el_recover_print(const json_t *document, FILE *out)
{
    char same[EL_TITLE_BYTES];
    const struct el_table falls = {.columns = fall_columns, .out = out},
                          intervals = {.columns = interval_columns, .out = out};
    char figure[EL_FIGURE_BYTES];
    EL_SAY(out, "%s, %s on %.0f devices, %.0f steps of %s ms", el_json_text(document, "model", "?"),
           el_json_text(document, "mode", "?"), el_json_number(document, "devices"), el_json_number(document, "steps"),
           el_text_figure(el_json_number(document, "step_ms"), figure));
    el_table_list(&falls, "\nWhat the loss of a rank cost\n", json_incref(json_object_get(document, "falls")));
    fputc('\n', out);
    el_recover_say_same(document, same);
    EL_SAY(out, "%s.", same);
    EL_SAY(out, "Goodput: %s %% of the time went into steps that count.",
           el_text_figure(100 * el_json_number(document, "goodput"), figure));
    say_cost(document, out);
    el_table_list(&intervals, "\nHow often to write one, by Daly's formula, and what is lost then\n",
                  json_incref(json_object_get(document, "intervals")));
}
